"""Where many messages lie, in the scattered form: the address and bytes of each, in any buffers.

Jitted code reads the same table as Python: int64, shape (rows, 2). A null row has address 0 and reads as the
default instance.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from yaffjit.arrays import array_address
from yaffjit.rows.chunks import Chunks, RowFile
from yaffjit.rows.memory import Int64Array, Memory

if TYPE_CHECKING:
    from yaffjit.view.buffers import Data
    from yaffjit.view.owner import Owner

# From so many rows on a compiled loop looks them up; numba must be loaded for it.
COMPILED_ROWS = 5000
ARRAY_ROWS = 50  # from so many on numpy does, a chunk at a time: 0.1 us a row, where Python takes 1 us


class Places:
    """Messages anywhere in memory; records, their slices and their views share it.

    Args:
        table: int64, shape (rows, 2), C-contiguous: the address of each message, or 0, and its bytes.
        memory: the buffers that the addresses lie in.
        files: in which some of the addresses may lie, for pickles.

    Requires: each message lies in one of the buffers, and neither they nor the table change.
    """

    __slots__ = ("_addresses", "files", "memory", "nulls", "rows", "table", "table_address")

    scattered = True

    def __init__(self, table: Int64Array, memory: Memory, files: Sequence[RowFile] = ()) -> None:
        self.table = table
        self.memory = memory
        self.files = tuple(files)
        self.rows = len(table)
        self.nulls = self.rows - int(np.count_nonzero(table[:, 0]))
        self.table_address: int = array_address(table)
        self._addresses = table.data

    @classmethod
    def of_chunks(cls, chunks: Chunks, start: int, count: int) -> Places:
        """All rows of a stretch."""
        table = np.empty((count, 2), np.int64)
        row = 0
        addresses = _addresses(chunks)
        for chunk in chunks.parts(start, count):
            part = table[row : row + chunk.rows]
            np.add(chunk.offsets[:-1], addresses[id(chunk.data)] + chunk.base, out=part[:, 0])
            np.subtract(chunk.offsets[1:], chunk.offsets[:-1], out=part[:, 1])
            row += chunk.rows
        made = cls(table, chunks.memory, _files(chunks))
        return made.masked(chunks.valid(start, count)) if chunks.has_nulls else made

    @classmethod
    def of_rows(cls, chunks: Chunks, rows: Int64Array) -> Places:
        """Some rows in any order, each within the chunks."""
        table = np.empty((len(rows), 2), np.int64)
        chunks.ready_rows(rows)
        if len(rows) < ARRAY_ROWS:
            addresses = _addresses(chunks)
            for place, row in enumerate(rows.tolist()):
                data, start, stop = chunks.span(row)
                table[place] = addresses[id(data)] + start, stop - start
        elif len(rows) < COMPILED_ROWS:
            addresses = _addresses(chunks)
            for chunk, mine, within in chunks.groups(rows):
                starts = chunk.offsets[within]
                table[mine, 0] = addresses[id(chunk.data)] + chunk.base + starts
                table[mine, 1] = chunk.offsets[within + 1] - starts
        else:
            from yaffjit.kernels.places import find_rows

            find_rows(chunks.table_address, rows, table)
        made = cls(table, chunks.memory, _files(chunks))
        return made.masked(chunks.valid_rows(rows)) if chunks.has_nulls else made

    def taken(self, rows: Any) -> Places:
        """Some rows: an array of row numbers, or a slice."""
        return Places(np.ascontiguousarray(self.table[rows]), self.memory, self.files)

    def masked(self, valid: npt.NDArray[np.bool_]) -> Places:
        """The same rows, null where they aren't valid."""
        if valid.all():
            return self
        return Places(np.where(valid[:, np.newaxis], self.table, 0), self.memory, self.files)

    def check(self) -> None:
        """Raise where the data isn't what it was."""
        self.memory.check()

    def ready(self, start: int, count: int) -> None:
        """As that of chunks: whose rows these are, has checked them."""

    @property
    def owner(self) -> Owner:
        """Keeps the buffers alive for jitted code."""
        return self.memory.owner

    @property
    def _listed(self) -> bool:
        """Whether each row is the buffer of that number."""
        return self.table is self.memory.spans

    def start(self, row: int) -> tuple[Data, int] | None:
        """The data that a message lies in, and where it starts there; None of a null row."""
        address = self._addresses[row, 0]
        if not address:
            return None
        if self._listed:
            return self.memory.data[row], 0
        return self.memory.owner.place(address)[:2]

    def starts(self, start: int, count: int) -> Iterator[tuple[Data, int] | None]:
        """`start` of each row."""
        if self._listed and not self.nulls:
            return zip(self.memory.data[start : start + count], itertools.repeat(0), strict=False)
        return map(self.start, range(start, start + count))

    def span(self, row: int) -> tuple[Data, int, int] | None:
        """The data that a message lies in, and where it starts and ends there; None of a null row."""
        nbytes = self._addresses[row, 1]
        if not nbytes and self._addresses[row, 0]:  # which may be the end of a buffer
            return b"", 0, 0
        found = self.start(row)
        return None if found is None else (*found, found[1] + nbytes)

    def spans(self, start: int, count: int) -> Iterator[tuple[Data, int, int] | None]:
        """`span` of each row."""
        return map(self.span, range(start, start + count))

    def valid(self, start: int, count: int) -> npt.NDArray[np.bool_]:
        """Which rows aren't null."""
        found: npt.NDArray[np.bool_] = self.table[start : start + count, 0] != 0
        return found

    def payload(self, row: int) -> bytes | None:
        """The bytes of a message; None of a null row."""
        address, nbytes = self._addresses[row, 0], self._addresses[row, 1]
        return ctypes.string_at(address, nbytes) if address else None

    def nbytes(self, start: int, count: int) -> int:
        """Bytes of the rows together."""
        return int(self.table[start : start + count, 1].sum())


def _addresses(chunks: Chunks) -> dict[int, int]:
    """Of each buffer of chunks, by its identity."""
    from yaffjit.view.owner import address_of

    return {id(data): address_of(data) for data in chunks.memory.data}


def _files(chunks: Chunks) -> tuple[RowFile, ...]:
    return tuple(dict.fromkeys(chunk.file for chunk in chunks.chunks if chunk.file is not None))
