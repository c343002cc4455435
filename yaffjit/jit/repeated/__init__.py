"""Repeated fields in jitted code: read-only sequences over the array in the message, without a copy.

They do what protobuf's containers do for a reader, with Python's results. A slice is a list in Python; here
it's a view of the same array, which comes out as a list.
"""

# Some are imported for what they register with numba.
from yaffjit.jit.repeated import (
    access,
    arrays,
    boxing,
    compare,
    elements,
    lists,
    methods,
    reduce,
    unsupported,
)
from yaffjit.jit.repeated.type import RepeatedType, repeated_type

__all__ = ["RepeatedType", "repeated_type"]

del access, arrays, boxing, compare, elements, lists, methods, reduce, unsupported
