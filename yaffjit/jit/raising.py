"""Errors with values that jitted code raises: numba's wrapper keeps two Python objects of each for ever.

It's 250 bytes an error, of ours (a row out of range) as of users' own. What a wrapper is made of lets them go
here, as long as numba doesn't.
"""

from __future__ import annotations

from typing import Any

from numba.core.callconv import CPUCallConv
from numba.core.pythonapi import PythonAPI

_build = PythonAPI.build_dynamic_excinfo_struct


def _build_and_release(self: PythonAPI, static: Any, values: Any) -> Any:
    """What both, a bytes object and a tuple, become; neither is used after it."""
    made = _build(self, static, values)
    self.decref(static)
    self.decref(values)
    return made


def _are_kept() -> bool:
    """Whether nothing that numba does with them lets them go."""
    caller = CPUCallConv.unpack_dynamic_exception.__code__.co_names
    return _build.__name__ in caller and "decref" not in (*caller, *_build.__code__.co_names)


if _are_kept():
    PythonAPI.build_dynamic_excinfo_struct = _build_and_release
