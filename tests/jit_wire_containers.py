"""Plain functions that read repeated fields and maps, the same over google's messages and in jitted code."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numba

import yaffjit as yj

NUMBERS = (
    *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64"),
    *("fixed32", "fixed64", "sfixed32", "sfixed64", "bool", "Closed"),
)
KEYS = ("int32", "sint64", "uint64", "fixed32", "bool", "string")


@cache
def schema() -> yj.Schema:
    lines = ['syntax = "proto2"; package held;', "enum Closed { ZERO = 0; TWO = 2; MINUS = -1; }"]
    lines.append(
        "message Leaf { optional int32 n = 1 [default = 7]; optional string s = 2; repeated Leaf more = 3; }"
    )
    fields = [f"repeated {kind} {kind.lower()} = {i + 1};" for i, kind in enumerate(NUMBERS)]
    fields += ["repeated int32 far = 5000 [packed = true];", "optional int32 last = 6000;"]
    lines.append(f"message Numbers {{ {' '.join(fields)} }}")
    others = (
        "repeated string texts = 1; repeated bytes raw = 2; repeated Leaf leaves = 3; optional Leaf one = 20;"
    )
    lines.append(f"message Others {{ {others} }}")
    fields = [f"map<{kind}, double> of_{kind} = {i + 1};" for i, kind in enumerate(KEYS)]
    values = ("Closed", "string", "Leaf")
    fields += [f"map<int32, {kind}> to_{kind.lower()} = {i + 20};" for i, kind in enumerate(values)]
    lines.append(f"message Maps {{ {' '.join(fields)} }}")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "held.proto"
        path.write_text("\n".join(lines))
        return yj.load_schema(path)


def of_numbers(xs: Any) -> Any:
    count = len(xs)
    middle = xs[count // 2] == xs[count // 2 - count] if count else True
    return count, [x for x in xs], xs[::-2], max(xs, default=0), middle, xs[-1] in xs[:-1] if count else False


def of_texts(xs: Any) -> Any:
    again = [xs[i] for i in range(len(xs))]
    return len(xs), [x for x in xs], xs[::-1], again, xs[-1] in xs[:-1] if xs else False


def leaf(m: Any) -> Any:
    return m.n, m.s, len(m.more)


def of_leaves(xs: Any) -> Any:
    total = 0
    for x in xs:
        for y in x.more:
            total += y.n
    return len(xs), [jitted_leaf(x) for x in xs], [jitted_leaf(x) for x in xs[1:]], total


jitted_leaf: Any = leaf
jitted_of_numbers: Any = of_numbers
jitted_of_texts: Any = of_texts
jitted_of_leaves: Any = of_leaves


def read_numbers(m: Any) -> Any:
    whole = (
        jitted_of_numbers(m.int32),
        jitted_of_numbers(m.uint64),
        jitted_of_numbers(m.fixed32),
        jitted_of_numbers(m.closed),
    )
    lists = (
        [x for x in m.int64],
        [x for x in m.uint32],
        m.sint32[::-1],
        [x for x in m.sint64],
        [x for x in m.fixed64],
        m.sfixed32[1:],
        [x for x in m.sfixed64],
        [x for x in m.double],
        m.float[-2:],
        m.bool[:],
    )
    return whole, lists, sum(m.double, 0.0), sum(m.int32), len(m.bool), max(m.far, default=0), m.last


def read_others(m: Any) -> Any:
    return (
        jitted_of_texts(m.texts),
        jitted_of_texts(m.raw),
        jitted_of_leaves(m.leaves),
        jitted_of_leaves(m.one.more),
        jitted_leaf(m.one),
    )


def of_map(m: Any, key: Any) -> Any:
    total = 0.0
    for held in m:
        total += m[held]
    count = 0
    for held, value in m.items():
        if held in m and m[held] == value:
            count += 1
    return len(m), count, key in m, m.get(key, -1.0), len([x for x in m.values()]), bool(m)


jitted_of_map: Any = of_map


def read_maps(m: Any) -> Any:
    total = 0
    for key, value in m.to_leaf.items():
        total += key % 7 + value.n + len(value.more)
    numbers = 0
    for number in m.to_closed.values():
        numbers += number
    texts = 0
    for text in m.to_string.values():
        texts += len(text)
    return (
        jitted_of_map(m.of_sint64, -1),
        (len(m.of_int32), sum(m.of_int32), len(m.of_bool), True in m.of_bool, m.of_fixed32.get(2, -1.0)),
        jitted_of_map(m.of_string, "a"),
        (len(m.of_uint64), 3 in m.of_uint64),
        (len(m.to_leaf), total, m.to_leaf[3].n if 3 in m.to_leaf else 0),
        (len(m.to_closed), numbers, len(m.to_string), texts),
    )


def _jitted(function: Any, **others: Any) -> Any:
    """A function compiled with what it calls compiled too."""
    return numba.njit(type(function)(function.__code__, {**function.__globals__, **others}))


_leaf = numba.njit(leaf)
_leaves = _jitted(of_leaves, jitted_leaf=_leaf)
_texts = numba.njit(of_texts)
# By message: the plain function and the compiled one.
READERS = {
    "held.Numbers": (read_numbers, _jitted(read_numbers, jitted_of_numbers=numba.njit(of_numbers))),
    "held.Others": (
        read_others,
        _jitted(read_others, jitted_of_texts=_texts, jitted_of_leaves=_leaves, jitted_leaf=_leaf),
    ),
    "held.Maps": (read_maps, _jitted(read_maps, jitted_of_map=numba.njit(of_map))),
}
