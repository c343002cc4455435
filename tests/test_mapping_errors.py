"""`map`: errors name their row, those of the compiler lead on, Ctrl-C ends it, forks don't hang."""

from __future__ import annotations

import ast
import functools
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
import weakref
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from mapping_results import outcome
from numba.core.runtime import _nrt_python, rtsys
from test_mapping import ITEMS, ROWS, Item

import yaffjit as yj
from yaffjit import pool

HERE = Path(__file__).parent


class Odd(ValueError):
    """A user's exception."""


def picky(item: Any, row: int) -> Any:
    """Raises in some rows, with a value."""
    if item.stock >= row and item.stock > 0:
        raise Odd("too many", item.stock)
    return item.condition


def share(item: Any) -> Any:
    return 1 / (item.stock - 151)


def letter(item: Any) -> Any:
    return item.title[3]


@pytest.fixture
def small_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows on several threads."""
    monkeypatch.setattr(pool, "ALONE_SECONDS", 1e-7)
    monkeypatch.setattr(pool, "STRETCH_SECONDS", 5e-6)


def shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


@pytest.mark.parametrize("jit", [True, False])
@pytest.mark.parametrize("threads", [1, 3])
def test_errors_of_the_function(jit: bool, threads: int, small_stretches: None) -> None:
    for row in (1, 100, 199):
        with pytest.raises(Odd) as caught:
            ITEMS.map(picky, args=(row,), jit=jit, threads=threads)
        assert type(caught.value) is Odd
        assert caught.value.args == ("too many", row)
        assert caught.value.row == row  # type: ignore[attr-defined]
        assert f"in row {row} of features.Item\n" in shown(caught.value)
    with pytest.raises(ZeroDivisionError) as division:
        ITEMS.map(share, jit=jit, threads=threads)
    assert division.value.row == 151  # type: ignore[attr-defined]
    assert str(division.value) == "division by zero"
    with pytest.raises(IndexError) as index:
        ITEMS.map(letter, jit=jit, threads=threads)
    assert index.value.row == 0  # type: ignore[attr-defined]
    assert ITEMS[:100].map(share, jit=jit, threads=threads).shape == (100,)


def test_the_row_is_shown_where_exceptions_have_no_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 0))
    with pytest.raises(Odd) as caught:
        ITEMS.map(picky, args=(7,))
    assert caught.value.args == ("too many", 7)
    assert getattr(caught.value, "__notes__", []) == []
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert "in row 7 of features.Item" in names


def test_an_error_that_has_a_row_keeps_it() -> None:
    def read(item, others):
        return others[item.stock].condition

    with pytest.raises(yj.RowError) as caught:
        ITEMS.map(read, args=(ITEMS[:5],))
    assert (caught.value.row, caught.value.count) == (5, 5)
    assert "in row 5 of features.Item\n" in shown(caught.value)


def broken_text(rows: tuple[int, ...]) -> Any:
    """Unverified items, of which some have a title that isn't UTF-8."""
    good, bad = Item.encode({"title": "abcd", "stock": 1}), Item.encode({"title": "abcd", "stock": 2})
    bad = bad.replace(b"abcd", b"ab\xff\xfe")
    payloads = [bad if row in rows else good for row in range(60)]
    offsets = np.cumsum([0, *map(len, payloads)])
    return yj.records_unchecked(Item, (b"".join(payloads), offsets))


@pytest.mark.parametrize("threads", [1, 3])
def test_text_that_is_not_utf_8(threads: int, small_stretches: None) -> None:
    def both(item):
        return item.title, item.title

    for jit in (True, False):
        with pytest.raises(UnicodeDecodeError) as caught:
            broken_text((31, 44)).map(both, jit=jit, threads=threads)
        assert caught.value.row == 31  # type: ignore[attr-defined]
        assert (caught.value.start, caught.value.object) == (2, b"ab\xff\xfe")
        assert "in row 31 of features.Item\n" in shown(caught.value)


def test_the_first_of_two_sorts_of_errors() -> None:
    def read(item):
        if item.stock == 1 and item.condition == 1:
            raise Odd
        return item.title

    good = {"title": "abcd", "stock": 1}
    messages = [good] * 20 + [{**good, "condition": 1}] + [good] * 20
    payloads = [Item.encode(message) for message in messages]
    for place, error in ((13, UnicodeDecodeError), (33, Odd)):
        changed = list(payloads)
        changed[place] = changed[place].replace(b"abcd", b"ab\xff\xfe")
        with pytest.raises(error) as caught:
            yj.records_unchecked(Item, changed).map(read, threads=1)
        assert caught.value.row == min(place, 20)


HINT = "; map({}, jit=False) runs it in Python"


def test_compile_errors() -> None:
    def misspelt(item):
        return item.titel

    with pytest.raises(AttributeError) as caught:
        ITEMS.map(misspelt)
    error = caught.value
    assert isinstance(error, yj.CompileError)
    assert error.text == "features.Item has no field 'titel' (did you mean 'title'?)" + HINT.format(
        "misspelt"
    )
    assert (error.file, error.line) == (__file__, misspelt.__code__.co_firstlineno + 1)
    with pytest.raises(AttributeError, match="titel"):
        ITEMS.map(misspelt, jit=False)

    def unknown(item):
        return sorted([item.title], key=nothing_such)  # noqa: F821

    with pytest.raises(numba.TypingError) as typing:
        ITEMS.map(unknown)
    assert str(typing.value).endswith("\nmap(unknown, jit=False) runs it in Python")


NOT_FUNCTIONS = [
    (functools.partial(picky, row=1), "partial"),
    (len, "builtin_function_or_method"),
    (ITEMS.head, "method"),
    ("title", "str"),
]


@pytest.mark.parametrize(("function", "name"), NOT_FUNCTIONS)
def test_what_is_not_a_function(function: Any, name: str) -> None:
    with pytest.raises(TypeError) as caught:
        ITEMS.map(function)
    sentence = f"map compiles plain functions, not {name}: pass a function with args=(...), or jit=False"
    assert str(caught.value) == sentence
    if not callable(function):
        with pytest.raises(TypeError) as plain:
            ITEMS.map(function, jit=False)
        assert str(plain.value) == f"map takes a function, not {name}"


def test_callables_in_plain_python() -> None:
    assert ITEMS[:1].map(functools.partial(picky, row=1), jit=False).tolist() == [0]


@pytest.mark.parametrize("value", [object(), 2**70, np.ma.array([1], mask=[True]), (1, object())])
def test_arguments_that_have_no_type(value: Any) -> None:
    def second(item, first, other):
        return 1

    with pytest.raises(TypeError) as caught:
        ITEMS.map(second, args=(1, value))
    assert str(caught.value).startswith("args[1] can't be passed to jitted code: ")
    assert str(caught.value).endswith("; map(second, jit=False) runs it in Python")


@pytest.mark.parametrize("jit", [True, False])
def test_functions_of_other_arguments(jit: bool) -> None:
    """In Python's words, not numba's, and before anything is compiled."""

    def none():
        return 1

    def one(item):
        return 1

    def with_default(item, more=2):
        return more

    asked: list[tuple[Any, tuple[Any, ...], str]] = [
        (none, (), "map calls none() with the row: too many positional arguments"),
        (one, (5,), "map calls one(item) with the row and 1 of args=: too many positional arguments"),
        (picky, (), "map calls picky(item: 'Any', row: 'int') -> 'Any' with the row: "
         "missing a required argument: 'row'"),
        (with_default, (1, 2), "map calls with_default(item, more=2) with the row and 2 of args=: "
         "too many positional arguments"),
    ]  # fmt: skip
    for function, args, sentence in asked:
        for called in (function, numba.njit(function)):
            with pytest.raises(TypeError) as caught:
                ITEMS.map(called, args=args, jit=jit)
            assert str(caught.value) == sentence
    assert ITEMS[:2].map(with_default, jit=jit).tolist() == [2, 2]
    assert ITEMS[:2].map(lambda *both: len(both), args=(1, 2), jit=jit).tolist() == [3, 3]


def share_and_one(item: Any) -> Any:
    return share(item) + 1


def test_plain_functions_that_are_called() -> None:
    """Who calls a function that isn't compiled reads what to do."""

    def inner(item):
        return item.stock

    for function, name in ((share_and_one, "share"), (lambda item: inner(item), "inner")):
        with pytest.raises(numba.TypingError) as caught:
            ITEMS.map(function)
        assert str(caught.value).endswith(
            f"\n{name} is a plain function: jitted code calls those with @numba.njit or @yj.feature; "
            f"map({function.__name__}, jit=False) runs it in Python"
        )


def test_threads_that_can_not_be() -> None:
    with pytest.raises(ValueError, match="threads must be at least 1, not 0"):
        ITEMS.map(picky, args=(500,), threads=0)


def test_from_several_threads_at_once() -> None:
    expected = ITEMS.map(picky, args=(500,)).tolist()
    found: list[Any] = []

    def work() -> None:
        found.append(ITEMS.map(picky, args=(500,)).tolist())

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 6


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_after_a_fork(small_stretches: None) -> None:
    expected = ITEMS.map(picky, args=(500,), threads=2).tolist()
    child = os.fork()
    if not child:  # no assertion may leave this process by pytest's way
        status = 1
        try:
            status = int(ITEMS.map(picky, args=(500,), threads=2).tolist() != expected)
        finally:
            os._exit(status)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        time.sleep(0.01)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    assert os.waitstatus_to_exitcode(status) == 0


@pytest.mark.parametrize("work", ["map", "columns", "verify", "transcode", "open_index"])
def test_an_interrupt(work: str, tmp_path: Path) -> None:
    """The rest of the rows would take an hour of `map`; the others are done again and again."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE)])}
    process = subprocess.Popen(
        [sys.executable, HERE / "interrupted.py", work, tmp_path],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    end, _, left = out.partition(" ")
    assert float(end) - sent < 5  # it takes 0.01 where nothing else runs
    assert ast.literal_eval(left) == []


def test_functions_are_not_kept_alive() -> None:
    def make() -> Any:
        return lambda item: item.condition

    function = make()
    ITEMS.map(function)
    reference = weakref.ref(function)
    del function
    gc.collect()
    assert reference() is None


@pytest.mark.slow
def test_nothing_is_left_in_memory() -> None:
    """References to text and arrays are let go: those stored, those of an error's stretch, those refused."""

    def made(item, longest):
        numbers = np.arange(2)
        if item.stock > longest:
            numbers = np.arange(3)
        return str(item.title), numbers, bytes(item.image_hash) if item.stock else None

    _nrt_python.memsys_enable_stats()

    def left() -> int:
        stats = rtsys.get_allocation_stats()
        return int(stats.alloc - stats.free)

    calls = [
        lambda: ITEMS.map(made, args=(500,))[0].shape,
        lambda: ITEMS.map(made, args=(150,)),
        lambda: ITEMS.map(picky, args=(100,)),
    ]
    assert [outcome(call) for call in calls] == [(ROWS,), (ValueError, 151), (ValueError, 100)]
    for call in calls:
        gc.collect()
        before = left()
        for _ in range(3):
            outcome(call)
        gc.collect()
        assert left() == before
