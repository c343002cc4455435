"""The sentences of what the codec refuses; the compiled code and the plain one both raise through these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from yaffjit.errors import DecodeError, EncodeError, YaffjitError
from yaffjit.universal.codes import (
    MAX_LENGTH_NBYTES,
    NULL,
    PAYLOAD_NBYTES,
    UTF8,
    path_text,
)

# Why a value can't be written.
NO_CODE, BAD_KEY, TOO_DEEP, CHANGED, TOO_MANY_SUBSTITUTES = range(5)
# Why bytes can't be read, with the two numbers that are given.
NO_MORE_CODES = 0  # bytes there are
SHORT_PAYLOAD = 1  # the code, bytes left
UNKNOWN_CODE = 2  # the code
WRONG_END = 3  # the code, the code that began
NOT_A_KEY = 4  # the code
SHORT_LENGTH = 5  # bytes there are
LONG_LENGTH = 6
LONG_TEXT = 7  # its length, bytes left
BAD_TEXT = 8  # its length, the code
TRAILING_CODE = 9  # the code
TRAILING_BYTES = 10  # their number
DEEP_NESTING = 11  # the limit
MANY_ITEMS = 12  # the limit
PADDED_LENGTH = 13  # its bytes, those that would do
DUPLICATE_KEY = 14  # the last step of the path is the key
# More bytes may help against these.
_CUT_OFF = (NO_MORE_CODES, SHORT_PAYLOAD, SHORT_LENGTH, LONG_TEXT)


class DocumentError(DecodeError):
    """Bytes aren't a document.

    Attributes:
        position: absolute byte position.
        path: of the value that was being read, ``""`` for the document itself.
        hint: what the caller may have mistaken, at the end of the sentence; mostly ``""``.
    """

    def __init__(self, text: str, position: int, path: str = "") -> None:
        super().__init__(text, position)
        self.args = (text, position, path)
        self.path = path
        self.hint = ""

    def __str__(self) -> str:
        sentence = super().__str__()
        if self.path:
            sentence = f"{self.path}: {sentence}"
        return f"{sentence}; {self.hint}" if self.hint else sentence


class TruncatedError(DocumentError):
    """A document isn't complete where its bytes end."""


class KindError(YaffjitError, TypeError):
    """A value isn't of the kind that is asked for.

    Attributes:
        path: of the value within that which was asked.
        found: what it is.
        wanted: what was asked for.
    """

    def __init__(self, path: str, found: str, wanted: str) -> None:
        Exception.__init__(self, path, found, wanted)
        self.text = f"{path}: {found} where {wanted} is asked for" if path else f"{found}, not {wanted}"
        self.position = None
        self.path = path
        self.found = found
        self.wanted = wanted


def kind_of(value: Any) -> str:
    """What a value from a document is, with its article."""
    names = {int: "an integer", float: "a float", bool: "a bool", str: "text", type(None): "null"}
    kind = type(value)
    return names.get(kind) or ("an object" if hasattr(value, "keys") else "a collection")


def refuse_value(reason: int, path: Sequence[str | int], value: Any, found: int, limit: int) -> NoReturn:
    """Raise the EncodeError for what lies at a path.

    Args:
        found, limit: two numbers that belong to the reason, where it has any.
    """
    where = path_text(path)
    text = _why_not_written(reason, value, found, limit)
    raise EncodeError(f"{where}: {text}" if where else text)


def _why_not_written(reason: int, value: Any, found: int, limit: int) -> str:
    if reason == TOO_DEEP:
        return f"nesting is deeper than {limit} (max_depth), or a container holds itself"
    if reason == CHANGED and found == limit:
        return f"the {type(value).__name__} of {limit} items changed while it was written"
    if reason == CHANGED:
        return f"the {type(value).__name__} went from {limit} to {found} items while it was written"
    if reason == TOO_MANY_SUBSTITUTES:
        return f"default= gave {found} substitutes for one value, none of which has a code"
    if isinstance(value, str):
        return f"the text has a lone surrogate, at character {_surrogate(value)} of {len(value)}"
    if reason == BAD_KEY:
        return f"a key is of type {type(value).__name__}, but keys are text"
    if value is None:
        return "None has no code in the format (null=True writes it as an extension)"
    if isinstance(value, int):
        nbits = (value if value >= 0 else ~value).bit_length() + 1
        return f"the integer needs {nbits} bits, but there are 64"
    return f"a value of type {type(value).__name__} has no code in the format"


def _surrogate(text: str) -> int:
    return next(i for i, character in enumerate(text) if "\ud800" <= character <= "\udfff")


def refuse_bytes(reason: int, path: Sequence[str | int], position: int, found: int, limit: int) -> NoReturn:
    """Raise the DocumentError for what is wrong at a byte."""
    error = TruncatedError if reason in _CUT_OFF else DocumentError
    raise error(_why_not_read(reason, found, limit), position, path_text(path))


def _why_not_read(reason: int, found: int, limit: int) -> str:
    if reason == NO_MORE_CODES:
        return f"the data of {found} bytes ends where a code is expected"
    if reason == SHORT_PAYLOAD:
        return f"a payload of {PAYLOAD_NBYTES[found]} bytes (code {found}) begins, {limit} are left"
    if reason == UNKNOWN_CODE:
        return "code 0 (null is read with null=True)" if found == NULL else f"code {found} (at most 15)"
    if reason == WRONG_END:
        return (
            f"code {found} ends what code {limit} begins" if limit else f"code {found} ends what never began"
        )
    if reason == NOT_A_KEY:
        return f"code {found} where a key (13 to 15) or the end of the object (2) is expected"
    if reason == SHORT_LENGTH:
        return f"the data of {found} bytes ends within the length of a text"
    if reason == LONG_LENGTH:
        return f"the length of a text has more than {MAX_LENGTH_NBYTES} bytes"
    if reason == LONG_TEXT:
        return f"a text of {found} bytes begins, {limit} are left"
    if reason == BAD_TEXT:
        return f"a text of {found} bytes isn't {'UTF-8' if limit == UTF8 else 'UTF-16'} (code {limit})"
    if reason == TRAILING_CODE:
        return f"code {found} follows the end of the document"
    if reason == TRAILING_BYTES:
        return f"{found} bytes follow the end of the document"
    if reason == DEEP_NESTING:
        return f"nesting is deeper than {limit} (max_depth)"
    if reason == MANY_ITEMS:
        return f"there are more than {limit} values (max_items)"
    if reason == PADDED_LENGTH:
        return f"the length of a text takes {found} bytes where {limit} would do"
    return "the object that ends has this key twice"
