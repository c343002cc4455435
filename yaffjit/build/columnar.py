"""Binary columns of Arrow and Parquet files as messages, batch by batch."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from yaffjit.build.payloads import Batch, Payloads
from yaffjit.build.streams import PathOrFile, Source
from yaffjit.errors import DecodeError, near_names

if TYPE_CHECKING:
    import pyarrow as pa

INDEX_EXTENSION = b"yaffjit.message"
EXTENSION_KEY = b"ARROW:extension:name"
FILE_MAGIC = b"ARROW1"
MAX_ROWS = 1 << 16  # of a batch of Parquet

Arrays = Callable[[int, int], Iterator[Any]]


def read_arrow(source: PathOrFile, column: str, *, nulls: str = "error") -> Payloads:
    """The values of a binary column of an Arrow IPC file or stream.

    Args:
        source: a path, or a seekable binary file, which is read from its beginning and isn't closed.
        column: its name; of type binary, large_binary, binary_view or fixed-size binary.
        nulls: "error", or "empty": a null is a message of no bytes.

    Memory is bounded by one batch of the file's own.

    Raises:
        OSError: the file can't be opened.
        ValueError: the file has no such column, or its values aren't binary.
        DecodeError: the file isn't one of Arrow's, or is damaged; a value is null; names the row, from 0.
    """
    return _Arrow(source, column, nulls)


def read_parquet(source: PathOrFile, column: str, *, nulls: str = "error") -> Payloads:
    """The values of a binary column of a Parquet file; otherwise as `read_arrow`.

    Memory is bounded by a batch, and what Parquet needs to decode a page of the column.
    """
    return _Parquet(source, column, nulls)


class _Column(Payloads):
    """Values of a binary column."""

    kind: str

    def __init__(self, source: PathOrFile, column: str, nulls: str) -> None:
        if nulls not in ("error", "empty"):
            raise ValueError(f'nulls must be "error" or "empty", not {nulls!r}')
        if not isinstance(column, str):
            raise TypeError(f"column must be the name of a column, not {type(column).__name__}")
        self._source = Source(source, None)
        self.name = self._source.name
        self._column = column
        self._nulls = nulls
        with self._source.for_arrow() as file:
            self._index_in(self._opened(file)[0])

    @abstractmethod
    def _opened(self, file: Any) -> tuple[pa.Schema, Arrays]:
        """What is in a file, and what reads a column: by its index, in arrays of so many bytes if it can."""

    def _batches(self, nbytes: int, whole: bool) -> Iterator[Batch]:
        with self._source.for_arrow() as file:
            schema, arrays = self._opened(file)
            reading = arrays(self._index_in(schema), nbytes)
            row = 0
            while True:
                with self._damages():
                    array = next(reading, None)
                if array is None:
                    return
                yield from self._cut(array, row, nbytes)
                row += len(array)

    def _where(self, number: int, position: int) -> str:
        return f"{self.name}: row {number} of column {self._column!r}"

    @contextmanager
    def _damages(self) -> Iterator[None]:
        import pyarrow as pa

        try:
            yield
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise DecodeError(f"{self.name}: not {self.kind}, or damaged: {error}") from error

    def _index_in(self, schema: pa.Schema) -> int:
        """Which of a schema's columns is meant."""
        import pyarrow as pa

        with self._damages():
            names = list(schema.names)
        index: int = schema.get_field_index(self._column)
        if index < 0:
            if names.count(self._column) > 1:
                raise ValueError(f"{self.name} has several columns {self._column!r}")
            near = near_names(self._column, names)
            binary = [field.name for field in schema if _is_binary(pa, field.type)]
            known = f"; binary columns: {', '.join(map(repr, binary))}" if binary and not near else ""
            raise ValueError(f"{self.name} has no column {self._column!r}{near}{known}")
        field = schema.field(index)
        if (field.metadata or {}).get(EXTENSION_KEY) == INDEX_EXTENSION:
            raise ValueError(f"{self.name} is an index, whose messages are YaFF: open it with open_index")
        if not _is_binary(pa, field.type):
            raise ValueError(f"{self.name}: column {self._column!r} must be binary, not {field.type}")
        return index

    def _cut(self, array: Any, first: int, nbytes: int) -> Iterator[Batch]:
        """An array as batches of about that many bytes each."""
        import pyarrow as pa

        with self._damages():
            array.validate(full=True)  # nothing of Arrow's does before it's read
            if isinstance(array, pa.ExtensionArray):
                array = array.storage
            array = array.cast(pa.large_binary())
            null = array.is_null().index(True).as_py() if array.null_count else -1
            if null >= 0:
                array = array.fill_null(b"") if self._nulls == "empty" else array.slice(0, null)
        yield from self._parts(array, first, nbytes)
        if null >= 0 and self._nulls == "error":
            where = self._where(first + null, first + null)
            raise DecodeError(f'{where} is null: nulls="empty" takes nulls for empty messages')

    def _parts(self, array: Any, first: int, nbytes: int) -> Iterator[Batch]:
        if not len(array):
            return
        _, offsets_buffer, data_buffer = array.buffers()
        offsets = np.frombuffer(offsets_buffer, np.int64)[array.offset : array.offset + len(array) + 1]
        data = memoryview(b"" if data_buffer is None else data_buffer).toreadonly()
        begin = 0
        while begin < len(array):
            end = int(np.searchsorted(offsets, offsets[begin] + nbytes, "right")) - 1
            end = min(max(end, begin + 1), len(array))
            rows = np.arange(first + begin, first + end)
            start, stop = int(offsets[begin]), int(offsets[end])
            yield Batch(data[start:stop], offsets[begin : end + 1] - start, rows, first + begin, self._where)
            begin = end


class _Arrow(_Column):
    kind = "an Arrow file"

    def _opened(self, file: Any) -> tuple[pa.Schema, Arrays]:
        from pyarrow import ipc

        def of_file(index: int, nbytes: int) -> Iterator[Any]:
            # Of the other columns nothing is read.
            chosen = ipc.open_file(file, options=ipc.IpcReadOptions(included_fields=[index]))
            for number in range(chosen.num_record_batches):
                yield chosen.get_batch(number).column(0)

        with self._damages():
            is_file = file.read(len(FILE_MAGIC)) == FILE_MAGIC
            file.seek(0)
            reader = ipc.open_file(file) if is_file else ipc.open_stream(file)

        def of_stream(index: int, nbytes: int) -> Iterator[Any]:
            for batch in reader:
                yield batch.column(index)

        return reader.schema, of_file if is_file else of_stream


class _Parquet(_Column):
    kind = "a Parquet file"

    def _opened(self, file: Any) -> tuple[pa.Schema, Arrays]:
        from pyarrow import parquet

        with self._damages():
            reader = parquet.ParquetFile(file)
            schema = reader.schema_arrow

        def arrays(index: int, nbytes: int) -> Iterator[Any]:
            name = schema.names[index]
            for batch in reader.iter_batches(_rows_of(reader, name, nbytes), columns=[name]):
                yield batch.column(0)

        return schema, arrays


def _rows_of(reader: Any, column: str, nbytes: int) -> int:
    """How many rows have about that many bytes."""
    metadata = reader.metadata
    total = 0
    for group in range(metadata.num_row_groups):
        for place in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(place)
            if chunk.path_in_schema == column:
                total += chunk.total_uncompressed_size
    rows: int = nbytes * metadata.num_rows // max(1, total)
    return max(1, min(MAX_ROWS, rows))


def _is_binary(pa: Any, typ: Any) -> bool:
    if isinstance(typ, pa.BaseExtensionType):
        typ = typ.storage_type
    return bool(
        pa.types.is_binary(typ)
        or pa.types.is_large_binary(typ)
        or pa.types.is_binary_view(typ)
        or pa.types.is_fixed_size_binary(typ)
    )
