"""A file that appears under its name whole and on disk, or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from typing import BinaryIO

from yaffjit.errors import IndexFileError
from yaffjit.index.files import not_regular


@contextlib.contextmanager
def writing(path: str) -> Iterator[None]:
    """Turns the operating system's errors into an IndexFileError that names the file."""
    try:
        yield
    except IndexFileError:
        raise
    except OSError as error:
        raise IndexFileError(f"{path} can't be written: {error.strerror or error}") from error


@contextlib.contextmanager
def replaced_file(path: str) -> Iterator[BinaryIO]:
    """A new file to write and map; it takes the place of ``path`` when the block ends without an exception.

    A file that was there gives it its permissions; a symbolic link stays, and what it leads to is replaced;
    what isn't a regular file is refused.

    Where the file system allows it, the file has no name until it is complete, so that even a killed
    process leaves nothing behind; elsewhere it is called ``.NAME.XXXXXXXX.tmp``, in the same folder, and
    locked while it is written: what has such a name without a lock is removed.
    """
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    with writing(path):
        mode = _replaced_mode(path)
        remove_abandoned(folder, re.escape(name))
        fd, temporary, named = _opened(folder, name)
    try:
        if mode is not None:
            with writing(path):
                os.fchmod(fd, mode)
        file = open(fd, "wb", closefd=False)  # noqa: SIM115
        try:
            yield file
            with writing(path):
                file.flush()
        finally:
            # What couldn't be written would be tried again, and fail with a second error.
            with contextlib.suppress(OSError):
                file.close()
        with writing(path):
            os.fsync(fd)
            if not named:
                _link(fd, folder, temporary)
                named = True
            os.replace(temporary, target)
            named = False
            sync_folder(folder)
    finally:
        os.close(fd)
        if named:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _replaced_mode(path: str) -> int | None:
    """The permissions of the file that is there, None if there is none."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    fault = not_regular(status)
    if fault is not None:
        raise IndexFileError(f"{path} can't be written: {fault}")
    return status.st_mode & 0o777


def _opened(folder: str, name: str) -> tuple[int, str, bool]:
    """A file descriptor, the temporary name, and whether the file has it already."""
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.tmp")
    nameless = getattr(os, "O_TMPFILE", 0)
    if nameless and os.path.isdir("/proc/self/fd"):
        # File systems without nameless files refuse in several ways; what is really wrong recurs below.
        with contextlib.suppress(OSError):
            fd = os.open(folder, nameless | os.O_RDWR | os.O_CLOEXEC, 0o666)
            _lock(fd)
            return fd, temporary, False
    while True:
        fd = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o666)
        if _lock(fd) and os.fstat(fd).st_nlink:
            return fd, temporary, True
        os.close(fd)  # somebody took it for abandoned before it was locked


def _lock(fd: int) -> bool:
    """Have others see that the file is being written; False if they are just removing it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # not on every file system; there nothing is removed either
        pass
    return True


def remove_abandoned(folder: str, names: str) -> None:
    """Remove what killed processes left of files that were to get a name.

    Args:
        names: the names, as a regular expression.
    """
    temporary = re.compile(rf"\.({names})\.[0-9a-f]{{8}}\.tmp")
    for found in filter(temporary.fullmatch, os.listdir(folder)):
        # Whatever can't be removed does no harm.
        with contextlib.suppress(OSError):
            fd = os.open(os.path.join(folder, found), os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(os.path.join(folder, found))
            finally:
                os.close(fd)


def _link(fd: int, folder: str, name: str) -> None:
    """Gives a nameless file its name."""
    folder_fd = os.open(folder, os.O_RDONLY)
    try:
        # With a folder given, Python calls linkat, which can follow the link in /proc; link can't.
        os.link(f"/proc/self/fd/{fd}", name, src_dir_fd=folder_fd, follow_symlinks=True)
    finally:
        os.close(folder_fd)


@contextlib.contextmanager
def one_at_a_time(folder: str) -> Iterator[None]:
    """Has others wait who enter it for the same folder, in any thread or process; short, or they wait long.

    The lock is on the folder itself, so it leaves nothing behind. Not every file system has it.
    """
    folder_fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(folder_fd, fcntl.LOCK_EX)
        yield
    finally:
        # Closing alone wouldn't do it where a fork has the folder open too.
        with contextlib.suppress(OSError):
            fcntl.flock(folder_fd, fcntl.LOCK_UN)
        os.close(folder_fd)


def sync_folder(folder: str) -> None:
    """Have what happened to a folder's names on disk."""
    folder_fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(folder_fd)
    finally:
        os.close(folder_fd)
