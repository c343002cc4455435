"""A user's function in numba's cache on disk, where that is damaged: it's compiled anew, and kept again.

numba raises out of the call instead, in each process until somebody deletes the files. Only functions that
take values of ours are treated like this; what numba does for others is its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numba.core import sigutils, types
from numba.core.caching import FunctionCache

from yaffjit.jit.keys import KeyedType
from yaffjit.kernels.cached import lenient


def _takes_ours(sig: Any) -> bool:
    arguments, _ = sigutils.normalize_signature(sig)
    return any(map(_is_ours, arguments))


def _is_ours(typ: Any) -> bool:
    if isinstance(typ, types.Optional):
        return _is_ours(typ.type)
    parts: Iterable[Any] = typ.types if isinstance(typ, types.BaseTuple) else ()
    return isinstance(typ, KeyedType) or any(map(_is_ours, parts))


FunctionCache.load_overload, FunctionCache.save_overload = lenient(
    FunctionCache.load_overload, FunctionCache.save_overload, _takes_ours
)
