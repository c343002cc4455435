"""Standard output and error as they may be: closed, full, without a reader, or of a small encoding."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import Any, NoReturn


def complain(sentence: str) -> None:
    """A line on standard error, if there is one."""
    if sys.stderr is not None:  # else print would write into the data on standard output
        with contextlib.suppress(OSError):
            print(f"yaffjit: {sentence}", file=sys.stderr)


COLOURS = {"red": "31", "green": "32", "yellow": "33"}


def is_colourful() -> bool:
    """Whether standard output is a terminal and NO_COLOR isn't set (no-color.org)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not plain and sys.stdout is not None and sys.stdout.isatty()


def paint(text: str, colour: str) -> str:
    """A text for standard output, in a colour if it shows any."""
    return f"\033[{COLOURS[colour]}m{text}\033[0m" if is_colourful() else text


class _ClosedOutput:
    """Stands for a standard output that the process was started without: writing fails, not before."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return False

    @property
    def buffer(self) -> NoReturn:
        self.write("")

    def write(self, text: str) -> NoReturn:
        raise OSError(errno.EBADF, "standard output is closed")

    def flush(self) -> None:
        pass


@contextlib.contextmanager
def standard_output() -> Iterator[Any]:
    """``sys.stdout`` for any text: what its encoding hasn't is escaped, and a closed one fails by OSError."""
    output: Any = sys.stdout
    if output is None:
        closed: Any = _ClosedOutput()
        sys.stdout = closed
        try:
            yield closed
        finally:
            sys.stdout = output
        return
    if not hasattr(output, "reconfigure"):
        yield output
        return
    errors = output.errors
    output.reconfigure(errors="backslashreplace")
    try:
        yield output
    finally:
        with contextlib.suppress(OSError):  # it flushes, and if that fails, the error is on its way already
            output.reconfigure(errors=errors)


def flush_or_drop_output() -> None:
    """Writes out what was printed, or throws it away; else Python would complain once more when it ends."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except AttributeError:  # there is none
        pass


def is_printable(text: str) -> bool:
    """Whether standard output takes a text as it is."""
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        return False
    return True
