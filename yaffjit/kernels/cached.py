"""Our own functions in numba's cache on disk: it saves time if it works, and never stops a function.

A cache that is full, damaged or can't be written would otherwise raise out of the first call, or have wrong
code run (`yaffjit.kernels.cache_files`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from numba import njit, types
from numba.core.caching import FunctionCache

from yaffjit.kernels.cache_files import sealed_file
from yaffjit.kernels.sources import KERNEL_PACKAGES, hash_of_sources


class _LenientCache(FunctionCache):
    """Numba's cache of a function of ours, to which an error means that it's empty.

    What is in it is of the same sources of ours: numba itself looks only at the file of the function.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = sealed_file(self)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        return load_leniently(super().load_overload, self._cache_file, sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        with contextlib.suppress(Exception):
            super().save_overload(sig, data)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), hash_of_sources(KERNEL_PACKAGES))


def load_leniently(load: Callable[[Any, Any], Any], file: Any, sig: Any, target_context: Any) -> Any:
    """What numba's ``load_overload`` finds in files; None after an error."""
    try:
        return load(sig, target_context)
    except Exception:
        # Emptied, so that what is compiled now can be saved, and the next process finds it.
        with contextlib.suppress(Exception):
            file.flush()
        return None


def cached(function: Callable[..., Any], nogil: bool = False) -> Any:
    """``njit(function, cache=True)`` that works without a cache too."""
    dispatcher = njit(function, nogil=nogil)
    if hasattr(dispatcher, "_cache"):  # else numba.config.DISABLE_JIT
        # No folder for it: read-only or homeless containers.
        with contextlib.suppress(Exception):
            dispatcher._cache = _LenientCache(function)
    return dispatcher


def inner(function: Callable[..., Any], inline: bool = False) -> Any:
    """``njit`` for a function that only kernels call, of integers and floats: it compiles in half the time.

    It has no entry for Python, and is compiled once whatever constants it's called with.

    Args:
        inline: have it inlined wherever it's called: a call takes some 8 ns with numba's conventions.
    """
    dispatcher = njit(
        function, no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False, forceinline=inline
    )
    if hasattr(dispatcher, "get_call_template"):  # else numba.config.DISABLE_JIT
        resolve = dispatcher.get_call_template
        dispatcher.get_call_template = lambda args, kws: resolve(tuple(map(types.unliteral, args)), kws)
    return dispatcher


def compiled(dispatcher: Any, signature: tuple[Any, ...]) -> Any:
    """A function of `cached`, compiled for one signature or loaded from disk; others are a mistake."""
    if not dispatcher.signatures:
        dispatcher.compile(signature)
        dispatcher.disable_compile()
    return dispatcher


def is_kept(dispatcher: Any, signature: tuple[Any, ...]) -> bool:
    """Whether a function of `cached` is on disk, compiled for that signature."""
    try:
        key = dispatcher._cache._index_key(signature, dispatcher.targetctx.codegen())
        return key in dispatcher._cache._cache_file._load_index()
    except Exception:  # no cache, or another numba's
        return False
