"""Keeps the bytes under views alive and in place while jitted code reads them by address."""

from __future__ import annotations

import struct
import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from yaffjit.plan.build import Plan

# Held while something that jitted code reads by address is made at first use: of two threads that come at
# once, one would free what the other reads.
making = threading.RLock()


class Held:
    """What numba's counted record of a buffer holds: the bytes, and the owner if it still lives.

    It isn't the owner, which holds the record: a cycle through numba's record would never be collected.
    """

    __slots__ = ("export", "owner")

    def __init__(self, export: np.ndarray[Any, Any], owner: Owner) -> None:
        self.export = export
        self.owner = weakref.ref(owner)


class Owner:
    """One buffer whose address jitted code may hold.

    While an owner lives its buffer is exported, so that nobody can resize or unmap it (BufferError).

    Args:
        data: bytes or a contiguous buffer that doesn't change.
        plan: the schema whose view classes come out of jitted code; None for any equal one.

    Attributes:
        data: the buffer as it was given.
        address: of its first byte.
        nbytes: its size.
        plan: as given.
        meminfo: numba's counted record of the buffer, made at first use; it keeps the buffer alive.
        handle: what jitted code reads: two native uint64, the address and that of the ``meminfo``.
    """

    __slots__ = ("__weakref__", "_export", "address", "data", "handle", "meminfo", "nbytes", "plan")

    handle: bytes
    meminfo: Any

    def __init__(self, data: bytes | memoryview, plan: Plan | None = None) -> None:
        self.data = data
        self.plan = plan
        self._export = export = np.frombuffer(data, np.uint8)
        self.address: int = export.__array_interface__["data"][0]
        self.nbytes = export.nbytes

    def __getattr__(self, name: str) -> Any:
        if name not in ("handle", "meminfo"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        from numba.core.runtime import _nrt_python

        with making:
            try:
                return object.__getattribute__(self, name)
            except AttributeError:
                record: int = _nrt_python.meminfo_new(self.address, Held(self._export, self))
                self.meminfo = _nrt_python._MemInfo(record)
                self.handle = struct.pack("=QQ", self.address, record)
            return self.handle if name == "handle" else self.meminfo

    def __repr__(self) -> str:
        return f"<Owner of {self.nbytes:,} bytes>"
