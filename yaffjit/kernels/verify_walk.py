"""A whole YaFF buffer checked, from its root: a loop with a stack of its own."""

from __future__ import annotations

from numba import njit

from yaffjit.kernels.memory import load_i64, load_u32, load_words, stack_words, store_words
from yaffjit.kernels.verify_leaves import check_leaves, check_texts
from yaffjit.kernels.verify_maps import ascends
from yaffjit.kernels.verify_message import FIELD_BYTES, enter, refers, slot_offset, sparse_offset
from yaffjit.kernels.verify_text import TABLE, TEXT_BYTES_PER_BYTE, UTF8, check_text
from yaffjit.plan import tables
from yaffjit.plan.limits import MAX_DEPTH
from yaffjit.plan.model import MAX_OFFSET

# The limits of codec.verify_plain; a test holds the two equal.
STEPS_PER_BYTE = 8

# What a check finds: all but MALFORMED accept the buffer.
MALFORMED = 0
WELL_FORMED = 1
ASCENDING = 2  # well-formed, and the keys of all maps ascend strictly

_KIND = 8 * tables.KIND
_ELEMENT_WIDTH = 8 * tables.ELEMENT_WIDTH
_MESSAGE = 8 * tables.MESSAGE
_UTF8 = 8 * tables.UTF8
_KEY = 8 * tables.KEY

_FRAME_WORDS = 13
_FRAME_BYTES = 8 * _FRAME_WORDS
_FRAMES_WORDS = _FRAME_WORDS * (MAX_DEPTH + 1)


@njit(inline="always")
def _array_count(buffer: int, nbytes: int, pos: int, element_width: int) -> int:
    """The number of elements of an array, -1 if it's malformed."""
    if nbytes - pos < 4:
        return -1
    count = load_u32(buffer + pos)
    return count if count * element_width <= nbytes - pos - 4 else -1


@njit(forceinline=True)
def walk(request: int, buffer: int, nbytes: int) -> int:
    """What a buffer is; without a memo, one whose long texts are shared often is `MALFORMED`.

    Requires: ``nbytes`` readable bytes at ``buffer``; a request whose table and memo are as described.
    Source: docs/format.md; the limits are our own.
    """
    table = load_i64(request + 8 * TABLE)
    utf8 = load_i64(request + 8 * UTF8)
    if nbytes < 4:
        return MALFORMED
    target = load_u32(buffer)
    if target < 4 or target > MAX_OFFSET:
        return MALFORMED
    child = table
    steps = STEPS_PER_BYTE * nbytes
    text_bytes = TEXT_BYTES_PER_BYTE * nbytes
    ascending = True
    # What is suspended, outermost first; nothing is below the root.
    frames = stack_words(_FRAMES_WORDS)
    depth = 0
    # The message whose fields are being looked at: its record and position, the records of the next field and
    # behind the last one, its table's end (0: slots), its header (0: fixed), and what `slot_offset` said of
    # the field before. The elements of an array of messages in it: how many are left, the position of the
    # next one, how far each is from the next, what their offsets count from (0: inlined), their type.
    message = table
    at = field = fields_end = table_end = header = hole = moved = 0
    left = element = width = base = element_type = 0
    while True:
        # Enter the message of type `child` at `target`.
        entered = enter(table, child, buffer, nbytes, target)
        steps -= entered[4]
        if depth > MAX_DEPTH or entered[0] < 0 or steps < 0:
            return MALFORMED
        if entered[5]:
            steps, text_bytes = check_leaves(
                table, child, entered[5], buffer, nbytes, target, buffer + target + (2 if entered[3] else 0),
                utf8, request, steps, text_bytes,
            )  # fmt: skip
            if text_bytes < 0:
                return MALFORMED
        if entered[0] != entered[1]:
            if depth:
                upper = (message, at, field, fields_end, table_end, header, hole, moved)
                store_words(frames + _FRAME_BYTES * depth, (*upper, left, element, width, base, element_type))
            depth += 1
            message, at, hole, moved, left = child, target, 0, 0, 0
            field, fields_end, table_end, header = entered[:4]
        # Find the next message to enter.
        while True:
            if left:
                left -= 1
                target = element
                if base:
                    offset = load_u32(buffer + element)
                    if offset == 0 or offset > MAX_OFFSET:
                        return MALFORMED
                    target = base + offset
                element += width
                child = element_type
                break
            if field == fields_end:
                if depth <= 1:
                    return WELL_FORMED + ascending if steps >= 0 else MALFORMED
                depth -= 1
                (
                    message, at, field, fields_end, table_end, header, hole, moved,
                    left, element, width, base, element_type,
                ) = load_words(frames + _FRAME_BYTES * depth, _FRAME_WORDS)  # fmt: skip
                continue
            record = field
            field += FIELD_BYTES
            if table_end:
                offset = sparse_offset(buffer, nbytes, at, table_end, record)
            else:
                offset, hole, moved = slot_offset(table, message, buffer, at, header, record, hole, moved)
            if offset == 0:
                continue
            if offset < 0 or offset > MAX_OFFSET:
                return MALFORMED
            pos = at + offset
            kind = load_i64(record + _KIND)
            referred = table + 8 * load_i64(record + _MESSAGE)
            if kind == tables.SINGLE:
                target = pos
                child = referred
                break
            steps -= 1
            check = utf8 & load_i64(record + _UTF8)
            if kind == tables.TEXT:
                text_bytes = check_text(buffer, nbytes, pos, check, request, text_bytes)
                if text_bytes < 0:
                    return MALFORMED
                continue
            element_width = load_i64(record + _ELEMENT_WIDTH)
            count = _array_count(buffer, nbytes, pos, element_width)
            if count < 0:
                return MALFORMED
            if kind == tables.VALUES or count == 0:
                continue
            first = pos + 4
            if kind == tables.TEXTS:
                steps -= count
                if steps < 0:
                    return MALFORMED
                text_bytes = check_texts(buffer, nbytes, first, count, check, request, text_bytes)
                if text_bytes < 0:
                    return MALFORMED
                continue
            key = load_i64(record + _KEY)
            if ascending and key != tables.NO_KEY:
                ascending = ascends(buffer, nbytes, first, count, element_width, key)
            if kind == tables.INLINED and not refers(table, referred):
                if depth > MAX_DEPTH or steps < count:
                    return MALFORMED
                steps -= count
                continue
            left, element, width, element_type = count, first, element_width, referred
            base = first if kind == tables.MESSAGES else 0
