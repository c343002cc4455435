"""The loop under `columns`: all paths of a row are stored at once, row after row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

from yaffjit.jit.paths import store_row
from yaffjit.jit.records import message_at


def _cached(function: Callable[..., Any]) -> Any:
    try:
        return njit(function, cache=True, nogil=True)
    except RuntimeError:  # numba finds no folder for its cache: read-only or homeless containers
        return njit(function, nogil=True)


@_cached
def gather(records, paths, outs, begin, end):  # type: ignore[no-untyped-def]
    """Stores the paths' fields of rows ``begin`` to ``end`` at the same rows of ``outs``.

    Requires: ``0 <= begin``; ``end`` is at most the length of the records and of each array; ``outs`` has
    the dtypes of ``paths.dtypes``.
    Source: `yaffjit.columns`, which checks all of these.
    """
    for row in range(begin, end):
        store_row(message_at(records, row), paths, outs, row)
