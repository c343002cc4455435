"""How the fields that lie out of line are written: text, messages, arrays, maps."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Protocol

from yaffjit.codec.slots import value_code
from yaffjit.codec.writer import Refused, Writer, pack_u32, too_far
from yaffjit.plan.model import MAX_OFFSET, SCALAR_CODE, FieldPlan, MessagePlan

ABSENT = -1

# (writer, message, value of the field) -> position of the field's object, or ABSENT
FieldWriter = Callable[[Writer, Any, Any], int]


class MessageWriter(Protocol):
    """The writer of a message type."""

    mp: MessagePlan

    def write(self, w: Writer, message: Any) -> int: ...
    def gather_fixed(self, w: Writer, message: Any) -> tuple[list[Any], list[int]]: ...
    def pack_fixed_at(self, values: list[Any], placed: list[int], position: int) -> bytes: ...


WriterOf = Callable[[MessagePlan], MessageWriter]


def field_writer(mp: MessagePlan, f: FieldPlan, message_class: Any, writer_of: WriterOf) -> FieldWriter:
    """How an out-of-line field is written; ``writer_of`` gives the writers of other types."""
    if f.is_map:
        return map_writer(mp, f, writer_of)
    if f.kind == "message":
        child = Child(mp, f, writer_of)
        if not f.repeated:
            return child_writer(child, f, message_class)
        return inlined_writer(child) if f.inlined else children_writer(child)
    if f.kind in ("string", "bytes"):
        return texts_writer() if f.repeated else text_writer(f, message_class)
    return scalars_writer(f)


def text_writer(f: FieldPlan, message_class: Any) -> FieldWriter:
    if not f.explicit:
        return lambda w, message, value: w.text(value) if value else ABSENT
    has = message_class.HasField
    name = f.name
    if not f.default:  # a value that isn't empty is there
        return lambda w, message, value: w.text(value) if value or has(message, name) else ABSENT
    return lambda w, message, value: w.text(value) if has(message, name) else ABSENT


def texts_writer() -> FieldWriter:
    def put(w: Writer, message: Any, values: Any) -> int:
        return w.offsets([w.text(value) for value in values]) if values else ABSENT

    return put


def scalars_writer(f: FieldPlan) -> FieldWriter:
    code = SCALAR_CODE[f.kind]
    return lambda w, message, values: w.scalars(code, values[:]) if values else ABSENT


class Child:
    """The writer of a field's message type, compiled when first needed: types may be recursive."""

    __slots__ = ("_f", "_mp", "_writer", "_writer_of")

    def __init__(self, mp: MessagePlan, f: FieldPlan, writer_of: WriterOf) -> None:
        self._mp = mp
        self._f = f
        self._writer_of = writer_of
        self._writer: MessageWriter | None = None

    @property
    def writer(self) -> MessageWriter:
        if self._writer is None:
            self._writer = self._writer_of(self._mp.child(self._f))
        return self._writer


def child_writer(child: Child, f: FieldPlan, message_class: Any) -> FieldWriter:
    has = message_class.HasField
    name = f.name

    def put(w: Writer, message: Any, _: Any) -> int:
        if not has(message, name):
            return ABSENT
        w.enter()
        position = child.writer.write(w, getattr(message, name))
        w.depth -= 1
        return position

    return put


def children_writer(child: Child) -> FieldWriter:
    def put(w: Writer, message: Any, values: Any) -> int:
        if not values:
            return ABSENT
        write = child.writer.write
        positions: list[int] = []
        w.enter()
        try:
            for value in values:
                positions.append(write(w, value))
        except Refused as refused:
            raise refused.within(f"[{len(positions)}]") from None
        w.depth -= 1
        return w.offsets(positions)

    return put


def inlined_writer(child: Child) -> FieldWriter:
    """Elements that are structs within the array: all their children first, then all structs."""

    def put(w: Writer, message: Any, values: Any) -> int:
        if not values:
            return ABSENT
        writer = child.writer
        limit = writer.mp.limit
        if not limit:
            name = writer.mp.full_name
            raise Refused(f"{name} is a fixed message without fields, so it can't be an element")
        rows: list[tuple[list[Any], list[int]]] = []
        w.enter()
        try:
            for value in values:
                rows.append(writer.gather_fixed(w, value))
        except Refused as refused:
            raise refused.within(f"[{len(rows)}]") from None
        w.depth -= 1
        end = w.nbytes + len(rows) * limit
        structs = [writer.pack_fixed_at(*row, end - i * limit) for i, row in enumerate(rows)]
        return w.push(pack_u32(len(rows)) + b"".join(structs))

    return put


def map_writer(mp: MessagePlan, f: FieldPlan, writer_of: WriterOf) -> FieldWriter:
    """Pairs are structs in the order of their keys; text and messages are written even when empty."""
    entry = mp.child(f)
    key_field, value_field = entry.fields
    text_key = key_field.out_of_line
    far_value = value_field.out_of_line
    child = Child(entry, value_field, writer_of) if value_field.kind == "message" else None
    limit = entry.limit
    pack = struct.Struct("<" + value_code(key_field) + value_code(value_field)).pack

    def put_value(w: Writer, value: Any) -> Any:
        if child is None:
            return w.text(value) if far_value else value
        w.enter()
        position = child.writer.write(w, value)
        w.depth -= 1
        return position

    def put(w: Writer, message: Any, values: Any) -> int:
        if not values:
            return ABSENT
        keys = sorted(values, key=as_bytes) if text_key else sorted(values)
        rows: list[tuple[Any, Any]] = []
        w.enter()  # a pair counts as a message, as in protobuf's parser
        try:
            for key in keys:
                rows.append((w.text(key) if text_key else key, put_value(w, values[key])))
        except Refused as refused:
            raise refused.within(f"[{keys[len(rows)]!r}]") from None
        except UnicodeDecodeError:  # protobuf has such keys, but doesn't look them up
            raise Refused(f"key {keys[len(rows)]!r} is not valid UTF-8") from None
        w.depth -= 1
        at = w.nbytes + len(rows) * limit
        structs = []
        for key, value in rows:
            offsets = (at - key if text_key else 0, at - value if far_value else 0)
            if at > MAX_OFFSET and max(offsets) > MAX_OFFSET:
                raise too_far(max(offsets))
            structs.append(pack(offsets[0] if text_key else key, offsets[1] if far_value else value))
            at -= limit
        return w.push(pack_u32(len(rows)) + b"".join(structs))

    return put


def as_bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text
