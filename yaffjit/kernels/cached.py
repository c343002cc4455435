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


class _LenientCache(FunctionCache):
    """Numba's cache of a function, where an error means that there's nothing in it.

    What is in it is of the same sources of ours: numba itself looks only at the file of the function.
    """

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), hash_of_sources(KERNEL_PACKAGES))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:
            # Emptied, so that what is compiled now can be saved, and the next process finds it.
            with contextlib.suppress(Exception):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with contextlib.suppress(Exception):
            super().save_overload(sig, data)


def cached(function: Callable[..., Any], nogil: bool = False) -> Any:
    """``njit(function, cache=True)`` that works without a cache too."""
    dispatcher = njit(function, nogil=nogil)
    if hasattr(dispatcher, "_cache"):  # else numba.config.DISABLE_JIT
        # No folder for it: read-only or homeless containers.
        with contextlib.suppress(Exception):
            dispatcher._cache = _LenientCache(function)
    return dispatcher
