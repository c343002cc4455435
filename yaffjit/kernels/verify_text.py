"""Whether texts of a YaFF buffer are well-formed, with a limit on the work where they overlap."""

from __future__ import annotations

from numba import njit

from yaffjit.kernels.memory import high_bits, load_i64, load_u8, load_u32, store_i64
from yaffjit.plan.model import MAX_OFFSET

# The limits of codec.verify_plain; a test holds the two equal.
LONG_TEXT = 256
TEXT_BYTES_PER_BYTE = 8

# Words of a request: int64 that say how to check.
TABLE = 0  # address of the table
UTF8 = 1  # 1 to check UTF-8
MEMO = 2  # address of words that are 0, for the positions of long texts, or 0: a shared text counts anew
MEMO_MASK = 3  # how many words these are, a power of two, less 1

WINDOW = 64  # bytes that are looked at together

_HIGH_BITS = -0x7F7F7F7F7F7F7F80  # the top bit of each of eight bytes
_HASH = -0x61C8864680B583EB  # 2**64 divided by the golden ratio


@njit
def is_utf8(start: int, nbytes: int) -> bool:
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


@njit(inline="always")
def may_hurry(nbytes: int) -> bool:
    """Whether `doubts` may look at the texts of a buffer."""
    return (nbytes >= WINDOW) & (nbytes <= MAX_OFFSET)


@njit(inline="always")
def doubts(end: int, text: int, utf8: int) -> int:
    """0 if at an address is a well-formed text of less than `WINDOW` bytes, all ASCII; else look closer.

    No branch depends on its bytes and length: texts are short and differ, so branches would be guessed wrong.

    Args:
        end: the address of the end of the buffer.
        text: an address behind its begin, and anywhere.

    Requires: the buffer has `WINDOW` bytes.
    """
    start = text + 4
    if start <= end - WINDOW:
        length = load_u32(text)
        high = high_bits(start) << ((WINDOW - 1 - length) & (WINDOW - 1))
        return (high & -utf8) | load_u8(start + (length & (WINDOW - 1))) | (length >> 6)
    # The last bytes of the buffer, which hold the text.
    if start >= end:
        return 1
    length = load_u32(text)
    stop = start + length
    if stop >= end:
        return 1
    window = end - WINDOW
    high = high_bits(window) >> (start - window) << (WINDOW - 1 - length)
    return (high & -utf8) | load_u8(stop)


@njit
def check_text(buffer: int, nbytes: int, pos: int, utf8: int, request: int, text_bytes: int) -> int:
    """What is left of ``text_bytes`` after the text at ``pos``; negative if that's malformed or too much."""
    room = nbytes - pos
    if room < 5:
        return -1
    length = load_u32(buffer + pos)
    if length > room - 5 or load_u8(buffer + pos + 4 + length) != 0:
        return -1
    if utf8:
        if length >= LONG_TEXT:
            memo = load_i64(request + 8 * MEMO)
            if memo != 0 and not _is_new(pos, memo, load_i64(request + 8 * MEMO_MASK)):
                return text_bytes
            text_bytes -= length
            if text_bytes < 0:
                return -1
        # The root offset and the length lie before the text, so 8 bytes there can be read.
        if not is_utf8(buffer + pos + 4, length):
            return -1
    return text_bytes
