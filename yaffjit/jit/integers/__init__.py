"""The exact 64-bit unsigned integer that uint64 and fixed64 fields have inside jitted code.

numba's own uint64 meets an int64 as a float: ``uint64(2**60 + 1) == 2**60`` is True, and a running maximum
that starts at 0 becomes a rounded float. ``uint64_exact`` converts to nothing by itself; its operators are
given one at a time, each equal to Python's, and what isn't given is a compile error.

* Comparisons, ``in``, ``min``, ``max`` with integers are exact, and so are comparisons with floats.
* ``+ - * << **`` wrap modulo 2**64. ``| ^`` with a negative integer, ``x // negative`` and ``x ** negative``
  raise ValueError, because Python's result isn't an unsigned integer (of 0 it's 0 and ZeroDivisionError).
  ``x % n``, ``n // x`` and ``min(x, n)`` of a signed ``n`` always fit an int64, and are one. Neither ``-x``
  nor ``~x`` compiles.
* With a float, and by ``/``, the result is a float64, rounded correctly.
* In one variable with an int64 it stays exact; a negative integer there raises OverflowError. It never
  becomes a float unless the code says ``float(x)`` or calls a function of floats (``math.log(x)``).
* As an index or a bound of a slice it's a position, however large.
* Into an array of integers it goes only if it fits (OverflowError, as numpy), into one of floats as in numpy.
"""

from __future__ import annotations

from . import arithmetic, arrays, compare, protocol
from .type import UInt64ExactType, as_uint64, uint64_exact

__all__ = ["UInt64ExactType", "as_uint64", "uint64_exact"]

del arithmetic, arrays, compare, protocol  # imported for what they register with numba
