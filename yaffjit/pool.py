"""Runs compiled loops over stretches of rows on threads: each row once, the first error by row order.

Threads live for one call only, so that a fork at any moment is safe; starting one takes 0.1 ms.
"""

from __future__ import annotations

import functools
import math
import operator
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

Work = Callable[[int, int], None]

STRETCH_SECONDS = 0.01  # of one call of `run_timed`'s work, about
ALONE_SECONDS = 0.001  # of work before threads are worth their start
START_TRIES = 500  # a millisecond each, until a thread that was being started has begun
GROWTH = 8  # how many times as many rows a stretch may have as those before

CONTROL_GROUP = "/sys/fs/cgroup"


def run_stretches(work: Work, rows: int, stretch: int, threads: int | None = None) -> None:
    """Call ``work(begin, end)`` for stretches of rows until all have been covered, some at the same time.

    They begin in the order of rows. The first error by row order is raised; what hasn't begun by then is
    dropped, so Ctrl-C takes no longer than one stretch.

    Args:
        work: must release the GIL in what takes time, and take any stretch in any order.
        rows: how many there are.
        stretch: rows of one call; about 10 ms of work.
        threads: how many work at the same time, None for one a core.
    """
    threads = checked_threads(threads)
    # The first one is this thread's: it compiles, and few rows need no other.
    if rows > 0:
        work(0, min(stretch, rows))
    rest = math.ceil(rows / stretch) - 1
    if min(threads, rest) < 2:
        for begin in range(stretch, rows, stretch):
            work(begin, min(begin + stretch, rows))
        return
    _Run(work, stretch, rows, lambda left: stretch).on_threads(min(threads, rest))


def run_timed(
    work: Work,
    rows: int,
    threads: int | None = None,
    stop: Callable[[], None] | None = None,
    ready: Callable[[], bool] | None = None,
) -> None:
    """As `run_stretches`, by stretches of about 10 ms each, whatever a row takes.

    Args:
        work, rows, threads: see there. Here the first call is of one row.
        stop: called where Ctrl-C came; it has the calls of ``work`` that run now return early. No call is
            made in this thread, so that Ctrl-C comes at any time.
        ready: until it says so, one thread works alone.
    """
    threads = checked_threads(threads)
    if rows > 0:
        pace = _Pace(threads)
        run = _Run(lambda begin, end: pace.timed(work, begin, end), 0, rows, pace.next_rows)

        def wanted(left: int) -> int:
            is_worth = pace.seconds >= ALONE_SECONDS and (ready is None or ready())
            return min(threads, math.ceil(left / pace.rows_in(ALONE_SECONDS))) if is_worth else 1

        run.on_threads(1, stop, wanted)


def checked_threads(threads: int | None) -> int:
    """How many threads an argument ``threads`` asks for.

    Raises:
        ValueError: less than one.
        TypeError: it's neither an integer nor None.
    """
    if threads is None:
        return cores()
    try:
        count = operator.index(threads)
    except TypeError:
        raise TypeError(f"threads must be an int or None, not {type(threads).__name__}") from None
    if count < 1:
        raise ValueError(f"threads must be at least 1, not {count}")
    return count


class _Pace:
    """How many rows take how long."""

    def __init__(self, threads: int) -> None:
        self.seconds = 0.0  # of all stretches so far
        self._threads = threads
        self._most = 0  # rows of a stretch so far
        self._row_seconds = 0.0

    def timed(self, work: Work, begin: int, end: int) -> None:
        start = time.perf_counter()
        work(begin, end)
        seconds = time.perf_counter() - start
        self.seconds += seconds
        self._most = max(self._most, end - begin)
        self._row_seconds = seconds / (end - begin)

    def rows_in(self, seconds: float) -> int:
        """By the last stretch, but not many times more than there were in one."""
        rows = int(seconds / max(self._row_seconds, 1e-10))
        return max(1, min(rows, GROWTH * self._most))

    def next_rows(self, left: int) -> int:
        """Of the next stretch; less towards the end, so that all threads end at the same time."""
        if self.seconds < ALONE_SECONDS:
            return self.rows_in(ALONE_SECONDS)
        rows = self.rows_in(STRETCH_SECONDS)
        if self._threads == 1:
            return rows
        return max(min(rows, left // (2 * self._threads)), self.rows_in(ALONE_SECONDS))


class _Run:
    """One call's work on threads.

    Args:
        begin, rows: the first row, and where they end.
        next_rows: rows of the next stretch, of those that are left.
    """

    def __init__(self, work: Work, begin: int, rows: int, next_rows: Callable[[int], int]) -> None:
        self._work = work
        self._begin = begin
        self._rows = rows
        self._next_rows = next_rows
        self._lock = threading.Lock()
        self._workers: list[threading.Thread] = []
        self._running = 0
        self._wanted: Callable[[int], int] | None = None
        self._woken = threading.Event()  # more threads are worth it, or it's over
        self._ended = threading.Event()
        self._first: tuple[int, BaseException] | None = None

    def on_threads(
        self,
        threads: int,
        stop: Callable[[], None] | None = None,
        wanted: Callable[[int], int] | None = None,
    ) -> None:
        """Work until all is done.

        Args:
            threads: to begin with.
            stop: see `run_timed`.
            wanted: how many there should be, where so many rows are left; asked after each stretch until
                it's more than before.
        """
        self._wanted = wanted
        try:
            self._start(threads)
            if wanted is not None:
                self._woken.wait()
                self._start(wanted(self._rows - self._begin) - threads)
            self._ended.wait()
        except BaseException:  # Ctrl-C, or there can't be so many threads
            with self._lock:
                self._begin = self._rows
            if stop is not None:
                stop()
            raise
        finally:
            for worker in self._workers:
                _join(worker)
        if self._first is not None:
            try:
                raise self._first[1]
            finally:
                self._first = None  # a cycle, by its traceback

    def _start(self, count: int) -> None:
        for _ in range(count):
            worker = threading.Thread(target=self._worker, name=f"yaffjit-{len(self._workers)}")
            with self._lock:
                self._running += 1
            self._workers.append(worker)
            try:
                worker.start()
            except RuntimeError:  # the system has no room for it
                self._workers.pop()
                raise

    def _worker(self) -> None:
        while True:
            with self._lock:
                left = self._rows - self._begin
                if left <= 0:
                    break
                if self._wanted is not None and not self._woken.is_set() and self._wanted(left) > 1:
                    self._woken.set()
                begin = self._begin
                end = self._begin = min(self._rows, begin + self._next_rows(left))
            try:
                self._work(begin, end)
            except BaseException as error:
                with self._lock:
                    # All rows before these have been taken, so none of those that come can be the first.
                    self._begin = self._rows
                    if self._first is None or begin < self._first[0]:
                        self._first = begin, error
        with self._lock:
            self._running -= 1
            if not self._running:
                self._ended.set()
                self._woken.set()


def _join(worker: threading.Thread) -> None:
    """Wait for a thread, also for one whose start Ctrl-C interrupted, which is on its way."""
    for _ in range(START_TRIES):
        try:
            worker.join()
        except RuntimeError:  # it hasn't begun
            time.sleep(0.001)
        else:
            return


def cores() -> int:
    """Cores that this process may use: by its affinity, and by the limit of its container."""
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every platform
        count = os.cpu_count() or 1
    return min(count, _limit(CONTROL_GROUP) or count)


@functools.cache
def _limit(folder: str) -> int | None:
    """Cores that a control group may use, rounded up; None without a limit. As it was at first."""
    group = Path(folder)
    try:
        quota, period = (group / "cpu.max").read_text().split()
    except (OSError, ValueError):  # the first version of control groups
        try:
            quota = (group / "cpu" / "cpu.cfs_quota_us").read_text().strip()
            period = (group / "cpu" / "cpu.cfs_period_us").read_text()
        except OSError:
            return None
    return None if quota in ("max", "-1") else max(1, math.ceil(int(quota) / int(period)))
