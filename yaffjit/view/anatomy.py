"""What the bytes of one protobuf message are: the parts that a picture of it shows."""

from __future__ import annotations

from collections.abc import Iterator

from yaffjit.codec.anatomy import MOST_PARTS, SHOWN_NUMBERS
from yaffjit.codec.verify_protobuf import verify_protobuf
from yaffjit.codec.verify_protobuf_plain import (
    BYTES,
    FIXED32,
    FIXED64,
    FIXED_KINDS,
    FIXED_WIDTHS,
    GROUP,
    VARINT,
)
from yaffjit.drawing import Drawing, Part, whole
from yaffjit.errors import VerifyError
from yaffjit.plan import Plan
from yaffjit.schema.enums import enum_name
from yaffjit.schema.model import FieldDef
from yaffjit.view.wire_fields import number_reader
from yaffjit.view.wire_scan import Malformed, Occurrence, end_of_varint, next_field, varint_at

_WIRE_TYPES = {VARINT: "varint", FIXED32: "fixed32", FIXED64: "fixed64", BYTES: "bytes", GROUP: "group"}


def draw_protobuf(plan: Plan, full_name: str, data: bytes) -> Drawing:
    """A picture of protobuf bytes, whether protobuf accepts them or not."""
    fault = ""
    try:
        verify_protobuf(plan, full_name, data)
    except VerifyError as error:
        fault = str(error)
    title = f"{full_name}, {len(data):,} byte{'' if len(data) == 1 else 's'} of protobuf"
    return Drawing(title, data, whole(list(_parts(plan, full_name, data)), len(data)), fault)


def _parts(plan: Plan, full_name: str, data: bytes) -> Iterator[Part]:
    # (message type or "", position, end, path) of the messages that are open.
    opened = [(full_name, 0, len(data), "")]
    counts: dict[str, int] = {}
    budget = MOST_PARTS
    while opened and budget > 0:
        name, pos, end, path = opened.pop()
        if pos >= end:
            continue
        try:
            found = next_field(data, pos, end, len(opened))
        except (Malformed, IndexError):
            return
        opened.append((name, found.after, end, path))
        f = _field(plan, name, found.number)
        below = _path(path, f, found.number, counts)
        tag_end = end_of_varint(data, found.at, end)
        said = f"{found.number}, {_WIRE_TYPES[found.wire_type]}"
        yield Part(found.at, tag_end, "tag", below, said)
        if found.wire_type == BYTES:
            yield Part(tag_end, found.start, "length", below, f"{found.stop - found.start:,}")
        if found.wire_type == GROUP:
            yield Part(found.stop, found.after, "tag", below, "end of the group")
        if f is not None and f.kind in ("message", "group") and found.wire_type in (BYTES, GROUP):
            opened.append((f.type_name, found.start, found.stop, below))
        elif found.wire_type != GROUP:
            packed = f is not None and f.kind not in ("string", "bytes")
            role = "value" if found.wire_type != BYTES else "elements" if packed else "text"
            yield Part(found.start, found.stop, role, below, _value(plan, f, data, found))
        budget -= 1


def _field(plan: Plan, name: str, number: int) -> FieldDef | None:
    fields = plan.schema.messages[name].fields
    return next((f for f in fields if f.number == number), None)


def _path(path: str, f: FieldDef | None, number: int, counts: dict[str, int]) -> str:
    """The field's path; of repeated ones with how many there were before."""
    name = f"#{number}" if f is None else f.name
    whole_path = f"{path}.{name}" if path else name
    if f is None or not f.repeated:
        return whole_path
    before = counts.get(whole_path, 0)
    counts[whole_path] = before + 1
    return f"{whole_path}[{before}]" if f.kind in ("message", "string", "bytes", "group") else whole_path


def _value(plan: Plan, f: FieldDef | None, data: bytes, found: Occurrence) -> str:
    held = data[found.start : found.stop]
    if found.wire_type != BYTES:
        if f is not None and _wire_type(f) == found.wire_type:
            return _number(plan, f, data, found.start)
        return str(
            varint_at(data, found.start) if found.wire_type == VARINT else int.from_bytes(held, "little")
        )
    if f is None or f.kind == "bytes":
        return repr(held[:64])
    if f.kind == "string":
        return repr(held[:200].decode(errors="replace"))
    return _packed(plan, f, held)


def _packed(plan: Plan, f: FieldDef, held: bytes) -> str:
    """The first of packed numbers."""
    width = FIXED_WIDTHS.get(_wire_type(f))
    shown: list[str] = []
    pos = 0
    while pos < len(held) and len(shown) < SHOWN_NUMBERS:
        try:
            stop = end_of_varint(held, pos, len(held)) if width is None else pos + width
        except Malformed:
            break
        if stop > len(held):
            break
        shown.append(_number(plan, f, held, pos))
        pos = stop
    return f"[{', '.join(shown)}{', ...' if pos < len(held) else ''}]"


def _wire_type(f: FieldDef) -> int:
    """That of a number of the field; of the others none that numbers have."""
    return FIXED_KINDS.get(f.kind, BYTES if f.kind in ("string", "bytes", "message", "group") else VARINT)


def _number(plan: Plan, f: FieldDef, data: bytes, at: int) -> str:
    number = number_reader(f.kind)(data, at)
    return enum_name(plan.schema, f.type_name, int(number)) if f.kind == "enum" else repr(number)
