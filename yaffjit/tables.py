"""Columns as tables of other libraries: Arrow, pandas, numpy's structured arrays. Knows no records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def to_arrow(columns: Mapping[str, Any]) -> Any:
    """A pyarrow Table of columns: numpy arrays, or what has ``to_arrow()``."""
    import pyarrow as pa

    return pa.table({name: arrow_of(column) for name, column in columns.items()})


def to_batch(columns: Mapping[str, Any]) -> Any:
    """As `to_arrow`, a RecordBatch."""
    import pyarrow as pa

    return pa.record_batch({name: arrow_of(column) for name, column in columns.items()})


def arrow_of(column: Any) -> Any:
    """A pyarrow array of a column; numbers and times share their memory, bools are packed into bits."""
    import pyarrow as pa

    if not isinstance(column, np.ndarray):
        return column.to_arrow()
    if column.dtype.kind in "mM":
        # pyarrow's own way makes a copy, in which "not a time" is null; here the mask is all that is made.
        unit = np.datetime_data(column.dtype)[0]
        typ = pa.timestamp(unit) if column.dtype.kind == "M" else pa.duration(unit)
        missing = np.isnat(column)
        nulls = pa.array(~missing).buffers()[1] if missing.any() else None
        return pa.Array.from_buffers(typ, len(column), [nulls, pa.py_buffer(column.view(np.int64))])
    return pa.array(column)


def to_pandas(columns: Mapping[str, Any]) -> Any:
    """A pandas DataFrame of columns: numpy arrays, or what has ``to_pandas()`` or ``to_numpy()``.

    Raises:
        ImportError: pandas isn't installed; yaffjit doesn't need it otherwise.
    """
    return _pandas().DataFrame({name: _pandas_of(column) for name, column in columns.items()}, copy=False)


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("to_pandas needs pandas: pip install pandas") from error
    return pd


def to_polars(table: Any) -> Any:
    """A polars DataFrame of a pyarrow Table. ImportError if polars isn't installed."""
    try:
        import polars as pl
    except ImportError as error:
        raise ImportError("to_polars needs polars: pip install polars") from error
    return pl.from_arrow(table)


def frame(table: Any) -> Any:
    """A pandas DataFrame of a pyarrow Table, whose nulls are what pandas has for missing values.

    Integers and bools with nulls keep all their bits: they have pandas' nullable types.

    Raises:
        ImportError: pandas isn't installed.
    """
    pd = _pandas()
    import pyarrow as pa

    exact = {
        pa.int8(): pd.Int8Dtype(),
        pa.int16(): pd.Int16Dtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.uint8(): pd.UInt8Dtype(),
        pa.uint16(): pd.UInt16Dtype(),
        pa.uint32(): pd.UInt32Dtype(),
        pa.uint64(): pd.UInt64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
    }
    columns = {
        name: column.to_pandas(types_mapper=exact.get) if column.null_count else column.to_pandas()
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return pd.DataFrame(columns, copy=False)


def _pandas_of(column: Any) -> Any:
    if isinstance(column, np.ndarray):
        return column
    return column.to_pandas() if hasattr(column, "to_pandas") else column.to_numpy()


def to_numpy(columns: Mapping[str, Any]) -> Array:
    """A structured array, one field a column, of shape (rows,); a copy.

    Raises:
        TypeError: a column isn't one value a row.
    """
    rows = len(next(iter(columns.values()), ()))
    for name, column in columns.items():
        if hasattr(column, "lengths"):
            raise TypeError(
                f"column {name!r} is a {column.kind}, for which a structured array has no room: "
                f"leave it out, and take cols[{name!r}].offsets and .values"
            )
    arrays = {
        name: column if isinstance(column, np.ndarray) else column.to_numpy()
        for name, column in columns.items()
    }
    table = np.empty(rows, [(name, array.dtype) for name, array in arrays.items()])
    for name, array in arrays.items():
        table[name] = array
    return table
