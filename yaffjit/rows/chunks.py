"""Where many messages lie: chunks of 65,536 rows in one buffer, each with its own offsets.

This is the regular form, which jitted code reads: a table of int64, shape (chunks, 2), whose row is the
address of a chunk's data and the address of its int64 offsets. Message i of a chunk is
``data[offsets[i]:offsets[i + 1]]``; every chunk but the last has exactly 65,536 messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from yaffjit.view.buffers import borrow, is_immutable

if TYPE_CHECKING:
    from yaffjit.plan import Plan
    from yaffjit.view.owner import Owner

CHUNK_SHIFT = 16
CHUNK_ROWS = 1 << CHUNK_SHIFT
CHUNK_MASK = CHUNK_ROWS - 1

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Up to 65,536 messages in one stretch of the data."""

    base: int  # position in the data from which the offsets count
    nbytes: int  # of the stretch
    offsets: Int64Array  # (rows + 1,), contiguous


class Chunks:
    """Chunks in one buffer; records, their slices and their views share it.

    Args:
        check: called before much is read, to raise where the data isn't what it was.

    Requires: the data and the offsets don't change, and the offsets don't leave the stretches.
    """

    __slots__ = ("_offsets", "_owner", "_plan", "_table", "check", "chunks", "data", "rows")

    def __init__(
        self,
        plan: Plan,
        data: bytes | memoryview,
        chunks: Sequence[Chunk],
        check: Callable[[], None] | None = None,
    ) -> None:
        self._plan = plan
        self.data = data
        self.chunks = tuple(chunks)
        self.check = check or _nothing_to_check
        self.rows = sum(len(chunk.offsets) - 1 for chunk in chunks)
        # A memoryview hands out one int three times faster than a numpy array.
        self._offsets = [chunk.offsets.data for chunk in chunks]
        self._table: Int64Array | None = None
        self._owner: Owner | None = None

    @classmethod
    def of_array(cls, plan: Plan, data: Any, offsets: Any, given: bool = True) -> Chunks:
        """One buffer and n + 1 offsets into it.

        Args:
            given: somebody else may write to the offsets, so they are copied unless they are immutable.

        Raises:
            ValueError: the offsets aren't ascending integers within the data.
        """
        view = borrow(data)
        offsets = checked_offsets(offsets, len(view), given)
        starts = range(0, max(1, len(offsets) - 1), CHUNK_ROWS)
        return cls(plan, view, [Chunk(0, len(view), offsets[row : row + CHUNK_ROWS + 1]) for row in starts])

    @property
    def owner(self) -> Owner:
        """Keeps the data alive for jitted code."""
        if self._owner is None:
            from yaffjit.view.owner import Owner, making

            with making:
                if self._owner is None:
                    self._owner = Owner(self.data, self._plan)
        return self._owner

    @property
    def table_address(self) -> int:
        """Address of the table, which lives as long as this object."""
        if self._table is None:
            from yaffjit.view.owner import making

            with making:
                if self._table is None:
                    self._table = self._new_table()
        return self._table.ctypes.data

    def _new_table(self) -> Int64Array:
        address = self.owner.address
        table = np.empty((len(self.chunks), 2), np.int64)
        for row, chunk in enumerate(self.chunks):
            table[row] = address + chunk.base, chunk.offsets.ctypes.data
        return table

    def span(self, row: int) -> tuple[int, int]:
        """Where a message starts and ends in the data."""
        number = row >> CHUNK_SHIFT
        base, offsets = self.chunks[number].base, self._offsets[number]
        within = row & CHUNK_MASK
        return base + offsets[within], base + offsets[within + 1]

    def start(self, row: int) -> int:
        """Where a message starts in the data."""
        number = row >> CHUNK_SHIFT
        start: int = self.chunks[number].base + self._offsets[number][row & CHUNK_MASK]
        return start

    def starts(self, start: int, count: int) -> Iterator[tuple[int, memoryview]]:
        """Base and start offsets of the rows, a chunk at a time."""
        for number, first, last in self._within(start, count):
            yield self.chunks[number].base, self._offsets[number][first:last]

    def stretches(self, start: int, count: int) -> Iterator[tuple[int, memoryview, Int64Array]]:
        """First row, data and offsets (one more than rows) of each chunk that the rows touch."""
        data = memoryview(self.data)
        for number, first, last in self._within(start, count):
            chunk = self.chunks[number]
            stretch = data[chunk.base : chunk.base + chunk.nbytes]
            yield (number << CHUNK_SHIFT) + first, stretch, chunk.offsets[first : last + 1]

    def copied(self, start: int, count: int) -> tuple[bytes, Int64Array]:
        """The data and the offsets of the rows alone."""
        parts: list[memoryview] = []
        offsets = [np.zeros(1, np.int64)]
        nbytes = 0
        for _, data, rows in self.stretches(start, count):
            self.check()
            parts.append(data[rows[0] : rows[-1]])
            offsets.append(rows[1:] - rows[0] + nbytes)
            nbytes += len(parts[-1])
        return b"".join(parts), np.concatenate(offsets)

    def nbytes(self, start: int, count: int) -> int:
        """Bytes of the rows together."""
        return sum(
            self._offsets[number][last] - self._offsets[number][first]
            for number, first, last in self._within(start, count)
        )

    def _within(self, start: int, count: int) -> Iterator[tuple[int, int, int]]:
        """Number of each chunk that the rows touch, and which of its rows (from, to)."""
        stop = start + count
        while start < stop:
            number, first = start >> CHUNK_SHIFT, start & CHUNK_MASK
            last = min(CHUNK_ROWS, first + stop - start)
            yield number, first, last
            start += last - first


def _nothing_to_check() -> None:
    """Of data that can't change."""


def checked_offsets(offsets: Any, nbytes: int, given: bool = True) -> Int64Array:
    """Offsets as a contiguous int64 array that nobody else writes to, ascending and within ``nbytes``."""
    array = _integers(offsets)
    if array.dtype == np.uint64 and int(array.max()) > np.iinfo(np.int64).max:
        raise ValueError(f"offset {array.max()} is past the end of the data, which has {nbytes} bytes")
    fits = array.dtype == np.int64 and array.flags.c_contiguous and array.flags.aligned
    # What is checked is our copy: the caller's array may be written to meanwhile.
    if not fits or (given and not is_immutable(array)):
        array = np.array(array, np.int64)
    if array[0] < 0:
        raise ValueError(f"the first offset is {array[0]}: offsets count from 0")
    falls = np.flatnonzero(array[1:] < array[:-1])
    if len(falls):
        row = int(falls[0])
        raise ValueError(f"row {row}: the message ends at {array[row + 1]}, before its start at {array[row]}")
    if array[-1] > nbytes:
        raise ValueError(f"the last offset is {array[-1]}, but the data has {nbytes} bytes")
    return array


def _integers(offsets: Any) -> npt.NDArray[Any]:
    try:
        array = np.asarray(offsets)
    except (ValueError, TypeError):  # lists of lists, foreign objects
        found = type(offsets).__name__
    else:
        if array.ndim == 1 and len(array) and array.dtype.kind in "iu":
            return array
        found = f"{array.dtype} of shape {array.shape}"
    raise ValueError(f"offsets must be a one-dimensional array of n + 1 integers for n messages, not {found}")
