"""The files of an opened index: one, or the parts that a manifest names; and which batches are checked."""

from __future__ import annotations

import bisect
import itertools
import os
import shlex
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from yaffjit.errors import IndexFileError
from yaffjit.forks import renew_in_forks
from yaffjit.index.checks import check_batch
from yaffjit.index.keys import Keys, open_beside, open_listed
from yaffjit.index.manifest import Manifest, PartEntry, parts_checksum, read_manifest
from yaffjit.index.metadata import MESSAGE_COLUMN, described_columns
from yaffjit.index.part import Part
from yaffjit.plan import MessagePlan
from yaffjit.pool import run_stretches
from yaffjit.progress import progress_bar
from yaffjit.rows.chunks import Chunk

# How many parts, and their `parts_checksum`.
Handle = tuple[int, str]

# How often a directory is looked at again whose parts were replaced after its manifest was read.
ATTEMPTS = 20


class OpenedFiles:
    """Mapped files of one index, in the order of their rows.

    Attributes:
        path: the file or the directory.
        mp: the type to read the messages by.
        parts: its files.
        entries: what a manifest says, or would say, about each.
        first_rows: the row of each part's first message.
        rows: messages in all.
        generation: of the manifest; 0 for a single file.
        keys: by which rows are looked up, or why they can't be; None where there are none.
        all_checked: whether each batch was checked once.
    """

    def __init__(
        self,
        path: str,
        mp: MessagePlan,
        parts: Sequence[Part],
        entries: Sequence[PartEntry],
        generation: int,
    ) -> None:
        self.path = path
        self.mp = mp
        self.parts = tuple(parts)
        self.entries = tuple(entries)
        self.generation = generation
        self.keys: Keys | IndexFileError | None = None
        *self.first_rows, self.rows = itertools.accumulate((part.rows for part in parts), initial=0)
        self._batches: list[tuple[Part, int, int]] = []
        for part, first in zip(self.parts, self.first_rows, strict=True):
            for number, header in enumerate(part.batches):
                self._batches.append((part, number, first))
                first += header.rows
        self._starts = [first for _, _, first in self._batches]
        self._checked = bytearray(len(self._batches))
        self.all_checked = False
        self._locks: dict[int, threading.Lock] = {}  # one a batch, made when it's asked for
        renew_in_forks(self, "_locks", dict)

    @property
    def representation(self) -> str:
        """How the messages are encoded."""
        return self.parts[0].description.representation

    @property
    def batches(self) -> list[tuple[Part, int, int]]:
        """All batches in order: the part, the number there, the first row."""
        return self._batches

    @property
    def handle(self) -> Handle:
        """By which another process opens the same parts under the path, though more were added since."""
        return len(self.entries), parts_checksum(self.entries)

    def check_in_place(self) -> None:
        """Raises IndexFileError, with what to do, if a file is compressed."""
        for part in self.parts:
            if part.compression:
                raise IndexFileError(
                    f"{part.path} is compressed ({part.compression}), so it can't be read in place: "
                    f"yj.open_packed({self.path!r}).batches() unpacks a batch at a time, and "
                    f"`yaffjit unpack {shlex.quote(self.path)} -o OUTPUT` or yj.unpack_index the whole"
                )

    def check_size(self) -> None:
        """Raises IndexFileError if a file was cut or grew since it was mapped."""
        for part in self.parts:
            part.check_size()

    def chunks(self) -> list[Chunk]:
        """Where the messages lie, a chunk a batch; touches nothing but the headers of the batches."""
        chunks = []
        for part, number, _ in self._batches:
            position, nbytes, offsets = part.messages(number)
            chunks.append(Chunk(part.data, position, nbytes, offsets, bitmap=part.validity(number)))
        return chunks

    @property
    def column_names(self) -> list[str]:
        """The columns beside the messages."""
        return [name for name in self.parts[0].names if name != MESSAGE_COLUMN]

    def column(self, name: str) -> Any:
        """A column over all parts, in place."""
        arrays = [array for part in self.parts for array in part.column(name)]
        return pa.chunked_array(arrays, type=self.parts[0].schema.field(name).type)

    def check_starts(self) -> None:
        """What isn't in any batch. Raises IndexFileError."""
        for part in self.parts:
            if not part.batches:
                raise IndexFileError(f"{part.path}: it has no batch, so its end is missing")
            part.check_start()

    def verify(self, progress: bool | None = None) -> bool:
        """Checks checksums, Arrow's own rules and the structure of each message, whatever was checked before.

        Returns:
            Whether the keys of all maps ascend.

        Raises:
            IndexFileError: names the file, the batch, its rows and what is wrong.
        """
        self.check_starts()
        label = f"verify {os.path.basename(os.path.normpath(self.path))}"
        with progress_bar(label, self.rows, "rows", progress) as bar:
            shown = threading.Lock()
            ascending: list[bool] = []

            def update(rows: int) -> None:
                with shown:
                    bar.update(rows)

            def work(begin: int, end: int) -> None:
                for batch in range(begin, end):
                    ascending.append(self._check(batch, update))

            run_stretches(work, len(self._batches), 1)
        return all(ascending)

    def ensure(self, start: int, count: int) -> None:
        """Check the batches of some rows that weren't checked yet; each is checked once.

        Raises:
            IndexFileError: names the file, the batch, its rows and what is wrong.
        """
        if self.all_checked or count <= 0:
            return
        first = bisect.bisect_right(self._starts, start) - 1
        last = bisect.bisect_left(self._starts, start + count)
        self.ensure_batches(range(first, last))

    def ensure_batches(self, batches: Sequence[int]) -> None:
        """`ensure` of all rows of some batches."""
        missing = [batch for batch in batches if not self._checked[batch]]

        def work(begin: int, end: int) -> None:
            for batch in missing[begin:end]:
                self.ensure_batch(batch)

        run_stretches(work, len(missing), 1)

    def ensure_batch(self, batch: int) -> None:
        """`ensure` of all rows of a batch."""
        if self.all_checked or self._checked[batch]:
            return
        with self._locks.setdefault(batch, threading.Lock()):
            if not self._checked[batch]:
                self._check(batch, _shown_nowhere)

    def _check(self, batch: int, progress: Callable[[int], object]) -> bool:
        part, number, first = self._batches[batch]
        ascending = check_batch(part, number, self.mp, first, progress)
        self._checked[batch] = True
        self.all_checked = 0 not in self._checked
        return ascending


def _shown_nowhere(rows: int) -> None:
    """Of checks on the way to other work, which has its own bar."""


def open_files(
    path: str, message_type: Any = None, handle: Handle | None = None, check: bool = True
) -> OpenedFiles:
    """Open what lies under a path: a file, or a directory with a manifest.

    Args:
        message_type: what to read the messages by; None for the schema in the files.
        handle: `OpenedFiles.handle` in another process, to open the same parts.
        check: whether a manifest must have its own checksum.

    Raises:
        IndexFileError: names the file, and both numbers where two must agree.
    """
    if not os.path.isdir(path):
        return _open_file(path, message_type, handle)
    manifest = read_manifest(path, check)
    for _ in range(ATTEMPTS):
        try:
            return _open_parts(path, manifest, message_type, handle)
        except IndexFileError:
            # Perhaps only because somebody replaced them since: then there is another manifest.
            again = read_manifest(path, check)
            if again == manifest:
                raise
            manifest = again
    return _open_parts(path, manifest, message_type, handle)


def _open_file(path: str, message_type: Any, handle: Handle | None) -> OpenedFiles:
    for _ in range(ATTEMPTS):
        before = _status(path)
        part = Part(path)
        entries = (entry_of(part, ""),)  # whatever it's called
        _check_handle(path, entries, handle)
        keys = open_beside(path, part)
        # Perhaps the keys are only those of a file that somebody has put there since.
        if isinstance(keys, Keys) or _status(path) == before:
            break
    made = OpenedFiles(path, part.plan(message_type), [part], entries, 0)
    made.keys = keys
    return made


def _status(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def entry_of(part: Part, name: str) -> PartEntry:
    """What a manifest says about a part."""
    return PartEntry(name, part.rows, part.nbytes, part.headers_checksum())


def _open_parts(path: str, manifest: Manifest, message_type: Any, handle: Handle | None) -> OpenedFiles:
    entries = manifest.parts if handle is None else manifest.parts[: handle[0]]
    _check_handle(path, entries, handle)
    parts: list[Part] = []
    for entry in entries:
        part = open_part(path, manifest, entry)
        if parts:
            check_same_form(parts[0], part)
        parts.append(part)
    made = OpenedFiles(path, parts[0].plan(message_type), parts, entries, manifest.generation)
    if manifest.key is not None:
        made.keys = open_listed(path, manifest.key, [entry.keys for entry in entries], parts, made.first_rows)
    return made


def _check_handle(path: str, entries: Sequence[PartEntry], handle: Handle | None) -> None:
    if handle is None:
        return
    count, identity = handle
    if (len(entries), parts_checksum(entries)) != (count, identity):
        raise IndexFileError(
            f"{path} was built anew since the pickle was made: its first {count} parts had the checksum "
            f"{identity} together, but now {len(entries)} have {parts_checksum(entries)}"
        )


def open_part(path: str, manifest: Manifest, entry: PartEntry) -> Part:
    """A part, once it's what the manifest says."""
    name = os.path.join(path, entry.name)
    if not os.path.lexists(name):
        raise IndexFileError(
            f"{name} is missing: its manifest says that it has {entry.rows:,} rows in {entry.nbytes:,} bytes"
        )
    part = Part(name, entry.nbytes, link=False)
    said = part.description
    if (said.message, said.fingerprint) != (manifest.message, manifest.fingerprint):
        raise IndexFileError(
            f"{name} holds messages of {said.message} with fingerprint {said.fingerprint}, but its manifest "
            f"says {manifest.message} with {manifest.fingerprint}"
        )
    if part.rows != entry.rows:
        raise IndexFileError(f"{name} has {part.rows:,} rows, but its manifest says {entry.rows:,}")
    found = part.headers_checksum()
    if found != entry.checksum:
        raise IndexFileError(
            f"{name}: the checksum of its headers is {found}, but its manifest says {entry.checksum}: "
            "it isn't the file that was written"
        )
    return part


def check_same_form(first: Part, part: Part) -> None:
    """Raises IndexFileError if two parts don't agree in how messages are encoded, or in further columns.

    Columns agree in names, types and order.
    """
    said, other = first.description.representation, part.description.representation
    if other != said:
        raise IndexFileError(
            f"{part.path} has messages that are encoded as {other!r}, but those of {first.path} are {said!r}"
        )
    expected, found = described_columns(first.schema), described_columns(part.schema)
    if found != expected:
        raise IndexFileError(
            f"{part.path} has the columns {found} beside its messages, but {first.path} has {expected}"
        )
