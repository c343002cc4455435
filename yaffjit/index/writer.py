"""Writes an index: messages of any origin are encoded and stored, a batch of 65,536 at a time."""

from __future__ import annotations

import logging
import os
from array import array
from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import ipc

from yaffjit.build.unknown import UnknownFields
from yaffjit.codec.encode import encode, own_message
from yaffjit.errors import DecodeError, EncodeError
from yaffjit.index.atomic import replaced_file, writing
from yaffjit.index.files import text_path
from yaffjit.index.metadata import (
    BATCH_KEY,
    CHECKSUM_KEY,
    EXTENSION_NAME,
    LAST_KEY,
    MESSAGE_COLUMN,
    METADATA_KEY,
    NAME_KEY,
    checksum,
    described,
    plan_of,
)
from yaffjit.plan import MessagePlan
from yaffjit.progress import progress_bar
from yaffjit.rows import CHUNK_ROWS

logger = logging.getLogger("yaffjit")

LAYOUTS = ("flat", "sparse", "auto")
REPRESENTATIONS = ("yaff",)
PROGRESS_ROWS = 256


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """What `build_index` wrote.

    Attributes:
        path: the file.
        rows: messages in it.
        nbytes: bytes of the file.
        unknown_fields: unknown fields and extensions that weren't carried, occurrences by
            ``"full.name of message #field number"``.
        unknown_rows: messages that had any.
    """

    path: str
    rows: int
    nbytes: int
    unknown_fields: Mapping[str, int]
    unknown_rows: int


def build_index(
    path: str | os.PathLike[str],
    message_type: Any,
    messages: Iterable[Any],
    layout: str = "flat",
    representation: str = "yaff",
    columns: Mapping[str, Any] | None = None,
    progress: bool | None = None,
) -> BuiltIndex:
    """Write an index file of messages.

    The file appears under its name when it is whole and on disk; a build that is interrupted leaves the old
    one as it was. Memory: one batch of 65,536 encoded messages, about three times.

    Args:
        path: the file, by habit ``*.arrow``; one that is there is replaced, and gives it its permissions.
        message_type: a `MessageType`, or its plan.
        messages: any iterable of protobuf messages, dicts of field values, or protobuf bytes.
        layout: how messages of the dynamic layout are written: "flat", "sparse" or "auto".
        representation: how messages are encoded in the file: "yaff".
        columns: further columns by name, one value a message: lists, numpy arrays, or what Arrow, pandas and
            polars have. Dictionary-encoded (categorical) ones are stored as their values.
        progress: a bar; None shows it on a terminal if the work takes over a second.

    Returns:
        `BuiltIndex`: rows, bytes, and what the messages held that YaFF can't carry; that is logged too.

    Raises:
        EncodeError, DecodeError: a message can't be written or read; names the row.
        IndexFileError: the file can't be written.
        ValueError: an unknown layout or representation, or a column that doesn't fit the messages.
        TypeError: an argument of another type.
    """
    if _is_path(message_type) and not _is_path(path):
        example = f"build_index({message_type!r}, message_type, messages)"
        raise TypeError(f"build_index takes the path before the message type: {example}")
    path = text_path(path)
    mp = plan_of(message_type)
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be one of {', '.join(map(repr, LAYOUTS))}, not {layout!r}")
    if representation not in REPRESENTATIONS:
        known = ", ".join(map(repr, REPRESENTATIONS))
        raise ValueError(f"representation {representation!r} isn't supported; supported: {known}")
    if not isinstance(messages, Iterable) or isinstance(messages, (str, bytes, bytearray, memoryview, dict)):
        raise TypeError(f"messages must be an iterable of messages, not one {type(messages).__name__}")
    if columns is not None and not isinstance(columns, Mapping):
        raise TypeError(f'columns must map names to values, as {{"day": days}}, not {type(columns).__name__}')
    others = {name: _column(name, values) for name, values in (columns or {}).items()}
    total = len(messages) if isinstance(messages, Sized) else None
    unknown = UnknownFields(mp.plan.schema.message_class(mp.full_name))
    own = _reader(mp, unknown)
    rows = 0
    with (
        replaced_file(path) as file,
        progress_bar(f"build {os.path.basename(path)}", total, "rows", progress) as bar,
    ):
        batches = _BatchWriter(path, file, described(mp, representation), others)
        for item in messages:
            try:
                payload = encode(mp, own(item), layout)
            except EncodeError as error:
                raise EncodeError(f"row {rows}: {error}") from error
            except DecodeError as error:
                raise DecodeError(f"row {rows}: {error}") from error
            batches.add(payload)
            rows += 1
            if rows % PROGRESS_ROWS == 0:
                bar.update(PROGRESS_ROWS)
        batches.close()
        nbytes = file.tell()
    if unknown.total:
        fields = ", ".join(f"{name} ({count:,})" for name, count in unknown.sorted())
        doubt = f"every message has unknown fields: is {mp.full_name} the right type? "
        logger.warning(
            "%s: %s%s unknown fields or extensions in %s of %s messages aren't carried: %s",
            *(path, doubt if unknown.rows == rows else ""),
            *(f"{unknown.total:,}", f"{unknown.rows:,}", f"{rows:,}", fields),
        )
    return BuiltIndex(path, rows, nbytes, dict(unknown.sorted()), unknown.rows)


def _reader(mp: MessagePlan, unknown: UnknownFields) -> Callable[[Any], Any]:
    """Turns what people have into what `encode` takes, and counts what is lost."""
    from google.protobuf.message import DecodeError as ProtobufError
    from google.protobuf.message import Message

    from yaffjit.view import View

    message_class = mp.plan.schema.message_class(mp.full_name)

    def read(item: Any) -> Any:
        if isinstance(item, (bytes, bytearray, memoryview)):
            try:
                item = message_class.FromString(bytes(item))
            except ProtobufError as error:
                raise DecodeError(f"not the protobuf bytes of {mp.full_name}: {error}") from error
        elif isinstance(item, dict):
            return item
        elif isinstance(item, View):
            item = View.to_message(item)
        if isinstance(item, Message):
            if type(item) is not message_class:
                item = own_message(mp, message_class, item)
            unknown.count(item)
        return item

    return read


class _BatchWriter:
    """Gathers encoded messages and writes them with their checksum whenever a batch is full."""

    def __init__(self, path: str, file: Any, text: str, others: Mapping[str, Any]) -> None:
        self._path = path
        self._text = text.encode()
        self._others = others
        message = pa.field(
            MESSAGE_COLUMN,
            pa.large_binary(),
            nullable=False,
            metadata={NAME_KEY: EXTENSION_NAME, METADATA_KEY: text},
        )
        self._schema = pa.schema([message, *(pa.field(name, a.type) for name, a in others.items())])
        with writing(path):
            self._writer = ipc.new_file(file, self._schema)
        self._number = 0
        self._clear()

    def _clear(self) -> None:
        self._data = bytearray()
        self._offsets = array("q", [0])

    def add(self, payload: bytes) -> None:
        # Written only once a further message comes, because the last batch is marked as the last.
        if len(self._offsets) > CHUNK_ROWS:
            self._write(last=False)
        self._data += payload
        self._offsets.append(len(self._data))

    def close(self) -> None:
        rows = self._number * CHUNK_ROWS + len(self._offsets) - 1
        for name, column in self._others.items():
            if len(column) != rows:
                raise ValueError(f"column {name!r} has {len(column)} values for {rows} messages")
        self._write(last=True)
        with writing(self._path):
            self._writer.close()

    def _write(self, last: bool) -> None:
        rows = len(self._offsets) - 1
        start = self._number * CHUNK_ROWS
        arrays = [
            pa.Array.from_buffers(
                pa.large_binary(), rows, [None, pa.py_buffer(self._offsets), pa.py_buffer(self._data)]
            )
        ]
        for name, column in self._others.items():
            part = column.slice(start, rows).combine_chunks()
            if len(part) != rows:
                raise ValueError(f"column {name!r} has {len(column)} values, but there are more messages")
            arrays.append(part)
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        # As a reader will see it: slices and bitmaps are normalised on the way through Arrow's format.
        batch = ipc.read_record_batch(batch.serialize(), self._schema)
        metadata = {
            BATCH_KEY: str(self._number),
            LAST_KEY: str(int(last)),
            CHECKSUM_KEY: checksum(self._text, self._number, last, batch),
        }
        with writing(self._path):
            self._writer.write_batch(batch, custom_metadata=metadata)
        self._number += 1
        self._clear()


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, bytes, os.PathLike))


def _arrow(values: Any) -> Any:
    """Values of any library as an Arrow array, shared where that library can."""
    if hasattr(values, "__arrow_c_stream__"):  # polars, newer pandas
        return pa.chunked_array(values)
    if hasattr(values, "__arrow_c_array__") or hasattr(values, "__array__"):
        return pa.array(values)
    return pa.array(list(values))


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _column(name: Any, values: Any) -> Any:
    """Further values as an Arrow ChunkedArray whose content lies in the batches themselves."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a further column must be text, not {type(name).__name__}")
    if _has_surrogates(name):
        raise ValueError(f"a further column can't be called {name!r}: half of a surrogate pair isn't text")
    if isinstance(values, (str, bytes)):
        raise TypeError(f"column {name!r} must hold a value a message, not be one {type(values).__name__}")
    if name == MESSAGE_COLUMN:
        raise ValueError(f"a further column can't be called {name!r}: the messages' own column is")
    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        try:
            values = _arrow(values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"column {name!r} can't be stored: {error}") from error
    if isinstance(values, pa.Array):
        values = pa.chunked_array([values])
    if pa.types.is_dictionary(values.type):
        # Dictionaries lie outside of the batches, where no checksum would cover them.
        values = values.cast(values.type.value_type)
    if "dictionary<" in str(values.type):
        raise ValueError(f"column {name!r} can't be stored: {values.type} has a dictionary inside")
    return values
