"""One object of the universal tagged format into a row of columns, without Python's objects."""

from __future__ import annotations

from yaffjit.kernels.cached import inner
from yaffjit.kernels.memory import (
    load_i64,
    load_u8,
    store_i64,
    store_u8,
    store_u16,
    store_u32,
)
from yaffjit.kernels.objects import bits_of_float, bits_of_float32, float32_fits
from yaffjit.kernels.universal_scan import (
    COMPACT,
    NULL,
    ORDER_SHIFT,
    float_of,
    int_of,
    next_code,
    same_text,
    skip,
    text_length,
    width_of,
)
from yaffjit.kernels.universal_text import UTF8, UTF16, copy
from yaffjit.kernels.verify_text import is_utf8

# What a pass ends with.
DONE, MORE_ROWS, MORE_TEXT, WRONG, MISFIT, NO_OBJECT, NO_COLLECTION = range(7)

# Words of a column.
NAME = 0  # address of its bytes
NAME_NBYTES = 1
KIND = 2
WIDTH = 3  # bytes of a value
VALUES = 4  # address of the values, or of the bytes of texts, before which 8 more can be read
MISSING = 5  # address of a byte a row, which is 1 at first
OFFSETS = 6  # address of the offsets of texts, of which the first is 0
CAPACITY = 7  # bytes that there is room for
LEAST, MOST = 8, 9  # that an integer may be
COLUMN_WORDS = 10
BOOL, INT, FLOAT, TEXT = range(4)

# Words of the progress of a pass.
WORD = 0  # where the next object is, of a collection
ROW = 1
COLUMN = 2  # the one that it stopped at
PROGRESS_WORDS = 3

# Up to here every integer is a float64 or float32, and so is each power of two times one.
_EXACT, _EXACT32 = 1 << 53, 1 << 24


@inner
def put_utf8(target: int, at: int, nbytes: int, code: int) -> int:
    """Write a text as UTF-8; how many bytes it became, -1 if it isn't valid.

    Requires: as many bytes can be read at ``at``; twice as many written at ``target``, 8 read before it.
    """
    if code == UTF8:
        copy(target, at, nbytes)
        return nbytes if is_utf8(target, nbytes) else -1
    end = at + nbytes
    begin = target
    while at < end:
        point = load_u8(at)
        at += 1
        if code == UTF16:
            if at == end:
                return -1
            point |= load_u8(at) << 8
            at += 1
            if point & 0xF800 == 0xD800:
                if point >= 0xDC00 or end - at < 2:
                    return -1
                low = load_u8(at) | (load_u8(at + 1) << 8)
                if low & 0xFC00 != 0xDC00:
                    return -1
                at += 2
                point = 0x10000 + ((point & 0x3FF) << 10) + (low & 0x3FF)
        if point < 0x80:
            store_u8(target, point)
            target += 1
            continue
        following = 1 if point < 0x800 else (2 if point < 0x10000 else 3)
        store_u8(target, ((0xFF << (7 - following)) & 0xFF) | (point >> (6 * following)))
        target += 1
        while following > 0:
            following -= 1
            store_u8(target, 0x80 | ((point >> (6 * following)) & 0x3F))
            target += 1
    return target - begin


@inner
def _put_float(column: int, at: int, number: float, is_wide: bool) -> bool:
    """Store a float; False where a float64 is beyond what float32 has."""
    if load_i64(column + 8 * WIDTH) == 8:
        store_i64(at, bits_of_float(number))
        return True
    if is_wide and not float32_fits(number):
        return False
    store_u32(at, bits_of_float32(number))
    return True


@inner
def _put_number(column: int, row: int, at: int, code: int, order: int) -> bool:
    """Store the number at an address in a row; False if it doesn't fit the column.

    Requires: ``code`` is 5 to 12, and its payload can be read.
    """
    kind = load_i64(column + 8 * KIND)
    width = load_i64(column + 8 * WIDTH)
    target = load_i64(column + 8 * VALUES) + row * width
    if code < 7:
        if kind != BOOL:
            return False
        store_u8(target, 6 - code)
        return True
    if code >= 11:
        return kind == FLOAT and _put_float(column, target, float_of(at, code, order), code == 12)
    number = int_of(at, code, order)
    if kind == FLOAT:
        digits = number
        while digits & 1 == 0 and digits != 0:
            digits >>= 1
        limit = _EXACT if width == 8 else _EXACT32
        return -limit <= digits <= limit and _put_float(column, target, float(number), False)
    if kind != INT or number < load_i64(column + 8 * LEAST) or number > load_i64(column + 8 * MOST):
        return False
    if width == 8:
        store_i64(target, number)
    elif width == 4:
        store_u32(target, number)
    elif width == 2:
        store_u16(target, number)
    else:
        store_u8(target, number)
    return True


@inner
def _column_of(columns: int, count: int, expected: int, at: int, nbytes: int, code: int) -> int:
    """The number of the column with a name, at first tried with the one that is expected; -1 for none."""
    number = expected
    for _ in range(count):
        column = columns + 8 * COLUMN_WORDS * number
        name = load_i64(column + 8 * NAME)
        if same_text(at, nbytes, code, name, load_i64(column + 8 * NAME_NBYTES)):
            return number
        number += 1
        if number == count:
            number = 0
    return -1


@inner
def read_object(
    data: int,
    nbytes: int,
    pos: int,
    half: int,
    flags: int,
    columns: int,
    count: int,
    texts: int,
    row: int,
    progress: int,
) -> tuple[int, int, int]:
    """Read the pairs of an object, whose begin was passed, into a row: what it ends with, and where.

    Args:
        flags: with the depth of the object's values.
        texts: how many columns are of text.
    """
    compact = (flags & COMPACT) != 0
    order = (flags >> ORDER_SHIFT) & 3
    expected = 0
    seen = 0  # columns of text
    while True:
        code, pos, half = next_code(data, nbytes, pos, half, compact)
        if code < UTF8:
            if code != 2:
                return WRONG, pos, half
            break
        length, pos = text_length(data, nbytes, pos)
        if length < 0:
            return WRONG, pos, half
        number = _column_of(columns, count, expected, data + pos, length, code)
        pos += length
        code, pos, half = next_code(data, nbytes, pos, half, compact)
        if code < 0:
            return WRONG, pos, half
        if number < 0:
            pos, half = skip(data, nbytes, pos, half, code, flags)
            if pos < 0:
                return WRONG, pos, half
            continue
        store_i64(progress + 8 * COLUMN, number)
        column = columns + 8 * COLUMN_WORDS * number
        expected = number + 1
        if expected == count:
            expected = 0
        missing = load_i64(column + 8 * MISSING) + row
        if code >= UTF8:
            length, pos = text_length(data, nbytes, pos)
            if length < 0:
                return WRONG, pos, half
            if load_i64(column + 8 * KIND) != TEXT:
                return MISFIT, pos, half
            offsets = load_i64(column + 8 * OFFSETS) + 8 * row
            begin = load_i64(offsets)
            if 2 * length > load_i64(column + 8 * CAPACITY) - begin:
                return MORE_TEXT, pos, half
            put = put_utf8(load_i64(column + 8 * VALUES) + begin, data + pos, length, code)
            if put < 0:
                return WRONG, pos, half
            pos += length
            seen += load_u8(missing)
            store_i64(offsets + 8, begin + put)
            store_u8(missing, 0)
        elif code == 0:
            if (flags & NULL) == 0:
                return WRONG, pos, half
            if load_i64(column + 8 * KIND) == TEXT:
                seen -= 1 - load_u8(missing)
            store_u8(missing, 1)
        elif code >= 5:
            width = width_of(code)
            if width > nbytes - pos:
                return WRONG, pos, half
            if not _put_number(column, row, data + pos, code, order):
                return MISFIT, pos, half
            pos += width
            store_u8(missing, 0)
        elif code == 2 or code == 4:
            return WRONG, pos, half
        else:
            pos, half = skip(data, nbytes, pos, half, code, flags)
            return (WRONG if pos < 0 else MISFIT), pos, half
    if seen != texts:
        for i in range(count):
            column = columns + 8 * COLUMN_WORDS * i
            if load_i64(column + 8 * KIND) == TEXT and load_u8(load_i64(column + 8 * MISSING) + row) != 0:
                offsets = load_i64(column + 8 * OFFSETS) + 8 * row
                store_i64(offsets + 8, load_i64(offsets))
    return DONE, pos, half


@inner
def begin_again(columns: int, count: int, row: int) -> None:
    """Make a row as it was before it was begun."""
    for i in range(count):
        store_u8(load_i64(columns + 8 * (COLUMN_WORDS * i + MISSING)) + row, 1)


@inner
def count_texts(columns: int, count: int) -> int:
    found = 0
    for i in range(count):
        if load_i64(columns + 8 * (COLUMN_WORDS * i + KIND)) == TEXT:
            found += 1
    return found
