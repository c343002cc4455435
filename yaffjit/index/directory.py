"""Changes a directory of parts: one writer at a time, and what a killed one left behind is removed.

The lock is on the file ``.lock``, which also lists the parts and key tables that the writer names before its
manifest does, or will remove after. Whoever locks next removes those that the manifest doesn't list. Nothing
else in the directory is touched.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
from types import TracebackType

from yaffjit.errors import IndexFileError
from yaffjit.index.atomic import remove_abandoned, replaced_file, sync_folder, writing
from yaffjit.index.manifest import (
    KEYS_NAME,
    MANIFEST_NAME,
    PART_NAME,
    Manifest,
    keys_name,
    manifest_path,
    manifest_text,
    part_name,
    read_manifest,
)

LOCK_NAME = ".lock"
OUR_NAMES = rf"{PART_NAME.pattern}|{KEYS_NAME.pattern}|{re.escape(MANIFEST_NAME)}"
MAX_LOCK_NBYTES = 64 << 20


def _files(manifest: Manifest | None) -> list[str]:
    """What a manifest lists."""
    if manifest is None:
        return []
    return [name for part in manifest.parts for name in (part.name, part.keys) if name]


class DirectoryWriter:
    """The right to change a directory, as a context manager.

    Args:
        path: of the directory.
        create: make it if it isn't there.

    Attributes:
        manifest: as it stands now; None in a new directory.

    Raises:
        IndexFileError: another process writes to it, it can't be written, or it isn't an index.
    """

    def __init__(self, path: str, create: bool) -> None:
        self.path = path
        self.manifest: Manifest | None = None
        self._create = create
        self._made = False
        self._names: list[str] = []  # what the lock file lists
        self._fd = -1

    def __enter__(self) -> DirectoryWriter:
        with writing(self.path):
            if self._create:
                self._make()
            self._fd = self._locked()
        try:
            with writing(self.path):
                self._names = self._listed()
                if os.path.lexists(manifest_path(self.path)):
                    self.manifest = read_manifest(self.path)
                elif self._create:
                    self._check_empty()
                else:
                    self.manifest = read_manifest(self.path)  # which says what is wrong
                self._clean()
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # What can't be removed now, the next writer removes.
            with contextlib.suppress(OSError):
                if os.path.lexists(manifest_path(self.path)):
                    # As it is on disk: the error may have come just after it got there.
                    self.manifest = read_manifest(self.path)
                    self._made = False
                self._clean()
        finally:
            self._release()

    def new_part(self) -> str:
        """The name of a further part, that no file has."""
        with writing(self.path):
            parts = self.manifest.parts if self.manifest else ()
            names = [*os.listdir(self.path), *self._names, *(part.name for part in parts)]
            numbers = [int(match[1]) for match in map(PART_NAME.fullmatch, names) if match]
            name = part_name(max(numbers, default=-1) + 1)
            self._list([*self._names, name])
        return name

    def new_keys(self, part: str) -> str:
        """The name of a key table for a part, that no file has."""
        with writing(self.path):
            name = keys_name(part)
            if os.path.lexists(os.path.join(self.path, name)):
                # Of another key, which readers have until there's another manifest.
                name = keys_name(part, 1 if self.manifest is None else self.manifest.generation + 1)
            self._list([*self._names, name])
        return name

    def commit(self, manifest: Manifest) -> None:
        """Make a manifest the one that readers find, and remove the files that it doesn't list."""
        with writing(self.path):
            self._list([*self._names, *_files(self.manifest)])
        with replaced_file(manifest_path(self.path)) as file, writing(self.path):
            file.write(manifest_text(manifest))

    def _make(self) -> None:
        try:
            os.mkdir(self.path)
        except FileExistsError:
            return
        self._made = True
        sync_folder(os.path.dirname(os.path.abspath(self.path)))

    def _locked(self) -> int:
        path = os.path.join(self.path, LOCK_NAME)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        if not self._create and not os.path.lexists(manifest_path(self.path)):
            flags &= ~os.O_CREAT  # where there's no index, nothing is left behind
            read_manifest(self.path)
        while True:
            fd = os.open(path, flags, 0o666)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.exists(path) and os.path.samestat(os.fstat(fd), os.stat(path)):
                    return fd
            except BlockingIOError:
                holder = os.pread(fd, 100, 0).split(b"\n")[0].decode("ascii", "replace")
                os.close(fd)
                raise IndexFileError(
                    f"{self.path} can't be written: {holder or 'another process'} is writing to it"
                ) from None
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)  # the holder before removed it

    def _listed(self) -> list[str]:
        lines = os.pread(self._fd, MAX_LOCK_NBYTES, 0).decode("ascii", "replace").split("\n")
        return [line for line in lines if PART_NAME.fullmatch(line) or KEYS_NAME.fullmatch(line)]

    def _list(self, names: list[str]) -> None:
        """Have the lock file list names, on disk too before they are used."""
        self._names = list(dict.fromkeys(names))
        text = "".join(f"{line}\n" for line in (f"process {os.getpid()}", *self._names)).encode()
        if os.pwrite(self._fd, text, 0) < len(text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.ftruncate(self._fd, len(text))
        os.fsync(self._fd)

    def _check_empty(self) -> None:
        """Raise where a folder holds what no writer of ours left there."""
        remove_abandoned(self.path, OUR_NAMES)
        for name in sorted(os.listdir(self.path)):
            if name != LOCK_NAME and name not in self._names:
                fault = f"it's a folder without {MANIFEST_NAME}, but with {name!r} in it"
                raise IndexFileError(f"{self.path} can't be written: {fault}")

    def _clean(self) -> None:
        kept = set(_files(self.manifest))
        remove_abandoned(self.path, OUR_NAMES)
        for name in self._names:
            if name in kept:
                continue
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self.path, name))
        self._list([])

    def _release(self) -> None:
        if self._made:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(self.path, LOCK_NAME))
                os.rmdir(self.path)
        # Closing alone wouldn't do it where a fork has the file too.
        fcntl.flock(self._fd, fcntl.LOCK_UN)
        os.close(self._fd)
