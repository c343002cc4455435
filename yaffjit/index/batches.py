"""Writes one Arrow file of messages, a batch of 65,536 at a time, each with its checksum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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


class BatchWriter:
    """Gathers encoded messages and writes them with their checksum whenever a batch is full.

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
        self._rows = 0
        self._data = np.empty(LEAST_NBYTES, np.uint8)
        self._offsets = np.zeros(BATCH_ROWS + 1, np.int64)
        self._valid = np.ones(BATCH_ROWS if nullable else 0, np.bool_)

    def add(self, data: Any, offsets: NDArray[np.int64], valid: NDArray[np.bool_] | None = None) -> None:
        """Messages ``data[offsets[i]:offsets[i + 1]]``, null where they aren't valid."""
        data = np.frombuffer(data, np.uint8)
        row = 0
        while row < len(offsets) - 1:
            # Written only once a further message comes, because the last batch is marked as the last.
            if self._is_full:
                self._write(last=False)
            end = self._end(offsets, row)
            self._take(data, offsets[row : end + 1], None if valid is None else valid[row:end])
            row = end

    @property
    def _is_full(self) -> bool:
        return self._rows == BATCH_ROWS or int(self._offsets[self._rows]) >= BATCH_NBYTES

    def _end(self, offsets: NDArray[np.int64], row: int) -> int:
        """Behind the last of some rows that goes into the batch."""
        filled = offsets[row] + BATCH_NBYTES - self._offsets[self._rows]
        by_nbytes = int(np.searchsorted(offsets[row + 1 :], filled)) + row + 1
        return min(by_nbytes, row + BATCH_ROWS - self._rows, len(offsets) - 1)

    def _take(self, data: Any, offsets: NDArray[np.int64], valid: NDArray[np.bool_] | None) -> None:
        used, rows = int(self._offsets[self._rows]), len(offsets) - 1
        begin, end = int(offsets[0]), int(offsets[-1])
        filled = used + end - begin
        if filled > len(self._data):
            grown = np.empty(max(filled, min(2 * len(self._data), BATCH_NBYTES)), np.uint8)
            grown[:used] = self._data[:used]
            self._data = grown
        self._data[used:filled] = data[begin:end]
        np.add(offsets[1:], used - begin, out=self._offsets[self._rows + 1 : self._rows + rows + 1])
        if valid is not None:
            self._valid[self._rows : self._rows + rows] = valid
        self._rows += rows

    def close(self, last: bool = True) -> None:
        """Complete the file; ``last``: no further message follows in another one."""
        rows = self._start + self._rows
        for name, column in self._others.items():
            if last and len(column) != rows + len(self._skipped):
                raise ValueError(
                    f"column {name!r} has {len(column)} values for {rows + len(self._skipped)} messages"
                )
        self._write(last=True)
        with writing(self._path):
            self._writer.close()

    def _write(self, last: bool) -> None:
        batch = pa.RecordBatch.from_arrays([self._messages(), *self._values()], schema=self._schema)
        if not self._rows:
            batch = ipc.read_record_batch(batch.serialize(), self._schema)
        metadata = {
            BATCH_KEY: str(self._number),
            LAST_KEY: str(int(last)),
            CHECKSUM_KEY: checksum(self._text, self._number, last, batch),
        }
        with writing(self._path):
            self._writer.write_batch(batch, custom_metadata=metadata)
            self._wrote(self._file.tell())
        self._number += 1
        self._start += self._rows
        self._rows = 0
        self._valid[:] = True

    def _messages(self) -> Any:
        rows = self._rows
        nulls = len(self._valid[:rows]) - int(np.count_nonzero(self._valid[:rows]))
        validity = pa.py_buffer(np.packbits(self._valid[:rows], bitorder="little")) if nulls else None
        offsets, data = self._offsets[: rows + 1], self._data[: self._offsets[rows]]
        buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_binary(), rows, buffers, nulls)

    def _values(self) -> list[Any]:
        """The other columns of the batch."""
        if not self._others:
            return []
        arrays = []
        for name, column in self._others.items():
            part = self._of_rows(column)
            if len(part) != self._rows:
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
            return column.slice(self._start, self._rows)
        skipped = np.array(self._skipped, np.int64)
        rows = np.arange(self._start, self._start + self._rows)
        rows += np.searchsorted(skipped - np.arange(len(skipped)), rows, "right")
        return column.take(pa.array(rows[rows < len(column)]))
