"""Columns from many like objects of the universal tagged format, in one pass, without Python's objects.

The objects are the items of one collection, or documents of their own. A pass stops where a column has no
more room, and goes on from there with larger ones: none is made for what a document only claims to have.
"""

from __future__ import annotations

from typing import Any

from numba import int64

from yaffjit.kernels.cached import cached, compiled
from yaffjit.kernels.memory import load_i64, store_i64
from yaffjit.kernels.universal_columns import (
    DONE,
    MORE_ROWS,
    MORE_TEXT,
    NO_COLLECTION,
    NO_OBJECT,
    ROW,
    WORD,
    WRONG,
    begin_again,
    count_texts,
    read_object,
)
from yaffjit.kernels.universal_like import BLOCK, read_like
from yaffjit.kernels.universal_scan import COMPACT, ONE_DEEPER, next_code

_OBJECT_PENDING = 16 + 1


def fill_from_collection(
    data: int,
    nbytes: int,
    flags: int,
    columns: int,
    count: int,
    capacity: int,
    layout: int,
    progress: int,
) -> int:
    """Read the items of a document that is a collection, from where the progress says.

    Args:
        layout: address of the words of one that objects may be like, or 0.

    Requires: ``nbytes`` readable bytes at ``data``; columns with room for ``capacity`` rows; the words of a
    progress, whose row isn't above that.
    """
    compact = (flags & COMPACT) != 0
    deepest = (flags >> 8) & 0xFFF
    texts = count_texts(columns, count)
    word = load_i64(progress + 8 * WORD)
    row = load_i64(progress + 8 * ROW)
    pos = word >> 5
    half = word & 31
    if word == 0:
        code, pos, half = next_code(data, nbytes, pos, half, compact)
        if code != 3:
            return NO_COLLECTION
    aligned = _OBJECT_PENDING if compact else 0
    while True:
        if layout != 0 and half == aligned:
            found, pos = read_like(data, nbytes, pos, flags, columns, layout, row, capacity - row)
            row += found
            if found == BLOCK:
                continue
        store_i64(progress + 8 * WORD, (pos << 5) | half)
        store_i64(progress + 8 * ROW, row)
        code, pos, half = next_code(data, nbytes, pos, half, compact)
        if code == 4:
            return DONE if pos == nbytes and half & 15 == 0 else WRONG
        if code != 1:
            return WRONG if code < 0 or code == 2 else NO_OBJECT
        if deepest < 2:
            return WRONG
        if row == capacity:
            return MORE_ROWS
        ended, pos, half = read_object(
            data, nbytes, pos, half, flags + 2 * ONE_DEEPER, columns, count, texts, row, progress
        )
        if ended != DONE:
            if ended == MORE_TEXT:
                begin_again(columns, count, row)
            return ended
        row += 1


def fill_from_documents(
    data: int, offsets: int, rows: int, flags: int, columns: int, count: int, progress: int
) -> int:
    """Read documents that are objects, from the row that the progress says.

    Requires: readable bytes at ``data`` where ``rows + 1`` ascending offsets say; columns with room for as
    many rows.
    """
    compact = (flags & COMPACT) != 0
    texts = count_texts(columns, count)
    row = load_i64(progress + 8 * ROW)
    while row < rows:
        store_i64(progress + 8 * ROW, row)
        begin = load_i64(offsets + 8 * row)
        nbytes = load_i64(offsets + 8 * row + 8) - begin
        code, pos, half = next_code(data + begin, nbytes, 0, 0, compact)
        if code != 1:
            return WRONG if code < 0 or code == 2 or code == 4 else NO_OBJECT
        ended, pos, half = read_object(
            *(data + begin, nbytes, pos, half, flags + ONE_DEEPER, columns, count, texts, row, progress)
        )
        if ended == DONE and (pos != nbytes or half & 15 != 0):
            ended = WRONG
        if ended != DONE:
            if ended == MORE_TEXT:
                begin_again(columns, count, row)
            return ended
        row += 1
    store_i64(progress + 8 * ROW, row)
    return DONE


class Kernels:
    """The passes, compiled or from disk."""

    def __init__(self) -> None:
        self.from_collection: Any = compiled(cached(fill_from_collection, nogil=True), (int64,) * 8)
        self.from_documents: Any = compiled(cached(fill_from_documents, nogil=True), (int64,) * 7)
