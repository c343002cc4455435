"""Buffers under views: what can't change is taken as it is, what can change is copied."""

from __future__ import annotations

from typing import Any, TypeAlias

# What a view reads: bytes, or a read-only memoryview of bytes.
Data: TypeAlias = bytes | memoryview


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


def _exported_read_only(shown: memoryview) -> bool:
    try:
        return memoryview(shown.obj).readonly
    except TypeError:
        return True
