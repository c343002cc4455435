"""Where a message that is being built keeps its fields, and how protobuf bytes are made of it.

A message lies in memory as a record: a head, a bit a field in the order of numbers, a word a oneof, and a
slot a field. What the slots hold is half encoded already, so that writing knows few cases: numbers as the
varints or fixed values that they'll be, repeated numbers and texts as the bytes that they'll be.

For the kernels that write there is a table, int64[words]; places in it are bytes from its start. The root's
message record is at 0, those of the messages that it reaches follow, behind them the field records of each,
and the numbers of closed enums.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from yaffjit.forks import renew_properties
from yaffjit.plan.build import Plan
from yaffjit.plan.wire_tables import parser_habits
from yaffjit.schema.model import KINDS, FieldDef, MessageDef

# Bytes of a message's record in memory.
PARENT = 0  # address of the record that it's to be a part of; 0 of the root, and of elements
PARENT_SLOT = 8  # bytes from that record's start to the slot that holds this one
PARENT_RANK = 16  # of the field there
PARENT_CASE = 24  # bytes to the word of that field's oneof; 0 if it's in none
PRESENT = 32  # 1 once the message is there, in all that it's a part of
CHANGED = 40  # 1 once a field of it was unset, or one of a message in it
# A bit a field, by its rank, from here on. Behind it a bit for each that was unset, which updates ask for; a
# word a oneof; the slots.
HAS = 48

# Bytes of slots, and what is where in them.
NUMBER_NBYTES = 8
TEXT_NBYTES = 16  # address, bytes
MESSAGE_NBYTES = 8  # address of its record
RUN_NBYTES = 32  # repeated numbers and texts: address, bytes, capacity in bytes, elements
LIST_NBYTES = 32  # repeated messages: address of addresses, elements, capacity in elements
MAP_NBYTES = 40  # address of pairs, pairs, capacity in pairs, address and mask of the index
USED, CAPACITY, COUNT = 8, 16, 24  # of a run; of lists and maps USED counts elements
INDEX, INDEX_MASK = 24, 32
PAIR_NBYTES = 32  # a key and a value, each a number, or address and bytes of a text, or a record's address
PAIR_VALUE = 16

# Words of a message record of the table.
FIELDS = 0  # place of the field records, by ascending number
HAS_WORDS = 1  # words of bits
FIELD_COUNT = 2
ONEOF_COUNT = 3
TAKES_ZERO = 4  # 1: protobuf takes a field with number 0 for an unknown one
MESSAGE_WORDS = 5

# Words of a field record.
OP = 0
TAG = 1  # what comes before a value
END_TAG = 2  # of a group
SLOT = 3  # bytes from the record's start
CASE = 4  # bytes to the word of its oneof, which holds 1 + the rank of the member that counts; 0: in none
IMPLICIT = 5  # 1: zero isn't written
CHILD = 6  # place of the record of its message type, also of a map's values
KEY = 7  # of a map: how its keys are written, NUMBER_OPS or TEXT
KEY_ORDER = 8  # and ordered
KEY_TAG = 9
VALUE = 10  # and its values
VALUE_TAG = 11
WIRE_TYPE = 12  # of a single value
CLOSED = 13  # place of a closed enum: how many numbers it has, and these ascending; 0: none
FIELD_WORDS = 14

# How a value is written.
VARINT, ZIGZAG, FIXED32, FIXED64, TEXT, PACKED, PLAIN, MESSAGE, GROUP, MESSAGES, GROUPS, MAP = range(12)
# How keys are ordered.
SIGNED, UNSIGNED, BYTES, SIGNED_DOWN, UNSIGNED_DOWN = range(5)

_FIXED32_KINDS = ("fixed32", "sfixed32", "float")
_FIXED64_KINDS = ("fixed64", "sfixed64", "double")
_WIRE_VARINT, _WIRE_FIXED64, _WIRE_BYTES, _WIRE_GROUP, _WIRE_END, _WIRE_FIXED32 = range(6)

Words = NDArray[np.int64]


def number_op(kind: str) -> int:
    """How a number of a kind is written."""
    if kind in _FIXED32_KINDS:
        return FIXED32
    return FIXED64 if kind in _FIXED64_KINDS else VARINT


def wire_type(kind: str) -> int:
    """protobuf's wire type of a value of a kind, unless it's a group."""
    if kind in ("string", "bytes", "message"):
        return _WIRE_BYTES
    return {VARINT: _WIRE_VARINT, FIXED32: _WIRE_FIXED32, FIXED64: _WIRE_FIXED64}[number_op(kind)]


@dataclass(frozen=True)
class BuilderField:
    """A field of a message that can be built.

    Attributes:
        op: of the table.
        rank: its place by number.
        slot, case: bytes from the record's start.
    """

    definition: FieldDef
    op: int
    rank: int
    slot: int
    case: int
    tag: int
    end_tag: int

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def kind(self) -> str:
        return self.definition.kind

    @property
    def has_at(self) -> int:
        """Bytes from the record's start to the word with its bit."""
        return HAS + 8 * (self.rank >> 6)

    def unset_at(self, has_words: int) -> int:
        """Bytes from the record's start to the word with the bit that says that it was unset."""
        return self.has_at + 8 * has_words

    @property
    def has_bit(self) -> int:
        return 1 << (self.rank & 63)

    @property
    def nbytes(self) -> int:
        """Of its slot."""
        return slot_nbytes(self.op)


def slot_nbytes(op: int) -> int:
    """Bytes of a slot."""
    if op == MAP:
        return MAP_NBYTES
    if op in (MESSAGES, GROUPS):
        return LIST_NBYTES
    if op in (PACKED, PLAIN):
        return RUN_NBYTES
    if op in (MESSAGE, GROUP):
        return MESSAGE_NBYTES
    return TEXT_NBYTES if op == TEXT else NUMBER_NBYTES


@renew_properties
@dataclass(frozen=True)
class BuilderPlan:
    """How messages of a type lie in memory while they are built."""

    full_name: str
    plan: Plan
    fields: tuple[BuilderField, ...]  # by number
    has_words: int
    nbytes: int  # of a record

    @cached_property
    def by_name(self) -> dict[str, BuilderField]:
        return {f.name: f for f in self.fields}

    @cached_property
    def oneofs(self) -> dict[str, int]:
        """Bytes from the record's start to the word of each oneof."""
        return {f.definition.oneof: f.case for f in self.fields if f.case}

    def pair(self, f: BuilderField) -> tuple[FieldDef, FieldDef]:
        """Key and value of a map."""
        key, value = self.plan.schema.messages[f.definition.type_name].fields
        return key, value

    def child(self, f: BuilderField) -> BuilderPlan:
        """The message type of a field, or of a map's values."""
        name = self.pair(f)[1].type_name if f.op == MAP else f.definition.type_name
        return builder_plan(self.plan, name)

    @cached_property
    def reached(self) -> list[str]:
        """The message types of the table's message records, in their order."""
        return _reached(self)

    @cached_property
    def table(self) -> Words:
        """What the kernel that writes a message of this type takes; read-only."""
        return _made_table(self)

    @cached_property
    def digest(self) -> str:
        """A hash of all that decides about the bytes of such a message."""
        names = sorted(self.reached)
        content = repr([(name, builder_plan(self.plan, name).fields) for name in names])
        enums = sorted(
            {f.definition.type_name for name in names for f in builder_plan(self.plan, name).fields}
            & self.plan.schema.enums.keys()
        )
        content += repr([(name, self.plan.schema.enums[name]) for name in enums])
        return hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def builder_plan(plan: Plan, full_name: str) -> BuilderPlan:
    """How a message of a type is built; made once."""
    key = ("builder_plan", full_name)
    known: BuilderPlan | None = plan.memo.get(key)
    if known is None:
        known = plan.memo.setdefault(key, _made(plan, plan.schema.messages[full_name]))
    return known


def _made(plan: Plan, message: MessageDef) -> BuilderPlan:
    definitions = sorted(message.fields, key=lambda f: f.number)
    has_words = (len(definitions) + 63) // 64
    oneofs = {oneof.name: HAS + 8 * (2 * has_words + i) for i, oneof in enumerate(message.oneofs)}
    at = HAS + 8 * (2 * has_words + len(oneofs))
    descriptor: Any = plan.schema.pool.FindMessageTypeByName(message.full_name)
    fields = []
    for rank, f in enumerate(definitions):
        declared = descriptor.fields_by_number[f.number]
        is_group = KINDS[declared.type] == "group"
        op = _op(f, is_group, f.repeated and not f.is_map and bool(declared.is_packed))
        wire = _WIRE_GROUP if is_group else _WIRE_BYTES if op == PACKED else wire_type(f.kind)
        end_tag = f.number << 3 | _WIRE_END if is_group else 0
        tag = f.number << 3 | wire
        fields.append(BuilderField(f, op, rank, at, oneofs.get(f.oneof, 0), tag, end_tag))
        at += slot_nbytes(op)
    return BuilderPlan(message.full_name, plan, tuple(fields), has_words, at)


def _op(f: FieldDef, is_group: bool, packed: bool) -> int:
    if f.is_map:
        return MAP
    if f.kind in ("message", "group"):
        if f.repeated:
            return GROUPS if is_group else MESSAGES
        return GROUP if is_group else MESSAGE
    if f.repeated:
        return PACKED if packed else PLAIN
    return TEXT if f.kind in ("string", "bytes") else number_op(f.kind)


def _reached(root: BuilderPlan) -> list[str]:
    """The message types that a message can hold, itself first, without those of pairs."""
    names = [root.full_name]
    for name in names:
        message = builder_plan(root.plan, name)
        for f in message.fields:
            held = message.pair(f)[1] if f.op == MAP else f.definition
            if held.kind in ("message", "group") and held.type_name not in names:
                names.append(held.type_name)
    return names


def _made_table(root: BuilderPlan) -> Words:
    names = root.reached
    words = [0] * (MESSAGE_WORDS * len(names))
    closed: dict[str, list[int]] = {}  # where the records of fields of each closed enum begin
    for row, name in enumerate(names):
        message = builder_plan(root.plan, name)
        at = MESSAGE_WORDS * row
        words[at + FIELDS] = 8 * len(words)
        words[at + HAS_WORDS] = message.has_words
        words[at + FIELD_COUNT] = len(message.fields)
        words[at + ONEOF_COUNT] = len(root.plan.schema.messages[name].oneofs)
        words[at + TAKES_ZERO] = int(_takes_zero(message))
        for f in message.fields:
            if f.kind == "enum" and root.plan.schema.enums[f.definition.type_name].closed:
                closed.setdefault(f.definition.type_name, []).append(len(words))
            words += _field_record(message, f, names)
    for enum, records in closed.items():
        numbers = sorted({number for _, number in root.plan.schema.enums[enum].values})
        for at in records:
            words[at + CLOSED] = 8 * len(words)
        words += [len(numbers), *numbers]
    table = np.array(words, np.int64)
    table.setflags(write=False)
    return table


def _takes_zero(message: BuilderPlan) -> bool:
    descriptor: Any = message.plan.schema.pool.FindMessageTypeByName(message.full_name)
    fieldless = not message.fields and not descriptor.is_extendable
    return fieldless and parser_habits().fieldless_take_zero


def _field_record(message: BuilderPlan, f: BuilderField, names: list[str]) -> list[int]:
    record = [0] * FIELD_WORDS
    record[OP] = f.op
    record[TAG] = f.tag
    record[END_TAG] = f.end_tag
    record[SLOT] = f.slot
    record[CASE] = f.case
    record[IMPLICIT] = int(not f.definition.explicit)
    record[WIRE_TYPE] = _WIRE_GROUP if f.op in (GROUP, GROUPS) else wire_type(f.kind)
    held = f.definition
    if f.op == MAP:
        key, held = message.pair(f)
        record[KEY] = _key_op(key)
        record[KEY_ORDER] = BYTES if key.kind == "string" else _order(message, f, key.kind)
        record[KEY_TAG] = 8 | wire_type(key.kind)
        is_text = held.kind in ("string", "bytes")
        record[VALUE] = TEXT if is_text else MESSAGE if held.kind == "message" else number_op(held.kind)
        record[VALUE_TAG] = 16 | wire_type(held.kind)
    if held.kind in ("message", "group"):
        record[CHILD] = 8 * MESSAGE_WORDS * names.index(held.type_name)
    return record


def _key_op(key: FieldDef) -> int:
    """Keys lie in memory as numbers, since they are ordered by them."""
    if key.kind == "string":
        return TEXT
    return ZIGZAG if key.kind in ("sint32", "sint64") else number_op(key.kind)


def _order(message: BuilderPlan, f: BuilderField, kind: str) -> int:
    """How the protobuf that is installed orders integer keys: ascending, or as upb's tables happen to lie."""
    made_by: Any = message.plan.schema.message_class(message.full_name)

    def written(*keys: int) -> bytes:
        made = made_by()
        for key in keys:
            getattr(made, f.name)[bool(key) if kind == "bool" else key]  # which puts it there
        data: bytes = made_by.SerializePartialToString(made, deterministic=True)
        return data

    unsigned = kind in ("uint64", "fixed64", "uint32", "fixed32", "bool")
    ascending = written(0, 1) == written(0) + written(1)
    if not unsigned:
        unsigned = (written(-1, 1) == written(-1) + written(1)) != ascending
    if ascending:
        return UNSIGNED if unsigned else SIGNED
    return UNSIGNED_DOWN if unsigned else SIGNED_DOWN
