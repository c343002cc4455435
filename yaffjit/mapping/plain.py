"""`map` in plain Python: the function is called with views, and its results become the same arrays."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from yaffjit.mapping.arrays import Array, Column, Mask
from yaffjit.mapping.rows import raise_in_row
from yaffjit.plan.limits import INT64_MAX, INT64_MIN, RESULTS, UINT64_MAX

if TYPE_CHECKING:
    from yaffjit.rows import Records

# Kinds that go together, to what they become.
_WIDENED = {("bool", "int"): "int", ("bool", "float"): "float", ("float", "int"): "float"}
_WIDENED |= {(f"array of {a}", f"array of {b}"): f"array of {wide}" for (a, b), wide in _WIDENED.items()}
# Kinds of arrays by those of their dtypes.
_ARRAYS = {"b": "bool", "i": "int", "u": "int", "f": "float", "m": "timedelta", "M": "datetime"}


def map_plain(
    records: Records,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    name: str,
    update: Callable[[int], object],
) -> tuple[list[Column], Any]:
    """The columns of a function's results, and what makes a tuple of a list of arrays; None for no tuple.

    Raises:
        TypeError: results can't be kept, or don't go together.
        OverflowError: an integer doesn't fit in 64 bits.
    """
    message = records.plan.full_name
    valid = getattr(records, "valid", None)
    results: list[Any] = []
    for row, view in enumerate(records):
        if valid is not None and not valid[row]:
            results.append(None)
            continue
        try:
            results.append(function(view, *args))
        except Exception as error:
            raise_in_row(error, row, message)
        update(1)
    first = next((value for value in results if value is not None), None)
    if not isinstance(first, tuple):
        return [_column(results, name, "")], None
    members = _members(results, first, name)
    columns = [
        _column(values, name, f" as member {place} of a tuple") for place, values in enumerate(members)
    ]
    return columns, getattr(type(first), "_make", tuple)  # a namedtuple's own


def _members(results: list[Any], first: tuple[Any, ...], name: str) -> list[list[Any]]:
    """The members of tuples, each None where there's no tuple."""
    if not first:
        raise TypeError(f"{name} returns an empty tuple: return {RESULTS}")
    count = len(first)
    for row, value in enumerate(results):
        if value is not None and not (isinstance(value, tuple) and len(value) == count):
            what = f"a tuple of {len(value)}" if isinstance(value, tuple) else f"a {type(value).__name__}"
            raise TypeError(f"{name} returns {what} in row {row}, but a tuple of {count} before")
    return [[None if value is None else value[place] for value in results] for place in range(count)]


def _column(values: list[Any], name: str, member: str) -> Column:
    """The array of values that may be None."""
    kind = None
    kind_row = 0
    for row, value in enumerate(values):
        if value is None:
            continue
        found = _kind(value)
        if found is None:
            raise TypeError(f"{name} returns {_what(value)} in row {row}{member}: return {RESULTS}")
        if kind is None:
            kind, kind_row = found, row
        elif found != kind:
            first, second = sorted((kind, found))
            widened = _WIDENED.get((first, second))
            if widened is None:
                raise TypeError(
                    f"{name} returns {_what(value)} in row {row}{member}, but {_what(values[kind_row])} "
                    f"in row {kind_row}"
                )
            kind = widened
    present = [value for value in values if value is not None]
    missing = np.array([value is None for value in values], np.bool_) if len(present) < len(values) else None
    return Column(_spread(_made(kind, present, values, name, member), missing, kind), missing)


def _kind(value: Any) -> str | None:
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, (np.timedelta64, datetime.timedelta)):  # the first is one of numpy's integers
        return "timedelta"
    if isinstance(value, (int, np.integer)):
        return "int"
    if isinstance(value, (float, np.floating)):
        return "float"
    if isinstance(value, str):
        return "str"
    if isinstance(value, bytes):
        return "bytes"
    if isinstance(value, np.datetime64) or (isinstance(value, datetime.datetime) and value.tzinfo is None):
        return "datetime"
    if isinstance(value, np.ndarray) and value.ndim == 1:
        found = _ARRAYS.get(value.dtype.kind)
        if value.dtype == object:  # what the methods of a Timestamp or Duration give in Python
            kinds = {_kind(item) for item in value.tolist()}
            found = next((kind for kind in ("datetime", "timedelta") if kinds == {kind}), None)
        return None if found is None else f"array of {found}"
    return None


def _what(value: Any) -> str:
    if isinstance(value, np.ndarray):
        dimensions = "" if value.ndim == 1 else f"{value.ndim} dimensions of "
        return f"an array of {dimensions}{value.dtype}"
    name = type(value).__name__
    return f"an {name}" if name[0].lower() in "aeiou" else f"a {name}"


def _made(kind: str | None, present: list[Any], values: list[Any], name: str, member: str) -> Array:
    """The array of the values that aren't None."""
    if kind is None:  # also of no rows
        return np.full(len(present), None, object) if values else np.empty(0)
    if kind in ("str", "bytes"):
        made = np.empty(len(present), object)
        made[:] = present
        return made
    if kind == "int":
        return np.array(present, _integer_dtype(values, name, member))
    if kind == "datetime":
        return np.array([np.datetime64(value) for value in present])
    if kind == "timedelta":
        return np.array([np.timedelta64(value) for value in present])
    if kind.startswith("array"):
        _check_lengths(values, name, member)
        return _made_of_arrays(kind, present, values, name, member)
    return np.array(present, np.bool_ if kind == "bool" else np.float64)


def _made_of_arrays(kind: str, present: list[Any], values: list[Any], name: str, member: str) -> Array:
    """A row an array, all of which have the same length."""
    if kind == "array of datetime":
        present = [np.array([np.datetime64(item) for item in value]) for value in present]
    elif kind == "array of timedelta":
        present = [np.array([np.timedelta64(item) for item in value]) for value in present]
    made = np.array(present)
    if kind == "array of int" and made.dtype.kind == "f":  # numpy's word for signed and unsigned ones
        return np.array(present, _integer_dtype(values, name, member))
    return made


def _integer_dtype(values: Sequence[Any], name: str, member: str) -> type[np.int64] | type[np.uint64]:
    """What holds integers, or arrays of them, exactly."""
    numbers = [number for _, number in _numbers(values)]
    lowest, highest = min(numbers, default=0), max(numbers, default=0)
    unsigned = any(getattr(value, "dtype", np.dtype(int)).kind == "u" for value in values)
    if highest > INT64_MAX or (unsigned and lowest >= 0):
        least, most = 0, UINT64_MAX
    else:
        least, most = INT64_MIN, INT64_MAX
    if least <= lowest and highest <= most:
        return np.uint64 if least == 0 else np.int64
    row, number = next((row, number) for row, number in _numbers(values) if not least <= number <= most)
    raise OverflowError(
        f"{name} returns {number} in row {row}{member}: no 64 bits hold all integers "
        f"from {lowest} to {highest}"
    )


def _numbers(values: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """Each integer, those of arrays too, with its row."""
    for row, value in enumerate(values):
        if isinstance(value, np.ndarray):
            for number in value.tolist():
                yield row, number
        elif value is not None:
            yield row, int(value)


def _check_lengths(values: list[Any], name: str, member: str) -> None:
    first = next(row for row, value in enumerate(values) if value is not None)
    for row, value in enumerate(values):
        if value is not None and len(value) != len(values[first]):
            raise ValueError(
                f"{name} returns arrays of one length: {len(value)} elements in row {row}{member}, "
                f"but {len(values[first])} in row {first}"
            )


def _spread(made: Array, missing: Mask | None, kind: str | None) -> Array:
    """Put the values where they aren't missing."""
    if missing is None:
        return made
    if kind is None:
        return np.full(len(missing), None, object)
    spread = (
        np.full(len(missing), None, object)
        if made.dtype == object
        else np.zeros((len(missing), *made.shape[1:]), made.dtype)
    )
    spread[~missing] = made
    return spread
