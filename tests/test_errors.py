"""The exceptions: each says its sentence, and has what `YaffjitError` promises of all of them."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from yaffjit import errors
from yaffjit.errors import (
    BufferTooSmallError,
    ElementError,
    NumberError,
    NumberOverflowError,
    RowError,
    ShortBufferError,
    YaffjitError,
)

ARGUMENTS: dict[type[YaffjitError], tuple[Any, ...]] = {
    RowError: (7, 3),
    ElementError: ("tags", 7, 3),
    ShortBufferError: ("ads.Banner", 2),
    BufferTooSmallError: ("ads.Banner", 300, 200),
    NumberError: ("{} isn't allowed", 5),
    NumberOverflowError: ("{} doesn't fit", 5),
}


def all_errors() -> list[type[YaffjitError]]:
    found = [value for value in vars(errors).values() if isinstance(value, type)]
    return [cls for cls in found if issubclass(cls, YaffjitError) and not cls.__name__.startswith("_")]


@pytest.mark.parametrize("cls", all_errors(), ids=lambda cls: cls.__name__)
def test_all_have_a_text_and_a_position(cls: type[YaffjitError]) -> None:
    error = cls(*ARGUMENTS.get(cls, ("a sentence",)))
    assert error.text
    assert error.position is None
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.text, again.position) == (cls, str(error), error.text, None)


def test_a_row_out_of_range() -> None:
    error = RowError(7, 3)
    assert (str(error), error.row, error.count) == ("row 7 is out of range: there are 3 rows", 7, 3)
    assert error.text == str(error)
