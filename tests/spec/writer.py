"""Writes a protobuf message as YaFF: back to front, each new object before those that are there."""

from __future__ import annotations

import math
import struct
from typing import Any

from google.protobuf import message_factory
from google.protobuf.message import Message

from .layout import FIXED, FLAT, FLOATS, Layout, LiveField, SpecError, is_out, lay_out

MAX_OFFSET = 2**31 - 1
SIZE_CODES = {1: 1, 4: 2, 8: 3}


def write(message: Message, layout: str = FLAT, slice: str | None = None) -> bytes:
    """The YaFF bytes of ``message``; ``layout`` ("flat" or "sparse") is that of its dynamic messages."""
    return Writer(layout, slice).write_root(message)


class Writer:
    """One buffer. A position is a distance from the end of the buffer, so it stays as the buffer grows."""

    def __init__(self, dynamic: str, slice: str | None) -> None:
        self.dynamic = dynamic
        self.slice = slice
        self.data = b""
        self.objects: dict[bytes, int] = {}  # texts and scalar arrays, whole -> position
        self.meta_tables: dict[bytes, int] = {}  # table -> position of its end

    def prepend(self, data: bytes) -> int:
        self.data = data + self.data
        if len(self.data) > MAX_OFFSET:
            raise SpecError("more than 2 GiB")
        return len(self.data)

    def write_root(self, message: Message) -> bytes:
        layout = lay_out(message.DESCRIPTOR, self.slice)
        if is_out(message.DESCRIPTOR, self.slice):
            raise SpecError(f"{message.DESCRIPTOR.full_name} is ignored or isn't in the slice")
        if layout.kind == FIXED and layout.limit == 0:
            raise SpecError(f"{message.DESCRIPTOR.full_name}: an empty fixed message as root")
        position = self.write_message(message)
        return struct.pack("<I", 4 + len(self.data) - position) + self.data

    # --- messages ---

    def write_message(self, message: Message) -> int:
        layout = lay_out(message.DESCRIPTOR, self.slice)
        children = self.write_children(layout, message)
        kind = layout.written_as(self.dynamic)
        if kind == FIXED:
            at = len(self.data) + layout.limit
            return self.prepend(fixed_struct(layout, message, children, at))
        fields = [field for field in layout.live if is_written_scalar(layout, field, message)]
        scalars = {field.id: getattr(message, field.name) for field in fields}
        if kind == FLAT:
            return self.write_flat(layout, scalars, children)
        return self.write_sparse(layout, scalars, children)

    def write_flat(self, layout: Layout, scalars: dict[int, Any], children: dict[int, int]) -> int:
        written = scalars.keys() | children.keys()
        if not written:
            return self.prepend(b"\x00\x80")
        last = max(written)
        at = len(self.data) + layout.slot_offset(last + 1) + 2
        slots = b""
        explicit = False
        fields = {field.id: field for field in layout.live}
        for id in range(1, last + 1):
            if id in scalars:
                slot = fields[id].pack_xor(scalars[id])
                explicit = explicit or (layout.has_explicit and needs_explicit(fields[id], scalars[id], slot))
            elif id in children:
                slot = struct.pack("<I", at - children[id])
            else:
                slot = bytes(layout.slots[id])
            slots += slot
        sized = layout.kind != FLAT
        header = 0x8000 | (last + 1) << 2 | sized << 1 | explicit
        position = self.prepend(struct.pack("<H", header) + slots)

        bits: list[int] = []  # per id: presence if explicit, then the size code, low bit first, if sized
        for id in range(1, last + 1):
            if explicit:
                bits.append(id in written)
            if sized:
                code = SIZE_CODES[layout.slots[id]]
                bits += [code & 1, code >> 1]
        metadata = bytearray((len(bits) + 7) // 8)
        for i, bit in enumerate(bits):
            metadata[i >> 3] |= bit << (i & 7)
        self.prepend(bytes(reversed(metadata)))  # byte 0 is next to the header
        return position

    def write_sparse(self, layout: Layout, scalars: dict[int, Any], children: dict[int, int]) -> int:
        written = sorted(scalars.keys() | children.keys())
        if not written:
            return self.prepend(b"\x02\x00")
        last = written[-1]
        fields = {field.id: field for field in layout.live}
        at = len(self.data) + sum(layout.slots[id] for id in written) + 2
        values = b""
        meta: dict[int, int] = {}
        for id in written:
            meta[id] = 2 + len(values)
            values += fields[id].pack(scalars[id]) if id in scalars else struct.pack("<I", at - children[id])
        position = self.prepend(struct.pack("<H", (last + 1) << 2 | 3) + values)

        table = b""  # id 1 is last: ids from 32 take two bytes each
        for id in range(1, last + 1):
            table = struct.pack("<B" if id < 32 else "<H", meta.get(id, 0)) + table
        end = self.meta_tables.get(table)
        if end is not None:
            self.prepend(struct.pack("<i", position - end))
        else:
            self.meta_tables[table] = self.prepend(struct.pack("<i", -4))
            self.prepend(table)
        return position

    # --- what lies outside of the message: texts, arrays, messages; by ascending id ---

    def write_children(self, layout: Layout, message: Message) -> dict[int, int]:
        """Positions by id. Of map entries the key and the value are always written."""
        always = message.DESCRIPTOR.GetOptions().map_entry
        children: dict[int, int] = {}
        for field in layout.live:
            held = getattr(message, field.name)
            if field.is_map:
                if held:
                    children[field.id] = self.write_inlined(map_entries(field, held))
            elif field.is_array:
                if held:
                    children[field.id] = self.write_array(field, held)
            elif field.is_message:
                if always or message.HasField(field.name):
                    children[field.id] = self.write_message(held)
            elif field.is_text and (always or (message.HasField(field.name) if field.explicit else held)):
                children[field.id] = self.write_text(held)
        return children

    def write_text(self, text: str | bytes) -> int:
        data = text.encode() if isinstance(text, str) else text
        return self.write_object(struct.pack("<I", len(data)) + data + b"\x00")

    def write_object(self, data: bytes) -> int:
        """A text or a scalar array: an equal one that's there is used again."""
        if data not in self.objects:
            self.objects[data] = self.prepend(data)
        return self.objects[data]

    def write_array(self, field: LiveField, elements: Any) -> int:
        count = struct.pack("<I", len(elements))
        if field.is_text:
            return self.write_offsets([self.write_text(element) for element in elements])
        if field.is_message:
            if lay_out(field.descriptor.message_type, self.slice).kind == FIXED:
                return self.write_inlined(elements)
            return self.write_offsets([self.write_message(element) for element in elements])
        return self.write_object(count + b"".join(field.pack(element) for element in elements))

    def write_offsets(self, positions: list[int]) -> int:
        start = len(self.data) + 4 * len(positions)
        self.prepend(b"".join(struct.pack("<I", start - position) for position in positions))
        return self.prepend(struct.pack("<I", len(positions)))

    def write_inlined(self, elements: Any) -> int:
        """Fixed messages, one behind the other; their offsets count from the start of each."""
        layout = lay_out(elements[0].DESCRIPTOR, self.slice)
        all_children = [self.write_children(layout, element) for element in elements]
        start = len(self.data) + layout.limit * len(elements)
        structs = [
            fixed_struct(layout, element, children, start - i * layout.limit)
            for i, (element, children) in enumerate(zip(elements, all_children, strict=True))
        ]
        self.prepend(b"".join(structs))
        return self.prepend(struct.pack("<I", len(elements)))


def fixed_struct(layout: Layout, message: Message, children: dict[int, int], at: int) -> bytes:
    """The bytes of a fixed message that starts at position ``at``."""
    fields = {field.id: field for field in layout.live}
    data = b""
    for id in range(1, len(layout.slots) + 1):
        field = fields.get(id)
        if id in children:
            data += struct.pack("<I", at - children[id])
        elif field is not None and field.is_scalar and (not field.explicit or message.HasField(field.name)):
            slot = field.pack_xor(getattr(message, field.name))
            if field.explicit and not any(slot) and declared_differs(field):
                raise SpecError(f"{field.descriptor.full_name}: a value equal to the rounded default")
            data += slot
        else:
            data += bytes(layout.slots[id])
    return data


def declared_differs(field: LiveField) -> bool:
    """YaFF's default of the field isn't protobuf's, and protobuf's is what an absent field reads as."""
    declared = field.descriptor.default_value
    if field.descriptor.type in FLOATS and math.isnan(declared):
        return False
    return field.pack(declared) != field.pack(field.default)


def is_written_scalar(layout: Layout, field: LiveField, message: Message) -> bool:
    if not field.is_scalar:
        return False
    if field.explicit:
        return message.HasField(field.name)
    return layout.has_explicit or any(field.pack(getattr(message, field.name)))


def needs_explicit(field: LiveField, held: Any, slot: bytes) -> bool:
    """A written scalar that the presence rule `slot != 0`, compared as the field's type, can't see."""
    if field.is_default(held):
        return True
    if not field.explicit or field.descriptor.type not in FLOATS:
        return False
    minus_zero = field.pack(-0.0)
    return not any(slot) or slot == minus_zero


def map_entries(field: LiveField, held: Any) -> list[Message]:
    """The pairs of a map as messages, by ascending key: texts as bytes, numbers as numbers."""
    entry_class = message_factory.GetMessageClass(field.descriptor.message_type)
    value_is_message = field.descriptor.message_type.fields_by_name["value"].message_type is not None
    entries = []
    for key in sorted(held, key=lambda key: key.encode() if isinstance(key, str) else key):
        entry = entry_class(key=key)
        if value_is_message:
            entry.value.CopyFrom(held[key])
        else:
            entry.value = held[key]
        entries.append(entry)
    return entries
