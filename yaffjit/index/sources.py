"""What messages come in, as units of work: stretches of protobuf bytes, or a few Python objects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from yaffjit.build.payloads import Payloads
from yaffjit.plan import MessagePlan
from yaffjit.rows import ProtobufPayloads, Records
from yaffjit.rows.chunks import checked_offsets
from yaffjit.rows.payloads import readers_hint

Offsets = NDArray[np.int64]
Valid = NDArray[np.bool_]

ITEMS = 256  # objects of a unit
MOST_ROWS = 1 << 16  # of a unit of bytes
CAST_ROWS = 1 << 10  # of an Arrow column that are copied at once
# A unit to begin with, before anybody knows how large its messages become.
FIRST_NBYTES = 1 << 16
FIRST_ROWS = 1 << 10
GROWTH = 8  # how many times as large as those before a unit may be
MEMORY_OF_SIZES = 0.9  # what is left of an estimate after a unit that says less


class Unit(NamedTuple):
    """Some messages that follow each other.

    Attributes:
        number: of the first one in the input.
        rows: how many.
        data, offsets: protobuf message i is ``data[offsets[i]:offsets[i + 1]]``.
        valid: which rows have a message; None if all have.
        where: how errors name message i of the unit; None if only by its number.
        position: of the unit's end in the input file, in bytes; None if nobody knows.
        items: Python objects, in place of bytes.
    """

    number: int
    rows: int
    data: Any = b""
    offsets: Offsets = np.zeros(1, np.int64)
    valid: Valid | None = None
    where: Callable[[int], str] | None = None
    position: int | None = None
    items: list[Any] | None = None


class Sizes:
    """How large the next unit may be, by what became of those before.

    Small messages may become large ones under a layout with many fields, so bytes alone don't bound a unit.

    Args:
        nbytes: most bytes of a unit's messages, unless it has one message only.
        made_nbytes: about what it may become.

    Attributes:
        limit: a further limit of a unit's bytes.
    """

    def __init__(self, nbytes: int, made_nbytes: int) -> None:
        self.nbytes = self.limit = nbytes
        self._made_nbytes = made_nbytes
        self._growth = 1
        self._a_byte = 0.0  # bytes that are made of one
        self._a_row = 0.0  # and of one message

    def learn(self, rows: int, nbytes: int, made_nbytes: int) -> None:
        """What became of a unit."""
        self._a_byte = max(made_nbytes / max(nbytes, 1), MEMORY_OF_SIZES * self._a_byte)
        self._a_row = max(made_nbytes / max(rows, 1), MEMORY_OF_SIZES * self._a_row)

    def grow(self) -> None:
        """A unit was handed out."""
        self._growth = min(self._growth * GROWTH, 1 << 30)

    @property
    def most_nbytes(self) -> int:
        """Of the next unit."""
        by_made = self._made_nbytes / max(self._a_byte, 1e-9)
        return max(1, int(min(self.nbytes, self.limit, FIRST_NBYTES * self._growth, by_made)))

    @property
    def most_rows(self) -> int:
        by_made = self._made_nbytes / max(self._a_row, 1e-9)
        return max(1, int(min(MOST_ROWS, FIRST_ROWS * self._growth, by_made)))

    def stretches(self, offsets: Offsets) -> Iterator[tuple[int, int]]:
        """Rows, from and to, of the units of a stretch."""
        rows = len(offsets) - 1
        row = 0
        while row < rows:
            end = int(np.searchsorted(offsets, offsets[row] + self.most_nbytes, "right")) - 1
            end = min(max(end, row + 1), row + self.most_rows, rows)
            self.grow()
            yield row, end
            row = end


class Source(ABC):
    """Messages of some origin, read once.

    Attributes:
        rows: how many there are, None if nobody knows.
        nbytes: how many bytes the file has that `Unit.position` counts in, None if nobody knows.
        nulls: whether some may be null.
    """

    rows: int | None = None
    nbytes: int | None = None
    nulls = False

    @abstractmethod
    def units(self, sizes: Sizes) -> Iterator[Unit]:
        """All messages in order. What reading raises comes after the units before it."""


def source_of(messages: Any, mp: MessagePlan) -> Source:
    """What `build_index` was given, to be stored as messages of a type.

    Raises:
        TypeError: it isn't an iterable of messages, or a column that isn't of bytes.
        ValueError: offsets don't fit their data.
    """
    if isinstance(messages, Payloads):
        return _OfReader(messages)
    if isinstance(messages, Records):
        return _OfRecords(messages, mp)
    if isinstance(messages, ProtobufPayloads):
        return _OfArrays(messages.data, messages.offsets, messages.valid)
    if isinstance(messages, (pa.Array, pa.ChunkedArray)) or any(
        hasattr(messages, name) for name in ("__arrow_c_stream__", "__arrow_c_array__")
    ):
        return _OfArrow(messages)
    if _is_data_and_offsets(messages):
        data = np.frombuffer(messages[0], np.uint8)
        return _OfArrays(data, checked_offsets(messages[1], len(data)), None)
    if (
        not isinstance(messages, Iterable)
        or isinstance(messages, (str, bytes, bytearray, memoryview, dict))
        or hasattr(messages, "read")  # an open file gives its lines
    ):
        name = type(messages).__name__
        raise TypeError(f"messages must be an iterable of messages, not one {name}{readers_hint(messages)}")
    return _OfIterable(messages)


def _is_data_and_offsets(messages: Any) -> bool:
    """A pair of bytes and whole numbers, and not of two messages."""
    if not isinstance(messages, tuple) or len(messages) != 2:
        return False
    data, offsets = messages
    if isinstance(offsets, np.ndarray):
        return offsets.dtype.kind in "iu"
    return not isinstance(data, dict) and isinstance(offsets, (list, tuple, range))


class _OfReader(Source):
    """Payloads of a file."""

    def __init__(self, payloads: Payloads) -> None:
        self._payloads = payloads
        self.nbytes = payloads.nbytes

    def units(self, sizes: Sizes) -> Iterator[Unit]:
        number = 0
        for batch in self._payloads.batches(sizes.nbytes):
            data, offsets, _ = batch
            for first, last in sizes.stretches(offsets):

                def where(i: int, first: int = first, batch: Any = batch) -> str:
                    name: str = batch.where(first + i)
                    return name

                position = None if self.nbytes is None else int(batch.positions[last - 1])
                rows = offsets[first : last + 1]
                yield Unit(number, last - first, data, rows, None, where, position)
                number += last - first


class _OfArrays(Source):
    """Bytes and offsets."""

    def __init__(self, data: Any, offsets: Offsets, valid: Valid | None) -> None:
        self.rows = len(offsets) - 1
        self.nulls = valid is not None
        self._parts = [(data, offsets, valid)]

    def units(self, sizes: Sizes) -> Iterator[Unit]:
        number = 0
        for data, offsets, valid in self._parts:
            for first, last in sizes.stretches(offsets):
                rows = offsets[first : last + 1]
                yield Unit(number, last - first, data, rows, None if valid is None else valid[first:last])
                number += last - first


class _OfArrow(Source):
    """A binary column, whose nulls are null rows."""

    def __init__(self, column: Any) -> None:
        if not isinstance(column, (pa.Array, pa.ChunkedArray)):
            column = pa.chunked_array(column) if hasattr(column, "__arrow_c_stream__") else pa.array(column)
        while isinstance(column.type, pa.BaseExtensionType):
            column = pa.chunked_array([chunk.storage for chunk in _chunks(column)], column.type.storage_type)
        typ = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        kinds = (
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_binary_view,
            pa.types.is_fixed_size_binary,
        )
        if not any(is_kind(typ) for is_kind in kinds):
            raise TypeError(
                "an Arrow column of messages must be binary, large_binary, binary_view or "
                f"fixed_size_binary, not {column.type}"
            )
        self.rows = len(column)
        self.nulls = column.null_count > 0
        self._chunks = _chunks(column)

    def units(self, sizes: Sizes) -> Iterator[Unit]:
        number = 0
        for chunk in self._chunks:
            chunk.validate(full=True)
            in_place = pa.types.is_binary(chunk.type) or pa.types.is_large_binary(chunk.type)
            step = len(chunk) if in_place and not chunk.null_count else CAST_ROWS
            for begin in range(0, len(chunk), max(step, 1)):
                for unit in self._of_array(chunk.slice(begin, step), sizes):
                    yield unit._replace(number=number)
                    number += unit.rows

    def _of_array(self, array: Any, sizes: Sizes) -> Iterator[Unit]:
        valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
        if pa.types.is_dictionary(array.type):
            array = array.cast(array.type.value_type)
        array = array.cast(pa.large_binary())
        if valid is not None:  # there may be any bytes
            array = array.fill_null(b"")
        _, offsets, data = array.buffers()
        rows = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
        yield from _OfArrays(b"" if data is None else data, rows, valid).units(sizes)


def _chunks(column: Any) -> list[Any]:
    return list(column.chunks) if isinstance(column, pa.ChunkedArray) else [column]


class _OfIterable(Source):
    """Bytes, messages, dicts and views, mixed as they come."""

    def __init__(self, messages: Iterable[Any]) -> None:
        self.rows = len(messages) if isinstance(messages, Sized) else None
        self._messages = iter(messages)

    def units(self, sizes: Sizes) -> Iterator[Unit]:
        number = nbytes = 0
        payloads: list[bytes] = []
        items: list[Any] = []
        error: Exception | None = None
        while error is None:
            try:
                item = next(self._messages)
            except StopIteration:
                break
            except Exception as raised:
                error = raised
                break
            is_payload = isinstance(item, (bytes, bytearray, memoryview))
            if is_payload and items:
                yield Unit(number, len(items), items=items)
                number += len(items)
                items = []
            full = nbytes >= sizes.most_nbytes or len(payloads) >= sizes.most_rows
            if payloads and (full or not is_payload):
                yield _joined(number, payloads)
                sizes.grow()
                number += len(payloads)
                payloads, nbytes = [], 0
            if is_payload:
                payloads.append(bytes(item))
                nbytes += len(payloads[-1])
                continue
            items.append(item)
            if len(items) == ITEMS:
                yield Unit(number, len(items), items=items)
                number += len(items)
                items = []
        if payloads:
            yield _joined(number, payloads)
        if items:
            yield Unit(number, len(items), items=items)
        if error is not None:
            try:
                raise error
            finally:
                error = None  # a cycle, by its traceback


class _OfRecords(Source):
    """Records: protobuf bytes of the very type as they are, else views."""

    def __init__(self, records: Records, mp: MessagePlan) -> None:
        self.rows = len(records)
        self._valid = records.valid
        self.nulls = not self._valid.all()
        self._records = records
        self._as_bytes = records.representation == "protobuf" and records.plan.fingerprint == mp.fingerprint

    def units(self, sizes: Sizes) -> Iterator[Unit]:
        for number in range(0, len(self._records), ITEMS):
            part = self._records[number : number + ITEMS]
            valid = self._valid[number : number + ITEMS] if self.nulls else None
            if self._as_bytes:
                payloads = [part.payload(row) or b"" for row in range(len(part))]
                yield _joined(number, payloads, valid)
            else:
                yield Unit(number, len(part), valid=valid, items=list(part))


def _joined(number: int, payloads: list[bytes], valid: Valid | None = None) -> Unit:
    offsets = np.zeros(len(payloads) + 1, np.int64)
    np.cumsum(list(map(len, payloads)), out=offsets[1:])
    return Unit(number, len(payloads), b"".join(payloads), offsets, valid)
