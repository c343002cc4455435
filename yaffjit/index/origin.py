"""Mapped files that know which rows of which index they hold: views go to other processes by their rows.

A view has nothing of its index but the bytes. So what is known of them is kept with the map, without anything
that would keep the map: such a cycle goes through arrays, and would never be collected.
"""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from yaffjit.index.blocks import BatchHeader

# How many indexes stay open whose views were unpickled: each view that comes alone would open one anew.
KEPT = 4


class MappedFile(mmap.mmap):
    """A file of an index.

    Attributes:
        origin: what rows it holds; None until it's part of an opened index.
    """

    origin: Origin | None = None


class Origin:
    """The rows of a file; it pickles as the records of its index.

    Args:
        again: a function and its arguments, by which another process opens the index.
        message: full name of the messages' type.
        batches: of the file.
        first_row: of the file, in the index.

    Attributes:
        message: as given.
    """

    def __init__(
        self,
        again: tuple[Callable[..., Any], tuple[Any, ...]],
        message: str,
        batches: Sequence[BatchHeader],
        first_row: int,
    ) -> None:
        self._again = again
        self.message = message
        self._batches = [header for header in batches if header.rows]
        self._first_rows = np.cumsum([first_row, *(header.rows for header in self._batches)]).tolist()
        self._starts = np.array([header.body + header.buffers[2][0] for header in self._batches], np.int64)

    def __reduce__(self) -> Any:
        return _records_of_views, self._again

    def row_at(self, mapped: MappedFile, pos: int, empty: bool) -> tuple[int, int, int] | None:
        """The row whose message has a position, and where that begins and ends; None if there is none.

        ``empty``: the first message that begins there, which has no bytes.
        """
        number = int(np.searchsorted(self._starts, pos, side="right")) - 1
        if number < 0:
            return None
        header, start = self._batches[number], int(self._starts[number])
        # Not always aligned, which the search doesn't mind.
        offsets = np.frombuffer(mapped, np.int64, header.rows + 1, header.body + header.buffers[1][0])
        row = int(np.searchsorted(offsets, pos - start, side="left" if empty else "right")) - (not empty)
        if not 0 <= row < header.rows:
            return None
        return self._first_rows[number] + row, start + int(offsets[row]), start + int(offsets[row + 1])


_kept: deque[Any] = deque(maxlen=KEPT)


def _records_of_views(again: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The records that unpickled views are rows of."""
    made = again(*args)
    files = made._files
    if files in _kept:
        _kept.remove(files)
    _kept.append(files)
    return made
