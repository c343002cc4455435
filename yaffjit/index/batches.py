"""Writes one Arrow file of messages, a batch of 65,536 at a time, each with its checksum."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyarrow import ipc

from yaffjit.index.atomic import writing
from yaffjit.index.metadata import (
    BATCH_KEY,
    BATCH_ROWS,
    CHECKSUM_KEY,
    EXTENSION_NAME,
    LAST_KEY,
    MESSAGE_COLUMN,
    METADATA_KEY,
    NAME_KEY,
    checksum,
)


class BatchWriter:
    """Gathers encoded messages and writes them with their checksum whenever a batch is full.

    Args:
        path: of the file, for errors.
        file: to write to.
        text: `described`.
        others: the other columns, of which this file takes the values from ``first_row`` on.
    """

    def __init__(
        self, path: str, file: Any, text: str, others: Mapping[str, Any], first_row: int = 0
    ) -> None:
        self._path = path
        self._first_row = first_row
        self._text = text.encode()
        self._others = others
        message = pa.field(
            MESSAGE_COLUMN,
            pa.large_binary(),
            nullable=False,
            metadata={NAME_KEY: EXTENSION_NAME, METADATA_KEY: text},
        )
        self._schema = pa.schema([message, *(pa.field(name, a.type) for name, a in others.items())])
        with writing(path):
            self._writer = ipc.new_file(file, self._schema)
        self._number = 0
        self._clear()

    def _clear(self) -> None:
        self._data = bytearray()
        self._offsets = array("q", [0])

    def add(self, payload: bytes) -> None:
        # Written only once a further message comes, because the last batch is marked as the last.
        if len(self._offsets) > BATCH_ROWS:
            self._write(last=False)
        self._data += payload
        self._offsets.append(len(self._data))

    def close(self, last: bool = True) -> None:
        """Complete the file; ``last``: no further message follows in another one."""
        rows = self._first_row + self._number * BATCH_ROWS + len(self._offsets) - 1
        for name, column in self._others.items():
            if last and len(column) != rows:
                raise ValueError(f"column {name!r} has {len(column)} values for {rows} messages")
        self._write(last=True)
        with writing(self._path):
            self._writer.close()

    def _write(self, last: bool) -> None:
        rows = len(self._offsets) - 1
        start = self._first_row + self._number * BATCH_ROWS
        arrays = [
            pa.Array.from_buffers(
                pa.large_binary(), rows, [None, pa.py_buffer(self._offsets), pa.py_buffer(self._data)]
            )
        ]
        for name, column in self._others.items():
            part = column.slice(start, rows).combine_chunks()
            if len(part) != rows:
                raise ValueError(f"column {name!r} has {len(column)} values, but there are more messages")
            arrays.append(part)
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        # As a reader will see it: slices and bitmaps are normalised on the way through Arrow's format.
        batch = ipc.read_record_batch(batch.serialize(), self._schema)
        metadata = {
            BATCH_KEY: str(self._number),
            LAST_KEY: str(int(last)),
            CHECKSUM_KEY: checksum(self._text, self._number, last, batch),
        }
        with writing(self._path):
            self._writer.write_batch(batch, custom_metadata=metadata)
        self._number += 1
        self._clear()
