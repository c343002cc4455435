"""Opens an index: the file is mapped, checked once, and behaves as records."""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from yaffjit.errors import IndexFileError, SchemaError, VerifyError
from yaffjit.index.blocks import compressed_batches, has_dictionaries
from yaffjit.index.files import open_regular, text_path
from yaffjit.index.metadata import (
    BATCH_KEY,
    CHECKSUM_KEY,
    EXTENSION_NAME,
    LAST_KEY,
    MESSAGE_COLUMN,
    METADATA_KEY,
    NAME_KEY,
    Description,
    checksum,
    description,
    plan_of,
)
from yaffjit.plan import MessagePlan, Plan
from yaffjit.plan.paths import parse_path
from yaffjit.progress import progress_bar
from yaffjit.rows import CHUNK_ROWS, Records
from yaffjit.rows.chunks import Chunk, Chunks
from yaffjit.schema import load

if TYPE_CHECKING:
    from yaffjit.columns import Columns

VERIFY = ("open",)
ARROW_START = b"ARROW1\0\0"
# What pyarrow raises for files that it can't make sense of.
ARROW_ERRORS = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError)


def open_index(
    path: str | os.PathLike[str],
    message_type: Any = None,
    verify: str = "open",
    progress: bool | None = None,
) -> Index:
    """Open an index file and check it: its checksums, its offsets, the structure of each message.

    Args:
        path: a file that `build_index` wrote.
        message_type: a `MessageType` or plan to read the messages by, None for the schema in the file. It
            must have the name of the type in the file.
        verify: "open": everything is checked now.
        progress: a bar; None shows it on a terminal if the work takes over a second.

    Returns:
        `Index`, which behaves as records. The file stays mapped while it or a view of it lives.

    Raises:
        IndexFileError: names the file, the batch and what is wrong with it.
        TypeError, ValueError: a path, type or option that isn't one.
    """
    if verify not in VERIFY:
        known = ", ".join(map(repr, VERIFY))
        raise ValueError(f"verify={verify!r} isn't supported; supported: {known} (or open_index_unchecked)")
    file = IndexFile(text_path(path))
    mp = file.plan(message_type)
    chunks = file.chunks(mp)
    file.verify(mp, chunks, progress)
    return Index(file, mp, chunks, checked=True)


def open_index_unchecked(path: str | os.PathLike[str], message_type: Any = None) -> Index:
    """As `open_index`, but reads the end of the file only and trusts the rest: instant whatever its size.

    Requires: `build_index` wrote the file, and it is as it was written.
    """
    file = IndexFile(text_path(path))
    mp = file.plan(message_type)
    return Index(file, mp, file.chunks(mp))


class Index(Records):
    """The messages of an index file: records, and the other columns beside them."""

    __slots__ = ("_checked", "_file", "message_type", "schema")

    message_type: Any
    schema: Any

    def __init__(self, file: IndexFile, mp: MessagePlan, chunks: Chunks, checked: bool = False) -> None:
        self._set(mp, chunks, 0, chunks.rows)
        self._file = file
        self._checked = checked

    @property
    def path(self) -> str:
        """The file."""
        return self._file.path

    @property
    def column_names(self) -> list[str]:
        """The other columns."""
        return self._file.column_names

    def column(self, name: str) -> Any:
        """Another column, as an Arrow ChunkedArray that shares the mapped file. KeyError if there is none."""
        if name not in self.column_names:
            known = f"{self.path} has no column {name!r}; its columns are {self.column_names}"
            raise KeyError(known + self._instead(name))
        return self._file.column(name)

    def _instead(self, name: Any) -> str:
        """Where to look for what isn't another column."""
        if name == MESSAGE_COLUMN:
            return ". That one is the messages' own: index[row] reads one, index.columns(...) their fields"
        try:
            parse_path(self._plan, name)
        except (SchemaError, TypeError):
            return ""
        return f". It's a field of the messages: index.columns({name!r})"

    def columns(self, *paths: str, out: Mapping[str, np.ndarray[Any, Any]] | None = None) -> Columns:
        try:
            return super().columns(*paths, out=out)
        except SchemaError as error:
            for path in paths:
                if path in self.column_names and path not in self._plan.by_name:
                    raise SchemaError(
                        f"{error}. It's another column of the index: index.column({path!r})"
                    ) from None
            raise

    columns.__doc__ = Records.columns.__doc__

    def verify(self, progress: bool | None = None) -> None:
        """Check again what `open_index` checks. Raises IndexFileError."""
        self._file.verify(self._plan, self._chunks, progress)

    def __reduce__(self) -> Any:
        """Pickles hold the path and the message type; the file is opened as it was here: checked or not."""
        return _index_again, (os.path.abspath(self.path), self.message_type, self._checked)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {self.path!r}>"


def _index_again(path: str, message_type: Any, checked: bool) -> Index:
    """The index of a pickle."""
    index = (
        open_index(path, message_type, progress=False)
        if checked
        else open_index_unchecked(path, message_type)
    )
    index.message_type = message_type
    index.schema = message_type.schema
    return index


class IndexFile:
    """A mapped index file, batch by batch.

    Raises:
        IndexFileError: it can't be opened, isn't an index, or is of a newer format version.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._map = _mapped(path)
        self._nbytes = len(self._map)
        with self._reading("it isn't a whole Arrow file"):
            self._buffer = pa.py_buffer(self._map)
            self._reader = ipc.open_file(pa.BufferReader(self._buffer))
            self.names: list[str] = self._reader.schema.names
            self.batches: int = self._reader.num_record_batches
        self._check_headers()
        self._text = self._extension_text()
        self.description: Description = description(self._text, path)
        if self.description.representation != "yaff":
            raise IndexFileError(
                f"{path}: its messages are encoded as {self.description.representation!r}, "
                "which this yaffjit can't read"
            )

    def _check_headers(self) -> None:
        """Refuses what pyarrow would unpack into memory as soon as it is asked for a batch."""
        data = memoryview(self._map)
        with self._reading("its headers are damaged"):
            for number in compressed_batches(data):
                raise IndexFileError(f"{self.path}: batch {number} is compressed, so it can't be mapped")
            if has_dictionaries(data):
                raise IndexFileError(
                    f"{self.path}: it has dictionaries, which no checksum covers: another program wrote it"
                )

    def check_size(self) -> None:
        """Reading behind the end of a file that was cut since it was mapped would end the process.

        Raises:
            IndexFileError: its size has changed.
        """
        nbytes = self._map.size()
        if nbytes != self._nbytes:
            raise IndexFileError(
                f"{self.path} has {nbytes:,} bytes, but had {self._nbytes:,} when it was opened: "
                "somebody wrote to it in place"
            )

    @property
    def column_names(self) -> list[str]:
        return [name for name in self.names if name != MESSAGE_COLUMN]

    def _extension_text(self) -> bytes:
        if self.names.count(MESSAGE_COLUMN) == 1:
            field = self._reader.schema.field(MESSAGE_COLUMN)
            metadata = field.metadata or {}
            if metadata.get(NAME_KEY) == EXTENSION_NAME.encode() and field.type == pa.large_binary():
                return bytes(metadata.get(METADATA_KEY, b""))
        raise IndexFileError(
            f"{self.path} isn't an index: it has no large_binary column {MESSAGE_COLUMN!r} "
            f"of Arrow extension type {EXTENSION_NAME}"
        )

    def plan(self, message_type: Any) -> MessagePlan:
        """The type to read the messages by: that in the file, or the given one if it has its name."""
        said = self.description
        if message_type is not None:
            mp = plan_of(message_type)
            if mp.full_name != said.message:
                raise IndexFileError(f"{self.path} holds messages of {said.message}, not of {mp.full_name}")
            return mp
        try:
            mp = Plan(load(said.descriptor_set, slice=said.slice))[said.message]
        except SchemaError as error:
            raise IndexFileError(f"{self.path}: its schema can't be loaded: {error}") from error
        if mp.fingerprint != said.fingerprint:
            raise IndexFileError(
                f"{self.path}: its schema has the fingerprint {mp.fingerprint}, "
                f"but {said.fingerprint} was written"
            )
        return mp

    def chunks(self, mp: MessagePlan) -> Chunks:
        """Where the messages lie in the file; touches nothing but the descriptions of the batches."""
        parts = self._parts(MESSAGE_COLUMN)
        chunks = [self._chunk(number, part) for number, part in enumerate(parts)]
        chunks = chunks or [Chunk(0, 0, np.zeros(1, np.int64))]
        return Chunks(mp.plan, memoryview(self._map), chunks, self.check_size)

    def _chunk(self, number: int, column: Any) -> Chunk:
        rows = len(column)
        if rows > CHUNK_ROWS or (rows < CHUNK_ROWS and number < self.batches - 1):
            raise IndexFileError(
                f"{self.path}: batch {number} of {self.batches} has {rows:,} rows, but an index has "
                f"{CHUNK_ROWS:,} in each batch but the last: another program wrote it; "
                "yj.records takes its column"
            )
        if column.null_count:
            raise IndexFileError(f"{self.path}: batch {number} has {column.null_count} null messages")
        if rows == 0:
            return Chunk(0, 0, np.zeros(1, np.int64))
        _, offsets, data = column.buffers()
        offsets_at = self._position(number, offsets, 8 * (rows + 1))
        array = np.frombuffer(self._map, np.int64, rows + 1, offsets_at)
        if not array.flags.aligned:
            array = array.copy()
        return Chunk(self._position(number, data, 0), 0 if data is None else data.size, array)

    def _position(self, number: int, buffer: Any, nbytes: int) -> int:
        """Where an Arrow buffer of at least ``nbytes`` lies in the file."""
        size = 0 if buffer is None else buffer.size
        if size < nbytes:
            raise IndexFileError(
                f"{self.path}: batch {number}: its offsets have {size} bytes, but its rows need {nbytes}"
            )
        if size == 0:
            return 0
        position = int(buffer.address - self._buffer.address)
        if not 0 <= position <= self._nbytes - size:
            raise IndexFileError(f"{self.path}: batch {number} lies outside of the file")
        return position

    def verify(self, mp: MessagePlan, chunks: Chunks, progress: bool | None) -> None:
        """Checks checksums, Arrow's own rules and the structure of each message.

        Raises:
            IndexFileError: names the batch, its rows and what is wrong.
        """
        from yaffjit.codec.verify import verify_many

        if not self.batches:
            raise IndexFileError(f"{self.path}: it has no batch, so its end is missing")
        self.check_size()
        self._verify_start()
        label = f"verify {os.path.basename(self.path)}"
        with progress_bar(label, chunks.rows, "rows", progress) as bar:
            for number in range(self.batches):
                first = number * CHUNK_ROWS
                rows = len(chunks.chunks[number].offsets) - 1
                where = (
                    f"batch {number} (rows {first:,} to {first + rows - 1:,})" if rows else f"batch {number}"
                )
                self._verify_batch(number, where)
                for _, data, offsets in chunks.stretches(first, rows):
                    try:
                        verify_many(mp, data, offsets, progress=bar.update, first_row=first)
                    except VerifyError as error:
                        raise IndexFileError(f"{self.path}: {where}: {error}") from error

    def _verify_start(self) -> None:
        """The schema stands at both ends of the file; pyarrow reads only the one at the end."""
        with self._reading("its start is damaged"):
            if bytes(self._map[: len(ARROW_START)]) != ARROW_START:
                raise IndexFileError(f"{self.path}: its start is damaged: not that of an Arrow file")
            start = ipc.read_schema(pa.BufferReader(self._buffer.slice(len(ARROW_START))))
            if not start.equals(self._reader.schema, check_metadata=True):
                raise IndexFileError(f"{self.path}: its start is damaged: not the schema that its end has")

    def _verify_batch(self, number: int, where: str) -> None:
        self.check_size()
        with self._reading(where):
            batch, metadata = self._reader.get_batch_with_custom_metadata(number)
        said = dict(metadata or {})
        last = number == self.batches - 1
        found = checksum(self._text, number, last, batch)
        written = said.get(CHECKSUM_KEY, b"none").decode("ascii", "replace")
        if found != written:
            reason = ""
            if said.get(BATCH_KEY) != str(number).encode():
                reason = f" (it was written as batch {said.get(BATCH_KEY, b'?').decode('ascii', 'replace')})"
            elif said.get(LAST_KEY) == b"0" and last:
                reason = " (it wasn't the last one when it was written)"
            raise IndexFileError(
                f"{self.path}: {where}: its checksum is {found}, but {written} was written{reason}"
            )
        with self._reading(where):
            for name, column in zip(self.names, batch.columns, strict=True):
                try:
                    column.validate(full=True)
                except pa.ArrowInvalid as error:
                    raise IndexFileError(f"{self.path}: {where}: column {name!r}: {error}") from error

    def column(self, name: str) -> Any:
        self.check_size()
        return pa.chunked_array(self._parts(name), type=self._reader.schema.field(name).type)

    def _parts(self, name: str) -> list[Any]:
        """A column, batch by batch, in place. (With included_fields, pyarrow would copy it.)"""
        column = self.names.index(name)
        parts = []
        with self._unadvised():
            for number in range(self.batches):
                with self._reading(f"batch {number}"):
                    parts.append(self._reader.get_batch(number).column(column))
        return parts

    @contextlib.contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        try:
            yield
        except IndexFileError:
            raise
        except ARROW_ERRORS as error:
            raise IndexFileError(f"{self.path}: {what}: {error}") from error

    @contextlib.contextmanager
    def _unadvised(self) -> Iterator[None]:
        """Keeps pyarrow from having the kernel load each batch that it is asked to describe."""
        if not hasattr(self._map, "madvise"):
            yield
            return
        self._map.madvise(mmap.MADV_RANDOM)
        try:
            yield
        finally:
            self._map.madvise(mmap.MADV_NORMAL)


def _mapped(path: str) -> mmap.mmap:
    with open_regular(path) as file:
        try:
            if os.fstat(file.fileno()).st_size == 0:
                raise IndexFileError(f"{path} is empty: it isn't an index")
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except IndexFileError:
            raise
        except OSError as error:
            raise IndexFileError(f"{path} can't be opened: {error.strerror or error}") from error
