"""Protobuf messages (and dicts) into YaFF bytes.

Each message type is compiled once into a `MessageWriter`: one getter for all its plain values, the
struct formats of its body and, as they occur, the bytes of its headers with their metadata.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from math import copysign
from operator import attrgetter
from typing import Any, Literal

from yaffjit.codec.writer import MAX_DEPTH, Refused, Writer, check_offset, pack_i32, pack_u32
from yaffjit.errors import EncodeError
from yaffjit.plan.model import MAX_OFFSET, OFFSET_WIDTH, SCALAR_CODE, FieldPlan, MessagePlan

Layout = Literal["flat", "sparse", "auto"]
LAYOUTS = ("flat", "sparse", "auto")

ABSENT = -1
HEADS_KEPT = 1024  # presence patterns whose headers are remembered, for one type
UNSIGNED_CODE = {1: "B", 4: "I", 8: "Q"}
SIZE_CODE = {0: 0, 1: 1, 4: 2, 8: 3}

# (writer, message, value of the field) -> position of the field's object, or ABSENT
Put = Callable[[Writer, Any, Any], int]
# positions of out-of-line values still in place of their offsets
Gathered = tuple[list[Any], int, list[int], bool]


def encode(mp: MessagePlan, message: Any, layout: Layout = "flat") -> bytes:
    """Bytes of a protobuf message, or of a dict of its fields.

    ``layout`` is the form of dynamic messages: "flat", "sparse", or "auto": sparse where that makes the
    whole buffer smaller by more than a tenth. Raises EncodeError for a value that can't be written and
    ValueError for another layout.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be one of {', '.join(map(repr, LAYOUTS))}, not {layout!r}")
    writer = message_writer(mp)
    if type(message) is not writer.message_class:
        message = own_message(mp, writer.message_class, message)
    if layout != "auto":
        return writer.buffer(message, layout == "sparse")
    flat = writer.buffer(message, False)
    sparse = writer.buffer(message, True)
    return sparse if 10 * (len(flat) - len(sparse)) > len(flat) else flat


def own_message(mp: MessagePlan, message_class: Any, message: Any) -> Any:
    """``message`` as one of the schema's own class; from another pool by way of its protobuf bytes."""
    from google.protobuf.message import DecodeError as ProtobufError
    from google.protobuf.message import Message

    if not isinstance(message, Message):
        from yaffjit.codec.from_dict import message_from_dict

        return message_from_dict(mp, message)
    found = message.DESCRIPTOR.full_name
    if found != mp.full_name:
        raise EncodeError(f"{mp.full_name} expected, but the message is a {found}")
    try:
        return message_class.FromString(message.SerializePartialToString())
    except ProtobufError as error:
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

        # Presence: every implicit scalar of a type with explicit fields is written, whatever its value.
        self.explicit_type = mp.has_explicit
        implicit = [(i, f) for i, f in scalars if not f.explicit]
        self.always = sum(1 << i for i, f in implicit) if self.explicit_type else 0
        self.implicit = [(i, 1 << i, f.kind in ("float", "double")) for i, f in implicit]
        self.explicit = [(i, 1 << i, f.name, reads_zero(f), not f.default_bits) for i, f in scalars if f.explicit]
        self.changed = [(i, 1 << i, slot_of(f), f) for i, f in scalars if f.default_bits]
        if self.fixed:
            self.refused = [(i, f) for i, f in scalars if f.explicit and f.default_bits != f.declared_bits]

        self.children = [(i, 1 << i, field_writer(mp, f, self.message_class)) for i, f in fields if f.out_of_line]
        self.messages = [i for i, f in fields if f.kind == "message" and not f.repeated]
        self.read = reader([f.name for i, f in fields if i not in self.messages])
        self.has: Callable[[Any, str], bool] = self.message_class.HasField

        codes = [
            UNSIGNED_CODE[f.width] if f.out_of_line or f.default_bits else SCALAR_CODE[f.kind] for f in mp.fields
        ]
        self.flat_format = body_format(mp, codes)
        self.sparse_codes = ["I" if f.out_of_line else SCALAR_CODE[f.kind] for f in mp.fields]
        self.heads: dict[int, tuple[bytes, Callable[..., bytes], int, int]] = {}
        self.sparse_heads: dict[int, tuple[bytes, bytes, Callable[..., bytes], list[int], int]] = {}
        self.pack_fixed = struct.Struct("<" + "".join(self.flat_format)).pack

    def buffer(self, message: Any, sparse: bool) -> bytes:
        """The buffer whose root is ``message``."""
        if self.fixed and not self.mp.limit:
            raise EncodeError(f"{self.mp.full_name}: a fixed message without fields can't be the root of a buffer")
        w = Writer(sparse)
        try:
            return w.finish(self.write(w, message))
        except Refused as refused:
            where = self.mp.full_name + (f", field {refused.path}" if refused.parts else "")
            raise EncodeError(f"{where}: {refused.reason}") from None

    def write(self, w: Writer, message: Any) -> int:
        """Write a message after its children; its position."""
        if self.fixed:
            values, placed = self.gather_fixed(w, message)
            position = w.nbytes + self.mp.limit
            return w.push(self.pack_fixed_at(values, placed, position))
        values, mask, placed, equal = self.gather(w, message)
        if self.always_sparse or (w.sparse and self.dynamic):
            return self.write_sparse(w, values, mask, placed)
        for index, bit, slot, _ in self.changed:
            if mask & bit:
                values[index], near = slot(values[index])
                equal = equal or near
        if not mask:
            return w.push(b"\x00\x80")
        key = mask << 1 | 1 if equal else mask.bit_length() << 1
        head, pack, count, nbytes = self.heads.get(key) or self.flat_head(key)
        position = w.nbytes + nbytes
        for index in placed:
            values[index] = position - values[index]
        if position > MAX_OFFSET:
            check_offset(max((values[index] for index in placed), default=0))
        if count != len(values):
            del values[count:]
        w.push(head + pack(*values))
        return position

    def write_sparse(self, w: Writer, values: list[Any], mask: int, placed: list[int]) -> int:
        if not mask:
            return w.push(b"\x02\x00")
        header, table, pack, indexes, nbytes = self.sparse_heads.get(mask) or self.sparse_head(mask)
        position = w.nbytes + nbytes
        for index in placed:
            values[index] = position - values[index]
        if position > MAX_OFFSET:
            check_offset(max((values[index] for index in placed), default=0))
        body = pack(*[values[index] for index in indexes])
        table_end = w.tables.get(table)
        if table_end is None:
            table_end = w.tables[table] = position + 4
            w.push(table + pack_i32(-4) + header + body)
        else:
            check_offset(position - table_end)
            w.push(pack_i32(position - table_end) + header + body)
        return position

    def gather(self, w: Writer, message: Any) -> Gathered:
        """The values of a flat or sparse message, once its children are written.

        One value a field (0 where not written, the child's position where out of line), the mask of
        written fields, the indexes of the written children, and whether a written scalar is 0 = its default.
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
        placed = []
        for index, bit, put in self.children:
            position = put(w, message, values[index])
            if position == ABSENT:
                values[index] = 0
            else:
                mask |= bit
                values[index] = position
                placed.append(index)
        return values, mask, placed, equal

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
        for index, f in self.refused:
            if mask >> index & 1 and slot_of(f)(values[index])[0] == 0:
                reason = (
                    f"{values[index]!r} can't be told from an absent value in a fixed message and would read "
                    f"as the default {f.default!r}"
                )
                raise Refused(reason).within(f.name)
        for index, bit, slot, _ in self.changed:
            if mask & bit:
                values[index] = slot(values[index])[0]
        placed = []
        for index, _, put in self.children:
            position = put(w, message, values[index])
            if position == ABSENT:
                values[index] = 0
            else:
                values[index] = position
                placed.append(index)
        return values, placed

    def pack_fixed_at(self, values: list[Any], placed: list[int], position: int) -> bytes:
        """The struct of a fixed message that starts at ``position``."""
        for index in placed:
            values[index] = position - values[index]
            if position > MAX_OFFSET:
                check_offset(values[index])
        return self.pack_fixed(*values)

    def flat_head(self, key: int) -> tuple[bytes, Callable[..., bytes], int, int]:
        """Metadata and header, body packer, count of its values, bytes of header and body."""
        explicit = key & 1
        mask = key >> 1
        count = mask.bit_length() if explicit else mask
        fields = self.mp.fields[:count]
        last = fields[-1]
        present = {f.id for i, f in enumerate(fields) if mask >> i & 1}
        sized = int(self.dynamic)
        stride = 2 * sized + explicit
        bits = 0
        for id, width in enumerate(self.mp.widths[: last.id], 1):
            group = SIZE_CODE[width] << explicit if sized else 0
            if explicit and id in present:
                group |= 1
            bits |= group << stride * (id - 1)
        header = 0x8000 | (last.id + 1) << 2 | sized << 1 | explicit
        metadata = bits.to_bytes((last.id * stride + 7) >> 3, "big")
        nbytes = 2 + last.offset + last.width
        pack = struct.Struct("<" + "".join(self.flat_format[:count])).pack
        head = metadata + header.to_bytes(2, "little"), pack, count, nbytes
        if len(self.heads) >= HEADS_KEPT:
            self.heads.clear()
        self.heads[key] = head
        return head

    def sparse_head(self, mask: int) -> tuple[bytes, bytes, Callable[..., bytes], list[int], int]:
        """Header, meta table, value packer, indexes of its values, bytes of header and values."""
        indexes = [i for i in range(mask.bit_length()) if mask >> i & 1]
        last = self.mp.fields[indexes[-1]].id
        table = bytearray(last + max(0, last - 31))
        nbytes = 2
        for index in indexes:
            f = self.mp.fields[index]
            if f.id < 32:
                table[len(table) - f.id] = nbytes
            else:
                struct.pack_into("<H", table, len(table) - 2 * f.id + 31, nbytes)
            nbytes += f.width
        header = ((last + 1) << 2 | 3).to_bytes(2, "little")
        pack = struct.Struct("<" + "".join(self.sparse_codes[i] for i in indexes)).pack
        head = header, bytes(table), pack, indexes, nbytes
        if len(self.sparse_heads) >= HEADS_KEPT:
            self.sparse_heads.clear()
        self.sparse_heads[mask] = head
        return head


def reads_zero(f: FieldPlan) -> bool:
    """An absent scalar reads as 0, and so does its slot."""
    return f.default_bits == 0 and f.declared_bits == 0


def reader(names: list[str]) -> Callable[[Any], list[Any]]:
    """A function message -> the values of ``names``."""
    if not names:
        return lambda message: []
    get = attrgetter(*names)
    if len(names) == 1:
        return lambda message: [get(message)]
    return lambda message: list(get(message))


def body_format(mp: MessagePlan, codes: list[str]) -> list[str]:
    """For each live field its struct characters, those of the dead slots before it included."""
    formats = []
    end = 0
    for f, code in zip(mp.fields, codes):
        gap = f.offset - end
        formats.append((f"{gap}x" if gap else "") + code)
        end = f.offset + f.width
    if mp.layout == "fixed" and mp.limit > end:
        formats.append(f"{mp.limit - end}x")
    return formats


def slot_of(f: FieldPlan) -> Callable[[Any], tuple[int, bool]]:
    """A function value -> slot bits (XOR with the default), and whether the explicit bit is needed to see it."""
    width = f.width
    default = f.default_bits
    if f.kind not in ("float", "double"):
        low = (1 << 8 * width) - 1

        def slot(value: Any) -> tuple[int, bool]:
            bits = int(value) & low ^ default
            return bits, bits == 0

        return slot

    pack = struct.Struct("<" + SCALAR_CODE[f.kind]).pack
    (number,) = struct.unpack("<" + SCALAR_CODE[f.kind], default.to_bytes(width, "little"))
    epsilon = 2.0**-23 if width == 4 else 2.0**-52
    sign = 1 << 8 * width - 1

    def float_slot(value: float) -> tuple[int, bool]:
        bits = int.from_bytes(pack(value), "little") ^ default
        # The reference's comparison, which calls neighbours equal; and ours, of bits: it would read 0 or -0.0 as absent.
        near = abs(value - number) <= min(abs(value), abs(number)) * epsilon
        return bits, near or bits in (0, sign)

    return float_slot


def field_writer(mp: MessagePlan, f: FieldPlan, message_class: Any) -> Put:
    """How an out-of-line field is written."""
    if f.is_map:
        return map_writer(mp, f)
    if f.kind == "message":
        if not f.repeated:
            return child_writer(mp, f, message_class)
        return inlined_writer(mp, f) if f.inlined else children_writer(mp, f)
    if f.kind in ("string", "bytes"):
        return texts_writer() if f.repeated else text_writer(f, message_class)
    return scalars_writer(f)


def text_writer(f: FieldPlan, message_class: Any) -> Put:
    if not f.explicit:
        return lambda w, message, value: w.text(value) if value else ABSENT
    has = message_class.HasField
    name = f.name
    return lambda w, message, value: w.text(value) if has(message, name) else ABSENT


def texts_writer() -> Put:
    def put(w: Writer, message: Any, values: Any) -> int:
        return w.offsets([w.text(value) for value in values]) if values else ABSENT

    return put


def scalars_writer(f: FieldPlan) -> Put:
    code = SCALAR_CODE[f.kind]
    return lambda w, message, values: w.scalars(code, values[:]) if values else ABSENT


class Child:
    """The writer of a field's message type, compiled when the first one is written: types may be recursive."""

    __slots__ = ("_writer", "f", "mp")

    def __init__(self, mp: MessagePlan, f: FieldPlan) -> None:
        self.mp = mp
        self.f = f
        self._writer: MessageWriter | None = None

    @property
    def writer(self) -> MessageWriter:
        if self._writer is None:
            self._writer = message_writer(self.mp.child(self.f))
        return self._writer


def enter(w: Writer) -> None:
    w.depth += 1
    if w.depth > MAX_DEPTH:
        raise Refused(f"messages nested deeper than {MAX_DEPTH}")


def child_writer(mp: MessagePlan, f: FieldPlan, message_class: Any) -> Put:
    child = Child(mp, f)
    has = message_class.HasField
    name = f.name

    def put(w: Writer, message: Any, _: Any) -> int:
        if not has(message, name):
            return ABSENT
        try:
            enter(w)
            position = child.writer.write(w, getattr(message, name))
        except Refused as refused:
            raise refused.within(name) from None
        w.depth -= 1
        return position

    return put


def children_writer(mp: MessagePlan, f: FieldPlan) -> Put:
    child = Child(mp, f)
    name = f.name

    def put(w: Writer, message: Any, values: Any) -> int:
        if not values:
            return ABSENT
        write = child.writer.write
        positions: list[int] = []
        try:
            enter(w)
            for value in values:
                positions.append(write(w, value))
        except Refused as refused:
            raise refused.within(f"[{len(positions)}]").within(name) from None
        w.depth -= 1
        return w.offsets(positions)

    return put


def inlined_writer(mp: MessagePlan, f: FieldPlan) -> Put:
    child = Child(mp, f)
    name = f.name

    def put(w: Writer, message: Any, values: Any) -> int:
        if not values:
            return ABSENT
        writer = child.writer
        limit = writer.mp.limit
        rows: list[tuple[list[Any], list[int]]] = []
        try:
            if not limit:
                raise Refused(f"{writer.mp.full_name} is a fixed message without fields, so it can't be an element")
            enter(w)
            for value in values:
                rows.append(writer.gather_fixed(w, value))
        except Refused as refused:
            raise refused.within(f"[{len(rows)}]").within(name) from None
        w.depth -= 1
        end = w.nbytes + len(rows) * limit
        structs = [writer.pack_fixed_at(*row, end - i * limit) for i, row in enumerate(rows)]
        return w.push(pack_u32(len(rows)) + b"".join(structs))

    return put


def map_writer(mp: MessagePlan, f: FieldPlan) -> Put:
    entry = mp.child(f)
    key_field, value_field = entry.fields
    text_key = key_field.kind == "string"
    text_value = value_field.kind in ("string", "bytes")
    child = Child(entry, value_field) if value_field.kind == "message" else None
    value_out_of_line = value_field.out_of_line
    name = f.name
    limit = entry.limit
    pack = struct.Struct("<" + "".join("I" if e.out_of_line else SCALAR_CODE[e.kind] for e in entry.fields)).pack

    def put_value(w: Writer, value: Any) -> Any:
        if text_value:
            return w.text(value)
        return value if child is None else child.writer.write(w, value)

    def put(w: Writer, message: Any, values: Any) -> int:
        if not values:
            return ABSENT
        rows: list[tuple[Any, Any]] = []
        keys: Sequence[Any] = sorted(values, key=as_bytes) if text_key else sorted(values)
        try:
            if child is not None:
                enter(w)
            for key in keys:
                rows.append((w.text(key) if text_key else key, put_value(w, values[key])))
        except Refused as refused:
            raise refused.within(f"[{keys[len(rows)]!r}]").within(name) from None
        if child is not None:
            w.depth -= 1
        end = w.nbytes + len(rows) * limit
        structs = []
        for i, (key, value) in enumerate(rows):
            at = end - i * limit
            slots = at - key if text_key else key, at - value if value_out_of_line else value
            if at > MAX_OFFSET:
                check_offset(max(at - key if text_key else 0, at - value if value_out_of_line else 0))
            structs.append(pack(*slots))
        return w.push(pack_u32(len(rows)) + b"".join(structs))

    return put


def as_bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


assert OFFSET_WIDTH == 4  # "I" in all formats
