"""Repeated fields of protobuf views in jitted code: what `jit.repeated` does with elements, on those of runs.

Values come packed, unpacked or mixed. They are read in order; an index is counted from the beginning, unless
all values are one packed run of a fixed width.
"""

from __future__ import annotations

from yaffjit.jit.wire.repeated import access, boxing, elements
from yaffjit.jit.wire.repeated.type import WireRepeatedType

__all__ = ["WireRepeatedType"]

del access, boxing, elements  # imported for what they register
