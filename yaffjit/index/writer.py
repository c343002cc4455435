"""Builds an index: a file that is replaced as a whole, or a directory that further parts are added to."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from yaffjit.codec.encode import LAYOUTS
from yaffjit.errors import IndexFileError
from yaffjit.index.atomic import replaced_file, sync_folder, writing
from yaffjit.index.batches import BatchWriter
from yaffjit.index.directory import DirectoryWriter
from yaffjit.index.feed import MEMORY, ON_ERROR, Feed
from yaffjit.index.files import open_regular, text_path
from yaffjit.index.flush import Flusher
from yaffjit.index.key_field import KeyField
from yaffjit.index.key_spec import KeySpec, key_spec
from yaffjit.index.key_writer import FileKeys, remove_keys, with_keys
from yaffjit.index.keys import Keys, open_beside
from yaffjit.index.manifest import Manifest, PartEntry
from yaffjit.index.metadata import described, plan_of
from yaffjit.index.opened import check_same_form, entry_of, open_part
from yaffjit.index.others import Others, other_columns
from yaffjit.index.part import Part
from yaffjit.index.report import BuiltIndex, built
from yaffjit.index.sources import source_of
from yaffjit.plan import MessagePlan
from yaffjit.progress import Bar, progress_bar
from yaffjit.rows.readers import REPRESENTATIONS

COMPRESSIONS = (None, "lz4", "zstd")
FILE_SUFFIX = ".arrow"


def build_index(
    path: str | os.PathLike[str],
    message_type: Any,
    messages: Iterable[Any],
    layout: str = "flat",
    representation: str = "yaff",
    columns: Mapping[str, Any] | None = None,
    progress: bool | None = None,
    part_rows: int | None = None,
    *,
    threads: int | None = None,
    memory: int = MEMORY,
    on_error: str = "raise",
    compression: str | None = None,
    key: str | None = None,
    duplicates: str = "error",
) -> BuiltIndex:
    """Write an index of messages: one file, or a directory that `append_index` adds to.

    The index appears under its name when it is whole and on disk; a build that is interrupted leaves the old
    one as it was. Protobuf bytes are transcoded by all cores, without Python objects for each.

    Args:
        path: a directory if one is there, if the path ends with a separator, if it has no suffix and no file
            is there, or if ``part_rows`` is given. Otherwise a file, by habit ``*.arrow``. What is there is
            replaced: a file gives its permissions; a directory must be empty or an index.
        message_type: a `MessageType`, or its plan.
        messages: what `read_delimited` and the other readers give; ``(data, offsets)``, where protobuf
            message i is ``data[offsets[i]:offsets[i + 1]]``; an Arrow column of protobuf bytes, of which
            nulls become null rows; records, whose null rows stay null; or any iterable of protobuf bytes,
            protobuf messages, views and dicts of field values.
        layout: how messages of the dynamic layout are written: "flat"; "sparse"; "auto": sparse where that
            saves more than 10% of the message; "smallest": sparse where that is smaller.
        representation: how messages are encoded in the file: "yaff", or "protobuf": protobuf bytes are kept
            as they came, unknown fields too, once it's verified that protobuf accepts them.
        columns: further columns by name, one value a message: lists, numpy arrays, or what Arrow, pandas and
            polars have. Dictionary-encoded (categorical) ones are stored as their values.
        progress: a bar; None shows it on a terminal if the work takes over a second.
        part_rows: most messages of a part; None puts them all in one.
        threads: how many transcode, None for one a core.
        memory: bytes that the process may take, about. It takes some 300 MB whatever this says, and more for
            a single message of such a size.
        on_error: what becomes of a message that can't be read or stored: "raise"; "skip" leaves it out;
            "null" makes a null row of it: the default instance, of which ``valid`` is false. A file whose
            framing is damaged always raises.
        compression: "lz4" or "zstd" packs the file, which then is for keeping: it can't be read in place.
        key: the path of an integer or text field, as "id" or "geo.city", that `Index.rows` looks up; None
            for none. A message without the field has no key.
        duplicates: what becomes of a key that comes again: "error", or the "first" or "last" row counts.

    Returns:
        `BuiltIndex`: rows, bytes, what the messages held that YaFF can't carry, and what was wrong with
        messages that were left out; these are logged too.

    Raises:
        EncodeError, DecodeError: a message can't be written or read; names the row, or the file, record and
            position where it's from, and the field path.
        IndexFileError: the index can't be written, or another process is writing to the directory.
        ValueError: an unknown layout or representation, or a column that doesn't fit the messages.
        TypeError: an argument of another type.
    """
    if _is_path(message_type) and not _is_path(path):
        example = f"build_index({message_type!r}, message_type, messages)"
        raise TypeError(f"build_index takes the path before the message type: {example}")
    path = text_path(path)
    mp = plan_of(message_type)
    _check_options(layout, part_rows, memory, on_error, compression)
    if representation not in REPRESENTATIONS:
        known = ", ".join(map(repr, REPRESENTATIONS))
        raise ValueError(f"representation {representation!r} isn't supported; supported: {known}")
    spec = _checked_key(key_spec(key, duplicates), mp, compression)
    begin = time.monotonic()
    feed = Feed(mp, source_of(messages, mp), layout, threads, memory, on_error, representation)
    output = _Output(feed, mp, other_columns(columns), compression, spec)
    entries: list[PartEntry] = []
    with feed, _bar(f"build {_name(path)}", feed, progress) as bar:
        if not _is_directory(path, part_rows):
            nbytes = output.write_whole(path, bar)
        else:
            with DirectoryWriter(path, create=True) as directory:
                entries = output.write_parts(directory, part_rows, bar)
                old = directory.manifest
                generation = 1 if old is None else old.generation + 1
                entries = with_keys(directory, spec, mp, (), entries)
                directory.commit(Manifest(mp.full_name, mp.fingerprint, generation, tuple(entries), spec))
            nbytes = sum(entry.nbytes for entry in entries)
    names = tuple(entry.name for entry in entries)
    return built(path, feed, nbytes, names, time.monotonic() - begin)


def append_index(
    path: str | os.PathLike[str],
    messages: Iterable[Any],
    message_type: Any = None,
    layout: str = "flat",
    columns: Mapping[str, Any] | None = None,
    progress: bool | None = None,
    part_rows: int | None = None,
    *,
    threads: int | None = None,
    memory: int = MEMORY,
    on_error: str = "raise",
    compression: str | None = None,
) -> BuiltIndex:
    """Add messages to an index that is a directory, as a further part (or several).

    They are there for those who open the index afterwards, all at once; who has it open keeps what there was.

    Args:
        path: of the directory.
        messages: as `build_index` takes them.
        message_type: their type, None for that of the index. Its fingerprint must be that of the index.
        layout, progress, part_rows, threads, memory, on_error, compression: as `build_index` takes them.
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
    begin = time.monotonic()
    _check_options(layout, part_rows, memory, on_error, compression)
    given = None if message_type is None else plan_of(message_type)
    if os.path.isfile(path):
        raise IndexFileError(_single_file(path))
    with DirectoryWriter(path, create=False) as directory:
        manifest = directory.manifest
        assert manifest is not None
        first = open_part(path, manifest, manifest.parts[0])
        mp = first.plan() if given is None else given
        _check_same_type(path, manifest, mp.full_name, mp.fingerprint)
        representation = first.description.representation
        feed = Feed(mp, source_of(messages, mp), layout, threads, memory, on_error, representation)
        others = other_columns(columns, first.schema, path)
        if manifest.key is not None and compression is not None:
            raise IndexFileError(
                f"{path} has keys, which compressed parts can't have, but compression is {compression!r}"
            )
        output = _Output(feed, mp, others, compression, _checked_key(manifest.key, mp, None))
        entries: list[PartEntry] = []
        with feed, _bar(f"append to {_name(path)}", feed, progress) as bar:
            if feed.more() or any(map(len, others.values())):
                entries = output.write_parts(directory, part_rows, bar)
                entries = with_keys(directory, manifest.key, mp, manifest.parts, entries)
                directory.commit(_longer(manifest, entries))
    names = tuple(entry.name for entry in entries)
    nbytes = sum(entry.nbytes for entry in entries)
    return built(path, feed, nbytes, names, time.monotonic() - begin)


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
    keys = open_beside(file, part)
    with DirectoryWriter(path, create=True) as directory:
        manifest = directory.manifest
        if manifest is None:
            spec = keys.spec if isinstance(keys, Keys) else None
            manifest = Manifest(part.description.message, part.plan().fingerprint, 0, (), spec)
        elif any(os.path.samefile(file, os.path.join(path, entry.name)) for entry in manifest.parts):
            raise IndexFileError(f"{file} is a part of {path} already")
        else:
            _check_same_type(file, manifest, part.description.message, part.description.fingerprint, path)
            check_same_form(open_part(path, manifest, manifest.parts[0]), part)
        name = directory.new_part()
        _link_or_copy(file, os.path.join(path, name))
        moved = Part(os.path.join(path, name), part.nbytes, link=False)
        if entry_of(moved, name) != entry_of(part, name):
            raise IndexFileError(f"{file} was replaced while it was moved")
        entries = [entry_of(moved, name)]
        entries = with_keys(directory, manifest.key, part.plan(), manifest.parts, entries, checked=True)
        directory.commit(_longer(manifest, entries))
    with writing(file):
        os.unlink(file)
    remove_keys(file)


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


@dataclass(frozen=True)
class _Output:
    """What goes into files, and how."""

    feed: Feed
    mp: MessagePlan
    others: Others
    compression: str | None
    spec: KeySpec | None

    def write_whole(self, path: str, bar: Bar) -> int:
        """All messages as one file, and its keys; returns the bytes of both."""
        with FileKeys(path, self.spec, self.mp) as keys:
            return self.write_file(path, None, bar, keys) + keys.nbytes

    def write_parts(self, directory: DirectoryWriter, part_rows: int | None, bar: Bar) -> list[PartEntry]:
        """All messages as new parts, at least one."""
        entries: list[PartEntry] = []
        while not entries or self.feed.more():
            name = directory.new_part()
            path = os.path.join(directory.path, name)
            self.write_file(path, part_rows, bar)
            entries.append(entry_of(Part(path), name))
        return entries

    def write_file(self, path: str, rows: int | None, bar: Bar, keys: FileKeys | None = None) -> int:
        """The next messages as one file, and its keys before it has its name; returns its bytes."""
        feed = self.feed
        with replaced_file(path) as file:
            with (
                Flusher(file.fileno()) as flusher,
                BatchWriter(
                    *(path, file, described(self.mp, feed.representation), self.others, feed.rows),
                    nullable=feed.source.nulls or feed.on_error == "null",
                    compression=self.compression,
                    skipped=feed.skipped,
                    wrote=flusher.wrote,
                ) as batches,
            ):
                for piece in feed.take(rows, bar):
                    batches.add(piece.data, piece.offsets, piece.valid)
                batches.close(last=not feed.more())
            if keys is not None:
                keys.write(file)
            return file.tell()


def _bar(label: str, feed: Feed, progress: bool | None) -> contextlib.AbstractContextManager[Bar]:
    """By the bytes of the input file, or else by rows."""
    nbytes = feed.source.nbytes
    total, unit = (feed.source.rows, "rows") if nbytes is None else (nbytes, "bytes")
    return progress_bar(label, total, unit, progress)


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
        *(manifest.message, manifest.fingerprint, manifest.generation + 1),
        *((*manifest.parts, *entries), manifest.key),
    )


def _checked_key(spec: KeySpec | None, mp: MessagePlan, compression: str | None) -> KeySpec | None:
    """A key, once it's one of the message type, and before anything is written."""
    if spec is not None:
        KeyField(mp, spec.path)
        if compression is not None:
            raise ValueError(f"an index with a key can't be compressed, but compression is {compression!r}")
    return spec


def _check_options(
    layout: str, part_rows: int | None, memory: int, on_error: str, compression: str | None
) -> None:
    for name, value, known in (
        ("layout", layout, LAYOUTS),
        ("on_error", on_error, ON_ERROR),
        ("compression", compression, COMPRESSIONS),
    ):
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, not {value!r}")
    for name, number in (("part_rows", part_rows), ("memory", memory)):
        if number is None and name == "part_rows":
            continue
        if not isinstance(number, int) or isinstance(number, bool):
            raise TypeError(f"{name} must be an int, not {type(number).__name__}")
        if number < 1:
            raise ValueError(f"{name} must be at least 1, not {number}")


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
