"""What people have messages in, as one buffer and its offsets: lists of bytes, arrays, Arrow columns."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from yaffjit.view.buffers import is_immutable


class Buffers(NamedTuple):
    """Messages in one buffer: message i is ``data[offsets[i]:offsets[i + 1]]``.

    Attributes:
        given: the caller's own data and offsets, which may change; otherwise nobody writes to them.
    """

    data: Any
    offsets: Any
    given: bool = False


def joined(payloads: Any) -> Buffers:
    """Data and n + 1 offsets of payloads, of which only a list of messages is copied."""
    if isinstance(payloads, tuple) and len(payloads) == 2 and not _is_of_bytes(payloads[1]):
        data, offsets = payloads
        return Buffers(_one_buffer(data), offsets, given=True)
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(payloads, (arrow.Array, arrow.ChunkedArray)):
        return _arrow(arrow, payloads)
    if (
        _is_of_bytes(payloads)
        or isinstance(payloads, (str, np.ndarray))
        or not isinstance(payloads, Iterable)
    ):
        raise TypeError(
            "payloads must be an iterable of bytes, one a message, or (data, offsets), "
            f"not one {type(payloads).__name__}"
        )
    return _listed(payloads)


def _one_buffer(data: Any) -> Any:
    try:
        view = memoryview(data)
    except (TypeError, ValueError):
        raise TypeError(
            f"(data, offsets): data must be a buffer of bytes, not {type(data).__name__}"
        ) from None
    if not view.c_contiguous:
        raise ValueError("(data, offsets): data must be contiguous")
    # A memoryview can't see the bytes of every element type; numpy can.
    return data if view.itemsize == 1 or not view.nbytes else np.frombuffer(data, np.uint8)


def _listed(payloads: Iterable[Any]) -> Buffers:
    items = payloads if isinstance(payloads, (list, tuple)) else list(payloads)
    nbytes = np.zeros(len(items) + 1, np.int64)
    for row, item in enumerate(items, 1):
        if isinstance(item, bytes):
            nbytes[row] = len(item)
        else:
            try:
                view = memoryview(item)
            except (TypeError, ValueError):
                found = type(item).__name__
                raise TypeError(f"row {row - 1}: a message must be bytes, not {found}") from None
            if not view.c_contiguous:
                raise ValueError(f"row {row - 1}: the message isn't contiguous")
            nbytes[row] = view.nbytes
    return Buffers(b"".join(items), np.cumsum(nbytes))


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
        return Buffers(b"", np.zeros(1, np.int64))
    _, offsets, data = array.buffers()
    rows = np.frombuffer(offsets, dtype)[array.offset : array.offset + len(array) + 1]
    return Buffers(b"" if data is None else memoryview(data).toreadonly(), rows)


def frozen(buffers: Buffers, copy: bool) -> Any:
    """The data if nobody can write to it, or a copy.

    Raises:
        ValueError: it could change, and ``copy`` is False.
    """
    if copy:
        return bytes(buffers.data)
    if buffers.given and not is_immutable(buffers.data):
        raise ValueError(
            "the data is writable, so it could change after it was verified: pass copy=True, "
            "or use records_unchecked if it is trusted and stays as it is"
        )
    return buffers.data


def _is_of_bytes(value: Any) -> bool:
    """Whether a value is a buffer whose elements are bytes: data, so not offsets."""
    try:
        return memoryview(value).itemsize == 1
    except (TypeError, ValueError):
        return False
