"""A map-style data set over an index for PyTorch: projected columns as tensors, a batch at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from yaffjit.columns.results import Array
from yaffjit.errors import SchemaError
from yaffjit.index import Index

if TYPE_CHECKING:
    from yaffjit.rows import Records

_DTYPES = {"uint16": np.int32, "uint32": np.int64}  # torch has few operations on unsigned numbers


class ColumnsDataset:
    """Rows as dicts of tensors by path, for `torch.utils.data.DataLoader`, with any number of workers.

    A loader that asks for a batch at once (``__getitems__``, as PyTorch's does) has it read in one pass; give
    it ``collate_fn=dataset.collate`` and the batch arrives as it was read, a tensor a path. Workers get an
    index by its path, so nothing is copied to them; of other records they get the bytes.

    Args:
        records: an index, or records; what `take` or a mask gives too.
        paths: of numbers, bools, enums and times, one value a row; see `Records.columns`.
        columns: other columns of the index, of numbers, as labels.
        tensors: False gives numpy arrays, and needs no torch.

    Raises:
        SchemaError: a path isn't one, or has no one number a row.
        ImportError: torch isn't installed, and ``tensors`` is true.
    """

    def __init__(
        self, records: Records, paths: Sequence[str], columns: Sequence[str] = (), tensors: bool = True
    ) -> None:
        self.records = records
        self.paths = tuple(paths)
        if tensors:
            _torch()
        self.tensors = tensors
        self.columns = {name: _numbers(records, name) for name in columns}
        for path, column in records[:0].columns(*self.paths).items():
            if not isinstance(column, np.ndarray):
                raise SchemaError(
                    f"path {path!r} isn't one number a row, which a tensor takes; it's {column.kind}"
                )

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, row: int) -> dict[str, Any]:
        """One row: a tensor of no dimension a path. IndexError as of a list."""
        row = range(len(self))[row]
        found: dict[str, Any] = self.__getitems__([row])[0]
        return found

    def __getitems__(self, rows: Sequence[int]) -> Batch:
        """Some rows, read in one pass: a sequence of dicts, or whole by `collate`."""
        taken = np.asarray(rows, np.int64)
        found = dict(self.records.take(taken).columns(*self.paths, threads=1))
        found |= {name: column[taken] for name, column in self.columns.items()}
        return Batch({name: self._tensor(values) for name, values in found.items()}, len(taken))

    @staticmethod
    def collate(batch: Batch | Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """For ``DataLoader(collate_fn=)``: a batch as it was read, a tensor of its rows a path."""
        if isinstance(batch, Batch):
            return batch.columns
        names = batch[0]
        stack = (
            np.stack if isinstance(next(iter(names.values())), (np.ndarray, np.generic)) else _torch().stack
        )
        return {name: stack([row[name] for row in batch]) for name in names}

    def _tensor(self, values: Array) -> Any:
        if values.dtype.kind in "mM":
            values = values.view(np.int64)
        values = values.astype(_DTYPES.get(values.dtype.name, values.dtype), copy=False)
        return _torch().from_numpy(values) if self.tensors else values


class Batch(Sequence[dict[str, Any]]):
    """Rows that were read together: ``batch[i]`` is one as a dict, ``columns`` has all of them by path."""

    def __init__(self, columns: dict[str, Any], rows: int) -> None:
        self.columns = columns
        self.rows = rows

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            part = {name: values[row] for name, values in self.columns.items()}
            return Batch(part, len(range(self.rows)[row]))
        row = range(self.rows)[row]
        return {name: values[row] for name, values in self.columns.items()}


def _numbers(records: Records, name: str) -> Array:
    """Another column of an index as an array."""
    if not isinstance(records, Index):
        raise TypeError(f"only an index has other columns, as {name!r}; these are {type(records).__name__}")
    column = records.column(name)
    if column.null_count:
        raise SchemaError(f"column {name!r} has {column.null_count:,} nulls, which a tensor can't hold")
    array: Array = column.to_numpy()
    if array.dtype.kind not in "biufmM":
        raise SchemaError(f"column {name!r} isn't of numbers, which a tensor takes; it's {column.type}")
    return array


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            "a data set of tensors needs torch: pip install torch; tensors=False gives numpy arrays"
        ) from error
    return torch
