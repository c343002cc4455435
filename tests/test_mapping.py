"""`map`: what results become, compiled and in plain Python; `filter`."""

from __future__ import annotations

import collections
import enum
from typing import Any

import numba
import numpy as np
import pytest
from features.schema import SCHEMA
from mapping_results import check_same

import yaffjit as yj
from yaffjit import pool
from yaffjit.plan.limits import RESULTS

pytestmark = pytest.mark.slow

Item = SCHEMA["features.Item"]
Event = SCHEMA["features.Event"]
Message = Item.message_class

ROWS = 200
PRESENT = 40  # the first rows have everything

Pair = collections.namedtuple("Pair", "title price")


class Color(enum.IntEnum):
    RED = 1
    BLUE = -5


def together(message_type: Any, messages: list[Any], times: int = 1) -> Any:
    """Records in one buffer, so that slices have their type."""
    payloads = [
        message_type.encode(message, ("flat", "sparse")[row % 2]) for row, message in enumerate(messages)
    ]
    offsets = np.concatenate(([0], np.cumsum([len(payload) for payload in payloads * times])))
    return yj.records(message_type, (b"".join(payloads * times), offsets))


def make_item(row: int) -> dict[str, Any]:
    item: dict[str, Any] = {
        "id": 2**63 + row if row % 5 else row,
        "title": ("", "a violin", "Größe", "дом", "🎻 x")[row % 5],
        "condition": row % 4,
        "image_hash": bytes(range(row % 7)),
        "price_changes": range(-2, row % 4),
    }
    item[("fixed_price", "on_request", "free")[row % 3]] = (row / 4, "ask", True)[row % 3]
    if row < PRESENT or row % 3:
        item["stock"] = row
    return item


def make_event(row: int) -> dict[str, Any]:
    event: dict[str, Any] = {"at": {"seconds": 10**9 + row, "nanos": 7000}, "dwell": {"seconds": row}}
    event["action"] = (0, 1, -1, 4)[row % 4]
    if row < PRESENT or row % 3:
        event["weight"] = row / 8
    return event


ITEMS = together(Item, [make_item(row) for row in range(ROWS)])
EVENTS = together(Event, [make_event(row) for row in range(ROWS)])
MANY = together(Item, [make_item(row) for row in range(ROWS)], 20)
THRESHOLD = 30
TABLE = np.array([1.5, 2.5, -1.0, 0.0])
PREFIX = "no. "


def is_cheap(item: Any) -> Any:
    return item.fixed_price < THRESHOLD


def changes(item: Any) -> Any:
    return len(item.price_changes) - 2


def identity(item: Any) -> Any:
    return item.id


def price(item: Any) -> Any:
    return item.fixed_price * TABLE[item.condition]


def condition(item: Any) -> Any:
    return Message.NEW if item.condition == Message.USED else item.condition


def title(item: Any) -> Any:
    return item.title


def kind(item: Any) -> Any:
    return item.WhichOneof("price")


def more(item: Any) -> Any:
    color = Color.RED if item.condition > 1 else Color.BLUE
    text = PREFIX if item.condition == 2 else str(item.title)
    return color, item.image_hash, bytes(item.image_hash), text, np.float32(0.1), np.uint8(item.condition)


def maybes(item: Any) -> Any:
    there = item.HasField("stock")
    number = item.id if there else None
    high = item.stock > 50 if there else None
    raw = item.image_hash if there else None
    text = str(item.title) if there else None
    return number, high, raw, text


def stock(item: Any) -> Any:
    return item.stock if item.HasField("stock") else None


def maybe_price(item: Any) -> Any:
    return item.stock / 4 if item.HasField("stock") else None


def maybe_title(item: Any) -> Any:
    return item.title if item.HasField("stock") else None


def several(item: Any) -> Any:
    return item.title, item.id, item.WhichOneof("price"), item.condition == 1, "constant", 7


def everything(item: Any) -> Any:
    prices = np.array([item.fixed_price, 2.0])
    return item.condition, item.fixed_price, item.title, item.WhichOneof("price"), prices


def named(item: Any) -> Any:
    return Pair(item.title, item.fixed_price)


def maybe_pair(item: Any) -> Any:
    return (item.title, item.stock, item.stock / 3) if item.HasField("stock") else None


def pair_with_maybe(item: Any) -> Any:
    return item.fixed_price, item.stock if item.HasField("stock") else None


def three(item: Any) -> Any:
    return np.array([item.fixed_price, len(item.title), item.condition])


def every_other(item: Any) -> Any:
    return np.arange(6)[::2] + item.condition, item.title


def maybe_floats(item: Any) -> Any:
    return np.full(2, item.stock / 4) if item.HasField("stock") else None


def maybe_integers(item: Any) -> Any:
    return np.array([item.stock, 7]) if item.HasField("stock") else None


def at(event: Any) -> Any:
    return event.at.ToDatetime()


def dwell(event: Any) -> Any:
    return event.dwell.ToTimedelta(), event.dwell.ToMilliseconds()


def maybe_at(event: Any) -> Any:
    return event.at.ToDatetime() if event.HasField("weight") else None


def make_closure(factor: float, texts: tuple[str, ...]) -> Any:
    def scaled(item: Any) -> Any:
        return item.fixed_price * factor, texts[item.condition % 2]

    return scaled


def weighted(item: Any, weights: Any, bonus: Any = 1) -> Any:
    return weights[item.condition] * item.fixed_price + bonus


def when(event: Any) -> Any:
    """Arrays of dates, which numba alone can't make of a list."""
    return np.array([event.at.ToDatetime()] * 2), np.array(
        [event.dwell.ToTimedelta(), event.dwell.ToTimedelta()]
    )


def title_or_kind(item: Any) -> Any:
    return item.title or item.WhichOneof("price")


def kind_or_title(item: Any) -> Any:
    return item.WhichOneof("price") if item.condition else item.title if item.HasField("stock") else None


NUMBERS = [is_cheap, changes, identity, price, condition]
TEXTS = [title, kind, more, title_or_kind, kind_or_title]
MAYBE = [stock, maybe_price, maybe_title, maybes]
TUPLES = [several, everything, named, maybe_pair, pair_with_maybe, make_closure(0.5, ("a", "b"))]
ARRAYS = [three, every_other, maybe_floats, maybe_integers]
TIMES = [at, dwell, maybe_at, when]


@pytest.fixture
def small_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows on several threads."""
    monkeypatch.setattr(pool, "ALONE_SECONDS", 1e-7)
    monkeypatch.setattr(pool, "STRETCH_SECONDS", 5e-6)
    monkeypatch.setattr(pool, "cores", lambda: 3)


@pytest.mark.parametrize("function", NUMBERS + TEXTS + MAYBE + TUPLES + ARRAYS + TIMES)
def test_compiled_and_plain_results_are_equal(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    records = EVENTS if function in TIMES else ITEMS
    for part in (records[:0], records[:1], records[42:43], records[:PRESENT], records[PRESENT:], records):
        compiled = part.map(function)
        if len(part):
            check_same(compiled, part.map(function, jit=False))
        check_same(compiled, part.map(function, threads=1))
    whole = records.map(function)
    monkeypatch.setattr(pool, "ALONE_SECONDS", 1e-7)
    monkeypatch.setattr(pool, "STRETCH_SECONDS", 5e-6)
    check_same(records.map(function, threads=3), whole)


DTYPES = [
    (is_cheap, "bool"),
    (changes, "int64"),
    (identity, "uint64"),
    (price, "float64"),
    (condition, "int64"),
    (title, "object"),
    (more, "int64 object object object float64 uint64"),
    (kind, "object"),
    (maybe_price, "float64"),
    (three, "float64"),
    (at, "datetime64[us]"),
]


@pytest.mark.parametrize(("function", "dtype"), DTYPES)
@pytest.mark.parametrize("rows", [0, 1, ROWS])
def test_dtypes_do_not_depend_on_rows(function: Any, dtype: str, rows: int) -> None:
    made = (EVENTS if function is at else ITEMS)[:rows].map(function)
    arrays = made if isinstance(made, tuple) else (made,)
    assert [type(array) for array in arrays] == [np.ndarray] * len(arrays)
    assert " ".join(array.dtype.name for array in arrays) == dtype
    assert {len(array) for array in arrays} == {rows}


@pytest.mark.parametrize(
    ("function", "dtype"),
    [(stock, "int64"), (maybes, "uint64"), (maybe_integers, "int64")],
)
@pytest.mark.parametrize("rows", [0, PRESENT, ROWS])
def test_what_may_be_missing_is_masked(function: Any, dtype: str, rows: int) -> None:
    made = ITEMS[:rows].map(function)
    if function is maybes:
        assert [array.dtype.name for array in made] == ["uint64", "bool", "object", "object"]
        made = made[0]
    assert isinstance(made, np.ma.MaskedArray)
    assert made.dtype == dtype
    gone = np.array([row >= PRESENT and row % 3 == 0 for row in range(rows)], np.bool_)
    mask = np.ma.getmaskarray(made)
    assert np.array_equal(mask if mask.ndim == 1 else mask.any(axis=1), gone)
    assert not made.data[mask].any()


def test_values() -> None:
    assert ITEMS.map(title).tolist() == [item.title for item in ITEMS]
    assert ITEMS.map(kind).tolist() == [item.WhichOneof("price") for item in ITEMS]
    assert ITEMS.map(identity).tolist() == [item.id for item in ITEMS]
    assert ITEMS.map(three).shape == (ROWS, 3)
    assert type(ITEMS.map(named)) is Pair
    assert np.isnan(ITEMS.map(maybe_floats)[42]).all()
    assert ITEMS.map(maybe_price)[41:44].tolist() == pytest.approx([10.25, float("nan"), 10.75], nan_ok=True)
    assert str(EVENTS.map(at)[3]) == "2001-09-09T01:46:43.000007"


def test_many_rows_on_threads(small_stretches: None) -> None:
    expected = ITEMS.map(several, jit=False)
    for found, one in zip(MANY.map(several), expected, strict=True):
        assert found.tolist() == one.tolist() * 20


def test_arguments() -> None:
    weights = np.array([1.0, -1.0, 2.0, 0.5])
    for args in [(weights,), (weights, 4)]:
        check_same(ITEMS.map(weighted, args=args), ITEMS.map(weighted, jit=False, args=args))
    jitted = numba.njit(weighted)
    check_same(ITEMS.map(jitted, args=[weights]), ITEMS.map(jitted, args=[weights], jit=False))
    with pytest.raises(TypeError) as caught:
        ITEMS.map(weighted, args=weights)
    assert str(caught.value) == "args must be a tuple of what the function takes after the row, not ndarray"


def test_records_as_an_argument() -> None:
    def rank(item, others):
        return len([other for other in others if other.fixed_price > item.fixed_price])

    check_same(ITEMS.map(rank, args=(ITEMS[:20],)), ITEMS.map(rank, jit=False, args=(ITEMS[:20],)))


def test_null_rows_are_missing_and_not_asked() -> None:
    payloads = [ITEMS.payload(row) for row in range(12)]
    records = yj.records(Item, [None if row % 4 == 1 else payload for row, payload in enumerate(payloads)])
    gone = [row % 4 == 1 for row in range(12)]
    called = []

    def condition_of(item):
        called.append(item)
        return condition(item)

    check_same(records.map(condition), records.map(condition_of, jit=False))
    assert len(called) == 9
    numbers, floats, texts, kinds, arrays = records.map(everything)
    assert np.ma.getmaskarray(numbers).tolist() == gone
    assert np.isnan(floats).tolist() == np.isnan(arrays).all(axis=1).tolist() == gone
    assert [text is None for text in texts] == [kind is None for kind in kinds] == gone
    assert arrays.shape == (12, 2)
    check_same(records.map(everything), records.map(everything, jit=False))
    assert len(records.filter(condition)) == 6
    assert len(records.filter(lambda item: True, jit=False)) == 9


def test_records_that_lie_anywhere() -> None:
    rows = [5, 3, 3, 199, 0]
    texts = ITEMS.take(rows).map(everything)[2]
    assert texts.tolist() == [ITEMS[row].title for row in rows]


def test_members_of_a_oneof_of_any_number(tmp_path: Any) -> None:
    (tmp_path / "x.proto").write_text(
        'syntax = "proto3";\n'
        "message Far { oneof pick { int32 last = 8190; int32 first = 1; int32 some = 77; } }"
    )
    message_type = yj.load_schema(tmp_path / "x.proto")["Far"]
    names = ["some", None, "last", "first", None, "last"]
    rows = yj.records(message_type, [message_type.encode({name: 0} if name else {}) for name in names])
    assert rows.map(lambda far: far.WhichOneof("pick")).tolist() == names


def test_text_of_a_view_that_the_function_makes() -> None:
    """It holds the array that it lies in, until it's an object."""
    items = together(Item, [{"image_hash": Item.encode({"title": f"no. {row}"})} for row in range(50)])

    def inner(item):
        data = np.frombuffer(item.image_hash, np.uint8).copy()
        return Item.view_unchecked(data).title

    assert items.map(inner).tolist() == [f"no. {row}" for row in range(50)]
    assert items.map(inner, jit=False).tolist() == [f"no. {row}" for row in range(50)]


def test_an_index(tmp_path: Any) -> None:
    yj.build_index(tmp_path / "x.arrow", Item, [item.to_message() for item in ITEMS])
    index = yj.open_index(tmp_path / "x.arrow")
    check_same(index.map(several), ITEMS.map(several))


def test_no_rows_in_plain_python() -> None:
    assert ITEMS[:0].map(title, jit=False).shape == (0,)


def test_only_none_in_plain_python() -> None:
    assert ITEMS[42:43].map(stock, jit=False).tolist() == [None]


@pytest.mark.parametrize("jit", [True, False])
def test_filter(jit: bool) -> None:
    for function in (is_cheap, changes, identity, price, stock, maybe_title, kind, maybe_price):
        chosen = ITEMS.filter(function, jit=jit)
        assert [v.id for v in chosen] == [v.id for v in ITEMS if function(v)], function
    assert len(ITEMS.filter(lambda item, most: item.stock < most, args=(10,), jit=jit)) == 10 + len(
        [row for row in range(PRESENT, ROWS) if row % 3 == 0]
    )


@pytest.mark.parametrize("jit", [True, False])
@pytest.mark.parametrize(
    ("function", "what"), [(several, "a tuple"), (three, "an array of float64"), (at, "datetime64[us]")]
)
def test_what_filter_refuses(function: Any, what: str, jit: bool) -> None:
    with pytest.raises(TypeError) as caught:
        (EVENTS if function is at else ITEMS).filter(function, jit=jit)
    assert (
        str(caught.value)
        == f"filter asks whether {function.__name__} is true, which {what} isn't: return a bool"
    )


REFUSED = [
    (lambda item: None, "None for every row", "return a value"),
    (lambda item: item, "a view of features.Item, which belongs to its row", None),
    (lambda item: item.tags, "a repeated field of features.Item, which belongs to its row", None),
    (lambda item: [item.id], "a list", "return a tuple, or np.array(x) where each row has as many"),
    (lambda item: (1, (2, 3)), "a tuple in a tuple", "return one flat tuple"),
    (lambda item: (1, None), "a tuple whose member 1 is None for every row", "return a value"),
    (lambda item: (), "an empty tuple", f"return {RESULTS}"),
    (lambda item: np.zeros((2, 2)), "an array of 2 dimensions of float64", "return a 1-D array of numbers"),
    (lambda item: {item.title: 1}, None, f"return {RESULTS}"),
]


@pytest.mark.parametrize(("function", "what", "instead"), REFUSED)
def test_what_map_refuses(function: Any, what: str | None, instead: str | None) -> None:
    instead = instead or "return the values in it that you need"
    with pytest.raises(TypeError) as caught:
        ITEMS.map(function)
    error = caught.value
    assert isinstance(error, yj.CompileError)
    assert str(error).startswith(f"<lambda> returns {what or 'DictType'}")
    assert f': {instead}.\nFile "{__file__}", line {function.__code__.co_firstlineno}' in str(error)


PLAIN_REFUSED = [
    (lambda item: [item.id], "<lambda> returns a list in row 0: return {}"),
    (lambda item: item, "<lambda> returns an Item in row 0: return {}"),
    (lambda item: (1, {}), "<lambda> returns a dict in row 0 as member 1 of a tuple: return {}"),
    (lambda item: (), "<lambda> returns an empty tuple: return {}"),
    (
        lambda item: (1, 2)[: item.condition + 1],
        "<lambda> returns a tuple of 2 in row 1, but a tuple of 1 before",
    ),
    (lambda item: item.condition or "x", "<lambda> returns an int in row 1, but a str in row 0"),
    (lambda item: (1,) if item.condition else 1, "<lambda> returns a tuple in row 1: return {}"),
]


@pytest.mark.parametrize(("function", "sentence"), PLAIN_REFUSED)
def test_what_plain_python_refuses(function: Any, sentence: str) -> None:
    with pytest.raises(TypeError) as caught:
        ITEMS.map(function, jit=False)
    assert str(caught.value) == sentence.format(RESULTS)


BIG = 2**63 + 1
# What the first two rows return, and what both are together; or what is wrong with them.
JOINED: list[tuple[Any, Any, Any, Any]] = [
    (np.int64(2**62 + 1), np.uint64(BIG), np.uint64, [2**62 + 1, BIG]),
    (np.uint64(2**62 + 1), np.int64(-1), np.int64, [2**62 + 1, -1]),
    (np.array([2**62 + 1]), np.array([BIG], np.uint64), np.uint64, [[2**62 + 1], [BIG]]),
    (np.array([2**62 + 1], np.uint64), np.array([-1]), np.int64, [[2**62 + 1], [-1]]),
    (np.array([3], np.uint64), np.array([4], np.int8), np.uint64, [[3], [4]]),
    (np.array([3], np.int8), np.array([4], np.int8), np.int8, [[3], [4]]),
    (np.array([True]), np.array([4], np.int16), np.int16, [[1], [4]]),
    (np.array([True]), np.array([0.5]), np.float64, [[1.0], [0.5]]),
    (np.array([], np.uint64), np.array([], np.int64), np.uint64, [[], []]),
    (np.array([BIG], np.uint64), np.array([-1]), OverflowError, "returns -1 in row 1: no 64 bits hold all"),
    (np.uint64(BIG), -1, OverflowError, "returns -1 in row 1: no 64 bits hold all integers"),
    (np.array([1]), 1, TypeError, "returns an int in row 1, but an array of int64 in row 0"),
    (np.array([1]), np.array([1], "m8[s]"), TypeError, "returns an array of timedelta64[s] in row 1, but"),
    (np.zeros((2, 2)), 1, TypeError, "returns an array of 2 dimensions of float64 in row 0: return a number"),
    (np.array([{}]), 1, TypeError, "returns an array of object in row 0: return a number"),
]


@pytest.mark.parametrize(("first", "second", "kind", "expected"), JOINED)
def test_plain_results_of_several_dtypes(first: Any, second: Any, kind: Any, expected: Any) -> None:
    def either(item: Any) -> Any:
        return second if item.condition else first

    def both(item: Any) -> Any:
        return 7, either(item)

    if isinstance(expected, str):
        for function in (either, both):
            with pytest.raises(kind) as caught:
                ITEMS[:2].map(function, jit=False)
            text = str(caught.value).replace(" as member 1 of a tuple", "").replace("both", "either")
            assert text.startswith(f"either {expected}")
        return
    for made in (ITEMS[:2].map(either, jit=False), ITEMS[:2].map(both, jit=False)[1]):
        assert (made.dtype, made.tolist()) == (kind, expected)


def test_plain_integers_that_do_not_fit() -> None:
    with pytest.raises(OverflowError) as caught:
        ITEMS.map(lambda item: item.id if item.condition else -item.id, jit=False)
    assert str(caught.value) == (
        f"<lambda> returns {-(2**63 + 4)} in row 4: no 64 bits hold all integers "
        f"from {-(2**63 + 196)} to {2**63 + 199}"
    )


@pytest.mark.parametrize("jit", [True, False])
@pytest.mark.parametrize("threads", [1, 3])
def test_arrays_of_another_length(jit: bool, threads: int, small_stretches: None) -> None:
    with pytest.raises(ValueError) as caught:
        ITEMS.map(lambda item: np.arange(len(item.price_changes)), jit=jit, threads=threads)
    assert str(caught.value) == "<lambda> returns arrays of one length: 3 elements in row 1, but 2 in row 0"

    def later(item):
        n = 3 if item.stock == 151 else 2
        return (item.title, np.arange(n)) if item.stock > 140 else None

    with pytest.raises(ValueError) as caught:
        ITEMS.map(later, jit=jit, threads=threads)
    assert str(caught.value) == (
        "later returns arrays of one length: 3 elements in row 151 as member 1 of a tuple, but 2 in row 142"
    )


ARGUMENTS = [
    (([1, 2],), "args[0] is a list", "numpy.array(x), tuple(x) or numba.typed.List(x)"),
    ((1, {2}), "args[1] is a set", "numpy.array(sorted(x)), tuple(x) or a numba.typed.Dict of its values"),
    (((1, (2, [3])),), "args[0][1][1] is a list", "numpy.array(x), tuple(x) or numba.typed.List(x)"),
    (
        (frozenset(),),
        "args[0] is a frozenset",
        "numpy.array(sorted(x)), tuple(x) or a numba.typed.Dict of its values",
    ),
    (({1: 2},), "args[0] is a dict", "a numba.typed.Dict, or arrays of its keys and values"),
]


@pytest.mark.parametrize(("args", "what", "instead"), ARGUMENTS)
def test_arguments_that_would_be_copied(args: Any, what: str, instead: str) -> None:
    def called(item: Any, *args: Any) -> Any:
        return len(args)

    with pytest.raises(TypeError) as caught:
        ITEMS.map(called, args=args)
    assert str(caught.value) == (
        f"{what}, which jitted code would copy for each stretch of rows: pass {instead}; "
        "jit=False runs it in Python"
    )
    assert ITEMS[:1].map(called, args=args, jit=False).tolist() == [len(args)]
    typed = numba.typed.List([1, 2]), (1, "a"), np.zeros(2)
    assert ITEMS[:1].map(called, args=typed).tolist() == [3]


async def waited(item: Any) -> Any:
    return item.condition


def yielding(item: Any) -> Any:
    yield item.condition


async def both(item: Any) -> Any:
    yield item.condition


def keywords(item: Any, **others: Any) -> Any:
    return item.condition


def keywords_and_more(item: Any, *args: Any, **others: Any) -> Any:
    return item.condition


def only_keyword(item: Any, *, most: int = 2) -> Any:
    return item.condition < most


RETURNS = "map takes functions that return a value for a row, but {} is {}"
POSITION = "jitted functions are called by position, but {}; jit=False runs it in Python"
FUNCTIONS = [
    (waited, RETURNS.format("waited", "async def"), False),
    (yielding, RETURNS.format("yielding", "a generator, which yields"), False),
    (both, RETURNS.format("both", "a generator, which yields"), False),
    (numba.njit(yielding), RETURNS.format("yielding", "a generator, which yields"), False),
    (keywords, POSITION.format("keywords takes **others"), True),
    (keywords_and_more, POSITION.format("keywords_and_more takes **others"), True),
    (
        only_keyword,
        POSITION.format(
            "parameter 'most' of only_keyword is keyword-only: without the '*' before it, args= gives it"
        ),
        True,
    ),
    (
        numba.jit(condition, forceobj=True),
        "map calls jitted functions without the GIL, but condition is compiled with forceobj=True: "
        "pass the plain function, or jit=False runs it in Python",
        True,
    ),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("function", "sentence", "in_python"), FUNCTIONS)
def test_functions_that_map_can_not_call(function: Any, sentence: str, in_python: bool) -> None:
    for call in (ITEMS.map, ITEMS.filter, lambda given: yj.feature(given)):
        with pytest.raises(TypeError) as caught:
            call(function)
        assert str(caught.value) == sentence
    if in_python:
        assert len(ITEMS.map(function, jit=False)) == ROWS
    else:
        with pytest.raises(TypeError) as caught:
            ITEMS.map(function, jit=False)
        assert str(caught.value) == sentence
