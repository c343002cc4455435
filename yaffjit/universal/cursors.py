"""A cursor in a document: codes and payloads one after the other, in plain Python.

It's the specification of the compiled code that looks documents up, and does that work where this can't.
"""

from __future__ import annotations

import struct
from typing import Any, NoReturn

from yaffjit.universal.codec import byte_view, read_options, refuse
from yaffjit.universal.codes import (
    COLLECTION,
    COLLECTION_END,
    DEFAULT_MAX_DEPTH,
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
from yaffjit.universal.plain_read import Reader, ReadOptions

_PENDING = 16


class Cursor:
    """Where a reader is in a document.

    In compact mode two codes share a byte. So where something is, is told by two numbers: the position of the
    next unread byte, and what is pending: 0, or 16 + the code in the high nibble of the last code byte while
    that is still to be read. `word` has both. In plain mode nothing is ever pending.

    Nothing that it reads lies outside of the buffer. Where bytes are wrong it raises what `loads` does.

    Attributes:
        position: of the next unread byte.
        pending: 0, or 16 + the code that is read next.
        depth: how many containers are open; the cursor begins with none.
    """

    __slots__ = ("_data", "_options", "depth", "pending", "position")

    def __init__(self, data: bytes | memoryview, options: ReadOptions, word: int = 0, depth: int = 0) -> None:
        self._data = data
        self._options = options
        self.position, self.pending = divmod(word, 32)
        self.depth = depth

    @property
    def word(self) -> int:
        """``32 * position + pending``; `seek` goes back there."""
        return self.position * 32 + self.pending

    def seek(self, word: int, depth: int = 0) -> None:
        """Go where the cursor was when it had a word and a depth."""
        if word < 0 or 0 < word % 32 < _PENDING:
            raise ValueError(f"word {word} isn't one of a cursor")
        self.position, self.pending = divmod(word, 32)
        self.depth = depth

    def peek(self) -> int | None:
        """The next code, without passing it; None where the bytes end."""
        if self.pending:
            return self.pending - _PENDING
        if self.position >= len(self._data):
            return None
        byte = self._data[self.position]
        return byte & 15 if self._options.compact else byte

    def code(self) -> int:
        """Pass the next code. What it begins isn't checked: `skip` and `value` do that.

        Raises:
            DocumentError: the bytes end, or there's no such code.
        """
        if self.pending:
            code = self.pending - _PENDING
            self.pending = 0
        else:
            if self.position >= len(self._data):
                self._refuse()
            code = self._data[self.position]
            if self._options.compact:
                self.pending = _PENDING + (code >> 4)
                code &= 15
            elif code > LAST_CODE:
                self._refuse()
            self.position += 1
        if code in (OBJECT, COLLECTION):
            if self.depth >= self._options.max_depth:
                self._refuse()
            self.depth += 1
        elif code in (OBJECT_END, COLLECTION_END):
            self.depth -= 1
        return code

    def payload(self, code: int) -> Any:
        """Pass the payload of a code that was read last, and give its value: a number, text, a bool, None.

        Raises:
            DocumentError: the payload isn't whole, or isn't text; the code is 0 without ``null``.
            ValueError: the code is of a begin or an end.
        """
        if code >= UTF8:
            text = self.decoded(code, *self._text())
            return self._refuse() if text is None else text
        if code in (TRUE, FALSE):
            return code == TRUE
        if code == NULL and self._options.null:
            return None
        nbytes = PAYLOAD_NBYTES.get(code)
        if nbytes is None:
            if code == NULL:
                self._refuse()
            raise ValueError(f"code {code} has no payload")
        if nbytes > len(self._data) - self.position:
            self._refuse()
        raw = bytes(self._data[self.position : self.position + nbytes])
        self.position += nbytes
        payload = reordered(raw, self._options.order)
        if code in (FLOAT32, FLOAT64):
            return struct.unpack("<f" if code == FLOAT32 else "<d", payload)[0]
        return int.from_bytes(payload, "little", signed=True)

    def skip(self) -> None:
        """Pass a value, whatever is in it. Its structure is checked, its text isn't.

        Raises:
            DocumentError: there's no value, or it isn't whole.
        """
        kinds: list[int] = []
        code = self.code()
        while True:
            if code in (OBJECT, COLLECTION):
                kinds.append(code)
            elif code in (OBJECT_END, COLLECTION_END) or (code == NULL and not self._options.null):
                self._refuse()
            else:
                self._pass(code)
            while True:
                if not kinds:
                    return
                code = self.code()
                if kinds[-1] == OBJECT and code >= UTF8:
                    self._text()
                    code = self.code()
                    break
                if code == kinds[-1] + 1:
                    kinds.pop()
                elif kinds[-1] == OBJECT:
                    self._refuse()
                else:
                    break

    def value(self) -> Any:
        """Pass a value, and give it as `loads` would.

        Raises:
            DocumentError: there's no value, or it isn't whole.
        """
        word, depth = self.word, self.depth
        code = self.peek()
        self.skip()
        if code not in (OBJECT, COLLECTION):
            end = self.word
            self.seek(word, depth)
            assert code is not None
            found = self.payload(self.code())
            self.seek(end, depth)
            return found
        return Reader(self._data, self._options).read_part(word, depth)

    def decoded(self, code: int, begin: int, end: int) -> str | None:
        """The text of bytes and a code, None if they aren't text."""
        try:
            return str(self._data[begin:end], TEXT_CODECS[code])
        except UnicodeDecodeError:
            return None

    def _pass(self, code: int) -> None:
        if code >= UTF8:
            self._text()
            return
        nbytes = PAYLOAD_NBYTES.get(code, 0)
        if nbytes > len(self._data) - self.position:
            self._refuse()
        self.position += nbytes

    def _text(self) -> tuple[int, int]:
        """Pass a length and a text; gives where it begins and ends."""
        length = 0
        for i in range(MAX_LENGTH_NBYTES):
            if self.position >= len(self._data):
                self._refuse()
            byte = self._data[self.position]
            self.position += 1
            length |= (byte & 127) << 7 * i
            if byte < 128:
                break
        else:
            self._refuse()
        begin = self.position
        if length > len(self._data) - begin:
            self._refuse()
        self.position += length
        return begin, self.position

    def _refuse(self) -> NoReturn:
        refuse(self._data, self._options)

    def __repr__(self) -> str:
        return f"<Cursor at byte {self.position} of {len(self._data):,}, pending {self.pending}>"


def cursor(
    buf: Any,
    *,
    order: Order = "swapped",
    compact: bool = True,
    null: bool = False,
    max_depth: int = DEFAULT_MAX_DEPTH,
) -> Cursor:
    """A `Cursor` at the begin of a document.

    Args:
        buf: bytes or any contiguous buffer.
        order, compact, null, max_depth: as for `yaffjit.universal.loads`.
    """
    options, _ = read_options(compact, order, null, False, None, max_depth)
    return Cursor(byte_view(buf), options)
