"""Files by their names: only regular ones are read or replaced, so that no pipe or device is waited for."""

from __future__ import annotations

import errno
import os
import stat
from typing import Any, BinaryIO

from yaffjit.errors import IndexFileError


def text_path(path: Any) -> str:
    """A path as text.

    Raises:
        TypeError: it isn't str, bytes or os.PathLike.
        ValueError: it is empty or has a null character.
    """
    name = os.fsdecode(path)
    if not name:
        raise ValueError("a path can't be empty")
    if "\0" in name:
        raise ValueError(f"a path can't have a null character: {name!r}")
    return name


def open_regular(path: str, link: bool = True) -> BinaryIO:
    """A regular file, opened to be read.

    Args:
        link: whether a symbolic link is followed, or else refused.

    Raises:
        IndexFileError: it isn't there, isn't one, or can't be opened.
    """
    # Without O_NONBLOCK a pipe would wait for somebody to write; for regular files it means nothing.
    flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
    if not link:
        flags |= os.O_NOFOLLOW
    try:
        fd = os.open(path, flags)
    except OSError as error:
        if not link and error.errno == errno.ELOOP:
            fault = "it's a symbolic link, which could lead anywhere"
            raise IndexFileError(f"{path} can't be opened: {fault}") from error
        raise IndexFileError(f"{path} can't be opened: {error.strerror or error}") from error
    irregular = not_regular(os.fstat(fd))
    if irregular is not None:
        os.close(fd)
        raise IndexFileError(f"{path} can't be opened: {irregular}")
    return open(fd, "rb")


def not_regular(status: os.stat_result) -> str | None:
    """What a file is instead of a regular one; None if it is one."""
    if stat.S_ISREG(status.st_mode):
        return None
    if stat.S_ISDIR(status.st_mode):
        return "Is a directory"
    kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return f"it's {kinds.get(stat.S_IFMT(status.st_mode), 'a device')}, not a regular file"
