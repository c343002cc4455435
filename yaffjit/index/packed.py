"""Compressed indexes, which are for keeping: read a batch at a time, or unpacked to be read in place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Generic

import pyarrow as pa
from pyarrow import ipc

from yaffjit.errors import IndexFileError, VerifyError
from yaffjit.index.atomic import replaced_file, writing
from yaffjit.index.blocks import unpacked_sizes
from yaffjit.index.directory import DirectoryWriter
from yaffjit.index.files import text_path
from yaffjit.index.flush import Flusher
from yaffjit.index.manifest import Manifest
from yaffjit.index.metadata import BATCH_NBYTES, CHECKSUM_KEY, MESSAGE_COLUMN, checksum
from yaffjit.index.opened import OpenedFiles, entry_of, open_files
from yaffjit.index.part import Part
from yaffjit.plan import MessagePlan
from yaffjit.pool import run_stretches
from yaffjit.progress import progress_bar
from yaffjit.rows import Records, records
from yaffjit.typed import AnyView

MOST_MESSAGE_NBYTES = 1 << 31
# What a batch may become: its messages, of which the last may be of any size, and the other columns.
MOST_NBYTES = 1 << 32
PADDING = 64  # that Arrow may add to a buffer


class PackedIndex(Generic[AnyView]):
    """An index that needn't be read in place: each batch is unpacked, checked and verified when it's read.

    ``len(packed)`` is its rows; a loop over it gives views, of a batch at a time in memory.
    """

    message_type: Any
    schema: Any

    def __init__(self, files: OpenedFiles) -> None:
        self._files = files
        files.check_starts()

    @property
    def path(self) -> str:
        """The file or the directory."""
        return self._files.path

    @property
    def plan(self) -> MessagePlan:
        """The type of the messages, laid out."""
        return self._files.mp

    @property
    def compression(self) -> str:
        """How it is compressed: "lz4", "zstd", or "" if it can be read in place."""
        return next((part.compression for part in self._files.parts if part.compression), "")

    def __len__(self) -> int:
        return self._files.rows

    def batches(self) -> Iterator[Records[AnyView]]:
        """The messages in order, up to 65,536 at a time, as records in memory of their own.

        Raises:
            IndexFileError: names the file, the batch, its rows and what is wrong.
        """
        for part, number, first in self._files.batches:
            if part.batches[number].rows:
                yield _unpacked(part, number, first, self.plan)[0]

    def __iter__(self) -> Iterator[AnyView]:
        for batch in self.batches():
            yield from batch

    def verify(self, progress: bool | None = None) -> None:
        """Check all of it: checksums, Arrow's own rules, the structure of each message. IndexFileError."""
        name = os.path.basename(os.path.normpath(self.path))
        with progress_bar(f"verify {name}", len(self), "rows", progress) as bar:

            def work(begin: int, end: int) -> None:
                for part, number, first in self._files.batches[begin:end]:
                    _unpacked(part, number, first, self.plan)
                    bar.update(part.batches[number].rows)

            run_stretches(work, len(self._files.batches), 1)

    def __repr__(self) -> str:
        how = f"compressed ({self.compression}), not zero-copy" if self.compression else "not compressed"
        return f"<{type(self).__name__} of {self.plan.full_name}: {len(self):,} rows, {how}, {self.path!r}>"


def open_packed(path: str | os.PathLike[str], message_type: Any = None) -> PackedIndex:
    """Open an index that `build_index` wrote with ``compression``; nothing of its messages is read yet.

    Args:
        path, message_type: as `open_index` takes them.

    Raises:
        IndexFileError: it isn't an index.
    """
    return PackedIndex(open_files(text_path(path), message_type))


def unpack_index(
    path: str | os.PathLike[str], output: str | os.PathLike[str], progress: bool | None = None
) -> None:
    """Write a compressed index as one that's read in place: the bytes that `build_index` would have written.

    Args:
        path: a file or a directory.
        output: what is written, of the same kind; what is there is replaced, as by `build_index`.
        progress: a bar; None shows it on a terminal if the work takes over a second.

    Raises:
        IndexFileError: it isn't an index, is damaged, or can't be written.
    """
    path, output = text_path(path), text_path(output)
    files = open_files(path)
    PackedIndex(files)
    with progress_bar(
        f"unpack {os.path.basename(os.path.normpath(path))}", files.rows, "rows", progress
    ) as bar:
        if not os.path.isdir(path):
            _write_unpacked(files, files.parts[0], output, bar)
            return
        with DirectoryWriter(output, create=True) as directory:
            entries = []
            for part in files.parts:
                name = directory.new_part()
                _write_unpacked(files, part, os.path.join(output, name), bar)
                entries.append(entry_of(Part(os.path.join(output, name)), name))
            old = directory.manifest
            generation = 1 if old is None else old.generation + 1
            mp = files.mp
            directory.commit(Manifest(mp.full_name, mp.fingerprint, generation, tuple(entries)))


def _write_unpacked(files: OpenedFiles, part: Part, output: str, bar: Any) -> None:
    with replaced_file(output) as file, Flusher(file.fileno()) as flusher, writing(output):
        writer = ipc.new_file(file, part.schema)
        for of, number, first in files.batches:
            if of is part:
                _, batch, metadata = _unpacked(part, number, first, files.mp)
                writer.write_batch(batch, custom_metadata=metadata)
                flusher.wrote(file.tell())
                bar.update(batch.num_rows)
        writer.close()


def _unpacked(part: Part, number: int, first: int, mp: MessagePlan) -> tuple[Records, Any, Any]:
    """A batch's messages, once they are checked, the batch, and its metadata."""
    part.check_size()
    rows = part.batches[number].rows
    where = f"batch {number} (rows {first:,} to {first + rows - 1:,})" if rows else f"batch {number}"
    if part.compression:
        with part.reading(where):
            _check_sizes(part, number)
    batch, metadata = part.batch(number, where)
    written = dict(metadata or {}).get(CHECKSUM_KEY, b"none").decode("ascii", "replace")
    found = checksum(part.text, number, number == len(part.batches) - 1, batch)
    if batch.num_rows != rows:
        raise IndexFileError(f"{part.path}: {where}: {batch.num_rows:,} rows were read")
    if found != written:
        raise IndexFileError(f"{part.path}: {where}: its checksum is {found}, but {written} was written")
    for name, column in zip(part.names, batch.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise IndexFileError(f"{part.path}: {where}: column {name!r}: {error}") from error
    try:
        column = batch.column(part.names.index(MESSAGE_COLUMN))
        return records(mp, column, part.description.representation, verify=True), batch, metadata
    except VerifyError as error:
        raise IndexFileError(f"{part.path}: {where}: {error}") from error


def _check_sizes(part: Part, number: int) -> None:
    """Raises ValueError where a batch says that it becomes what it can't: Arrow would believe it."""
    header = part.batches[number]
    sizes = unpacked_sizes(part.data, header)
    limits = ((header.rows + 7) // 8, 8 * (header.rows + 1), BATCH_NBYTES + MOST_MESSAGE_NBYTES)
    what = ("bitmap of nulls", "offsets", "messages")
    for name, size, limit in zip(what, sizes, limits, strict=False):
        if size > limit + PADDING:
            raise ValueError(f"its {name} say that they become {size} bytes, but {limit} are enough")
    if sum(sizes) > MOST_NBYTES:
        raise ValueError(f"it says that it becomes {sum(sizes)} bytes, at most {MOST_NBYTES} are read")
