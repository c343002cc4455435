"""Our own functions in numba's cache on disk: it saves time if it works, and never stops a function.

A cache that is full, damaged or can't be written would otherwise raise out of the first call.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache

from yaffjit.kernels.sources import KERNEL_PACKAGES, hash_of_sources

Method = Callable[[Any, Any, Any], Any]


def lenient(load: Method, save: Method, concerns: Callable[[Any], bool]) -> tuple[Method, Method]:
    """Methods ``load_overload`` and ``save_overload`` of a cache, to which an error means that it's empty.

    Args:
        load, save: the cache's own.
        concerns: whether a signature is to be treated like this; for others errors are raised.
    """

    def load_overload(self: Any, sig: Any, target_context: Any) -> Any:
        try:
            return load(self, sig, target_context)
        except Exception:
            if not concerns(sig):
                raise
            # Emptied, so that what is compiled now can be saved, and the next process finds it.
            with contextlib.suppress(Exception):
                self.flush()
            return None

    def save_overload(self: Any, sig: Any, data: Any) -> None:
        try:
            save(self, sig, data)
        except Exception:
            if not concerns(sig):
                raise

    return load_overload, save_overload


class _LenientCache(FunctionCache):
    """Numba's cache of a function of ours.

    What is in it is of the same sources of ours: numba itself looks only at the file of the function.
    """

    load_overload, save_overload = lenient(
        FunctionCache.load_overload, FunctionCache.save_overload, lambda sig: True
    )

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), hash_of_sources(KERNEL_PACKAGES))


def cached(function: Callable[..., Any], nogil: bool = False) -> Any:
    """``njit(function, cache=True)`` that works without a cache too."""
    dispatcher = njit(function, nogil=nogil)
    if hasattr(dispatcher, "_cache"):  # else numba.config.DISABLE_JIT
        # No folder for it: read-only or homeless containers.
        with contextlib.suppress(Exception):
            dispatcher._cache = _LenientCache(function)
    return dispatcher
