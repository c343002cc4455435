"""Protobuf bytes to YaFF bytes, many messages at once, as machine code that works for all schemas.

A row is done in three passes: `scan` checks the bytes and writes a tape of the fields, `gather` turns the
tape into objects and knows then how large the buffer is in either form, `emit` writes it. What a row needs
besides is bounded by its own bytes and by what it writes; where that isn't there, the row is returned and
is to be tried again with more.
"""

from __future__ import annotations

from typing import Any

from numba import int64

from yaffjit.kernels import transcode_state as state
from yaffjit.kernels import wire_scan as tape
from yaffjit.kernels.cached import cached, compiled, inner, is_kept
from yaffjit.kernels.memory import load_i64, store_i64
from yaffjit.kernels.transcode_emit import emit
from yaffjit.kernels.transcode_gather import gather
from yaffjit.kernels.wire import MAX_SIZE
from yaffjit.kernels.wire_scan import scan
from yaffjit.plan import wire_tables as tables

_NUMBER = 8 * tables.NUMBER
_SLOT = 8 * tables.SLOT
_MESSAGE_ROW = 8 * tables.MESSAGE_ROW
_HASH = -0x61C8864680B583EB  # 2**64 divided by the golden ratio
# Places in SHARED for each entry of a tape: a pair of a map has two texts, and half of them stay free.
_SHARED_PER_ENTRY = 4


@inner
def _stop(request: int, status: int, needed: int) -> int:
    store_i64(request + state.STATUS, status)
    store_i64(request + state.NEEDED, needed)
    return 0


@inner
def _count(request: int, message: int, number: int) -> None:
    """Counts an occurrence of a number of a message, by its ROW."""
    key = (message << 32 | number) + 1
    counts = load_i64(request + state.COUNTS)
    mask = load_i64(request + state.COUNTS_COUNT) - 1
    i = ((key * _HASH) >> 20) & mask
    while True:
        known = load_i64(counts + 16 * i)
        if known == 0:
            used = load_i64(request + state.COUNTS_USED)
            if 2 * used > mask:
                store_i64(request + state.COUNTS_LEFT_OUT, load_i64(request + state.COUNTS_LEFT_OUT) + 1)
                return
            store_i64(request + state.COUNTS_USED, used + 1)
            store_i64(counts + 16 * i, key)
        if known == 0 or known == key:
            store_i64(counts + 16 * i + 8, load_i64(counts + 16 * i + 8) + 1)
            return
        i = (i + 1) & mask


@inner
def _count_uncarried(request: int, entry: int, end: int) -> None:
    """Counts what is on the tape and isn't carried."""
    while entry < end:
        record = load_i64(entry)
        if load_i64(record + _SLOT) < 0:
            number = load_i64(record + _NUMBER)
            if number == 0:
                number = load_i64(entry + tape.VALUE)
            _count(request, load_i64(record + _MESSAGE_ROW), number)
        entry += tape.ENTRY_NBYTES


@inner
def _row(request: int, data: int, nbytes: int, row: int) -> int:
    """Transcodes one message; 0 if it isn't done, for which there's a status."""
    if nbytes > MAX_SIZE:
        return _stop(request, state.PLAIN, 0)
    work = (load_i64(request + state.WORK) + 7) & -8
    work_end = (load_i64(request + state.WORK) + load_i64(request + state.WORK_NBYTES)) & -8
    room = work_end - work
    table = load_i64(request + state.TABLE)
    floor = load_i64(request + state.DATA)
    end = scan(table, data, nbytes, floor, work, work + room // tape.ENTRY_NBYTES * tape.ENTRY_NBYTES)
    if end < 0:
        return _stop(request, state.MALFORMED if end == tape.MALFORMED else state.NEEDS_WORK, 0)
    uncarried = end & 1
    end -= uncarried
    places = 8
    while places < _SHARED_PER_ENTRY * ((end - work) // tape.ENTRY_NBYTES + 1):
        places *= 2
    if places > load_i64(request + state.SHARED_COUNT):
        return _stop(request, state.NEEDS_SHARED, places)
    store_i64(request + state.MASK, places - 1)
    store_i64(request + state.GENERATION, load_i64(request + state.GENERATION) + 1)
    store_i64(request + state.TOP, end)
    store_i64(request + state.SLOTS, work_end)
    store_i64(request + state.FLAT_NBYTES, 0)
    store_i64(request + state.SPARSE_NBYTES, 0)
    store_i64(request + state.LAST, 0)
    root = gather(request, work, end)
    if root < 0:
        return _stop(request, state.NEEDS_WORK if root == state.NO_ROOM else state.PLAIN, 0)
    mode = load_i64(request + state.MODE)
    size = load_i64(request + state.FLAT_NBYTES) + 4
    sparse_size = load_i64(request + state.SPARSE_NBYTES) + 4
    form = state.FLAT_POS
    if (
        mode == state.WRITE_SPARSE
        or (mode == state.WRITE_AUTO and 10 * (size - sparse_size) > size)
        or (mode == state.WRITE_SMALLEST and sparse_size < size)
    ):
        form = state.SPARSE_POS
    if max(size, sparse_size) > load_i64(request + state.MOST):
        return _stop(request, state.PLAIN, 0)
    if form == state.SPARSE_POS:
        size = sparse_size
    used = load_i64(request + state.OUT_USED)
    missing = used + size - load_i64(request + state.OUT_NBYTES)
    if missing > 0:
        return _stop(request, state.NEEDS_OUT, missing)
    emit(request, root, load_i64(request + state.OUT) + used, size, form)
    store_i64(request + state.OUT_USED, used + size)
    if uncarried:
        _count_uncarried(request, work, end)
    return 1


def _transcode_rows(request: int, first: int, last: int) -> int:
    """Transcodes the rows ``first`` to ``last - 1``; the row that isn't done, else ``last``.

    Requires: the address of a request as `transcode_state` has it, with offsets of ``last`` rows, and room in
    OUT_OFFSETS for one more than these.
    """
    offsets = load_i64(request + state.OFFSETS)
    out_offsets = load_i64(request + state.OUT_OFFSETS)
    data = load_i64(request + state.DATA)
    data_nbytes = load_i64(request + state.DATA_NBYTES)
    for row in range(first, last):
        begin = load_i64(offsets + 8 * row)
        end = load_i64(offsets + 8 * row + 8)
        if begin < 0 or end < begin or end > data_nbytes:
            _stop(request, state.BAD_OFFSETS, 0)
            return row
        if not _row(request, data + begin, end - begin, row):
            return row
        store_i64(out_offsets + 8 * row + 8, load_i64(request + state.OUT_USED))
    store_i64(request + state.STATUS, state.DONE)
    return last


def _scan_rows(table: int, data: int, nbytes: int, offsets: int, first: int, last: int) -> int:
    """The first of the rows ``first`` to ``last - 1`` that protobuf doesn't accept, else ``last``.

    Requires: the address of a table; ``nbytes`` readable bytes at ``data``; ``last + 1`` int64 at
    ``offsets``.
    """
    for row in range(first, last):
        begin = load_i64(offsets + 8 * row)
        end = load_i64(offsets + 8 * row + 8)
        if begin < 0 or end < begin or end > nbytes or end - begin > MAX_SIZE:
            return row
        if scan(table, data + begin, end - begin, data, 0, 0) < 0:
            return row
    return last


_ROWS_SIGNATURE = (int64, int64, int64)
_SCAN_SIGNATURE = (int64, int64, int64, int64, int64, int64)


class Kernel:
    """The compiled transcoder; compiling it takes ten seconds and more, loading it from disk some tenths."""

    def __init__(self) -> None:
        self.run: Any = compiled(_rows, _ROWS_SIGNATURE)

    @staticmethod
    def is_kept() -> bool:
        """Whether it's in numba's cache on disk."""
        return is_kept(_rows, _ROWS_SIGNATURE)


class ScanKernel:
    """The compiled check alone."""

    def __init__(self) -> None:
        self.scan_rows: Any = compiled(_scan, _SCAN_SIGNATURE)

    @staticmethod
    def is_kept() -> bool:
        """Whether it's in numba's cache on disk."""
        return is_kept(_scan, _SCAN_SIGNATURE)


_rows = cached(_transcode_rows, nogil=True)
_scan = cached(_scan_rows, nogil=True)
