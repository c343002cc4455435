"""Keys of an index on disk: made with its parts, or later, and there as soon as the index is."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import BinaryIO

from yaffjit.errors import IndexFileError
from yaffjit.index.atomic import one_at_a_time, sync_folder, writing
from yaffjit.index.directory import DirectoryWriter
from yaffjit.index.files import text_path
from yaffjit.index.key_build import write_keys
from yaffjit.index.key_field import KeyField
from yaffjit.index.key_spec import KeySpec, key_spec
from yaffjit.index.key_table import KeyTable, is_table
from yaffjit.index.keys import Keys, keys_path, new_keys_path
from yaffjit.index.manifest import Manifest, PartEntry
from yaffjit.index.opened import OpenedFiles, entry_of, open_part
from yaffjit.index.part import Part
from yaffjit.index.reader import Index
from yaffjit.plan import MessagePlan


def build_keys(path: str | os.PathLike[str], key: str, duplicates: str = "error") -> None:
    """Make an index that is there look-up rows by a key; keys that it had are replaced.

    The messages stay as they are, and are checked on the way.

    Args:
        path: of the index, a file or a directory.
        key, duplicates: as `build_index` takes them.

    Raises:
        IndexFileError: a key comes again, which is named with both its rows; the index is damaged; the
            tables can't be written, or another process is writing to the directory.
        SchemaError: the path isn't one of an integer, text or bytes.
        ValueError, TypeError: an argument that isn't one.
    """
    path = text_path(path)
    spec = key_spec(key, duplicates)
    if spec is None:
        raise TypeError('key must be the path of a field, as "id", not NoneType')
    if not os.path.isdir(path):
        with _changing(path):
            part = Part(path)
            field = KeyField(part.plan(), spec.path)
            target = keys_path(path)
            _check_is_ours(target)
            write_keys(target, part, _records(part, field.mp, True), field, spec)
        return
    with DirectoryWriter(path, create=False) as directory:
        manifest = directory.manifest
        assert manifest is not None
        mp = open_part(path, manifest, manifest.parts[0]).plan()
        entries = with_keys(directory, spec, mp, (), manifest.parts, checked=True)
        directory.commit(
            Manifest(manifest.message, manifest.fingerprint, manifest.generation + 1, tuple(entries), spec)
        )


def with_keys(
    directory: DirectoryWriter,
    spec: KeySpec | None,
    mp: MessagePlan,
    old: Sequence[PartEntry],
    new: Sequence[PartEntry],
    checked: bool = False,
) -> list[PartEntry]:
    """Write the key tables of new parts; gives their entries with the tables' names.

    Args:
        directory: which has the parts.
        spec: of the keys; None for none.
        mp: the type of the messages.
        old: the parts before them, which have keys.
        checked: whether the messages are to be checked first; those that were just written needn't be.

    Raises:
        IndexFileError: a key comes again, which is named with both its rows; or a table can't be written.
    """
    if spec is None:
        return [replace(entry, keys="") for entry in new]
    field = KeyField(mp, spec.path)
    parts = [Part(os.path.join(directory.path, entry.name), entry.nbytes, link=False) for entry in old]
    tables = [KeyTable(os.path.join(directory.path, entry.keys)) for entry in old]
    firsts = [0]
    for part in parts:
        firsts.append(firsts[-1] + part.rows)
    made = []
    for entry in new:
        part = Part(os.path.join(directory.path, entry.name), entry.nbytes, link=False)
        name = directory.new_keys(entry.name)
        path = os.path.join(directory.path, name)
        earlier = Keys(tables, parts, firsts[:-1]) if tables else None
        write_keys(path, part, _records(part, mp, checked), field, spec, firsts[-1], earlier)
        tables.append(KeyTable(path))
        parts.append(part)
        firsts.append(firsts[-1] + part.rows)
        made.append(replace(entry, keys=name))
    return made


class FileKeys:
    """The keys of an index file that is being replaced, as a context manager around that.

    They have a name of their own until the file has its name, so that readers find those that belong to it at
    each moment. From then on other builds of files in the folder wait, so that two of one file don't mix.

    Args:
        path: of the index file.
        spec: of the keys; None for none: those that were there go.
        mp: the type of the messages.

    Attributes:
        nbytes: of the table that was written.
    """

    def __init__(self, path: str, spec: KeySpec | None, mp: MessagePlan) -> None:
        self._path = path
        self._spec = spec
        self._field = None if spec is None else KeyField(mp, spec.path)
        self._written = False
        self._set_aside = False  # those that there were
        self._alone = contextlib.ExitStack()
        self.nbytes = 0

    def __enter__(self) -> FileKeys:
        if self._spec is not None:
            _check_is_ours(keys_path(self._path))
            _check_is_ours(new_keys_path(self._path))
        return self

    def write(self, file: BinaryIO) -> None:
        """Make them, of a file that is whole but has no name yet."""
        self._alone.enter_context(_changing(self._path))
        if self._spec is None or self._field is None:
            if is_table(keys_path(self._path)) and not os.path.lexists(new_keys_path(self._path)):
                # Of the old file, and of no name that the new one would be asked to agree with.
                with writing(self._path):
                    os.replace(keys_path(self._path), new_keys_path(self._path))
                self._set_aside = True
            return
        with writing(self._path):
            file.flush()
            opened = open(os.dup(file.fileno()), "rb")  # noqa: SIM115
        part = Part(self._path, file=opened)
        self.nbytes = write_keys(
            new_keys_path(self._path), part, _records(part, self._field.mp, False), self._field, self._spec
        )
        self._written = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        made, name = new_keys_path(self._path), keys_path(self._path)
        with self._alone:
            if kind is not None:
                if self._written:
                    with contextlib.suppress(OSError):
                        os.unlink(made)
                elif self._set_aside:
                    with contextlib.suppress(OSError):
                        os.replace(made, name)
            elif self._written:
                with writing(name):
                    os.replace(made, name)
                    sync_folder(os.path.dirname(name))
            elif self._spec is None:
                remove_keys(self._path)


@contextlib.contextmanager
def _changing(path: str) -> Iterator[None]:
    """Has others wait who change an index file or its keys."""
    with contextlib.ExitStack() as alone:
        with writing(path):
            alone.enter_context(one_at_a_time(os.path.dirname(os.path.realpath(path))))
            _settle(path)
        yield


def _settle(path: str) -> None:
    """Give keys the name that a killed writer left them without, or remove them if they are of no file."""
    made = new_keys_path(path)
    if not is_table(made):
        return
    try:
        Keys([KeyTable(made)], [Part(path)], [0])
    except IndexFileError:
        os.unlink(made)
    else:
        os.replace(made, keys_path(path))


def remove_keys(path: str) -> None:
    """Remove the keys beside an index file that is another one now, or gone."""
    for name in (keys_path(path), new_keys_path(path)):
        if is_table(name):
            with contextlib.suppress(OSError):
                os.unlink(name)


def _records(part: Part, mp: MessagePlan, checked: bool) -> Index:
    files = OpenedFiles(part.path, mp, [part], (entry_of(part, ""),), 0)
    files.check_in_place()
    return Index(files, checked)


def _check_is_ours(path: str) -> None:
    """Raise where another file has the name of a key table."""
    if os.path.lexists(path) and not is_table(path):
        raise IndexFileError(f"{path} can't be written: it's there, but isn't a key table")
