"""Objects of the universal tagged format that are like one known object, into columns.

They have its keys, in its order, and values of its codes, so that only texts may be longer or shorter.
Between two texts all lies where it lies in that object: it's compared there in a few words. Then each column
is read in a loop of its own.
"""

from __future__ import annotations

from yaffjit.kernels.cached import inner
from yaffjit.kernels.memory import (
    load_i64,
    load_u8,
    load_u32,
    store_i64,
    store_u8,
    store_u16,
    store_u32,
)
from yaffjit.kernels.objects import bits_of_float, ordered
from yaffjit.kernels.universal_columns import (
    CAPACITY,
    COLUMN_WORDS,
    KIND,
    MISSING,
    OFFSETS,
    TEXT,
    VALUES,
    WIDTH,
)
from yaffjit.kernels.universal_scan import COMPACT, ORDER_SHIFT, float_of, int_of
from yaffjit.kernels.universal_text import UTF8, copy, is_ascii
from yaffjit.kernels.verify_text import is_utf8

# Words of a layout, as `yaffjit.universal.alike` finds it.
SEGMENTS, SEGMENTS_AT = 0, 1  # how many there are, and where
FIELDS, FIELDS_AT = 2, 3
PLACES = 4  # address of room for a word a segment of `BLOCK` objects
LAYOUT_WORDS = 5
# Words of a segment: its bytes, of which the last is the length of the text that follows if there is one, and
# what is compared.
NBYTES, CHECKS, CHECKS_AT, HAS_TEXT = range(4)
SEGMENT_WORDS = 4
# Words of a comparison: of the 8 bytes at an offset in the segment those bits are as they are here.
CHECK_OFFSET, CHECK_BITS, CHECK_MASK = range(3)
CHECK_WORDS = 3
# Words of a field: its segment; in it where the payload is, or the byte with the code of a bool or the length
# of a text; the code, 0 for a text that no object has; the column, -1 for a bool that isn't asked for.
FIELD_SEGMENT, FIELD_OFFSET, FIELD_CODE, FIELD_COLUMN = range(4)
FIELD_WORDS = 4

BLOCK = 256  # objects whose bytes are still in the cache when the next column is read
_SPARE = 32  # bytes that are copied at once, of whatever length a text is


@inner
def _measure(data: int, nbytes: int, pos: int, layout: int, most: int) -> tuple[int, int]:
    """How many objects from a position are like the layout's, and the position behind them; keeps places."""
    segments = load_i64(layout + 8 * SEGMENTS)
    place = load_i64(layout + 8 * PLACES)
    count = 0
    while count < most:
        begin = pos
        differs = 0
        segment = load_i64(layout + 8 * SEGMENTS_AT)
        for _ in range(segments):
            after = pos + load_i64(segment + 8 * NBYTES)
            if after > nbytes - 8:
                return count, begin
            at = data + pos
            store_i64(place, at)
            place += 8
            check = load_i64(segment + 8 * CHECKS_AT)
            for _ in range(load_i64(segment + 8 * CHECKS)):
                found = load_i64(at + load_i64(check + 8 * CHECK_OFFSET))
                differs |= (found ^ load_i64(check + 8 * CHECK_BITS)) & load_i64(check + 8 * CHECK_MASK)
                check += 8 * CHECK_WORDS
            pos = after
            if load_i64(segment + 8 * HAS_TEXT) != 0:
                pos += load_u8(data + pos - 1)
            segment += 8 * SEGMENT_WORDS
        if differs != 0:
            return count, begin
        count += 1
    return count, pos


@inner
def _read_strided(
    source: int, stride: int, rows: int, target: int, width: int, code: int, order: int
) -> None:
    """Numbers of one code into a column of that many bytes a value, which holds all of them."""
    if code == 12:
        for i in range(rows):
            store_i64(target + 8 * i, ordered(load_i64(source + i * stride), 64, order))
    elif code == 11 and width == 4:
        for i in range(rows):
            store_u32(target + 4 * i, ordered(load_u32(source + i * stride), 32, order))
    elif code == 11:
        for i in range(rows):
            store_i64(target + 8 * i, bits_of_float(float_of(source + i * stride, 11, order)))
    elif code == 10:
        for i in range(rows):
            store_i64(target + 8 * i, ordered(load_i64(source + i * stride), 64, order))
    elif width == 8:
        if code == 9:
            for i in range(rows):
                store_i64(target + 8 * i, int_of(source + i * stride, 9, order))
        else:
            for i in range(rows):
                store_i64(target + 8 * i, int_of(source + i * stride, code, order))
    elif width == 4:
        for i in range(rows):
            store_u32(target + 4 * i, int_of(source + i * stride, code, order))
    elif width == 2:
        for i in range(rows):
            store_u16(target + 2 * i, int_of(source + i * stride, code, order))
    else:
        for i in range(rows):
            store_u8(target + i, load_u8(source + i * stride))


@inner
def _read_placed(
    places: int, step: int, offset: int, rows: int, target: int, width: int, code: int, order: int
) -> None:
    """`_read_strided`, where numbers lie behind addresses that are ``step`` bytes apart."""
    if code == 12 or code == 10:
        for i in range(rows):
            at = load_i64(places + i * step) + offset
            store_i64(target + 8 * i, ordered(load_i64(at), 64, order))
    elif code == 11:
        for i in range(rows):
            at = load_i64(places + i * step) + offset
            if width == 4:
                store_u32(target + 4 * i, ordered(load_u32(at), 32, order))
            else:
                store_i64(target + 8 * i, bits_of_float(float_of(at, 11, order)))
    elif width == 8:
        for i in range(rows):
            store_i64(target + 8 * i, int_of(load_i64(places + i * step) + offset, code, order))
    elif width == 4:
        for i in range(rows):
            store_u32(target + 4 * i, int_of(load_i64(places + i * step) + offset, code, order))
    elif width == 2:
        for i in range(rows):
            store_u16(target + 2 * i, int_of(load_i64(places + i * step) + offset, code, order))
    else:
        for i in range(rows):
            store_u8(target + i, load_u8(load_i64(places + i * step) + offset))


@inner
def _read_bools(places: int, step: int, offset: int, rows: int, target: int, shift: int) -> int:
    """How many bytes with codes are those of bools, from the first; ``target`` is 0 if they aren't kept."""
    for i in range(rows):
        code = load_u8(load_i64(places + i * step) + offset) >> shift
        if code != 5 and code != 6:
            return i
        if target != 0:
            store_u8(target + i, 6 - code)
    return rows


@inner
def _read_texts(end: int, places: int, step: int, offset: int, rows: int, column: int, row: int) -> int:
    """How many texts there is room for and are valid, from the first; ``offset`` is of their lengths."""
    values = load_i64(column + 8 * VALUES)
    offsets = load_i64(column + 8 * OFFSETS) + 8 * row
    room = load_i64(column + 8 * CAPACITY) - _SPARE
    first = load_i64(offsets)
    begin = first
    for i in range(rows):
        at = load_i64(places + i * step) + offset
        nbytes = load_u8(at)
        at += 1
        if begin > room - nbytes:
            rows = i
            break
        target = values + begin
        if nbytes <= 16 and end - at >= _SPARE:
            a = load_i64(at)
            b = load_i64(at + 8)
            store_i64(target, a)
            store_i64(target + 8, b)
        else:
            copy(target, at, nbytes)
        begin += nbytes
        store_i64(offsets + 8 * i + 8, begin)
    if not is_ascii(values + first, begin - first):
        for i in range(rows):
            begin = load_i64(offsets + 8 * i)
            if not is_utf8(values + begin, load_i64(offsets + 8 * i + 8) - begin):
                return i
    return rows


@inner
def read_like(
    data: int, nbytes: int, pos: int, flags: int, columns: int, layout: int, row: int, most: int
) -> tuple[int, int]:
    """Read objects that are like the layout's into rows: how many, and the position behind them.

    Fewer than there are where a column has no room, or where something is wrong or unlike.

    Requires: ``nbytes`` readable bytes at ``data``; columns with room for ``most`` rows more, which have
    columns of the fields' kinds that hold all numbers of their codes.
    """
    order = (flags >> ORDER_SHIFT) & 3
    shift = 4 if (flags & COMPACT) != 0 else 0
    found, behind = _measure(data, nbytes, pos, layout, min(most, BLOCK))
    if found == 0:
        return 0, pos
    segments = load_i64(layout + 8 * SEGMENTS)
    step = 8 * segments
    stride = load_i64(load_i64(layout + 8 * SEGMENTS_AT) + 8 * NBYTES)  # where there's one segment
    count = found
    first = load_i64(layout + 8 * FIELDS_AT)
    last = first + 8 * FIELD_WORDS * load_i64(layout + 8 * FIELDS)
    for field in range(first, last, 8 * FIELD_WORDS):
        code = load_i64(field + 8 * FIELD_CODE)
        places = load_i64(layout + 8 * PLACES) + 8 * load_i64(field + 8 * FIELD_SEGMENT)
        offset = load_i64(field + 8 * FIELD_OFFSET)
        number = load_i64(field + 8 * FIELD_COLUMN)
        column = columns + 8 * COLUMN_WORDS * number
        if number < 0:
            count = _read_bools(places, step, offset, count, 0, shift)
            continue
        if code == UTF8:
            count = _read_texts(data + nbytes, places, step, offset, count, column, row)
            continue
        if load_i64(column + 8 * KIND) == TEXT:
            offsets = load_i64(column + 8 * OFFSETS) + 8 * row
            for i in range(count):
                store_i64(offsets + 8 * i + 8, load_i64(offsets))
            continue
        width = load_i64(column + 8 * WIDTH)
        target = load_i64(column + 8 * VALUES) + row * width
        if code < 7:
            count = _read_bools(places, step, offset, count, target, shift)
        elif segments == 1:
            _read_strided(data + pos + offset, stride, count, target, width, code, order)
        else:
            _read_placed(places, step, offset, count, target, width, code, order)
    for field in range(first, last, 8 * FIELD_WORDS):
        number = load_i64(field + 8 * FIELD_COLUMN)
        if number >= 0 and load_i64(field + 8 * FIELD_CODE) != 0:
            missing = load_i64(columns + 8 * (COLUMN_WORDS * number + MISSING)) + row
            for i in range(count):
                store_u8(missing + i, 0)
    if count < found:
        behind = load_i64(load_i64(layout + 8 * PLACES) + step * count) - data
    return count, behind
