"""Some fields of a protobuf message changed, and the rest of its bytes as they were.

What isn't changed is copied, in its order and spelling, with all that the schema doesn't know. A field that
is changed comes where it was first, or before the first field of a higher number. Of a oneof only what counts
is kept, once a member of it is changed: bytes that a later member had overruled mustn't come back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from yaffjit.codec.builder import written
from yaffjit.codec.from_dict import Filler
from yaffjit.codec.verify_protobuf import verify_protobuf
from yaffjit.codec.verify_protobuf_plain import BYTES, END, FIXED32, FIXED64, FIXED_KINDS, GROUP, VARINT
from yaffjit.codec.wire import varint
from yaffjit.codec.writer import Refused
from yaffjit.errors import EncodeError, near_names
from yaffjit.plan import Plan
from yaffjit.plan.limits import MAX_DEPTH
from yaffjit.schema.model import FieldDef

_WIRE_TYPES = {**FIXED_KINDS, "string": BYTES, "bytes": BYTES}


def update_protobuf(plan: Plan, full_name: str, data: Any, changes: Mapping[str, Any]) -> bytes:
    """The bytes of a message with some fields changed.

    Args:
        plan: the schema that has the message.
        full_name: its type.
        data: protobuf bytes, or a view.
        changes: what `encode` takes for a field, by its path: ``"price"``, ``"stats.ctr"``. None unsets it.

    Raises:
        DecodeError: the bytes aren't such a message.
        EncodeError: names the path that isn't one, or whose value can't be written.
    """
    payload = _payload(full_name, data)
    verify_protobuf(plan, full_name, payload)
    try:
        return _Update(plan).message(full_name, payload, _tree(changes), 0)
    except Refused as refused:
        raise EncodeError(refused.sentence(full_name)) from None


def _payload(full_name: str, data: Any) -> bytes:
    from yaffjit.view import View

    if not isinstance(data, View):
        return data if type(data) is bytes else memoryview(data).tobytes()
    found = type(data).DESCRIPTOR.full_name
    if found != full_name:
        raise EncodeError(f"{full_name} expected, but the view is of {found}")
    return _view_bytes(data)


def _view_bytes(view: Any) -> bytes:
    """The message of a view as protobuf bytes: those that it reads, if it reads such."""
    from yaffjit.view import View

    if getattr(view, "_representation_", "yaff") == "protobuf":
        return bytes(view._data_[view._begin_ : view._end_])
    return View.SerializeToString(view)


# Changes by name: a value, or the changes within a message.
_Tree = dict[str, Any]


class _Within(_Tree):
    """Changes within a message, apart from a dict that is the message's new value."""


def _tree(changes: Mapping[str, Any]) -> _Within:
    tree = _Within()
    for path, value in changes.items():
        if not isinstance(path, str):
            raise TypeError(f"changes have paths of fields as keys, not {type(path).__name__}")
        *outer, last = path.split(".")
        at = tree
        for name in outer:
            inner = at.setdefault(name, _Within())
            if not isinstance(inner, _Within):
                raise Refused(f"{path!r} and a part of it are both given")
            at = inner
        if last in at:
            raise Refused(f"{path!r} and a part of it are both given")
        at[last] = value
    return tree


@dataclass(slots=True)
class _Part:
    """A field as it lies in a message: whole at ``[begin, end)``, its content at ``[inside, until)``."""

    number: int
    wire_type: int
    begin: int
    inside: int
    until: int
    end: int


@dataclass(slots=True)
class _Field:
    """A changed field: what it becomes, once the parts of it are known."""

    definition: FieldDef
    change: Any
    parts: list[_Part] = field(default_factory=list)


class _Update:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.filler = Filler.of(plan)

    def message(self, full_name: str, data: bytes, tree: _Tree, depth: int) -> bytes:
        """The bytes of a message after the changes of a tree."""
        if depth > MAX_DEPTH:
            raise Refused(f"messages nested deeper than {MAX_DEPTH}")
        changed = self.fields(full_name, tree)
        by_number = {f.number: f for f in self.plan.schema.messages[full_name].fields}
        oneofs = {change.definition.oneof for change in changed.values()} - {""}
        live: dict[str, int] = {}  # the member that counts, of each changed oneof
        rounds: dict[str, int] = dict.fromkeys(oneofs, 0)  # how often another one came to count
        # With the field of those that count and that the changes concern.
        listed: list[tuple[_Part, FieldDef | None, int]] = []
        for part in parts_of(data):
            f = by_number.get(part.number)
            concerned = f is not None and (f.number in changed or f.oneof in oneofs)
            if f is None or not concerned or not self.counts(full_name, f, part, data):
                listed.append((part, None, 0))
                continue
            if f.oneof in oneofs and live.get(f.oneof) != f.number:
                live[f.oneof] = f.number
                rounds[f.oneof] += 1
            listed.append((part, f, rounds.get(f.oneof, 0)))
        for part, f, told in listed:
            if f is not None and f.number in changed and told == rounds.get(f.oneof, 0):
                changed[f.number].parts.append(part)
        new = {number: self.written(full_name, data, change, depth) for number, change in changed.items()}
        # A member that is set, or unset while it counts, leaves nothing of the others.
        gone = {
            change.definition.oneof
            for number, change in changed.items()
            if new[number] or live.get(change.definition.oneof) == number
        } - {""}

        def stays(f: FieldDef, told: int) -> bool:
            return f.number not in changed and f.oneof not in gone and told == rounds.get(f.oneof, 0)

        kept = [part for part, f, told in listed if f is None or stays(f, told)]
        return b"".join(_merged(data, kept, changed, new))

    def fields(self, full_name: str, tree: _Tree) -> dict[int, _Field]:
        """The changed fields of a message by their numbers."""
        known = self.filler.known(full_name)
        changed: dict[int, _Field] = {}
        oneofs: dict[str, str] = {}
        for name, change in tree.items():
            if name not in known:
                names = [f.name for f in self.plan.schema.messages[full_name].fields]
                raise Refused(f"{full_name} has no such field{near_names(name, names)}").within(name)
            f = known[name][0]
            if f.number in changed:
                raise Refused("given twice, by both of its names").within(f.name)
            if isinstance(change, _Within) and (f.repeated or f.kind not in ("message", "group")):
                raise Refused("isn't a single message, so nothing within it is changed").within(f.name)
            if f.oneof and change is not None and oneofs.setdefault(f.oneof, name) != name:
                both = f"{oneofs[f.oneof]!r} and {name!r}"
                raise Refused(f"{both} are both given, but only one field of oneof {f.oneof!r} can be set")
            changed[f.number] = _Field(f, change)
        return changed

    def is_group(self, full_name: str, f: FieldDef) -> bool:
        """Whether a message field lies between tags; that of an edition is declared as any other."""
        descriptor: Any = self.plan.schema.pool.FindMessageTypeByName(full_name)
        return bool(descriptor.fields_by_number[f.number].type == descriptor.fields[0].TYPE_GROUP)

    def counts(self, full_name: str, f: FieldDef, part: _Part, data: bytes) -> bool:
        """Whether a part of the field's number is of the field, and not an unknown one."""
        if f.kind in ("message", "group"):
            return part.wire_type == (GROUP if self.is_group(full_name, f) else BYTES)
        wire_type = _WIRE_TYPES.get(f.kind, VARINT)
        if part.wire_type != wire_type:
            return part.wire_type == BYTES and f.repeated and wire_type in (VARINT, FIXED32, FIXED64)
        if f.kind != "enum" or not self.plan.schema.enums[f.type_name].closed:
            return True
        bits = _varint(data, part.inside)[0] & 0xFFFFFFFF
        number = (bits ^ 0x80000000) - 0x80000000
        return any(number == known for _, known in self.plan.schema.enums[f.type_name].values)

    def written(self, full_name: str, data: bytes, changed: _Field, depth: int) -> bytes:
        """The bytes that a changed field becomes."""
        f, change = changed.definition, changed.change
        if not isinstance(change, _Within):
            if change is None:
                return b""
            message = self.plan.schema.message_class(full_name)()
            self.filler.fill_fields(full_name, message, {f.name: change}, depth)
            return written(message)
        held = b"".join(data[part.inside : part.until] for part in changed.parts)  # which merges them
        try:
            inner = self.message(f.type_name, held, change, depth + 1)
        except Refused as refused:
            raise refused.within(f.name) from None
        if not changed.parts and not _sets(change):
            return b""
        tag = f.number << 3
        if self.is_group(full_name, f):
            return varint(tag | GROUP) + inner + varint(tag | END)
        return varint(tag | BYTES) + varint(len(inner)) + inner


def _sets(tree: _Tree) -> bool:
    """Whether changes set anything."""
    return any(
        _sets(change) if isinstance(change, _Within) else change is not None for change in tree.values()
    )


def _merged(
    data: bytes, kept: list[_Part], changed: Mapping[int, _Field], new: Mapping[int, bytes]
) -> Iterator[bytes]:
    """The parts that stay with the new ones between them, each at its place."""
    places: list[tuple[int, int]] = []
    for number, change in changed.items():
        after = (part.begin for part in kept if part.number > number)
        place = change.parts[0].begin if change.parts else next(after, len(data))
        places.append((place, number))
    places.sort()
    at = iter([*places, (len(data) + 1, 0)])
    place, number = next(at)
    for part in kept:
        while place <= part.begin:
            yield new[number]
            place, number = next(at)
        yield data[part.begin : part.end]
    while number:
        yield new[number]
        place, number = next(at)


# ---- the parts of a message that protobuf accepts ----


def parts_of(data: bytes) -> Iterable[_Part]:
    """The fields of a message in their order.

    Requires: protobuf accepts the message, or it is one within such a message.
    """
    pos = 0
    while pos < len(data):
        part = _part(data, pos)
        yield part
        pos = part.end


def _part(data: bytes, begin: int) -> _Part:
    tag, inside = _varint(data, begin)
    make = partial(_Part, tag >> 3, tag & 7, begin)
    if tag & 7 == BYTES:
        nbytes, inside = _varint(data, inside)
        return make(inside, inside + nbytes, inside + nbytes)
    if tag & 7 == GROUP:
        until, end = _group_end(data, inside)
        return make(inside, until, end)
    end = _value_end(data, tag & 7, inside)
    return make(inside, end, end)


def _value_end(data: bytes, wire_type: int, pos: int) -> int:
    if wire_type == VARINT:
        return _varint(data, pos)[1]
    if wire_type == BYTES:
        nbytes, pos = _varint(data, pos)
        return pos + nbytes
    return pos + (8 if wire_type == FIXED64 else 4)


def _group_end(data: bytes, pos: int) -> tuple[int, int]:
    """Where the end tag of the group begins whose content is at ``pos``, and where it ends."""
    depth = 1
    while True:
        begin = pos
        tag, pos = _varint(data, pos)
        if tag & 7 == GROUP:
            depth += 1
        elif tag & 7 == END:
            depth -= 1
            if not depth:
                return begin, pos
        else:
            pos = _value_end(data, tag & 7, pos)


def _varint(data: bytes, pos: int) -> tuple[int, int]:
    """A varint, and where it ends."""
    value = shift = 0
    while True:
        byte = data[pos]
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, pos
        shift += 7
