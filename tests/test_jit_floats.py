"""Text of floats in jitted code is Python's repr, for every double."""

from __future__ import annotations

import math
import random
import struct

import numba
import numpy as np
import pytest

import yaffjit.jit  # noqa: F401  (str of floats is registered with numba)
from yaffjit.kernels.decimal import LONGEST, write_float

EDGES = [
    *(0.0, 1.0, 0.1, 5.0, 100.0, 123456.789, 1e15, 1e16, 2.5e15, 123456789012345678.0, 1e-4, 1e-5, 1.5e-7),
    *(math.inf, math.nan, 5e-324, 9.5e-323, 2.2250738585072014e-308, 1.7976931348623157e308, 2.0**-44),
    *(1e22, 1e23, 9007199254740993.0),
]


def written(x: float) -> str:
    out = np.empty(LONGEST, np.uint8)
    return bytes(out[: write_float(x, out)]).decode()


def drawn(count: int) -> list[float]:
    """Doubles of any bits, subnormal ones, whole ones, those of few digits, and float32."""
    draw = random.Random(72)
    found = []
    for _ in range(count):
        found += struct.unpack("<2d", struct.pack("<2Q", draw.getrandbits(64), draw.getrandbits(40)))
        found += struct.unpack("<f", struct.pack("<I", draw.getrandbits(32)))
        found += [
            float(draw.getrandbits(draw.randint(1, 70))),
            round(draw.uniform(-1e3, 1e3), draw.randint(0, 6)),
        ]
    return found


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([*EDGES, *(-x for x in EDGES)], id="edges"),
        pytest.param([2.0**k for k in range(-1074, 1024)], id="powers of two"),
        pytest.param([10.0**k for k in range(-323, 309)], id="powers of ten"),
        pytest.param(drawn(4000), id="drawn"),
    ],
)
def test_every_double(values: list[float]) -> None:
    assert [written(x) for x in values] == list(map(repr, values))


def test_in_jitted_code() -> None:
    @numba.njit
    def shown(x):
        return str(x), f"{x}", f"<{x}>", repr(x)

    for x in (0.1, -2.5e-9, math.nan, -0.0):
        assert shown(x) == shown.py_func(x)


def test_truth_as_a_number() -> None:
    @numba.njit
    def numbers(flag: bool, text: str, x: float) -> tuple[float, ...]:
        return float(flag), float(not flag), float(text == "a"), float(np.bool_(flag)), float(x), float(3)

    for arguments in ((True, "a", 2.5), (False, "b", -0.0)):
        assert repr(numbers(*arguments)) == repr(numbers.py_func(*arguments))
