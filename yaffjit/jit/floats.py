"""Floats in jitted code: ``str(x)``, ``repr(x)`` and f-strings, where numba shows the name of the type, and
``float(flag)``, which numba refuses.
"""

from __future__ import annotations

import numpy as np
from numba.core import types
from numba.cpython.unicode import PY_UNICODE_1BYTE_KIND, _empty_string, _set_code_point
from numba.extending import overload, overload_method

from yaffjit.kernels.cached import cached
from yaffjit.kernels.decimal import LONGEST, write_float


def _text_of(x: float) -> str:
    buffer = np.empty(LONGEST, np.uint8)
    count = write_float(x, buffer)
    text = _empty_string(PY_UNICODE_1BYTE_KIND, count, 1)
    for i in range(count):
        _set_code_point(text, i, buffer[i])
    return text


text_of = cached(_text_of)


def _shown(x):  # type: ignore[no-untyped-def]
    return (lambda x: text_of(x)) if x == types.float64 else None


for _method in ("__str__", "__repr__"):
    overload_method(types.Float, _method)(_shown)


@overload(float)
def _float_of_bool(x):  # type: ignore[no-untyped-def]
    return (lambda x: 1.0 if x else 0.0) if isinstance(x, types.Boolean) else None
