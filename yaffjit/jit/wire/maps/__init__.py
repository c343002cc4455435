"""Map fields of protobuf views in jitted code: what `jit.maps` does with pairs, on those of the message."""

from __future__ import annotations

from yaffjit.jit.wire.maps import access, boxing
from yaffjit.jit.wire.maps.type import WireMapType

__all__ = ["WireMapType"]

del access, boxing  # imported for what they register
