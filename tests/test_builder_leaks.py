"""What an error leaves behind in jitted builders: that of the frame, as numba leaves its own arrays."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.core.runtime import _nrt_python, rtsys

import yaffjit as yj

PROTO = """
syntax = "proto3";
package lk;
message Part { int32 x = 1; }
message Root { int32 number = 1; string name = 2; Part part = 3; repeated string texts = 4; map<string, int32> m = 5; }
"""  # noqa: E501
TIMES = 20


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("leaks") / "lk.proto"
    path.write_text(PROTO)
    return yj.load_schema(path)["lk.Root"]


@pytest.fixture(autouse=True)
def counting() -> Iterator[None]:
    enabled = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    yield
    if not enabled:
        _nrt_python.memsys_disable_stats()


def left(function: Callable[..., Any], *args: Any) -> tuple[float, float]:
    """What a call leaves behind: numba's records of memory, and pieces of memory."""

    def call() -> None:
        with contextlib.suppress(ValueError, yj.YaffjitError, IndexError):
            function(*args)

    call()
    gc.collect()
    before = rtsys.get_allocation_stats()
    for _ in range(TIMES):
        call()
    gc.collect()
    after = rtsys.get_allocation_stats()
    records = after.mi_alloc - after.mi_free - before.mi_alloc + before.mi_free
    pieces = after.alloc - after.free - before.alloc + before.free
    return records / TIMES, pieces / TIMES


@njit
def of_an_array(which):  # type: ignore[no-untyped-def]
    array = np.zeros(10)
    return (1.0, 2.0)[which] + array[0]


@njit
def of_a_builder(T, which, number, source):  # type: ignore[no-untyped-def]
    b = T.builder()
    if which == 0:
        b.name = b"\xff"
    elif which == 1:
        b.texts.append(b"\xff")
    elif which == 2:
        b.texts.extend((b"a", b"\xff"))
    elif which == 3:
        b.part.x = number
    elif which == 4:
        b.m["a"] = number
    elif which == 5:
        part = b.part
        b.clear()
        part.x = 1
    else:
        return len(b.update(source))
    return 0


@njit
def of_a_small_buffer(T, buffer):  # type: ignore[no-untyped-def]
    b = T.builder(buffer)
    b.number = 1
    return len(b.finish())


def test_an_error_leaves_one_builder(root: Any) -> None:
    assert left(of_an_array, 5) == (1, 1)  # numba's own
    empty = np.zeros(0, np.uint8)
    for which in range(6):
        # The builder's record, and its first memory.
        assert left(of_a_builder, root, which, 2**40, empty) == (1, 2), which
    assert left(of_a_builder, root, 6, 0, np.array([8, 150], np.uint8)) == (2, 3)  # and the array
    assert left(of_a_builder, root, 6, 0, empty) == (0, 0)
    # The record of the caller's buffer too, and what the message was written into.
    assert left(of_a_small_buffer, root, np.zeros(1, np.uint8)) == (2, 4)
    assert left(of_a_small_buffer, root, np.zeros(2, np.uint8)) == (0, 0)


@njit
def refuse(text, number):  # type: ignore[no-untyped-def]
    if number > 3:
        raise ValueError(text, number)
    return 0


@njit
def caught(T, which, rows, buffer):  # type: ignore[no-untyped-def]
    count = 0
    b = T.builder()
    for row in range(rows):
        small = T.builder(buffer)
        small.number = 1
        try:
            if which == 0:
                count += refuse("refused", row + 10)
            elif which == 1:
                b.part.x = 2**40 + row
            elif which == 2:
                count += len(small.finish())
        except Exception:
            count += 1
    return count


def test_caught_errors_leave_what_numbas_own_do(root: Any) -> None:
    small = np.zeros(1, np.uint8)
    assert caught(root, 1, 50, small) == caught(root, 2, 50, small) == 50
    numbas = left(caught, root, 0, 50, small)
    # What each exception says: a piece or two, as LLVM finds out.
    assert numbas[0] == 0 and 50 <= numbas[1] <= 100
    for which in (1, 2):
        records, pieces = left(caught, root, which, 50, small)
        assert records == 0 and 50 <= pieces <= 100
    assert left(caught, root, 3, 50, small) == (0, 0)
