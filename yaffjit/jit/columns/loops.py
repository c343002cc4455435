"""The loops under `columns`: all paths of a row are followed at once, row after row."""

from __future__ import annotations

from yaffjit.jit.columns.rows import fill_row, measure_row
from yaffjit.jit.records import message_at, prefetch_at
from yaffjit.kernels.cached import cached
from yaffjit.kernels.memory import data_address

# Rows between the one that is read and the one that is fetched meanwhile. Measured on banners of 312 bytes in
# memory: 0.7 to 0.8 of the time without.
ROWS_AHEAD = 32


def _measure(records, paths, table, begin, end):  # type: ignore[no-untyped-def]
    """The first pass over rows ``begin`` to ``end``.

    Returns:
        (-1, 0), or the first row with a value that doesn't fit, and what `measure_row` gave.

    Requires: ``0 <= begin``; ``end`` is at most the length of the records; ``table`` as `measure_row` does.
    Source: `yaffjit.columns`, which makes or checks all arrays.
    """
    address = data_address(table)
    for row in range(begin, end):
        prefetch_at(records, min(row + ROWS_AHEAD, end - 1))
        failed = measure_row(message_at(records, row), paths, address, row)
        if failed:
            return row, failed
    return -1, 0


def _fill(records, paths, table, begin, end):  # type: ignore[no-untyped-def]
    """The second pass, as `_measure` is the first."""
    address = data_address(table)
    for row in range(begin, end):
        prefetch_at(records, min(row + ROWS_AHEAD, end - 1))
        failed = fill_row(message_at(records, row), paths, address, row)
        if failed:
            return row, failed
    return -1, 0


measure = cached(_measure, nogil=True)
fill = cached(_fill, nogil=True)
