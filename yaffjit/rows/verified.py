"""Checks all messages of records, a stretch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from yaffjit.plan.pages import PAGE_ROWS
from yaffjit.progress import progress_bar
from yaffjit.rows.chunks import Chunks
from yaffjit.rows.memory import Int64Array
from yaffjit.rows.places import Places

if TYPE_CHECKING:
    from yaffjit.plan.model import MessagePlan

# Scattered messages are copied together by so many bytes at a time; 10 ms of checking.
_BLOCK_NBYTES = 16 << 20


def verify_rows(
    mp: MessagePlan,
    store: Chunks | Places,
    start: int,
    count: int,
    representation: str,
    progress: bool | None = None,
) -> bool:
    """Check rows of a store; whether all maps of YaFF messages ascend.

    Raises:
        VerifyError: of the first row that is bad, which counts from ``start``.
    """
    check = _verify_yaff if representation == "yaff" else _verify_protobuf
    with progress_bar(f"verify {mp.full_name}", count, "rows", progress) as bar:
        return check(mp, store, start, count, bar.update)


def _verify_yaff(mp: MessagePlan, store: Chunks | Places, start: int, count: int, update: Any) -> bool:
    from yaffjit.codec.verify import verify_many, verify_places

    ascending = True
    if isinstance(store, Places):
        for first in range(0, count, PAGE_ROWS):
            store.check()
            places = store.table[start + first : start + min(first + PAGE_ROWS, count)]
            ascending &= verify_places(mp, places, progress=update, first_row=first)
        return ascending
    for row, data, offsets in store.stretches(start, count):
        store.check()
        ascending &= verify_many(mp, data, offsets, progress=update, first_row=row - start)
    return ascending


def _verify_protobuf(mp: MessagePlan, store: Chunks | Places, start: int, count: int, update: Any) -> bool:
    from yaffjit.codec.verify_protobuf import verify_protobuf_many

    for row, data, offsets in _stretches(store, start, count):
        verify_protobuf_many(mp.plan, mp.full_name, data, offsets, row - start)
        update(len(offsets) - 1)
    return False


def _stretches(store: Chunks | Places, start: int, count: int) -> Iterator[tuple[int, Any, Int64Array]]:
    """First row, data and offsets of stretches; those of scattered rows are copies, null rows are empty."""
    if isinstance(store, Chunks):
        for row, data, offsets in store.stretches(start, count):
            for first in range(0, len(offsets) - 1, PAGE_ROWS):
                store.check()
                yield row + first, data, offsets[first : first + PAGE_ROWS + 1]
        return
    row, end = start, start + count
    while row < end:
        ends = np.cumsum(store.table[row : min(row + PAGE_ROWS, end), 1])
        rows = max(1, int(np.searchsorted(ends, _BLOCK_NBYTES, side="right")))
        store.check()
        payloads = (store.payload(each) or b"" for each in range(row, row + rows))
        yield row, b"".join(payloads), np.concatenate((np.zeros(1, np.int64), ends[:rows]))
        row += rows
