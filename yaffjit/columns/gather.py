"""Runs the two passes over rows that fill the arrays of columns.

Texts of rows are measured and filled stretch by stretch, while the messages are in the cache. Their bytes are
fewer than those of the messages, so there is room for them before it's known how many they are; what isn't
written to takes no memory. Elements of lists have no such bound, because they may share what they refer to:
where there are any, all rows are measured before the first one is filled.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from yaffjit.arrays import array_address
from yaffjit.columns.faults import broken, fault
from yaffjit.columns.repeated_keys import drop_repeated_keys
from yaffjit.columns.results import Array
from yaffjit.plan.gathering import ROWS, Slot
from yaffjit.pool import run_stretches

if TYPE_CHECKING:
    from yaffjit.rows import Records

# About 3 ms of rows, 10 ms of bytes at most: Ctrl-C is honoured between two runs of the jitted loop. The
# first run is made before other threads begin.
GATHER_ROWS = 1 << 15
GATHER_BYTES = 1 << 24
FEWEST_ROWS = 256
_FEW_COLUMNS = 8

# Of a length, a dtype and the number of its slot.
MakeArray: TypeAlias = Callable[[int, str, int], Array]

# Messages that are in the cache still when they are read again.
CACHED_BYTES = 1 << 21
_CACHE_LINE, _LINES_APART, _PAGE = 64, 3, 4096


def gathered(
    records: Records,
    paths: Any,
    given: Mapping[int, Array],
    threads: int | None = None,
    first_row: int = 0,
    pool: MakeArray | None = None,
) -> list[Array]:
    """The arrays of all slots of paths, filled.

    Args:
        records: the messages.
        paths: `yaffjit.jit.columns.paths.Paths`.
        given: arrays by slot, of the slots' dtypes and lengths, which are filled instead of new ones.
        threads: how many at most; None for all cores.
        first_row: the number that errors have of the first row.
        pool: makes arrays, which are exactly as long as what they hold; None for numpy's own.

    Raises:
        NumberOverflowError, NumberError: a value doesn't fit its column's dtype.
        VerifyError: protobuf bytes aren't what protobuf accepts; names the row.
        MemoryError: the columns take more memory than this machine has.
    """
    from yaffjit.jit.columns.loops import fill, measure

    wanted = paths.gathering
    rows = len(records)
    empty = _empty if pool is None else pool
    arrays: list[Array] = [np.empty(0)] * len(wanted.slots)
    first = [i for i, slot in enumerate(wanted.slots) if not slot.second]
    for i in first:
        slot = wanted.slots[i]
        arrays[i] = given[i] if i in given else empty(rows + slot.more, slot.dtype, i)
        if slot.more:
            arrays[i][0] = 0
    stretch = max(1, GATHER_ROWS // (1 + len(wanted.slots) // _FEW_COLUMNS))
    if wanted.is_fixed:
        _run(measure, records, paths, arrays, stretch, threads, first_row)
    elif pool is not None or not _fill_texts(records, paths, arrays, stretch, threads):
        _run(measure, records, paths, arrays, stretch, threads, first_row)
        for i in first:
            if wanted.slots[i].more:
                np.cumsum(arrays[i], out=arrays[i])
        nbytes = _make_second(wanted.slots, arrays, pool)
        stretch = min(stretch, rows * GATHER_BYTES // max(1, nbytes))
        _run(fill, records, paths, arrays, max(FEWEST_ROWS, stretch), threads, first_row)
    if records.representation == "protobuf":
        drop_repeated_keys(wanted, arrays)
    for slot, array in zip(wanted.slots, arrays, strict=True):
        if slot.more:  # columns share them
            array.flags.writeable = False
    return arrays


def _empty(length: int, dtype: str, number: int) -> Array:
    """A new array that begins at another place of a page than its neighbours.

    Large arrays begin at the same place, so one row of each would take turns in the same few lines of the
    first cache. Twenty columns in cache took 0.8 of the time.
    """
    shift = number * _LINES_APART * _CACHE_LINE % _PAGE
    return np.empty(shift + length * np.dtype(dtype).itemsize, np.uint8)[shift:].view(dtype)


def _fill_texts(records: Records, paths: Any, arrays: list[Array], stretch: int, threads: int | None) -> bool:
    """Fill all arrays at once, if texts of rows are all that has no fixed width.

    Gives False where that can't be; then the arrays of the first pass have to be filled anew.
    """
    from yaffjit.jit.columns.loops import fill, measure
    from yaffjit.jit.columns.places import default_bytes

    rows = len(records)
    wanted = paths.gathering
    texts = [leaf for leaf in wanted.root.leaves if leaf.what == "text"]
    nbytes = records.nbytes
    rooms = {leaf.values: nbytes + rows * len(default_bytes(leaf.f)) for leaf in texts}
    if wanted.root.loops or sum(rooms.values()) > _memory():
        return False
    try:
        bytes_of = {slot: np.empty(room, np.uint8) for slot, room in rooms.items()}
    except MemoryError:  # so much must not even be asked for
        return False
    for slot, array in bytes_of.items():
        arrays[slot] = array
    table = _table(arrays)
    turns = _Turns()

    def work(begin: int, end: int) -> None:
        try:
            _run_once(measure, records, paths, table, begin, end)
            if not turns.wait(begin):
                return
            for leaf in texts:
                starts = arrays[leaf.starts][begin : end + 1]  # the first one is known by now
                np.cumsum(starts, out=starts)
                if starts[-1] > rooms[leaf.values]:
                    raise _NoRoomError
        except BaseException:
            turns.fail()
            raise
        turns.pass_on(end)
        _run_once(fill, records, paths, table, begin, end)

    cached = rows * CACHED_BYTES // max(1, nbytes)
    try:
        run_stretches(work, rows, max(FEWEST_ROWS, min(stretch, cached)), threads)
    except _NoRoomError:  # messages that nobody verified have texts outside of them
        return False
    for leaf in texts:
        arrays[leaf.values].resize(int(arrays[leaf.starts][-1]), refcheck=False)  # in place
    return True


class _NoRoomError(Exception):
    """Texts have more bytes than all messages."""


class _Turns:
    """What stretches do one after the other in the order of rows, in which they also begin."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._row = 0
        self._failed = False

    def wait(self, row: int) -> bool:
        """Wait until all rows before a stretch's first one are done; False if that has failed."""
        with self._changed:
            self._changed.wait_for(lambda: self._failed or self._row == row)
            return not self._failed

    def pass_on(self, row: int) -> None:
        with self._changed:
            self._row = row
            self._changed.notify_all()

    def fail(self) -> None:
        with self._changed:
            self._failed = True
            self._changed.notify_all()


def _make_second(slots: list[Slot], arrays: list[Array], pool: MakeArray | None) -> int:
    """Make the arrays whose lengths are known by now; gives their bytes together."""
    lengths = {
        i: int(arrays[slot.count_of][-1]) + slot.more for i, slot in enumerate(slots) if slot.count_of != ROWS
    }
    nbytes = sum(length * np.dtype(slots[i].dtype).itemsize for i, length in lengths.items())
    memory = _memory()
    if nbytes > memory:
        raise MemoryError(
            f"these columns take {nbytes:,} bytes, and this machine has {memory:,}: read fewer rows at a time"
        )
    for i, length in lengths.items():
        dtype = slots[i].dtype
        arrays[i] = np.empty(length, dtype) if pool is None else pool(length, dtype, i)
        if slots[i].more:
            arrays[i][0] = 0
    return nbytes


def _memory() -> int:
    """Bytes of this machine's memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _table(arrays: list[Array]) -> Array:
    """The addresses of arrays."""
    return np.array([array_address(array) for array in arrays], np.int64)


def _run(
    loop: Any,
    records: Records,
    paths: Any,
    arrays: list[Array],
    stretch: int,
    threads: int | None,
    first_row: int,
) -> None:
    """Run a loop over all rows."""
    table = _table(arrays)
    run_stretches(
        lambda begin, end: _run_once(loop, records, paths, table, begin, end, first_row),
        *(len(records), stretch, threads),
    )


def _run_once(
    loop: Any, records: Records, paths: Any, table: Array, begin: int, end: int, first_row: int = 0
) -> None:
    records._check()
    row, failed = loop(records, paths, table, begin, end)
    if failed < 0:
        raise broken(records, row, first_row)
    if failed:
        raise fault(records, paths.gathering.leaves[failed - 1].path, row, first_row)
