"""Repeated fields in jitted code: one function, equal results on a message, a view and a view in jit."""

from __future__ import annotations

import gc
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jit_arrays
import numba
import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

import yaffjit
from yaffjit.errors import CompileAttributeError, CompileError, ElementError, EscapeError
from yaffjit.view import View
from yaffjit.view.repeated import Repeated

LAYOUTS = jit_arrays.LAYOUTS
SEEDS = range(8)


def message(layout: str = "dynamic", seed: int | None = None, **content: Any) -> Any:
    cls = jit_arrays.message_type(layout).message_class
    return cls(**(content if seed is None else jit_arrays.content(seed)))


def view(layout: str = "dynamic", **content: Any) -> Any:
    return jit_arrays.views(layout, message(layout, **content))[0]


def plain(value: Any) -> Any:
    """A result in types that tell all differences: containers as lists, arrays with their dtype."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.tolist()
    if isinstance(value, (np.generic, float)):
        return repr(float(value)) if isinstance(value, (np.floating, float)) else value.item()
    if isinstance(value, View):
        return value.to_message()
    if isinstance(value, (str, bytes, int)) or value is None:
        return type(value), value
    if hasattr(value, "DESCRIPTOR"):
        return value
    return list(map(plain, value))


def outcome(function: Any, *args: Any) -> Any:
    try:
        return plain(function(*args))
    except IndexError as error:  # protobuf's words come first
        return IndexError, str(error).partition(":")[0]
    except (ValueError, OverflowError) as error:
        return type(error), str(error)


# Since version 7 protobuf's containers become arrays of their field's own dtype; before, of int64 or float64.
PROTOBUF_HAS_ARRAYS = np.asarray(message().int32s).dtype == np.int32


def check(function: Any, layouts: Any = ("dynamic",), *args: Any, by_protobuf: bool = True) -> None:
    """Equal results on random messages of the layouts, in all their forms; args are further arguments.

    Without ``by_protobuf`` the views' results are what is expected.
    """
    jitted = numba.njit(function)
    for layout in layouts:
        for seed in SEEDS:
            m = message(layout, seed)
            expected = outcome(function, m if by_protobuf else jit_arrays.views(layout, m)[0], *args)
            for v in jit_arrays.views(layout, m):
                assert outcome(function, v, *args) == expected, (layout, seed)
                assert outcome(jitted, v, *args) == expected, (layout, seed)


# ---- reading ----


@pytest.mark.slow
def test_every_kind_in_every_layout() -> None:
    def read(m: Any) -> Any:
        return (
            (m.int32s, m.int64s, m.uint32s, m.uint64s, m.sint32s, m.sint64s, m.fixed32s, m.fixed64s),
            (m.sfixed32s, m.sfixed64s, m.colors, m.bools, m.floats, m.doubles, m.strings, m.bytess),
            (m.items, m.points, m.child.items, m.child.child.child.strings),
        )

    def elements(m: Any) -> Any:
        ints = [
            (a, b, c, d, e)
            for a, b, c, d, e in zip(m.int32s, m.uint32s, m.sint64s, m.colors, m.sfixed32s)  # noqa: B905
        ]
        exact = [x for x in m.uint64s] + [x for x in m.fixed64s]
        floats = [x + y for x, y in zip(m.floats, m.doubles)]  # noqa: B905
        flags = [not x for x in m.bools]
        names = [len(t) for t in m.strings] + [len(b) for b in m.bytess]
        points = [p.x for p in m.points] + [len(item.points) for item in m.items]
        deep = [p.x for item in m.items for inner in item.items for p in inner.points]
        return ints, exact, floats, flags, names, points, deep

    check(read, LAYOUTS)
    check(elements, LAYOUTS)


def test_lengths_truth_and_ways_to_iterate() -> None:
    def loops(m: Any) -> Any:
        total = 0
        for i, x in enumerate(m.int32s):
            total += i * x
        for i, x in enumerate(m.colors, 3):
            total += i * x
        for a, b in zip(m.int32s, m.int32s[1:]):  # noqa: B905
            total += a ^ b
        for x in reversed(m.int64s):
            total = total * 3 + (x & 7)
        for x in reversed(m.int64s[::2]):
            total = total * 3 + (x & 7)
        for i in range(len(m.items)):
            total += m.items[i].size
        last = 0
        while last < len(m.strings) and m.strings[last] != "":
            last += 1
        return total, last

    def lengths(m: Any) -> Any:
        return (
            len(m.int32s),
            len(m.items),
            len(m.child.strings),
            bool(m.doubles),
            not m.points,
            1 if m.bytess else 0,
            len(m.points[1:]),
            bool(m.points[1:]),
        )

    check(loops)
    check(lengths)


def test_indices() -> None:
    def at(m: Any, i: Any) -> Any:
        return m.int32s[i], m.uint64s[i], m.doubles[i], m.bools[i], m.strings[i], m.bytess[i], m.colors[i]

    def inside(m: Any, i: Any) -> Any:
        return m.items[i].size, m.points[i].name, m.items[i].points[-1].x

    for i in (0, 1, -1, 4, -5, 2**40, -(2**63)):
        check(at, ("dynamic",), i)
        check(inside, ("dynamic",), i)
    check(at, ("dynamic",), np.uint8(1))
    check(at, ("dynamic",), True)


def test_exact_unsigned_indices() -> None:
    read = numba.njit(lambda v: v.strings[v.uint64s[0]])
    assert read(view(strings=["a", "b"], uint64s=[1])) == "b"
    for index in (2, 2**63, 2**64 - 1):
        with pytest.raises(IndexError):
            read(view(strings=["a", "b"], uint64s=[index]))


def test_an_index_error_names_the_field_the_index_and_the_length() -> None:
    def last(v: Any, i: int) -> Any:
        return v.strings[i]

    given = view(strings=["a", "b"])
    for read in (last, numba.njit(last)):
        for index in (2, -3):
            with pytest.raises(ElementError) as raised:
                read(given, index)
            assert str(raised.value) == f"list index out of range: strings[{index}] of 2 elements"
            assert (raised.value.name, raised.value.index, raised.value.count) == ("strings", index, 2)
    for read in (lambda v: v.strings[1:][1], numba.njit(lambda v: v.strings[1:][1])):  # lists
        with pytest.raises(IndexError, match=r"^list index out of range$"):
            read(given)


def test_slices() -> None:
    def parts(m: Any, start: Any, stop: Any, step: Any) -> Any:
        return (
            (
                m.int32s[start:stop],
                m.strings[start:],
                m.uint64s[:stop],
                m.bytess[:],
                m.floats[start:stop:step],
            ),
            (m.strings[start:stop:step], m.points[start:stop:step], m.items[::step]),
            (m.int32s[1:][start:stop][::step], m.strings[::-1][1:], m.bools[step:]),
        )

    jitted = numba.njit(parts)
    bounds = [
        (0, 3, 1),
        (1, 9, 2),
        (-2, -9, -1),
        (4, 0, -3),
        (3, 1, 1),
        (-9, 9, 5),
        (2**63 - 1, -(2**63), -2),
    ]
    for seed in range(4):
        m = message(seed=seed)
        for v in jit_arrays.views("dynamic", m):
            for bound in bounds:
                assert plain(jitted(v, *bound)) == plain(parts(m, *bound)) == plain(parts(v, *bound)), bound
    assert type(jitted(v, 0, 1, 1)[0][0]) is list
    with pytest.raises(ValueError) as caught:
        jitted(v, 0, 1, 0)
    assert str(caught.value) == "slice step cannot be zero"


def test_slices_are_sequences_too() -> None:
    def use(m: Any) -> Any:
        part = m.int32s[1:]
        texts = m.strings[:2]
        total = 0
        for i, x in enumerate(part):
            total += i * x
        return (
            (total, sum(part), max(part, default=-1), 2 in part, part == m.int32s[1:], part[::-1]),
            (texts == ["tea", "a"], "a" in texts, m.int32s[:2] + m.int32s[3:], m.strings[:1] + texts),
            (sorted(part), any(part), all(part), len(part)),
        )

    check(use)


# ---- searching and comparing ----


def test_contains_is_exact() -> None:
    def contains(m: Any) -> Any:
        big = 2**63 - 1
        return (
            (
                2 in m.int32s,
                9 in m.int32s,
                2.0 in m.int32s,
                2.5 in m.int32s,
                True in m.sint32s,
                -1 in m.uint64s,
            ),
            (2**64 - 1 in m.uint64s, 2.0**64 in m.uint64s, big in m.int64s, float(big) in m.int64s),
            (1 in m.bools, 2 in m.bools, 0.1 in m.floats, 0.1 in m.doubles, 2 in m.doubles, -7 in m.colors),
            (big in m.doubles, math.nan in m.doubles, "a" in m.int32s, 2 in m.strings, 0 in m.doubles),
            ("tea" in m.strings, "über" in m.strings, "" in m.strings, "t" in m.strings, m.name in m.strings),
            (b"a" in m.bytess, b"\xff\0" in m.bytess, "a" in m.bytess, 2 not in m.int32s),
        )

    check(contains)
    v = view(uint64s=[2**53 + 1, 2**60 + 1], doubles=[2.0**63], int64s=[2**53 + 1, 2**63 - 1])
    found = numba.njit(
        lambda v: (
            (2**53 in v.uint64s, 2**60 in v.uint64s, 2**60 + 1 in v.uint64s, float(2**53) in v.uint64s),
            (2**63 - 1 in v.doubles, float(2**53) in v.int64s, 2.0**63 in v.int64s, v.uint64s[0] in v.int64s),
        )
    )(v)
    assert found == ((False, False, True, False), (False, False, False, True))


def test_equality() -> None:
    def equal(m: Any) -> Any:
        return (
            (m.int32s == m.int32s, m.int32s == m.int64s, m.int32s != m.sint32s, m.floats == m.doubles),
            (
                m.int32s == [2, 2],
                m.int32s == [2.0],
                m.int32s[:1] == [1],
                m.bools == [1, 0],
                m.bools[:1] == [1.0],
            ),
            (
                m.strings == ["tea"],
                m.strings[:1] == ["über"],
                m.strings != m.strings[:],
                m.bytess == m.bytess,
            ),
            (m.int32s == m.strings, m.int32s != m.strings, m.int32s == (2, 2), m.int32s != (2, 2)),
            (m.child.int32s == m.child.child.int32s, m.uint64s[:1] == [2], m.doubles[:2] == [2, 0.1]),
        )

    check(equal)
    assert numba.njit(lambda v: (v.int64s == v.doubles, v.int64s == [2.0**53]))(
        view(int64s=[2**53 + 1], doubles=[2.0**53])
    ) == (False, False)


def test_index_and_count_are_those_of_views() -> None:
    def search(v: Any) -> Any:
        return (
            (v.int32s.count(2), v.strings.count("tea"), v.uint64s.count(2.0), v.bytess.count(b"a")),
            (v.int32s.count("a"), v.doubles.count(2), v.bools.count(1)),
            (v.int32s.index(2), v.int32s.index(2, 1), v.int32s.index(2, -3, -1)),
        )

    def texts(v: Any) -> Any:
        return v.strings.index("tea"), v.strings.index("a", 1)

    for function in (search, texts):
        jitted = numba.njit(function)
        for seed in range(30):
            v = jit_arrays.views("dynamic", message(seed=seed))[0]
            assert outcome(jitted, v) == outcome(function, v)
    with pytest.raises(ValueError) as caught:
        numba.njit(lambda v, x: v.int32s.index(x))(view(), 7)
    assert str(caught.value) == "the value is not in list"


# ---- sums and extremes ----


def test_sums() -> None:
    def sums(m: Any) -> Any:
        return (
            (
                sum(m.doubles),
                sum(m.floats),
                sum(m.doubles, 0.5),
                sum(m.doubles, 3),
                sum(m.doubles, start=-0.0),
            ),
            (sum(m.colors), sum(m.bools), sum(m.uint32s), sum(m.sint32s, 2**40), sum(m.int32s, start=0.25)),
            (sum(m.doubles[1:]), sum(m.bools, True), sum(m.uint32s, start=m.size)),
        )

    jitted = numba.njit(sums)
    for seed in range(60):
        v = jit_arrays.views("dynamic", message(seed=seed))[0]
        # An empty sum of floats is 0 in Python, 0.0 here.
        assert jitted(v) == sums(v) == sums(v.to_message())
    total = numba.njit(lambda v: sum(v.doubles))
    for values in (
        [0.1] * 10,
        [1e16, 1.0, -1e16],
        [math.inf, 1.0],
        [1e308, 1e308, -1e308],
        [-0.0],
        [-0.0] * 2,
    ):
        assert repr(total(view(doubles=values))) == repr(sum(values))
    assert math.isnan(total(view(doubles=[math.inf, -math.inf])))
    exact = numba.njit(lambda v: (sum(v.uint64s), sum(v.uint64s, 5), sum(v.uint64s, 0.5)))
    assert exact(view(uint64s=[2**63, 2**60 + 1])) == (
        2**63 + 2**60 + 1,
        2**63 + 2**60 + 6,
        2.0**63 + 2.0**60,
    )


def test_extremes() -> None:
    def extremes(m: Any) -> Any:
        return (
            (max(m.int32s), min(m.uint64s), max(m.doubles), min(m.bools), max(m.colors), max(m.fixed64s)),
            (max(m.strings), min(m.strings), min(m.bytess)),
        )

    def defaults(m: Any) -> Any:
        return (
            (max(m.int32s, default=-5), min(m.uint64s, default=7), max(m.doubles, default=0.5)),
            (min(m.doubles[9:], default=1.5), max(m.strings, default="none"), min(m.int64s, default=None)),
            (max(m.int32s[:0], default=m.size), max(m.bytess, default=b"")),
        )

    check(extremes)
    check(defaults)
    first = numba.njit(lambda v: (min(v.doubles), max(v.doubles)))
    for values in ([0.0, -0.0], [-0.0, 0.0], [1.0, math.nan, 2.0], [math.nan, 1.0]):
        assert repr(first(view(doubles=values))) == repr((min(values), max(values)))


def test_lists() -> None:
    def lists(m: Any) -> Any:
        return (
            (sorted(m.int32s), sorted(m.uint64s, reverse=True), sorted(m.doubles), sorted(m.strings)),
            (list(m.int32s), list(m.strings), list(m.bools[1:]), list(reversed(m.colors))),
            (any(m.bools), all(m.bools), any(m.strings), all(m.int32s), any([x > 1 for x in m.int32s])),
            ([x * 2 for x in m.int32s if x == 2], [t for t in m.strings if t != "a"]),
        )

    check(lists)


# ---- messages ----


def best(m: Any) -> Any:
    found = m.child
    price = -1.0
    at = -1
    for i, item in enumerate(m.items):
        if item.price > price:
            found, price, at = item, item.price, i
    return found.size, price, at, found.name, m.items[at].size if at >= 0 else -1


def weighted(m: Any) -> Any:
    total = weight = 0.0
    reds = 0
    for item in m.items:
        for point in item.points:
            total += item.price * point.x
            weight += point.x
        for color in item.colors:
            reds += color == 2
    return total / weight if weight else 0.0, reds


def choose(m: Any) -> Any:
    numbers = m.doubles if m.size % 2 else m.doubles2
    texts = m.strings if len(m.strings) < 3 else m.strings[:2]
    return float(sum(numbers)), len(texts), texts


def generated(m: Any) -> Any:
    return [x for x in sizes(m)]


@numba.njit
def sizes(m):
    for item in m.items:
        for x in item.int32s:
            yield item.size * x


@pytest.mark.parametrize("function", [best, weighted, choose])
def test_features(function: Any) -> None:
    check(function)


def test_jitted_generators_over_fields() -> None:
    jitted = numba.njit(generated)
    m = message(items=[{"size": 2, "int32s": [1, 3]}, {}, {"size": 5, "int32s": [7]}])
    assert jitted(jit_arrays.views("dynamic", m)[0]) == [2, 6, 35]


def in_parallel(m: Any) -> Any:
    items = m.items
    out = np.zeros(len(items))
    for i in numba.prange(len(items)):
        out[i] = items[i].price + sum(m.int32s) * len(items[i].points)
    return out


def records_in_parallel(records: Any) -> Any:
    found = 0.0
    for row in numba.prange(len(records)):
        for item in records[row].items:
            found += item.size
    return found


def test_prange() -> None:
    jitted = numba.njit(parallel=True)(in_parallel)
    of = jit_arrays.message_type()
    messages = [message(seed=seed) for seed in range(40)]
    for m in messages[:8]:
        assert jitted(jit_arrays.views("dynamic", m)[0]).tolist() == in_parallel(m).tolist()
    records = yaffjit.records(of, [of.encode(m) for m in messages])
    expected = sum(item.size for m in messages for item in m.items)
    assert numba.njit(parallel=True)(records_in_parallel)(records) == expected


# ---- speed, as far as the machine code shows it ----


def read_once(m: Any, i: Any, out: Any) -> None:
    out[0] = m.items[i].price


def read_again(m: Any, i: Any, out: Any) -> None:
    out[0] = m.items[i].price
    out[1] = m.items[i].price * 2
    item = m.items[i]
    out[2] = item.price + m.items[i].price


def test_equal_reads_of_an_element_are_one_across_stores() -> None:
    v, out = view(items=[{"price": 0.5}]), np.zeros(3)

    def loads(function: Any) -> int:
        jitted = numba.njit(function)
        jitted(v, 0, out)
        (text,) = jitted.inspect_llvm().values()
        return text.count("!invariant.load")

    assert loads(read_again) == loads(read_once) > 0
    assert out.tolist() == [0.5, 1.0, 1.0]


def test_loops_are_vectorised() -> None:
    @numba.njit
    def total(m):
        found = 0
        for x in m.int64s:
            found += x ^ 5
        return found

    assert total(view(int64s=[1, 2])) == (1 ^ 5) + (2 ^ 5)
    (text,) = total.inspect_llvm().values()
    assert re.search(r"load <\d+ x i64>, .*align 1, !invariant\.load", text)


# ---- numpy ----


def test_arrays() -> None:
    def arrays(m: Any) -> Any:
        return (
            (np.asarray(m.int32s), np.asarray(m.uint64s), np.asarray(m.bools), np.asarray(m.floats)),
            (np.asarray(m.doubles), np.asarray(m.colors), np.asarray(m.fixed32s), np.array(m.sint64s)),
            (np.asarray(m.int32s, np.float64), np.array(m.floats, dtype=np.float64)),
            (np.asarray(m.doubles)[::-1], np.asarray(m.int32s) * 2.0, np.asarray(m.doubles[1:])),
        )

    def reductions(m: Any) -> Any:
        return np.sum(m.int32s), np.max(m.colors), np.any(m.bools), np.sum(m.int32s[1:]), np.argmax(m.doubles)

    check(arrays, by_protobuf=PROTOBUF_HAS_ARRAYS)
    jitted = numba.njit(reductions)
    m = message(int32s=[3, 1, -2], colors=[2, 0], bools=[False], doubles=[0.5, 2.5])
    assert jitted(jit_arrays.views("dynamic", m)[0]) == reductions(m) == (2, 2, False, -1, 1)
    assert numba.njit(lambda v: np.sum(v.uint64s) == 2**60)(view(uint64s=[2**60, 1])) is False


def test_functions_of_numpy() -> None:
    def by_element(m: Any) -> Any:
        return np.sqrt(np.asarray(m.uint32s)), np.array([x.price for x in m.items]), np.cumsum(m.sint64s)

    def in_parallel(m: Any) -> Any:
        return np.asarray(m.doubles) * 2, int(np.sum(m.int32s)), int(np.argmax(m.doubles)), sum(m.bools)

    check(by_element, by_protobuf=PROTOBUF_HAS_ARRAYS)
    jitted = numba.njit(parallel=True)(in_parallel)
    of = jit_arrays.message_type()
    records = yaffjit.records(of, [of.encode({"price": row / 4}) for row in range(5)])
    prices = numba.njit(lambda records: np.array([m.price for m in records]))(records)
    assert plain(prices) == ("float64", [0.0, 0.25, 0.5, 0.75, 1.0])
    m = message(int32s=[3, 1, -2], doubles=[0.5, 2.5], bools=[True])
    assert plain(jitted(jit_arrays.views("dynamic", m)[0])) == plain(in_parallel(m))


def test_arrays_share_the_bytes_and_keep_them() -> None:
    lend = numba.njit(lambda v: np.asarray(v.doubles))
    v = view(doubles=[0.5] * 1000)
    array = lend(v)
    assert not array.flags.writeable
    assert np.shares_memory(array, np.frombuffer(v._data_, np.uint8))
    count = v._owner_.meminfo.refcount
    more = [lend(v) for _ in range(3)]
    assert v._owner_.meminfo.refcount == count + 3
    del more
    gc.collect()
    assert v._owner_.meminfo.refcount == count
    del v
    gc.collect()
    assert array.sum() == 500
    assert numba.njit(lambda v: np.array(v.doubles))(view(doubles=[0.5])).flags.writeable
    empty = lend(view())
    assert (empty.dtype, empty.shape) == (np.float64, (0,))


def test_temporary_arrays_are_freed() -> None:
    jitted = numba.njit(lambda v: np.sum(v.doubles[1:]) + np.sum(v.doubles) + len(sorted(v.strings)))
    v = view(doubles=[0.5] * 10, strings=["b", "a"])
    jitted(v)
    _nrt_python.memsys_enable_stats()
    before = rtsys.get_allocation_stats()
    for _ in range(10):
        jitted(v)
    after = rtsys.get_allocation_stats()
    _nrt_python.memsys_disable_stats()
    assert after.alloc - before.alloc == after.free - before.free > 0


@contextmanager
def balanced_memory() -> Iterator[None]:
    """All that's allocated inside is freed inside."""
    had_stats = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        yield
        after = rtsys.get_allocation_stats()
    finally:
        if not had_stats:
            _nrt_python.memsys_disable_stats()
    assert after.alloc - before.alloc == after.free - before.free > 0
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free > 0


def test_defaults_of_extremes_are_kept_and_freed() -> None:
    """Strings and bytes that the running code makes, with memory taken after each."""

    @numba.njit
    def extremes(v, text, other_view):  # type: ignore[no-untyped-def]
        first = max(v.strings, default=text + str(len(text)))
        other = text + "other" + str(len(first))
        second = min(v.strings[9:], default=text + str(len(other)))
        third = max(v.bytess, default=bytes(other_view.bytess[0]))
        more = [text + str(i) for i in range(50)] + [other]
        copies = [bytes(other_view.bytess[1]) for _ in range(50)]
        return first, second, third, len(more) + len(copies)

    given = view(strings=["tea", "é"], bytess=[b"a", b"c"])
    other = view(bytess=[b"bcd", b"xyz"])

    def both() -> tuple[Any, Any]:
        return extremes(view(), "default é ", other), extremes(given, "default é ", other)

    both()
    with balanced_memory():
        found = [both() for _ in range(20)]
    expected = ("default é 10", "default é 17", b"bcd", 101), ("é", "default é 16", b"c", 101)
    assert found == [expected] * 20


def test_comparing_with_a_typed_list_frees_what_it_reads() -> None:
    @numba.njit
    def compare(v, text):  # type: ignore[no-untyped-def]
        kept = numba.typed.List()
        for part in ("a", "b"):
            kept.append(text + part)
        return v.strings == kept, kept != v.strings, len(kept)

    v = view(strings=["xa", "xb"])
    compare(v, "x")
    with balanced_memory():
        assert [compare(v, text) for text in ("x", "y")] == [(True, False, 2), (False, True, 2)]


# ---- what comes out ----


def test_containers_come_out_over_the_same_bytes() -> None:
    v = view(int32s=[1, 2], strings=["a"], items=[{"size": 4}], points=[{"x": 1}])
    numbers, texts, items, points, part = numba.njit(
        lambda v: (v.int32s, v.strings, v.items, v.points, v.items[:1])
    )(v)
    for container in (numbers, texts, items, points):
        assert isinstance(container, Repeated)
        assert container._data is v._data_
    assert type(items[0]) is type(v)
    assert items[0]._owner_ is v._owner_
    assert type(part) is list
    del v
    gc.collect()
    assert (numbers, texts, items[0].size, points[0].x, part[0].size) == ([1, 2], ["a"], 4, 1, 4)
    absent = numba.njit(lambda v: (v.child.int32s, v.items, v.child.child.strings[1:]))(view())
    assert absent == ([], [], [])


def test_repeated_fields_pass_between_jitted_functions() -> None:
    @numba.njit
    def total(values):
        found = 0
        for x in values:
            found += x
        return found

    @numba.njit
    def rest(values):
        return values[1:]

    assert numba.njit(lambda v: (total(v.int32s), total(rest(v.int32s)), rest(rest(v.int32s))))(
        view(int32s=[1, 2, 4])
    ) == (7, 6, [4])


# ---- errors ----


def test_errors_can_be_caught() -> None:
    @numba.njit
    def read(v, i):
        try:
            return v.items[i].size + v.int32s[i] + len(v.strings[i])
        except Exception:
            return -1

    v = view(items=[{"size": 4}], int32s=[2], strings=["abc"])
    assert (read(v, 0), read(v, 1), read(v, 2**40), read(view(), 0)) == (9, -1, -1, -1)


UNCOMPARED = "messages aren't compared in jitted code: compare fields of"
READ_ONLY = "are read-only in jitted code:"
KEPT = "keep the values that you need, in a list or an array, instead"


NO_OPERATOR = "isn't for field int32s of arrays.Dynamic, which is repeated: list(x) makes a list of it"
NO_TEXT = "str() of field int32s of arrays.Dynamic isn't available in jitted code: call it outside"


def set_element(v: Any) -> None:
    v.int32s[0] = 1


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (
            lambda v: v.int32s.append(1),
            "repeated fields are read-only in jitted code: field int32s of arrays.Dynamic has no append(), "
            "but list(x) has",
        ),
        (
            lambda v: v.strings[1:].sort(),
            f"a slice is {READ_ONLY[4:]} field strings of arrays.Dynamic has no sort(), but list(x) has",
        ),
        (
            lambda v: v.items.add(),
            f"repeated fields {READ_ONLY} field items of arrays.Dynamic has no add(), but list(x) has",
        ),
        (
            lambda v: v.int32s.indx(1),
            "field int32s of arrays.Dynamic is repeated, and has no 'indx' (did you mean 'index'?)",
        ),
        (lambda v: v.int32s["a"], "list indices must be integers, not str: field int32s of arrays.Dynamic"),
        (
            lambda v: v.int32s[1.0],
            "list indices must be integers, not float64: field int32s of arrays.Dynamic",
        ),
        (lambda v: v.items[0] in v.items, f"{UNCOMPARED} field items of arrays.Dynamic"),
        (lambda v: v.items == v.items, f"{UNCOMPARED} field items of arrays.Dynamic"),
        (lambda v: v.items.count(v), f"{UNCOMPARED} field items of arrays.Dynamic"),
        (lambda v: sum(v.strings), "sum() takes numbers: field strings of arrays.Dynamic"),
        (lambda v: max(v.items), "messages have no order: max() of field items of arrays.Dynamic"),
        (
            lambda v: max(v.int32s, 4),
            "max() of field int32s of arrays.Dynamic takes no argument but a default in jitted code",
        ),
        (
            lambda v: min(v.int32s, default="a"),
            "min() of field int32s of arrays.Dynamic and its default are of types that don't meet: "
            "int64 and str",
        ),
        (lambda v: sorted(v.items), "messages have no order: sorted() of field items of arrays.Dynamic"),
        (
            lambda v: np.asarray(v.strings),
            "only numbers become an array: field strings of arrays.Dynamic is repeated string",
        ),
        (lambda v: v.int32s + v.int32s, f"+ {NO_OPERATOR}"),
        (lambda v: v.int32s < v.int32s, f"< {NO_OPERATOR}"),
        (lambda v: hash(v.strings), "a repeated field isn't hashable: field strings of arrays.Dynamic"),
        (lambda v: str(v.int32s), NO_TEXT),
        (lambda v: f"{v.int32s}", NO_TEXT),
        (set_element, "repeated fields are read-only in jitted code: field int32s of arrays.Dynamic"),
        (
            lambda v: tuple(v.int32s),
            "jitted code must know a tuple's length when it's compiled: use a list of "
            "field int32s of arrays.Dynamic",
        ),
        (
            lambda v: np.maximum(v.int32s, 1),
            "np.maximum isn't given for field int32s of arrays.Dynamic with these arguments: "
            "use np.asarray(x)",
        ),
        (
            lambda v: np.array(v.items),
            "only numbers become an array: field items of arrays.Dynamic is repeated message",
        ),
    ],
)
def test_what_is_refused(function: Any, sentence: str) -> None:
    with pytest.raises(CompileError) as caught:
        numba.njit(function)(view())
    assert caught.value.text == sentence
    assert caught.value.file == __file__
    assert isinstance(caught.value, CompileAttributeError) == (
        "has no" in sentence and "order" not in sentence
    )


def test_ways_out_are_closed() -> None:
    def typed_list(v: Any) -> Any:
        kept = numba.typed.List()
        kept.append(v.int32s)
        return kept

    def typed_dict(v: Any) -> Any:
        kept = numba.typed.Dict()
        kept[1] = v.strings[1:]
        return kept

    def generator(v: Any) -> Any:
        for x in v.doubles:  # noqa: UP028
            yield x

    stored = (
        "a repeated field of arrays.Dynamic can't be stored in a typed {}, which may outlive the bytes: {}"
    )
    for function, sentence in (
        (typed_list, stored.format("List", KEPT)),
        (typed_dict, stored.format("Dict", KEPT)),
        (generator, "which may outlive the bytes: iterate over it inside another jitted function"),
    ):
        with pytest.raises(EscapeError) as caught:
            numba.njit(function)(view(doubles=[1.0]))
        assert sentence in str(caught.value)


def test_lawful_ways_to_keep() -> None:
    def keep(v: Any) -> Any:
        lists = [v.int32s, v.sint32s]
        pair = (v.doubles, v.strings[:1])
        longest = v.int32s
        for item in v.items:
            if len(item.int32s) > len(longest):
                longest = item.int32s
        maybe = None
        if len(v.items) > 0:
            maybe = v.items[0].strings
        return lists, pair, longest, maybe

    v = view(
        int32s=[1],
        sint32s=[2, 3],
        doubles=[0.5],
        strings=["a", "b"],
        items=[{"int32s": [4, 5], "strings": ["z"]}],
    )
    result = numba.njit(keep)(v)
    expected = keep(v)
    none = numba.njit(keep)(view())
    del v
    gc.collect()
    assert plain(result) == plain(expected)
    assert none == ([[], []], ([], []), [], None)
