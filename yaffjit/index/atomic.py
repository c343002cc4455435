"""A file that appears under its name whole and on disk, or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from typing import BinaryIO

from yaffjit.errors import IndexFileError


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
    """A new file to write; it takes the place of ``path`` when the block ends without an exception.

    Where the file system allows it, the file has no name until it is complete, so that even a killed
    process leaves nothing behind; elsewhere it is called ``.NAME.XXXXXXXX.tmp``, in the same folder.
    """
    folder, name = os.path.split(os.path.abspath(path))
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.tmp")
    with writing(path):
        fd, named = _opened(folder, temporary)
    try:
        with open(fd, "wb", closefd=False) as file:
            yield file
            with writing(path):
                file.flush()
                os.fsync(fd)
                if not named:
                    _link(fd, folder, temporary)
                    named = True
                os.replace(temporary, path)
                named = False
                _sync_folder(folder)
    finally:
        os.close(fd)
        if named:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _opened(folder: str, temporary: str) -> tuple[int, bool]:
    """A file descriptor, and whether the file has the temporary name already."""
    nameless = getattr(os, "O_TMPFILE", 0)
    if nameless and os.path.isdir("/proc/self/fd"):
        # File systems without nameless files refuse in several ways; what is really wrong recurs below.
        with contextlib.suppress(OSError):
            return os.open(folder, nameless | os.O_WRONLY | os.O_CLOEXEC, 0o666), False
    return os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666), True


def _link(fd: int, folder: str, name: str) -> None:
    """Gives a nameless file its name."""
    folder_fd = os.open(folder, os.O_RDONLY)
    try:
        # With a folder given, Python calls linkat, which can follow the link in /proc; link can't.
        os.link(f"/proc/self/fd/{fd}", name, src_dir_fd=folder_fd, follow_symlinks=True)
    finally:
        os.close(folder_fd)


def _sync_folder(folder: str) -> None:
    folder_fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(folder_fd)
    finally:
        os.close(folder_fd)
