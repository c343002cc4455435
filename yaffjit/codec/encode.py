"""Protobuf messages (and dicts) into YaFF bytes.

Each message type is compiled once into a `MessageWriter`: one getter for all its plain values, the
struct formats of its body and, as they occur, the bytes of its headers with their metadata.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from math import copysign
from operator import attrgetter
from typing import Any

from yaffjit.codec.fields import ABSENT, field_writer
from yaffjit.codec.slots import (
    FlatHead,
    SparseHead,
    flat_head,
    reads_zero,
    slot_formats,
    slot_of,
    sparse_head,
)
from yaffjit.codec.writer import Refused, Writer, pack_i32, too_far
from yaffjit.errors import EncodeError
from yaffjit.plan.model import MAX_OFFSET, MessagePlan

LAYOUTS = ("flat", "sparse", "auto", "smallest")
EMPTY_FLAT = b"\x00\x80"
EMPTY_SPARSE = b"\x02\x00"
TABLE_BEFORE_HEADER = pack_i32(-4)
HEADS_KEPT = 1024  # presence patterns whose headers are remembered, for one type


def encode(mp: MessagePlan, message: Any, layout: str = "flat") -> bytes:
    """The YaFF buffer of a protobuf message, of a view, or of a dict of field values.

    ``layout`` is the form of dynamic messages: "flat"; "sparse"; "auto": sparse where that makes the whole
    buffer smaller by more than a tenth; "smallest": sparse where that makes it smaller. Raises EncodeError
    for a value that can't be written and ValueError for another layout.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be one of {', '.join(map(repr, LAYOUTS))}, not {layout!r}")
    writer = message_writer(mp)
    if type(message) is not writer.message_class:
        message = own_message(mp, writer.message_class, message)
    if layout in ("flat", "sparse"):
        return writer.buffer(message, layout == "sparse")
    flat = writer.buffer(message, False)
    sparse = writer.buffer(message, True)
    saved = len(flat) - len(sparse)
    return sparse if (saved > 0 if layout == "smallest" else 10 * saved > len(flat)) else flat


def own_message(mp: MessagePlan, message_class: Any, message: Any) -> Any:
    """``message`` as one of the schema's own class; from another pool by way of its protobuf bytes."""
    from google.protobuf.message import DecodeError as UnreadableError
    from google.protobuf.message import EncodeError as UnwritableError
    from google.protobuf.message import Message

    from yaffjit.view import View

    if isinstance(message, View):
        message = View.to_message(message)
        if type(message) is message_class:
            return message
    if isinstance(message, (bytes, bytearray, memoryview)):
        raise EncodeError(
            f"{mp.full_name}: {type(message).__name__} given: give a message or a dict; "
            "for protobuf bytes, message_class.FromString(...) first"
        )
    if not isinstance(message, Message):
        from yaffjit.codec.from_dict import message_from_dict

        return message_from_dict(mp, message)
    found = type(message).DESCRIPTOR.full_name
    if found != mp.full_name:
        raise EncodeError(f"{mp.full_name} expected, but the message is a {found}")
    try:
        return message_class.FromString(type(message).SerializePartialToString(message))
    except (UnreadableError, UnwritableError) as error:
        raise EncodeError(f"{mp.full_name}: this schema can't read the message: {error}") from None


def message_writer(mp: MessagePlan) -> MessageWriter:
    """The compiled writer of a message type, one for each plan."""
    memo = mp.plan.memo
    key = ("codec.encode", mp.full_name)
    writer = memo.get(key)
    if writer is None:
        writer = memo.setdefault(key, MessageWriter(mp))
    assert isinstance(writer, MessageWriter)
    return writer


class MessageWriter:
    """How messages of one type are written. Fields are known by their index in ``mp.fields``."""

    def __init__(self, mp: MessagePlan) -> None:
        self.mp = mp
        self.message_class: Any = mp.plan.schema.message_class(mp.full_name)
        self.fixed = mp.layout == "fixed"
        self.dynamic = mp.layout == "dynamic"
        self.always_sparse = mp.layout == "sparse" or (self.dynamic and mp.gapped)
        fields = list(enumerate(mp.fields))
        scalars = [(i, f) for i, f in fields if f.is_scalar]
        implicit = [(i, f) for i, f in scalars if not f.explicit]
        explicit = [(i, f) for i, f in scalars if f.explicit]

        # Every implicit scalar of a type with explicit fields is written, whatever its value.
        self.explicit_type = mp.has_explicit
        self.always = sum(1 << i for i, f in implicit) if self.explicit_type else 0
        self.implicit = [(i, 1 << i, f.kind in ("float", "double")) for i, f in implicit]
        self.explicit = [(i, 1 << i, f.name, reads_zero(f), not f.default_bits) for i, f in explicit]
        self.changed = [(i, 1 << i, slot_of(f)) for i, f in explicit if f.default_bits]
        self.rounded = [(i, slot_of(f), f) for i, f in explicit if f.default_bits != f.declared_bits]

        self.children = [
            (i, 1 << i, f.name, field_writer(mp, f, self.message_class, message_writer))
            for i, f in fields
            if f.out_of_line
        ]
        self.messages = [i for i, f in fields if f.kind == "message" and not f.repeated]
        self.read = getter_of([f.name for i, f in fields if i not in self.messages])
        # By the class: a field may have the method's name.
        self.has: Callable[[Any, str], bool] = self.message_class.HasField

        self.formats = slot_formats(mp)
        self.pack_fixed = struct.Struct("<" + "".join(self.formats)).pack
        self.flat_heads: dict[int, FlatHead] = {}
        self.sparse_heads: dict[int, SparseHead] = {}

    def buffer(self, message: Any, sparse: bool) -> bytes:
        """The buffer whose root is ``message``."""
        name = self.mp.full_name
        if self.fixed and not self.mp.limit:
            raise EncodeError(f"{name}: a fixed message without fields can't be the root of a buffer")
        w = Writer(sparse)
        try:
            return w.finish(self.write(w, message))
        except Refused as refused:
            raise EncodeError(refused.sentence(name)) from None

    def write(self, w: Writer, message: Any) -> int:
        """Write a message after its children; its position."""
        if self.fixed:
            values, placed = self.gather_fixed(w, message)
            return w.push(self.pack_fixed_at(values, placed, w.nbytes + self.mp.limit))
        values, mask, placed, equal = self.gather(w, message)
        if self.always_sparse or (w.sparse and self.dynamic):
            return self.write_sparse(w, values, mask, placed)
        for index, bit, slot in self.changed:
            if mask & bit:
                values[index], near = slot(values[index])
                equal = equal or near
        if not mask:
            return w.push(EMPTY_FLAT)
        key = mask << 1 | 1 if equal else mask.bit_length() << 1
        head = self.flat_heads.get(key)
        if head is None:
            head = keep(self.flat_heads, key, flat_head(self.mp, self.formats, key))
        position = w.nbytes + head.nbytes
        self.place(values, placed, position)
        if head.count != len(values):
            del values[head.count :]
        w.push(head.data + head.pack(*values))
        return position

    def write_sparse(self, w: Writer, values: list[Any], mask: int, placed: list[int]) -> int:
        if not mask:
            return w.push(EMPTY_SPARSE)
        head = self.sparse_heads.get(mask)
        if head is None:
            head = keep(self.sparse_heads, mask, sparse_head(self.mp, mask))
        position = w.nbytes + head.nbytes
        self.place(values, placed, position)
        body = head.header + head.pack(*[values[index] for index in head.indexes])
        table_end = w.tables.get(head.table)
        if table_end is None:
            w.tables[head.table] = position + 4
            w.push(head.table + TABLE_BEFORE_HEADER + body)
        else:
            if position - table_end > MAX_OFFSET:
                raise too_far(position - table_end, "its meta table lies too far away")
            w.push(pack_i32(position - table_end) + body)
        return position

    def gather(self, w: Writer, message: Any) -> tuple[list[Any], int, list[int], bool]:
        """What a flat or sparse message holds, once its children are written.

        One value a field (0 where not written, the child's position where out of line), the mask of
        written fields, the indexes of the written children, and whether a written scalar equals a default
        of 0.
        """
        values = self.read(message)
        for index in self.messages:
            values.insert(index, None)
        mask = self.always
        equal = False
        if self.explicit_type:
            for index, _, _ in self.implicit:
                if not values[index]:
                    equal = True
            for index, bit, name, zero, slot_zero in self.explicit:
                if zero and values[index]:
                    mask |= bit
                elif self.has(message, name):
                    mask |= bit
                    equal = equal or (slot_zero and not values[index])
                else:
                    values[index] = 0
        else:
            for index, bit, is_float in self.implicit:
                value = values[index]
                if value or (is_float and copysign(1.0, value) < 0.0):
                    mask |= bit
        written, placed = self.write_children(w, message, values)
        return values, mask | written, placed, equal

    def gather_fixed(self, w: Writer, message: Any) -> tuple[list[Any], list[int]]:
        """The slots of a fixed message, once its children are written, and the indexes of those children."""
        values = self.read(message)
        for index in self.messages:
            values.insert(index, None)
        mask = 0
        for index, bit, name, zero, _ in self.explicit:
            if zero or self.has(message, name):
                mask |= bit
            else:
                values[index] = 0
        for index, slot, f in self.rounded:
            if mask >> index & 1 and slot(values[index])[0] == 0:
                reads = f"would read as absent in a fixed message, which is the default {f.default!r}"
                raise Refused(f"{values[index]!r} {reads}").within(f.name)
        for index, bit, slot in self.changed:
            if mask & bit:
                values[index] = slot(values[index])[0]
        return values, self.write_children(w, message, values)[1]

    def pack_fixed_at(self, values: list[Any], placed: list[int], position: int) -> bytes:
        """The struct of a fixed message that starts at ``position``."""
        self.place(values, placed, position)
        return self.pack_fixed(*values)

    def write_children(self, w: Writer, message: Any, values: list[Any]) -> tuple[int, list[int]]:
        """Write the fields that lie out of line and put their positions into ``values``, 0 if absent.

        The mask and the indexes of those that were written.
        """
        mask = 0
        placed = []
        for index, bit, name, write_field in self.children:
            try:
                position = write_field(w, message, values[index])
            except Refused as refused:
                raise refused.within(name) from None
            if position == ABSENT:
                values[index] = 0
            else:
                mask |= bit
                values[index] = position
                placed.append(index)
        return mask, placed

    def place(self, values: list[Any], placed: list[int], position: int) -> None:
        """Turn the positions of children into offsets from their parent's ``position``."""
        for index in placed:
            values[index] = position - values[index]
        if position > MAX_OFFSET:
            for index in placed:
                if values[index] > MAX_OFFSET:
                    raise too_far(values[index]).within(self.mp.fields[index].name)


def keep(heads: dict[int, Any], key: int, head: Any) -> Any:
    """Remember a head; all are forgotten when they are too many."""
    if len(heads) >= HEADS_KEPT:
        heads.clear()
    heads[key] = head
    return head


def getter_of(names: list[str]) -> Callable[[Any], list[Any]]:
    """A function message -> the values of its attributes ``names``."""
    if not names:
        return lambda message: []
    get = attrgetter(*names)
    if len(names) == 1:
        return lambda message: [get(message)]
    return lambda message: list(get(message))
