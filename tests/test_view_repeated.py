"""Repeated fields of views: sequences beside protobuf's containers, and arrays without a copy."""

from __future__ import annotations

import collections.abc
import copy
import math
import pickle
from functools import cache
from typing import Any

import numpy as np
import pytest
from vectors import TESTS

import yaffjit as yj
from yaffjit.errors import ElementError

VALUES: dict[str, list[Any]] = {
    "b": [True, False, True],
    "i32": [1, -1, 2**31 - 1, -(2**31), 1],
    "u32": [0, 2**32 - 1],
    "i64": [-(2**63), 2**63 - 1],
    "u64": [2**64 - 1, 0],
    "f": [1.5, -0.0, math.inf],
    "d": [5e-324, 0.1, -math.inf],
    "e": [0, 1, -7],
    "raw": [b"", b"\xff\0", b"x"],
}
DTYPES = {
    "b": "?",
    "i32": "<i4",
    "u32": "<u4",
    "i64": "<i8",
    "u64": "<u8",
    "f": "<f4",
    "d": "<f8",
    "e": "<i4",
}


@cache
def message_type(name: str) -> yj.MessageType:
    return yj.load_schema(TESTS / "schemas" / "views.proto")[f"views.{name}"]


@pytest.fixture(params=["flat", "sparse"])
def arrays(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """A view and the message that it must equal."""
    arrays = message_type("Arrays")
    message = arrays.message_class(
        **VALUES, pairs=[{"a": 1}, {"b": "two"}], banners=[{"id": 1}, {"tags": ["x"]}]
    )
    return arrays.view(arrays.encode(message, layout=request.param)), message


@pytest.mark.parametrize("name", VALUES)
def test_as_a_sequence(arrays: tuple[Any, Any], name: str) -> None:
    held, wanted = getattr(arrays[0], name), VALUES[name]
    assert len(held) == len(wanted)
    assert list(held) == wanted
    assert [type(value) for value in held] == [type(value) for value in wanted]
    assert list(reversed(held)) == wanted[::-1]
    assert [held[i] for i in range(-len(wanted), len(wanted))] == wanted * 2
    for part in (slice(None), slice(1, None), slice(-1, None), slice(None, None, -2), slice(5, 9)):
        assert held[part] == wanted[part]
        assert type(held[part]) is list
    assert wanted[1] in held
    assert "nope" not in held
    assert held.count(wanted[0]) == wanted.count(wanted[0])
    assert held.index(wanted[1]) == 1
    with pytest.raises(ValueError, match="is not in list"):
        held.index("nope")
    assert isinstance(held, collections.abc.Sequence)
    assert str(held) == repr(held) == repr(wanted)
    assert held[np.int64(1)] == wanted[1]


@pytest.mark.parametrize("name", VALUES)
def test_equality(arrays: tuple[Any, Any], name: str) -> None:
    view, message = arrays
    held, wanted = getattr(view, name), VALUES[name]
    assert held == wanted
    assert wanted == held
    assert held == getattr(message, name)
    assert held == getattr(view, name)
    # as protobuf's containers
    assert held != tuple(wanted)
    assert getattr(message, name) != tuple(wanted)
    assert held != wanted[:-1]
    assert held != [*wanted[:-1], "other"]
    assert held != 5
    with pytest.raises(TypeError):
        hash(held)


@pytest.mark.parametrize("index", [9, -9, "a", 1.5, None])
def test_indices_raise_what_protobuf_raises(arrays: tuple[Any, Any], index: Any) -> None:
    view, message = arrays
    for name in ("i32", "raw", "pairs", "banners"):
        with pytest.raises((IndexError, TypeError)) as expected:
            getattr(message, name)[index]
        held = getattr(view, name)
        with pytest.raises(type(expected.value)) as raised:
            held[index]
        place = f": {name}[{index}] of {len(held)} elements" if isinstance(index, int) else ""
        assert str(raised.value) == str(expected.value) + place


def test_an_index_error_counts_one_element() -> None:
    arrays = message_type("Arrays")
    with pytest.raises(ElementError) as raised:
        arrays.view(arrays.encode({"i32": [5]})).i32[1]
    assert str(raised.value) == "list index out of range: i32[1] of 1 element"
    assert (raised.value.name, raised.value.index, raised.value.count) == ("i32", 1, 1)


@pytest.mark.parametrize("name", ["pairs", "banners"])
def test_messages(arrays: tuple[Any, Any], name: str) -> None:
    view, message = arrays
    held, wanted = getattr(view, name), getattr(message, name)
    assert len(held) == 2
    assert held == list(wanted)
    assert held == wanted
    assert held[-1] == wanted[-1]
    assert held[:] == list(wanted)
    assert list(reversed(held)) == list(wanted)[::-1]
    assert wanted[0] in held
    assert held.index(wanted[1]) == 1
    assert str(held) == str(wanted)
    assert repr(held) == repr(wanted)


def test_absent_arrays_are_empty() -> None:
    view = message_type("Arrays").view(message_type("Arrays").encode({}))
    for name in [*VALUES, "pairs", "banners"]:
        held = getattr(view, name)
        assert len(held) == 0
        assert not held
        assert list(held) == held[:] == []
        assert repr(held) == "[]"
        with pytest.raises(IndexError, match="list index out of range"):
            held[0]


@pytest.mark.parametrize("name", DTYPES)
def test_numbers_as_arrays(arrays: tuple[Any, Any], name: str) -> None:
    view, _ = arrays
    array = np.asarray(getattr(view, name))
    assert array.dtype == np.dtype(DTYPES[name])
    assert array.tolist() == VALUES[name]
    assert not array.flags.writeable
    data = np.frombuffer(view._data_, np.uint8)
    assert np.shares_memory(array, data)
    assert not np.shares_memory(np.array(getattr(view, name)), data)
    assert np.array(getattr(view, name)).flags.writeable
    empty = np.asarray(getattr(type(view)._default_(), name))
    assert empty.dtype == array.dtype
    assert empty.shape == (0,)
    assert not empty.flags.writeable


def test_arrays_of_another_dtype_are_copies(arrays: tuple[Any, Any]) -> None:
    view, _ = arrays
    wide = np.asarray(view.f, np.float64)
    assert wide.dtype == np.float64
    assert wide.tolist() == VALUES["f"]
    with pytest.raises(ValueError) as raised:
        np.array(view.f, np.float64, copy=False)
    assert str(raised.value) == "a repeated float is float32: as float64 it needs a copy"
    kept = np.array(view.f, copy=False)
    assert np.shares_memory(kept, np.frombuffer(view._data_, np.uint8))
    assert float(np.sum(view.i64)) == -1.0


def test_arrays_outlive_their_view() -> None:
    arrays = message_type("Arrays")
    array = np.asarray(arrays.view(bytearray(arrays.encode({"i32": list(range(1000))}))).i32)
    assert array.sum() == 499500


def test_long_reprs_are_cut() -> None:
    arrays = message_type("Arrays")
    view = arrays.view(arrays.encode({"i32": [7] * 1000}))
    assert repr(view.i32) == f"[{'7, ' * 200}... 1000 elements]"
    assert str(view.i32) == str([7] * 1000)


def test_copies_and_pickles_are_lists(arrays: tuple[Any, Any]) -> None:
    view, _ = arrays
    for made in (copy.copy(view.i32), copy.deepcopy(view.i32), pickle.loads(pickle.dumps(view.i32))):
        assert type(made) is list
        assert made == VALUES["i32"]


def test_text_that_is_not_utf8() -> None:
    banner = message_type("Banner")
    view = banner.view_unchecked(banner.encode({"tags": ["good", "tea"]}).replace(b"tea", b"\xfftt"))
    assert view.tags[0] == "good"
    with pytest.raises(UnicodeDecodeError):
        view.tags[1]
    with pytest.raises(UnicodeDecodeError):
        list(view.tags)
