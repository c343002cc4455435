"""The other columns of an index: values of any library, as Arrow holds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from yaffjit.errors import near_names
from yaffjit.index.metadata import MESSAGE_COLUMN

Others = dict[str, Any]  # ChunkedArray by name


def other_columns(columns: Any, schema: Any = None, path: str = "") -> Others:
    """What a caller gives as further columns, as Arrow's arrays.

    Args:
        columns: values by name, or None.
        schema: Arrow's, of the parts that the columns must agree with; None for the first part.
        path: of the index, for errors.

    Raises:
        TypeError: it isn't a mapping of names to values.
        ValueError: a column can't be stored, or isn't one that the parts have.
    """
    if columns is not None and not isinstance(columns, Mapping):
        raise TypeError(f'columns must map names to values, as {{"day": days}}, not {type(columns).__name__}')
    given = dict(columns or {})
    if schema is None:
        return {name: _column(name, values) for name, values in given.items()}
    expected = {field.name: field.type for field in schema if field.name != MESSAGE_COLUMN}
    for name in given:
        if name not in expected:
            near = near_names(name, expected) if isinstance(name, str) else ""
            raise ValueError(f"{path} has no column {name!r}{near}; its columns are {list(expected)}")
    for name in expected:
        if name not in given:
            raise ValueError(f"column {name!r} is missing: {path} has the columns {list(expected)}")
    return {name: _agreeing(name, given[name], expected[name], path) for name in expected}


def _agreeing(name: str, values: Any, expected: Any, path: str) -> Any:
    """A column of the type that the parts have; what has no type of its own takes it."""
    if isinstance(values, (list, tuple, range)):
        try:
            return pa.chunked_array([pa.array(values, expected)])
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"column {name!r} can't be stored as {expected}: {error}") from error
    column = _column(name, values)
    if column.type != expected:
        raise ValueError(f"column {name!r} is {column.type}, but in {path} it is {expected}")
    return column


def _arrow(values: Any) -> Any:
    """Values of any library as an Arrow array, shared where that library can."""
    if hasattr(values, "__arrow_c_stream__"):  # polars, newer pandas
        return pa.chunked_array(values)
    if hasattr(values, "__arrow_c_array__") or hasattr(values, "__array__"):
        return pa.array(values)
    return pa.array(list(values))


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _column(name: Any, values: Any) -> Any:
    """Further values as an Arrow ChunkedArray whose content lies in the batches themselves."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a further column must be text, not {type(name).__name__}")
    if _has_surrogates(name):
        raise ValueError(f"a further column can't be called {name!r}: half of a surrogate pair isn't text")
    if isinstance(values, (str, bytes)):
        raise TypeError(f"column {name!r} must hold a value a message, not be one {type(values).__name__}")
    if name == MESSAGE_COLUMN:
        raise ValueError(f"a further column can't be called {name!r}: the messages' own column is")
    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        try:
            values = _arrow(values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"column {name!r} can't be stored: {error}") from error
    if isinstance(values, pa.Array):
        values = pa.chunked_array([values])
    if pa.types.is_dictionary(values.type):
        # Dictionaries lie outside of the batches, where no checksum would cover them.
        values = values.cast(values.type.value_type)
    if "dictionary<" in str(values.type):
        raise ValueError(f"column {name!r} can't be stored: {values.type} has a dictionary inside")
    return values
