"""Which of a map's pairs count: of those with equal keys the last one."""

from __future__ import annotations

import numpy as np

from yaffjit.kernels.cached import cached, inner
from yaffjit.kernels.memory import load_i64, load_u8, store_i64

# A row is four int64: of a number its bits and -1, of text its address and number of bytes; and two more.
_ROW_NBYTES = 32
# Up to so many rows are compared with each other one by one.
_FEW = 12


@inner
def _order(first, second):  # type: ignore[no-untyped-def]
    """Below, at or above 0 as the key of the row at an address comes before, is, or comes after another's."""
    a, b = load_i64(first), load_i64(second)
    count, other = load_i64(first + 8), load_i64(second + 8)
    if count < 0:
        return -1 if a < b else 1 if a > b else 0
    for i in range(min(count, other)):
        difference = load_u8(a + i) - load_u8(b + i)
        if difference != 0:
            return difference
    return count - other


@inner
def _keep(rows, count, place):  # type: ignore[no-untyped-def]
    """Copy the row at ``place`` behind the ``count`` rows that are kept."""
    if place != count:
        for word in range(0, _ROW_NBYTES, 8):
            store_i64(rows + count * _ROW_NBYTES + word, load_i64(rows + place * _ROW_NBYTES + word))


@inner
def _ascend(rows, count):  # type: ignore[no-untyped-def]
    for row in range(1, count):
        at = rows + row * _ROW_NBYTES
        if _order(at - _ROW_NBYTES, at) >= 0:
            return False
    return True


def _keep_last(rows: int, count: int) -> int:
    """Leave the last row of each key, in their order; returns how many.

    Requires: there are ``count`` rows at the address ``rows``, and texts are where they say.
    Source: `yaffjit.jit.emit.wire_entries`.
    """
    if _ascend(rows, count):
        return count
    kept = 0
    if count <= _FEW:
        for row in range(count):
            at = rows + row * _ROW_NBYTES
            is_last = True
            for later in range(row + 1, count):
                if _order(at, rows + later * _ROW_NBYTES) == 0:
                    is_last = False
            if is_last:
                _keep(rows, kept, row)
                kept += 1
        return kept
    # Merged by key and then place: whoever comes before an equal key isn't the last of it.
    source = np.arange(count)
    target = np.empty_like(source)
    width = 1
    while width < count:
        for begin in range(0, count, 2 * width):
            middle, end = min(begin + width, count), min(begin + 2 * width, count)
            left, right = begin, middle
            for at in range(begin, end):
                from_left = left < middle and (
                    right == end
                    or _order(rows + source[left] * _ROW_NBYTES, rows + source[right] * _ROW_NBYTES) <= 0
                )
                if from_left:
                    target[at] = source[left]
                    left += 1
                else:
                    target[at] = source[right]
                    right += 1
        source, target = target, source
        width *= 2
    for at in range(count):
        target[at] = 1
    for at in range(count - 1):
        row, later = source[at], source[at + 1]
        if _order(rows + row * _ROW_NBYTES, rows + later * _ROW_NBYTES) == 0:
            target[row] = 0
    for row in range(count):
        if target[row] != 0:
            _keep(rows, kept, row)
            kept += 1
    return kept


keep_last = cached(_keep_last)
