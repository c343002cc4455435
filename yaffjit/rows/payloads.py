"""What people have messages in: lists of bytes, arrays, Arrow columns; where each message lies in them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from yaffjit.rows.chunks import Chunks
from yaffjit.rows.memory import Int64Array, Memory
from yaffjit.rows.places import COMPILED_ROWS, Places
from yaffjit.rows.tabular import Tabular
from yaffjit.view.buffers import Data, borrow, is_immutable

if TYPE_CHECKING:
    from yaffjit.plan import Plan

WRITABLE = (
    "could change after it was verified: pass copy=True, "
    "or use records_unchecked if it is trusted and stays as it is"
)
# In a bytes object and in a tuple, where the content begins; in any object, its class and its size.
_CONTENT_AT = bytes.__basicsize__ - 1
_ITEMS_AT = tuple.__basicsize__
_TYPE_AT = 8
_SIZE_AT = object.__basicsize__
_NO_BYTES = -1


def stored(plan: Plan, payloads: Any, copy: bool | None = False) -> Chunks | Places:
    """Where messages lie.

    Args:
        copy: what could change; False refuses it, None takes it as it is. Bytes objects are never copied.

    Raises:
        TypeError: these aren't payloads, or one of them isn't bytes.
        ValueError: something could change, or the offsets make no sense.
    """
    if isinstance(payloads, Tabular):
        raise TypeError(f"payloads must be bytes, and these are {type(payloads).__name__} already")
    if isinstance(payloads, tuple) and len(payloads) == 2 and not _is_of_bytes(payloads[1]):
        data, offsets = payloads
        return Chunks.of_array(plan, _frozen(_one_buffer(data), copy), offsets)
    arrow = sys.modules.get("pyarrow")
    if (arrow is not None and isinstance(payloads, (arrow.Array, arrow.ChunkedArray))) or any(
        hasattr(payloads, name) for name in ("__arrow_c_stream__", "__arrow_c_array__")
    ):
        from yaffjit.rows.arrow import of_arrow

        return of_arrow(plan, payloads, bool(copy))
    if isinstance(payloads, np.ndarray) and payloads.ndim == 1 and payloads.dtype.names is None:
        if payloads.dtype.kind == "O":
            payloads = payloads.tolist()
        elif payloads.dtype.kind in "SV":
            return _fixed_size(plan, payloads, copy)
    if (
        _is_of_bytes(payloads)
        or isinstance(payloads, (str, dict, np.ndarray))
        or hasattr(payloads, "read")  # an open file gives its lines
        or not isinstance(payloads, Iterable)
    ):
        raise TypeError(
            "payloads must be an iterable of bytes, one a message, or (data, offsets), "
            f"not one {type(payloads).__name__}{readers_hint(payloads)}"
        )
    return _listed(plan, tuple(payloads), copy)


def readers_hint(given: Any) -> str:
    """What the sentence about a path or an open file, given in place of messages, ends with."""
    if isinstance(given, (str, os.PathLike)) or hasattr(given, "read"):
        return ": yj.read_delimited and the other readers give the messages of a file"
    return ""


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


def _frozen(data: Any, copy: bool | None) -> Any:
    if copy:
        return bytes(data)
    if copy is False and not is_immutable(data):
        raise ValueError(f"the data is writable, so it {WRITABLE}")
    return data


def _fixed_size(plan: Plan, array: Any, copy: bool | None) -> Chunks:
    """An array of fixed-size bytes, of which each element is a message."""
    nbytes = array.dtype.itemsize
    shown = array if array.flags.c_contiguous else np.ascontiguousarray(array)
    content = shown.view(np.uint8) if shown.nbytes else np.zeros(0, np.uint8)
    if array.dtype.kind == "S" and shown.nbytes:
        # numpy fills shorter ones up with zeros, and messages often end in zeros of their own.
        zeros = np.flatnonzero(content[nbytes - 1 :: nbytes] == 0)
        if len(zeros):
            raise ValueError(
                f"row {zeros[0]} of the array of {array.dtype} ends in a zero byte, which may be the "
                f"message's own or fill it up: pass a list of bytes, or, if each has {nbytes} bytes, "
                f'array.view("V{nbytes}")'
            )
    mine = shown is not array or not shown.nbytes
    data = content.tobytes() if mine else _frozen(content, copy)
    return Chunks.of_array(plan, data, nbytes * np.arange(len(array) + 1), given=False)


def _listed(plan: Plan, items: tuple[Any, ...], copy: bool | None) -> Places:
    table = np.empty((len(items), 2), np.int64)
    if not _find_bytes(items, table):
        data = list(items)
        for row in np.flatnonzero(table[:, 0] == _NO_BYTES).tolist():
            if items[row] is None:
                data[row], table[row] = b"", (0, 0)
            else:
                from yaffjit.view.owner import address_of

                data[row] = found = _buffer(items[row], row, copy)
                table[row] = address_of(found), len(found)
        items = tuple(data)
    return Places(table, Memory(plan, items, spans=table))


def _find_bytes(items: tuple[Any, ...], table: Int64Array) -> bool:
    """Where the bytes objects lie; whether there's nothing else, which gets the address -1."""
    if len(items) >= COMPILED_ROWS:
        from yaffjit.kernels.places import find_bytes

        # A tuple can't be changed, so it keeps each of them.
        first = id(items) + _ITEMS_AT
        return bool(find_bytes(first, len(items), id(bytes), _TYPE_AT, _SIZE_AT, _CONTENT_AT, table))
    for row, item in enumerate(items):
        table[row] = (id(item) + _CONTENT_AT, len(item)) if type(item) is bytes else (_NO_BYTES, 0)
    return all(type(item) is bytes for item in items)


def _buffer(item: Any, row: int, copy: bool | None) -> Data:
    try:
        view = memoryview(item)
    except (TypeError, ValueError):
        raise TypeError(f"row {row}: a message must be bytes, not {type(item).__name__}") from None
    if not view.c_contiguous:
        raise ValueError(f"row {row}: the message isn't contiguous")
    if copy:
        return bytes(view)
    if copy is False and not is_immutable(item):
        raise ValueError(f"row {row}: the message is writable, so it {WRITABLE}")
    return borrow(item)


def _is_of_bytes(value: Any) -> bool:
    """Whether a value is a buffer whose elements are bytes: data, so not offsets."""
    try:
        return memoryview(value).itemsize == 1
    except (TypeError, ValueError):
        return False
