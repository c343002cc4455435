"""Where many messages lie, in the regular form: chunks of any number of rows, each with its own offsets.

Message i of a chunk is ``data[base + offsets[i]:base + offsets[i + 1]]``. Jitted code reads two tables of
int64. One has three words a chunk: the address of its first data; that of its offsets, as if they began with
the first row of all, so that rows needn't be counted from the chunk; and the row that it ends before. The
other has for every 65,536 rows the address of the first chunk that holds one; from there a row's chunk
is searched forwards. Before these it has the first two words of a chunk that is the only one, or zeros.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from yaffjit.arrays import array_address
from yaffjit.plan.limits import INT64_MAX
from yaffjit.plan.pages import CHUNK_WORDS, PAGE_ROWS
from yaffjit.rows.memory import Again, Int64Array, Memory
from yaffjit.view.buffers import Data, borrow, is_immutable

if TYPE_CHECKING:
    from yaffjit.plan import Plan
    from yaffjit.view.owner import Owner

CHUNK_ROWS = PAGE_ROWS  # of each chunk but the last in our own files; any other number works
# A search passes over so many chunks at most; where there are more, rows are scattered.
MOST_CHUNKS_OF_A_PAGE = 16


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Messages in one stretch of a buffer.

    Attributes:
        data: the buffer.
        base: position in the data from which the offsets count.
        nbytes: of the stretch.
        offsets: int64, shape (rows + 1,), contiguous.
        file, row: what has these rows, and the first one's row there.
        bitmap, bit: one bit a row from that bit on, the lowest of a byte first, set where a row isn't null; a
            null row holds the default instance. None where no row is null.
    """

    data: Data
    base: int
    nbytes: int
    offsets: Int64Array
    file: RowFile | None = None
    row: int = 0
    bitmap: npt.NDArray[np.uint8] | None = None
    bit: int = 0

    @property
    def rows(self) -> int:
        return len(self.offsets) - 1

    def part(self, first: int, last: int) -> Chunk:
        """Its rows from ``first`` to ``last``."""
        if (first, last) == (0, self.rows):
            return self
        offsets = self.offsets[first : last + 1]
        return Chunk(
            *(self.data, self.base, self.nbytes, offsets, self.file, self.row + first),
            *(self.bitmap, self.bit + first),
        )

    def valid(self, first: int, last: int) -> npt.NDArray[np.bool_]:
        """Which of its rows from ``first`` to ``last`` aren't null."""
        if self.bitmap is None:
            return np.ones(last - first, np.bool_)
        begin, end = self.bit + first, self.bit + last
        bits = np.unpackbits(self.bitmap[begin // 8 : (end + 7) // 8], bitorder="little")
        return bits[begin % 8 : begin % 8 + last - first].view(np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class RowFile:
    """What has rows on disk.

    Attributes:
        again: makes records of all its rows, in another process too.
        chunks: all its rows.
    """

    again: Again
    chunks: tuple[Chunk, ...]


class Chunks:
    """Chunks in order; records, their slices and their views share it.

    Args:
        chunks: in any number of buffers, of any number of rows.
        check: called before much is read, to raise where the data isn't what it was.
        again: a function and its arguments; in another process too it makes records with the rows of these
            chunks. Then pickles hold it instead of the bytes.
        memory: of the chunks, if there is one.

    Attributes:
        keys_address: of what rows are looked up by (`yaffjit.kernels.keys`), which lives as long as the
            memory's checks; 0 where nothing is.
        crowded: whether there are so many small chunks that rows had better be scattered.
        has_nulls: whether some row is null.

    Requires: the data and the offsets don't change, and the offsets don't leave the stretches.
    """

    __slots__ = (
        "_ends",
        "_offsets",
        "_tables",
        "chunks",
        "crowded",
        "has_nulls",
        "keys_address",
        "memory",
        "rows",
    )

    scattered = False

    def __init__(
        self,
        plan: Plan,
        chunks: Sequence[Chunk],
        check: Callable[[], None] | None = None,
        again: Again | None = None,
        memory: Memory | None = None,
    ) -> None:
        firsts: list[int] = np.cumsum([0, *(chunk.rows for chunk in chunks)]).tolist()
        self._ends = firsts[1:]
        self.rows = firsts.pop()
        if again is not None:
            file = RowFile(again, tuple(chunks))
            chunks = [
                Chunk(
                    *(chunk.data, chunk.base, chunk.nbytes, chunk.offsets, file, row), chunk.bitmap, chunk.bit
                )
                for chunk, row in zip(chunks, firsts, strict=True)
            ]
        self.chunks = tuple(chunks)
        self.has_nulls = any(chunk.bitmap is not None for chunk in chunks)
        # A memoryview hands out one int three times faster than a numpy array.
        self._offsets = [chunk.offsets.data for chunk in chunks]
        if memory is None:
            buffers = {id(chunk.data): chunk.data for chunk in chunks}
            checks = () if check is None else (check,)
            memory = Memory(plan, list(buffers.values()) or [b""], checks=checks)
        self.memory = memory
        self._tables: tuple[Int64Array, Int64Array] | None = None
        self.keys_address = 0
        self.crowded = len(chunks) > MOST_CHUNKS_OF_A_PAGE and self._is_crowded()

    @classmethod
    def of_array(cls, plan: Plan, data: Any, offsets: Any, given: bool = True) -> Chunks:
        """One buffer and n + 1 offsets into it.

        Args:
            given: somebody else may write to the offsets, so they are copied unless they are immutable.

        Raises:
            ValueError: the offsets aren't ascending integers within the data.
        """
        view = borrow(data)
        return cls(plan, [Chunk(view, 0, len(view), checked_offsets(offsets, len(view), given))])

    def check(self) -> None:
        """Raise where the data isn't what it was."""
        self.memory.check()

    @property
    def owner(self) -> Owner:
        """Keeps the data alive for jitted code."""
        return self.memory.owner

    def _is_crowded(self) -> bool:
        numbers = [*self._of_pages(), len(self.chunks) - 1]
        return max(map(int.__sub__, numbers[1:], numbers), default=0) >= MOST_CHUNKS_OF_A_PAGE

    def ready(self, start: int, count: int) -> None:
        """Called before the rows are found through the table: raises where they aren't well-formed."""

    def ready_rows(self, rows: Int64Array) -> None:
        """As `ready`, of some rows in any order."""

    @property
    def table_address(self) -> int:
        """Address of the table of pages, which lives as long as this object."""
        if self._tables is None:
            from yaffjit.view.owner import making

            with making:
                if self._tables is None:
                    self._tables = self._new_tables()
        return array_address(self._tables[0])

    def _new_tables(self) -> tuple[Int64Array, Int64Array]:
        """Of pages and of chunks. The offsets themselves aren't read: a file's may not be loaded yet."""
        from yaffjit.view.owner import address_of

        addresses = {id(data): address_of(data) for data in self.memory.data}
        table = np.empty((len(self.chunks), CHUNK_WORDS), np.int64)
        first = 0
        for number, (chunk, end) in enumerate(zip(self.chunks, self._ends, strict=True)):
            offsets_at = array_address(chunk.offsets)
            table[number] = addresses[id(chunk.data)] + chunk.base, offsets_at - 8 * first, end
            first = end
        table[-1:, 2] = INT64_MAX  # no row is beyond the last chunk
        address = array_address(table)
        pages = address + 8 * CHUNK_WORDS * np.array(self._of_pages(), np.int64)
        only = table[0, :2] if len(table) == 1 else np.zeros(2, np.int64)
        # Before the table's own words.
        return np.concatenate(([self.keys_address], only, pages))[1:], table

    def _of_pages(self) -> list[int]:
        """The number of the chunk that holds the first row of each page."""
        numbers: list[int] = np.searchsorted(
            self._ends, np.arange(0, self.rows, PAGE_ROWS), side="right"
        ).tolist()
        return numbers

    def _find(self, row: int) -> tuple[Chunk, memoryview, int]:
        """The chunk of a row, its offsets, and which of its rows that is."""
        if len(self.chunks) == 1:
            return self.chunks[0], self._offsets[0], row
        number = bisect.bisect_right(self._ends, row)
        return self.chunks[number], self._offsets[number], row - (self._ends[number - 1] if number else 0)

    def start(self, row: int) -> tuple[Data, int]:
        """The data that a message lies in, and where it starts there."""
        chunk, offsets, within = self._find(row)
        return chunk.data, chunk.base + offsets[within]

    def span(self, row: int) -> tuple[Data, int, int]:
        """The data that a message lies in, and where it starts and ends there."""
        chunk, offsets, within = self._find(row)
        return chunk.data, chunk.base + offsets[within], chunk.base + offsets[within + 1]

    def spans(self, start: int, count: int) -> Iterator[tuple[Data, int, int]]:
        """`span` of each row."""
        for number, first, last in self._within(start, count):
            chunk, offsets = self.chunks[number], self._offsets[number]
            data, base, begin = chunk.data, chunk.base, offsets[first]
            for end in offsets[first + 1 : last + 1]:
                yield data, base + begin, base + end
                begin = end

    def valid(self, start: int, count: int) -> npt.NDArray[np.bool_]:
        """Which rows aren't null."""
        parts = [self.chunks[number].valid(first, last) for number, first, last in self._within(start, count)]
        return np.concatenate(parts) if parts else np.ones(0, np.bool_)

    def valid_rows(self, rows: Int64Array) -> npt.NDArray[np.bool_]:
        """Which of some rows in any order aren't null."""
        found = np.ones(len(rows), np.bool_)
        for chunk, mine, within in self.groups(rows) if self.has_nulls else ():
            if chunk.bitmap is not None:
                bits = within + chunk.bit
                found[mine] = chunk.bitmap[bits >> 3] >> (bits & 7) & 1
        return found

    def numbers(self, rows: Int64Array) -> Int64Array:
        """The number of each row's chunk."""
        return np.searchsorted(self._ends, rows, side="right")

    def groups(self, rows: Int64Array) -> Iterator[tuple[Chunk, Int64Array, Int64Array]]:
        """Each chunk that rows in any order touch, which of them lie there, and where within it."""
        if not len(rows):
            return
        numbers = self.numbers(rows)
        order = np.argsort(numbers, kind="stable")
        for mine in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1):
            number = int(numbers[mine[0]])
            chunk = self.chunks[number]
            yield chunk, mine, rows[mine] - (self._ends[number] - chunk.rows)

    def payload(self, row: int) -> bytes | None:
        """The bytes of a message; None of a null row."""
        if self.has_nulls and not self.valid(row, 1)[0]:
            return None
        data, start, stop = self.span(row)
        return bytes(data[start:stop])

    def starts(self, start: int, count: int) -> Iterator[tuple[Data, int, memoryview]]:
        """Data, base and start offsets of the rows, a chunk at a time."""
        for number, first, last in self._within(start, count):
            chunk = self.chunks[number]
            yield chunk.data, chunk.base, self._offsets[number][first:last]

    def stretches(self, start: int, count: int) -> Iterator[tuple[int, memoryview, Int64Array]]:
        """First row, data and offsets (one more than rows) of each chunk that the rows touch."""
        for number, first, last in self._within(start, count):
            chunk = self.chunks[number]
            stretch = memoryview(chunk.data)[chunk.base : chunk.base + chunk.nbytes]
            yield self._ends[number] - chunk.rows + first, stretch, chunk.offsets[first : last + 1]

    def parts(self, start: int, count: int) -> list[Chunk]:
        """The rows as chunks of their own."""
        return [self.chunks[number].part(first, last) for number, first, last in self._within(start, count)]

    def nbytes(self, start: int, count: int) -> int:
        """Bytes of the rows together."""
        return sum(
            self._offsets[number][last] - self._offsets[number][first]
            for number, first, last in self._within(start, count)
        )

    def _within(self, start: int, count: int) -> Iterator[tuple[int, int, int]]:
        """Number of each chunk that the rows touch, and which of its rows (from, to)."""
        stop = start + count
        number = bisect.bisect_right(self._ends, start)
        while start < stop:
            end = self._ends[number]
            if end > start:
                first = start - (end - self.chunks[number].rows)
                last = first + min(end, stop) - start
                yield number, first, last
                start += last - first
            number += 1


def checked_offsets(offsets: Any, nbytes: int, given: bool = True, first_row: int = 0) -> Int64Array:
    """Offsets as a contiguous int64 array that nobody else writes to, ascending and within ``nbytes``.

    Errors count rows from ``first_row``.
    """
    array = _integers(offsets)
    if array.dtype == np.uint64 and int(array.max()) > INT64_MAX:
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
        raise ValueError(
            f"row {first_row + row}: the message ends at {array[row + 1]}, before its start at {array[row]}"
        )
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
