"""The exceptions of yaffjit: one tree, each message naming what, where and the numbers compared."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class YaffjitError(Exception):
    """Base of everything that yaffjit raises on its own account.

    Jitted code can only raise with constant text and integers; it raises these classes as
    ``cls(text, position)``, and the sentence is put together here.
    """

    def __init__(self, text: str = "", position: int | None = None) -> None:
        super().__init__(text) if position is None else super().__init__(text, position)
        self.text = text
        self.position = position

    def __str__(self) -> str:
        return self.text if self.position is None else f"{self.text} at byte {self.position}"


class SchemaError(YaffjitError, ValueError):
    """A schema can't be loaded, a name isn't in it, or YaFF can't hold one of its messages."""


class EncodeError(YaffjitError, ValueError):
    """A value can't be written; names the field path."""


class DecodeError(YaffjitError, ValueError):
    """Bytes can't be turned into a message."""


class VerifyError(DecodeError):
    """A buffer isn't a well-formed message of its type.

    Attributes:
        message: full name of the message type that was being read.
        path: dotted path of the field within the root message, ``""`` for the root itself.
        position: absolute byte position in the buffer.
        found, limit: the two numbers of the comparison that failed.
        row: the row within records or an index, if there is one.
    """

    def __init__(
        self,
        text: str = "",
        position: int | None = None,
        *,
        message: str = "",
        path: str = "",
        found: int | None = None,
        limit: int | None = None,
        row: int | None = None,
    ) -> None:
        super().__init__(text, position)
        self.message = message
        self.path = path
        self.found = found
        self.limit = limit
        self.row = row

    def __str__(self) -> str:
        where = self.message + (f", field {self.path}" if self.path else "")
        if self.row is not None:
            where = f"row {self.row}: {where}"
        sentence = super().__str__()
        return f"{where}: {sentence}" if where else sentence


class IndexFileError(YaffjitError, OSError):
    """An index file can't be written or read; names the file, and the batch or row if there is one."""


class RowError(YaffjitError, IndexError):
    """A row number isn't within records; ``row`` as it was asked for, ``count`` rows there are."""

    def __init__(self, row: int, count: int) -> None:
        Exception.__init__(self, row, count)
        self.row = row
        self.count = count

    def __str__(self) -> str:
        return f"row {self.row} is out of range: there are {self.count} rows"


class EscapeError(YaffjitError, TypeError):
    """Jitted code would keep a view, records or an iterator over them longer than their bytes are sure to live.

    Raised while a function is compiled; names what can't be kept where, what to keep instead, and the line.
    It isn't one of numba's errors, which numba would swallow or decorate.
    """


def near_names(name: str, known: Iterable[str], count: int = 3) -> str:
    """`` (did you mean 'a', 'b'?)`` for the known names that resemble ``name``, else an empty string."""
    close = difflib.get_close_matches(name, list(known), count)
    return f" (did you mean {', '.join(map(repr, close))}?)" if close else ""
