"""Writes one Arrow file of messages, a batch of 65,536 at a time, each with its checksum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ipc

from yaffjit.index.atomic import writing
from yaffjit.index.metadata import (
    BATCH_KEY,
    BATCH_NBYTES,
    BATCH_ROWS,
    CHECKSUM_KEY,
    EXTENSION_NAME,
    LAST_KEY,
    MESSAGE_COLUMN,
    METADATA_KEY,
    NAME_KEY,
    checksum,
)

LEAST_NBYTES = 1 << 20  # of the buffer of a batch
MOST_BEHIND = 32 << 20  # bytes of a batch that is written while the next one is gathered


class _Gathered:
    """Rows of a batch."""

    def __init__(self, nullable: bool) -> None:
        self.rows = 0
        self.data = np.empty(LEAST_NBYTES, np.uint8)
        self.offsets = np.zeros(BATCH_ROWS + 1, np.int64)
        self.valid = np.ones(BATCH_ROWS if nullable else 0, np.bool_)

    @property
    def nbytes(self) -> int:
        return int(self.offsets[self.rows])

    def take(self, data: Any, offsets: NDArray[np.int64], valid: NDArray[np.bool_] | None) -> None:
        begin, end = int(offsets[0]), int(offsets[-1])
        used, rows = self.nbytes, len(offsets) - 1
        filled = used + end - begin
        if filled > len(self.data):
            grown = np.empty(max(filled, min(2 * len(self.data), BATCH_NBYTES)), np.uint8)
            grown[:used] = self.data[:used]
            self.data = grown
        self.data[used:filled] = data[begin:end]
        np.add(offsets[1:], used - begin, out=self.offsets[self.rows + 1 : self.rows + rows + 1])
        if valid is not None:
            self.valid[self.rows : self.rows + rows] = valid
        self.rows += rows

    def column(self) -> Any:
        """As Arrow has them, in place."""
        valid = self.valid[: self.rows]
        nulls = len(valid) - int(np.count_nonzero(valid))
        validity = pa.py_buffer(np.packbits(valid, bitorder="little")) if nulls else None
        offsets, data = self.offsets[: self.rows + 1], self.data[: self.nbytes]
        buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_binary(), self.rows, buffers, nulls)

    def clear(self) -> None:
        self.rows = 0
        self.valid[:] = True


class BatchWriter:
    """Gathers encoded messages and writes them with their checksum whenever a batch is full.

    A context manager: a batch is written on a thread of its own while the next one is gathered, so that who
    gathers doesn't wait for the disk. (Large batches aren't, so that memory is bounded.)

    Args:
        path: of the file, for errors.
        file: to write to.
        text: `described`.
        others: the other columns, of which this file takes the values from ``first_row`` on.
        nullable: whether rows may be null.
        compression: of Arrow's buffers, "lz4" or "zstd".
        skipped: numbers of messages before and between the rows that were left out, which have values in the
            other columns; ascending, and complete up to the last row that was added.
        wrote: called with the bytes in the file after each batch.
    """

    def __init__(
        self,
        path: str,
        file: Any,
        text: str,
        others: Mapping[str, Any],
        first_row: int = 0,
        *,
        nullable: bool = False,
        compression: str | None = None,
        skipped: Sequence[int] = (),
        wrote: Callable[[int], object] = lambda nbytes: None,
    ) -> None:
        self._path = path
        self._file = file
        self._start = first_row  # of the batch
        self._text = text.encode()
        self._others = others
        self._skipped = skipped
        self._wrote = wrote
        message = pa.field(
            MESSAGE_COLUMN,
            pa.large_binary(),
            nullable=nullable,
            metadata={NAME_KEY: EXTENSION_NAME, METADATA_KEY: text},
        )
        self._schema = pa.schema([message, *(pa.field(name, a.type) for name, a in others.items())])
        with writing(path):
            options = ipc.IpcWriteOptions(compression=compression)
            self._writer = ipc.new_file(file, self._schema, options=options)
        self._number = 0
        self._now = _Gathered(nullable)
        self._other: _Gathered | None = None
        self._nullable = nullable
        self._thread = ThreadPoolExecutor(1, "yaffjit-write")  # of few rows none starts
        self._written: Future[None] | None = None

    def __enter__(self) -> BatchWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.shutdown()

    def add(self, data: Any, offsets: NDArray[np.int64], valid: NDArray[np.bool_] | None = None) -> None:
        """Messages ``data[offsets[i]:offsets[i + 1]]``, null where they aren't valid."""
        data = np.frombuffer(data, np.uint8)
        row = 0
        while row < len(offsets) - 1:
            # Written only once a further message comes, because the last batch is marked as the last.
            if self._is_full:
                self._write(last=False)
            end = self._end(offsets, row)
            self._now.take(data, offsets[row : end + 1], None if valid is None else valid[row:end])
            row = end

    @property
    def _is_full(self) -> bool:
        return self._now.rows == BATCH_ROWS or self._now.nbytes >= BATCH_NBYTES

    def _end(self, offsets: NDArray[np.int64], row: int) -> int:
        """Behind the last of some rows that goes into the batch."""
        filled = offsets[row] + BATCH_NBYTES - self._now.nbytes
        by_nbytes = int(np.searchsorted(offsets[row + 1 :], filled)) + row + 1
        return min(by_nbytes, row + BATCH_ROWS - self._now.rows, len(offsets) - 1)

    def close(self, last: bool = True) -> None:
        """Complete the file; ``last``: no further message follows in another one."""
        rows = self._start + self._now.rows
        for name, column in self._others.items():
            if last and len(column) != rows + len(self._skipped):
                raise ValueError(
                    f"column {name!r} has {len(column)} values for {rows + len(self._skipped)} messages"
                )
        self._write(last=True)
        with writing(self._path):
            self._writer.close()

    def _write(self, last: bool) -> None:
        """Write the batch, at once or on the thread."""
        rows = self._now.rows
        batch = pa.RecordBatch.from_arrays([self._now.column(), *self._values()], schema=self._schema)
        if not rows:
            batch = ipc.read_record_batch(batch.serialize(), self._schema)
        number = self._number
        self._number += 1
        self._start += rows
        if self._written is not None:
            self._written.result()
            self._written = None
        if last or self._now.nbytes > MOST_BEHIND:
            self._write_batch(number, last, batch)
        else:
            self._written = self._thread.submit(self._write_batch, number, last, batch)
            self._now, self._other = self._other or _Gathered(self._nullable), self._now
        self._now.clear()

    def _write_batch(self, number: int, last: bool, batch: Any) -> None:
        metadata = {
            BATCH_KEY: str(number),
            LAST_KEY: str(int(last)),
            CHECKSUM_KEY: checksum(self._text, number, last, batch),
        }
        with writing(self._path):
            self._writer.write_batch(batch, custom_metadata=metadata)
            self._wrote(self._file.tell())

    def _values(self) -> list[Any]:
        """The other columns of the batch."""
        if not self._others:
            return []
        arrays = []
        for name, column in self._others.items():
            part = self._of_rows(column)
            if len(part) != self._now.rows:
                raise ValueError(f"column {name!r} has {len(column)} values, but there are more messages")
            arrays.append(part.combine_chunks())
        # As a reader will see them: slices and bitmaps are normalised on the way through Arrow's format.
        schema = pa.schema(list(self._schema)[1:])
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        columns: list[Any] = ipc.read_record_batch(batch.serialize(), schema).columns
        return columns

    def _of_rows(self, column: Any) -> Any:
        """The values of a batch's rows."""
        if not self._skipped:
            return column.slice(self._start, self._now.rows)
        skipped = np.array(self._skipped, np.int64)
        rows = np.arange(self._start, self._start + self._now.rows)
        rows += np.searchsorted(skipped - np.arange(len(skipped)), rows, "right")
        return column.take(pa.array(rows[rows < len(column)]))
