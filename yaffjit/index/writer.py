"""Builds an index: a file that is replaced as a whole, or a directory that further parts are added to."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from yaffjit.errors import IndexFileError
from yaffjit.index.atomic import replaced_file, sync_folder, writing
from yaffjit.index.batches import BatchWriter
from yaffjit.index.directory import DirectoryWriter
from yaffjit.index.feed import Feed
from yaffjit.index.files import open_regular, text_path
from yaffjit.index.manifest import Manifest, PartEntry
from yaffjit.index.metadata import described, plan_of
from yaffjit.index.opened import check_same_columns, entry_of, open_part
from yaffjit.index.others import Others, other_columns
from yaffjit.index.part import Part
from yaffjit.plan import MessagePlan
from yaffjit.progress import Bar, progress_bar

LAYOUTS = ("flat", "sparse", "auto")
REPRESENTATIONS = ("yaff",)
FILE_SUFFIX = ".arrow"


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """What `build_index` or `append_index` wrote.

    Attributes:
        path: the file or directory.
        rows: messages that were written.
        nbytes: bytes of the files that were written.
        unknown_fields: unknown fields and extensions that weren't carried, occurrences by
            ``"full.name of message #field number"``.
        unknown_rows: messages that had any.
        parts: names of the files that were written to a directory.
    """

    path: str
    rows: int
    nbytes: int
    unknown_fields: Mapping[str, int]
    unknown_rows: int
    parts: tuple[str, ...] = field(default=())


def build_index(
    path: str | os.PathLike[str],
    message_type: Any,
    messages: Iterable[Any],
    layout: str = "flat",
    representation: str = "yaff",
    columns: Mapping[str, Any] | None = None,
    progress: bool | None = None,
    part_rows: int | None = None,
) -> BuiltIndex:
    """Write an index of messages: one file, or a directory that `append_index` adds to.

    The index appears under its name when it is whole and on disk; a build that is interrupted leaves the old
    one as it was. Memory: one batch of 65,536 encoded messages, about three times.

    Args:
        path: a directory if one is there, if the path ends with a separator, if it has no suffix and no file
            is there, or if ``part_rows`` is given. Otherwise a file, by habit ``*.arrow``. What is there is
            replaced: a file gives its permissions; a directory must be empty or an index.
        message_type: a `MessageType`, or its plan.
        messages: any iterable of protobuf messages, dicts of field values, or protobuf bytes.
        layout: how messages of the dynamic layout are written: "flat", "sparse" or "auto".
        representation: how messages are encoded in the file: "yaff".
        columns: further columns by name, one value a message: lists, numpy arrays, or what Arrow, pandas and
            polars have. Dictionary-encoded (categorical) ones are stored as their values.
        progress: a bar; None shows it on a terminal if the work takes over a second.
        part_rows: most messages of a part; None puts them all in one.

    Returns:
        `BuiltIndex`: rows, bytes, and what the messages held that YaFF can't carry; that is logged too.

    Raises:
        EncodeError, DecodeError: a message can't be written or read; names the row.
        IndexFileError: the index can't be written, or another process is writing to the directory.
        ValueError: an unknown layout or representation, or a column that doesn't fit the messages.
        TypeError: an argument of another type.
    """
    if _is_path(message_type) and not _is_path(path):
        example = f"build_index({message_type!r}, message_type, messages)"
        raise TypeError(f"build_index takes the path before the message type: {example}")
    path = text_path(path)
    mp = plan_of(message_type)
    _check_options(layout, part_rows)
    if representation not in REPRESENTATIONS:
        known = ", ".join(map(repr, REPRESENTATIONS))
        raise ValueError(f"representation {representation!r} isn't supported; supported: {known}")
    feed = Feed(mp, messages, layout)
    others = other_columns(columns)
    with progress_bar(f"build {_name(path)}", feed.total, "rows", progress) as bar:
        if not _is_directory(path, part_rows):
            nbytes = _write_file(path, feed, None, mp, others, bar)
            entries: list[PartEntry] = []
        else:
            with DirectoryWriter(path, create=True) as directory:
                entries = _write_parts(directory, feed, part_rows, mp, others, bar)
                old = directory.manifest
                generation = 1 if old is None else old.generation + 1
                directory.commit(Manifest(mp.full_name, mp.fingerprint, generation, tuple(entries)))
            nbytes = sum(entry.nbytes for entry in entries)
    return _built(path, feed, nbytes, entries)


def append_index(
    path: str | os.PathLike[str],
    messages: Iterable[Any],
    message_type: Any = None,
    layout: str = "flat",
    columns: Mapping[str, Any] | None = None,
    progress: bool | None = None,
    part_rows: int | None = None,
) -> BuiltIndex:
    """Add messages to an index that is a directory, as a further part (or several).

    They are there for those who open the index afterwards, all at once; who has it open keeps what there was.

    Args:
        path: of the directory.
        messages: as `build_index` takes them.
        message_type: their type, None for that of the index. Its fingerprint must be that of the index.
        layout, progress, part_rows: as `build_index` takes them.
        columns: the other columns that the index has: all of them, of the same types. Lists take their type.

    Returns:
        `BuiltIndex` of what was added; of no message, nothing is.

    Raises:
        EncodeError, DecodeError: a message can't be written or read; names its row among the new ones.
        IndexFileError: it's a single file (says what makes it a directory), another process is writing to
            it, it can't be written, or the message type is another one.
        ValueError: an unknown layout, or a column that doesn't fit the messages or the index.
        TypeError: an argument of another type.
    """
    path = text_path(path)
    _check_options(layout, part_rows)
    given = None if message_type is None else plan_of(message_type)
    if os.path.isfile(path):
        raise IndexFileError(_single_file(path))
    with DirectoryWriter(path, create=False) as directory:
        manifest = directory.manifest
        assert manifest is not None
        first = open_part(path, manifest, manifest.parts[0])
        mp = first.plan() if given is None else given
        _check_same_type(path, manifest, mp.full_name, mp.fingerprint)
        feed = Feed(mp, messages, layout)
        others = other_columns(columns, first.schema, path)
        with progress_bar(f"append to {_name(path)}", feed.total, "rows", progress) as bar:
            entries: list[PartEntry] = []
            if feed.more() or any(map(len, others.values())):
                entries = _write_parts(directory, feed, part_rows, mp, others, bar)
                directory.commit(_longer(manifest, entries))
    return _built(path, feed, sum(entry.nbytes for entry in entries), entries)


def adopt_index(path: str | os.PathLike[str], file: str | os.PathLike[str]) -> None:
    """Move an index file into a directory, as its next part; nothing is encoded again.

    The directory is made if it isn't there. At each moment the file is whole under its old name or in the
    directory.

    Args:
        path: of the directory.
        file: what `build_index` wrote; its message type and columns must be those of the directory.

    Raises:
        IndexFileError: it isn't an index, doesn't agree with the directory, or can't be moved.
    """
    path, file = text_path(path), text_path(file)
    if os.path.isfile(path):
        raise IndexFileError(f"{path} can't be written: it's a file, not a folder")
    with open_regular(file) as opened, writing(file):
        os.fsync(opened.fileno())
    part = Part(file)
    with DirectoryWriter(path, create=True) as directory:
        manifest = directory.manifest
        if manifest is None:
            manifest = Manifest(part.description.message, part.plan().fingerprint, 0, ())
        elif any(os.path.samefile(file, os.path.join(path, entry.name)) for entry in manifest.parts):
            raise IndexFileError(f"{file} is a part of {path} already")
        else:
            _check_same_type(file, manifest, part.description.message, part.description.fingerprint, path)
            check_same_columns(open_part(path, manifest, manifest.parts[0]), part)
        name = directory.new_part()
        _link_or_copy(file, os.path.join(path, name))
        moved = Part(os.path.join(path, name), part.nbytes, link=False)
        if entry_of(moved, name) != entry_of(part, name):
            raise IndexFileError(f"{file} was replaced while it was moved")
        directory.commit(_longer(manifest, [entry_of(moved, name)]))
    with writing(file):
        os.unlink(file)


def _is_directory(path: str, part_rows: int | None) -> bool:
    """Whether an index is to be a directory, by its path and by what is there."""
    if os.path.isdir(path) or path.endswith(os.sep):
        return True
    if part_rows is not None:
        if os.path.lexists(path):
            fault = "it's a file, but part_rows is given, which is for folders"
            raise IndexFileError(f"{path} can't be written: {fault}")
        return True
    return not os.path.lexists(path) and not os.path.splitext(os.path.realpath(path))[1]


def _write_parts(
    directory: DirectoryWriter,
    feed: Feed,
    part_rows: int | None,
    mp: MessagePlan,
    others: Others,
    bar: Bar,
) -> list[PartEntry]:
    """All messages as new parts, at least one."""
    entries: list[PartEntry] = []
    while not entries or feed.more():
        name = directory.new_part()
        path = os.path.join(directory.path, name)
        _write_file(path, feed, part_rows, mp, others, bar)
        entries.append(entry_of(Part(path), name))
    return entries


def _write_file(path: str, feed: Feed, rows: int | None, mp: MessagePlan, others: Others, bar: Bar) -> int:
    """The next messages as one file; returns its bytes."""
    with replaced_file(path) as file:
        batches = BatchWriter(path, file, described(mp, "yaff"), others, feed.rows)
        for payload in feed.take(rows, bar):
            batches.add(payload)
        batches.close(last=not feed.more())
        return file.tell()


def _link_or_copy(file: str, path: str) -> None:
    """Give a file a second name, or where that can't be, its content a second file."""
    with contextlib.suppress(OSError):
        os.link(os.path.realpath(file), path)
        with writing(path):
            sync_folder(os.path.dirname(path))
        return
    with open_regular(file) as source, replaced_file(path) as copy, writing(path):
        shutil.copyfileobj(source, copy, 1 << 20)


def _longer(manifest: Manifest, entries: list[PartEntry]) -> Manifest:
    return Manifest(
        manifest.message, manifest.fingerprint, manifest.generation + 1, (*manifest.parts, *entries)
    )


def _built(path: str, feed: Feed, nbytes: int, entries: list[PartEntry]) -> BuiltIndex:
    feed.say_unknown(path)
    unknown = feed.unknown
    names = tuple(entry.name for entry in entries)
    return BuiltIndex(path, feed.rows, nbytes, dict(unknown.sorted()), unknown.rows, names)


def _check_options(layout: str, part_rows: int | None) -> None:
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be one of {', '.join(map(repr, LAYOUTS))}, not {layout!r}")
    if part_rows is not None and (not isinstance(part_rows, int) or isinstance(part_rows, bool)):
        raise TypeError(f"part_rows must be an int, not {type(part_rows).__name__}")
    if part_rows is not None and part_rows < 1:
        raise ValueError(f"part_rows must be at least 1, not {part_rows}")


def _check_same_type(
    path: str, manifest: Manifest, message: str, fingerprint: str, directory: str | None = None
) -> None:
    if (message, fingerprint) == (manifest.message, manifest.fingerprint):
        return
    whose = f"{path} holds messages of {manifest.message} with fingerprint {manifest.fingerprint}"
    other = f"those to add are of {message} with {fingerprint}"
    if directory is not None:
        whose = f"{directory} holds messages of {manifest.message} with fingerprint {manifest.fingerprint}"
        other = f"{path} has {message} with {fingerprint}"
    raise IndexFileError(f"{whose}, but {other}: an index has messages of one schema")


def _single_file(path: str) -> str:
    """Why a file isn't appended to, and what to do."""
    directory = path.removesuffix(FILE_SUFFIX)
    directory = directory if directory != path else f"{path}.parts"
    command = f"yaffjit append {shlex.quote(directory)} --adopt {shlex.quote(path)}"
    call = f"yj.adopt_index({directory!r}, {path!r})"
    how = f"make it the first part of a directory by `{command}` or {call}"
    return f"{path} is a single file, which doesn't grow: {how}"


def _name(path: str) -> str:
    return os.path.basename(os.path.normpath(path))


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, bytes, os.PathLike))
