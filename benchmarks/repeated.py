"""Loops over repeated fields in jitted code, beside the same loops over numpy's arrays."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np

import yaffjit as yj
from benchmarks.timing import Bar, Race

ELEMENTS = 20_000  # within a core's second cache
QUICK_ELEMENTS = 2000


@numba.njit
def add_array(values: Any) -> Any:
    total = 0.0
    for value in values:
        total += value
    return total


@numba.njit
def add_field(message: Any) -> Any:
    total = 0.0
    for value in message.scores:
        total += value
    return total


@numba.njit
def numpy_array(values: Any) -> Any:
    return np.sum(values)


@numba.njit
def numpy_field(message: Any) -> Any:
    return np.sum(message.scores)


def races(quick: bool) -> Iterator[Race]:
    count = QUICK_ELEMENTS if quick else ELEMENTS
    scores = np.random.default_rng(5).random(count)
    Arrays = yj.load_schema(Path(__file__).with_name("arrays.proto"))["benchmarks.Arrays"]
    message = Arrays.view(Arrays.encode({"scores": scores.tolist()}))
    for what, of_array, of_field in (
        ("by a loop", add_array, add_field),
        ("by np.sum", numpy_array, numpy_field),
    ):
        yield Race(
            f"adding up a repeated double {what}",
            count,
            {
                "numpy's array in numba": partial(of_array, scores),
                "yaffjit": partial(of_field, message),
            },
            [Bar("yaffjit", "numpy's array in numba", at_most=1.1)],
            unit="ns an element",
        )
