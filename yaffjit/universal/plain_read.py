"""Bytes to objects in plain Python: the specification, and what reads where the compiled code can't."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, NoReturn

from yaffjit.universal.codes import (
    COLLECTION,
    COLLECTION_END,
    FALSE,
    FLOAT32,
    FLOAT64,
    LAST_CODE,
    MAX_LENGTH_NBYTES,
    NULL,
    OBJECT,
    OBJECT_END,
    PAYLOAD_NBYTES,
    TEXT_CODECS,
    TRUE,
    UTF8,
    Order,
    reordered,
)
from yaffjit.universal.refusals import (
    BAD_TEXT,
    DEEP_NESTING,
    DUPLICATE_KEY,
    LONG_LENGTH,
    LONG_TEXT,
    MANY_ITEMS,
    NO_MORE_CODES,
    NOT_A_KEY,
    PADDED_LENGTH,
    SHORT_LENGTH,
    SHORT_PAYLOAD,
    TRAILING_BYTES,
    TRAILING_CODE,
    UNKNOWN_CODE,
    WRONG_END,
    refuse_bytes,
)

UNLIMITED = 2**62


@dataclass(frozen=True)
class ReadOptions:
    """How documents are read; see `yaffjit.universal.loads`.

    Attributes:
        strict: refuse what only another writer than ours makes: padded lengths and duplicate keys.
    """

    compact: bool
    order: Order
    null: bool
    strict: bool
    max_items: int
    max_depth: int


class Reader:
    """Reads documents that lie one after the other in bytes.

    Values wait in one list until their container ends, as they do in the compiled code.
    """

    def __init__(self, data: bytes | memoryview, options: ReadOptions) -> None:
        self._data = data
        self._options = options
        self._pos = 0  # of the next unread byte
        self._half: int | None = None  # the high nibble of the last code byte while it's unread
        self._at = 0  # the byte of the last code
        self._items = 0
        self._depth = 0  # that the value is at
        self._values: list[Any] = []
        self._frames: list[tuple[int, int]] = []  # where the values of a container begin, and its code

    def read(self, pos: int = 0, whole: bool = True) -> tuple[Any, int]:
        """A document that begins at a byte, and the position behind it.

        Args:
            whole: nothing may follow it.
        """
        self._pos = pos
        value = self._read()
        if self._half:
            self._refuse(TRAILING_CODE, self._at, self._half)
        if whole and self._pos < len(self._data):
            self._refuse(TRAILING_BYTES, self._pos, len(self._data) - self._pos)
        self._half = None
        return value, self._pos

    def read_part(self, word: int, depth: int) -> Any:
        """The value that a cursor's word names, in containers as deep."""
        self._pos, pending = divmod(word, 32)
        self._half = pending - 16 if pending else None
        self._at = self._pos
        self._depth = depth
        return self._read()

    def _read(self) -> Any:
        value: Any
        while True:
            code = self._code()
            if self._expects_key():
                if code >= UTF8:
                    self._values.append(self._text(code))
                    continue
                if code != OBJECT_END:
                    self._refuse(NOT_A_KEY, self._at, code)
                value = self._object()
            elif code == COLLECTION_END and self._frames and self._frames[-1][1] == COLLECTION:
                base, _ = self._frames.pop()
                value = self._values[base:]
                del self._values[base:]
            elif code in (OBJECT_END, COLLECTION_END):
                self._refuse(WRONG_END, self._at, code, self._frames[-1][1] if self._frames else 0)
            else:
                self._items += 1
                if self._items > self._options.max_items:
                    self._refuse(MANY_ITEMS, self._at, limit=self._options.max_items)
                if code in (OBJECT, COLLECTION):
                    if self._depth + len(self._frames) >= self._options.max_depth:
                        self._refuse(DEEP_NESTING, self._at, limit=self._options.max_depth)
                    self._frames.append((len(self._values), code))
                    continue
                value = self._scalar(code)
            if not self._frames:
                return value
            self._values.append(value)

    def _expects_key(self) -> bool:
        if not self._frames:
            return False
        base, code = self._frames[-1]
        return code == OBJECT and (len(self._values) - base) % 2 == 0

    def _object(self) -> dict[str, Any]:
        base, _ = self._frames[-1]
        made: dict[str, Any] = {}
        for i in range(base, len(self._values), 2):
            key, made[key] = self._values[i : i + 2]
            if self._options.strict and len(made) <= (i - base) // 2:
                del self._values[i + 1 :]
                self._refuse(DUPLICATE_KEY, self._at)
        self._frames.pop()
        del self._values[base:]
        return made

    def _scalar(self, code: int) -> Any:
        if code >= UTF8:
            return self._text(code)
        if code in (TRUE, FALSE):
            return code == TRUE
        if code == NULL:
            if not self._options.null:
                self._refuse(UNKNOWN_CODE, self._at, code)
            return None
        left = len(self._data) - self._pos
        nbytes = PAYLOAD_NBYTES[code]
        if left < nbytes:
            self._refuse(SHORT_PAYLOAD, self._pos, code, left)
        payload = reordered(bytes(self._data[self._pos : self._pos + nbytes]), self._options.order)
        self._pos += nbytes
        if code in (FLOAT32, FLOAT64):
            return struct.unpack("<f" if code == FLOAT32 else "<d", payload)[0]
        return int.from_bytes(payload, "little", signed=True)

    def _text(self, code: int) -> str:
        length = self._length()
        begin = self._pos
        left = len(self._data) - begin
        if length > left:
            self._refuse(LONG_TEXT, begin, length, left)
        self._pos += length
        try:
            return str(self._data[begin : self._pos], TEXT_CODECS[code])
        except UnicodeDecodeError:
            self._refuse(BAD_TEXT, begin, length, code)

    def _length(self) -> int:
        length = 0
        for i in range(MAX_LENGTH_NBYTES):
            if self._pos >= len(self._data):
                self._refuse(SHORT_LENGTH, self._pos, len(self._data))
            byte = self._data[self._pos]
            self._pos += 1
            length |= (byte & 127) << 7 * i
            if byte < 128:
                if self._options.strict and byte == 0 and i > 0:
                    least = max(1, -(-length.bit_length() // 7))
                    self._refuse(PADDED_LENGTH, self._pos - 1, i + 1, least)
                return length
        self._refuse(LONG_LENGTH, self._pos)

    def _code(self) -> int:
        code = self._half
        if code is not None:
            self._half = None
            return code
        self._at = self._pos
        if self._pos >= len(self._data):
            self._refuse(NO_MORE_CODES, self._pos, len(self._data))
        byte = self._data[self._pos]
        if self._options.compact:
            self._half = byte >> 4
            byte &= 15
        elif byte > LAST_CODE:
            self._refuse(UNKNOWN_CODE, self._pos, byte)
        self._pos += 1
        return byte

    def _path(self) -> list[str | int]:
        """Where the last value is: the key of an object whose value it is, the index in a collection."""
        ends = [base for base, _ in self._frames[1:]] + [len(self._values)]
        path: list[str | int] = []
        for (base, code), end in zip(self._frames, ends, strict=False):
            if code == COLLECTION:
                path.append(end - base)
            elif (end - base) % 2:
                path.append(self._values[end - 1])
        return path

    def _refuse(self, reason: int, position: int, found: int = 0, limit: int = 0) -> NoReturn:
        refuse_bytes(reason, self._path(), position, found, limit)
