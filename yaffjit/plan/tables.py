"""A message's plan and all that it reaches as one array of integers, for kernels that know no plan.

The table is int64[words]; a *record* is a run of words in it, named by the index of its first word.
The message itself is the record at word 0, the messages that it reaches follow.

A message record holds the words `LAYOUT` to `HOLES`, then come, somewhere behind it,

* its live fields by ascending id, from word ``table[record + FIELDS]``, `FIELD_WORDS` words each;
* the same records again of some of them: those whose slot holds an offset (its *references*), from
  ``table[record + REFERENCES]``; of these the arrays of scalars and texts, and the messages and arrays of
  messages, from `ARRAYS_PART` and `MESSAGES_PART`; scalars with explicit presence (its *optionals*), from
  `OPTIONALS`;
* its texts, one word each: twice the offset of the slot, and 1 more if protobuf checks that it's UTF-8;
* the ids below its highest one that have no slot (its *holes*), ascending, from ``table[record + HOLES]``;
* for k = 0 to ``table[record + IDS]`` the `LIMIT_WORDS` words `FIELDS_END` to `PRESENCE_STEPS` on the fields
  with an id of at most k, from ``table[record + LIMITS]``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from yaffjit.plan.model import FieldPlan, MessagePlan

Table = NDArray[np.int64]

# Words of a message record.
LAYOUT = 0  # FIXED, FLAT, SPARSE or DYNAMIC
LIMIT = 1  # bytes of a fixed message
IDS = 2  # the highest id of a live field, 0 if there is none
FIELDS = 3
REFERENCES = 4
TEXTS_PART = 5
ARRAYS_PART = 6
MESSAGES_PART = 7
OPTIONALS = 8
LIMITS = 9
HOLES = 10
MESSAGE_WORDS = 11

# Words on the fields with an id of at most k: the word behind their last one in each part;
FIELDS_END = 0
REFERENCES_END = 1
TEXTS_END = 2
ARRAYS_END = 3
MESSAGES_END = 4
OPTIONALS_END = 5
SIZE = 6  # bytes to the end of the last slot from the first one; -1 where holes lie below it
# and the steps that a message takes which is sparse, one without and one with presence bits.
SPARSE_STEPS = 7
SLOTS_STEPS = 8
PRESENCE_STEPS = 9
LIMIT_WORDS = 10

FIXED = 0
FLAT = 1
SPARSE = 2
DYNAMIC = 3
_LAYOUTS = {"fixed": FIXED, "flat": FLAT, "sparse": SPARSE, "dynamic": DYNAMIC}

# Words of a field record.
ID = 0
KIND = 1  # VALUE, TEXT, ...
OFFSET = 2  # bytes from the first slot to this one, as in FieldPlan
WIDTH = 3  # bytes of the slot
HOLE_COUNT = 4  # how many holes lie below the field
ELEMENT_WIDTH = 5  # bytes of an array element, 0 if singular
MESSAGE = 6  # the record of the message type of a message or of the elements, else 0
UTF8 = 7  # 1 if protobuf checks that the text is UTF-8, else 0
KEY = 8  # what the keys of a map are, NO_KEY if it's none; a pair begins with its key
FIELD_WORDS = 9

# What a slot holds: the value itself, or an offset to ...
VALUE = 0
TEXT = 1  # a string or bytes
SINGLE = 2  # a message
VALUES = 3  # an array of scalars
TEXTS = 4  # an array of offsets to texts
MESSAGES = 5  # an array of offsets to messages
INLINED = 6  # an array of fixed messages; a map

_PARTS = (FIELDS, REFERENCES, TEXTS_PART, ARRAYS_PART, MESSAGES_PART, OPTIONALS)  # as the words of their ends
_LOOKED_AT = (FIELDS, REFERENCES, OPTIONALS)

NO_KEY = 0
INT32_KEY = 1
UINT32_KEY = 2
INT64_KEY = 3
UINT64_KEY = 4
BOOL_KEY = 5
TEXT_KEY = 6
_KEYS = {
    "int32": INT32_KEY,
    "sint32": INT32_KEY,
    "sfixed32": INT32_KEY,
    "uint32": UINT32_KEY,
    "fixed32": UINT32_KEY,
    "int64": INT64_KEY,
    "sint64": INT64_KEY,
    "sfixed64": INT64_KEY,
    "uint64": UINT64_KEY,
    "fixed64": UINT64_KEY,
    "bool": BOOL_KEY,
    "string": TEXT_KEY,
}


def kind_of(f: FieldPlan) -> int:
    """What the slot of a field holds: VALUE to INLINED."""
    if f.inlined:
        return INLINED
    if f.kind == "message":
        return MESSAGES if f.repeated else SINGLE
    if f.kind in ("string", "bytes"):
        return TEXTS if f.repeated else TEXT
    return VALUES if f.repeated else VALUE


def table_of(mp: MessagePlan) -> Table:
    """The table of a message, read-only and made once; it lives as long as the plan.

    Raises:
        SchemaError: YaFF can't hold a message that it reaches.
    """
    memo = mp.plan.memo
    key = ("table", mp.full_name)
    table: Table | None = memo.get(key)
    if table is None:
        table = memo.setdefault(key, _make_table(mp))
    return table


def _make_table(mp: MessagePlan) -> Table:
    reached = _reached(mp)
    records = {name: MESSAGE_WORDS * row for row, name in enumerate(reached)}
    words = [0] * (MESSAGE_WORDS * len(reached))
    for name, message in reached.items():
        record = records[name]
        words[record + LAYOUT] = _LAYOUTS[message.layout]
        words[record + LIMIT] = message.limit
        words[record + IDS] = message.fields[-1].id if message.fields else 0
        parts, limits = _parts(message, records)
        for place, part in parts.items():
            words[record + place] = len(words)
            words += part
        words[record + LIMITS] = len(words)
        for limit in limits:
            words += [words[record + place] + end for place, end in zip(_PARTS, limit[:SIZE], strict=True)]
            words += limit[SIZE:]
    table = np.array(words, np.int64)
    table.setflags(write=False)
    return table


def _reached(mp: MessagePlan) -> dict[str, MessagePlan]:
    """The message and all that it reaches, breadth first."""
    reached = {mp.full_name: mp}
    waiting = [mp]
    for message in waiting:
        for f in message.fields:
            if f.message and f.message not in reached:
                reached[f.message] = message.child(f)
                waiting.append(reached[f.message])
    return reached


def step_cost(field_count: int) -> int:
    """Steps of a message of which ``field_count`` fields are looked at, as `codec.verify_plain` has them."""
    return 1 + min(field_count >> 4, 32)


def _parts(message: MessagePlan, records: dict[str, int]) -> tuple[dict[int, list[int]], list[list[int]]]:
    """The parts behind a message's record, by the word that says where each begins; and its limits.

    The ends in the limits count from the begin of their parts.
    """
    parts: dict[int, list[int]] = {place: [] for place in (*_PARTS, HOLES)}
    limits: list[list[int]] = []
    size = 0

    def limit() -> list[int]:
        ends = [len(parts[place]) for place in _PARTS]
        fields, references, optionals = (ends[_PARTS.index(p)] // FIELD_WORDS for p in _LOOKED_AT)
        steps = [step_cost(count) for count in (fields, references, references + optionals)]
        return [*ends, size, *steps]

    limits.append(limit())
    for f in message.fields:
        limits += [limits[-1]] * (f.id - len(limits))
        record = [0] * FIELD_WORDS
        record[ID] = f.id
        record[KIND] = kind_of(f)
        record[OFFSET] = f.offset
        record[WIDTH] = f.width
        record[HOLE_COUNT] = len(f.holes)
        record[ELEMENT_WIDTH] = f.element_width
        record[MESSAGE] = records[f.message] if f.message else 0
        record[UTF8] = int(f.utf8)
        record[KEY] = _KEYS[message.child(f).fields[0].kind] if f.is_map else NO_KEY
        parts[FIELDS] += record
        if f.out_of_line:
            parts[REFERENCES] += record
            if record[KIND] == TEXT:
                parts[TEXTS_PART].append(2 * f.offset + f.utf8)
            else:
                parts[ARRAYS_PART if record[KIND] in (VALUES, TEXTS) else MESSAGES_PART] += record
        elif f.explicit:
            parts[OPTIONALS] += record
        size = -1 if f.holes else f.offset + f.width
        limits.append(limit())
    # The holes of a field are those below its id, so the last field's are all that matter.
    parts[HOLES] = list(message.fields[-1].holes) if message.fields else []
    return parts, limits
