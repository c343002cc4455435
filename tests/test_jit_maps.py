"""Map fields in jitted code, beside views and protobuf's maps; and lists of pairs that are read as maps."""

from __future__ import annotations

import gc
from typing import Any

import numba
import numpy as np
import pytest
from jit_map_fields import INTEGERS, LAYOUTS, LISTED, limits, native, source
from numba.extending import register_jitable

import yaffjit as yj
from yaffjit.errors import CompileAttributeError, CompileError, CompileTypeError, EscapeError, NumberError


@pytest.fixture(scope="module")
def maps(tmp_path_factory: pytest.TempPathFactory) -> yj.Schema:
    path = tmp_path_factory.mktemp("schema") / "maps.proto"
    path.write_text(source())
    return yj.load_schema(path)


# ---- keys ----


@register_jitable
def look_up(m, key, missing):
    return (
        (key in m, key not in m, missing in m, missing not in m),
        (len(m), len(m.keys()), len(m.values()), len(m.items())),
        (bool(m), not m, bool(m.items())),
        (m.get(key, -1.0), m.get(missing, -1.0), m.get(missing, default=-1.0), m.get(missing, 7)),
        (m.get(key), m.get(missing), m.get(missing) is None, m.get(missing, None) is None),
        (m[key], m[missing]),  # the last: protobuf's map has the missing key then
    )


@pytest.mark.parametrize("kind", INTEGERS)
def test_integer_keys(maps: yj.Schema, kind: str) -> None:
    message_type = maps[f"maps.{LAYOUTS[INTEGERS.index(kind) % 4].title()}"]
    low, high = limits(kind)
    keys = [*range(50, 130, 2), 0, low, low + 1, high, high - 1, high // 2 + 1]

    def read(v, key, missing):
        return look_up(getattr(v, kind), key, missing)

    jitted = numba.njit(read)
    for count, layout in ((len(keys), "flat"), (6, "sparse"), (1, "flat")):
        values = {key: row + 0.5 for row, key in enumerate(keys[-count:])}
        buf = message_type.encode({kind: values}, layout=layout)
        view = message_type.view(buf)
        for key in values:
            wanted = read(message_type.decode(buf), key, 101)
            assert wanted[-1] == (values[key], 0.0)
            assert jitted(view, native(key), 101) == read(view, key, 101) == wanted
    empty = message_type.encode({})
    assert jitted(message_type.view(empty), 5, 101) == read(message_type.decode(empty), 5, 101)


def test_integers_that_a_key_cannot_be(maps: yj.Schema) -> None:
    """protobuf's error, for each way to ask."""
    message_type = maps["maps.Flat"]
    buf = message_type.encode({"int32": {1: 1.0}, "uint64": {1: 1.0}, "int64": {1: 1.0}, "uint32": {1: 1.0}})
    view, message = message_type.view(buf), message_type.decode(buf)
    for read, key in (
        (lambda v, k: v.int32[k], 2**31),
        (lambda v, k: k in v.int32, -(2**31) - 1),
        (lambda v, k: v.uint32.get(k, 1.0), -1),
        (lambda v, k: v.uint32[k], 2**32),
        (lambda v, k: v.uint64[k], -1),
        (lambda v, k: v.int64[k], 2**63),
    ):
        with pytest.raises(ValueError) as expected:
            read(message, key)
        with pytest.raises(ValueError) as of_view:
            read(view, key)
        with pytest.raises(ValueError) as raised:
            numba.njit(read)(view, native(key))
        assert type(raised.value) is NumberError
        assert str(raised.value) == str(of_view.value) == f"Value out of range: {key}"
        assert str(key) in str(expected.value)


def test_exact_and_literal_integers(maps: yj.Schema) -> None:
    message_type, values = maps["maps.Flat"], maps["maps.Values"]
    big = (2**53 + 1, 2**60 + 1, 2**63 + 5)
    view = message_type.view(message_type.encode({"uint64": dict.fromkeys(big, 1.5), "int32": {7: 2.5}}))

    def read(v, other):
        return v.uint64[other.number], other.number in v.uint64, v.int32[7], 8 in v.int32, v.uint64.get(3)

    jitted = numba.njit(read)
    for number in (*big, 2**53, 2**60, 2**63 + 4):
        other = values.view(values.encode({"number": number}))
        assert jitted(view, other) == read(view, other)
        assert jitted(view, other)[1] == (number in big)


def test_bool_keys(maps: yj.Schema) -> None:
    message_type = maps["maps.Sparse"]

    def read(v, flag, number):
        m = v.flags
        return (
            m[flag],
            m[number],
            m.get(flag, 9),
            True in m,
            False in m,
            2 in m,
            len(m),
            list(m),
            list(m.values()),
        )

    jitted = numba.njit(read)
    for held in ({True: 5}, {False: 6}, {True: 5, False: 6}, {}):
        buf = message_type.encode({"flags": held})
        for flag, number in ((True, 0), (False, 3)):
            result = jitted(message_type.view(buf), flag, number)
            assert result == read(message_type.view(buf), flag, number)


TEXTS = ("", "Z", "a", "a\0", "aa", "~", "é", "ÿ", "ж", "中", "\uffff", "😀", "a" * 40, "a" * 40 + "b")


def test_text_keys(maps: yj.Schema) -> None:
    """Given as numba's strings of each width, as text and bytes of views, as bytes; few pairs and many."""
    message_type = maps["maps.Values"]

    def read(v, text, other):
        m = v.int64
        return m.get(text, -1), m.get(other.key, -1), text in m, other.key in m, m[text]

    def read_bytes(v, raw, other):
        return v.int64.get(raw, -1), other.raw in v.int64

    def read_made(v, text):
        return v.int64.get(text + "a", -1), v.int64.get(text[:1], -1), v.int64[text.upper()]

    jitted, jitted_bytes, jitted_made = map(numba.njit, (read, read_bytes, read_made))
    given = (*TEXTS, "key 7", "b", "éé", "жж", "中a", "😀😀", "\ue000", "\x7f", "a" * 39)
    for extra in (0, 60):
        held = {key: row + 1 for row, key in enumerate([*TEXTS, *(f"key {i}" for i in range(extra))])}
        buf = message_type.encode({"int64": held})
        view, message = message_type.view(buf), message_type.decode(buf)
        for key in given:
            other_buf = message_type.encode({"key": key, "raw": key.encode()})
            other = message_type.view(other_buf)
            wanted = read(message_type.decode(buf), key, message_type.decode(other_buf))
            assert wanted[0] == held.get(key, -1)
            assert jitted(view, key, other) == read(view, key, other) == wanted, key
            assert jitted_bytes(view, key.encode(), other) == read_bytes(message, key.encode(), other)
            assert jitted_made(view, key) == read_made(view, key)


def test_literal_text_keys(maps: yj.Schema) -> None:
    message_type = maps["maps.Values"]
    buf = message_type.encode({"int64": {"a": 1, "é": 2, "😀": 3}})

    @numba.njit
    def read(v):
        m = v.int64
        return m["a"], m["é"], m["😀"], m["b"], "a" in m, "" in m, m.get("é", 5), m.get("éé", 5), m[b"a"]

    assert read(message_type.view(buf)) == read.py_func(message_type.decode(buf))


# ---- values ----


HELD: dict[str, dict[str, Any]] = {
    "int64": {"x": -(2**63), "y": 5},
    "uint64": {"x": 2**63 + 5, "y": 0},
    "float": {"x": -0.0, "y": 0.25},
    "bool": {"x": True, "y": False},
    "color": {"x": 2, "y": -7},
    "string": {"x": "é", "y": ""},
    "bytes": {"x": b"\xff\0", "y": b""},
}


@register_jitable
def all_of(m, default):
    keys, values = [k for k in m], [v for v in m.values()]
    items = [(k, v) for k, v in m.items()]
    return (
        (m["x"], m["y"], m["z"]),
        (m.get("x"), m.get("z"), m.get("x", default), m.get("z", default)),
        (keys, list(m.keys()), values, items),
        (m["x"] in m.values(), default in m.values(), "x" in m.keys()),  # noqa: SIM118
        m == m,
    )


@pytest.mark.parametrize("name", HELD)
def test_values_of_each_kind(maps: yj.Schema, name: str) -> None:
    message_type = maps["maps.Values"]
    default: Any = {"float": 1.5, "bool": True, "string": "none", "bytes": b"none"}.get(name, 9)

    def read(v):
        return all_of(getattr(v, name), default)

    jitted = numba.njit(read)
    for layout in ("flat", "sparse"):
        for held in ({name: HELD[name]}, {}):
            view = message_type.view(message_type.encode(held, layout=layout))
            found, wanted = jitted(view), read(view)
            assert repr(found) == repr(wanted)
            assert wanted[0][0] == getattr(message_type.decode(message_type.encode(held)), name)["x"]


def test_message_values(maps: yj.Schema) -> None:
    message_type = maps["maps.Values"]
    leaves = {"a": {"n": 1, "s": "x"}, "b": {}, "é": {"n": 3, "s": ""}}
    buf = message_type.encode({"leaf": leaves, "int64": {"a": 2, "é": 3}})

    def read(v):
        best, most = "", -1
        total = 0
        for key, leaf in v.leaf.items():
            total += leaf.n * v.int64.get(key, 10)
            if leaf.n > most:
                best, most = key, leaf.n
        found = v.leaf.get("b")
        chosen = v.leaf.get("zz", v.leaf["a"])
        return (
            (best, most, total, sum([leaf.n for leaf in v.leaf.values()])),
            (v.leaf["a"].s, chosen.s, v.leaf["é"].n),
            found is None,
            v.leaf.get("zz") is None,
            v.leaf["zz"].n,
        )

    view = message_type.view(buf)
    assert numba.njit(read)(view) == read(view) == read(message_type.decode(buf))
    assert read(view)[0] == ("é", 3, 11, 4)


@pytest.mark.parametrize("name", ["int64", "uint64", "float", "string"])
def test_sums_and_extremes(maps: yj.Schema, name: str) -> None:
    message_type = maps["maps.Values"]
    default: Any = {"float": 1.5, "string": "none"}.get(name, 9)

    def bounds(v):
        m = getattr(v, name)
        return min(m.values()), max(m.values()), min(m), max(m.keys())

    def read(v):
        values = getattr(v, name).values()
        return min(values, default=default), max(values, default=default)

    def add(v):
        values = getattr(v, name).values()
        return sum(values), sum(values, 3), sum(values, start=0.5)

    values = {
        "int64": [3, -5, 2**60, 7],
        "uint64": [2**60 + 1, 0, 2**53 + 1],
        "float": [0.1] * 10 + [1e16, -1e16],
        "string": ["é", "", "zz", "a"],
    }[name]
    jitted_bounds, jitted = numba.njit(bounds), numba.njit(read)
    full = message_type.view(message_type.encode({name: {f"k{i}": x for i, x in enumerate(values)}}))
    empty = message_type.view(message_type.encode({}))
    assert jitted_bounds(full) == bounds(full)
    assert jitted(full) == read(full)
    assert jitted(empty) == read(empty)
    with pytest.raises(ValueError) as expected:
        bounds(empty)
    with pytest.raises(ValueError) as raised:
        jitted_bounds(empty)
    assert str(raised.value) == str(expected.value)
    if name != "string":
        jitted_add = numba.njit(add)
        assert jitted_add(full) == add(full)
        assert jitted_add(empty) == add(empty)


def test_equality(maps: yj.Schema) -> None:
    message_type = maps["maps.Values"]

    @numba.njit
    def compare(a, b):
        return a.int64 == b.int64, a.int64 != b.int64, a.string == b.string

    held = [{"int64": {"a": 1}}, {"int64": {"a": 2}}, {"int64": {"b": 1}}, {"string": {"a": "x"}}, {}]
    views = [message_type.view(message_type.encode(values)) for values in held]
    for a in views:
        for b in views:
            assert compare(a, b) == compare.py_func(a, b)


def test_many_rows(maps: yj.Schema) -> None:
    """Serial and parallel, a map a row; a map that's one for all rows."""
    message_type = maps["maps.Values"]
    rows = [
        {"int64": {f"k{i}": i * row for i in range(row % 50)}, "key": f"k{row % 9}"} for row in range(300)
    ]
    records = yj.records(message_type, [message_type.encode(row) for row in rows])

    @numba.njit
    def serial(records):
        total = 0
        first = records[49].int64
        for m in records:
            total += m.int64["k3"] + m.int64.get(m.key, -1) + first[m.key] + len(m.int64)
        return total

    @numba.njit(parallel=True)
    def parallel(records):
        total = 0
        first = records[49].int64
        for row in numba.prange(len(records)):
            m = records[row]
            total += m.int64["k3"] + m.int64.get(m.key, -1) + first[m.key] + len(m.int64)
        return total

    assert serial(records) == parallel(records) == serial.py_func(records)


# ---- lists of pairs that are read as maps ----


@pytest.mark.parametrize("name", LISTED)
def test_lists_of_pairs(maps: yj.Schema, name: str) -> None:
    """They are unsorted and may name a key twice: the first one counts, as in views and decode."""
    lists, read_type = maps["maps.Lists"], maps["maps.Read"]
    keys: list[Any] = {
        "text": ["b", "a", "b", "", "c", "a", *(f"key {-i % 47}" for i in range(80))],
        "signed": [3, -1, 3, 0, 2, -1, *(-(i * 7) % 53 - 9 for i in range(80))],
        "unsigned": [2**63, 1, 2**63, 0, *(2**63 + i * 7 % 53 for i in range(80))],
        "flag": [True, False, True],
    }[name]

    def read(v, key):
        m = getattr(v, name)
        total = 0
        for value in m.values():
            total = (total * 31 + value) % 1_000_003
        return len(m), key in m, m.get(key, -1), list(m), list(m.items()), total, m == m

    jitted = numba.njit(read)
    for chosen in (keys, keys[:9], sorted(set(keys)), sorted(keys), sorted(keys[:9]), keys[:1], []):
        buf = lists.encode({name: [{"key": key, "value": value} for value, key in enumerate(chosen)]})
        view, message = read_type.view(buf), read_type.decode(buf)
        assert dict(getattr(view, name)) == dict(getattr(message, name))
        for key in {*chosen, keys[0]}:
            given = native(key) if name == "unsigned" else key
            found = jitted(view, given)
            assert found == read(view, key)
            assert dict(found[4]) == dict(getattr(message, name))


def test_pairs_without_key_or_value(maps: yj.Schema) -> None:
    lists, read_type = maps["maps.Lists"], maps["maps.Read"]
    view = read_type.view(lists.encode({"text": [{}, {"value": 5}]}))
    assert numba.njit(lambda v: (v.text[""], "" in v.text, len(v.text), list(v.text)))(view) == (
        0,
        True,
        1,
        [""],
    )


# ---- out of jitted code, errors ----


def test_maps_come_out_as_views_have_them(maps: yj.Schema) -> None:
    message_type = maps["maps.Values"]
    held = {"leaf": {"a": {"n": 1}}, "int64": {"b": 2}}
    view = message_type.view(message_type.encode(held))

    @numba.njit
    def take(v):
        return v.leaf, v.int64, v.string, v.int64.keys(), v.int64.values(), v.int64.items()

    found = take(view)
    wanted = take.py_func(view)
    del view
    gc.collect()
    assert [type(value) for value in found] == [type(value) for value in wanted]
    assert [list(value) for value in found] == [list(value) for value in wanted]
    assert found[0]["a"].n == 1
    assert found[0].GetEntryClass() is wanted[0].GetEntryClass()
    assert found[2] == {}


def set_item(v):
    v.int32[1] = 2.0


def delete_item(v):
    del v.int32[1]


REFUSED = {
    "text by number": (
        lambda v: v.int64[5],
        "map field maps.Values.int64 is looked up by text, not by 5",
    ),
    "number by text": (
        lambda v: "a" in v.int32,
        "map field maps.Flat.int32 is looked up by integers, not by 'a'",
    ),
    "number by float": (
        lambda v: v.int32.get(1.5, 0.0),
        "map field maps.Flat.int32 is looked up by integers, not by float64",
    ),
    "number by bool": (
        lambda v: v.int32[True],
        "Field maps.Flat.Int32Entry.key: Expected an int, got a boolean.",
    ),
    "change": (set_item, "map field maps.Flat.int32 is read-only, as all of a view is"),
    "removal": (delete_item, "map field maps.Flat.int32 is read-only, as all of a view is"),
    "default": (
        lambda v: v.int32.get(1, "x"),
        "get() of map field maps.Flat.int32 gives float64 or the default, which can't be str",
    ),
    "arguments": (lambda v: v.int32.get(), "get() of a map takes a key and a default"),
    "arguments of keys": (lambda v: v.int32.keys(1), "keys() of a map takes no arguments"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(maps: yj.Schema, name: str) -> None:
    function, text = REFUSED[name]
    message_type = maps["maps.Values" if "Values" in text else "maps.Flat"]
    view = message_type.view(message_type.encode({}))
    with pytest.raises(CompileTypeError) as raised:
        numba.njit(function)(view)
    assert raised.value.text == text
    if name != "default":  # Python takes any
        with pytest.raises(TypeError):
            function(view)


NOT_GIVEN = (
    (
        lambda v: dict(v.int32),
        "dict() of map field maps.Flat.int32 isn't available in jitted code: fill a dict in a loop over its "
        "items()",
    ),
    (
        lambda v: v.int32 < v.int32,
        "< of map field maps.Flat.int32 isn't available in jitted code: use its values",
    ),
    (
        lambda v: v.int32.keys() == v.int32.keys(),
        "== of keys() of map field maps.Flat.int32 isn't available in jitted code: use its values",
    ),
    (
        lambda v: v.int32.items()[0],
        "items() of map field maps.Flat.int32 can't be indexed: iterate over it, or take list(x) for a list "
        "of it",
    ),
    (
        lambda v: v.int32.keys().first,
        "keys() of map field maps.Flat.int32 has no 'first' in jitted code: only len(), in and loops over it",
    ),
    (lambda v: hash(v.int32), "a map isn't hashable: map field maps.Flat.int32"),
    (
        lambda v: tuple(v.int32),
        "jitted code must know a tuple's length when it's compiled: use a list of map field maps.Flat.int32",
    ),
    (
        lambda v: reversed(v.int32),
        "reversed() of map field maps.Flat.int32 isn't available in jitted code: use list(x)[::-1]",
    ),
    (
        lambda v: np.sum(v.int32.values()),
        "np.sum() isn't for values() of map field maps.Flat.int32: use np.array(list(x))",
    ),
)


@pytest.mark.parametrize(("function", "text"), NOT_GIVEN)
def test_what_is_not_given(maps: yj.Schema, function: Any, text: str) -> None:
    message_type = maps["maps.Flat"]
    with pytest.raises(CompileError) as raised:
        numba.njit(function)(message_type.view(message_type.encode({})))
    assert raised.value.text == text
    assert raised.value.file == __file__


def test_an_unknown_method(maps: yj.Schema) -> None:
    message_type = maps["maps.Flat"]
    view = message_type.view(message_type.encode({}))
    with pytest.raises(CompileAttributeError) as raised:
        numba.njit(lambda v: v.int32.item())(view)
    text = "map field maps.Flat.int32 has no 'item' in jitted code (did you mean 'items'?)"
    assert raised.value.text == text
    with pytest.raises(AttributeError):
        (lambda v: v.int32.item())(view)


def keep_map(v):
    kept = numba.typed.List()
    kept.append(v.int32)
    return len(kept)


def keep_items(v):
    kept = numba.typed.List()
    kept.append(v.int32.items())
    return len(kept)


def keep_message(v):
    kept = numba.typed.Dict()
    kept[1] = v.leaf["a"]
    return len(kept)


def yield_keys(v):
    for key in v.int32:  # noqa: UP028
        yield key


@pytest.mark.parametrize("function", [keep_map, keep_items, keep_message, yield_keys])
def test_maps_do_not_escape(maps: yj.Schema, function: Any) -> None:
    message_type = maps["maps.Values" if function is keep_message else "maps.Flat"]
    view = message_type.view(message_type.encode({}))
    with pytest.raises(EscapeError):
        numba.njit(function)(view)
