"""Runs compiled loops over stretches of rows on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def run_stretches(work: Callable[[int, int], None], rows: int, stretch: int) -> None:
    """Call ``work(begin, end)`` for stretches of rows until all have been covered, some at the same time.

    The first error by row order is raised; what hasn't begun by then is dropped, so Ctrl-C takes no longer
    than one stretch.

    Args:
        work: must release the GIL in what takes time, and take any stretch in any order.
        rows: how many there are.
        stretch: rows of one call; about 10 ms of work.
    """
    begins = range(0, rows, stretch)
    # The first one is this thread's: it compiles, and few rows need no other.
    for begin in begins[:1]:
        work(begin, min(begin + stretch, rows))
    rest = begins[1:]
    threads = min(cores(), len(rest))
    if threads < 2:
        for begin in rest:
            work(begin, min(begin + stretch, rows))
        return
    # A pool lives for one call only, so that a fork at any moment is safe; starting it takes 0.1 ms.
    pool = ThreadPoolExecutor(threads, thread_name_prefix="yaffjit")
    try:
        calls = [pool.submit(work, begin, min(begin + stretch, rows)) for begin in rest]
        for call in calls:
            call.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def cores() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every platform
        return os.cpu_count() or 1
