"""Codes, numbers and texts of the universal tagged format, put into a bytes object that grows."""

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
from yaffjit.kernels.objects import (
    ASCII,
    DIGIT_BITS,
    DIGITS,
    INT_HEAD,
    OLD_INTS,
    SIZE,
    TEXT_STATE,
    bytes_data,
    bytes_size,
    decref_if,
    err_clear,
    err_matches,
    int_value_and_overflow,
    ordered,
    resize_bytes,
    room,
    text_as_latin1,
    text_as_utf8,
    text_as_utf16,
)
from yaffjit.kernels.universal_text import LATIN1, UTF8, UTF16, copy

# Words of the state that all calls share, made by `yaffjit.universal.compiled`: addresses of objects.
STR, INT, FLOAT_TYPE, BOOL, DICT, LIST, TUPLE, NONE, TRUE, REFUSE, ENCODE_ERROR = range(11)
LAYOUT = 11  # what `objects.layout` found
ASCII_HEAD = 12
LAST_NBYTES, LAST_COUNT = 13, 14  # of the last output, and of the items of its outermost container
STATE_WORDS = 15

UTF8_ONLY, JAVA, UTF16_ONLY = 0, 1, 2  # of texts

# Words of the output: a bytes object that is owned, its data, how much there is of it.
OBJECT, DATA, CAPACITY = 0, 8, 16
MARGIN = 64  # bytes that there are before each value: a code and number, or the begin of a text
_DOUBLED_NBYTES = 65536  # above, outputs grow by half

# What `put_text` gives in place of a size.
FAILED, SURROGATES = -1, -2


@inner
def grow(out: int, nbytes: int) -> bool:
    """Make room for as many bytes in all; False with an exception, and nothing is owned any more."""
    capacity = load_i64(out + CAPACITY)
    capacity += capacity if capacity <= _DOUBLED_NBYTES else capacity >> 1
    if capacity < nbytes:
        capacity = nbytes + (nbytes >> 1)
    if resize_bytes(out + OBJECT, capacity) != 0:
        return False
    store_i64(out + DATA, bytes_data(load_i64(out)))
    store_i64(out + CAPACITY, capacity)
    return True


@inner
def put_code(data: int, size: int, half: int, code: int, compact: bool) -> tuple[int, int]:
    """Write a code; the size, and where the byte is whose high nibble is free (or -1)."""
    if half >= 0:
        store_u8(data + half, load_u8(data + half) | (code << 4))
        return size, -1
    store_u8(data + size, code)
    return size + 1, size if compact else -1


@inner
def put_text(
    state: int, out: int, text: int, size: int, half: int, compact: bool, strings: int
) -> tuple[int, int]:
    """Write a text; the size and half as before, or `FAILED` with an exception, or `SURROGATES`."""
    made = 0
    code = LATIN1 if strings == JAVA else UTF8
    direct = load_i64(state + 8 * LAYOUT) != 0 and (load_u32(text + TEXT_STATE) & ASCII) == ASCII
    if direct and strings != UTF16_ONLY:
        source = text + load_i64(state + 8 * ASCII_HEAD)
        nbytes = load_i64(text + SIZE)
        if nbytes < 128 and size + nbytes + MARGIN <= load_i64(out + CAPACITY):
            data = load_i64(out + DATA)
            size, half = put_code(data, size, half, code, compact)
            store_u8(data + size, nbytes)
            copy(data + size + 1, source, nbytes)
            return size + 1 + nbytes, half
    elif strings == UTF8_ONLY:
        length = room(1)
        source = text_as_utf8(text, length)
        if source == 0:
            return _unwritten(state), half
        nbytes = load_i64(length)
    else:
        if strings == JAVA:
            made = text_as_latin1(text)
            if made == 0 and _unwritten(state) == FAILED:
                return FAILED, half
        mark = 0
        if made == 0:
            made = text_as_utf16(text)
            if made == 0:
                return _unwritten(state), half
            code = UTF16
            mark = 2  # of the order of bytes
        source = bytes_data(made) + mark
        nbytes = bytes_size(made) - mark
    if size + nbytes + MARGIN > load_i64(out + CAPACITY) and not grow(out, size + nbytes + MARGIN):
        decref_if(made)
        return FAILED, half
    data = load_i64(out + DATA)
    size, half = put_code(data, size, half, code, compact)
    rest = nbytes
    while rest >= 128:
        store_u8(data + size, (rest & 127) | 128)
        size += 1
        rest >>= 7
    store_u8(data + size, rest)
    copy(data + size + 1, source, nbytes)
    decref_if(made)
    return size + 1 + nbytes, half


@inner
def _unwritten(state: int) -> int:
    """Why a text has no bytes."""
    if err_matches(load_i64(state + 8 * ENCODE_ERROR)) == 0:
        return FAILED
    err_clear()
    return SURROGATES


@inner
def put_number(
    data: int, size: int, half: int, compact: bool, order: int, code: int, bits: int
) -> tuple[int, int]:
    """Write a number of a code from its low bits."""
    size, half = put_code(data, size, half, code, compact)
    at = data + size
    if code == 7:
        store_u8(at, bits)
        return size + 1, half
    if code == 8:
        store_u16(at, ordered(bits & 0xFFFF, 16, order))
        return size + 2, half
    if code == 9 or code == 11:
        store_u32(at, ordered(bits & 0xFFFFFFFF, 32, order))
        return size + 4, half
    store_i64(at, ordered(bits, 64, order))
    return size + 8, half


@inner
def int_code(number: int, smallest: bool) -> int:
    if smallest:
        if -128 <= number < 128:
            return 7
        if -32768 <= number < 32768:
            return 8
    return 9 if -2147483648 <= number < 2147483648 else 10


@inner
def int_of(state: int, number: int, overflow: int) -> int:
    """The value of an int; ``overflow`` is the address of a word that is 0 if it has one."""
    store_i64(overflow, 0)
    layout = load_i64(state + 8 * LAYOUT)
    if layout != 0:
        head = load_i64(number + INT_HEAD)
        if layout == OLD_INTS:
            digits = -head if head < 0 else head
            negative = head < 0
        else:
            digits = head >> 3
            negative = (head & 2) != 0
        if digits == 1:
            value = load_u32(number + DIGITS)
            return -value if negative else value
        if digits == 2:
            value = load_u32(number + DIGITS) | (load_u32(number + DIGITS + 4) << DIGIT_BITS)
            return -value if negative else value
    return int_value_and_overflow(number, overflow)


@inner
def put_array(
    out: int, size: int, half: int, compact: bool, order: int, address: int, code: int, count: int
) -> tuple[int, int]:
    """Write an array of numbers of a code as a collection; `FAILED` with an exception.

    Requires: as many contiguous little-endian numbers at the address.
    """
    width = 8
    if code == 5 or code == 7:
        width = 1
    elif code == 8:
        width = 2
    elif code == 9 or code == 11:
        width = 4
    needed = size + count * (1 + width) + MARGIN
    if needed > load_i64(out + CAPACITY) and not grow(out, needed):
        return FAILED, half
    data = load_i64(out + DATA)
    size, half = put_code(data, size, half, 3, compact)
    for i in range(count):
        at = address + i * width
        if code == 5:
            size, half = put_code(data, size, half, 5 if load_u8(at) != 0 else 6, compact)
        elif width == 1:
            size, half = put_number(data, size, half, compact, order, code, load_u8(at))
        elif width == 2:
            bits = load_u8(at) | (load_u8(at + 1) << 8)
            size, half = put_number(data, size, half, compact, order, code, bits)
        elif width == 4:
            size, half = put_number(data, size, half, compact, order, code, load_u32(at))
        else:
            size, half = put_number(data, size, half, compact, order, code, load_i64(at))
    return put_code(data, size, half, 4, compact)
