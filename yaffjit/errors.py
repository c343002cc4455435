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


class BufferTooSmallError(EncodeError):
    """A message takes more bytes than the buffer has that it's written into.

    Attributes:
        message: full name of the message type.
        needed: bytes of the message.
        nbytes: bytes of the buffer.
    """

    def __init__(self, message: str, needed: int, nbytes: int) -> None:
        Exception.__init__(self, message, needed, nbytes)
        self.text = f"{message}: {needed} bytes are needed, but the buffer has {nbytes}"
        self.position = None
        self.message = message
        self.needed = needed
        self.nbytes = nbytes


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
        hint: what the caller may have mistaken, at the end of the sentence; mostly ``""``.
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
        self.hint = ""

    def __str__(self) -> str:
        where = self.message + (f", field {self.path}" if self.path else "")
        if self.row is not None:
            where = f"row {self.row}: {where}"
        sentence = super().__str__()
        if self.hint:
            sentence += f"; {self.hint}"
        return f"{where}: {sentence}" if where else sentence


# What protobuf doesn't accept of a message, by the numbers that `yaffjit.kernels.wire_fault` has for it.
WIRE_FAULTS = (
    "{found} bytes (at most {limit})",
    "field number 0 (at least 1)",
    "tag {found} (at most {limit})",
    "a varint doesn't end within the {found} bytes that are left",
    "a varint has over {limit} bytes",
    "a size of {found} bytes (at most {limit})",
    "a size of {found} bytes, but {limit} are left",
    "a value of {found} bytes, but {limit} are left",
    "wire type {found} (at most {limit})",
    "group {found} has no end",
    "end of group {found} within group {limit}",
    "end of group {found} without its beginning",
    "{found} bytes of packed values that take {limit} each",
    "messages nested {found} deep (at most {limit})",
)


class ShortBufferError(VerifyError):
    """A buffer of ``nbytes`` bytes ends before the root message."""

    def __init__(self, message: str, nbytes: int) -> None:
        super().__init__(f"the buffer of {nbytes} bytes ends before the root message", message=message)
        self.args = (message, nbytes)
        self.nbytes = nbytes


class JsonError(YaffjitError, ValueError):
    """A message has no JSON form, such as a timestamp beyond the year 9999; names the message."""


class IndexFileError(YaffjitError, OSError):
    """An index file can't be written or read; names the file, and the batch or row if there is one."""


class RowError(YaffjitError, IndexError):
    """A row number isn't within records; ``row`` as it was asked for, ``count`` rows there are."""

    def __init__(self, row: int, count: int) -> None:
        Exception.__init__(self, row, count)
        self.text = f"row {row} is out of range: there are {count} rows"
        self.position = None
        self.row = row
        self.count = count


class ElementError(YaffjitError, IndexError):
    """An index isn't within a repeated field; ``index`` as it was asked for, ``count`` elements there are."""

    def __init__(self, name: str, index: int, count: int) -> None:
        Exception.__init__(self, name, index, count)
        elements = "element" if count == 1 else "elements"
        self.text = f"list index out of range: {name}[{index}] of {count} {elements}"
        self.position = None
        self.name = name
        self.index = index
        self.count = count


class _NumberError(YaffjitError):
    def __init__(self, text: str, number: float) -> None:
        Exception.__init__(self, text, number)
        self.text = text
        self.position = None
        self.number = number

    def __str__(self) -> str:
        return self.text.replace("{}", str(self.number))


class NumberError(_NumberError, ValueError):
    """A number that isn't allowed where it is; ``text`` has ``{}`` in its place."""


class NumberOverflowError(_NumberError, OverflowError):
    """A result doesn't fit in 64 bits; ``text`` has ``{}`` in the place of a number that it's made of."""


class CompileError(YaffjitError):
    """Jitted code asks for what can't be there: raised while it's compiled, by the sentence first.

    What is raised is a subclass that is also the exception that Python would raise.

    Attributes:
        text: the sentence.
        file, line: the place in the user's code, if it's known.
    """

    def __init__(self, text: str = "", file: str | None = None, line: int | None = None) -> None:
        Exception.__init__(self, text, file, line)
        self.text = text
        self.position = None
        self.file = file
        self.line = line

    def __str__(self) -> str:
        if self.file is None:
            return self.text
        return f'{self.text.removesuffix(".")}.\nFile "{self.file}", line {self.line}'

    def _render_traceback_(self) -> list[str]:
        """What notebooks show: without the compiler's own frames."""
        return [f"{type(self).__name__}: {self}"]


class CompileAttributeError(CompileError, AttributeError):
    """A name isn't there, or a view would be changed."""


class CompileValueError(CompileError, ValueError):
    """A field, oneof or enum is asked for by a name that it hasn't."""


class CompileTypeError(CompileError, TypeError):
    """Values of these types don't go together, or Python has it and jitted code can't."""


class EscapeError(CompileTypeError):
    """Jitted code would keep a view, records or an iterator longer than their bytes are sure to live.

    Raised while a function is compiled; names what can't be kept where, what to keep instead, and the line.
    """


def near_names(name: str, known: Iterable[str], count: int = 3) -> str:
    """`` (did you mean 'a', 'b'?)`` for the known names that resemble ``name``, else an empty string."""
    close = difflib.get_close_matches(name, list(known), count)
    return f" (did you mean {', '.join(map(repr, close))}?)" if close else ""
