"""uint64_exact computes what Python's int computes: each function runs jitted, and plain on Python's ints."""

from __future__ import annotations

import enum
import math
import operator
import os
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from exact import as_exact
from hypothesis import given, settings
from hypothesis import strategies as st

from yaffjit.errors import CompileTypeError
from yaffjit.jit.integers import as_uint64, uint64_exact

IDS = [2**53 + 1, 2**60 + 1, 2**63 + 5, 2**64 - 1, 0, 10]
UNSIGNED_EDGES = sorted(
    {
        0,
        1,
        2,
        3,
        9,
        10,
        63,
        64,
        *(2**k + d for k in (31, 32, 52, 53, 54, 60, 61, 62, 63) for d in (-1, 0, 1, 5)),
    }
    | {2**64 - 1025, 2**64 - 1024, 2**64 - 2, 2**64 - 1}
)
SIGNED_EDGES = sorted({v for v in UNSIGNED_EDGES if v < 2**63} | {-v for v in UNSIGNED_EDGES if v <= 2**63})
FLOAT_EDGES = [
    *(sign * v for sign in (1, -1) for v in (0.0, 0.5, 1.0, 1.5, 9.999, 1e300, math.inf, 5e-324)),
    *(math.nextafter(float(2**k), to) for k in (52, 53, 60, 63, 64) for to in (0.0, math.inf)),
    *(float(2**k) for k in (52, 53, 60, 63, 64)),
    math.nan,
]
NEGATIVE = "uint64 {} a negative integer is negative, which a uint64 can't hold"
NO_POWER = "a negative power of integers isn't one: use floats"
NO_INDEX = "cannot fit 'int' into an index-sized integer"
unsigned = st.sampled_from(UNSIGNED_EDGES) | st.integers(0, 2**64 - 1) | st.integers(0, 64)
signed = st.sampled_from(SIGNED_EDGES) | st.integers(-(2**63), 2**63 - 1) | st.integers(-64, 64)
floats = st.sampled_from(FLOAT_EDGES) | st.floats() | st.floats(0, 2.0**65)
many = settings(max_examples=400, deadline=None)


def ids(values: list[int] = IDS) -> np.ndarray:
    return np.array(values, np.uint64)


def both(jitted: Callable[..., Any], *args: Any) -> Any:
    """The jitted result, after comparing it, types included, with the same code on Python's ints."""
    plain = jitted.py_func
    globals_before = plain.__globals__["as_exact"]
    try:
        plain.__globals__["as_exact"] = int
        expected = plain(*args)
    finally:
        plain.__globals__["as_exact"] = globals_before
    result = jitted(*args)
    assert result == expected
    assert repr(result) == repr(expected)  # True and 1, 1 and 1.0, -0.0 and 0.0 are equal
    return result


def same(result: Any, expected: Any) -> None:
    assert repr(result) == repr(expected)


# ---- binary operators, against Python's over edge values and at random ----


@numba.njit
def unsigned_pair(a, b):
    x, y = as_exact(a), as_exact(b)
    return (
        (x == y, x != y, x < y, x <= y, x > y, x >= y, min(x, y), max(x, y)),
        (x + y, x - y, x * y, x & y, x | y, x ^ y, x << y, x >> y, pow(x, y)),
        (x // y, x % y, divmod(x, y), x / y) if b != np.uint64(0) else (x, x, (x, x), 0.0),
    )


@many
@given(unsigned, unsigned)
def test_two_exact(a: int, b: int) -> None:
    compared, computed, divided = unsigned_pair(np.uint64(a), np.uint64(b))
    same(compared, (a == b, a != b, a < b, a <= b, a > b, a >= b, min(a, b), max(a, b)))
    wrapped = [a + b, a - b, a * b, a & b, a | b, a ^ b, a << b if b < 64 else 0, a >> b, pow(a, b, 2**64)]
    same(computed, tuple(v % 2**64 for v in wrapped))
    if b:
        same(divided, (a // b, a % b, divmod(a, b), a / b))


@numba.njit
def signed_pair(a, n):
    x = as_exact(a)
    return (
        (x == n, x != n, x < n, x <= n, x > n, x >= n, min(x, n), max(x, n)),
        (n == x, n != x, n < x, n <= x, n > x, n >= x, min(n, x), max(n, x)),
        (x + n, x - n, n - x, x * n, n * x, x & n, n & x, n << x, n >> x),
        (x % n, x / n) if n else (0, 0.0),
        (n // x, n % x, divmod(n, x), n / x) if x else (0, x, (0, x), 0.0),
    )


@many
@given(unsigned, signed)
def test_exact_with_int64(a: int, n: int) -> None:
    left, right, computed, by_n, by_a = signed_pair(np.uint64(a), n)
    same(left, (a == n, a != n, a < n, a <= n, a > n, a >= n, min(a, n), max(a, n)))
    same(right, (n == a, n != a, n < a, n <= a, n > a, n >= a, min(n, a), max(n, a)))
    wrapped = [a + n, a - n, n - a, a * n, n * a, a & n, n & a, n << a if a < 64 else 0]
    same(computed, (*(v % 2**64 for v in wrapped), n >> a))
    if n:
        same(by_n, (a % n, a / n))
    if a:
        same(by_a, (n // a, n % a, divmod(n, a), n / a))


@numba.njit
def nonnegative_pair(a, n):
    x = as_exact(a)
    return (x | n, n | x, x ^ n, x << n, x >> n, x**n, n ** (x & 63)), (x // n, divmod(x, n)) if n else (
        x,
        (x, 0),
    )


@many
@given(unsigned, signed.filter(lambda n: n >= 0))
def test_exact_with_nonnegative_int64(a: int, n: int) -> None:
    computed, divided = nonnegative_pair(np.uint64(a), n)
    shifted = (a << n) % 2**64 if n < 64 else 0
    same(computed, (a | n, n | a, a ^ n, shifted, a >> n, pow(a, n, 2**64), pow(n, a & 63, 2**64)))
    if n:
        same(divided, (a // n, divmod(a, n)))


@numba.njit
def float_pair(a, f):
    x = as_exact(a)
    return (
        (x == f, x != f, x < f, x <= f, x > f, x >= f, f == x, f != x, f < x, f <= x, f > x, f >= x),
        (x in (f, f), x + f, f + x, x - f, f - x, x * f, f * x),
        (x / f, f / x) if f != 0.0 and x else (0.0, 0.0),
    )


@many
@given(unsigned, floats)
def test_exact_with_float(a: int, f: float) -> None:
    compared, computed, divided = float_pair(np.uint64(a), f)
    same(
        compared, (a == f, a != f, a < f, a <= f, a > f, a >= f, f == a, f != a, f < a, f <= a, f > a, f >= a)
    )
    same(computed, (a == f, a + f, f + a, a - f, f - a, a * f, f * a))
    if f and a:
        same(divided, (a / f, f / a))


@pytest.mark.parametrize(
    ("function", "args", "error", "text"),
    [
        (lambda a, n: as_exact(a) | n, (1, -2), ValueError, NEGATIVE.format("|")),
        (lambda a, n: n ^ as_exact(a), (1, -2), ValueError, NEGATIVE.format("^")),
        (lambda a, n: as_exact(a) // n, (1, -2), ValueError, NEGATIVE.format("//")),
        (lambda a, n: as_exact(a) >> n, (1, -2), ValueError, "negative shift count"),
        (lambda a, n: as_exact(a) << n, (1, -2), ValueError, "negative shift count"),
        (lambda a, n: as_exact(a) ** n, (1, -2), ValueError, NO_POWER),
        (lambda a, n: as_exact(a) // n, (1, 0), ZeroDivisionError, "integer division or modulo by zero"),
        (lambda a, n: as_exact(a) % n, (1, 0), ZeroDivisionError, "integer division or modulo by zero"),
        (lambda a, n: as_exact(a) / n, (1, 0), ZeroDivisionError, "division by zero"),
        (lambda a, n: n if a else as_exact(a), (1, -2), OverflowError,
         "a negative integer doesn't fit where a uint64 is kept"),
        (lambda a, n: np.int64(as_exact(a)), (2**63, 0), OverflowError,
         "a uint64 above 9223372036854775807 doesn't fit in int64"),
        (lambda a, n: (1, 2)[as_exact(a)], (2**63, 0), IndexError, NO_INDEX),
        (lambda a, n: np.zeros(2)[as_exact(a)], (2**63, 0), IndexError, NO_INDEX),
    ],
)  # fmt: skip
def test_what_fits_nowhere_raises(
    function: Callable[..., Any], args: tuple[int, int], error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as caught:
        numba.njit(function)(np.uint64(args[0]), args[1])
    assert str(caught.value) == text


@numba.njit(error_model="numpy")
def divided_as_numpy(a, n):
    x = as_exact(a)
    return x // n, x % n, x / n


def test_numpy_error_model_divides_by_zero() -> None:
    assert divided_as_numpy(np.uint64(5), 0) == (0, 0, math.inf)


@numba.njit
def quotients(a, n):
    x = as_exact(a)
    return x // n, divmod(x, n), x % n


@numba.njit
def integer_power(a, n):
    return as_exact(a) ** n


@numba.njit
def float_power(a, f):
    return as_exact(a) ** f


@many
@given(unsigned, floats)
def test_powers_of_floats(a: int, f: float) -> None:
    if a and math.isfinite(f):
        f = math.fmod(f, 16.0)  # Python raises OverflowError where numba gives inf
    if a or f >= 0.0:
        same(float_power(np.uint64(a), f), float(a) ** f)


def test_zero_and_negative_numbers() -> None:
    """Nothing of zero is negative; but a negative power of it raises, as in Python."""
    for n in (-1, -7, -(2**63)):
        assert quotients(np.uint64(0), n) == (0, (0, 0), 0)
    for power, exponent in ((integer_power, -1), (float_power, -1.0), (float_power, -1e-300)):
        with pytest.raises(ZeroDivisionError) as expected:
            pow(0, exponent)
        with pytest.raises(ZeroDivisionError) as caught:
            power(np.uint64(0), exponent)
        assert str(caught.value) == str(expected.value)
    assert float_power(np.uint64(0), -math.inf) == math.inf == 0**-math.inf
    assert math.isnan(float_power(np.uint64(0), math.nan))


# ---- the language around it ----


@numba.njit
def comparisons(a):
    found = []
    for v in a:
        x = as_exact(v)
        found.append((x == 2**60, x == 2**60 + 1, x > -1, x == True, x < 2**63 + 5))  # noqa: E712
    return found


@numba.njit
def membership(a):
    found = []
    for v in a:
        x = as_exact(v)
        found.append(x in (2**53, 2**60, 2**63 + 5))
        found.append(x in (-1, 2**60 + 1) or x not in (0, 10))
        found.append(x in [2**53 + 1, 2**60, -(2**63) + 5])
        found.append(x in {2**53 + 1, 2**60, -(2**63) + 5})
        found.append(x in (1.5, 2, 2**53 + 1, True))
        found.append(2**60 in (x, 1) or -1 in (x, x) or 2**60 + 1 in (1, x))
        found.append(10 in {x})
        found.append(x in range(11) and x in range(0, 2**62, 10))
    return found


@numba.njit
def extremes(a):
    x, y = as_exact(a[0]), as_exact(a[2])
    pairs = max((x, y)), max([y, x]), min(y, 2)
    return max(x, 0), max(y, -1, 7), min(y, -1), min(3, x), min(x, y), max(-1, -2, x), pairs


@numba.njit
def running(a):
    best, least, total, seen, last = 0, 2**62, 0, 0, None
    for i, v in enumerate(a):
        x = as_exact(v)
        if x > best:
            best = x
        if x < least:
            least = x
        total += x
        if x and x % 2 != 0:
            seen += i
        if last is None or x > last:
            last = x
    return best, least, total % 2**63, seen, last, 0 if len(a) else best, sum([as_exact(v) for v in a[:2]])


@numba.njit
def conversions(a):
    found = []
    for v in a:
        x = as_exact(v)
        found.append((int(x), float(x), bool(x), not x, abs(x), +x, hash(x), str(x), f"id={x}", repr(x)))
    return found


@numba.njit
def hashes(a):
    x, y = as_exact(a[0]), as_exact(a[1])
    return hash((x, y)), hash((x, 7)), hash((x, True, 1.5)), (x, 1) == (2**53 + 1, 1), (1, x) < (1, 2**53 + 2)


@numba.njit
def float_functions(a):
    x, y = as_exact(a[2]), as_exact(a[5])
    return math.log(x), math.sqrt(x), math.log2(x), math.pow(y, 2), math.atan2(y, x), math.isnan(x), x**0.5


@numba.njit
def sequences(a):
    x = as_exact(a[5])
    values = [as_exact(v) for v in a]
    pairs = [(u + n, u) for u, n in zip(values, (1, 2, 3))]  # noqa: B905
    mixed = [1]
    mixed.append(values[2])
    counted = [i for i in range(x - 7)] + [i for i in range(1, x, 4)]
    return (
        sorted(values),
        pairs,
        mixed,
        counted,
        values[x - 9],
        (5, 6, 7)[x - 9],
        [5, 6, 7][x - 8],
        "abc"[x - 8],
    )


@numba.njit
def keys(a):
    count, total = {}, {}
    best, pairs = {}, {}
    for v in a:
        x = as_exact(v)
        count[x] = count.get(x, 0) + 1
        total[v % np.uint64(2)] = total.get(v % np.uint64(2), 0) + x // 8
        best[1] = max(best.get(1, 0), x)
        pairs[(x, 1)] = x
    found = [(k, n) for k, n in count.items()]
    present = (2**60 in count, 2**60 + 1 in count, len(set([as_exact(v) for v in a])))
    return found, best[1], total[np.uint64(1)] // 4, present, pairs[(2**60 + 1, 1)]


@pytest.mark.parametrize(
    "function",
    [comparisons, membership, extremes, running, conversions, hashes, float_functions, sequences, keys],
    ids=lambda f: f.__name__,
)
def test_equals_python(function: Callable[..., Any]) -> None:
    both(function, ids([*IDS, 2**60 + 1]))


def test_counting_any_integer_keys_needs_no_declared_dict() -> None:
    @numba.njit
    def count(values):
        found = {}
        for v in values:
            found[v] = found.get(v, 0) + 1
        return found

    assert dict(count(np.array([3, -3, 3]))) == {3: 2, -3: 1}


def test_numpy_functions_take_it_as_a_float() -> None:
    @numba.njit
    def f(a):
        x = as_exact(a)
        return np.log1p(x), np.sqrt(x), np.uint64(x), np.float64(x), np.float32(x), np.int64(x)

    a = 2**60 + 1
    assert f(np.uint64(a)) == (np.log1p(a), np.sqrt(a), a, float(a), np.float32(a), a)


def test_in_arrays_and_typed_lists() -> None:
    @numba.njit
    def f(a, container):
        return [as_exact(v) in container for v in a]

    values = ids()
    for container in (
        np.array([2**60, 10]),
        np.array([[2**53 + 1, 2**63 + 5], [7, 8]], np.uint64),
        ids()[::2],
    ):
        expected = [int(v) in container.ravel().tolist() for v in values]
        assert f(values, container) == expected
    assert f(values, numba.typed.List([2**60, 10])) == [False, False, False, False, False, True]
    with pytest.raises(CompileTypeError):
        f(values, np.array([2.0**60]))


def test_parallel_reductions() -> None:
    @numba.njit(parallel=True)
    def f(a):
        total, product, best, odd = 0, 1, 0, 0
        for i in numba.prange(len(a)):
            x = as_exact(a[i])
            total += x
            product *= x
            best = max(best, x)
            if x % 2 == 1:
                odd += 1
        return total, product, best, odd

    values = [v for v in IDS if v] * 5
    expected = (sum(values) % 2**64, math.prod(values) % 2**64, max(values), sum(v % 2 for v in values))
    assert f(ids(values)) == expected


def test_stored_into_arrays() -> None:
    @numba.njit
    def store(a, out):
        for i in range(len(a)):
            out[i] = as_exact(a[i])
        out[as_exact(np.uint64(0))] += as_exact(np.uint64(1))

    @numba.njit
    def fill(a, out):
        out[:, 1] = as_exact(a[0])
        out[1, 0] = as_exact(a[1])

    values = ids([1, 2**53 + 1, 2**60 + 1, 2**63 + 5])
    for dtype in (np.uint64, np.float64, np.float32):
        out = np.zeros(4, dtype)
        expected = np.zeros(4, dtype)
        store(values, out)
        expected[:] = [int(v) for v in values]
        expected[0] += 1
        np.testing.assert_array_equal(out, expected)
    for dtype in (np.int64, np.int8):
        with pytest.raises(OverflowError) as caught:
            store(values, np.zeros(4, dtype))
        assert str(caught.value) == f"a uint64 above {np.iinfo(dtype).max} doesn't fit in {np.dtype(dtype)}"
    grid = np.zeros((2, 2), np.int64)
    fill(values, grid)
    assert grid.tolist() == [[0, 1], [2**53 + 1, 1]]


def test_optional() -> None:
    @numba.njit
    def first_above(a, limit):
        found = None
        for v in a:
            if as_exact(v) > limit and found is None:
                found = as_exact(v)
        return found

    assert first_above(ids(), 2**53) == 2**53 + 1
    assert first_above(ids([5]), 2**53) is None


class Color(enum.IntEnum):
    RED = 3


def test_int_enum_members() -> None:
    @numba.njit
    def f(a):
        x = as_exact(a)
        return x == Color.RED, x > Color.RED, x + Color.RED, x in (Color.RED, 7)

    assert f(np.uint64(3)) == (True, False, 6, True)
    assert f(np.uint64(2**63 + 5)) == (False, True, 2**63 + 8, False)


def test_there_and_back_to_numbas_uint64() -> None:
    @numba.njit
    def f(a):
        return as_uint64(as_exact(a)) + np.uint64(1)

    assert f(np.uint64(2**63 + 4)) == 2**63 + 5
    with pytest.raises(numba.TypingError):
        numba.njit(lambda a: as_exact(a))(-1)  # a signed integer isn't one


@pytest.mark.parametrize(
    "function",
    [
        lambda a: -as_exact(a),
        lambda a: ~as_exact(a),
        lambda a: as_exact(a) if a else 0.5,
        lambda a: max(as_exact(a), 0.5),
        lambda a: as_exact(a) == "1",
        lambda a: as_exact(a) == 1j,
        lambda a: as_exact(a) & 1.5,
        lambda a: round(as_exact(a), 2),
        lambda a: np.array([as_exact(a)]),
        lambda a: complex(as_exact(a)),
    ],
)
def test_what_isnt_given_doesnt_compile(function: Callable[..., Any]) -> None:
    with pytest.raises((CompileTypeError, numba.TypingError)) as caught:
        numba.njit(function)(np.uint64(5))
    assert "uint64" in str(caught.value)


def test_no_operator_makes_a_float_of_integers() -> None:
    """Every other type that an operator's result could have would be a float somewhere down the line."""
    wide = numba.types.int64
    operators = (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.and_)
    context = numba.core.registry.cpu_target.typing_context
    context.refresh()
    for function in operators:
        for args in ((uint64_exact, wide), (wide, uint64_exact), (uint64_exact, numba.types.uint8)):
            assert context.resolve_function_type(function, args, {}).return_type in (uint64_exact, wide)
    for other in (wide, numba.types.uint64, numba.types.boolean, numba.types.literal(-1)):
        assert context.unify_pairs(uint64_exact, other) is uint64_exact
        assert context.unify_pairs(other, uint64_exact) is uint64_exact
    assert context.unify_pairs(uint64_exact, numba.types.float64) is None
    assert context.can_convert(uint64_exact, wide) is None
    assert context.can_convert(uint64_exact, numba.types.float64) is None


def test_one_instance_through_pickle() -> None:
    assert pickle.loads(pickle.dumps(uint64_exact)) is uint64_exact


def test_cached_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "cached.py").write_text(
        textwrap.dedent("""
            import numba, numpy as np
            from exact import as_exact

            @numba.njit(cache=True)
            def pick(a):
                return as_exact(a), {as_exact(a): as_exact(a) % 7}

            @numba.njit(cache=True)
            def read(d, a):
                return d[as_exact(a)]

            a = np.uint64(2**63 + 5)
            x, d = pick(a)
            print(x, read(d, a), sum(pick.stats.cache_hits.values()), sum(read.stats.cache_hits.values()))
        """)
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    expected = [f"{2**63 + 5} {(2**63 + 5) % 7} {hits} {hits}" for hits in (0, 1)]
    for line in expected:
        done = subprocess.run(
            [sys.executable, "cached.py"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split("\n")[0] == line
