"""Map fields of views, beside protobuf's maps; and lists of pairs that are read as maps."""

from __future__ import annotations

import collections.abc
import copy
import pickle
from functools import cache
from typing import Any

import google.protobuf
import numpy as np
import pytest
from vectors import TESTS
from walk import check_view

import yaffjit as yj

VALUES: dict[str, dict[Any, Any]] = {
    "s": {"": "empty", "Z": "", "a": "1", "a\0": "2", "é": "3", "~": "4"},
    "i32": {-(2**31): 1, -1: 0, 0: -7, 5: 1, 2**31 - 1: 1},
    "u32": {0: b"", 2**32 - 1: b"\xff\0"},
    "i64": {-(2**63): {"n": 1}, 0: {}, 2**63 - 1: {"text": "x"}},
    "u64": {0: 1.5, 2**64 - 1: -0.0, 2**63: 2.0},
    "b": {False: True, True: False},
    "s32": {-1: {"a": 1, "b": "x"}, 2: {}},
}
MISSING: dict[str, Any] = {"s": "nope", "i32": 77, "u32": 77, "i64": 77, "u64": 77, "s32": 77}


@cache
def schema() -> yj.Schema:
    return yj.load_schema(TESTS / "schemas" / "views.proto")


def message_of(name: str, values: dict[str, Any]) -> Any:
    message_type = schema()[f"views.{name}"]
    return message_type.decode(message_type.encode(values))


@pytest.fixture(params=["flat", "sparse"])
def maps(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """A view and the message that it must equal."""
    message_type = schema()["views.Maps"]
    buf = message_type.encode(VALUES, layout=request.param)
    return message_type.view(buf), message_of("Maps", VALUES)


@pytest.mark.parametrize("name", VALUES)
def test_as_a_mapping(maps: tuple[Any, Any], name: str) -> None:
    held, wanted = (getattr(value, name) for value in maps)
    keys = list(VALUES[name])
    assert len(held) == len(keys)
    assert held
    assert isinstance(held, collections.abc.Mapping)
    for key in keys:
        assert key in held
        assert held[key] == wanted[key]
        assert held.get(key) == wanted[key]
        assert type(held[key]) is type(wanted[key]) or isinstance(VALUES[name][key], dict)
    assert sorted(held) == sorted(keys)
    assert sorted(held.keys()) == sorted(keys)
    assert list(held.items()) == list(zip(held, held.values(), strict=True))
    assert dict(held) == dict(wanted)
    assert held == dict(wanted)
    assert dict(wanted) == held
    assert held == wanted
    assert held != {}
    assert held != 5
    assert held.GetEntryClass() is wanted.GetEntryClass()
    with pytest.raises(TypeError):
        hash(held)


def test_order_of_keys(maps: tuple[Any, Any]) -> None:
    view, _ = maps
    assert list(view.s) == ["", "Z", "a", "a\0", "~", "é"]
    assert list(view.i32) == [-(2**31), -1, 0, 5, 2**31 - 1]
    assert list(view.u64) == [0, 2**63, 2**64 - 1]
    assert list(view.b) == [False, True]
    assert str(view.s) == "{'': 'empty', 'Z': '', 'a': '1', 'a\\x00': '2', '~': '4', 'é': '3'}"
    assert repr(view.s32) == '{-1: a: 1\nb: "x"\n, 2: }'


@pytest.mark.parametrize("name", MISSING)
def test_missing_keys(maps: tuple[Any, Any], name: str) -> None:
    held, wanted = (getattr(value, name) for value in maps)
    missing, count = MISSING[name], len(held)
    assert missing not in held
    assert held.get(missing) is None
    assert held.get(missing, 5) == held.get(missing, default=5) == 5
    assert held[missing] == wanted[missing]
    # protobuf's map has it now; a view's hasn't
    assert missing in wanted
    assert missing not in held
    assert len(held) == count


PROTOBUF_VERSION = int(google.protobuf.__version__.partition(".")[0])
WRONG_KEYS: dict[str, list[Any]] = {
    "s": [5, None, 1.0, "\ud800", b"\xff", ["a"]],
    "i32": ["a", 1.0, None, True, 2**31, -(2**31) - 1],
    "u32": [-1, 2**32, True],
    "i64": [2**63, b"a"],
    "u64": [-1, 2**64],
    "b": ["a", 1.0, None, 2**70, 2**63, -(2**63) - 1],
}


@pytest.mark.parametrize("name", WRONG_KEYS)
def test_wrong_keys_raise_what_protobuf_raises(maps: tuple[Any, Any], name: str) -> None:
    held, wanted = (getattr(value, name) for value in maps)
    for key in WRONG_KEYS[name]:
        for read in (lambda kept, key=key: kept[key], lambda kept, key=key: key in kept):
            with pytest.raises((TypeError, ValueError, OverflowError)) as raised:
                read(held)
            try:
                read(wanted)
            except (TypeError, ValueError, OverflowError) as expected:
                assert type(raised.value) is type(expected)
                assert str(raised.value) == str(expected)
            else:
                # Before version 7 protobuf takes a bool for a number there.
                assert PROTOBUF_VERSION < 7
                assert key is True
        with pytest.raises(type(raised.value)):
            held.get(key)


def test_other_forms_of_a_key(maps: tuple[Any, Any]) -> None:
    for value in maps:
        assert value.s[b"a"] == "1"
        assert value.b[1] is False
        assert value.b[2] is False
        assert 0 in value.b
        assert np.bool_(True) in value.b
        assert value.b[2**63 - 1] is value.b[-(2**63)] is False


def test_absent_maps_are_empty() -> None:
    maps = schema()["views.Maps"]
    view = maps.view(maps.encode({}))
    for name in VALUES:
        held = getattr(view, name)
        assert len(held) == 0
        assert not held
        assert list(held) == list(held.items()) == []
        assert held == {}
        assert repr(held) == "{}"
        assert MISSING.get(name, True) not in held


def test_many_pairs() -> None:
    maps = schema()["views.Maps"]
    values = {"i32": {i * 3: 1 for i in range(-500, 500)}, "s": {f"key {i}": str(i) for i in range(1000)}}
    view, message = maps.view(maps.encode(values)), message_of("Maps", values)
    check_view(view, message)
    for number in (-1501, -1499, 1, 1498, 5000):
        assert number not in view.i32
    assert "key" not in view.s
    assert "zz" not in view.s
    assert repr(view.i32).endswith(", ... 1000 pairs}")
    assert str(view.i32) == str(dict(view.i32))


def test_copies_and_pickles_are_dicts(maps: tuple[Any, Any]) -> None:
    view, _ = maps
    for made in (copy.copy(view.s), copy.deepcopy(view.s), pickle.loads(pickle.dumps(view.s))):
        assert type(made) is dict
        assert made == VALUES["s"]


def test_maps_read_as_lists_of_pairs() -> None:
    maps, lists = schema()["views.MapPairs"], schema()["views.ListPairs"]
    view = lists.view(maps.encode({"text": {"b": 2, "a": 1}, "number": {5: {"n": 1}}}))
    assert [(pair.key, pair.value) for pair in view.text] == [("a", 1), ("b", 2)]
    assert [(pair.key, pair.value.n) for pair in view.number] == [(5, 1)]


@pytest.mark.parametrize("count", [1, 20])
def test_lists_of_pairs_read_as_maps(count: int) -> None:
    """They are unsorted and may name a key twice: the first one counts, as decode has it."""
    maps, lists = schema()["views.MapPairs"], schema()["views.ListPairs"]
    keys = ["b", "a", "b", "", "c", "a", *(f"key {-i}" for i in range(count))]
    numbers = [3, -1, 3, 0, 2, -1, *range(100, 100 + count)]
    buf = lists.encode(
        {
            "text": [{"key": key, "value": value} for value, key in enumerate(keys)],
            "number": [{"key": key, "value": {"n": value}} for value, key in enumerate(numbers)],
        }
    )
    view = maps.view(buf)
    check_view(view, maps.decode(buf))
    assert list(view.text) == list(dict.fromkeys(keys))
    assert len(view.text) == len(view.text.items()) == len(set(keys))
    assert view.text["b"] == 0
    assert view.text["a"] == 1
    assert view.number[3].n == 0
    assert [value.n for value in view.number.values()][:3] == [0, 1, 3]
    assert "nope" not in view.text


def test_pairs_without_key_or_value() -> None:
    """A list of pairs may leave out what a map always writes."""
    maps, lists = schema()["views.MapPairs"], schema()["views.ListPairs"]
    buf = lists.encode({"text": [{}], "number": [{"key": 5}]})
    view = maps.view(buf)
    check_view(view, maps.decode(buf))
    assert dict(view.text) == {"": 0}
    assert view.number[5].text == ""


def test_text_that_is_not_utf8() -> None:
    maps = schema()["views.Maps"]
    view = maps.view_unchecked(maps.encode({"s": {"tea": "x"}}).replace(b"tea", b"\xfftt"))
    with pytest.raises(UnicodeDecodeError):
        list(view.s)
    assert "tea" not in view.s
