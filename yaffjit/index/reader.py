"""Opens an index: its files are mapped, checked once, and behave as records."""

from __future__ import annotations

import os
import shlex
import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from yaffjit.errors import IndexFileError, SchemaError
from yaffjit.index.files import text_path
from yaffjit.index.key_field import KeyField
from yaffjit.index.keys import Keys
from yaffjit.index.metadata import MESSAGE_COLUMN
from yaffjit.index.opened import Handle, OpenedFiles, open_files
from yaffjit.plan import MessagePlan
from yaffjit.plan.paths import parse_path
from yaffjit.rows import Records
from yaffjit.rows.chunks import Chunk, Chunks
from yaffjit.rows.memory import Int64Array
from yaffjit.typed import AnyView

if TYPE_CHECKING:
    from yaffjit.columns import Columns

VERIFY = ("open", "batch")


def open_index(
    path: str | os.PathLike[str],
    message_type: Any = None,
    verify: str = "open",
    progress: bool | None = None,
) -> Index:
    """Open an index and check it: its checksums, its offsets, the structure of each message.

    Args:
        path: a file or directory that `build_index` wrote.
        message_type: a `MessageType` or plan to read the messages by, None for the schema in the files. It
            must have the name of the type in the files.
        verify: "open": everything is checked now; "batch": each batch of 65,536 messages when it's first
            read, so that opening is instant; what reads then raises what opening would.
        progress: a bar; None shows it on a terminal if the work takes over a second.

    Returns:
        `Index`, which behaves as records. The files stay mapped while it or a view of it lives.

    Raises:
        IndexFileError: names the file, the batch and what is wrong with it.
        TypeError, ValueError: a path, type or option that isn't one.
    """
    if verify not in VERIFY:
        known = ", ".join(map(repr, VERIFY))
        raise ValueError(f"verify={verify!r} isn't supported; supported: {known} (or open_index_unchecked)")
    files = open_files(text_path(path), message_type)
    files.check_in_place()
    ascending = False
    if verify == "open":
        ascending = files.verify(progress)
        if isinstance(files.keys, IndexFileError):
            raise files.keys
    else:
        files.check_starts()
    index = Index(files, checked=True)
    index._store.memory.ascending = ascending
    if verify == "open":
        index._verify_keys()
    return index


def open_index_unchecked(path: str | os.PathLike[str], message_type: Any = None) -> Index:
    """As `open_index`, but reads what describes the batches and trusts the rest: instant whatever the size.

    Requires: `build_index` wrote the files, and they are as they were written.
    """
    return Index(open_files(text_path(path), message_type, check=False), checked=False)


class IndexPart(NamedTuple):
    """A file of an index."""

    path: str
    first_row: int
    rows: int
    nbytes: int


class Index(Records[AnyView]):
    """The messages of an index: records, and the other columns beside them."""

    __slots__ = ("_checked", "_files", "message_type", "schema")

    message_type: Any
    schema: Any

    def __init__(self, files: OpenedFiles, checked: bool) -> None:
        files.check_in_place()
        again = _records_again, (os.path.abspath(files.path), files.mp, checked, files.handle)
        for part, first in zip(files.parts, files.first_rows, strict=True):
            part.belongs_to(again, files.mp.full_name, first)
        given = files.mp.plan, files.chunks(), files.check_size, again
        trusted = not checked or files.all_checked
        chunks = Chunks(*given) if trusted else _CheckedChunks(files, *given)
        chunks.crowded = False  # batches of few rows have large messages, beside which a search is nothing
        if isinstance(files.keys, Keys):
            chunks.keys_address = files.keys.address
        self._set(files.mp, chunks, 0, chunks.rows, files.representation)
        self._files = files
        self._checked = checked

    @property
    def path(self) -> str:
        """The file or the directory."""
        return self._files.path

    @property
    def parts(self) -> tuple[IndexPart, ...]:
        """The files: path, first row, rows and bytes of each."""
        files = self._files
        return tuple(
            IndexPart(part.path, first, part.rows, part.nbytes)
            for part, first in zip(files.parts, files.first_rows, strict=True)
        )

    @property
    def key(self) -> str | None:
        """The path of the field that `rows` looks up; None if the index has no keys."""
        return self._files.keys.spec.path if isinstance(self._files.keys, Keys) else None

    def rows(self, keys: Any, missing: str = "absent", threads: int | None = None) -> Any:
        """The rows of messages by their keys, for `take`; the index must have been built with ``key=``.

        Args:
            keys: one key, or many: a list, a numpy array, an Arrow array or what converts to one, a column
                of text. Integers for a field of integers; str or bytes for text and bytes.
            missing: "absent": a key that no message has gives -1; "raise": it's an error.
            threads: how many look up at most; None for all cores.

        Returns:
            An int64 array of shape ``(len(keys),)``, of a single key an int. Null keys give -1. A row counts
            from the beginning of the index.

        Raises:
            KeyError: keys that no message has, with ``missing="raise"``; names the first ones.
            IndexFileError: the index has no keys (says what makes them), or their tables are damaged.
            TypeError, ValueError: what isn't a key of this field, or an array with more than one dimension.
        """
        return self._keys().rows(keys, missing, threads)

    def _keys(self) -> Keys:
        """By which rows are looked up. Raises IndexFileError."""
        keys = self._files.keys
        if keys is None:
            raise IndexFileError(
                f"{self.path} has no keys: `yaffjit keys {shlex.quote(self.path)} --key FIELD` or "
                f"yj.build_keys({self.path!r}, FIELD) makes them"
            )
        if isinstance(keys, IndexFileError):
            raise keys
        if self._checked:
            keys.check_contents()
        return keys

    def _verify_keys(self) -> None:
        """Compare the key tables with the messages. Raises IndexFileError."""
        if self._files.keys is None:
            return
        keys = self._keys()
        try:
            field = KeyField(self._plan, keys.spec.path)
        except SchemaError:  # read by another schema, which hasn't the field
            return
        if field.kind == keys.kind:
            keys.verify(self, field, self._files.first_rows)

    @property
    def column_names(self) -> list[str]:
        """The other columns."""
        return self._files.column_names

    def column(self, name: str) -> Any:
        """Another column, as an Arrow ChunkedArray that shares the mapped file. KeyError if there is none."""
        if name not in self.column_names:
            known = f"{self.path} has no column {name!r}; its columns are {self.column_names}"
            raise KeyError(known + self._instead(name))
        if self._checked:
            self._files.ensure(0, self._files.rows)
        return self._files.column(name)

    def _instead(self, name: Any) -> str:
        """Where to look for what isn't another column."""
        if name == MESSAGE_COLUMN:
            return ". That one is the messages' own: index[row] reads one, index.columns(...) their fields"
        try:
            parse_path(self._plan, name)
        except (SchemaError, TypeError):
            return ""
        return f". It's a field of the messages: index.columns({name!r})"

    def columns(
        self,
        *paths: str,
        out: Mapping[str, np.ndarray[Any, Any]] | None = None,
        threads: int | None = None,
        assume_canonical: bool = False,
    ) -> Columns:
        try:
            return super().columns(*paths, out=out, threads=threads, assume_canonical=assume_canonical)
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
        self._files.verify(progress)
        self._verify_keys()

    def __reduce__(self) -> Any:
        """Pickles hold the path, which parts there were, and the message type.

        What was checked is checked again, batch by batch, when it's first read.
        """
        path = os.path.abspath(self.path)
        return _index_again, (path, self.message_type, self._checked, self._files.handle)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {self.path!r}>"


def _index_again(path: str, message_type: Any, checked: bool, handle: Handle) -> Index:
    """The index of a pickle."""
    index = Index(_files_again(path, message_type.plan, checked, handle), checked)
    index.message_type = message_type
    index.schema = message_type.schema
    return index


def _records_again(path: str, mp: MessagePlan, checked: bool, handle: Handle) -> Records:
    """All rows of an index, some of which are in a pickle."""
    return Index(_files_again(path, mp, checked, handle), checked)


# What unpickled records have open, by path, parts, and how their messages are read: many may be of one index.
_open: weakref.WeakValueDictionary[tuple[Any, ...], OpenedFiles] = weakref.WeakValueDictionary()


def _files_again(path: str, mp: MessagePlan, checked: bool, handle: Handle) -> OpenedFiles:
    key = path, handle, mp.full_name, mp.fingerprint, id(mp.plan)
    files = _open.get(key)
    if files is None:
        files = open_files(path, mp, handle, checked)
        if checked:
            files.check_starts()
        files = _open.setdefault(key, files)
    return files


class _CheckedChunks(Chunks):
    """Chunks each of which is checked before anything of it is read.

    Args:
        files: whose batches they are, each a chunk.
    """

    __slots__ = ("_files",)

    def __init__(self, files: OpenedFiles, *args: Any) -> None:
        self._files = files
        super().__init__(*args)

    def ready(self, start: int, count: int) -> None:
        self._files.ensure(start, count)
        if isinstance(self._files.keys, Keys):
            self._files.keys.check_contents()

    def ready_rows(self, rows: Int64Array) -> None:
        self._files.ensure_batches(np.unique(self.numbers(rows)).tolist())

    def parts(self, start: int, count: int) -> list[Chunk]:
        self._files.ensure(start, count)
        return super().parts(start, count)

    def nbytes(self, start: int, count: int) -> int:
        # No message is read for it; otherwise printing an index would check it.
        return sum(
            self._offsets[number][last] - self._offsets[number][first]
            for number, first, last in super()._within(start, count)
        )

    def _find(self, row: int) -> tuple[Chunk, memoryview, int]:
        self._files.ensure(row, 1)
        return super()._find(row)

    def _within(self, start: int, count: int) -> Iterator[tuple[int, int, int]]:
        for number, first, last in super()._within(start, count):
            self._files.ensure_batch(number)
            yield number, first, last
