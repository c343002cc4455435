"""Whether the keys of a map in a YaFF buffer ascend strictly, as those of each map that was written as one.

It's no fault if they don't: a list of pairs may be read as a map. Where they do, jitted code searches by
halving, without a look of its own.
"""

from __future__ import annotations

from numba import njit

from yaffjit.kernels.memory import load_be64, load_i32, load_i64, load_u8, load_u32
from yaffjit.kernels.verify_text import LONG_TEXT
from yaffjit.plan import tables

_LOWEST = -(2**63)


@njit
def _starts_less(a: int, b: int, length: int) -> int:
    """The sign of comparing so many bytes at two addresses, of which 8 bytes before can be read too."""
    done = 0
    while length - done >= 8:
        x, y = load_be64(a + done), load_be64(b + done)
        if x != y:
            return -1 if x ^ _LOWEST < y ^ _LOWEST else 1
        done += 8
    if done < length:
        mask = (1 << (8 * (length - done))) - 1
        x, y = load_be64(a + length - 8) & mask, load_be64(b + length - 8) & mask
        if x != y:
            return -1 if x < y else 1
    return 0


@njit
def _texts_ascend(buffer: int, nbytes: int, pair: int, count: int, width: int) -> bool:
    """Texts that are equal for `LONG_TEXT` bytes count as not ascending: work is limited.

    What leaves the buffer does too. It's found when the texts are checked.
    """
    before = buffer + 4
    before_length = -1
    for _ in range(count):
        # A pair of a list may have left out its text, which is empty then.
        offset = load_u32(buffer + pair)
        pos = pair + offset
        if nbytes - pos < 4:
            return False
        length = load_u32(buffer + pos) if offset else 0
        if length > nbytes - pos - 4:
            return False
        text = buffer + pos + 4
        if before_length >= 0:
            shared = min(length, before_length)
            order = _starts_less(before, text, min(shared, LONG_TEXT))
            if order > 0 or (order == 0 and (shared > LONG_TEXT or before_length >= length)):
                return False
        before, before_length = text, length
        pair += width
    return True


@njit
def ascends(buffer: int, nbytes: int, first: int, count: int, width: int, key: int) -> bool:
    """Whether the keys of so many pairs ascend strictly.

    Args:
        first: position of the first pair.
        width: bytes of a pair.
        key: what its key is, `tables.INT32_KEY` to `tables.TEXT_KEY`.

    Requires: the pairs are inside the buffer, and at least 4 bytes are before them.
    """
    if count < 2:
        return True
    if key == tables.TEXT_KEY:
        return _texts_ascend(buffer, nbytes, first, count, width)
    pair = buffer + first
    if key == tables.BOOL_KEY:
        return count == 2 and load_u8(pair) == 0 and load_u8(pair + width) != 0
    end = pair + count * width
    if key == tables.INT32_KEY or key == tables.UINT32_KEY:
        flip = 0 if key == tables.INT32_KEY else -(2**31)
        least = load_i32(pair) ^ flip
        pair += width
        while pair < end:
            found = load_i32(pair) ^ flip
            if found <= least:
                return False
            least = found
            pair += width
        return True
    flip = 0 if key == tables.INT64_KEY else _LOWEST
    least = load_i64(pair) ^ flip
    pair += width
    while pair < end:
        found = load_i64(pair) ^ flip
        if found <= least:
            return False
        least = found
        pair += width
    return True
