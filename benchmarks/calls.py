"""What a call of a jitted function costs: a view or a records object goes in, a number comes out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numba
import numpy as np

from benchmarks.banners import made
from benchmarks.timing import Bar, Race

ROWS = 2000
LIMIT = 0.8e-6


@numba.njit
def price(banner: Any) -> Any:
    return banner.price


@numba.njit
def first_price(banners: Any) -> Any:
    return banners[0].price


@numba.njit
def first(numbers: Any) -> Any:
    return numbers[0]


def races(quick: bool) -> Iterator[Race]:
    data = made(ROWS)
    view = data.message_type.view(data.encoded[0])
    yield Race(
        "calling a jitted function that returns a number",
        1,
        {
            "with a view": partial(price, view),
            "with records": partial(first_price, data.records),
            "numba alone, with an array": partial(first, np.array([view.price])),
        },
        [Bar("with a view", seconds=LIMIT), Bar("with records", seconds=LIMIT)],
        unit="ns a call",
    )
