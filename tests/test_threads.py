"""What is made at first use is made once, whichever threads come at once: jitted code has its address."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import jit_kinds
import numba
import pytest
from numba.core.runtime import _nrt_python

import yaffjit as yj
from yaffjit.rows import chunks
from yaffjit.view import owner


@numba.njit
def number(view: Any) -> Any:
    return view.plain_int32


@numba.njit
def total(records: Any) -> Any:
    found = 0
    for view in records:
        found += view.plain_int32
    return found


def at_once(*functions: Callable[[], Any]) -> list[Any]:
    """Results of functions, each in a thread of its own, which start together."""
    barrier = threading.Barrier(len(functions))
    results: list[Any] = [None] * len(functions)

    def work(row: int) -> None:
        barrier.wait()
        results[row] = functions[row]()

    threads = [threading.Thread(target=work, args=(row,)) for row in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def slowed(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
    """Have a function take so long that all threads are in it, if nothing keeps them from it."""
    function = getattr(module, name)

    def slow(*args: Any, **options: Any) -> Any:
        time.sleep(0.05)
        return function(*args, **options)

    monkeypatch.setattr(module, name, slow)


@pytest.fixture(scope="module")
def message_type() -> yj.MessageType:
    return jit_kinds.message_type("dynamic")


@pytest.fixture
def records(message_type: yj.MessageType) -> yj.Records:
    payloads = [message_type.encode({"plain_int32": row}) for row in range(100)]
    return yj.records(message_type, payloads)


def test_the_table_of_chunks(records: yj.Records, monkeypatch: pytest.MonkeyPatch) -> None:
    slowed(monkeypatch, chunks.np, "empty")
    slices = [records[row:] for row in range(4)]
    addresses = at_once(*[lambda part=part: part._table_address for part in slices])
    assert addresses == [records._store.table_address] * 4


def test_the_owner_of_chunks(records: yj.Records, monkeypatch: pytest.MonkeyPatch) -> None:
    slowed(monkeypatch, owner.np, "frombuffer")
    slices = [records[row:] for row in range(4)]
    owners = at_once(*[lambda part=part: part._owner for part in slices])
    assert [found is records._store.owner for found in owners] == [True] * 4


def test_the_owner_of_a_view(message_type: yj.MessageType, monkeypatch: pytest.MonkeyPatch) -> None:
    slowed(monkeypatch, owner.np, "frombuffer")
    view = message_type.view(message_type.encode({}))
    owners = at_once(*[view._native_owner_] * 4)
    assert [found is view._owner_ for found in owners] == [True] * 4


@pytest.mark.parametrize("names", [("handle",) * 4, ("meminfo", "handle") * 2])
def test_numbas_record(
    message_type: yj.MessageType, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    view = message_type.view(message_type.encode({"plain_int32": 1}))
    assert number(view) == 1  # numba's memory is ready
    slowed(monkeypatch, _nrt_python, "meminfo_new")
    made = owner.Owner(bytes(view._data_))
    found = at_once(*[lambda name=name: getattr(made, name) for name in names])
    assert [value is getattr(made, name) for name, value in zip(names, found, strict=True)] == [True] * 4


def test_jitted_functions(records: yj.Records, monkeypatch: pytest.MonkeyPatch) -> None:
    assert total(records[:2]) == 1
    slowed(monkeypatch, chunks.np, "empty")
    slowed(monkeypatch, _nrt_python, "meminfo_new")
    payloads = [records.payload(row) for row in range(100)]
    fresh = yj.records_unchecked(jit_kinds.message_type("dynamic"), payloads)
    slices = [fresh[row:] for row in range(4)]
    sums = at_once(*[lambda part=part: total(part) for part in slices])
    assert sums == [4950, 4950, 4949, 4947]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_while_another_thread_makes_something(records: yj.Records) -> None:
    held, forked = threading.Event(), threading.Event()

    def hold() -> None:
        with owner.making:
            held.set()
            forked.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if not child:
        signal.alarm(30)  # which ends a child that hangs
        os._exit(int(records._owner is not records._store.owner))
    forked.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
