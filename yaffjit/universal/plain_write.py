"""Objects to bytes in plain Python: the specification, and what writes where the compiled code can't."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from yaffjit.universal.codes import (
    COLLECTION,
    COLLECTION_END,
    FALSE,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    LATIN1,
    NULL,
    OBJECT,
    OBJECT_END,
    PAYLOAD_NBYTES,
    TEXT_CODECS,
    TRUE,
    UTF8,
    UTF16,
    Order,
    Strings,
    Width,
    reordered,
)
from yaffjit.universal.lower import NUMBER, SUBSTITUTE, lower
from yaffjit.universal.refusals import (
    BAD_KEY,
    CHANGED,
    NO_CODE,
    TOO_DEEP,
    TOO_MANY_SUBSTITUTES,
    refuse_value,
)

# How often `default` may give something that needs it again, for one value.
MAX_SUBSTITUTES = 100
_INT_RANGES = {
    INT8: (-(2**7), 2**7 - 1),
    INT16: (-(2**15), 2**15 - 1),
    INT32: (-(2**31), 2**31 - 1),
    INT64: (-(2**63), 2**63 - 1),
}
_END: Any = object()


@dataclass(frozen=True)
class WriteOptions:
    """How documents are written; see `yaffjit.universal.dumps`."""

    compact: bool
    width: Width
    order: Order
    strings: Strings
    null: bool
    max_depth: int


@dataclass
class _Frame:
    """A container that is being written."""

    container: Any
    items: Iterator[Any]
    count: int
    is_object: bool
    step: str | int = -1  # the key or index of what is written


class Writer:
    """Writes one document.

    Args:
        default: gives something to write in place of what has no code, or is None.
    """

    def __init__(self, options: WriteOptions, default: Callable[[Any], Any] | None) -> None:
        self._options = options
        self._default = default
        self._out = bytearray()
        self._half = -1  # where the code byte is whose high nibble is free
        self._frames: list[_Frame] = []

    def write(self, value: Any) -> bytes:
        """The bytes of a document."""
        self._value(value)
        while self._frames:
            frame = self._frames[-1]
            count = len(frame.container)
            if count != frame.count:
                self._frames.pop()
                self._refuse(CHANGED, frame.container, count, frame.count)
            try:
                item = next(frame.items, _END)
            except RuntimeError:  # a dict has as many keys as before, but others
                self._frames.pop()
                self._refuse(CHANGED, frame.container, count, count)
            if item is _END:
                self._code(OBJECT_END if frame.is_object else COLLECTION_END)
                self._frames.pop()
            elif frame.is_object:
                frame.step = self._key(item[0])
                self._value(item[1])
            else:
                frame.step += 1  # type: ignore[operator]
                self._value(item)
        return bytes(self._out)

    def _value(self, value: Any) -> None:
        for count in range(MAX_SUBSTITUTES + 2):
            kind = type(value)
            if kind is dict:
                return self._begin(value, True)
            if kind is list or kind is tuple:
                return self._begin(value, False)
            if self._scalar(value, kind):
                return None
            if count > MAX_SUBSTITUTES:
                self._refuse(TOO_MANY_SUBSTITUTES, value, count)
            lowered = lower(value, self._default)
            if lowered is None:
                self._refuse(NO_CODE, value)
            form, plain, _, code, bits = lowered
            if form == NUMBER:
                return self._number(code, bits.to_bytes(8, "little", signed=True))
            if form != SUBSTITUTE:
                return self._numbers(plain, code)
            value = plain

    def _scalar(self, value: Any, kind: type) -> bool:
        """Write a value if it's of a plain type and has a code."""
        if kind is str:
            return self._text(value)
        if kind is bool:
            self._code(TRUE if value else FALSE)
        elif kind is int:
            code = self._int_code(value)
            if not code:
                return False
            self._number(code, (value & (2**64 - 1)).to_bytes(8, "little"))
        elif kind is float:
            self._number(FLOAT64, struct.pack("<d", value))
        elif value is None and self._options.null:
            self._code(NULL)
        else:
            return False
        return True

    def _int_code(self, value: int) -> int:
        """The code to write an integer with, 0 if it has none."""
        for code, (least, most) in _INT_RANGES.items():
            if least <= value <= most and (code >= INT32 or self._options.width == "smallest"):
                return code
        return 0

    def _key(self, key: Any) -> str:
        """Write a key; returns its text."""
        for count in range(MAX_SUBSTITUTES + 2):
            if type(key) is str and self._text(key):
                break
            if count > MAX_SUBSTITUTES:
                self._frames.pop()
                self._refuse(TOO_MANY_SUBSTITUTES, key, count)
            lowered = lower(key, self._default)
            if lowered is None or lowered[0] != SUBSTITUTE:
                self._frames.pop()
                self._refuse(BAD_KEY, key)
            key = lowered[1]
        assert isinstance(key, str)
        return key

    def _text(self, text: str) -> bool:
        """Write text; False if it has lone surrogates."""
        code = UTF8
        if self._options.strings == "utf16":
            code = UTF16
        elif self._options.strings == "latin1":
            code = LATIN1 if max(text, default="") <= "\xff" else UTF16
        try:
            payload = text.encode(TEXT_CODECS[code])
        except UnicodeEncodeError:
            return False
        self._code(code)
        length = len(payload)
        while length >= 128:
            self._out.append(length & 127 | 128)
            length >>= 7
        self._out.append(length)
        self._out += payload
        return True

    def _numbers(self, array: Any, code: int) -> None:
        self._code(COLLECTION)
        for number in array:
            if code == TRUE:
                self._code(TRUE if number else FALSE)
            else:
                self._number(code, number.tobytes())
        self._code(COLLECTION_END)

    def _number(self, code: int, payload: bytes) -> None:
        self._code(code)
        self._out += reordered(payload[: PAYLOAD_NBYTES[code]], self._options.order)

    def _begin(self, container: Any, is_object: bool) -> None:
        if len(self._frames) >= self._options.max_depth:
            self._refuse(TOO_DEEP, container, limit=self._options.max_depth)
        items = iter(container.items() if is_object else container)
        self._frames.append(_Frame(container, items, len(container), is_object))
        self._code(OBJECT if is_object else COLLECTION)

    def _code(self, code: int) -> None:
        if self._half >= 0:
            self._out[self._half] |= code << 4
            self._half = -1
            return
        if self._options.compact:
            self._half = len(self._out)
        self._out.append(code)

    def _refuse(self, reason: int, value: Any, found: int = 0, limit: int = 0) -> NoReturn:
        refuse_value(reason, [frame.step for frame in self._frames], value, found, limit)
