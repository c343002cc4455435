"""Whether the texts, and the arrays of scalars and texts, of a message of a YaFF buffer are well-formed.

Nothing lies behind them, so all of a message whose slots are where the plan has them are looked at in one go.
"""

from __future__ import annotations

from numba import njit

from yaffjit.kernels.memory import load_i64, load_u32, opaque
from yaffjit.kernels.verify_message import FIELD_BYTES
from yaffjit.kernels.verify_text import check_text, doubts, may_hurry
from yaffjit.plan import tables
from yaffjit.plan.model import MAX_OFFSET

_TEXTS_PART = 8 * tables.TEXTS_PART
_ARRAYS_PART = 8 * tables.ARRAYS_PART
_TEXTS_END = 8 * tables.TEXTS_END
_ARRAYS_END = 8 * tables.ARRAYS_END
_KIND = 8 * tables.KIND
_OFFSET = 8 * tables.OFFSET
_ELEMENT_WIDTH = 8 * tables.ELEMENT_WIDTH
_UTF8 = 8 * tables.UTF8


@njit
def check_leaves(
    table: int, message: int, limits: int, buffer: int, nbytes: int, at: int, slots: int,
    utf8: int, request: int, steps: int, text_bytes: int,
) -> tuple[int, int]:  # fmt: skip
    """What is left of ``steps`` and ``text_bytes``; negative if something is malformed or too much.

    Args:
        limits: the address of the words on the message's fields.
        slots: the address of its first slot.

    Requires: the slots of the message are inside the buffer.
    """
    bad = (-1, -1)
    hurry = may_hurry(nbytes)
    text = table + 8 * load_i64(message + _TEXTS_PART)
    texts_end = table + 8 * load_i64(limits + _TEXTS_END)
    while text < texts_end:
        place = load_i64(text)
        text += 8
        offset = load_u32(slots + (place >> 1))
        check = utf8 & place
        # An absent text is looked at too, so that no branch depends on it.
        is_there = opaque(-(offset != 0))
        steps += is_there
        if hurry and doubts(buffer + nbytes, buffer + at + offset, check) & is_there == 0:
            continue
        if offset != 0:
            if offset > MAX_OFFSET:
                return bad
            text_bytes = check_text(buffer, nbytes, at + offset, check, request, text_bytes)
            if text_bytes < 0:
                return bad
    record = table + 8 * load_i64(message + _ARRAYS_PART)
    arrays_end = table + 8 * load_i64(limits + _ARRAYS_END)
    while record < arrays_end:
        offset = load_u32(slots + load_i64(record + _OFFSET))
        array = record
        record += FIELD_BYTES
        if offset == 0:
            continue
        pos = at + offset
        steps -= 1
        if offset > MAX_OFFSET or nbytes - pos < 4:
            return bad
        count = load_u32(buffer + pos)
        if count * load_i64(array + _ELEMENT_WIDTH) > nbytes - pos - 4:
            return bad
        if load_i64(array + _KIND) == tables.TEXTS:
            steps -= count
            if steps < 0:
                return bad
            check = utf8 & load_i64(array + _UTF8)
            text_bytes = check_texts(buffer, nbytes, pos + 4, count, check, request, text_bytes)
            if text_bytes < 0:
                return bad
    return steps, text_bytes


@njit
def check_texts(
    buffer: int, nbytes: int, first: int, count: int, utf8: int, request: int, text_bytes: int
) -> int:
    """As `check_text` for the texts that an array's offsets lead to.

    Requires: ``count`` offsets at ``first`` are inside the buffer.
    """
    hurry = may_hurry(nbytes)
    for slot in range(buffer + first, buffer + first + 4 * count, 4):
        offset = load_u32(slot)
        if offset == 0 or offset > MAX_OFFSET:
            return -1
        if hurry and doubts(buffer + nbytes, buffer + first + offset, utf8) == 0:
            continue
        text_bytes = check_text(buffer, nbytes, first + offset, utf8, request, text_bytes)
        if text_bytes < 0:
            return -1
    return text_bytes
