"""Which rows a key selects: a mask, or an array or list of row numbers."""

from __future__ import annotations

import operator
from typing import Any, NoReturn

import numpy as np

from yaffjit.errors import RowError
from yaffjit.rows.memory import Int64Array

ROWS_OR_MASK = "records are indexed by row numbers, slices, masks and arrays of rows, not by"
ROWS = "take takes row numbers, not"


def selected(key: Any, count: int) -> Int64Array:
    """The rows that a mask or row numbers select, each from 0 to ``count``.

    Raises:
        RowError: a row is out of range.
        IndexError: a mask has another length.
        TypeError: it's neither.
    """
    array = _array(key, ROWS_OR_MASK, (list,))
    if array.dtype == np.bool_:
        if len(array) != count:
            raise IndexError(f"the mask has {len(array)} values, but there are {count} rows")
        return np.flatnonzero(array)
    return _within(array, count)


def taken(rows: Any, count: int) -> Int64Array:
    """Row numbers, of which negative ones count from the end, as numbers from 0 to ``count``.

    Raises:
        RowError: a row is out of range.
        TypeError: they aren't integers.
    """
    array = _array(rows, ROWS, (list, tuple, range))
    if array.dtype == np.bool_:
        raise TypeError(f"{ROWS} a mask: recs[mask] takes one")
    return _within(array, count)


def _array(key: Any, expected: str, sequences: tuple[type, ...]) -> Any:
    """A flat array of integers or bools."""
    if isinstance(key, (str, bytes, bytearray, dict, set)) or (
        isinstance(key, (list, tuple, range)) and not isinstance(key, sequences)
    ):
        _refuse(key, expected)
    try:
        array = np.asarray(key)
    except (ValueError, TypeError):  # lists of lists, foreign objects
        _refuse(key, expected)
    if array.ndim != 1:
        _refuse(key if array.ndim == 0 else array, expected)
    missing = _missing(key)
    if missing:
        raise TypeError(
            f"{expected} an array of which {missing} of {len(array)} are missing: say what these count for, "
            "as mask.filled(False) does"
        )
    if not len(array) and isinstance(key, sequences):
        return np.empty(0, np.int64)
    # Integers of which some are beyond int64 become floats, or objects.
    if array.dtype.kind == "O" or (array.dtype.kind == "f" and isinstance(key, sequences)):
        return _of_objects(key, array, expected)
    if array.dtype.kind not in "biu":
        _refuse(array, expected)
    return array


def _missing(key: Any) -> int:
    """How many values of a masked array, or of an Arrow one, are missing."""
    if isinstance(key, np.ma.MaskedArray):
        return int(np.count_nonzero(np.ma.getmaskarray(key)))
    count = getattr(key, "null_count", 0)
    return count if isinstance(count, int) else 0


def _of_objects(key: Any, array: Any, expected: str) -> Any:
    """Integers of any size, as an array of int64 if that holds them."""
    items = list(key)
    try:
        rows = [operator.index(item) for item in items if not isinstance(item, (bool, np.bool_))]
    except TypeError:
        _refuse(array, expected)
    if len(rows) < len(items):
        _refuse(array, expected)
    try:
        return np.array(rows, np.int64)
    except OverflowError:
        return np.array(rows, object)


def _within(array: Any, count: int) -> Int64Array:
    """The numbers, in an array that nobody else has."""
    if array.dtype.kind != "i":  # which may be beyond int64
        outside = np.flatnonzero((array < 0) | (array >= count))
        if len(outside):
            raise RowError(int(array[outside[0]]), count)
    rows: Int64Array = array.astype(np.int64)
    if rows.size and int(rows.min()) < 0:
        rows[rows < 0] += count
    # One comparison each: what is below 0 is a large unsigned number.
    if rows.size and int(rows.view(np.uint64).max()) >= count:
        raise RowError(int(array[np.argmax((rows < 0) | (rows >= count))]), count)
    return rows


def _refuse(key: Any, expected: str) -> NoReturn:
    found = f"{key.dtype} of shape {key.shape}" if isinstance(key, np.ndarray) else type(key).__name__
    raise TypeError(f"{expected} {found}") from None
