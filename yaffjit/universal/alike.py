"""What the objects of a collection may be like: flat ones with the same keys, and values of the same codes.

In compact mode an object without nested ones has an even number of codes, so each begins in the high nibble
of a byte, and all are aligned alike. Where there are no texts all lie at one stride.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from yaffjit.universal.codes import (
    COLLECTION,
    FALSE,
    FLOAT64,
    INT8,
    INT64,
    OBJECT,
    PAYLOAD_NBYTES,
    TRUE,
    UTF8,
)
from yaffjit.universal.compiled import options_of
from yaffjit.universal.cursors import Cursor
from yaffjit.universal.refusals import DocumentError

_MOST_NBYTES = 4096
_BLOCK = 256  # as yaffjit.kernels.universal_like has it
_BOOL, _INT, _FLOAT = range(3)
# A field: its segment, where in that, its code and column.
Field = tuple[int, int, int, int]


class Layout:
    """Where the values of an object are that all others may be like.

    Attributes:
        segments: bytes of an object between its texts, the last of which is the length of a text but in the
            last segment; and of each the bits that must be the same in others.
        fields: of each value where it is: the payload, the length of a text, or the byte with a bool's code.
    """

    def __init__(self, segments: list[tuple[bytes, bytes]], fields: list[Field]) -> None:
        self.segments = segments
        self.fields = fields

    def words(self, wanted: list[Any]) -> NDArray[np.int64]:
        """What `yaffjit.kernels.universal_like` reads, for the columns that are asked for."""
        absent = {i for i, one in enumerate(wanted) if one.is_text} - {field[3] for field in self.fields}
        fields = np.array([*self.fields, *((0, 0, 0, i) for i in absent)] or [(0, 0, 0, 0)], np.int64)
        places = np.empty((_BLOCK, len(self.segments)), np.int64)
        checks = [np.array(_checks(*segment) or [(0, 0, 0)], np.int64) for segment in self.segments]
        segments = np.array(
            [
                (len(raw), len(found), _address(found), i + 1 < len(self.segments))
                for i, ((raw, _), found) in enumerate(zip(self.segments, checks, strict=True))
            ],
            np.int64,
        )
        self._alive = fields, places, checks, segments
        count = len(self.fields) + len(absent)
        return np.array(
            [len(segments), _address(segments), count, _address(fields), _address(places)], np.int64
        )


def _checks(raw: bytes, mask: bytes) -> list[tuple[int, int, int]]:
    """Of as few words of 8 bytes as hold all bits of a mask: where they are, the bits, the mask."""
    found: list[tuple[int, int, int]] = []
    end = 0
    for i in range(len(raw)):
        if mask[i] and i >= end:
            end = i + 8
            bits = int.from_bytes(mask[i:end], "little", signed=False)
            kept = int.from_bytes(raw[i:end], "little") & bits
            found.append((i, _signed(kept), _signed(bits)))
    return found


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def layout_of(data: Any, flags: int, wanted: list[Any]) -> Layout | None:
    """The layout of a collection's first object, None if it isn't flat, or if another can't be like it."""
    try:
        return _layout_of(Cursor(data[:_MOST_NBYTES].data, options_of(flags)), data, flags, wanted)
    except DocumentError:  # what's wrong is found again, unless it's only that this is cut off
        return None


def _layout_of(cursor: Cursor, data: Any, flags: int, wanted: list[Any]) -> Layout | None:
    if cursor.code() != COLLECTION or cursor.peek() != OBJECT:
        return None
    compact = bool(flags & 1)
    begin = cursor.position
    cursor.code()
    fields: list[Field] = []
    segments: list[tuple[bytes, bytes]] = []
    loose: list[tuple[int, int]] = []  # places in a segment, and what bits of them may differ
    by_name = {one.name: i for i, one in enumerate(wanted)}
    seen: set[str] = set()

    def end_segment(end: int) -> None:
        raw = data[begin:end].tobytes()
        mask = bytearray(b"\xff" * len(raw))
        for place, bits in loose:
            mask[place] &= 255 ^ bits
        loose.clear()
        segments.append((raw, bytes(mask)))

    while (key_code := cursor.code()) >= UTF8:
        coded = cursor.position - 1  # in compact mode of both codes
        key = cursor.payload(key_code)
        code = cursor.peek()
        coded = coded if compact else cursor.position
        cursor.code()
        number = by_name.get(key)
        if key in seen or code is None or not TRUE <= code <= UTF8:
            return None
        seen.add(key)
        if number is not None and not _holds(wanted[number], code):
            return None
        if code == UTF8:
            at, (text, after) = cursor.position - begin, cursor._text()
            if text != begin + at + 1:
                return None
            if number is not None:
                fields.append((len(segments), at, code, number))
            loose.append((at, 0x7F))
            end_segment(text)
            begin = after
        elif code <= FALSE:
            fields.append((len(segments), coded - begin, code, -1 if number is None else number))
            loose.append((coded - begin, 0xF0 if compact else 0xFF))
        else:
            payload = cursor.position - begin
            cursor.payload(code)
            if number is not None:
                fields.append((len(segments), payload, code, number))
            loose.extend((payload + i, 0xFF) for i in range(PAYLOAD_NBYTES[code]))
    if key_code != OBJECT + 1 or cursor.peek() != OBJECT:
        return None
    end_segment(cursor.position)
    return Layout(segments, fields)


def _holds(one: Any, code: int) -> bool:
    """Whether a column holds all values of a code."""
    if code == UTF8:
        return bool(one.is_text)
    if code <= FALSE:
        return bool(one.kind == _BOOL)
    if code <= INT64:
        most = (1 << ((8 << (code - INT8)) - 1)) - 1
        return bool(one.kind == _INT and one.least <= -most - 1 and one.most >= most)
    return bool(one.kind == _FLOAT and (one.dtype.itemsize == 8 or code != FLOAT64))


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
