"""Views of universal documents in jitted code: what Python's views give, and their errors."""

from __future__ import annotations

import contextlib
import gc
import sys
from typing import Any

import numba
import numpy as np
import pytest

import yaffjit as yj
import yaffjit.universal.jitted
from yaffjit import universal
from yaffjit.universal import dumps, view

pytestmark = pytest.mark.slow

OBJ = {
    "a": {"b": [1, 2.5, "caf\xe9", {"c": 7, "t": "\u0439"}], "q": True},
    "n": None,
    "\u0439": -(2**40),
    "e": [],
}
OPTIONS = [
    {"compact": compact, "order": order, "strings": strings, "width": width}
    for compact, order, strings, width in (
        (True, "swapped", "utf8", "java"),
        (False, "big", "utf16", "smallest"),
        (True, "little", "latin1", "java"),
    )
]


def getters(v: Any) -> Any:
    return (
        v.get_int("a.b[3].c", 0),
        v.get_int("a.b[9].c", -1),
        v.get_int("n", 5),
        v.get_float("a.b[1]"),
        v.get_float("a.b[-4]", 0.5),
        v.get_bool("a.q"),
        v.get_text("a.b[2]"),
        v.get_text("zz", "none"),
        v.get_int("['\u0439']"),
        v.has("a.b") and not v.has("a.c"),
        len(v) + len(v["a"]["b"]) + len(v["e"]) + len(v.at("a.b[3]")),
        "a" in v and "zz" not in v,
    )


def converted(v: Any, key: str) -> Any:
    b = v["a"]["b"]
    return b[0].as_int(), b[0].as_float(), b[1].as_float(), v["a"]["q"].as_bool(), b[3]["t"].as_text(), v[key]


jitted_getters, jitted_converted = numba.njit(getters), numba.njit(converted)


@numba.njit
def of_array(data, key):  # type: ignore[no-untyped-def]
    v = view(data)
    return v.get_int("a.b[3].c", 0), v[key]


@numba.njit
def first_of_two(data):  # type: ignore[no-untyped-def]
    return view(data[1:], order="big", compact=False)["x"]


def test_jitted_code_reads_what_python_reads() -> None:
    for options in OPTIONS:
        data = dumps(OBJ, null=True, **options)
        for buf in (data, np.frombuffer(data, np.uint8)):
            v = universal.view(buf, compact=options["compact"], order=options["order"], null=True)
            expected = getters(v)
            assert jitted_getters(v) == expected
            assert expected == (7, -1, 5, 2.5, 1.0, True, "caf\xe9", "none", -(2**40), True, 10, True)
            for key in ("a", "\u0439", "e"):
                found = jitted_converted(v, key)
                assert found[:5] == (1, 1.0, 2.5, True, "\u0439") and found[5] == OBJ[key]


def test_views_of_arrays_outlive_them() -> None:
    obj = {**OBJ, "n": 1}
    number, part = of_array(np.frombuffer(bytearray(dumps(obj)), np.uint8).copy(), "a")
    assert number == 7 and part == OBJ["a"]
    written = np.frombuffer(b"?" + dumps({"x": [1]}, order="big", compact=False), np.uint8).copy()
    assert first_of_two(written) == [1]


@numba.njit
def one(v, index):  # type: ignore[no-untyped-def]
    return v[index].as_int()


@numba.njit
def looked_up(v, key):  # type: ignore[no-untyped-def]
    return v[key]


@numba.njit
def named(v):  # type: ignore[no-untyped-def]
    return v.get_int("a.b[1]", 0)


def test_errors_are_those_of_python() -> None:
    data = dumps({"a": {"b": [1, "x"]}, "z": "end"})
    v = universal.view(data)
    for function in (named, named.py_func):
        with pytest.raises(universal.KindError) as caught:
            function(v)
        assert str(caught.value) == "a.b[1]: text where an integer is asked for"
    with pytest.raises(universal.KindError) as caught:
        one(v["a"]["b"], 1)
    assert str(caught.value) == "text, not an integer"
    with pytest.raises(IndexError, match=r"^index out of range of a collection$"):
        one(v["a"]["b"], 2)
    with pytest.raises(KeyError, match="zz"):
        looked_up(v, "zz")
    for nbytes in range(1, len(data)):
        cut = universal.view(data[:nbytes])
        outcomes = []
        for function in (jitted_getters, getters):
            try:
                outcomes.append(str(function(cut)))
            except (yj.DecodeError, universal.KindError, KeyError) as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]


def looped(v: Any) -> Any:
    total, names, tags = 0, ["-"], ["-"]
    for i, item in enumerate(v["items"]):
        total += i + item.get_int("id")
        for inner in item["parts"]:
            total += 10 * inner.get_int("n") + 100 * len(inner)
        for part in item["by name"].values():
            total += 1000 * part.get_int("n")
        for name, part in item["by name"].items():
            names.append(name)
            total += 10000 * part.get_int("n")
        for tag in item["tags"].keys():  # noqa: SIM118
            tags.append(tag)
    return total, names, tags, ["zz" in item for item in v["items"]]


jitted_looped = numba.njit(looped)


@numba.njit
def last_of_array(data):  # type: ignore[no-untyped-def]
    last = v = view(data)
    for key, value in v.items():
        if key != "none":
            last = value
    return last


@numba.njit
def added(v):  # type: ignore[no-untyped-def]
    total = 0
    for x in v:
        total += x.as_int()
    return total


@numba.njit
def values_of(v):  # type: ignore[no-untyped-def]
    count = 0
    for _ in v.values():
        count += 1
    return count


def test_loops_give_what_python_gives() -> None:
    items = [
        {
            "id": i,
            "parts": [{"n": n} for n in range(i)],
            "by name": {"\u0439" * n: {"n": n} for n in range(3)},
            "tags": {"zz": [], "a": {}},
            **({"zz": 1} if i % 2 else {}),
        }
        for i in range(4)
    ]
    for options in OPTIONS:
        data = dumps({"before": [1, [2]], "items": items}, **options)
        reading = {"compact": options["compact"], "order": options["order"]}
        v = view(data, **reading)
        assert jitted_looped(v) == looped(v) and looped(v)[0] > 0
        for nbytes in range(1, len(data), 5):
            cut = view(data[:nbytes], **reading)
            outcomes = []
            for function in (jitted_looped, looped):
                with pytest.raises((yj.DecodeError, KeyError)) as caught:
                    function(cut)
                outcomes.append(str(caught.value))
            assert outcomes[0] == outcomes[1]
    for damage in (b"\x31\x42", b"\x33\x55"):  # an end of the other kind, one that is missing
        for function in (added, values_of):
            with pytest.raises((yj.DecodeError, universal.KindError)):
                function(universal.view(damage))


def test_loops_are_over_containers_of_their_kind() -> None:
    assert added(view(dumps([1, 2, 3]))) == 6 and added(view(dumps([]))) == 0
    assert values_of(view(dumps({"a": 1, "b": [2]}))) == 2 and values_of(view(dumps({}))) == 0
    for function, obj, text in (
        (added, {"a": 1}, "an object, not a collection"),
        (values_of, [1], "a collection, not an object"),
        (added, [1, "x"], "text, not an integer"),
    ):
        with pytest.raises(universal.KindError) as caught:
            function(view(dumps(obj)))
        assert str(caught.value) == text
    deep = dumps([1, [2]])
    with pytest.raises(yj.DecodeError):
        added(view(deep, max_depth=1))


def test_errors_keep_no_memory() -> None:
    data = dumps({"before": [1, [2]], "items": [{"id": 1, "parts": [], "by name": {}, "tags": {"a": 1}}]})
    held = [data, None, yj.DecodeError, universal.KindError]

    def fail(count: int) -> None:
        for i in range(count):
            for function, buf in (
                (jitted_getters, data[: 1 + i % (len(data) - 1)]),
                (added, data),
                (added, dumps([1, 2])[:-3]),
                (values_of, dumps({"a": 1})[:-3]),
                (named, dumps({"a": {"b": [1, "x"]}})),
            ):
                with contextlib.suppress(yj.errors.YaffjitError, KeyError):
                    function(view(buf))

    fail(100)
    grown = []
    for _ in range(4):  # what is kept grows each time, caches don't
        gc.collect()
        before, blocks = [sys.getrefcount(one) for one in held], sys.getallocatedblocks()
        fail(400)
        gc.collect()
        assert [sys.getrefcount(one) for one in held] == before
        grown.append(sys.getallocatedblocks() - blocks)
    assert min(grown) < 200


def test_values_of_a_loop_outlive_their_array() -> None:
    written = np.frombuffer(dumps({"a": [1], "none": [2], "b": [3, 4]}), np.uint8).copy()
    assert last_of_array(written) == [3, 4]
    with pytest.raises(yj.errors.EscapeError, match=r"universal document"):
        numba.njit(lambda v: numba.typed.List([v.items()]))(view(dumps({})))


def test_what_is_refused_when_it_is_compiled() -> None:
    v = universal.view(dumps({"a": 1}))
    for function, text in (
        (lambda v, p: v.get_int(p, 0), "a path is written in the code, as 'a.b[3].c': not str"),
        (lambda v, p: v.get_int("a..b", 0), "not a path, as a.b[3].c is one: 'a..b', at character 1"),
        (lambda v, p: v[1.5], "values are looked up by text or by integers, not by float64"),
    ):
        with pytest.raises(yj.errors.CompileError) as caught:
            numba.njit(function)(v, "a")
        assert text in str(caught.value)
    with pytest.raises(yj.errors.EscapeError):
        numba.njit(lambda v: numba.typed.List([v]))(v)
