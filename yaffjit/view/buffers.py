"""Buffers under views and records: what nobody can change is taken as it is, all else copied or refused."""

from __future__ import annotations

import mmap
import sys
from typing import Any, TypeAlias

# What a view reads: bytes, or a read-only memoryview of bytes.
Data: TypeAlias = bytes | memoryview


def is_immutable(buf: Any) -> bool:
    """Whether nobody can write to the memory of a buffer, judged by the object that owns that memory.

    True for bytes, read-only maps of files, Arrow's arrays, and Arrow's buffers that say of themselves and
    of their parents that they are immutable; also for memoryviews and numpy arrays of these, at any remove.
    Everything else could change: a read-only view of a writable object; an array that owns its memory, since
    its flag can be set back; memory whose owner isn't known.

    Raises:
        TypeError: ``buf`` isn't a buffer.
    """
    # What exports the memory says more than ``buf``, whose class may give out other memory.
    shown = memoryview(buf)
    return shown.readonly and _owner_is_immutable(shown.obj)


def _owner_is_immutable(owner: Any) -> bool:
    numpy, arrow = sys.modules.get("numpy"), sys.modules.get("pyarrow")
    while True:
        if isinstance(owner, (bytes, mmap.mmap)):
            return memoryview(owner).readonly
        if isinstance(owner, memoryview):
            if not owner.readonly:
                return False
            owner = owner.obj
        elif numpy is not None and isinstance(owner, numpy.ndarray):
            if owner.flags.writeable:
                return False
            owner = owner.base
        elif arrow is not None and isinstance(owner, arrow.Buffer):
            if owner.is_mutable:
                return False
            if owner.parent is None:
                return True
            owner = owner.parent
        else:
            # By Arrow's convention nobody writes to the memory of an array, whatever its buffers' flags say.
            return arrow is not None and isinstance(owner, arrow.Array)


def take(buf: Any) -> Data:
    """The bytes of any buffer: itself if nobody can write to it, else a copy."""
    if type(buf) is bytes:
        return buf
    shown = memoryview(buf)
    if not shown.nbytes:
        return b""
    if not (shown.c_contiguous and is_immutable(shown)):
        return bytes(shown)
    return shown if shown.format == "B" and shown.ndim == 1 else shown.cast("B")


def borrow(buf: Any) -> Data:
    """The bytes of any contiguous buffer without a copy; views only read it."""
    if type(buf) is bytes:
        return buf
    shown = memoryview(buf).toreadonly()
    if not shown.nbytes:
        return b""
    return shown if shown.format == "B" and shown.ndim == 1 else shown.cast("B")
