"""The shortest decimal text that a double is read back from, as Python's repr has it.

Source: Burger and Dybvig, "Printing Floating-Point Numbers Quickly and Accurately" (1996), with whole numbers
of 30-bit limbs. A tie between two last digits goes to the even one, as in CPython.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from yaffjit.kernels.cached import cached

LIMB_BITS = 30
LIMB_MASK = (1 << LIMB_BITS) - 1
LIMBS = 40  # 10**324 * 2**54 has 1131 bits
LONGEST = 24  # characters of -2.2250738585072014e-308

_ZERO, _DOT, _MINUS, _PLUS, _E = (ord(c) for c in "0.-+e")
_NAMES = np.frombuffer(b"nan-inf", np.uint8)


@njit
def _set_shifted(number: Any, value: int, shift: int) -> None:
    """``number = value << shift`` for a value below 2**60."""
    number[:] = 0
    at, bits = divmod(shift, LIMB_BITS)
    low, high = value & LIMB_MASK, value >> LIMB_BITS
    number[at] = (low << bits) & LIMB_MASK
    number[at + 1] = (low >> (LIMB_BITS - bits)) | ((high << bits) & LIMB_MASK)
    number[at + 2] = high >> (LIMB_BITS - bits)


@njit
def _multiply(number: Any, factor: int) -> None:
    carry = 0
    for i in range(LIMBS):
        product = number[i] * factor + carry
        number[i] = product & LIMB_MASK
        carry = product >> LIMB_BITS


@njit
def _compare_sum(a: Any, b: Any, c: Any) -> int:
    """The sign of ``a + b - c``."""
    difference = 0
    for i in range(LIMBS - 1, -1, -1):
        difference = (difference << LIMB_BITS) + a[i] + b[i] - c[i]
        # What comes below adds less than two limbs' worth, and takes less than one.
        if difference > 1:
            return 1
        if difference < -2:
            return -1
    return 1 if difference > 0 else -1 if difference < 0 else 0


@njit
def _subtract(number: Any, other: Any) -> None:
    borrow = 0
    for i in range(LIMBS):
        limb = number[i] - other[i] + borrow
        number[i] = limb & LIMB_MASK
        borrow = limb >> LIMB_BITS


@njit
def _digits(x: float, digits: Any) -> tuple[int, int]:
    """The shortest digits of a positive finite double, and how many of them are before the point."""
    fraction, exponent = math.frexp(x)
    mantissa = int(fraction * 2.0**53)
    exponent -= 53
    if exponent < -1074:
        mantissa >>= -1074 - exponent
        exponent = -1074
    even = mantissa & 1 == 0
    # The gap below a power of two is half of the one above.
    uneven = 1 if mantissa == 1 << 52 and exponent > -1074 else 0
    rest, unit = np.empty(LIMBS, np.int64), np.empty(LIMBS, np.int64)
    above, below = np.empty(LIMBS, np.int64), np.empty(LIMBS, np.int64)
    zero = np.zeros(LIMBS, np.int64)
    up = max(exponent, 0)
    _set_shifted(rest, mantissa, up + 1 + uneven)
    _set_shifted(unit, 1, up - exponent + 1 + uneven)
    _set_shifted(above, 1, up + uneven)
    _set_shifted(below, 1, up)
    point = math.ceil(math.log10(x) - 1e-10)
    for _ in range(point):
        _multiply(unit, 10)
    for _ in range(-point):
        _multiply(rest, 10)
        _multiply(above, 10)
        _multiply(below, 10)
    reach = _compare_sum(rest, above, unit)
    if reach > 0 or (reach == 0 and even):
        point += 1
    else:
        _multiply(rest, 10)
        _multiply(above, 10)
        _multiply(below, 10)
    count = 0
    while True:
        digit = 0
        while _compare_sum(rest, zero, unit) >= 0:
            _subtract(rest, unit)
            digit += 1
        down, reach = _compare_sum(rest, zero, below), _compare_sum(rest, above, unit)
        low = down < 0 or (down == 0 and even)
        high = reach > 0 or (reach == 0 and even)
        if low or high:
            half = _compare_sum(rest, rest, unit)
            if not low or (high and (half > 0 or (half == 0 and digit & 1))):
                digit += 1
            digits[count] = digit
            return count + 1, point
        digits[count] = digit
        count += 1
        _multiply(rest, 10)
        _multiply(above, 10)
        _multiply(below, 10)


def _write_float(x: float, out: Any) -> int:
    """Write ``repr(x)`` in ASCII into ``out``, a uint8 array of `LONGEST` elements; returns the length."""
    at = 0
    if math.isnan(x):
        out[:3] = _NAMES[:3]
        return 3
    if math.copysign(1.0, x) < 0.0:
        out[at] = _MINUS
        at += 1
    x = abs(x)
    if math.isinf(x):
        out[at : at + 3] = _NAMES[4:]
        return at + 3
    digits = np.zeros(20, np.int64)
    count, point = 1, 1
    if x > 0.0:
        count, point = _digits(x, digits)
    if -4 < point <= 16:
        # 0.00012, 12.5, 1200.0
        if point <= 0:
            out[at], out[at + 1] = _ZERO, _DOT
            at += 2
            for _ in range(-point):
                out[at] = _ZERO
                at += 1
        for i in range(max(count, point + 1) if point > 0 else count):
            if i == point and point > 0:
                out[at] = _DOT
                at += 1
            out[at] = _ZERO + (digits[i] if i < count else 0)
            at += 1
        return at
    for i in range(count):
        if i == 1:
            out[at] = _DOT
            at += 1
        out[at] = _ZERO + digits[i]
        at += 1
    exponent = point - 1
    out[at] = _E
    out[at + 1] = _MINUS if exponent < 0 else _PLUS
    at += 2
    exponent = abs(exponent)
    if exponent >= 100:
        out[at] = _ZERO + exponent // 100
        at += 1
    out[at] = _ZERO + exponent // 10 % 10
    out[at + 1] = _ZERO + exponent % 10
    return at + 2


write_float = cached(_write_float)
