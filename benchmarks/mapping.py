"""`map` beside the loop that one would write by hand, with one thread and two, and what it compiles."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from functools import partial
from types import FunctionType
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from benchmarks.banners import made
from benchmarks.timing import Bar, Race

ROWS = 1_000_000
QUICK_ROWS = 100_000
COMPUTED_ROWS = 20_000
FEW_ROWS = 1_000
COMPILED = 5  # times


def value(banner: Any) -> Any:
    """Five fields."""
    if banner.state != 1:
        return 0.0
    return banner.price * banner.stats.ctr + banner.stats.clicks / (1.0 + banner.geo.lat**2)


jitted_value = numba.njit(value)


@numba.njit
def by_hand(banners: Any) -> NDArray[np.float64]:
    out = np.empty(len(banners))
    for row, banner in enumerate(banners):
        out[row] = jitted_value(banner)
    return out


def computed(banner: Any) -> Any:
    """Microseconds of arithmetic."""
    total = 0.0
    for step in range(1, 200):
        total += math.sin(banner.price * step)
    return total


def title(banner: Any) -> Any:
    return banner.title


def races(quick: bool) -> Iterator[Race]:
    rows = QUICK_ROWS if quick else ROWS
    records = made(rows).records
    yield Race(
        f"a function of five fields over {rows:,} banners",
        rows,
        {
            "map, one thread": partial(records.map, value, threads=1),
            "a jitted loop by hand": partial(by_hand, records),
            "map": partial(records.map, value),
        },
        [Bar("map, one thread", "a jitted loop by hand", at_most=1.3)],
    )
    few = records[:COMPUTED_ROWS]
    yield Race(
        f"a function that computes for microseconds over {COMPUTED_ROWS:,} banners",
        COMPUTED_ROWS,
        {
            "map, one thread": partial(few.map, computed, threads=1),
            "map, two threads": partial(few.map, computed, threads=2),
        },
        [Bar("map, two threads", "map, one thread", at_least=1.7)],
    )
    few = records[:QUICK_ROWS]
    yield Race(
        f"titles of {QUICK_ROWS:,} banners as objects",
        QUICK_ROWS,
        {
            "map": partial(few.map, title),
            "map in Python": partial(few.map, title, jit=False),
        },
    )
    few = records[:FEW_ROWS]
    yield Race(
        f"mapping {FEW_ROWS:,} banners again",
        1,
        {"map": partial(few.map, value), "a jitted loop by hand": partial(by_hand, few)},
        [Bar("map", seconds=1e-3)],
        unit="ns a call",
    )
    yield Race(
        "the first map of a function, beside what the function itself takes to compile",
        1,
        {"map": partial(first_map, few)},
        [Bar("map", seconds=0.3)],
        unit="ms",
        repetitions=COMPILED,
        reported=True,
    )


def first_map(records: Any) -> float:
    """Seconds, less those that the function takes to compile."""
    view = records[0]
    first = numba.njit(FunctionType(value.__code__, globals(), "value"))
    start = time.perf_counter()
    first(view)
    own = time.perf_counter() - start
    again = numba.njit(FunctionType(value.__code__, globals(), "value"))
    start = time.perf_counter()
    records.map(again)
    return time.perf_counter() - start - own
