"""How protobuf bytes of a message are read, and what YaFF keeps of them, as one array of integers.

The table is int64[words]; places in it are bytes from its start. The root's message record is at 0, those of
all messages that it reaches, also through extensions, follow. Somewhere behind them lie

* a field record for each declared field and extension, by number: dense for small numbers, in pairs (number,
  record) sorted by number for the rest; and one record of each message for all numbers that it doesn't have;
* a live record for each field that YaFF carries, by ascending id;
* the bits of flat metadata that don't depend on values, for the highest id; a message with fewer ids takes
  the last bytes of them.

A table without a plan only says what protobuf accepts.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from yaffjit.plan import tables
from yaffjit.plan.build import Plan
from yaffjit.plan.model import FieldPlan, MessagePlan
from yaffjit.schema.model import KINDS
from yaffjit.schema.options import checks_utf8

# Words of a message record.
DENSE = 0  # place of the records of the numbers 0 to DENSE_COUNT - 1
DENSE_COUNT = 1
FAR = 2  # place of the pairs of all other numbers
FAR_COUNT = 3
UNKNOWN = 4  # place of the record of a number that the message doesn't have
IS_ENTRY = 5  # 1 if it's the entry of a map
ROW = 6  # which message it is, for counts
LAYOUT = 7  # tables.FIXED to DYNAMIC, SPARSE for what is always sparse
LIMIT = 8  # bytes of a fixed message
LIVE = 9  # place of the live records
LIVE_COUNT = 10
HAS_EXPLICIT = 11  # 1 if a live field has explicit presence: then implicit scalars are always written
IMPLICIT_COUNT = 12  # of live scalars
SLOTS_NBYTES = 13  # of the slots, and behind them of a word for each oneof
PLAIN_BITS = 14  # place behind the metadata without presence, and bits of it an id
PLAIN_STRIDE = 15
PRESENCE_BITS = 16  # place behind the metadata with presence, and bits of it an id
PRESENCE_STRIDE = 17
TAKES_ZERO = 18  # 1 if number 0 is an unknown field to it; else it's an error
SIZE_BITS = 19  # of the root: how many bits a size may have, its padding counted
GROUPS_TAKE_ZERO = 20  # of the root: as TAKES_ZERO, in unknown groups
MESSAGE_WORDS = 21

# Words of a field record.
OPS = 0  # what to do by the wire type: eight bits for each of them
NUMBER = 1  # 0 for the numbers that the message doesn't have
MESSAGE = 2  # place of the record of its message type
ENUM = 3  # place of a closed enum: how many numbers it has, and the numbers ascending
SLOT = 4  # bytes from the first slot to its own; -1 if YaFF doesn't carry it
CASE = 5  # bytes from the first slot to the word of its oneof; -1 if it's in none
SHAPE = 6  # HAS_CONTENT | IS_CHAINED
MESSAGE_ROW = 7  # ROW of the message that has it
FIELD_WORDS = 8
HAS_CONTENT = 1  # what follows on the tape belongs to it
IS_CHAINED = 2  # all occurrences count, not only the last one

# Words of a live record.
KIND = 0  # tables.VALUE to INLINED, or MAP
ID = 1
OFFSET = 2
WIDTH = 3
DEFAULT = 4  # bits that are XORed into a slot
EXPLICIT = 5
FLOAT_WIDTH = 6  # 4 or 8 of float and double, else 0
ELEMENT_WIDTH = 7
CHILD = 8  # place of the record of its message type
OP = 9  # how one element is read
LIVE_ENUM = 10  # as ENUM
CHECKED = 11  # 1 if the value that equals DEFAULT can't be held by a fixed message
KEY = 12  # of a map: how its keys are ordered, SIGNED32_KEY to TEXT_KEY
KEY_CHECKED = 13  # 1 if the text of a map's keys may not be UTF-8
LIVE_WORDS = 14
MAP = 7

SIGNED32_KEY = 0
SIGNED64_KEY = 1  # also what has no sign and fewer bits
UNSIGNED64_KEY = 2
TEXT_KEY = 3
KEY_KINDS = {
    "int32": SIGNED32_KEY,
    "sint32": SIGNED32_KEY,
    "sfixed32": SIGNED32_KEY,
    "uint64": UNSIGNED64_KEY,
    "fixed64": UNSIGNED64_KEY,
    "string": TEXT_KEY,
}

# A slot on the way to YaFF: first and last occurrence, count, and a word that only aligns.
SLOT_NBYTES = 32

# Operations.
(
    BAD,
    SKIP_VARINT,
    SKIP_FIXED64,
    SKIP_BYTES,
    SKIP_GROUP,
    END_GROUP,
    SKIP_FIXED32,
    VARINT64,
    VARINT32,
    BOOL,
    ZIGZAG32,
    ZIGZAG64,
    CLOSED_ENUM,
    FIXED32,
    FLOAT,
    FIXED64,
    TEXT,
    UTF8_TEXT,
    CONTENT,
    GROUP,
    PACKED_VARINT,
    PACKED_ENUM,
    PACKED_FIXED32,
    PACKED_FIXED64,
) = range(24)

_WIRE_VARINT, _WIRE_FIXED64, _WIRE_BYTES, _WIRE_GROUP, _WIRE_END, _WIRE_FIXED32 = range(6)
_UNKNOWN_OPS = {
    _WIRE_VARINT: SKIP_VARINT,
    _WIRE_FIXED64: SKIP_FIXED64,
    _WIRE_BYTES: SKIP_BYTES,
    _WIRE_GROUP: SKIP_GROUP,
    _WIRE_END: END_GROUP,
    _WIRE_FIXED32: SKIP_FIXED32,
}
_VARINT_OPS = {
    "int64": VARINT64,
    "uint64": VARINT64,
    "int32": VARINT32,
    "uint32": VARINT32,
    "enum": VARINT32,
    "bool": BOOL,
    "sint32": ZIGZAG32,
    "sint64": ZIGZAG64,
}
_LAYOUTS = {"fixed": tables.FIXED, "flat": tables.FLAT, "sparse": tables.SPARSE, "dynamic": tables.DYNAMIC}
_SIZE_CODES = {0: 0, 1: 1, 4: 2, 8: 3}
# Numbers below this are dense whatever their count; then four times as many as there are fields.
_DENSE_AT_LEAST = 32

Words = NDArray[np.int64]


@dataclass(frozen=True)
class WireTable:
    """A table and the full names of its messages by `ROW`.

    ``complete`` is False if a message of MessageSet's own wire format is reached: no kernel reads these.
    """

    words: Words
    names: tuple[str, ...]
    complete: bool


def wire_table(plan: Plan, full_name: str) -> WireTable:
    """What protobuf accepts as a message; also for one that YaFF can't hold. Made once."""
    return _made(plan, full_name, None)


def transcode_table(mp: MessagePlan) -> WireTable:
    """The same with the live records, by which its YaFF is written. Made once.

    Raises:
        SchemaError: YaFF can't hold a message that it reaches.
    """
    return _made(mp.plan, mp.full_name, mp)


def _made(plan: Plan, full_name: str, mp: MessagePlan | None) -> WireTable:
    key = ("wire_table", full_name, mp is not None)
    known: WireTable | None = plan.memo.get(key)
    if known is None:
        known = plan.memo.setdefault(key, _Maker(plan, full_name, mp).table())
    return known


@dataclass(frozen=True, slots=True)
class ParserHabits:
    """In what protobuf's own parsers differ from version to version."""

    size_bits: int  # of the varint of a size, padding counted: 35 or 70
    groups_take_zero: bool  # field number 0 passes within unknown groups,
    fieldless_take_zero: bool  # and in messages that have no fields and no extensions


@functools.cache
def parser_habits() -> ParserHabits:
    """What the parser that is installed does."""
    from google.protobuf.empty_pb2 import Empty
    from google.protobuf.message import DecodeError
    from google.protobuf.wrappers_pb2 import StringValue

    def takes(message_class: Any, data: bytes) -> bool:
        try:
            message_class.FromString(data)
        except DecodeError:
            return False
        return True

    return ParserHabits(
        size_bits=70 if takes(StringValue, b"\x0a\x80\x80\x80\x80\x80\x00") else 35,
        groups_take_zero=takes(StringValue, b"\x9b\x06\x00\x00\x9c\x06"),
        fieldless_take_zero=takes(Empty, b"\x00\x00"),
    )


@dataclass(frozen=True, slots=True)
class WireField:
    """A field or extension as it is on the wire."""

    descriptor: Any
    utf8: bool


def wire_fields(plan: Plan, full_name: str) -> list[WireField]:
    """The declared fields and extensions of a message by number."""
    message = plan.schema.pool.FindMessageTypeByName(full_name)
    fields = [
        WireField(message.fields_by_name[f.name], f.utf8) for f in plan.schema.messages[full_name].fields
    ]
    fields += _extensions(plan).get(full_name, [])
    return sorted(fields, key=lambda f: f.descriptor.number)


class _Maker:
    """Lays one table out: first all records, whose places are then known, then what they refer to."""

    def __init__(self, plan: Plan, full_name: str, mp: MessagePlan | None) -> None:
        self.plan = plan
        self.schema = plan.schema
        self.fields = self._reached(full_name)
        self.plans = {} if mp is None else live_plans(mp)
        self.records = {name: 8 * MESSAGE_WORDS * row for row, name in enumerate(self.fields)}
        self.words = [0] * (MESSAGE_WORDS * len(self.fields))
        self.enums: dict[str, int] = {}

    def table(self) -> WireTable:
        complete = True
        for row, name in enumerate(self.fields):
            complete = complete and not self._descriptor(name).GetOptions().message_set_wire_format
            self._add_fields(row, name)
            if name in self.plans:
                self._add_live(row, self.plans[name])
        habits = parser_habits()
        self.words[SIZE_BITS] = habits.size_bits
        self.words[GROUPS_TAKE_ZERO] = int(habits.groups_take_zero)
        words = np.array(self.words, np.int64)
        words.setflags(write=False)
        return WireTable(words, tuple(self.fields), complete)

    def _descriptor(self, name: str) -> Any:
        return self.schema.pool.FindMessageTypeByName(name)

    def _reached(self, root: str) -> dict[str, list[WireField]]:
        """All messages that the root reaches, also through extensions, with their fields by number."""
        found: dict[str, list[WireField]] = {}
        waiting = [root]
        while waiting:
            name = waiting.pop()
            if name not in found:
                fields = found[name] = wire_fields(self.plan, name)
                waiting += [f.descriptor.message_type.full_name for f in fields if f.descriptor.message_type]
        return found

    def _place(self) -> int:
        return 8 * len(self.words)

    def _add_fields(self, row: int, name: str) -> None:
        message = MESSAGE_WORDS * row
        mp = self.plans.get(name)
        slots = {f.number: SLOT_NBYTES * i for i, f in enumerate(mp.fields)} if mp else {}
        cases = {}
        if mp:
            for i, oneof in enumerate(self.schema.messages[name].oneofs):
                cases.update({field: SLOT_NBYTES * len(mp.fields) + 8 * i for field in oneof.fields})
        unknown = self._place()
        self.words += [_ops(_UNKNOWN_OPS), 0, 0, 0, -1, -1, 0, row]
        places = {}
        for f in self.fields[name]:
            d = f.descriptor
            child = self.records[d.message_type.full_name] if d.message_type else 0
            enum = self._enum(d.enum_type) if d.enum_type and d.enum_type.is_closed else 0
            case = -1 if d.is_extension else cases.get(d.name, -1)
            slot = -1 if d.is_extension else slots.get(d.number, -1)
            shape = HAS_CONTENT | IS_CHAINED if d.message_type else IS_CHAINED * d.is_repeated
            places[d.number] = self._place()
            self.words += [_ops(_operations(f)), d.number, child, enum, slot, case, shape, row]
        dense = min(max(places, default=0) + 1, _DENSE_AT_LEAST + 4 * len(places))
        far = [(number, place) for number, place in sorted(places.items()) if number >= dense]
        self.words[message + DENSE] = self._place()
        self.words[message + DENSE_COUNT] = dense
        self.words += [places.get(number, unknown) for number in range(dense)]
        self.words[message + FAR] = self._place()
        self.words[message + FAR_COUNT] = len(far)
        self.words += [word for pair in far for word in pair]
        self.words[message + UNKNOWN] = unknown
        self.words[message + IS_ENTRY] = int(self.schema.messages[name].is_map_entry)
        self.words[message + ROW] = row
        fieldless = not places and not self._descriptor(name).is_extendable
        self.words[message + TAKES_ZERO] = int(fieldless and parser_habits().fieldless_take_zero)

    def _enum(self, enum: Any) -> int:
        place = self.enums.get(enum.full_name)
        if place is None:
            numbers = sorted({value.number for value in enum.values})
            place = self.enums[enum.full_name] = self._place()
            self.words += [len(numbers), *numbers]
        return place

    def _add_live(self, row: int, mp: MessagePlan) -> None:
        message = MESSAGE_WORDS * row
        scalars = [f for f in mp.fields if f.is_scalar]
        self.words[message + LAYOUT] = tables.SPARSE if _is_sparse(mp) else _LAYOUTS[mp.layout]
        self.words[message + LIMIT] = mp.limit
        self.words[message + LIVE] = self._place()
        self.words[message + LIVE_COUNT] = len(mp.fields)
        self.words[message + HAS_EXPLICIT] = int(mp.has_explicit)
        self.words[message + IMPLICIT_COUNT] = sum(not f.explicit for f in scalars)
        oneofs = len(self.schema.messages[mp.full_name].oneofs)
        self.words[message + SLOTS_NBYTES] = SLOT_NBYTES * len(mp.fields) + 8 * oneofs
        for f in mp.fields:
            self.words += self._live(mp, f)
        if mp.layout in ("flat", "dynamic") and not mp.gapped:
            sized = 2 if mp.layout == "dynamic" else 0
            self._add_bits(message + PLAIN_BITS, mp, sized, 0)
            self._add_bits(message + PRESENCE_BITS, mp, sized, 1)

    def _live(self, mp: MessagePlan, f: FieldPlan) -> list[int]:
        record = [0] * LIVE_WORDS
        record[KIND] = MAP if f.is_map else tables.kind_of(f)
        record[ID] = f.id
        record[OFFSET] = f.offset
        record[WIDTH] = f.width
        record[DEFAULT] = _signed(f.default_bits)
        record[EXPLICIT] = int(f.explicit)
        record[FLOAT_WIDTH] = f.width if f.is_scalar and f.kind in ("float", "double") else 0
        record[ELEMENT_WIDTH] = f.element_width
        record[CHECKED] = int(f.default_bits != f.declared_bits)
        if f.message:
            record[CHILD] = self.records[f.message]
        elif f.kind not in ("string", "bytes"):
            record[OP] = _element_operation(f)
            if f.enum and self.schema.enums[f.enum].closed:
                record[OP] = CLOSED_ENUM
                record[LIVE_ENUM] = self.enums[f.enum]
        if f.is_map:
            key = mp.child(f).fields[0]
            record[KEY] = KEY_KINDS.get(key.kind, SIGNED64_KEY)
            record[KEY_CHECKED] = int(key.kind == "string" and not key.utf8)
        return record

    def _add_bits(self, word: int, mp: MessagePlan, sized: int, presence: int) -> None:
        """The metadata bits of all ids but those of presence, which are 0; and how many an id has."""
        stride = sized + presence
        bits = 0
        for id, width in enumerate(mp.widths if sized else (), 1):
            bits |= _SIZE_CODES[width] << presence + stride * (id - 1)
        nbytes = 8 * ((stride * len(mp.widths) + 63) // 64)
        self.words += np.frombuffer(bits.to_bytes(nbytes, "big"), np.int64).tolist()
        self.words[word] = self._place()
        self.words[word + 1] = stride


def live_plans(mp: MessagePlan) -> dict[str, MessagePlan]:
    """The message and all that it reaches through fields that YaFF carries."""
    found = {mp.full_name: mp}
    waiting = [mp]
    for message in waiting:
        for f in message.fields:
            if f.message and f.message not in found:
                found[f.message] = message.child(f)
                waiting.append(found[f.message])
    return found


def _is_sparse(mp: MessagePlan) -> bool:
    return mp.layout == "sparse" or (mp.layout == "dynamic" and mp.gapped)


def _signed(bits: int) -> int:
    return bits - 2**64 if bits >> 63 else bits


def _ops(by_wire_type: dict[int, int]) -> int:
    return sum(op << 8 * wire_type for wire_type, op in by_wire_type.items())


def _fixed_operation(kind: str) -> int:
    if kind == "float":
        return FLOAT
    return FIXED32 if kind in ("fixed32", "sfixed32") else FIXED64


def _element_operation(f: FieldPlan) -> int:
    if f.kind in _VARINT_OPS:
        return _VARINT_OPS[f.kind]
    return _fixed_operation(f.kind)


def _operations(f: WireField) -> dict[int, int]:
    """The operations of a field: its own wire type, packed values where it's repeated; else as unknown."""
    d = f.descriptor
    kind = KINDS[d.type]
    if kind == "group":
        return _UNKNOWN_OPS | {_WIRE_GROUP: GROUP}
    if kind == "message":
        return _UNKNOWN_OPS | {_WIRE_BYTES: CONTENT}
    if kind in ("string", "bytes"):
        return _UNKNOWN_OPS | {_WIRE_BYTES: UTF8_TEXT if f.utf8 else TEXT}
    if kind in _VARINT_OPS:
        closed = kind == "enum" and d.enum_type.is_closed
        wire_type, op = _WIRE_VARINT, CLOSED_ENUM if closed else _VARINT_OPS[kind]
        packed = PACKED_ENUM if closed else PACKED_VARINT
    elif kind in ("fixed32", "sfixed32", "float"):
        wire_type, op, packed = _WIRE_FIXED32, _fixed_operation(kind), PACKED_FIXED32
    else:
        wire_type, op, packed = _WIRE_FIXED64, FIXED64, PACKED_FIXED64
    return _UNKNOWN_OPS | {wire_type: op} | ({_WIRE_BYTES: packed} if d.is_repeated else {})


def _extensions(plan: Plan) -> dict[str, list[WireField]]:
    """All extensions of a schema by the full name of the message that they extend."""
    known: dict[str, list[WireField]] | None = plan.memo.get("extensions")
    if known is None:
        from google.protobuf.descriptor_pb2 import FileDescriptorSet

        known = {}
        for file in FileDescriptorSet.FromString(plan.schema.descriptor_set).file:
            for scopes, full_name in _extensions_in(file, file.package, ()):
                descriptor = plan.schema.pool.FindExtensionByName(full_name)
                wire = WireField(descriptor, descriptor.type == 9 and checks_utf8(file, scopes))
                known.setdefault(descriptor.containing_type.full_name, []).append(wire)
        plan.memo.setdefault("extensions", known)
    return known


def _extensions_in(scope: Any, name: str, outer: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], str]]:
    """The descriptor protos from the outermost message to each extension, and its full name."""
    prefix = f"{name}." if name else ""
    for extension in scope.extension:
        yield (*outer, extension), prefix + extension.name
    for message in scope.nested_type if outer else scope.message_type:
        yield from _extensions_in(message, prefix + message.name, (*outer, message))
