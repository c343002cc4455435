"""How protobuf bytes are made of YaFF messages, as one array of integers.

The table is int64[words]; places in it are bytes from its start. The root's message record is at 0, those of
the messages that it reaches follow, and behind them somewhere the field records of each, by descending
number: protobuf's bytes are written from their end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from yaffjit.plan import tables
from yaffjit.plan.model import FieldPlan, MessagePlan
from yaffjit.plan.wire_tables import KEY_KINDS, SIGNED64_KEY, live_plans
from yaffjit.schema.model import KINDS

# Words of a message record.
LAYOUT = 0  # tables.FIXED to DYNAMIC
FIELDS = 1  # place of the field records
FIELD_COUNT = 2
LIMIT = 3  # bytes of a fixed message
MESSAGE_WORDS = 4

# Words of a field record.
KIND = 0  # tables.VALUE to INLINED, or MAP
TAG = 1  # what comes before it; of values that aren't packed, before each
END_TAG = 2  # of a message with delimited encoding, else 0
ID = 3
OFFSET = 4  # bytes from the first slot to its own, without those of holes
WIDTH = 5
DEFAULT = 6  # bits that are XORed into a slot
EXPLICIT = 7
ALWAYS = 8  # 1 in the pair of a map: protobuf writes both
ENCODING = 9  # of a scalar or an element: RAW to BOOL
ELEMENT_WIDTH = 10
CHILD = 11  # place of the record of its message type
PACKED = 12
ENUM = 13  # place of a closed enum: how many numbers it has, and the numbers ascending; else 0
ONEOF = 14  # a bit for its oneof; else 0
HOLES = 15  # place of the ids of holes below its own
HOLE_COUNT = 16
KEY = 17  # of a map: how its keys are ordered, as in wire_tables
FIELD_WORDS = 18
MAP = 7

# How a value is written.
RAW, UNSIGNED, SIGNED32, ZIGZAG32, ZIGZAG64, BOOL = range(6)
_ENCODINGS = {
    "int32": SIGNED32,
    "enum": SIGNED32,
    "sint32": ZIGZAG32,
    "sint64": ZIGZAG64,
    "bool": BOOL,
    "int64": UNSIGNED,
    "uint64": UNSIGNED,
    "uint32": UNSIGNED,
}
_LAYOUTS = {"fixed": tables.FIXED, "flat": tables.FLAT, "sparse": tables.SPARSE, "dynamic": tables.DYNAMIC}
_VARINT, _FIXED64, _BYTES, _GROUP, _END, _FIXED32 = range(6)
_ONEOF_BITS = 62  # oneofs beyond share bits, which costs no more than time

Words = NDArray[np.int64]


@dataclass
class _Table:
    plans: dict[str, MessagePlan]
    words: list[int]
    enums: dict[str, int]

    def place(self) -> int:
        return 8 * len(self.words)


def serialize_table(mp: MessagePlan) -> Words:
    """The table of a message, read-only and made once."""
    key = ("serialize_table", mp.full_name)
    known: Words | None = mp.plan.memo.get(key)
    if known is None:
        known = mp.plan.memo.setdefault(key, _made(mp))
    return known


def _made(mp: MessagePlan) -> Words:
    plans = live_plans(mp)
    table = _Table(plans, [0] * (MESSAGE_WORDS * len(plans)), {})
    for row, message in enumerate(plans.values()):
        fields = sorted(message.fields, key=lambda f: f.number, reverse=True)
        records = [word for f in fields for word in _field(table, message, f)]
        at = MESSAGE_WORDS * row
        table.words[at + LAYOUT] = _LAYOUTS[message.layout]
        table.words[at + FIELDS] = table.place()
        table.words[at + FIELD_COUNT] = len(fields)
        table.words[at + LIMIT] = message.limit
        table.words += records
    words = np.array(table.words, np.int64)
    words.setflags(write=False)
    return words


def _field(table: _Table, message: MessagePlan, f: FieldPlan) -> list[int]:
    """The record of a field; what it refers to is put into the table."""
    descriptor: Any = message.plan.schema.pool.FindMessageTypeByName(message.full_name)
    declared = descriptor.fields_by_number[f.number]
    is_group = KINDS[declared.type] == "group"
    packed = f.repeated and not f.is_map and declared.is_packed
    record = [0] * FIELD_WORDS
    record[KIND] = MAP if f.is_map else tables.kind_of(f)
    record[TAG] = f.number << 3 | (_GROUP if is_group else _BYTES if packed else _wire_type(f))
    record[END_TAG] = f.number << 3 | _END if is_group else 0
    record[ID] = f.id
    record[OFFSET] = f.offset
    record[WIDTH] = f.width
    record[DEFAULT] = f.default_bits - 2**64 if f.default_bits >> 63 else f.default_bits
    record[EXPLICIT] = int(f.explicit)
    record[ALWAYS] = int(message.is_map_entry)
    record[ENCODING] = _ENCODINGS.get(f.kind, RAW)
    record[ELEMENT_WIDTH] = f.element_width
    record[PACKED] = int(packed)
    if f.message:
        record[CHILD] = 8 * MESSAGE_WORDS * list(table.plans).index(f.message)
    if f.enum and message.plan.schema.enums[f.enum].closed:
        record[ENUM] = _enum(table, message, f.enum)
    if f.oneof:
        names = [oneof.name for oneof in message.oneofs]
        record[ONEOF] = 1 << names.index(f.oneof) % _ONEOF_BITS
    record[HOLES] = table.place()
    record[HOLE_COUNT] = len(f.holes)
    table.words += f.holes
    if f.is_map:
        record[KEY] = KEY_KINDS.get(message.child(f).fields[0].kind, SIGNED64_KEY)
    return record


def _wire_type(f: FieldPlan) -> int:
    if f.kind in ("string", "bytes", "message"):
        return _BYTES
    if f.kind in _ENCODINGS:
        return _VARINT
    return _FIXED32 if f.kind in ("fixed32", "sfixed32", "float") else _FIXED64


def _enum(table: _Table, message: MessagePlan, name: str) -> int:
    place = table.enums.get(name)
    if place is None:
        numbers = sorted({number for _, number in message.plan.schema.enums[name].values})
        place = table.enums[name] = table.place()
        table.words += [len(numbers), *numbers]
    return place
