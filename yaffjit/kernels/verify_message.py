"""Whether one message of a YaFF buffer is well-formed but for what it refers to, and where its fields are.

Records of the table of `yaffjit.plan.tables` go by their address here.
"""

from __future__ import annotations

from numba import njit

from yaffjit.kernels.memory import load_i32, load_i64, load_u8, load_u16, load_u32
from yaffjit.plan import tables

FIELD_BYTES = 8 * tables.FIELD_WORDS

_LAYOUT = 8 * tables.LAYOUT
_LIMIT = 8 * tables.LIMIT
_IDS = 8 * tables.IDS
_FIELDS = 8 * tables.FIELDS
_REFERENCES = 8 * tables.REFERENCES
_HOLES = 8 * tables.HOLES
_COUNTS = 8 * tables.COUNTS
_OPTIONALS = 8 * tables.OPTIONALS
_OPTIONAL_COUNT = 8 * tables.OPTIONAL_COUNT
_ID = 8 * tables.ID
_KIND = 8 * tables.KIND
_OFFSET = 8 * tables.OFFSET
_WIDTH = 8 * tables.WIDTH
_HOLE_COUNT = 8 * tables.HOLE_COUNT


@njit
def _code_width(buffer: int, at: int, header: int, id: int) -> int:
    """Bytes of the slot of an id by the size code in a sized flat message.

    Requires: the message's metadata is inside the buffer and covers ``id``.
    """
    bit = 3 * id - 2 if header & 1 else 2 * id - 2
    low = load_u8(buffer + at - 1 - (bit >> 3)) >> (bit & 7) & 1
    bit += 1
    high = load_u8(buffer + at - 1 - (bit >> 3)) >> (bit & 7) & 1
    code = low + 2 * high
    return code if code < 2 else 4 * (code - 1)


@njit(inline="always")
def refers(table: int, message: int) -> bool:
    """Whether any live field of a message has an offset in its slot."""
    counts = table + 8 * load_i64(message + _COUNTS)
    return load_i64(counts + 8 * load_i64(message + _IDS)) >> 32 != 0


@njit(forceinline=True)
def _parts(table: int, message: int, buffer: int, nbytes: int, at: int) -> tuple[int, int, int, int]:
    """Check a message but for what it refers to.

    Returns the addresses of its first field record and behind its last one (references only, if it isn't
    sparse), the position of the end of its table if it is sparse, else 0, and its header (0 if fixed).
    The first of them is -1 if it's malformed.
    """
    bad = (-1, 0, 0, 0)
    layout = load_i64(message + _LAYOUT)
    ids = load_i64(message + _IDS)
    counts = table + 8 * load_i64(message + _COUNTS)
    room = nbytes - at
    if layout == tables.FIXED:
        if room < load_i64(message + _LIMIT):
            return bad
        first = table + 8 * load_i64(message + _REFERENCES)
        return first, first + FIELD_BYTES * (load_i64(counts + 8 * ids) >> 32), 0, 0
    if room < 2:
        return bad
    header = load_u16(buffer + at)
    highest = max((header & 0x7FFF) >> 2, 1) - 1
    count = load_i64(counts + 8 * min(highest, ids))
    fields = table + 8 * load_i64(message + _FIELDS)
    field_count = count & 0xFFFFFFFF
    if header & 0x8000:
        if layout == tables.SPARSE or at - ((highest * (header & 3) + 7) >> 3) < 4:
            return bad
        if field_count:
            last = fields + FIELD_BYTES * (field_count - 1)
            size = 2 + load_i64(last + _OFFSET) + load_i64(last + _WIDTH)
            hole_count = load_i64(last + _HOLE_COUNT)
            if hole_count:
                if header & 2 == 0:
                    return bad
                holes = table + 8 * load_i64(message + _HOLES)
                for i in range(hole_count):
                    size += _code_width(buffer, at, header, load_i64(holes + 8 * i))
            if room < size:
                return bad
        first = table + 8 * load_i64(message + _REFERENCES)
        return first, first + FIELD_BYTES * (count >> 32), 0, header
    if layout == tables.FLAT:
        return bad
    if highest == 0:
        return fields, fields, 0, header
    if at < 8:
        return bad
    table_end = at + load_i32(buffer + at - 4)
    if table_end > nbytes or table_end - highest - max(highest - 31, 0) < 4:
        return bad
    return fields, fields + FIELD_BYTES * field_count, table_end, header


@njit
def _check_presence(table: int, message: int, buffer: int, at: int, header: int) -> int:
    """How many scalars with explicit presence a flat message has; -1 if one is absent by its bit but not 0.

    Requires: the message has presence bits; it and its metadata are inside the buffer.
    """
    highest = max((header & 0x7FFF) >> 2, 1) - 1
    stride = 3 if header & 2 else 1
    count = load_i64(message + _OPTIONAL_COUNT)
    record = table + 8 * load_i64(message + _OPTIONALS)
    holes = table + 8 * load_i64(message + _HOLES)
    hole = 0
    slots = buffer + at + 2
    for i in range(count):
        id = load_i64(record + _ID)
        if id > highest:
            return i
        hole_count = load_i64(record + _HOLE_COUNT)
        while hole < hole_count:
            slots += _code_width(buffer, at, header, load_i64(holes + 8 * hole))
            hole += 1
        slot = slots + load_i64(record + _OFFSET)
        width = load_i64(record + _WIDTH)
        bits = load_u32(slot) if width == 4 else (load_u8(slot) if width == 1 else load_i64(slot))
        if bits != 0:
            bit = stride * (id - 1)
            if load_u8(buffer + at - 1 - (bit >> 3)) >> (bit & 7) & 1 == 0:
                return -1
        record += FIELD_BYTES
    return count


@njit(inline="always")
def enter(table: int, message: int, buffer: int, nbytes: int, at: int) -> tuple[int, int, int, int, int]:
    """Check a message but for what it refers to.

    Returns the addresses of its first field record and behind its last one (references only, if it isn't
    sparse), the position of the end of its table if it is sparse, else 0, its header (0 if fixed), and the
    steps that it takes. The first of them is -1 if it's malformed.
    """
    field, fields_end, table_end, header = _parts(table, message, buffer, nbytes, at)
    looked_at = (fields_end - field) // FIELD_BYTES
    if field >= 0 and header & 0x8001 == 0x8001 and load_i64(message + _OPTIONAL_COUNT):
        optional = _check_presence(table, message, buffer, at, header)
        if optional < 0:
            return -1, 0, 0, 0, 0
        looked_at += optional
    return field, fields_end, table_end, header, 1 + min(looked_at // 16, 32)


@njit(inline="always")
def sparse_offset(buffer: int, nbytes: int, at: int, table_end: int, record: int) -> int:
    """The offset in a field of a sparse message; 0 if it's absent or a value, -1 if it's malformed.

    Requires: the message's table is inside the buffer and covers the field's id.
    """
    id = load_i64(record + _ID)
    entry = load_u8(buffer + table_end - id) if id < 32 else load_u16(buffer + table_end - 2 * id + 31)
    if entry == 0:
        return 0
    if entry < 2 or load_i64(record + _WIDTH) > nbytes - at - entry:
        return -1
    if load_i64(record + _KIND) == tables.VALUE:
        return 0
    offset = load_u32(buffer + at + entry)
    return offset if offset != 0 else -1


@njit(inline="always")
def slot_offset(
    table: int, message: int, buffer: int, at: int, header: int, record: int, hole: int, moved: int
) -> tuple[int, int, int]:
    """The offset in a field of a flat or fixed message; and how many holes lie below it, and their bytes.

    Args:
        hole, moved: likewise of the field before it.

    Requires: the message and its metadata are inside the buffer and cover the field's id.
    """
    hole_count = load_i64(record + _HOLE_COUNT)
    while hole < hole_count:
        id = load_i64(table + 8 * (load_i64(message + _HOLES) + hole))
        moved += _code_width(buffer, at, header, id)
        hole += 1
    slot = at + load_i64(record + _OFFSET) + moved
    if header:
        slot += 2
    return load_u32(buffer + slot), hole, moved
