"""What is written in place of objects that aren't plain: subclasses, numpy's, and what ``default=`` gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from yaffjit.arrays import array_address
from yaffjit.plan.limits import INT64_MAX
from yaffjit.universal.codes import FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, TRUE

# What `lower` gives: a substitute; one number of a code; an array of numbers of one code.
SUBSTITUTE, NUMBER, NUMBERS = 0, 1, 2
Lowered = tuple[int, Any, int, int, int]

# By the kind and width of a dtype: the one that numbers are written from, and its code. An unsigned integer
# takes the next wider signed one.
FORMS = {
    "b1": ("?", TRUE),
    "i1": ("<i1", INT8),
    "i2": ("<i2", INT16),
    "i4": ("<i4", INT32),
    "i8": ("<i8", INT64),
    "u1": ("<i2", INT16),
    "u2": ("<i4", INT32),
    "u4": ("<i8", INT64),
    "u8": ("<i8", INT64),
    "f2": ("<f4", FLOAT32),
    "f4": ("<f4", FLOAT32),
    "f8": ("<f8", FLOAT64),
}


def lower(value: Any, default: Callable[[Any], Any] | None) -> Lowered | None:
    """What to write in place of a value that isn't one of the plain types, or has no code.

    Returns:
        ``(SUBSTITUTE, object, 0, 0, 0)``; ``(NUMBER, None, 0, code, bits)`` with a number's bits as int64; or
        ``(NUMBERS, array, address, code, count)`` with an array in one dimension, contiguous and
        little-endian; None if there is nothing, nor a ``default``.
    """
    kind = type(value)
    plain: Any
    if isinstance(value, str) and kind is not str:
        plain = str.__str__(value)
    elif isinstance(value, float):
        plain = float.__float__(value)
    elif isinstance(value, int) and kind is not int:
        plain = int.__int__(value)
    elif isinstance(value, dict):
        plain = dict(value.items())
    elif isinstance(value, list | tuple):
        plain = list(value)
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biufUO" and value.dtype.itemsize <= 8:
        return _of_array(value)
    elif isinstance(value, np.ndarray) and value.dtype.kind == "U":
        plain = value.tolist()
    elif isinstance(value, np.generic) and (form := FORMS.get(value.dtype.str[1:])) is not None:
        return _of_scalar(value, *form)
    elif default is not None:
        plain = default(value)
    else:
        return None
    return SUBSTITUTE, plain, 0, 0, 0


def _of_array(array: NDArray[Any]) -> Lowered:
    form = FORMS.get(array.dtype.str[1:])
    if form is None or isinstance(array, np.ma.MaskedArray):  # text, objects
        return SUBSTITUTE, array.tolist(), 0, 0, 0
    if array.ndim == 0:
        return SUBSTITUTE, array[()], 0, 0, 0
    if array.ndim > 1:
        return SUBSTITUTE, list(array), 0, 0, 0
    dtype, code = form
    if array.dtype.kind == "u" and array.dtype.itemsize == 8 and array.size and array.max() > INT64_MAX:
        return SUBSTITUTE, array.tolist(), 0, 0, 0  # which finds the first that doesn't fit
    numbers = np.ascontiguousarray(array, dtype)
    return NUMBERS, numbers, array_address(numbers), code, len(numbers)


def _of_scalar(value: Any, dtype: str, code: int) -> Lowered:
    if code == TRUE:
        return SUBSTITUTE, bool(value), 0, 0, 0
    if value.dtype.kind == "u" and value > INT64_MAX:
        return SUBSTITUTE, int(value), 0, 0, 0
    bits = int(np.float32(value).view(np.int32)) if code == FLOAT32 else int(value)
    return NUMBER, None, 0, code, bits
