"""Buffers under views: what can't change is taken as it is, what can change is copied."""

from __future__ import annotations

import struct
from typing import Any, Union

from yaffjit.errors import VerifyError

# What a view reads: bytes, or a read-only memoryview of bytes.
Data = Union[bytes, memoryview]

_read_u32 = struct.Struct("<I").unpack_from


def take(buf: Any) -> Data:
    """The bytes of any buffer: itself if nobody can write to it, else a copy.

    A read-only memoryview of a writable object counts as writable.
    """
    if type(buf) is bytes:
        return buf
    shown = memoryview(buf)
    if not shown.nbytes:
        return b""
    if not (shown.readonly and shown.c_contiguous and _exported_read_only(shown)):
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


def root(data: Data, full_name: str) -> int:
    """Absolute byte of the root message."""
    try:
        pos: int = _read_u32(data, 0)[0]
    except struct.error:
        raise too_short(data, full_name) from None
    return pos


def too_short(data: Data, full_name: str) -> VerifyError:
    nbytes = len(data)
    return VerifyError(f"the buffer of {nbytes} bytes ends before the root message", message=full_name)


def _exported_read_only(shown: memoryview) -> bool:
    try:
        return memoryview(shown.obj).readonly
    except TypeError:
        return True
