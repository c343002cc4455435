"""One Arrow file of messages, mapped: a whole index, or a part of one in a directory.

Opening reads its end and the headers of its batches; what else is read, the caller asks for.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray
from pyarrow import ipc

from yaffjit.errors import IndexFileError, SchemaError
from yaffjit.forks import renew_in_forks
from yaffjit.index.blocks import (
    BatchHeader,
    batch_headers,
    footer_position,
    has_dictionaries,
    header_spans,
)
from yaffjit.index.files import open_regular
from yaffjit.index.metadata import (
    BATCH_NBYTES,
    BATCH_ROWS,
    EXTENSION_NAME,
    MESSAGE_COLUMN,
    METADATA_KEY,
    NAME_KEY,
    Description,
    description,
    plan_of,
)
from yaffjit.index.origin import MappedFile, Origin
from yaffjit.plan import MessagePlan, Plan
from yaffjit.rows.memory import Again
from yaffjit.rows.readers import REPRESENTATIONS
from yaffjit.schema import load

ARROW_START = b"ARROW1\0\0"
# Held while pyarrow describes a batch: its readers don't promise to work for several threads at once.
_describing = threading.Lock()
renew_in_forks(sys.modules[__name__], "_describing", threading.Lock)
# What pyarrow raises for files that it can't make sense of.
ARROW_ERRORS = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError)


class Part:
    """A mapped Arrow file of messages.

    Args:
        path: the file.
        nbytes: what it must have, by a manifest; None if nobody says.
        link: whether a symbolic link is followed.
        file: which is mapped instead of that which has the path now, and closed.

    Attributes:
        rows: messages in it.
        data: all bytes of the file.
        nbytes: how many it had when it was opened.
        schema: the Arrow schema of its columns.
        batches: its batches' headers.
        compression: of its batches, "lz4" or "zstd"; "" if they can be read in place.
        text: what the file says about its messages, as it stands there.
        description: the same, read.

    Raises:
        IndexFileError: it can't be opened, isn't an index, or is of a newer format version.
    """

    def __init__(
        self, path: str, nbytes: int | None = None, link: bool = True, file: BinaryIO | None = None
    ) -> None:
        self.path = path
        self._map = _mapped(path, nbytes, open_regular(path, link) if file is None else file)
        self.data = memoryview(self._map)
        self.nbytes = len(self._map)
        with self.unadvised():
            with self.reading("it isn't a whole Arrow file"):
                self._buffer = pa.py_buffer(self._map)
                self.reader = ipc.open_file(pa.BufferReader(self._buffer))
                self.schema = self.reader.schema
                self.names: list[str] = self.schema.names
            self.text = self._extension_text()
            self.batches = self._headers()
        self.rows = sum(header.rows for header in self.batches)
        self.compression = next((header.compression for header in self.batches if header.compression), "")
        self.description: Description = description(self.text, path)
        if self.description.representation not in REPRESENTATIONS:
            raise IndexFileError(
                f"{path}: its messages are encoded as {self.description.representation!r}, "
                "which this yaffjit can't read"
            )

    def check_size(self) -> None:
        """Reading behind the end of a file that was cut since it was mapped would end the process.

        Raises:
            IndexFileError: its size has changed.
        """
        nbytes = self._map.size()
        if nbytes != self.nbytes:
            raise IndexFileError(
                f"{self.path} has {nbytes:,} bytes, but had {self.nbytes:,} when it was opened: "
                "somebody wrote to it in place"
            )

    def _extension_text(self) -> bytes:
        if self.names.count(MESSAGE_COLUMN) == 1:
            field = self.schema.field(MESSAGE_COLUMN)
            metadata = field.metadata or {}
            if metadata.get(NAME_KEY) == EXTENSION_NAME.encode() and field.type == pa.large_binary():
                return bytes(metadata.get(METADATA_KEY, b""))
        raise IndexFileError(
            f"{self.path} isn't an index: it has no large_binary column {MESSAGE_COLUMN!r} "
            f"of Arrow extension type {EXTENSION_NAME}"
        )

    def _headers(self) -> tuple[BatchHeader, ...]:
        """What the batches say, once it's sure that they can be read in place."""
        data = self.data
        with self.reading("its headers are damaged"):
            self._load(header_spans(data))
            headers = tuple(batch_headers(data))
            if has_dictionaries(data):
                raise IndexFileError(
                    f"{self.path}: it has dictionaries, which no checksum covers: another program wrote it"
                )
        if self.names[0] != MESSAGE_COLUMN:
            raise IndexFileError(
                f"{self.path}: its first column is {self.names[0]!r}, but an index begins with "
                f"{MESSAGE_COLUMN!r}: another program wrote it; yj.records takes its column"
            )
        for number, header in enumerate(headers):
            self._check_header(number, len(headers), header)
        return headers

    def _check_header(self, number: int, count: int, header: BatchHeader) -> None:
        rows = header.rows
        validity, offsets, data = header.buffers if len(header.buffers) == 3 else ((0, 0), (0, 0), (0, 0))
        is_full = rows == BATCH_ROWS or data[1] >= BATCH_NBYTES or header.compression
        if not 0 <= rows <= BATCH_ROWS or (not is_full and number < count - 1):
            raise IndexFileError(
                f"{self.path}: batch {number} of {count} has {rows:,} rows, but an index has "
                f"{BATCH_ROWS:,} in each batch but the last: another program wrote it; "
                "yj.records takes its column"
            )
        if not rows or header.compression:
            return
        if header.nulls and validity[1] < (rows + 7) // 8:
            raise IndexFileError(
                f"{self.path}: batch {number}: its bitmap of nulls has {validity[1]} bytes, "
                f"but its rows need {(rows + 7) // 8}"
            )
        if offsets[1] < 8 * (rows + 1):
            raise IndexFileError(
                f"{self.path}: batch {number}: its offsets have {offsets[1]} bytes, "
                f"but its rows need {8 * (rows + 1)}"
            )
        for position, nbytes in (validity, offsets, data):
            if not (0 <= position <= header.body_nbytes and 0 <= nbytes <= header.body_nbytes - position):
                raise IndexFileError(f"{self.path}: batch {number} lies outside of the file")

    def headers_checksum(self) -> str:
        """XXH3-64 of what opening reads, 16 hex digits: the headers of the batches in order, and the footer.

        The header of each batch holds the checksum of its content, so this one stands for the whole file.
        """
        data = self.data
        digest = xxhash.xxh3_64()
        with self.unadvised():
            for header in self.batches:
                digest.update(data[header.at : header.body])
            digest.update(data[footer_position(data) :])
        return str(digest.hexdigest())

    def plan(self, message_type: Any = None) -> MessagePlan:
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

    def messages(self, number: int) -> tuple[int, int, NDArray[np.int64]]:
        """Where the messages of a batch lie: position and bytes of their data, and offsets in it."""
        header = self.batches[number]
        if not header.rows:
            return 0, 0, np.zeros(1, np.int64)
        _, (offsets, _), (data, nbytes) = header.buffers
        array = np.frombuffer(self._map, np.int64, header.rows + 1, header.body + offsets)
        if not array.flags.aligned:
            array = array.copy()
        return header.body + data, nbytes, array

    def validity(self, number: int) -> NDArray[np.uint8] | None:
        """A bit a row of a batch, set where it isn't null; None where none is null."""
        header = self.batches[number]
        if not header.rows or not header.nulls:
            return None
        return np.frombuffer(self._map, np.uint8, (header.rows + 7) // 8, header.body + header.buffers[0][0])

    def belongs_to(self, again: Again, message: str, first_row: int) -> None:
        """Have views of its messages pickle as rows of an index."""
        self._map.origin = Origin(again, message, self.batches, first_row)

    def address(self) -> int:
        """Where the file lies in memory."""
        return int(self._buffer.address)

    def check_start(self) -> None:
        """The schema stands at both ends of the file; pyarrow reads only the one at the end."""
        self.check_size()
        with self.reading("its start is damaged"):
            if bytes(self._map[: len(ARROW_START)]) != ARROW_START:
                raise IndexFileError(f"{self.path}: its start is damaged: not that of an Arrow file")
            start = ipc.read_schema(pa.BufferReader(self._buffer.slice(len(ARROW_START))))
            if not start.equals(self.schema, check_metadata=True):
                raise IndexFileError(f"{self.path}: its start is damaged: not the schema that its end has")

    def batch(self, number: int, where: str) -> tuple[Any, Any]:
        """A batch and its metadata by pyarrow, which has the kernel load it; ``where`` for errors."""
        with self.reading(where), _describing:
            batch, metadata = self.reader.get_batch_with_custom_metadata(number)
        return batch, metadata

    def column(self, name: str) -> list[Any]:
        """A column, batch by batch, in place. (With included_fields, pyarrow would copy it.)"""
        self.check_size()
        column = self.names.index(name)
        with self.unadvised():
            return [
                self.batch(number, f"batch {number}")[0].column(column) for number in range(len(self.batches))
            ]

    def _load(self, spans: list[tuple[int, int]]) -> None:
        """Have the kernel read stretches of the file, all at the same time."""
        if not hasattr(self._map, "madvise"):
            return
        for at, nbytes in spans:
            start = at & -mmap.PAGESIZE
            if 0 <= start < at + nbytes <= self.nbytes:
                self._map.madvise(mmap.MADV_WILLNEED, start, at + nbytes - start)

    @contextlib.contextmanager
    def reading(self, what: str) -> Iterator[None]:
        """Turns what pyarrow raises into an IndexFileError that names the file."""
        try:
            yield
        except IndexFileError:
            raise
        except ARROW_ERRORS as error:
            raise IndexFileError(f"{self.path}: {what}: {error}") from error

    @contextlib.contextmanager
    def unadvised(self) -> Iterator[None]:
        """`unadvised` of this file."""
        with unadvised(self._map):
            yield


@contextlib.contextmanager
def unadvised(mapped: mmap.mmap) -> Iterator[None]:
    """Keeps the kernel and pyarrow from loading what lies around that which is read of a mapped file."""
    if not hasattr(mapped, "madvise"):
        yield
        return
    mapped.madvise(mmap.MADV_RANDOM)
    try:
        yield
    finally:
        mapped.madvise(mmap.MADV_NORMAL)


def _mapped(path: str, expected: int | None, opened: BinaryIO) -> MappedFile:
    with opened as file:
        try:
            nbytes = os.fstat(file.fileno()).st_size
            if expected is not None and nbytes != expected:
                raise IndexFileError(f"{path} has {nbytes:,} bytes, but its manifest says {expected:,}")
            if nbytes == 0:
                raise IndexFileError(f"{path} is empty: it isn't an index")
            return MappedFile(file.fileno(), 0, access=mmap.ACCESS_READ)
        except IndexFileError:
            raise
        except OSError as error:
            raise IndexFileError(f"{path} can't be opened: {error.strerror or error}") from error
