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
_MESSAGES_PART = 8 * tables.MESSAGES_PART
_OPTIONALS = 8 * tables.OPTIONALS
_LIMITS = 8 * tables.LIMITS
_HOLES = 8 * tables.HOLES
_LIMIT_BYTES = 8 * tables.LIMIT_WORDS
_FIELDS_END = 8 * tables.FIELDS_END
_REFERENCES_END = 8 * tables.REFERENCES_END
_MESSAGES_END = 8 * tables.MESSAGES_END
_OPTIONALS_END = 8 * tables.OPTIONALS_END
_SIZE = 8 * tables.SIZE
_SPARSE_STEPS = 8 * tables.SPARSE_STEPS
_SLOTS_STEPS = 8 * tables.SLOTS_STEPS
_PRESENCE_STEPS = 8 * tables.PRESENCE_STEPS
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
def _limits(table: int, message: int, id: int) -> int:
    """The address of the words on a message's fields with an id of at most ``id``."""
    return table + 8 * load_i64(message + _LIMITS) + _LIMIT_BYTES * min(id, load_i64(message + _IDS))


@njit(inline="always")
def refers(table: int, message: int) -> bool:
    """Whether any live field of a message has an offset in its slot."""
    limits = _limits(table, message, load_i64(message + _IDS))
    return load_i64(limits + _REFERENCES_END) != load_i64(message + _REFERENCES)


@njit(inline="always")
def _moved_size(table: int, message: int, limits: int, buffer: int, at: int, header: int) -> int:
    """Bytes to the end of the last slot from the first one, where holes move it; -1 if that can't be known.

    Requires: the message's metadata is inside the buffer and covers the fields of ``limits``.
    """
    if header & 2 == 0:
        return -1
    last = table + 8 * load_i64(limits + _FIELDS_END) - FIELD_BYTES
    hole = table + 8 * load_i64(message + _HOLES)
    size = load_i64(last + _OFFSET) + load_i64(last + _WIDTH)
    for _ in range(load_i64(last + _HOLE_COUNT)):
        size += _code_width(buffer, at, header, load_i64(hole))
        hole += 8
    return size


@njit
def _is_presence_told(
    table: int, message: int, record: int, end: int, buffer: int, at: int, header: int
) -> bool:
    """Whether the scalars of a flat message that are absent by their presence bits are 0.

    Args:
        record, end: the records of its first optional, and behind the last one.

    Requires: the message has presence bits; it and its metadata are inside the buffer.
    """
    stride = 3 if header & 2 else 1
    hole_count = 0
    hole = table + 8 * load_i64(message + _HOLES)
    slots = buffer + at + 2
    wrong = False
    while record < end:
        while hole_count < load_i64(record + _HOLE_COUNT):
            slots += _code_width(buffer, at, header, load_i64(hole))
            hole += 8
            hole_count += 1
        slot = slots + load_i64(record + _OFFSET)
        width = load_i64(record + _WIDTH)
        bits = load_u32(slot) if width == 4 else (load_u8(slot) if width == 1 else load_i64(slot))
        bit = stride * (load_i64(record + _ID) - 1)
        is_absent = load_u8(buffer + at - 1 - (bit >> 3)) >> (bit & 7) & 1 == 0
        wrong |= (bits != 0) & is_absent
        record += FIELD_BYTES
    return not wrong


@njit(inline="always")
def enter(table: int, message: int, buffer: int, nbytes: int, at: int) -> tuple[int, int, int, int, int, int]:
    """Check a message but for what it refers to.

    Returns the addresses of the record of the first field to look at and behind the last one; the position
    of the end of its table if it's sparse, else 0; its header (0 if fixed); the steps that it takes; and, if
    its slots are where the plan has them, the address of the words on its fields, else 0: then the fields to
    look at are messages only. The first of them is -1 if it's malformed.
    """
    bad = (-1, 0, 0, 0, 0, 0)
    layout = load_i64(message + _LAYOUT)
    room = nbytes - at
    if layout == tables.FIXED:
        if room < load_i64(message + _LIMIT):
            return bad
        limits = _limits(table, message, load_i64(message + _IDS))
        first = table + 8 * load_i64(message + _MESSAGES_PART)
        end = table + 8 * load_i64(limits + _MESSAGES_END)
        return first, end, 0, 0, load_i64(limits + _SLOTS_STEPS), limits
    if room < 2:
        return bad
    header = load_u16(buffer + at)
    highest = max((header & 0x7FFF) >> 2, 1) - 1
    limits = _limits(table, message, highest)
    if header & 0x8000:
        if layout == tables.SPARSE or at - ((highest * (header & 3) + 7) >> 3) < 4:
            return bad
        size = load_i64(limits + _SIZE)
        first = table + 8 * load_i64(message + _MESSAGES_PART)
        end = table + 8 * load_i64(limits + _MESSAGES_END)
        in_place = limits
        if size < 0:
            size = _moved_size(table, message, limits, buffer, at, header)
            if size < 0:
                return bad
            first = table + 8 * load_i64(message + _REFERENCES)
            end = table + 8 * load_i64(limits + _REFERENCES_END)
            in_place = 0
        if room < 2 + size:
            return bad
        steps = load_i64(limits + _SLOTS_STEPS)
        if header & 1:
            steps = load_i64(limits + _PRESENCE_STEPS)
            optional = table + 8 * load_i64(message + _OPTIONALS)
            optionals_end = table + 8 * load_i64(limits + _OPTIONALS_END)
            if not _is_presence_told(table, message, optional, optionals_end, buffer, at, header):
                return bad
        return first, end, 0, header, steps, in_place
    if layout == tables.FLAT:
        return bad
    first = table + 8 * load_i64(message + _FIELDS)
    if highest == 0:
        return first, first, 0, header, 1, 0
    if at < 8:
        return bad
    table_end = at + load_i32(buffer + at - 4)
    if table_end > nbytes or table_end - highest - max(highest - 31, 0) < 4:
        return bad
    end = table + 8 * load_i64(limits + _FIELDS_END)
    return first, end, table_end, header, load_i64(limits + _SPARSE_STEPS), 0


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
