"""Runs the two passes over rows that fill the arrays of columns."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from yaffjit.columns.faults import fault
from yaffjit.columns.results import Array
from yaffjit.plan.gathering import ROWS, Slot
from yaffjit.pool import run_stretches

if TYPE_CHECKING:
    from yaffjit.rows import Records

# About 10 ms of rows or bytes at most: Ctrl-C is honoured between two runs of the jitted loop.
GATHER_ROWS = 1 << 17
GATHER_BYTES = 1 << 24
FEWEST_ROWS = 256
_FEW_COLUMNS = 8
_CACHE_LINE, _LINES_APART, _PAGE = 64, 3, 4096


def gathered(
    records: Records, paths: Any, given: Mapping[int, Array], threads: int | None = None
) -> list[Array]:
    """The arrays of all slots of paths, filled.

    Args:
        records: the messages.
        paths: `yaffjit.jit.columns.paths.Paths`.
        given: arrays by slot, of the slots' dtypes and lengths, which are filled instead of new ones.
        threads: how many at most; None for all cores.

    Raises:
        NumberOverflowError, NumberError: a value doesn't fit its column's dtype.
        MemoryError: the columns take more memory than this machine has.
    """
    from yaffjit.jit.columns.loops import fill, measure

    wanted = paths.gathering
    rows = len(records)
    arrays: list[Array] = [np.empty(0)] * len(wanted.slots)
    first = [i for i, slot in enumerate(wanted.slots) if not slot.second]
    for i in first:
        slot = wanted.slots[i]
        arrays[i] = given[i] if i in given else _empty(rows + slot.more, slot.dtype, i)
        if slot.more:
            arrays[i][0] = 0
    stretch = GATHER_ROWS // (1 + len(wanted.slots) // _FEW_COLUMNS)
    _run(measure, records, paths, arrays, max(1, stretch), threads)
    if wanted.is_fixed:
        return arrays
    for i in first:
        if wanted.slots[i].more:
            np.cumsum(arrays[i], out=arrays[i])
    nbytes = _make_second(wanted.slots, arrays)
    stretch = min(stretch, rows * GATHER_BYTES // max(1, nbytes))
    _run(fill, records, paths, arrays, max(FEWEST_ROWS, stretch), threads)
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


def _make_second(slots: list[Slot], arrays: list[Array]) -> int:
    """Make the arrays whose lengths are known by now; gives their bytes together."""
    lengths = {
        i: int(arrays[slot.count_of][-1]) + slot.more for i, slot in enumerate(slots) if slot.count_of != ROWS
    }
    nbytes = sum(length * np.dtype(slots[i].dtype).itemsize for i, length in lengths.items())
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if nbytes > memory:
        raise MemoryError(
            f"these columns take {nbytes:,} bytes, and this machine has {memory:,}: read fewer rows at a time"
        )
    for i, length in lengths.items():
        arrays[i] = np.empty(length, slots[i].dtype)
        if slots[i].more:
            arrays[i][0] = 0
    return nbytes


def _run(
    loop: Any, records: Records, paths: Any, arrays: list[Array], stretch: int, threads: int | None
) -> None:
    """Run a loop over all rows."""
    table = np.array([array.__array_interface__["data"][0] for array in arrays], np.int64)
    leaves = paths.gathering.leaves

    def work(begin: int, end: int) -> None:
        records._check()
        row, failed = loop(records, paths, table, begin, end)
        if failed:
            raise fault(records, leaves[failed - 1], row)

    run_stretches(work, len(records), stretch, threads)
