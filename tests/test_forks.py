"""Forked children: no lock that another thread of the parent holds is one that they wait for."""

from __future__ import annotations

import ast
import functools
import importlib
import os
import pkgutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import yaffjit as yj
from yaffjit import forks

SOURCES = Path(yj.__file__).parent
LOCKS = (type(threading.Lock()), type(threading.RLock()))
# What is made for one call: no fork goes on with a call of another thread.
OF_ONE_CALL = {"yaffjit/pool.py"}
PROTO = 'syntax = "proto3"; message A { int32 x = 1; string s = 2; }'


def assigned_locks(tree: ast.AST) -> Iterator[tuple[ast.FunctionDef, str]]:
    """Attributes ``self.name = threading.Lock()`` or ``RLock()``, with the method that has them."""
    for method in ast.walk(tree):
        if not isinstance(method, ast.FunctionDef):
            continue
        for node in ast.walk(method):
            value = getattr(node, "value", None)
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(value, ast.Call):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if ast.unparse(value.func) in ("threading.Lock", "threading.RLock") and isinstance(
                    target, ast.Attribute
                ):
                    yield method, target.attr


def test_each_lock_of_an_object_is_renewed() -> None:
    found = []
    for path in sorted(SOURCES.rglob("*.py")):
        where = path.relative_to(SOURCES.parent).as_posix()
        for method, name in assigned_locks(ast.parse(path.read_text())):
            if where not in OF_ONE_CALL:
                found.append(where)
                assert f"renew_in_forks(self, '{name}', " in ast.unparse(method), f"{where}: {name}"
    assert len(found) >= 6


def test_each_lock_of_a_module_and_of_cached_properties_is_renewed() -> None:
    found = 0
    for info in pkgutil.walk_packages(yj.__path__, "yaffjit."):
        if info.name in ("yaffjit.__main__", "yaffjit.interop.ray"):  # Ray needn't be there
            continue
        module = importlib.import_module(info.name)
        holders = [(module, module)]
        for cls in vars(module).values():
            if isinstance(cls, type) and cls.__module__ == info.name:
                properties = [
                    value for value in vars(cls).values() if isinstance(value, functools.cached_property)
                ]
                holders += [(cls, value) for value in properties]
        for owner, holder in holders:
            for name, value in vars(holder).items():
                if isinstance(value, LOCKS):
                    found += 1
                    assert name in forks._holders.get(holder, {}), f"{owner}: {name}"
    assert found >= 7


def exit_code(child: int) -> int:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_while_another_thread_holds_all_locks(tmp_path: Path) -> None:
    (tmp_path / "a.proto").write_text(PROTO)
    message_type = yj.load_schema(tmp_path / "a.proto")["A"]
    yj.build_index(tmp_path / "a.arrow", message_type, [{"x": row} for row in range(5)])
    index = yj.open_index(tmp_path / "a.arrow", verify="batch")
    twice = yj.feature(lambda a: a.x * 2)
    assert twice(index).tolist() == [0, 2, 4, 6, 8]
    index = yj.open_index(tmp_path / "a.arrow", verify="batch")
    index._files._locks[0] = threading.Lock()  # as when its batch is being checked

    held, release = threading.Event(), threading.Event()

    def locks() -> list[Any]:
        found = []
        for holder, attributes in list(forks._holders.items()):
            for name in attributes:
                value = getattr(holder, name)
                found += list(value.values()) if isinstance(value, dict) else [value]
        return found

    def hold() -> None:
        taken = locks()
        for lock in taken:
            lock.acquire()
        held.set()
        release.wait(60)
        for lock in taken:
            lock.release()

    holding = threading.Thread(target=hold)
    holding.start()
    assert held.wait(60)
    try:
        child = os.fork()
        if not child:  # no assertion may leave this process by pytest's way
            status = 1
            try:
                signal.alarm(60)
                free = [lock.acquire(timeout=10) for lock in locks()]
                for lock in locks():
                    lock.release()
                assert all(free)
                assert twice(index).tolist() == [0, 2, 4, 6, 8]
                assert yj.feature(lambda a: a.s)(index[3]) == ""
                status = 0
            except BaseException as error:
                print(repr(error), file=sys.stderr)
            finally:
                os._exit(status)
        assert exit_code(child) == 0
    finally:
        release.set()
        holding.join()


def test_what_is_renewed_lives_no_longer() -> None:
    class Holder:
        def __init__(self) -> None:
            self.lock = threading.Lock()
            forks.renew_in_forks(self, "lock", threading.Lock)

    count = len(forks._holders)
    holder = Holder()
    assert len(forks._holders) == count + 1
    del holder
    assert len(forks._holders) == count
