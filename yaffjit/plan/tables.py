"""A message's plan and all that it reaches as one array of integers, for kernels that know no plan.

The table is int64[words]; a *record* is a run of words in it, named by the index of its first word.
The message itself is the record at word 0, the messages that it reaches follow.

A message record holds the words `LAYOUT` to `OPTIONAL_COUNT`, then come, somewhere behind it,

* its live fields by ascending id, from word ``table[record + FIELDS]``, `FIELD_WORDS` words each;
* the same records again of those fields only whose slot holds an offset (its *references*), from
  ``table[record + REFERENCES]``;
* again those of its scalars with explicit presence, ``table[record + OPTIONAL_COUNT]`` of them, from
  ``table[record + OPTIONALS]``;
* the ids below its highest one that have no slot (its *holes*), ascending, from ``table[record + HOLES]``;
* for k = 0 to ``table[record + IDS]`` how many of these have an id of at most k, from
  ``table[record + COUNTS]``: live fields in the low 32 bits, references in the high 32.
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
HOLES = 5
COUNTS = 6
OPTIONALS = 7
OPTIONAL_COUNT = 8
MESSAGE_WORDS = 9

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
        fields, references, optionals, holes, counts = _parts(message, records)
        record = records[name]
        words[record + LAYOUT] = _LAYOUTS[message.layout]
        words[record + LIMIT] = message.limit
        words[record + IDS] = len(counts) - 1
        words[record + OPTIONAL_COUNT] = len(optionals) // FIELD_WORDS
        for place, part in (
            (FIELDS, fields),
            (REFERENCES, references),
            (OPTIONALS, optionals),
            (HOLES, holes),
            (COUNTS, counts),
        ):
            words[record + place] = len(words)
            words += part
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


def _parts(
    message: MessagePlan, records: dict[str, int]
) -> tuple[list[int], list[int], list[int], list[int], list[int]]:
    """The words of a message's fields, references, optional scalars, holes and counts."""
    fields: list[int] = []
    references: list[int] = []
    optionals: list[int] = []
    counts = [0]
    for f in message.fields:
        counts += [counts[-1]] * (f.id - len(counts))
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
        fields += record
        if f.out_of_line:
            references += record
        elif f.explicit:
            optionals += record
        counts.append(len(fields) // FIELD_WORDS + (len(references) // FIELD_WORDS << 32))
    # The holes of a field are those below its id, so the last field's are all that matter.
    holes = list(message.fields[-1].holes) if message.fields else []
    return fields, references, optionals, holes, counts
