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

ELEMENTS = 2000  # within a core's first cache
ROUNDS = 100  # so that the call itself doesn't count
QUICK_ROUNDS = 30


@numba.njit
def add_array(values: Any, rounds: int) -> Any:
    total = 0.0
    for _ in range(rounds):
        for value in values:
            total += value
    return total


@numba.njit
def add_field(message: Any, rounds: int) -> Any:
    total = 0.0
    for _ in range(rounds):
        for value in message.scores:
            total += value
    return total


@numba.njit
def numpy_array(values: Any, rounds: int) -> Any:
    total = 0.0
    for i in range(rounds):
        total += np.sum(values) * i
    return total


@numba.njit
def numpy_field(message: Any, rounds: int) -> Any:
    total = 0.0
    for i in range(rounds):
        total += np.sum(message.scores) * i
    return total


def races(quick: bool) -> Iterator[Race]:
    rounds = QUICK_ROUNDS if quick else ROUNDS
    scores = np.random.default_rng(5).random(ELEMENTS)
    Arrays = yj.load_schema(Path(__file__).with_name("arrays.proto"))["benchmarks.Arrays"]
    message = Arrays.view(Arrays.encode({"scores": scores.tolist()}))
    for what, of_array, of_field in (
        ("by a loop", add_array, add_field),
        ("by np.sum", numpy_array, numpy_field),
    ):
        yield Race(
            f"adding up a repeated double {what}",
            ELEMENTS * rounds,
            {
                "numpy's array in numba": partial(of_array, scores, rounds),
                "yaffjit": partial(of_field, message, rounds),
            },
            [Bar("yaffjit", "numpy's array in numba", at_most=1.1)],
            unit="ns an element",
        )
