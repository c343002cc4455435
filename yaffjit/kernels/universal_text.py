"""Texts of the universal tagged format from and to CPython's, and copies of a few bytes."""

from __future__ import annotations

from functools import partial

from numba import types

from yaffjit.kernels.cached import inner
from yaffjit.kernels.memory import (
    load_i64,
    load_u8,
    load_u32,
    store_i64,
    store_u8,
    store_u32,
)
from yaffjit.kernels.objects import (
    memcpy,
    new_text,
    room,
    text_of_latin1,
    text_of_utf8,
    text_of_utf16,
)

UTF8, LATIN1, UTF16 = 13, 14, 15
_HIGH_BITS = -0x7F7F7F7F7F7F7F80
_LAST_ASCII = types.int32(127)


@inner
def copy(target: int, source: int, nbytes: int) -> None:
    """Copy bytes.

    Requires: as many can be read at ``source`` and written at ``target``, and these don't overlap.
    """
    if nbytes > 32:
        memcpy(target, source, nbytes)
    elif nbytes >= 16:
        a = load_i64(source)
        b = load_i64(source + 8)
        c = load_i64(source + nbytes - 16)
        d = load_i64(source + nbytes - 8)
        store_i64(target, a)
        store_i64(target + 8, b)
        store_i64(target + nbytes - 16, c)
        store_i64(target + nbytes - 8, d)
    elif nbytes >= 8:
        a = load_i64(source)
        b = load_i64(source + nbytes - 8)
        store_i64(target, a)
        store_i64(target + nbytes - 8, b)
    elif nbytes >= 4:
        a = load_u32(source)
        b = load_u32(source + nbytes - 4)
        store_u32(target, a)
        store_u32(target + nbytes - 4, b)
    elif nbytes > 0:
        a = load_u8(source)
        b = load_u8(source + (nbytes >> 1))
        c = load_u8(source + nbytes - 1)
        store_u8(target, a)
        store_u8(target + (nbytes >> 1), b)
        store_u8(target + nbytes - 1, c)


@partial(inner, inline=True)
def equal(a: int, b: int, nbytes: int) -> bool:
    """Whether 1 to 32 bytes are the same.

    Requires: as many can be read at ``a`` and ``b``.
    """
    if nbytes >= 16:
        return (
            (load_i64(a) ^ load_i64(b))
            | (load_i64(a + 8) ^ load_i64(b + 8))
            | (load_i64(a + nbytes - 16) ^ load_i64(b + nbytes - 16))
            | (load_i64(a + nbytes - 8) ^ load_i64(b + nbytes - 8))
        ) == 0
    if nbytes >= 8:
        return ((load_i64(a) ^ load_i64(b)) | (load_i64(a + nbytes - 8) ^ load_i64(b + nbytes - 8))) == 0
    if nbytes >= 4:
        return ((load_u32(a) ^ load_u32(b)) | (load_u32(a + nbytes - 4) ^ load_u32(b + nbytes - 4))) == 0
    half = nbytes >> 1
    return (
        (load_u8(a) ^ load_u8(b))
        | (load_u8(a + half) ^ load_u8(b + half))
        | (load_u8(a + nbytes - 1) ^ load_u8(b + nbytes - 1))
    ) == 0


@inner
def is_ascii(at: int, nbytes: int) -> bool:
    """Whether bytes are all below 128.

    Requires: as many can be read there.
    """
    bits = 0
    if nbytes >= 8:
        pos = 0
        while pos + 8 <= nbytes:
            bits |= load_i64(at + pos)
            pos += 8
        bits |= load_i64(at + nbytes - 8)
        return (bits & _HIGH_BITS) == 0
    for pos in range(nbytes):
        bits |= load_u8(at + pos)
    return bits < 128


@inner
def text_of(at: int, nbytes: int, code: int, ascii_head: int) -> int:
    """A new text of a payload; 0 with an exception.

    Args:
        ascii_head: bytes of an ASCII text before its characters; 0 if they aren't to be written directly.

    Requires: as many bytes can be read there.
    """
    if code == UTF16:
        order = room(1)
        store_u32(order, -1)  # little-endian, and a mark of another order is a character
        return text_of_utf16(at, nbytes, 0, order)
    # The empty text is shared, so nothing may be written to it.
    if ascii_head != 0 and nbytes != 0 and is_ascii(at, nbytes):
        made = new_text(nbytes, _LAST_ASCII)
        if made != 0:
            copy(made + ascii_head, at, nbytes)
        return made
    if code == UTF8:
        return text_of_utf8(at, nbytes, 0)
    return text_of_latin1(at, nbytes, 0)
