"""Keeps the bytes under views alive and in place while jitted code reads them by address."""

from __future__ import annotations

import bisect
import ctypes
import struct
import sys
import threading
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from yaffjit.arrays import array_address
from yaffjit.forks import renew_in_forks

if TYPE_CHECKING:
    from yaffjit.plan.build import Plan
    from yaffjit.view.buffers import Data

# Held while something that jitted code reads by address is made at first use: of two threads that come at
# once, one would free what the other reads.
making = threading.RLock()
renew_in_forks(sys.modules[__name__], "making", threading.RLock)


# Where an address lies: the data, the position in it, and what owns the data, None if nothing does yet.
Place = tuple["Data", int, "Owner | None"]


class Held:
    """What numba's counted record of buffers holds: the bytes, and the owner if it still lives.

    It isn't the owner, which holds the record: a cycle through numba's record would never be collected.

    Attributes:
        joined: bytes that jitted code put together of several places of theirs
            (`yaffjit.jit.wire.fragments`).
    """

    __slots__ = ("export", "joined", "owner")

    def __init__(self, export: Any, owner: Owner) -> None:
        self.export = export
        self.joined: dict[tuple[int, int, int], npt.NDArray[np.uint8]] = {}
        self.owner = weakref.ref(owner)

    def living(self) -> Owner:
        """The owner, or another one of the same bytes."""
        owner = self.owner()
        if owner is None:
            of_many = isinstance(self.export, tuple)
            owner = ManyOwner(self.export) if of_many else Owner(memoryview(self.export).toreadonly())
        return owner


class Owner:
    """One buffer whose address jitted code may hold.

    While an owner lives its buffer is exported, so that nobody can resize or unmap it (BufferError).

    Args:
        data: bytes or a contiguous buffer that doesn't change.
        plan: the schema whose view classes come out of jitted code; None for any equal one.
        ascending: whether all maps in the messages that it is asked for were seen to ascend.

    Attributes:
        data: the buffer as it was given.
        address: of its first byte.
        nbytes: its size.
        plan, ascending: as given.
        meminfo: numba's counted record of the buffer, made at first use; it keeps the buffer alive.
        handle: what jitted code reads: two native uint64, the address and that of the ``meminfo``.
    """

    __slots__ = (
        "__weakref__",
        "_export",
        "address",
        "ascending",
        "data",
        "handle",
        "meminfo",
        "nbytes",
        "plan",
    )

    data: Any
    handle: bytes
    meminfo: Any

    def __init__(self, data: Data, plan: Plan | None = None, ascending: bool = False) -> None:
        self.data = data
        self.plan = plan
        self.ascending = ascending
        self._export: Any = np.frombuffer(data, np.uint8)
        self.address: int = array_address(self._export)
        self.nbytes: int = self._export.nbytes

    def place(self, address: int) -> Place:
        """Where an address lies that jitted code found in the bytes."""
        return self.data, address - self.address, self

    def __getattr__(self, name: str) -> Any:
        if name not in ("handle", "meminfo"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        from numba.core.runtime import _nrt_python

        from yaffjit.kernels.ascending import mark

        with making:
            try:
                return object.__getattribute__(self, name)
            except AttributeError:
                record: int = _nrt_python.meminfo_new(self.address, Held(self._export, self))
                if self.ascending:
                    mark(record)
                self.meminfo = _nrt_python._MemInfo(record)
                self.handle = struct.pack("=QQ", self.address, record)
            return self.handle if name == "handle" else self.meminfo

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.nbytes:,} bytes>"


class ManyOwner(Owner):
    """Many buffers, in any of which jitted code may hold addresses.

    A view that is made of an address has no owner until it goes into jitted code itself.

    Args:
        data: the buffers; they may overlap.
        spans: int64, shape (buffers, 2): address and bytes of each; None to have them looked up.
        plan, ascending: as for `Owner`.
    """

    __slots__ = ("_found", "_spans")

    def __init__(
        self,
        data: Sequence[Data],
        spans: npt.NDArray[np.int64] | None = None,
        plan: Plan | None = None,
        ascending: bool = False,
    ) -> None:
        self.data = self._export = tuple(data)
        self.plan = plan
        self.ascending = ascending
        self._spans = spans_of(self.data) if spans is None else spans
        self.address = 0
        self.nbytes = int(self._spans[:, 1].sum())
        self._found: tuple[Any, Any] | None = None

    def place(self, address: int) -> Place:
        if self._found is None:
            with making:
                if self._found is None:
                    self._found = _disjoint(self.data, self._spans)
        starts, buffers = self._found
        number = bisect.bisect_right(starts, address) - 1
        return buffers[number], address - starts[number], None


def spans_of(buffers: Sequence[Data]) -> npt.NDArray[np.int64]:
    """Address and bytes of each buffer, shape (buffers, 2)."""
    spans = np.empty((len(buffers), 2), np.int64)
    for row, data in enumerate(buffers):
        spans[row] = address_of(data), len(data)
    return spans


def address_of(data: Data) -> int:
    """The address of a buffer's first byte."""
    return array_address(np.frombuffer(data, np.uint8))


def _disjoint(buffers: Sequence[Data], spans: npt.NDArray[np.int64]) -> tuple[memoryview, Sequence[Data]]:
    """Ascending addresses of buffers that don't overlap and have all the bytes of the given ones."""
    order = np.lexsort((-spans[:, 1], spans[:, 0]))
    order = order[spans[order, 1] > 0]
    starts = spans[order, 0]
    ends = np.maximum.accumulate(starts + spans[order, 1])
    heads = np.flatnonzero(np.concatenate(([True], starts[1:] >= ends[:-1]))) if len(order) else order
    # Of those that overlap, the first is the largest of its start; mostly the others lie within it.
    found = [buffers[number] for number in order[heads].tolist()]
    last_ends = ends[np.concatenate((heads[1:], [len(order)])).astype(np.intp) - 1] if len(order) else starts
    for place in np.flatnonzero(spans[order[heads], 1] < last_ends - starts[heads]).tolist():
        start, end = int(starts[heads[place]]), int(last_ends[place])
        found[place] = _union(start, end - start, buffers)
    return np.ascontiguousarray(starts[heads]).data, found


def _union(address: int, nbytes: int, kept: object) -> memoryview:
    """The bytes of several buffers that overlap, which it keeps alive."""
    array = (ctypes.c_uint8 * nbytes).from_address(address)
    array.kept = kept  # type: ignore[attr-defined]
    return memoryview(array).toreadonly().cast("B")
