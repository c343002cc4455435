"""Keeps the bytes under views alive and in place while jitted code reads them by address."""

from __future__ import annotations

import struct
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yaffjit.plan.build import Plan

# Owners by the address of their native record, for views that come back out of jitted code.
_by_meminfo: weakref.WeakValueDictionary[int, Owner] = weakref.WeakValueDictionary()


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
        import numpy as np

        self.data = data
        self.plan = plan
        self._export = np.frombuffer(data, np.uint8)
        self.address: int = self._export.__array_interface__["data"][0]
        self.nbytes: int = self._export.nbytes

    def __getattr__(self, name: str) -> Any:
        if name not in ("handle", "meminfo"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        from numba.core.runtime import _nrt_python

        # The record holds the export, not this object: a cycle through it would never be collected.
        record = _nrt_python.meminfo_new(self.address, self._export)
        self.meminfo = _nrt_python._MemInfo(record)
        self.handle = struct.pack("=QQ", self.address, record)
        _by_meminfo[record] = self
        return getattr(self, name)

    def __repr__(self) -> str:
        return f"<Owner of {self.nbytes:,} bytes>"


def owner_at(meminfo: int) -> Owner:
    """The living owner whose ``meminfo`` is at an address."""
    return _by_meminfo[meminfo]
