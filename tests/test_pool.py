"""Stretches of rows on all cores: each row once, the first error, nothing left running."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from typing import Any

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


def test_threads_as_asked_for() -> None:
    names = set()

    meeting = threading.Barrier(3, timeout=20)

    def work(begin: int, end: int) -> None:
        names.add(threading.current_thread().name)
        if begin in (10, 20, 30):
            meeting.wait()

    pool.run_stretches(work, 100, 10, threads=3)
    assert names == {threading.current_thread().name, "yaffjit-0", "yaffjit-1", "yaffjit-2"}
    names.clear()
    pool.run_stretches(lambda *_: names.add(threading.current_thread().name), 100, 10, threads=1)
    assert names == {threading.current_thread().name}


@pytest.mark.parametrize("run", [pool.run_stretches, pool.run_timed])
def test_threads_that_can_not_be(run: Any) -> None:
    stretch = (10,) if run is pool.run_stretches else ()
    with pytest.raises(ValueError) as caught:
        run(lambda begin, end: None, 100, *stretch, threads=0)
    assert str(caught.value) == "threads must be at least 1, not 0"
    for threads, name in ((1.5, "float"), ("2", "str")):
        with pytest.raises(TypeError) as unfit:
            run(lambda begin, end: None, 100, *stretch, threads=threads)
        assert str(unfit.value) == f"threads must be an int or None, not {name}"


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stretches that take as long as a sleep of a test."""
    monkeypatch.setattr(pool, "ALONE_SECONDS", 1e-4)
    monkeypatch.setattr(pool, "STRETCH_SECONDS", 1e-3)


@pytest.mark.parametrize("rows", [0, 1, 2, 9, 1000])
def test_each_row_once_by_time(threads: int, hurried: None, rows: int) -> None:
    done: list[int] = []

    def work(begin: int, end: int) -> None:
        assert begin < end
        time.sleep(1e-6 * (end - begin))
        done.extend(range(begin, end))

    pool.run_timed(work, rows)
    assert sorted(done) == list(range(rows))


def test_slow_rows_come_one_by_one(threads: int) -> None:
    counts = []

    def work(begin: int, end: int) -> None:
        counts.append(end - begin)
        time.sleep(0.02)

    pool.run_timed(work, 5)
    assert counts == [1] * 5


def test_fast_rows_come_in_longer_and_longer_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "ALONE_SECONDS", 1e9)
    counts: list[int] = []
    pool.run_timed(lambda begin, end: counts.append(end - begin), 10_000)
    assert counts == [1, 8, 64, 512, 4096, 10_000 - 4681]


def test_one_after_the_other_until_ready(hurried: None) -> None:
    names: list[str] = []
    meeting = threading.Barrier(2, timeout=20)

    def work(begin: int, end: int) -> None:
        name = threading.current_thread().name
        time.sleep(0.002)
        first_time = len(names) >= 7 and name not in names[7:]
        names.append(name)
        if first_time:
            meeting.wait()

    pool.run_timed(work, 20, threads=2, ready=lambda: len(names) >= 7)
    assert names[:7] == ["yaffjit-0"] * 7
    assert set(names[7:]) == {"yaffjit-0", "yaffjit-1"}


def test_the_first_error_by_row_order_by_time(threads: int, hurried: None) -> None:
    def work(begin: int, end: int) -> None:
        time.sleep(0.05 if begin == 5 else 0.001)
        if begin >= 5:
            raise ValueError(begin)

    with pytest.raises(ValueError, match=r"^5$"):
        pool.run_timed(work, 1000)


@pytest.mark.parametrize("count", [1, 3])
def test_an_interrupt_stops_what_runs(hurried: None, count: int) -> None:
    """A signal comes to the main thread, which waits for the others."""
    stopped = threading.Event()
    stopped_in = []

    def work(begin: int, end: int) -> None:
        time.sleep(0.001)
        if begin >= 3:
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            stopped_in.append(stopped.wait(20))

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            pool.run_timed(work, 10_000, count, stop=stopped.set)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert 1 <= len(stopped_in) <= count and all(stopped_in)
    assert not any(thread.name.startswith("yaffjit") for thread in threading.enumerate())


def test_threads_that_can_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    class Refused(threading.Thread):
        def start(self) -> None:
            if started:
                raise RuntimeError("can't start new thread")
            started.append(self)
            super().start()

    monkeypatch.setattr(pool.threading, "Thread", Refused)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        pool.run_stretches(lambda begin, end: time.sleep(0.001), 100, 10, threads=4)
    assert not started[0].is_alive()


LIMITS = [
    ({"cpu.max": "max 100000"}, None),
    ({"cpu.max": "150000 100000"}, 2),
    ({"cpu.max": "50000 100000"}, 1),
    ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
    ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
    ({}, None),
]


@pytest.mark.parametrize(("files", "limit"), LIMITS)
def test_cores_are_those_of_this_process(
    files: dict[str, str], limit: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(pool, "CONTROL_GROUP", str(tmp_path))
    monkeypatch.setattr(pool.os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert pool.cores() == (limit or 8)
