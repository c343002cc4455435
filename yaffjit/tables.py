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
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("to_pandas needs pandas: pip install pandas") from error
    return pd.DataFrame({name: _pandas_of(column) for name, column in columns.items()}, copy=False)


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
