"""The verifier of YaFF buffers as machine code: one loop over a table, with a stack of its own.

It only says whether a buffer is well-formed, by the rules of `yaffjit.codec.verify_plain`, which finds the
words for what is wrong. A table is that of `yaffjit.plan.tables`; its records go by their address here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import int64, njit, types

from yaffjit.kernels.cached import cached
from yaffjit.kernels.memory import (
    data_address,
    load_i32,
    load_i64,
    load_u8,
    load_u16,
    load_u32,
    stack_words,
    store_i64,
)
from yaffjit.plan import tables
from yaffjit.plan.model import MAX_OFFSET

# The limits of codec.verify_plain; a test holds the two equal.
MAX_DEPTH = 100
STEPS_PER_BYTE = 8
LONG_TEXT = 256
TEXT_BYTES_PER_BYTE = 8

# Words of a request: int64 that say how to check.
TABLE = 0  # address of the table
UTF8 = 1  # 1 to check UTF-8
MEMO = (
    2  # address of words that are 0, for the positions of long texts; or 0: a text that is shared counts anew
)
MEMO_MASK = 3  # how many words these are, a power of two, less 1
REQUEST_WORDS = 4

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
_ELEMENT_WIDTH = 8 * tables.ELEMENT_WIDTH
_MESSAGE = 8 * tables.MESSAGE
_UTF8 = 8 * tables.UTF8
_FIELD_BYTES = 8 * tables.FIELD_WORDS

_FRAME_BYTES = 8 * 13
_FRAMES_WORDS = 13 * (MAX_DEPTH + 1)
_HIGH_BITS = -0x7F7F7F7F7F7F7F80  # the top bit of each of eight bytes
_HASH = -0x61C8864680B583EB  # 2**64 divided by the golden ratio


@njit
def _is_utf8(start: int, nbytes: int) -> bool:
    """Requires: ``nbytes`` readable bytes at ``start``, and 8 before them."""
    end = start + nbytes
    pos = start
    while pos < end:
        left = end - pos
        if left >= 8:
            if load_i64(pos) & _HIGH_BITS == 0:
                pos += 8
                continue
        elif load_i64(end - 8) & (_HIGH_BITS << (8 * (8 - left))) == 0:
            return True
        lead = load_u8(pos)
        if lead < 0x80:
            pos += 1
            continue
        # The second byte has a range of its own: no overlong forms, no surrogates, nothing above U+10FFFF.
        least = 0x80
        most = 0xBF
        if lead < 0xC2:
            return False
        if lead < 0xE0:
            size = 2
        elif lead < 0xF0:
            size = 3
            if lead == 0xE0:
                least = 0xA0
            elif lead == 0xED:
                most = 0x9F
        elif lead < 0xF5:
            size = 4
            if lead == 0xF0:
                least = 0x90
            elif lead == 0xF4:
                most = 0x8F
        else:
            return False
        if size > left:
            return False
        second = load_u8(pos + 1)
        if second < least or second > most:
            return False
        for i in range(2, size):
            if load_u8(pos + i) & 0xC0 != 0x80:
                return False
        pos += size
    return True


@njit
def _is_new(pos: int, memo: int, mask: int) -> bool:
    """Whether a position isn't in the memo yet; it is afterwards.

    Requires: ``mask + 1`` words at ``memo``, some of them 0.
    """
    i = ((pos * _HASH) >> 20) & mask
    while True:
        known = load_i64(memo + 8 * i)
        if known == pos:
            return False
        if known == 0:
            store_i64(memo + 8 * i, pos)
            return True
        i = (i + 1) & mask


@njit
def _text(buffer: int, nbytes: int, pos: int, utf8: int, memo: int, mask: int, text_bytes: int) -> int:
    """What is left of ``text_bytes`` after the text at ``pos``; negative if that's malformed or too much."""
    room = nbytes - pos
    if room < 5:
        return -1
    length = load_u32(buffer + pos)
    if length > room - 5 or load_u8(buffer + pos + 4 + length) != 0:
        return -1
    if utf8:
        if length >= LONG_TEXT:
            if memo != 0 and not _is_new(pos, memo, mask):
                return text_bytes
            text_bytes -= length
            if text_bytes < 0:
                return -1
        # The root offset and the length lie before the text, so 8 bytes there can be read.
        if not _is_utf8(buffer + pos + 4, length):
            return -1
    return text_bytes


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


@njit
def _refers(table: int, message: int) -> bool:
    """Whether any live field of a message has an offset in its slot."""
    counts = table + 8 * load_i64(message + _COUNTS)
    return load_i64(counts + 8 * load_i64(message + _IDS)) >> 32 != 0


@njit
def _enter(table: int, message: int, buffer: int, nbytes: int, at: int) -> tuple[int, int, int, int]:
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
        return first, first + _FIELD_BYTES * (load_i64(counts + 8 * ids) >> 32), 0, 0
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
            last = fields + _FIELD_BYTES * (field_count - 1)
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
        return first, first + _FIELD_BYTES * (count >> 32), 0, header
    if layout == tables.FLAT:
        return bad
    if highest == 0:
        return fields, fields, 0, header
    if at < 8:
        return bad
    table_end = at + load_i32(buffer + at - 4)
    if table_end > nbytes or table_end - highest - max(highest - 31, 0) < 4:
        return bad
    return fields, fields + _FIELD_BYTES * field_count, table_end, header


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
        record += _FIELD_BYTES
    return count


@njit
def _check(request: int, buffer: int, nbytes: int) -> bool:
    """Whether a buffer is well-formed; without a memo, one whose long texts are shared often isn't.

    Requires: ``nbytes`` readable bytes at ``buffer``; a request whose table and memo are as described.
    Source: docs/format.md; the limits are our own.
    """
    table = load_i64(request + 8 * TABLE)
    utf8 = load_i64(request + 8 * UTF8)
    memo = load_i64(request + 8 * MEMO)
    mask = load_i64(request + 8 * MEMO_MASK)
    if nbytes < 4:
        return False
    target = load_u32(buffer)
    if target < 4 or target > MAX_OFFSET:
        return False
    child = table
    steps = STEPS_PER_BYTE * nbytes
    text_bytes = TEXT_BYTES_PER_BYTE * nbytes
    # What is suspended, outermost first. Below the root lies a message without fields.
    frames = stack_words(_FRAMES_WORDS)
    depth = 0
    # The message whose fields are being looked at.
    message = table
    at = 0
    field = 0
    fields_end = 0
    table_end = 0  # 0: slots
    header = 0  # 0: fixed
    hole = 0  # how many holes lie below `field`,
    moved = 0  # and how many bytes they take
    # The elements that are left of an array of messages in it.
    left = 0
    element = 0
    width = 0
    array = 0  # what their offsets count from, 0: inlined
    array_child = 0
    while True:
        # Enter the message of type `child` at `target`.
        new_field, new_fields_end, new_table_end, new_header = _enter(table, child, buffer, nbytes, target)
        if depth > MAX_DEPTH or new_field < 0:
            return False
        looked_at = (new_fields_end - new_field) // _FIELD_BYTES
        if new_header & 0x8001 == 0x8001 and load_i64(child + _OPTIONAL_COUNT):
            optional = _check_presence(table, child, buffer, target, new_header)
            if optional < 0:
                return False
            looked_at += optional
        steps -= 1 + min(looked_at // 16, 32)
        if steps < 0:
            return False
        if new_field != new_fields_end:
            frame = frames + _FRAME_BYTES * depth
            store_i64(frame, message)
            store_i64(frame + 8, at)
            store_i64(frame + 16, field)
            store_i64(frame + 24, fields_end)
            store_i64(frame + 32, table_end)
            store_i64(frame + 40, header)
            store_i64(frame + 48, hole)
            store_i64(frame + 56, moved)
            store_i64(frame + 64, left)
            store_i64(frame + 72, element)
            store_i64(frame + 80, width)
            store_i64(frame + 88, array)
            store_i64(frame + 96, array_child)
            depth += 1
            message = child
            at = target
            field = new_field
            fields_end = new_fields_end
            table_end = new_table_end
            header = new_header
            hole = 0
            moved = 0
            left = 0
        # Find the next message to enter.
        while True:
            if left:
                left -= 1
                target = element
                if array:
                    offset = load_u32(buffer + element)
                    if offset == 0 or offset > MAX_OFFSET:
                        return False
                    target = array + offset
                element += width
                child = array_child
                break
            if field == fields_end:
                if depth == 0:
                    return steps >= 0
                depth -= 1
                frame = frames + _FRAME_BYTES * depth
                message = load_i64(frame)
                at = load_i64(frame + 8)
                field = load_i64(frame + 16)
                fields_end = load_i64(frame + 24)
                table_end = load_i64(frame + 32)
                header = load_i64(frame + 40)
                hole = load_i64(frame + 48)
                moved = load_i64(frame + 56)
                left = load_i64(frame + 64)
                element = load_i64(frame + 72)
                width = load_i64(frame + 80)
                array = load_i64(frame + 88)
                array_child = load_i64(frame + 96)
                continue
            record = field
            field += _FIELD_BYTES
            kind = load_i64(record + _KIND)
            if table_end:
                id = load_i64(record + _ID)
                if id < 32:
                    entry = load_u8(buffer + table_end - id)
                else:
                    entry = load_u16(buffer + table_end - 2 * id + 31)
                if entry == 0:
                    continue
                if entry < 2 or load_i64(record + _WIDTH) > nbytes - at - entry:
                    return False
                if kind == tables.VALUE:
                    continue
                offset = load_u32(buffer + at + entry)
                if offset == 0:
                    return False
            else:
                hole_count = load_i64(record + _HOLE_COUNT)
                while hole < hole_count:
                    id = load_i64(table + 8 * (load_i64(message + _HOLES) + hole))
                    moved += _code_width(buffer, at, header, id)
                    hole += 1
                slot = at + load_i64(record + _OFFSET) + moved
                if header:
                    slot += 2
                offset = load_u32(buffer + slot)
                if offset == 0:
                    continue
            if offset > MAX_OFFSET:
                return False
            pos = at + offset
            if kind == tables.SINGLE:
                target = pos
                child = table + 8 * load_i64(record + _MESSAGE)
                break
            check = utf8 & load_i64(record + _UTF8)
            steps -= 1
            first = pos
            count = 1
            if kind != tables.TEXT:
                if nbytes - pos < 4:
                    return False
                first = pos + 4
                count = load_u32(buffer + pos)
                element_width = load_i64(record + _ELEMENT_WIDTH)
                if count * element_width > nbytes - first:
                    return False
                if kind == tables.VALUES or count == 0:
                    continue
                if kind == tables.INLINED and not _refers(table, table + 8 * load_i64(record + _MESSAGE)):
                    if depth > MAX_DEPTH or steps < count:
                        return False
                    steps -= count
                    continue
                if kind != tables.TEXTS:
                    array_child = table + 8 * load_i64(record + _MESSAGE)
                    left = count
                    element = first
                    width = element_width
                    array = first if kind == tables.MESSAGES else 0
                    continue
                steps -= count
                if steps < 0:
                    return False
            for i in range(count):
                text = first
                if kind == tables.TEXTS:
                    offset = load_u32(buffer + first + 4 * i)
                    if offset == 0 or offset > MAX_OFFSET:
                        return False
                    text += offset
                text_bytes = _text(buffer, nbytes, text, check, memo, mask, text_bytes)
                if text_bytes < 0:
                    return False


def _check_one(buf: bytes, request: int) -> bool:
    """Whether a buffer is well-formed.

    Requires: the address of a request whose table and memo are as described.
    """
    return _check(request, data_address(buf), len(buf))


def _check_rows(request: int, buffer: int, nbytes: int, offsets: int, first: int, last: int) -> int:
    """The first of the rows ``first`` to ``last - 1`` with bad offsets or a malformed buffer; else ``last``.

    Messages lie in one buffer, or anywhere: then ``buffer`` is 0, and address 0 is a row without a message.

    Requires: a request as above; ``nbytes`` readable bytes at ``buffer`` and ``last + 1`` int64 at
    ``offsets``; or ``last`` pairs of int64 there, an address and how many bytes can be read at it.
    """
    for row in range(first, last):
        if buffer == 0:
            start = load_i64(offsets + 16 * row)
            if start != 0 and not _check(request, start, load_i64(offsets + 16 * row + 8)):
                return row
        else:
            begin = load_i64(offsets + 8 * row)
            end = load_i64(offsets + 8 * row + 8)
            if begin < 0 or end < begin or end > nbytes or not _check(request, buffer + begin, end - begin):
                return row
    return last


def _compiled(function: Callable[..., Any], signature: Any, nogil: bool) -> Any:
    dispatcher = cached(function, nogil)
    dispatcher.compile(signature)
    dispatcher.disable_compile()  # a call with other types is a mistake
    return dispatcher


class Kernel:
    """The compiled functions; making it takes two seconds, or 0.2 from the cache on disk."""

    def __init__(self) -> None:
        bytes_type = types.Bytes(types.uint8, 1, "C", readonly=True)
        self.check_one = _compiled(_check_one, types.boolean(bytes_type, int64), nogil=False)
        self.check_rows = _compiled(_check_rows, int64(*[int64] * 6), nogil=True)
