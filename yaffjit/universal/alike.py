"""Objects that lie at one stride: collections of flat objects with the same keys, and values of fixed width.

In compact mode an object without nested ones has an even number of codes, so each begins in the high nibble
of a byte, and all are aligned alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from yaffjit.kernels.universal_columns import Kernels

_NEXT_OBJECT = 0x12  # in compact mode the last byte of an object that another follows
_MOST_NBYTES = 4096
_BOOL, _INT, _FLOAT = range(3)


class Layout:
    """Where the values of an object are that all others may be like.

    Attributes:
        begin: where the first object is; in compact mode its first code is pending there.
        template: its bytes.
        mask: of each the bits that must be the same in others.
        fields: of each value where it is, its code, and its column; of a bool the byte with its code.
    """

    def __init__(self, begin: int, template: bytes) -> None:
        self.begin = begin
        self.template = np.frombuffer(template, np.uint8)
        self.mask = np.full(len(template), 255, np.uint8)
        self.fields: list[tuple[int, int, int]] = []


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
    fields: list[tuple[int, int, int]] = []
    loose: list[tuple[int, int]] = []  # places, and what bits of them may differ
    by_name = {one.name: i for i, one in enumerate(wanted)}
    seen: set[str] = set()
    while (key_code := cursor.code()) >= UTF8:
        place = cursor.position - 1  # in compact mode of both codes
        key = cursor.payload(key_code)
        code = cursor.peek()
        place = place if compact else cursor.position
        cursor.code()
        number = by_name.get(key)
        if key in seen or code is None or not TRUE <= code < UTF8:
            return None
        seen.add(key)
        if number is not None and not _holds(wanted[number], code):
            return None
        if code <= FALSE:
            fields.append((place - begin, code, len(wanted) if number is None else number))
            loose.append((place - begin, 0xF0 if compact else 0xFF))
        else:
            payload = cursor.position - begin
            cursor.payload(code)
            if number is not None:
                fields.append((payload, code, number))
            loose.extend((payload + i, 0xFF) for i in range(PAYLOAD_NBYTES[code]))
    if key_code != OBJECT + 1 or cursor.peek() != OBJECT:
        return None
    end = cursor.position
    layout = Layout(begin, data[begin:end].tobytes())
    layout.fields = fields
    for place, bits in loose:
        layout.mask[place] &= 255 ^ bits
    return layout


def _holds(one: Any, code: int) -> bool:
    """Whether a column holds all values of a code."""
    if code <= FALSE:
        return bool(one.kind == _BOOL)
    if code <= INT64:
        most = (1 << ((8 << (code - INT8)) - 1)) - 1
        return bool(one.kind == _INT and one.least <= -most - 1 and one.most >= most)
    return bool(one.kind == _FLOAT and (one.dtype.itemsize == 8 or code != FLOAT64))


def fill_alike(kernels: Kernels, data: NDArray[np.uint8], state: Any, wanted: list[Any]) -> None:
    """Read the first objects of a collection as long as they are like the first one; the progress says so."""
    from yaffjit.universal.columnar import likely_rows

    layout = layout_of(data, state.flags, wanted)
    if layout is None:
        return
    stride = len(layout.template)
    fields = np.array(layout.fields, np.int64)
    most = (len(data) - layout.begin) // stride
    address = _address(data) + layout.begin
    row = 0
    while row < most:
        if row == state.capacity:
            state.room(row + min(likely_rows(row, row * stride, most * stride), most - row + 1))
        rows = min(most, state.capacity) - row
        unwanted = np.empty(state.capacity, np.uint8)
        spare = [0, 0, 0, 1, _address(unwanted), 0, 0, 0, 0, 0]  # for bools that aren't asked for
        columns = np.array([*(one.words() for one in wanted), spare], np.int64)
        columns[:, 4] += row * columns[:, 3]
        read = kernels.from_alike(
            *(address + row * stride, rows, stride, _address(layout.template), _address(layout.mask)),
            *(_address(fields), len(layout.fields), _address(columns), state.flags),
        )
        for number in {number for _, _, number in layout.fields if number < len(wanted)}:
            wanted[number].missing[row : row + read] = 0
        for one in wanted:
            if one.is_text:
                one.offsets[row + 1 : row + read + 1] = one.offsets[row]
        row += read
        pending = 16 + OBJECT if state.flags & 1 else 0
        if row:
            state.progress[:2] = (layout.begin + row * stride) * 32 + pending, row
        if read < rows:
            return


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
