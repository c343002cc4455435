"""Arrow tables as data frames, with missing values as each library has them."""

from __future__ import annotations

from typing import Any


def pandas_of(table: Any) -> Any:
    """A pandas DataFrame of a pyarrow Table.

    Integers and bools with nulls keep all their bits: they have pandas' nullable types.

    Raises:
        ImportError: pandas isn't installed; yaffjit doesn't need it otherwise.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("to_pandas needs pandas: pip install pandas") from error
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


def polars_of(table: Any) -> Any:
    """A polars DataFrame of a pyarrow Table. ImportError if polars isn't installed."""
    try:
        import polars as pl
    except ImportError as error:
        raise ImportError("to_polars needs polars: pip install polars") from error
    return pl.from_arrow(table)
