"""Stretches of rows on all cores: each row once, the first error, nothing left running."""

from __future__ import annotations

import threading
import time

import pytest

from yaffjit import pool


@pytest.fixture(params=[1, 4])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(pool, "cores", lambda: request.param)
    return int(request.param)


@pytest.mark.parametrize("rows", [0, 1, 9, 10, 11, 20, 95])
def test_each_row_once(threads: int, rows: int) -> None:
    done: list[int] = []
    pool.run_stretches(lambda begin, end: done.extend(range(begin, end)), rows, 10)
    assert sorted(done) == list(range(rows))


def test_stretches_run_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "cores", lambda: 2)
    meeting = threading.Barrier(2, timeout=20)

    def work(begin: int, end: int) -> None:
        if begin:
            meeting.wait()

    pool.run_stretches(work, 30, 10)
    assert not any(thread.name.startswith("yaffjit") for thread in threading.enumerate())


def test_the_first_error_by_row_order(threads: int) -> None:
    done = []

    def work(begin: int, end: int) -> None:
        time.sleep(0.05 if begin == 20 else 0.001)
        if begin in (20, 30):
            raise ValueError(begin)
        done.append(begin)

    with pytest.raises(ValueError, match=r"^20$"):
        pool.run_stretches(work, 10_000, 10)
    assert len(done) < 900


def test_an_interrupt_drops_what_has_not_begun(threads: int) -> None:
    done = []

    def work(begin: int, end: int) -> None:
        if begin == 10:
            raise KeyboardInterrupt
        done.append(begin)
        time.sleep(0.001)

    with pytest.raises(KeyboardInterrupt):
        pool.run_stretches(work, 10_000, 10)
    assert len(done) < 900
    assert not any(thread.name.startswith("yaffjit") for thread in threading.enumerate())


def test_cores_are_those_of_this_process() -> None:
    assert pool.cores() >= 1
