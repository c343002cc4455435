"""Columns as tables of other libraries: Arrow, pandas, numpy's structured arrays. Knows no records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def to_arrow(columns: Mapping[str, Array]) -> Any:
    """A pyarrow Table of the arrays; numbers share their memory, bools are packed into bits."""
    import pyarrow as pa

    return pa.table({name: pa.array(array) for name, array in columns.items()})


def to_pandas(columns: Mapping[str, Array]) -> Any:
    """A pandas DataFrame of the arrays.

    Raises:
        ImportError: pandas isn't installed; yaffjit doesn't need it otherwise.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("to_pandas needs pandas: pip install pandas") from error
    return pd.DataFrame(dict(columns), copy=False)


def to_numpy(columns: Mapping[str, Array]) -> Array:
    """A structured array, one field a column, of shape (rows,); a copy."""
    rows = len(next(iter(columns.values()), ()))
    table = np.empty(rows, [(name, array.dtype) for name, array in columns.items()])
    for name, array in columns.items():
        table[name] = array
    return table
