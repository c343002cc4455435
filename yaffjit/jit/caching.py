"""A user's function in numba's cache on disk, where that is damaged: it's compiled anew, and kept again.

numba raises out of the call instead, in each process until somebody deletes the files, or has wrong code run.
Only functions that take values of ours are treated like this, in files of their own; what numba does for
others is its own.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import Any

from numba.core import sigutils, types
from numba.core.caching import FunctionCache

from yaffjit.jit.keys import KeyedType
from yaffjit.kernels.cache_files import sealed_file
from yaffjit.kernels.cached import load_leniently

SUFFIX = ".yaffjit"

_load, _save, _flush = FunctionCache.load_overload, FunctionCache.save_overload, FunctionCache.flush


def _takes_ours(sig: Any) -> bool:
    arguments, _ = sigutils.normalize_signature(sig)
    return any(map(_is_ours, arguments))


def _is_ours(typ: Any) -> bool:
    if isinstance(typ, types.Optional):
        return _is_ours(typ.type)
    parts: Iterable[Any] = typ.types if isinstance(typ, types.BaseTuple) else ()
    return isinstance(typ, KeyedType) or any(map(_is_ours, parts))


@contextlib.contextmanager
def _in_our_files(cache: FunctionCache) -> Iterator[Any]:
    """Have a cache use sealed files for a call, which numba makes with its lock on compiling."""
    numbas = cache._cache_file
    cache._cache_file = sealed_file(cache, SUFFIX)
    try:
        yield cache._cache_file
    finally:
        cache._cache_file = numbas


def _load_overload(self: FunctionCache, sig: Any, target_context: Any) -> Any:
    if type(self) is not FunctionCache or not _takes_ours(sig):
        return _load(self, sig, target_context)
    with _in_our_files(self) as file:
        return load_leniently(lambda *args: _load(self, *args), file, sig, target_context)


def _save_overload(self: FunctionCache, sig: Any, data: Any) -> None:
    if type(self) is not FunctionCache or not _takes_ours(sig):
        _save(self, sig, data)
        return
    with _in_our_files(self), contextlib.suppress(Exception):
        _save(self, sig, data)


def _flush_both(self: FunctionCache) -> None:
    """As a dispatcher's ``recompile`` wants it."""
    _flush(self)
    if type(self) is FunctionCache:
        file = sealed_file(self, SUFFIX)
        if os.path.exists(file._index_path):
            file.flush()


FunctionCache.load_overload, FunctionCache.save_overload = _load_overload, _save_overload
FunctionCache.flush = _flush_both
