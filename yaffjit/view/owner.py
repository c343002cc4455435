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
    """

    __slots__ = ("__weakref__", "_export", "_handle", "_meminfo", "address", "data", "nbytes", "plan")

    def __init__(self, data: bytes | memoryview, plan: Plan | None = None) -> None:
        import numpy as np

        self.data = data
        self.plan = plan
        self._export = np.frombuffer(data, np.uint8)
        self.address: int = self._export.__array_interface__["data"][0]
        self.nbytes: int = self._export.nbytes
        self._meminfo: Any = None
        self._handle: bytes | None = None

    @property
    def meminfo(self) -> Any:
        """numba's counted record of the buffer; it keeps the buffer alive as long as anything counts it."""
        if self._meminfo is None:
            self._make_native()
        return self._meminfo

    @property
    def handle(self) -> bytes:
        """What jitted code reads of an owner: two native uint64, its address and that of its ``meminfo``."""
        if self._handle is None:
            self._make_native()
        assert self._handle is not None
        return self._handle

    def _make_native(self) -> None:
        from numba.core.runtime import _nrt_python

        # The record holds the export, not this object: a cycle through it would never be collected.
        record = _nrt_python.meminfo_new(self.address, self._export)
        self._meminfo = _nrt_python._MemInfo(record)
        self._handle = struct.pack("=QQ", self.address, record)
        _by_meminfo[record] = self

    def __repr__(self) -> str:
        return f"<Owner of {self.nbytes:,} bytes>"


def owner_at(meminfo: int) -> Owner:
    """The living owner whose ``meminfo`` is at an address."""
    return _by_meminfo[meminfo]
