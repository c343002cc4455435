"""Map fields in jitted code: read-only mappings over the pairs in the buffer, as the views' own."""

from __future__ import annotations

from yaffjit.jit.maps import boxing, fields, iteration, lookup, reduce, unsupported
from yaffjit.jit.maps.type import MapPartType, MapType

__all__ = ["MapPartType", "MapType"]

del boxing, fields, iteration, lookup, reduce, unsupported  # imported for what they register
