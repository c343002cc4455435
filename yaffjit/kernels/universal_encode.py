"""A collection of like objects in the universal tagged format, from columns, without Python's objects."""

from __future__ import annotations

from typing import Any

from numba import int64

from yaffjit.kernels.cached import cached, compiled, inner
from yaffjit.kernels.memory import (
    load_i64,
    load_u8,
    load_u16,
    load_u32,
    store_i64,
    store_u8,
    store_u16,
    store_u32,
)
from yaffjit.kernels.objects import memcpy, ordered
from yaffjit.kernels.universal_put import int_code, put_code, put_number
from yaffjit.kernels.universal_text import LATIN1, UTF8, UTF16, copy

# Bits of the flags, as `yaffjit.kernels.universal_write` has them.
COMPACT = 1
ORDER_SHIFT = 1
SMALLEST = 8
NULL = 16
STRINGS_SHIFT = 5
KEPT = 1 << 20  # integers are written as wide as their columns

# Words of a column.
NAME, NAME_NBYTES = 0, 1  # the key with its length, as it's written, and the number of its bytes
CODE = 2  # of its values: 5 for bools, 13 for texts
VALUES = 3  # address of values, little-endian and as wide as the code; of the bytes of texts
MISSING = 4  # address of a byte a row, or 0 if there's a value in each
OFFSETS = 5  # address of the offsets of texts
NAME_CODE = 6
NBYTES = 7  # of all texts
COLUMN_WORDS = 8

# Words of a segment: what all objects have between two texts, and the number of its bytes; behind it the text
# of a column, whose length is the segment's last byte, or -1.
SEGMENT, SEGMENT_NBYTES, SEGMENT_TEXT = range(3)
SEGMENT_WORDS = 3
# Words of a field of fixed width: the segment that it's in, where in it, and its column.
FIELD_SEGMENT, FIELD_PLACE, FIELD_COLUMN = range(3)
FIELD_WORDS = 3

_JAVA, _UTF16_ONLY = 1, 2  # of texts
_BLOCK = 512  # objects whose bytes are still in the cache when the next column is written


@inner
def _put_length(data: int, size: int, nbytes: int) -> int:
    while nbytes >= 128:
        store_u8(data + size, (nbytes & 127) | 128)
        size += 1
        nbytes >>= 7
    store_u8(data + size, nbytes)
    return size + 1


@inner
def _next_point(at: int) -> tuple[int, int]:
    """The character at an address, which is UTF-8, and the address behind it."""
    lead = load_u8(at)
    if lead < 0x80:
        return lead, at + 1
    if lead < 0xE0:
        return ((lead & 31) << 6) | (load_u8(at + 1) & 63), at + 2
    if lead < 0xF0:
        return ((lead & 15) << 12) | ((load_u8(at + 1) & 63) << 6) | (load_u8(at + 2) & 63), at + 3
    point = ((lead & 7) << 18) | ((load_u8(at + 1) & 63) << 12) | ((load_u8(at + 2) & 63) << 6)
    return point | (load_u8(at + 3) & 63), at + 4


@inner
def text_form(at: int, nbytes: int, strings: int) -> tuple[int, int]:
    """The code that a text is written with, and how many bytes it takes.

    Requires: as many bytes can be read there, which are UTF-8.
    """
    if strings == 0:
        return UTF8, nbytes
    end = at + nbytes
    latin1 = 0
    utf16 = 0
    is_latin1 = strings == _JAVA
    while at < end:
        point, at = _next_point(at)
        latin1 += 1
        utf16 += 4 if point >= 0x10000 else 2
        is_latin1 = is_latin1 and point < 256
    return (LATIN1, latin1) if is_latin1 else (UTF16, utf16)


@inner
def _put_text(target: int, at: int, nbytes: int, code: int) -> None:
    """Write the characters of UTF-8 in the form of a code."""
    if code == UTF8:
        copy(target, at, nbytes)
        return
    end = at + nbytes
    while at < end:
        point, at = _next_point(at)
        if code == LATIN1:
            store_u8(target, point)
            target += 1
        elif point < 0x10000:
            store_u16(target, point)
            target += 2
        else:
            store_u16(target, 0xD800 | ((point - 0x10000) >> 10))
            store_u16(target + 2, 0xDC00 | ((point - 0x10000) & 0x3FF))
            target += 4


@inner
def _int_at(at: int, code: int) -> int:
    if code == 10:
        return load_i64(at)
    if code == 9:
        return (load_u32(at) << 32) >> 32
    if code == 8:
        return (load_u16(at) << 48) >> 48
    return (load_u8(at) << 56) >> 56


@inner
def _width(code: int) -> int:
    if code == 10 or code == 12:
        return 8
    if code == 9 or code == 11:
        return 4
    return 2 if code == 8 else 1


def measure(rows: int, flags: int, columns: int, count: int) -> int:
    """How many bytes `encode` writes.

    Requires: columns of as many rows.
    """
    strings = (flags >> STRINGS_SHIFT) & 3
    codes = 2 + 2 * rows
    nbytes = 0
    for i in range(count):
        column = columns + 8 * COLUMN_WORDS * i
        code = load_i64(column + 8 * CODE)
        values = load_i64(column + 8 * VALUES)
        missing = load_i64(column + 8 * MISSING)
        offsets = load_i64(column + 8 * OFFSETS)
        counted = code == UTF8 or (7 <= code <= 10 and (flags & KEPT) == 0)
        present = rows
        if missing != 0:
            for row in range(rows):
                present -= load_u8(missing + row)
        keys = rows if (flags & NULL) != 0 else present
        codes += 2 * keys
        nbytes += keys * load_i64(column + 8 * NAME_NBYTES)
        if not counted:
            nbytes += present * (0 if code == 5 else _width(code))
            continue
        for row in range(rows):
            if missing != 0 and load_u8(missing + row) != 0:
                continue
            if code == UTF8:
                begin = load_i64(offsets + 8 * row)
                length = load_i64(offsets + 8 * row + 8) - begin
                _, length = text_form(values + begin, length, strings)
                nbytes += length + 1
                while length >= 128:
                    nbytes += 1
                    length >>= 7
            else:
                number = _int_at(values + row * _width(code), code)
                nbytes += _width(int_code(number, (flags & SMALLEST) != 0))
    return nbytes + ((codes + 1) >> 1 if (flags & COMPACT) != 0 else codes)


def encode(data: int, rows: int, flags: int, columns: int, count: int) -> int:
    """Write the collection; how many bytes it has.

    Requires: columns of as many rows, and as much room at ``data`` as `measure` says.
    """
    compact = (flags & COMPACT) != 0
    order = (flags >> ORDER_SHIFT) & 3
    strings = (flags >> STRINGS_SHIFT) & 3
    kept = (flags & KEPT) != 0
    size, half = put_code(data, 0, -1, 3, compact)
    for row in range(rows):
        size, half = put_code(data, size, half, 1, compact)
        for i in range(count):
            column = columns + 8 * COLUMN_WORDS * i
            missing = load_i64(column + 8 * MISSING)
            is_missing = missing != 0 and load_u8(missing + row) != 0
            if is_missing and (flags & NULL) == 0:
                continue
            size, half = put_code(data, size, half, load_i64(column + 8 * NAME_CODE), compact)
            nbytes = load_i64(column + 8 * NAME_NBYTES)
            copy(data + size, load_i64(column + 8 * NAME), nbytes)
            size += nbytes
            code = load_i64(column + 8 * CODE)
            values = load_i64(column + 8 * VALUES)
            if is_missing:
                size, half = put_code(data, size, half, 0, compact)
            elif code == UTF8:
                offsets = load_i64(column + 8 * OFFSETS) + 8 * row
                begin = load_i64(offsets)
                length = load_i64(offsets + 8) - begin
                form, nbytes = text_form(values + begin, length, strings)
                size, half = put_code(data, size, half, form, compact)
                size = _put_length(data, size, nbytes)
                _put_text(data + size, values + begin, length, form)
                size += nbytes
            elif code == 5:
                size, half = put_code(data, size, half, 5 if load_u8(values + row) != 0 else 6, compact)
            elif code > 10:
                bits = load_i64(values + 8 * row) if code == 12 else load_u32(values + 4 * row)
                size, half = put_number(data, size, half, compact, order, code, bits)
            else:
                number = _int_at(values + row * _width(code), code)
                form = code if kept else int_code(number, (flags & SMALLEST) != 0)
                size, half = put_number(data, size, half, compact, order, form, number)
        size, half = put_code(data, size, half, 2, compact)
    size, _ = put_code(data, size, half, 4, compact)
    return size


@inner
def _write_strided(
    target: int, stride: int, rows: int, values: int, code: int, order: int, true: int
) -> None:
    """A column's values, each into its object; of bools the byte with the code."""
    if code == 5:
        for i in range(rows):
            store_u8(
                target + i * stride, true if load_u8(values + i) != 0 else true + (16 if true > 15 else 1)
            )
    elif code == 10 or code == 12:
        for i in range(rows):
            store_i64(target + i * stride, ordered(load_i64(values + 8 * i), 64, order))
    elif code == 9 or code == 11:
        for i in range(rows):
            store_u32(target + i * stride, ordered(load_u32(values + 4 * i), 32, order))
    elif code == 8:
        for i in range(rows):
            store_u16(target + i * stride, ordered(load_u16(values + 2 * i), 16, order))
    else:
        for i in range(rows):
            store_u8(target + i * stride, load_u8(values + i))


def encode_alike(
    data: int,
    rows: int,
    stride: int,
    template: int,
    places: int,
    flags: int,
    columns: int,
    count: int,
) -> None:
    """Write objects that differ in the values of fields only.

    Args:
        data: where the first begins.
        template: address of the bytes of one.
        places: address of a word a column: where its value is, of a bool the byte with its code.

    Requires: columns of as many rows, all with values of one width; room for ``rows * stride`` bytes.
    """
    order = (flags >> ORDER_SHIFT) & 3
    block = min(rows, _BLOCK)
    filled = 0
    if block > 0:
        memcpy(data, template, stride)
        filled = 1
    while filled < block:
        more = min(filled, block - filled)
        memcpy(data + filled * stride, data, more * stride)
        filled += more
    for begin in range(0, rows, _BLOCK):
        end = min(rows, begin + _BLOCK)
        at = data + begin * stride
        if begin > 0:
            memcpy(at, data, (end - begin) * stride)
        for i in range(count):
            column = columns + 8 * COLUMN_WORDS * i
            code = load_i64(column + 8 * CODE)
            values = load_i64(column + 8 * VALUES) + begin * _width(code)
            place = load_i64(places + 8 * i)
            true = load_u8(template + place)
            _write_strided(at + place, stride, end - begin, values, code, order, true)


@inner
def _write_placed(
    places: int, step: int, rows: int, place: int, values: int, code: int, order: int, true: int
) -> None:
    """`_write_strided`, where segments lie at addresses that are so many words apart."""
    if code == 5:
        for i in range(rows):
            at = load_i64(places + 8 * step * i) + place
            store_u8(at, true if load_u8(values + i) != 0 else true + (16 if true > 15 else 1))
    elif code == 10 or code == 12:
        for i in range(rows):
            at = load_i64(places + 8 * step * i) + place
            store_i64(at, ordered(load_i64(values + 8 * i), 64, order))
    elif code == 9 or code == 11:
        for i in range(rows):
            at = load_i64(places + 8 * step * i) + place
            store_u32(at, ordered(load_u32(values + 4 * i), 32, order))
    elif code == 8:
        for i in range(rows):
            at = load_i64(places + 8 * step * i) + place
            store_u16(at, ordered(load_u16(values + 2 * i), 16, order))
    else:
        for i in range(rows):
            store_u8(load_i64(places + 8 * step * i) + place, load_u8(values + i))


@inner
def _copy_segment(target: int, source: int, nbytes: int) -> None:
    if nbytes < 8:
        copy(target, source, nbytes)
        return
    for pos in range(0, nbytes - 7, 8):
        store_i64(target + pos, load_i64(source + pos))
    store_i64(target + nbytes - 8, load_i64(source + nbytes - 8))


def longest_text(offsets: int, rows: int) -> int:
    """Bytes of the longest text.

    Requires: ``rows + 1`` offsets.
    """
    longest = 0
    for row in range(rows):
        longest = max(longest, load_i64(offsets + 8 * row + 8) - load_i64(offsets + 8 * row))
    return longest


def encode_like(
    data: int,
    nbytes: int,
    rows: int,
    segments: int,
    nsegments: int,
    fields: int,
    nfields: int,
    flags: int,
    columns: int,
    places: int,
) -> None:
    """Write objects that differ in the values of fields and in texts of less than 128 bytes only.

    Args:
        data: where the first begins.
        places: address of a word a segment for 512 objects.

    Requires: columns of as many rows, whose numbers all have one width; room for ``nbytes`` bytes, which is
    what the objects take.
    """
    order = (flags >> ORDER_SHIFT) & 3
    at = data
    end = data + nbytes
    for begin in range(0, rows, _BLOCK):
        count = min(rows - begin, _BLOCK)
        place = places
        for row in range(begin, begin + count):
            for i in range(nsegments):
                segment = segments + 8 * SEGMENT_WORDS * i
                store_i64(place, at)
                place += 8
                _copy_segment(at, load_i64(segment), load_i64(segment + 8 * SEGMENT_NBYTES))
                at += load_i64(segment + 8 * SEGMENT_NBYTES)
                number = load_i64(segment + 8 * SEGMENT_TEXT)
                if number < 0:
                    continue
                column = columns + 8 * COLUMN_WORDS * number
                offsets = load_i64(column + 8 * OFFSETS) + 8 * row
                source = load_i64(offsets)
                length = load_i64(offsets + 8) - source
                left = min(end - at, load_i64(column + 8 * NBYTES) - source)
                source += load_i64(column + 8 * VALUES)
                store_u8(at - 1, length)
                if length <= 16 and left >= 16:  # what is written behind a text is written again
                    store_i64(at, load_i64(source))
                    store_i64(at + 8, load_i64(source + 8))
                else:
                    copy(at, source, length)
                at += length
        for i in range(nfields):
            field = fields + 8 * FIELD_WORDS * i
            segment = load_i64(field)
            place = load_i64(field + 8 * FIELD_PLACE)
            column = columns + 8 * COLUMN_WORDS * load_i64(field + 8 * FIELD_COLUMN)
            code = load_i64(column + 8 * CODE)
            values = load_i64(column + 8 * VALUES) + begin * _width(code)
            true = load_u8(load_i64(segments + 8 * SEGMENT_WORDS * segment) + place)
            _write_placed(places + 8 * segment, nsegments, count, place, values, code, order, true)


class Kernels:
    """What writes columns, compiled or from disk."""

    def __init__(self) -> None:
        self.measure: Any = compiled(cached(measure, nogil=True), (int64,) * 4)
        self.encode: Any = compiled(cached(encode, nogil=True), (int64,) * 5)
        self.encode_alike: Any = compiled(cached(encode_alike, nogil=True), (int64,) * 8)
        self.encode_like: Any = compiled(cached(encode_like, nogil=True), (int64,) * 10)
        self.longest_text: Any = compiled(cached(longest_text, nogil=True), (int64,) * 2)
