"""Ray Data over indexes: a data set of an index, functions of its batches, and an index of a data set.

Needs ``pip install 'yaffjit[ray]'``.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from yaffjit.errors import IndexFileError
from yaffjit.index import Index, adopt_index, build_index, build_keys, open_index
from yaffjit.index.metadata import MESSAGE_COLUMN
from yaffjit.interop.batches import ROW_KEY, SHARD_KEY, BatchFunction, columns, map

if TYPE_CHECKING:
    from ray.data import Dataset

try:
    import ray.data
    from ray.data import Datasource, ReadTask
    from ray.data.block import BlockMetadata
except ImportError as error:
    raise ImportError("yaffjit.ray needs Ray Data: pip install 'yaffjit[ray]'") from error

__all__ = ["BatchFunction", "columns", "map", "read_index", "write_index"]

_PathLike = str | os.PathLike[str]


def read_index(
    paths: _PathLike | Sequence[_PathLike],
    *,
    columns: Sequence[str] | None = None,
    fields: Sequence[str] | None = None,
    **options: Any,
) -> Dataset:
    """A data set of the rows of indexes: a task a record batch, which reads what is asked for.

    Args:
        paths: of indexes, files or directories, where each worker finds them too.
        columns: those of the index that are read, "message" among them; None for all.
        fields: paths of fields, which the reader gives in the place of the messages, as `Records.to_arrow`.
        options: what `ray.data.read_datasource` takes.

    Each batch is verified by the worker that reads it. An error names the file, the batch and the row.

    Raises:
        IndexFileError: a path isn't an index, or it has no such column.
    """
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    source = _IndexSource([os.path.abspath(os.fspath(path)) for path in listed], columns, fields)
    found: Dataset = ray.data.read_datasource(source, **options)
    return found


class _IndexSource(Datasource):
    """Ray's view of indexes: their batches, how many rows and bytes each has."""

    def __init__(self, paths: list[str], columns: Sequence[str] | None, fields: Sequence[str] | None) -> None:
        super().__init__()
        self._tasks = []
        for path in paths:
            index = open_index(path, verify="batch")
            known = [MESSAGE_COLUMN, *index.column_names]
            unknown = [name for name in columns or () if name not in known]
            if unknown:
                raise IndexFileError(f"{path} has no column {unknown[0]!r}; its columns are {known}")
            wanted = known if columns is None else list(columns)
            starts = [*(first for _, _, first in index._files.batches), len(index)]
            mean = index.nbytes / max(len(index), 1)
            for number, (first, end) in enumerate(itertools.pairwise(starts)):
                task = partial(_read, path, number, first, end, wanted, fields)
                self._tasks.append((task, path, end - first, int(mean * (end - first))))

    def get_name(self) -> str:
        return "YaffjitIndex"

    def estimate_inmemory_data_size(self) -> int:
        return sum(nbytes for *_, nbytes in self._tasks)

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        return [
            ReadTask(
                task,
                BlockMetadata(rows, nbytes, None, input_files=(path,)),
                per_task_row_limit=per_task_row_limit,
            )
            for task, path, rows, nbytes in self._tasks
        ]


# Indexes that this worker has open.
_opened: dict[tuple[str, int, int], Index] = {}


def _index(path: str) -> Index:
    status = os.stat(path)
    key = path, status.st_ino, status.st_mtime_ns
    if key not in _opened:
        _opened[key] = open_index(path, verify="batch")
    return _opened[key]


def _read(
    path: str, batch: int, first: int, end: int, wanted: list[str], fields: Sequence[str] | None
) -> Iterator[Any]:
    """One record batch as a table, which tells where it's from."""
    import pyarrow as pa

    index = _index(path)
    rows = index[first:end]
    try:
        rows._ready()
        part, number, _ = index._files.batches[batch]
        others = [name for name in wanted if name != MESSAGE_COLUMN or fields is None]
        table = pa.table(part.batch(number, f"batch {number}")[0].select(others))
        if fields is not None:
            read = rows.to_arrow(list(fields), threads=1)
            for name, column in zip(read.column_names, read.columns, strict=True):
                table = table.append_column(name, column)
    except Exception as error:
        raise IndexFileError(f"{path}, batch {batch}, rows {first:,} to {end - 1:,}: {error}") from error
    yield table.replace_schema_metadata({SHARD_KEY: path.encode(), ROW_KEY: str(first).encode()})


def write_index(
    dataset: Dataset,
    path: _PathLike,
    message_type: Any,
    *,
    column: str = MESSAGE_COLUMN,
    source: str | None = None,
    layout: str = "flat",
    representation: str = "yaff",
    key: str | None = None,
    duplicates: str = "error",
    on_error: str = "raise",
) -> None:
    """Write a data set as an index: a directory of parts, one a block, with one manifest.

    Workers write the parts beside the directory, so the path must be one that all machines share. The index
    appears when all parts are there; if a worker fails, nothing of it does.

    Args:
        dataset: with a column of messages; its other columns are kept beside them.
        path: of the directory, which must not be there yet.
        message_type: of the messages.
        column: that has them.
        source: how they are encoded: "yaff" or "protobuf"; None for what the column says of itself,
            "protobuf" if it doesn't.
        layout, representation, on_error: as `build_index` takes them.
        key, duplicates: as `build_keys` takes them.

    Raises:
        IndexFileError: something is there, or can't be written.
    """
    path = os.path.abspath(os.fspath(path))
    if os.path.exists(path):
        raise IndexFileError(f"{path} is there already: append_index adds to an index")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    staging = tempfile.mkdtemp(prefix=f".{os.path.basename(path)}.", dir=os.path.dirname(path))
    try:
        write = _WritePart(staging, message_type, column, source, layout, representation, on_error)
        written = dataset.map_batches(write, batch_size=None, batch_format="pyarrow").take_all()
        whole = os.path.join(staging, "index")
        for part in (row["part"] for row in written if row["rows"]):
            adopt_index(whole, part)
        if not os.path.exists(whole):
            build_index(whole + os.sep, message_type, [], layout, representation)
        if key is not None:
            build_keys(whole, key, duplicates=duplicates)
        os.rename(whole, path)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


class _WritePart(BatchFunction):
    """Writes each batch as an index file of its own, and gives its path and rows."""

    def __init__(
        self,
        staging: str,
        message_type: Any,
        column: str,
        source: str | None,
        layout: str,
        representation: str,
        on_error: str,
    ) -> None:
        super().__init__(message_type, column, source, on_error, keep=True)
        self.staging = staging
        self.layout = layout
        self.target = representation

    def __call__(self, batch: Any) -> Any:
        import pyarrow as pa

        table = pa.table(batch)
        if not len(table):
            return pa.table({"part": pa.array([], pa.string()), "rows": pa.array([], pa.int64())})
        payloads, representation = self._messages(table)
        messages = payloads
        if representation == "yaff":
            messages = self._records(payloads, np.ones(len(payloads), bool), representation)
        others = {name: table.column(name) for name in table.column_names if name != self.column}
        part = os.path.join(self.staging, f"{uuid.uuid4().hex}.arrow")
        built = build_index(
            *(part, self.message_type, messages, self.layout, self.target),
            columns=others,
            progress=False,
            threads=1,
            on_error=self.on_error,
        )
        return pa.table({"part": [part], "rows": pa.array([built.rows], pa.int64())})
