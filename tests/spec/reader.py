"""Reads YaFF as a protobuf message, possibly under another schema than that of the writer.

The result is put together as protobuf wire bytes which protobuf then parses. So an unknown number of a
closed enum, several members of one oneof and text that isn't UTF-8 are dealt with by protobuf's own rules.
"""

from __future__ import annotations

import struct

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.internal import encoder, wire_format
from google.protobuf.message import Message

from .layout import FIXED, FLAT, SPARSE, F, Layout, LiveField, SpecError, lay_out, slot_width, xor

SIZES = (0, 1, 4, 8)  # of size codes
# Absolute byte of a field's slot and whether the field is present; None where the message has no slot of it.
Slot = tuple[int, bool] | None


def read(descriptor: Descriptor, data: bytes, slice: str | None = None) -> Message:
    """The message of type ``descriptor`` in the YaFF buffer ``data``."""
    root = u32(data, 0)
    wire = Reader(data, slice).message(descriptor, root)
    return message_factory.GetMessageClass(descriptor).FromString(wire)


def u16(data: bytes, at: int) -> int:
    return struct.unpack_from("<H", data, at)[0]


def u32(data: bytes, at: int) -> int:
    return struct.unpack_from("<I", data, at)[0]


class Reader:
    def __init__(self, data: bytes, slice: str | None) -> None:
        self.data = data
        self.slice = slice

    # --- where the slot of a field is, by layout ---

    def slot(self, layout: Layout, field: LiveField, at: int) -> Slot:
        if layout.kind == FIXED:
            slot_at = at + layout.slot_offset(field.id)
            return slot_at, self.is_set(slot_at, layout.slots[field.id])
        header = u16(self.data, at)
        flat = bool(header & 0x8000)
        if (layout.kind == FLAT and not flat) or (layout.kind == SPARSE and flat):
            name = layout.descriptor.full_name
            raise SpecError(f"{name} at byte {at}: header {header:#06x} of another layout")
        return self.flat_slot(layout, field, at) if flat else self.sparse_slot(field, at)

    def flat_slot(self, layout: Layout, field: LiveField, at: int) -> Slot:
        header = u16(self.data, at)
        explicit, sized, stop = header & 1, header >> 1 & 1, (header & 0x7FFF) >> 2
        if field.id >= stop:
            return None
        bits_per_id = 2 * sized + explicit
        slot_at = at + 2 + layout.slot_offset(field.id)
        for hole in layout.holes_below(field.id):
            if not sized:
                raise SpecError(f"{layout.descriptor.full_name} at byte {at}: no size of id {hole}")
            first = bits_per_id * (hole - 1) + explicit
            slot_at += SIZES[self.bit(at, first) + 2 * self.bit(at, first + 1)]
        if explicit:
            return slot_at, bool(self.bit(at, bits_per_id * (field.id - 1)))
        return slot_at, self.is_set(slot_at, layout.slots[field.id])

    def bit(self, at: int, number: int) -> int:
        """Bits lie before the header and grow towards lower addresses."""
        return self.data[at - 1 - (number >> 3)] >> (number & 7) & 1

    def sparse_slot(self, field: LiveField, at: int) -> Slot:
        if field.id >= u16(self.data, at) >> 2:
            return None
        end = at + struct.unpack_from("<i", self.data, at - 4)[0]
        entry = self.data[end - field.id] if field.id < 32 else u16(self.data, end - 2 * field.id + 31)
        return (at + entry, True) if entry else None

    def is_set(self, slot_at: int, width: int) -> bool:
        return any(self.data[slot_at : slot_at + width])

    # --- messages as wire bytes ---

    def message(self, descriptor: Descriptor, at: int) -> bytes:
        """All scalars by id, then all else by id: of several members of one oneof the last one wins."""
        layout = lay_out(descriptor, self.slice)
        wire = b""
        for field in sorted(layout.live, key=lambda field: (not field.is_scalar, field.id)):
            slot = self.slot(layout, field, at)
            if slot is None:
                continue
            slot_at, present = slot
            if field.is_scalar:
                bits = self.scalar(layout, field, at, slot_at)
                if present if field.explicit else any(bits):
                    wire += scalar_wire(field, bits)
            else:
                offset = u32(self.data, slot_at)
                if offset:
                    wire += self.out_of_line(field, at + offset)
        return wire

    def scalar(self, layout: Layout, field: LiveField, at: int, slot_at: int) -> bytes:
        """The bits of the value."""
        width = layout.slots[field.id]
        slot = self.data[slot_at : slot_at + width]
        sparse = layout.kind != FIXED and not u16(self.data, at) & 0x8000
        return slot if sparse else xor(slot, field.pack(field.default))

    def out_of_line(self, field: LiveField, at: int) -> bytes:
        if field.is_map:
            return self.map(field, at)
        if field.is_array:
            return self.array(field, at)
        if field.is_text:
            return text_wire(field, self.text(at))
        return message_wire(field, self.message(field.descriptor.message_type, at))

    def text(self, at: int) -> bytes:
        return self.data[at + 4 : at + 4 + u32(self.data, at)]

    def elements(self, field: LiveField, at: int) -> list[int]:
        """Where the elements of an array are."""
        count, start = u32(self.data, at), at + 4
        type = field.descriptor.type
        if field.is_text or field.is_message:
            if field.is_message:
                element = lay_out(field.descriptor.message_type, self.slice)
                if element.kind == FIXED:
                    return [start + i * element.limit for i in range(count)]
            return [start + u32(self.data, start + 4 * i) for i in range(count)]
        return [start + i * slot_width(type, False) for i in range(count)]

    def array(self, field: LiveField, at: int) -> bytes:
        wire = b""
        for element_at in self.elements(field, at):
            if field.is_text:
                wire += text_wire(field, self.text(element_at))
            elif field.is_message:
                wire += message_wire(field, self.message(field.descriptor.message_type, element_at))
            else:
                width = slot_width(field.descriptor.type, False)
                wire += scalar_wire(field, self.data[element_at : element_at + width])
        return wire

    def map(self, field: LiveField, at: int) -> bytes:
        """Of equal keys, which a list that became a map may have, the first counts."""
        key = lay_out(field.descriptor.message_type).live[0]
        wire = b""
        seen: set[bytes] = set()
        for element_at in self.elements(field, at):
            if key.is_text:
                offset = u32(self.data, element_at)
                name = self.text(element_at + offset) if offset else b""
            else:
                name = self.data[element_at : element_at + slot_width(key.descriptor.type, False)]
            if name not in seen:
                seen.add(name)
                wire += message_wire(field, self.message(field.descriptor.message_type, element_at))
        return wire


# --- protobuf wire ---


def tag(field: LiveField, wire_type: int) -> bytes:
    return encoder.TagBytes(field.descriptor.number, wire_type)


def varint(number: int) -> bytes:
    number &= 2**64 - 1
    data = b""
    while number > 127:
        data += bytes([number & 127 | 128])
        number >>= 7
    return data + bytes([number])


def scalar_wire(field: LiveField, bits: bytes) -> bytes:
    type = field.descriptor.type
    if type in (F.TYPE_FIXED32, F.TYPE_SFIXED32, F.TYPE_FLOAT):
        return tag(field, wire_format.WIRETYPE_FIXED32) + bits
    if type in (F.TYPE_FIXED64, F.TYPE_SFIXED64, F.TYPE_DOUBLE):
        return tag(field, wire_format.WIRETYPE_FIXED64) + bits
    number = field.unpack(bits)
    if type in (F.TYPE_SINT32, F.TYPE_SINT64):
        number = wire_format.ZigZagEncode(number)
    return tag(field, wire_format.WIRETYPE_VARINT) + varint(int(number))


def text_wire(field: LiveField, data: bytes) -> bytes:
    return tag(field, wire_format.WIRETYPE_LENGTH_DELIMITED) + varint(len(data)) + data


def message_wire(field: LiveField, wire: bytes) -> bytes:
    if field.descriptor.type == F.TYPE_GROUP:
        start, end = wire_format.WIRETYPE_START_GROUP, wire_format.WIRETYPE_END_GROUP
        return tag(field, start) + wire + tag(field, end)
    return text_wire(field, wire)
