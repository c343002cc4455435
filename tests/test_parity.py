"""What numba would do otherwise and jitted code here does as Python: each function on a protobuf message, on
a view and on a view in jitted code.

One test for each item of the list in the design; all the values that an item could go wrong with.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
import pytest

import yaffjit as yj
from yaffjit.errors import CompileTypeError

NAN, INF = math.nan, math.inf
IDS = [2**53 + 1, 2**60 + 1, 2**63 + 5]
TEXTS = ["", "a", "sale", "sales", "caf\u00e9", "\u0416\u4e2d", "\U0001d11e", "a\0b", "x" * 70]
BLOBS = [b"", b"\0", b"a", b"a\0", b"ab", b"\xff\xfe", b"x" * 70]
UINT64 = (1 << 64) - 1


@cache
def case() -> yj.MessageType:
    return yj.load_schema(Path(__file__).parent / "schemas" / "parity.proto")["parity.Case"]


def plain(value: Any) -> Any:
    """A result with the types that Python and jitted code can't share told apart no more."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(plain, value))
    if isinstance(value, float):
        return "nan" if math.isnan(value) else (value, math.copysign(1.0, value))
    if isinstance(value, int):
        return (float(value), 1.0) if value == float(value) and value else int(value) or (0.0, 1.0)
    if hasattr(value, "items"):
        return {key: plain(held) for key, held in value.items()}
    return value


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    """The result, or the class and the text of an exception."""
    try:
        return plain(function(*args))
    except (ArithmeticError, LookupError, ValueError, TypeError) as error:
        return type(error), str(error)


def agree(function: Callable[..., Any], *contents: dict[str, Any], args: tuple[Any, ...] = ()) -> None:
    """Hold a function's results on messages of these contents together, in both layouts."""
    jitted = numba.njit(function)
    for content in contents:
        message = case().message_class(**content)
        expected = outcome(function, message, *args)
        for layout in ("flat", "sparse"):
            view = case().view(case().encode(content, layout))
            assert outcome(function, view, *args) == expected, content
            assert outcome(jitted, view, *args) == expected, content


FLOATS = [
    [],
    [1.5],
    [0.1] * 10,
    [1.0, 1e100, 1.0, -1e100],
    [-0.0, 0.0],
    [0.0, -0.0],
    [-0.0],
    [NAN, 1.0, 2.0],
    [1.0, NAN, 2.0],
    [2.0, 1.0, NAN],
    [INF, 1.0],
    [INF, -INF],
    [1e308, 1e308, -1e308],
    [1e16, 1.0, 1.0, 1.0, -1e16],
]
INTEGERS = [[], [7], [0, -1], [3, -(2**31), 2**31 - 1, 3]]


def by_field(**values: list[Any]) -> list[dict[str, Any]]:
    """Contents with each value in the field."""
    return [{name: value} for name, listed in values.items() for value in listed]


CONTENTS = [
    *by_field(doubles=FLOATS, floats=[[x for x in xs if abs(x) != 1e308 and abs(x) < 1e38] for xs in FLOATS]),
    *by_field(int32s=INTEGERS, int64s=[*INTEGERS, [-(2**63)], [2**62, 2**61]]),
    *by_field(uint32s=[[], [2**32 - 1, 0]], uint64s=[[], IDS[:2], [5], [UINT64], [0, 2**63 + 5]]),
    *by_field(bools=[[], [True, True, False]], colors=[[], [0, 2, -3, 77]]),
]


def test_max_and_min_with_default() -> None:
    def bounds(v: Any) -> Any:
        return (
            (max(v.doubles, default=-1.0), min(v.doubles, default=-1.0)),
            (max(v.floats, default=-1.0), min(v.floats, default=-1.0)),
            (max(v.int32s, default=-5), min(v.int32s, default=5)),
            (max(v.int64s, default=-5), min(v.int64s, default=5)),
            (max(v.uint32s, default=0), min(v.uint32s, default=5)),
            (max(v.uint64s, default=0), min(v.uint64s, default=5)),
            (max(v.bools, default=False), min(v.bools, default=True)),
            (max(v.colors, default=-1), min(v.colors, default=-1)),
        )

    agree(bounds, *CONTENTS)


def test_max_and_min_of_nothing() -> None:
    def bounds(v: Any) -> Any:
        return max(v.doubles), min(v.uint64s), max(v.int32s)

    full = {"doubles": [1.0, 2.0], "uint64s": IDS, "int32s": [-1]}
    agree(bounds, full, *({**full, name: []} for name in full))


def test_sum() -> None:
    """From 3.12 on, sums of floats carry what rounding loses; jitted code does as its own Python."""

    def sums(v: Any) -> Any:
        return (
            (sum(v.doubles), sum(v.floats)),
            (sum(v.int32s), sum(v.int64s), sum(v.uint32s), sum(v.uint64s)),
            (sum(v.bools), sum(v.colors)),
            (sum(v.doubles[1:]), sum(v.int32s[:-1])),
        )

    agree(sums, *CONTENTS)


def test_counting_by_text() -> None:
    def counts(v: Any) -> Any:
        d: dict[str, int] = {}
        for text in v.texts:
            d[text] = d.get(text, 0) + 1
        d[v.text] = d.get(v.text, 0) + 10
        return d

    agree(counts, {"texts": [*TEXTS, "sale", "sale", "a"], "text": "sale"}, {"text": "a"}, {})


def test_counting_by_integer() -> None:
    def counts(v: Any) -> Any:
        by_id: dict[int, int] = {}
        for n in v.uint64s:
            by_id[n] = by_id.get(n, 0) + 1
        by_color: dict[int, int] = {}
        for color in v.colors:
            by_color[color] = by_color.get(color, 0) + 1
        by_id[v.uint64] = by_id.get(v.uint64, 0) + 10
        return list(by_id.keys()), list(by_id.values()), by_color

    agree(
        counts, {"uint64s": [*IDS, *IDS, 2**53, 2**60, 2**63, 0], "colors": [2, 2, -3], "uint64": 2**63 + 5}
    )


def test_which_oneof() -> None:
    def results(v: Any) -> Any:
        kind = v.WhichOneof("pick")
        kept = kind
        score = 0
        if kind == "number":
            score = v.number
        elif kept == "name":
            score = len(v.name)
        elif kind is not None:
            score = -1
        return kind, kept is None, bool(kind), not kind, kind != "part", kind == v.text, score

    agree(
        results,
        {},
        {"number": 5},
        {"number": 0, "text": "number"},
        {"name": "abc", "text": "name"},
        {"name": ""},
        {"part": {}},
    )


def test_which_oneof_is_text() -> None:
    def results(v: Any) -> Any:
        kind = v.WhichOneof("pick")
        known = kind if kind else "nothing"
        title = "nothing"
        if kind is not None:
            title = kind
        return known, kind or "none", title + "!", f"<{kind}>", str(kind), hash(kind or "none")

    agree(results, {}, {"number": 5}, {"name": ""}, {"part": {}})


def test_truth() -> None:
    def truths(v: Any) -> Any:
        texts = (bool(v.text), not v.text, 1 if v.raw else 2, bool(v.maybe_text))
        containers = (bool(v.texts), not v.doubles, 1 if v.by_text else 2, not v.by_number, bool(v.leaves))
        return texts, containers, bool(v.leaf), not v, 1 if v.leaf and not v.texts else 2

    agree(
        truths,
        {},
        {"text": "a", "raw": b"\0", "texts": [""], "doubles": [0.0], "leaf": {}},
        {"text": "\0", "by_text": {"": 0}, "by_number": {1: ""}, "leaves": [{}], "maybe_text": ""},
    )


def test_comparing_bytes() -> None:
    def compare(v: Any) -> Any:
        a, b = v.raw, v.other_raw
        pair = (a == b, a != b, a < b, a <= b, a > b, a >= b)
        literal = (a == b"ab", a == b"", a < b"ab", a <= b"a\0", a != b"\xff\xfe", a in (b"a", b"ab"))
        return pair, literal

    agree(compare, *({"raw": a, "other_raw": b} for a in BLOBS for b in BLOBS))


def test_comparing_text() -> None:
    def compare(v: Any) -> Any:
        a, b = v.text, v.other_text
        pair = (a == b, a != b, a < b, a <= b, a > b, a >= b)
        literal = (
            a == "sale",
            a == "",
            a < "caf\u00e9",
            a <= "\u0416\u4e2d",
            a != "a\0b",
            a in ("a", "sale"),
        )
        return pair, literal

    agree(compare, *({"text": a, "other_text": b} for a in TEXTS for b in TEXTS))


def test_str_and_format() -> None:
    def shown(v: Any) -> Any:
        return (
            (f"{v.text}", str(v.text), f"<{v.text}|{v.other_text}>", "%" + v.text),
            (f"{v.int32}", str(v.int64), f"{v.uint32}:{v.uint64}", str(v.uint64)),
            (f"{v.color}", str(v.bool), f"{v.bool}"),
            (f"{v.double}", str(v.float), f"{v.double}:{v.float}"),
        )

    agree(
        shown,
        {},
        *({"text": text, "other_text": "b"} for text in TEXTS),
        {"int32": -(2**31), "int64": 1 - 2**63, "uint32": 2**32 - 1, "uint64": UINT64, "bool": True},
        {"int64": 2**63 - 1, "uint64": 2**63 + 5, "color": -3},
        {"double": 0.1, "float": 0.1},
        {"double": 1e16, "float": -1e-7},
        {"double": -INF, "float": NAN},
    )


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda v: str(v.raw), "str"),
        (lambda v: f"{v.raw}", "str"),
        (lambda v: str(v.by_text), "str"),
        (lambda v: repr(v.by_number.keys()), "repr"),
        (lambda v: str(v.texts), "str"),
        (lambda v: f"{v.leaf}", "str"),
    ],
)
def test_what_has_no_text(function: Any, name: str) -> None:
    """An error, since numba would give the name of a type."""
    with pytest.raises(CompileTypeError) as caught:
        numba.njit(function)(case().view(case().encode({})))
    said = rf"{name}\(\) of .+ isn't available in jitted code: call it outside\."
    assert re.match(said, str(caught.value))


def test_in_repeated() -> None:
    def found(v: Any) -> Any:
        return (
            (1.5 in v.doubles, v.double in v.doubles, v.float in v.floats, 2 in v.doubles),
            (
                7 in v.int32s,
                v.int64 in v.int64s,
                v.uint64 in v.uint64s,
                2**63 + 5 in v.uint64s,
                -1 in v.uint64s,
            ),
            (True in v.bools, 2 in v.colors, v.color in v.colors),
            ("sale" in v.texts, v.text in v.texts, v.text not in v.texts, b"a" in v.blobs, v.raw in v.blobs),
        )

    agree(
        found,
        *CONTENTS,
        {"doubles": [2.0, -0.0], "double": 0.0, "floats": [0.1], "float": 0.1},
        {"int32s": [7], "int64s": [2**53 + 1], "int64": 2**53},
        {"uint64s": IDS, "uint64": 2**60},
        {"uint64s": IDS, "uint64": 2**60 + 1},
        {"texts": TEXTS, "text": "caf\u00e9", "blobs": BLOBS, "raw": b"a\0"},
        {"texts": TEXTS, "text": "cafe", "blobs": BLOBS, "raw": b"\xff"},
        {"colors": [77], "color": 77},
    )


def test_slices_of_repeated() -> None:
    def parts(v: Any, a: int, b: int, c: int) -> Any:
        numbers = v.int32s[a:b:c]
        texts = v.texts[a:b]
        total = 0
        for n in numbers:
            total = total * 7 + n
        letters = ""
        for text in texts:
            letters += text + "|"
        last = [leaf.number for leaf in v.leaves[-2:]]
        return len(numbers), total, letters, len(v.texts[a:]), len(v.texts[:b]), last, sum(v.int32s[::-1][:2])

    content = {"int32s": [1, 2, 3, 4, 5], "texts": TEXTS[:5], "leaves": [{"number": n} for n in range(3)]}
    for args in [
        (0, 5, 1),
        (1, -1, 1),
        (-2, 99, 1),
        (4, 0, -1),
        (-99, 99, 2),
        (3, 1, 1),
        (5, -9, -2),
        (0, 5, 0),
    ]:
        agree_on_slices(parts, content, args)


@cache
def jitted(function: Callable[..., Any]) -> Any:
    return numba.njit(function)


def agree_on_slices(function: Callable[..., Any], content: dict[str, Any], args: tuple[int, ...]) -> None:
    expected = outcome(function, case().message_class(**content), *args)
    view = case().view(case().encode(content))
    assert outcome(function, view, *args) == expected, args
    assert outcome(jitted(function), view, *args) == expected, args


def test_equality_of_repeated() -> None:
    def equal(v: Any) -> Any:
        return (
            (v.doubles == v.doubles, v.int32s == v.int64s, v.uint64s == v.uint64s[:], v.texts == v.texts),
            (
                v.int32s == [1, 2],
                v.uint64s == [2**63 + 5, 2**63],
                v.doubles == [1.0, 2.0],
                v.texts == ["a", "b"],
            ),
            (v.int32s[1:] == v.int32s[:-1], v.int32s != [1, 2], v.bools == [True], v.colors == [1, 77]),
        )

    agree(
        equal,
        *CONTENTS,
        {"int32s": [1, 2], "int64s": [1, 2], "doubles": [1.0, 2.0], "texts": ["a", "b"]},
        {"int32s": [1, 1], "uint64s": [2**63 + 5, 2**63], "bools": [True], "colors": [1, 77]},
        {"int32s": [1, 2, 3], "texts": ["a"], "doubles": [NAN]},
    )


def test_hash_of_text() -> None:
    def hashes(v: Any) -> Any:
        return hash(v.text), hash(v.raw), hash(v.text[1:]), hash(v.text + "!") % 1024

    agree(
        hashes,
        *({"text": text, "raw": text.encode()} for text in TEXTS),
        *({"raw": raw} for raw in BLOBS),
        {"text": "x" * 200},
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda v: v.uint64 in [2**63 + 5, 7][:],
        lambda v: v.uint64 in {2**63 + 5, 7},
        lambda v: v.uint64s == [2**63 + 5, 7],
        lambda v: v.uint64s != [2**63 + 5, 7],
    ],
)
def test_ids_that_numba_makes_floats_of(function: Any) -> None:
    with pytest.raises(CompileTypeError) as caught:
        numba.njit(function)(case().view(case().encode({"uint64": 2**63 + 5})))
    assert str(caught.value).startswith(
        "a uint64 isn't compared with a list or set of floats, which numba makes of integers where some are "
        "above 2**63 - 1 and others aren't: use a tuple"
    )


@pytest.mark.parametrize("n", IDS)
def test_ids_beyond_doubles(n: int) -> None:
    """Comparisons, ``in``, running maximum, sums, dict keys, ``%``, indices and stores of uint64 fields."""

    def everything(v: Any, out: Any) -> Any:
        highest = 0
        total = 0
        seen: dict[int, bool] = {}
        for n in v.uint64s:
            highest = max(highest, n)
            total += n % 1000
            seen[n] = True
            out[n % 3] = n
        compared = (
            v.uint64 == 2**60,
            v.uint64 == 2**60 + 1,
            v.uint64 > 2**53,
            v.uint64 > 2**53,
            v.uint64 != -1,
        )
        return highest, total, len(seen), v.uint64 in seen, compared, v.uint64 in (2**53, 2**60, 2**63)

    import numpy as np

    content = {"uint64s": [n, n - 1, n, 3], "uint64": n}
    outs = [np.zeros(3, np.uint64) for _ in range(3)]
    view = case().view(case().encode(content))
    expected = outcome(everything, case().message_class(**content), outs[0])
    assert expected == outcome(everything, view, outs[1]) == outcome(numba.njit(everything), view, outs[2])
    assert outs[0].tolist() == outs[1].tolist() == outs[2].tolist()
