"""`feature`: one function for messages, views and records, compiled once; it goes to other processes."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numba
import pytest
from features.schema import SCHEMA
from vectors import TESTS

import yaffjit as yj
from yaffjit.jit import mapping

Event = SCHEMA["features.Event"]
EVENTS = yj.records(Event, [Event.encode({"item_id": row, "weight": row / 4}) for row in range(20)])
FACTOR = 2.0


def score(event: Any, bonus: float = 0.0) -> float:
    """What an event is worth."""
    return event.weight * FACTOR + bonus


worth = yj.feature(score)


@yj.feature
def doubled(event: Any) -> Any:
    return 2 * event.item_id


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The functions whose loops are compiled from now on."""
    found: list[Any] = []
    compile_loop = mapping.compile_loop

    def counted(function: Any, *types: Any) -> Any:
        found.append(function.py_func.__name__)
        return compile_loop(function, *types)

    monkeypatch.setattr(mapping, "compile_loop", counted)
    return found


def test_what_it_takes() -> None:
    expected = [row / 2 for row in range(20)]
    assert worth(EVENTS).tolist() == expected == EVENTS.map(score).tolist()
    assert worth(EVENTS, threads=1, progress=False).tolist() == expected
    assert [worth(event) for event in EVENTS] == expected
    assert [worth(event.to_message()) for event in EVENTS] == expected
    assert worth(EVENTS, 1.5).tolist() == [worth(event, 1.5) for event in EVENTS]
    assert worth(EVENTS[3].to_message(), 1.5) == 3.0
    assert EVENTS.map(doubled).tolist() == doubled(EVENTS).tolist() == list(range(0, 40, 2))
    assert len(EVENTS.filter(doubled)) == 19


def test_views_are_read_by_jitted_code() -> None:
    @yj.feature
    def wrapped_around(event: Any) -> Any:
        return (event.item_id + 2**63) * 2

    assert wrapped_around(EVENTS[3]) == 6
    assert wrapped_around(EVENTS[3].to_message()) == 6 + 2**64


def test_what_it_is() -> None:
    assert repr(worth) == "<Feature score>"
    assert repr(doubled) == "<Feature doubled>"
    assert (worth.__name__, worth.__doc__, worth.__wrapped__) == ("score", "What an event is worth.", score)
    assert isinstance(doubled, yj.Feature)


@pytest.mark.parametrize("function", [len, "score", worth])
def test_what_is_not_a_function(function: Any) -> None:
    with pytest.raises(TypeError) as caught:
        yj.feature(function)
    assert str(caught.value) == (
        f"map compiles plain functions, not {type(function).__name__}: "
        "pass a function with args=(...), or jit=False"
    )


def test_errors_of_the_compiler() -> None:
    @yj.feature
    def misspelt(event: Any) -> Any:
        return event.itemid

    for argument, instead in ((EVENTS, "map(misspelt, jit=False)"), (EVENTS[0], "misspelt.__wrapped__")):
        with pytest.raises(AttributeError) as caught:
            misspelt(argument)
        assert str(caught.value).startswith(
            f"features.Event has no field 'itemid' (did you mean 'item_id'?); {instead} runs it in Python.\n"
        )


def test_errors_of_the_function() -> None:
    @yj.feature
    def inverse(event: Any) -> Any:
        return 1 / event.item_id

    with pytest.raises(ZeroDivisionError) as caught:
        inverse(EVENTS)
    assert caught.value.row == 0  # type: ignore[attr-defined]
    with pytest.raises(ZeroDivisionError):
        inverse(EVENTS[0])
    with pytest.raises(ZeroDivisionError):
        inverse(EVENTS[0].to_message())


def test_a_function_is_compiled_once(compiled: list[Any]) -> None:
    def read(event: Any, bonus: Any) -> Any:
        return event.item_id + bonus

    for _ in range(3):
        EVENTS.map(read, args=(1,))
        EVENTS[2:].map(read, args=(2,), threads=1)
        yj.feature(read)(EVENTS, 3)
    assert compiled == ["read"]
    EVENTS.map(read, args=(0.5,))
    assert compiled == ["read"] * 2
    jitted = numba.njit(read)
    for _ in range(3):
        EVENTS.map(jitted, args=(1,))
    assert compiled == ["read"] * 3


@yj.feature
def is_odd(event: Any, number: int) -> bool:
    return False if number == 0 else is_even(event, number - 1)


@yj.feature
def is_even(event: Any, number: int) -> bool:
    return True if number == 0 else is_odd(event, number - 1)


@yj.feature
def factorial(event: Any, number: int = 4) -> int:
    return 1 if number == 0 else number * factorial(event, number - 1)


def test_features_call_each_other(compiled: list[Any]) -> None:
    @yj.feature
    def outer(event: Any) -> Any:
        return worth(event, 1.0), doubled(event)

    def plain(event: Any, inner: Any) -> Any:
        return worth(event) if inner(event) else -1.0

    @numba.njit
    def total(events: Any) -> Any:
        return sum([doubled(event) for event in events])

    for _ in range(2):
        assert [array.tolist() for array in outer(EVENTS)] == [
            [worth(event, 1.0) for event in EVENTS],
            [doubled(event) for event in EVENTS],
        ]
    assert outer(EVENTS[3]) == outer(EVENTS[3].to_message()) == (2.5, 6)
    assert EVENTS.map(lambda event: outer(event)[1]).tolist() == list(range(0, 40, 2))
    assert total(EVENTS) == sum(range(0, 40, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", numba.NumbaExperimentalFeatureWarning)
        mapped = EVENTS.map(plain, args=(doubled,))
    assert mapped.tolist() == EVENTS.map(plain, args=(doubled,), jit=False).tolist()
    assert factorial(EVENTS)[:2].tolist() == [24, 24] == EVENTS[:2].map(factorial, jit=False).tolist()
    assert EVENTS.map(lambda event: is_odd(event, event.item_id)).tolist() == [False, True] * 10
    assert is_even(EVENTS, 3).tolist() == [False] * 20
    assert compiled == ["outer", "<lambda>", "plain", "factorial", "<lambda>", "is_even"]


def test_a_feature_is_compiled_anew_where_one_that_it_calls_is_another() -> None:
    limit = 3

    @yj.feature
    def inner(event: Any) -> Any:
        return event.item_id >= limit

    @yj.feature
    def middle(event: Any) -> Any:
        return inner(event)

    def outer(event: Any) -> Any:
        return middle(event)

    assert EVENTS.map(outer).sum() == 17
    limit = 5
    assert EVENTS.map(outer).sum() == middle(EVENTS).sum() == inner(EVENTS).sum() == 15


def test_features_on_threads_that_compile_each_other() -> None:
    """Whichever comes first, and whatever holds numba's lock."""

    @yj.feature
    def inner(event: Any) -> Any:
        return event.item_id + 1

    @yj.feature
    def outer(event: Any) -> Any:
        return inner(event) + 1

    @numba.njit
    def user(events: Any) -> Any:
        return sum([outer(event) for event in events])

    results: list[Any] = []
    calls: list[Callable[[], Any]] = [
        lambda: inner(EVENTS).sum(),
        lambda: outer(EVENTS).sum(),
        lambda: user(EVENTS),
        lambda: EVENTS.map(lambda event: outer(event) + inner(event)).sum(),
    ]
    threads = [
        threading.Thread(target=lambda call=call: results.append(call()), daemon=True) for call in calls * 2
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(results) == [210, 210, 230, 230, 230, 230, 440, 440]


def test_a_function_is_compiled_anew_where_what_it_names_is_another(compiled: list[Any]) -> None:
    limit = 3

    def high(event: Any) -> Any:
        return event.item_id >= limit and event.weight * FACTOR < 5

    assert EVENTS.map(high).sum() == 7
    limit = 5
    assert EVENTS.map(high).sum() == yj.feature(high)(EVENTS).sum() == 5
    globals()["FACTOR"] = 4.0
    try:
        assert EVENTS.map(high).sum() == 0
        assert not yj.feature(high)(EVENTS[7])
        assert worth(EVENTS[2]) == worth(EVENTS)[2] == 2.0
    finally:
        globals()["FACTOR"] = 2.0
    assert compiled == ["high", "high", "high", "score"]


def test_a_global_within_a_function_in_it() -> None:
    def total(event: Any) -> Any:
        return sum([FACTOR * number for number in range(int(event.item_id))])

    assert EVENTS[:4].map(total).tolist() == [0.0, 0.0, 2.0, 6.0]
    globals()["FACTOR"] = 1.0
    try:
        assert EVENTS[:4].map(total).tolist() == [0.0, 0.0, 1.0, 3.0]
    finally:
        globals()["FACTOR"] = 2.0


def make(factor: float) -> Callable[[Any], Any]:
    return lambda event: event.weight * factor


def test_pickles_by_name() -> None:
    assert pickle.loads(pickle.dumps(doubled)) is doubled
    again = pickle.loads(pickle.dumps(worth))
    assert again.__wrapped__ is score
    assert again(EVENTS).tolist() == worth(EVENTS).tolist()


def test_pickles_of_what_has_no_name() -> None:
    for function in (make(3.0), numba.njit(make(3.0))):
        again = pickle.loads(pickle.dumps(yj.feature(function)))
        assert again(EVENTS).tolist() == [row * 0.75 for row in range(20)]
        assert again(EVENTS[2].to_message()) == 1.5


SCRIPT = """
import pickle, sys
import yaffjit as yj

@yj.feature
def half(event):
    return event.weight / SHARE

SHARE = 2
sys.stdout.buffer.write(pickle.dumps(half))
"""


def test_pickles_of_a_main_module() -> None:
    """Of a notebook too; the process that reads it has another one."""
    environment = {**os.environ, "PYTHONPATH": str(TESTS.parent)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, check=True)
    half = pickle.loads(done.stdout)
    assert repr(half) == "<Feature half>"
    assert half(SimpleNamespace(weight=3.0)) == 1.5
    assert half(EVENTS).tolist() == [row / 8 for row in range(20)]
