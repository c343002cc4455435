"""What people have messages in, as one buffer and its offsets: lists of bytes, arrays, Arrow columns."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

Buffers = tuple[Any, Any]  # data, offsets


def joined(payloads: Any) -> Buffers:
    """Data and n + 1 offsets of payloads, of which only a list of messages is copied."""
    if isinstance(payloads, tuple) and len(payloads) == 2 and not _is_bytes(payloads[1]):
        data, offsets = payloads
        try:
            view = memoryview(data)
        except TypeError:
            raise TypeError(
                f"(data, offsets): data must be a buffer of bytes, not {type(data).__name__}"
            ) from None
        if not view.c_contiguous:
            raise ValueError("(data, offsets): data must be contiguous")
        return data, offsets
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(payloads, (arrow.Array, arrow.ChunkedArray)):
        return _arrow(arrow, payloads)
    if _is_bytes(payloads) or isinstance(payloads, (str, np.ndarray)):
        raise TypeError(
            "payloads must be an iterable of bytes, one a message, or (data, offsets), "
            f"not one {type(payloads).__name__}"
        )
    return _listed(payloads)


def _listed(payloads: Iterable[Any]) -> Buffers:
    items = payloads if isinstance(payloads, (list, tuple)) else list(payloads)
    nbytes = np.zeros(len(items) + 1, np.int64)
    for row, item in enumerate(items, 1):
        if isinstance(item, bytes):
            nbytes[row] = len(item)
        else:
            try:
                nbytes[row] = memoryview(item).nbytes
            except TypeError:
                found = type(item).__name__
                raise TypeError(f"row {row - 1}: a message must be bytes, not {found}") from None
    offsets = np.cumsum(nbytes)
    offsets.flags.writeable = False
    return b"".join(items), offsets


def _arrow(arrow: Any, array: Any) -> Buffers:
    if isinstance(array, arrow.ChunkedArray):
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    if isinstance(array, arrow.ExtensionArray):
        array = array.storage
    if array.type == arrow.large_binary():
        dtype: Any = np.int64
    elif array.type == arrow.binary():
        dtype = np.int32
    else:
        raise TypeError(f"an Arrow column of messages must be binary or large_binary, not {array.type}")
    if array.null_count:
        raise ValueError(f"the Arrow column has {array.null_count} null rows, which aren't supported")
    array.validate()
    if not len(array):
        return b"", np.zeros(1, np.int64)
    _, offsets, data = array.buffers()
    rows = np.frombuffer(offsets, dtype)[array.offset : array.offset + len(array) + 1]
    return (b"" if data is None else data), rows


def frozen(data: Any, copy: bool) -> Any:
    """The data if nobody can write to it, or a copy.

    Raises:
        ValueError: it is writable and ``copy`` is False.
    """
    if copy:
        return bytes(data)
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(data, arrow.Buffer):
        # By Arrow's convention nobody writes to a buffer that others have, whatever its flag says.
        return memoryview(data).toreadonly()
    if not _is_read_only(memoryview(data)):
        raise ValueError(
            "the data is writable, so it could change after it was verified: pass copy=True, "
            "or use records_unchecked if it is trusted and stays as it is"
        )
    return data


def _is_read_only(view: memoryview) -> bool:
    """Nobody can write to it; a read-only memoryview of a writable object counts as writable."""
    try:
        return view.readonly and memoryview(view.obj).readonly
    except TypeError:  # memory that no Python object exports
        return view.readonly


def _is_bytes(value: Any) -> bool:
    return isinstance(value, (bytes, bytearray)) or (
        isinstance(value, memoryview) and value.itemsize == 1 and value.ndim == 1
    )
