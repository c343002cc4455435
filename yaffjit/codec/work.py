"""When a kernel is worth its loading: once the work that was done without it would have paid for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from yaffjit.forks import renew_in_forks

K = TypeVar("K")

# What loading a kernel takes: where its machine code is on disk, and where it has to be compiled.
KEPT_SECONDS = 0.3
COMPILE_SECONDS = 15.0


class Work(Generic[K]):
    """A kernel once it's loaded, and the work of this process until then.

    Args:
        load: loads or compiles it.
        is_kept: whether its machine code is on disk.
    """

    def __init__(self, load: Callable[[], K], is_kept: Callable[[], bool]) -> None:
        self.loaded: K | None = None
        self._load = load
        self._is_kept = is_kept
        self._seconds = 0.0
        self._lock = threading.Lock()
        renew_in_forks(self, "_lock", threading.Lock)

    def kernel(self, seconds: float) -> K | None:
        """The kernel, or None if it isn't loaded and work of so many seconds without it is better done so."""
        if self.loaded is None:
            self._seconds += seconds
            if self._seconds > KEPT_SECONDS and (self._seconds > COMPILE_SECONDS or self._is_kept()):
                self.load()
        return self.loaded

    def load(self) -> K | None:
        """Load the kernel at once; None where numba is switched off."""
        with self._lock:
            if self.loaded is None:
                from numba import config

                if not config.DISABLE_JIT:
                    self.loaded = self._load()
        return self.loaded
