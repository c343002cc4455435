"""YaFF bytes into protobuf messages.

A buffer is turned into protobuf wire bytes, scalars first and the rest behind them as the reference reads
them, and parsed by protobuf at once. So protobuf's own parser decides what an unknown number of a closed
enum is, which of two members of a oneof stays, and what text is valid; and bits of floats stay as they are.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
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
from yaffjit.codec.verify import verify
from yaffjit.errors import DecodeError
from yaffjit.plan.model import FieldPlan, MessagePlan

TYPE_GROUP = 10  # google.protobuf's FieldDescriptor.TYPE_GROUP
VARINT, FIXED64, LENGTH, START, END, FIXED32 = range(6)  # wire types
SIGN64 = 0xFFFFFFFF00000000  # above a negative number of 32 bits

# bits of a value, or the position of an object, -> wire bytes with their tag
WireOfBits = Callable[[int], bytes]
WireOfObject = Callable[[Buffer, int], bytes]


def decode(mp: MessagePlan, buf: Any) -> Any:
    """The protobuf message of a YaFF buffer (bytes or whatever exports them), of the schema's own class.

    Raises VerifyError where the buffer isn't well-formed, DecodeError where protobuf refuses what it holds.
    """
    data = buf if type(buf) is bytes else memoryview(buf).tobytes()
    verify(mp, data)
    return decode_at(mp, data, read_u32(data, 0)[0])


def decode_at(mp: MessagePlan, data: Buffer, at: int) -> Any:
    """The protobuf message at byte ``at`` of a buffer that is trusted."""
    from google.protobuf.message import DecodeError as ProtobufError

    reader = message_reader(mp)
    try:
        return reader.message_class.FromString(reader.wire(data, at))
    except ProtobufError as error:
        raise DecodeError(f"{mp.full_name}: {error}") from None


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
    __slots__ = ("entry", "holes", "id", "offset", "wire")

    def __init__(self, mp: MessagePlan, f: FieldPlan, is_group: bool) -> None:
        self.id = f.id
        self.entry = sparse_entry(f)
        self.offset = f.offset
        self.holes = hole_widths(f.holes) if f.holes else None
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

    def wire(self, data: Buffer, at: int) -> bytes:
        """Protobuf's bytes of the message at ``at``."""
        parts: list[bytes] = []
        if self.fixed:
            self.slots(data, at, at, 0, parts)
            return b"".join(parts)
        header = data[at] | data[at + 1] << 8
        if header & FLAT:
            self.slots(data, at, at + 2, header, parts)
        elif header > 7:
            self.entries(data, at, header >> 2, parts)
        return b"".join(parts)

    def slots(self, data: Buffer, at: int, first: int, header: int, parts: list[bytes]) -> None:
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
        for o in self.objects:
            if o.id >= stop:
                break
            pos = first + o.offset
            if o.holes is not None and header:
                pos += o.holes(data, at, header)
            offset = read_u32(data, pos)[0]
            if offset:
                parts.append(o.wire(data, at + offset))

    def entries(self, data: Buffer, at: int, stop: int, parts: list[bytes]) -> None:
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
        for o in self.objects:
            if o.id >= stop:
                break
            value = data[end - o.entry] if o.id < 32 else read_u16(data, end - o.entry)[0]
            if value:
                parts.append(o.wire(data, at + read_u32(data, at + value)[0]))


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

    def wire(data: Buffer, pos: int) -> bytes:
        count = read_u32(data, pos)[0]
        return text_tag + varint(count) + data[pos + 4 : pos + 4 + count]

    return wire


def message_wire(mp: MessagePlan, f: FieldPlan, is_group: bool) -> WireOfObject:
    reader: MessageReader | None = None
    begin = tag(f, START if is_group else LENGTH)
    end = tag(f, END)

    def wire(data: Buffer, at: int) -> bytes:
        nonlocal reader
        if reader is None:  # when it's first met, since types may be recursive
            reader = message_reader(mp.child(f))
        held = reader.wire(data, at)
        return begin + held + end if is_group else begin + varint(len(held)) + held

    return wire


def array_wire(element: WireOfObject, width: int, inlined: bool) -> WireOfObject:
    def wire(data: Buffer, pos: int) -> bytes:
        first = pos + 4
        count = read_u32(data, pos)[0]
        if inlined:
            return b"".join([element(data, at) for at in range(first, first + count * width, width)])
        offsets = struct.unpack_from(f"<{count}I", data, first)
        return b"".join([element(data, first + offset) for offset in offsets])

    return wire


def scalars_wire(f: FieldPlan) -> WireOfObject:
    packed_tag = tag(f, LENGTH)
    width = f.element_width
    kind = f.kind
    raw = is_raw(kind)
    number = number_of_bits(kind)
    code = "I" if width == 4 else "Q"

    def wire(data: Buffer, pos: int) -> bytes:
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
    """Only the first pair of a key counts, as in the reference; protobuf's parser would take the last."""
    entry = mp.child(f)
    pair = message_wire(mp, f, False)
    key = entry.fields[0]
    width = f.element_width

    def wire(data: Buffer, pos: int) -> bytes:
        first = pos + 4
        pairs: dict[bytes, bytes] = {}
        for at in range(first, first + read_u32(data, pos)[0] * width, width):
            slot = at + key.offset
            name = bytes(data[slot : slot + key.width])
            if key.out_of_line:
                offset = read_u32(name)[0]
                text = at + offset
                name = bytes(data[text + 4 : text + 4 + read_u32(data, text)[0]]) if offset else b""
            elif key.kind == "bool":
                name = name.translate(NONZERO)
            if name not in pairs:
                pairs[name] = pair(data, at)
        return b"".join(pairs.values())

    return wire
