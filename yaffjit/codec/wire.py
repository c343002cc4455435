"""YaFF messages as protobuf's wire bytes: scalars first, the rest behind them, as the reference reads them.

Bits of floats stay as they are. Nothing is checked: the bytes are verified before, or trusted.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any

from yaffjit.codec.locate import (
    EXPLICIT,
    FLAT,
    SIZED,
    Buffer,
    hole_widths,
    metadata_bits,
    read_i32,
    read_u16,
    read_u32,
)
from yaffjit.plan.model import FieldPlan, MessagePlan

TYPE_GROUP = 10  # google.protobuf's FieldDescriptor.TYPE_GROUP
VARINT, FIXED64, LENGTH, START, END, FIXED32 = range(6)  # wire types
SIGN64 = 0xFFFFFFFF00000000  # above a negative number of 32 bits

# bits of a value -> wire bytes with their tag
WireOfBits = Callable[[int], bytes]
# (buffer, position of an object, most bytes it may take) -> wire bytes with their tag
WireOfObject = Callable[[Buffer, int, int], bytes]


class TooLong(Exception):
    """The wire bytes are more than the caller wants."""


def joined(parts: Iterable[bytes], most: int) -> bytes:
    """All parts, up to ``most`` bytes."""
    kept = []
    for part in parts:
        most -= len(part)
        if most < 0:
            raise TooLong
        kept.append(part)
    return b"".join(kept)


def message_reader(mp: MessagePlan) -> MessageReader:
    """The compiled reader of a message type, one for each plan."""
    memo = mp.plan.memo
    key = ("codec.decode", mp.full_name)
    reader = memo.get(key)
    if reader is None:
        reader = memo.setdefault(key, MessageReader(mp))
    assert isinstance(reader, MessageReader)
    return reader


class ScalarReader:
    __slots__ = ("default", "entry", "explicit", "holes", "id", "offset", "shift", "width", "wire")

    def __init__(self, f: FieldPlan) -> None:
        self.id = f.id
        self.entry = sparse_entry(f)
        self.offset = f.offset
        self.holes = hole_widths(f.holes) if f.holes else None
        self.width = f.width
        self.default = f.default_bits
        self.explicit = f.explicit
        self.wire = scalar_wire(f)


class ObjectReader:
    __slots__ = ("entry", "holes", "id", "is_group", "offset", "wire")

    def __init__(self, mp: MessagePlan, f: FieldPlan, is_group: bool) -> None:
        self.id = f.id
        self.entry = sparse_entry(f)
        self.offset = f.offset
        self.holes = hole_widths(f.holes) if f.holes else None
        self.is_group = is_group
        self.wire = object_wire(mp, f, is_group)


def sparse_entry(f: FieldPlan) -> int:
    """Where the entry of a field is in a meta table, from its end."""
    return f.id if f.id < 32 else 2 * f.id - 31


class MessageReader:
    """How messages of one type are read: scalars by id and then the rest by id, as the reference does."""

    def __init__(self, mp: MessagePlan) -> None:
        descriptor: Any = mp.plan.schema.pool.FindMessageTypeByName(mp.full_name)
        groups = {f.number for f in descriptor.fields if f.type == TYPE_GROUP}
        self.mp = mp
        self.message_class: Any = None if mp.is_map_entry else mp.plan.schema.message_class(mp.full_name)
        self.fixed = mp.layout == "fixed"
        self.scalars = [ScalarReader(f) for f in mp.fields if f.is_scalar]
        self.objects = [ObjectReader(mp, f, f.number in groups) for f in mp.fields if f.out_of_line]

    def wire(self, data: Buffer, at: int, most: int) -> bytes:
        """Protobuf's bytes of the message at ``at``; raises TooLong where it has over ``most`` bytes."""
        return self.read(data, at, self.objects, most)

    def wire_of_scalars(self, data: Buffer, at: int) -> bytes:
        """Protobuf's bytes of the singular scalars of the message at ``at``."""
        return self.read(data, at, (), 0)

    def read(self, data: Buffer, at: int, objects: Sequence[ObjectReader], most: int) -> bytes:
        parts: list[bytes] = []
        if self.fixed:
            self.slots(data, at, at, 0, parts, objects, most)
            return b"".join(parts)
        header = data[at] | data[at + 1] << 8
        if header & FLAT:
            self.slots(data, at, at + 2, header, parts, objects, most)
        elif header > 7:
            self.entries(data, at, header >> 2, parts, objects, most)
        return b"".join(parts)

    def slots(
        self,
        data: Buffer,
        at: int,
        first: int,
        header: int,
        parts: list[bytes],
        objects: Sequence[ObjectReader],
        most: int,
    ) -> None:
        """Fields of a fixed or flat message whose first slot is at ``first``; ``header`` is 0 if fixed."""
        stop = (header & 0x7FFF) >> 2 if header else 1 << 16
        stride = presence = 0
        if header & EXPLICIT:
            stride = 3 if header & SIZED else 1
            presence = metadata_bits(data, at, stride * (stop - 1))
        for f in self.scalars:
            if f.id >= stop:
                break
            pos = first + f.offset
            if f.holes is not None and header:
                pos += f.holes(data, at, header)
            slot = int.from_bytes(data[pos : pos + f.width], "little")
            if not f.explicit:
                present = slot ^ f.default
            elif stride:
                present = presence >> stride * (f.id - 1) & 1
            else:
                present = slot
            if present:
                parts.append(f.wire(slot ^ f.default))
        for o in objects:
            if o.id >= stop:
                break
            pos = first + o.offset
            if o.holes is not None and header:
                pos += o.holes(data, at, header)
            offset = read_u32(data, pos)[0]
            if offset:
                part = o.wire(data, at + offset, most)
                most -= len(part)
                if most < 0:
                    raise TooLong
                parts.append(part)

    def entries(
        self,
        data: Buffer,
        at: int,
        stop: int,
        parts: list[bytes],
        objects: Sequence[ObjectReader],
        most: int,
    ) -> None:
        """Fields of a sparse message."""
        end = at + read_i32(data, at - 4)[0]
        for f in self.scalars:
            if f.id >= stop:
                break
            value = data[end - f.entry] if f.id < 32 else read_u16(data, end - f.entry)[0]
            if value:
                bits = int.from_bytes(data[at + value : at + value + f.width], "little")
                if bits or f.explicit:
                    parts.append(f.wire(bits))
        for o in objects:
            if o.id >= stop:
                break
            value = data[end - o.entry] if o.id < 32 else read_u16(data, end - o.entry)[0]
            if value:
                part = o.wire(data, at + read_u32(data, at + value)[0], most)
                most -= len(part)
                if most < 0:
                    raise TooLong
                parts.append(part)


# --- protobuf wire ---


def varint(number: int) -> bytes:
    if number < 0x80:
        return SMALL[number]
    if number < 0x4000:
        return bytes((number & 127 | 128, number >> 7))
    if number < 0x200000:
        return bytes((number & 127 | 128, number >> 7 & 127 | 128, number >> 14))
    groups = bytearray()
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    groups.append(number)
    return bytes(groups)


SMALL = [bytes([number]) for number in range(128)]
NONZERO = bytes([0] + 255 * [1])  # any bool byte but 0 is true


def tag(f: FieldPlan, wire_type: int) -> bytes:
    return varint(f.number << 3 | wire_type)


def number_of_bits(kind: str) -> Callable[[int], int]:
    """A function bits as stored -> the number that protobuf writes as a varint."""
    if kind in ("int32", "enum"):
        return lambda bits: bits | SIGN64 if bits >> 31 else bits
    if kind == "sint32":
        return lambda bits: (bits << 1 ^ -(bits >> 31)) & 0xFFFFFFFF
    if kind == "sint64":
        return lambda bits: (bits << 1 ^ -(bits >> 63)) & 0xFFFFFFFFFFFFFFFF
    if kind == "bool":
        return lambda bits: int(bits != 0)
    return lambda bits: bits


def is_raw(kind: str) -> bool:
    """protobuf writes the bytes as they are stored."""
    return kind in ("fixed32", "sfixed32", "float", "fixed64", "sfixed64", "double")


def scalar_wire(f: FieldPlan) -> WireOfBits:
    if is_raw(f.kind):
        raw_tag = tag(f, FIXED32 if f.width == 4 else FIXED64)
        width = f.width
        return lambda bits: raw_tag + bits.to_bytes(width, "little")
    number = number_of_bits(f.kind)
    varint_tag = tag(f, VARINT)
    return lambda bits: varint_tag + varint(number(bits))


def object_wire(mp: MessagePlan, f: FieldPlan, is_group: bool) -> WireOfObject:
    if f.is_map:
        return map_wire(mp, f)
    if f.kind == "message":
        message = message_wire(mp, f, is_group)
        return array_wire(message, f.element_width, f.inlined) if f.repeated else message
    if f.kind in ("string", "bytes"):
        text = text_wire(f)
        return array_wire(text, f.element_width, False) if f.repeated else text
    return scalars_wire(f)


def text_wire(f: FieldPlan) -> WireOfObject:
    text_tag = tag(f, LENGTH)

    def wire(data: Buffer, pos: int, most: int) -> bytes:
        count = read_u32(data, pos)[0]
        return text_tag + varint(count) + data[pos + 4 : pos + 4 + count]

    return wire


def message_wire(mp: MessagePlan, f: FieldPlan, is_group: bool) -> WireOfObject:
    reader: MessageReader | None = None
    begin = tag(f, START if is_group else LENGTH)
    end = tag(f, END)

    def wire(data: Buffer, at: int, most: int) -> bytes:
        nonlocal reader
        if reader is None:  # when it's first met, since types may be recursive
            reader = message_reader(mp.child(f))
        held = reader.wire(data, at, most)
        return begin + held + end if is_group else begin + varint(len(held)) + held

    return wire


def element_positions(data: Buffer, pos: int, width: int, inlined: bool) -> Iterable[int]:
    """Where the texts or messages of the array at ``pos`` are."""
    first = pos + 4
    count = read_u32(data, pos)[0]
    if inlined:
        return range(first, first + count * width, width)
    return [first + offset for offset in struct.unpack_from(f"<{count}I", data, first)]


def array_wire(element: WireOfObject, width: int, inlined: bool) -> WireOfObject:
    def wire(data: Buffer, pos: int, most: int) -> bytes:
        positions = element_positions(data, pos, width, inlined)
        return joined(map(element, repeat(data), positions, repeat(most)), most)

    return wire


def scalars_wire(f: FieldPlan) -> WireOfObject:
    packed_tag = tag(f, LENGTH)
    width = f.element_width
    kind = f.kind
    raw = is_raw(kind)
    number = number_of_bits(kind)
    code = "I" if width == 4 else "Q"

    def wire(data: Buffer, pos: int, most: int) -> bytes:
        count = read_u32(data, pos)[0]
        first = pos + 4
        held = data[first : first + count * width]
        if kind == "bool":
            held = bytes(held).translate(NONZERO)
        elif not raw:
            held = b"".join([varint(number(bits)) for bits in struct.unpack(f"<{count}{code}", held)])
        return packed_tag + varint(len(held)) + held

    return wire


def map_wire(mp: MessagePlan, f: FieldPlan) -> WireOfObject:
    entry = mp.child(f)
    pair = message_wire(mp, f, False)

    def wire(data: Buffer, pos: int, most: int) -> bytes:
        return joined(map(pair, repeat(data), pair_positions(entry, data, pos), repeat(most)), most)

    return wire


def pair_positions(entry: MessagePlan, data: Buffer, pos: int) -> Iterable[int]:
    """Where the pairs of the map at ``pos`` are.

    Only the first pair of a key counts, as in the reference; protobuf's parser would take the last.
    """
    key = entry.fields[0]
    width = entry.limit
    first = pos + 4
    pairs: dict[bytes, int] = {}
    for at in range(first, first + read_u32(data, pos)[0] * width, width):
        slot = at + key.offset
        name = bytes(data[slot : slot + key.width])
        if key.out_of_line:
            offset = read_u32(name)[0]
            text = at + offset
            name = bytes(data[text + 4 : text + 4 + read_u32(data, text)[0]]) if offset else b""
        elif key.kind == "bool":
            name = name.translate(NONZERO)
        pairs.setdefault(name, at)
    return pairs.values()
