"""Unsigned positions in jitted code: the upper half of a uint64 isn't negative, wherever it is an index."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import yaffjit
from yaffjit.errors import RowError

SCHEMA = yaffjit.load_schema(Path(__file__).parent / "schemas" / "shown.proto")
Shelf = SCHEMA["shown.Shelf"]
ROW = {
    "id": 2**64 - 1,
    "small": 1,
    "title": "añb",
    "raw": b"a\xffb",
    "numbers": [1, 2, 3],
    "names": ["a", "b", "c"],
    "shelves": [{"id": 7}, {"id": 8}, {"id": 9}],
    "by_number": {2**64 - 1: 5, 1: 6},
}
RECORDS = yaffjit.records(Shelf, [Shelf.encode({**ROW, "small": n}) for n in range(3)])
VIEW = RECORDS[0]

Indexed = Callable[[Any, Any], Any]
OF_VIEW: list[Indexed] = [
    lambda v, k: v.numbers[k],
    lambda v, k: v.numbers[:2][k],
    lambda v, k: v.names[k],
    lambda v, k: v.shelves[k].id,
    lambda v, k: v.title[k],
    lambda v, k: v.raw[k],
]


def outcome(function: Indexed, *args: Any) -> Any:
    try:
        return function(*args)
    except Exception as error:
        return next(cls for cls in (IndexError, type(error)) if isinstance(error, cls))


@pytest.mark.parametrize("row", [0, 2, 3, 2**63 - 1, 2**63, 2**64 - 1])
@pytest.mark.parametrize("function", OF_VIEW)
def test_unsigned_index(function: Indexed, row: int) -> None:
    jitted = _jitted(function)
    expected = outcome(function, VIEW, row)
    assert outcome(jitted, VIEW, np.uint64(row)) == expected
    assert (expected is IndexError) == (row >= (2 if "[:2]" in _source(function) else 3))


def test_unsigned_row_of_records() -> None:
    @numba.njit
    def get(records: Any, row: Any) -> Any:
        return records[row].small

    for row in (0, 2):
        assert get(RECORDS, np.uint64(row)) == get(RECORDS, np.uint8(row)) == row
    for row in (3, 2**63, 2**64 - 1):
        for function in (get.py_func, get):
            with pytest.raises(RowError) as caught:
                function(RECORDS, np.uint64(row))
            assert str(caught.value) == f"row {row} is out of range: there are 3 rows"


def test_a_field_as_a_row_number() -> None:
    @numba.njit
    def get(records: Any, view: Any) -> Any:
        return records[view.id].small

    assert get(RECORDS, Shelf.view(Shelf.encode({"id": 2}))) == 2
    with pytest.raises(RowError, match=r"^row 18446744073709551615 is out of range: there are 3 rows$"):
        get(RECORDS, VIEW)


def test_keys_of_maps_are_no_positions() -> None:
    @numba.njit
    def get(view: Any, key: Any) -> Any:
        return view.by_number[key], key in view.by_number, view.by_number.get(key, -1)

    for key in (2**64 - 1, 1, 2**63):
        assert get(VIEW, np.uint64(key)) == get.py_func(VIEW, key)


@pytest.mark.parametrize("bound", [0, 1, 3, 2**63 - 1, 2**63, 2**64 - 1])
def test_fields_as_bounds_of_slices(bound: int) -> None:
    view = Shelf.view(Shelf.encode({**ROW, "id": bound}))
    assert _slices(RECORDS, view) == _slices.py_func(RECORDS, view)


@numba.njit
def _slices(records: Any, v: Any) -> Any:
    k = v.id
    return (
        (len(records[k:]), len(records[:k]), len(records[1:k]), len(records[k:k])),
        (list(v.numbers[k:]), list(v.numbers[:k]), list(v.numbers[k:2]), list(v.numbers[-2:k])),
        (list(v.numbers[:: k + 1 if k < 2**63 else k]), list(v.numbers[0 : k : k | 1])),
        (v.title[k:], v.title[:k], v.raw[k:], v.raw[:k]),
        (len(v.names[k:]), len(v.shelves[:k])),
    )


def test_bounds_of_numbas_own_are_its_own() -> None:
    """As the page on jitted functions says: the slice has lost the sign when it reaches us."""
    length = numba.njit(lambda records, k: len(records[k:]))
    assert length(RECORDS, np.uint64(2)) == 1
    assert length(RECORDS, np.uint64(2**64 - 1)) == 1


_compiled: dict[Indexed, Any] = {}


def _jitted(function: Indexed) -> Any:
    return _compiled.setdefault(function, numba.njit(function))


def _source(function: Indexed) -> str:
    return "[:2]" if function is OF_VIEW[1] else ""
