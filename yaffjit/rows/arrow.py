"""Where messages lie in Arrow columns of any binary type: sliced, chunked, of dictionaries, with nulls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from yaffjit.rows.chunks import Chunk, Chunks, checked_offsets
from yaffjit.rows.joined import joined
from yaffjit.rows.memory import Memory
from yaffjit.rows.places import Places
from yaffjit.view.buffers import Data
from yaffjit.view.owner import spans_of

if TYPE_CHECKING:
    from yaffjit.plan import Plan

# A row of binary_view: its content if that has up to 12 bytes, else a prefix of it and where it lies.
_VIEW = np.dtype([("nbytes", "<i4"), ("prefix", "<i4"), ("buffer", "<i4"), ("offset", "<i4")])
_INLINE_NBYTES = 12
_INLINE_AT = 4


def of_arrow(plan: Plan, column: Any, copy: bool) -> Chunks | Places:
    """Where the messages of a column lie.

    Args:
        column: a pyarrow array, or one of any library that hands it out by the Arrow PyCapsule interface.
        copy: the buffers first.

    Raises:
        TypeError: the column isn't of bytes.
        ValueError: it's damaged.
    """
    if not isinstance(column, (pa.Array, pa.ChunkedArray)):
        column = pa.chunked_array(column) if hasattr(column, "__arrow_c_stream__") else pa.array(column)
    storage = _storage_type(column.type)
    if not _is_bytes(storage):
        raise TypeError(
            "an Arrow column of messages must be binary, large_binary, binary_view or fixed_size_binary, "
            f"not {column.type}"
        )
    arrays = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    parts = []
    row = 0
    for array in arrays:
        array.validate()
        parts.append(_part(plan, array, copy, row))
        row += len(array)
    return joined(plan, parts)


def _storage_type(typ: Any) -> Any:
    while isinstance(typ, (pa.BaseExtensionType, pa.DictionaryType)):
        typ = typ.storage_type if isinstance(typ, pa.BaseExtensionType) else typ.value_type
    return typ


def _is_bytes(typ: Any) -> bool:
    kinds = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_binary_view,
        pa.types.is_fixed_size_binary,
    )
    return any(is_kind(typ) for is_kind in kinds)


def _part(plan: Plan, array: Any, copy: bool, row: int) -> Chunks | Places:
    """Where the messages of one array lie; it begins at a row of the column."""
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    if not len(array):
        return Chunks(plan, [])
    if isinstance(array, pa.DictionaryArray):
        return _decoded(plan, array, copy, row)
    if pa.types.is_binary_view(array.type):
        return _of_views(plan, array, copy, row)
    buffers = array.buffers()
    data = _bytes(buffers[-1], copy)
    if pa.types.is_fixed_size_binary(array.type):
        offsets = array.type.byte_width * np.arange(array.offset, array.offset + len(array) + 1)
    else:
        dtype: Any = np.int64 if pa.types.is_large_binary(array.type) else np.int32
        # By count, because buffers may be padded to any size.
        offsets = np.frombuffer(buffers[1], dtype, array.offset + len(array) + 1)[array.offset :]
    offsets = checked_offsets(offsets, len(data), given=False, first_row=row)
    chunks = Chunks(plan, [Chunk(data, 0, len(data), offsets)])
    if not array.null_count:
        return chunks
    places = Places.of_chunks(chunks, 0, len(array))
    return places.masked(_valid(array))


def _decoded(plan: Plan, array: Any, copy: bool, row: int) -> Places:
    """Rows of a dictionary, which may have nulls too."""
    values = _part(plan, array.dictionary, copy, 0)
    places = Places.of_chunks(values, 0, values.rows) if isinstance(values, Chunks) else values
    valid = _valid(array.indices)
    numbers = array.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    bad = np.flatnonzero(valid & ((numbers < 0) | (numbers >= places.rows)))
    if len(bad):
        raise ValueError(
            f"row {row + bad[0]} is value {numbers[bad[0]]} of the dictionary, which has {places.rows} values"
        )
    if not places.rows:  # then all are null
        return Places(np.zeros((len(array), 2), np.int64), places.memory)
    return places.taken(np.where(valid, numbers, 0)).masked(valid)


def _of_views(plan: Plan, array: Any, copy: bool, row: int) -> Places:
    buffers = array.buffers()
    data = [_bytes(buffer, copy) for buffer in buffers[1:]]
    views = np.frombuffer(data[0], _VIEW, array.offset + len(array))[array.offset :]
    valid = _valid(array)
    spans = spans_of(data)
    nbytes, number = views["nbytes"].astype(np.int64), views["buffer"].astype(np.int64) + 1
    outside = valid & (nbytes > _INLINE_NBYTES)
    bad = np.flatnonzero(valid & (nbytes < 0) | outside & ((number < 1) | (number >= len(data))))
    if len(bad):
        raise ValueError(
            f"row {row + bad[0]} has {nbytes[bad[0]]} bytes in buffer {number[bad[0]] - 1} of {len(data) - 1}"
        )
    number = np.where(outside, number, 0)
    first_inline = 16 * array.offset + _INLINE_AT
    inline_at = np.arange(first_inline, first_inline + 16 * len(array), 16)
    offset = np.where(outside, views["offset"].astype(np.int64), inline_at)
    bad = np.flatnonzero(outside & ((offset < 0) | (offset + nbytes > spans[number, 1])))
    if len(bad):
        at, last = offset[bad[0]], offset[bad[0]] + nbytes[bad[0]]
        raise ValueError(
            f"row {row + bad[0]} is bytes {at} to {last} of a buffer of {spans[number[bad[0]], 1]} bytes"
        )
    table = np.stack([spans[number, 0] + offset, nbytes], axis=1)
    return Places(table, Memory(plan, data, spans)).masked(valid)


def _valid(array: Any) -> Any:
    return array.is_valid().to_numpy(zero_copy_only=False)


def _bytes(buffer: Any, copy: bool) -> Data:
    if buffer is None or not buffer.size:
        return b""
    # pyarrow exports signed bytes.
    return buffer.to_pybytes() if copy else memoryview(buffer).cast("B").toreadonly()
