"""Protobuf bytes without a schema: fields by number and wire type, with guesses what their values are.

Bytes from anywhere are taken: nothing recurses, what is looked at for a guess is limited, and so is what
comes out.
"""

from __future__ import annotations

import codecs
import math
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from yaffjit.codec.verify_protobuf_met import fault_of_bytes
from yaffjit.codec.verify_protobuf_plain import BYTES, END, FIXED32, FIXED64, GROUP, VARINT
from yaffjit.plan.limits import MAX_DEPTH
from yaffjit.view.wire_scan import Malformed, end_of_value, end_of_varint, read_size, read_tag, varint_at

if TYPE_CHECKING:
    from yaffjit.errors import VerifyError
    from yaffjit.view.buffers import Data

# For a guess so many bytes of a text, and so many fields of a message, are looked at.
_LOOK_NBYTES = 4096
_LOOK_FIELDS = 200
# So much of one value is shown: characters, bytes, packed numbers.
_SHOWN_CHARACTERS = 200
_SHOWN_BYTES = 32
_SHOWN_NUMBERS = 16

TYPE_NAMES = {VARINT: "varint", FIXED64: "fixed64", BYTES: "bytes", GROUP: "group", FIXED32: "fixed32"}


class RawField(NamedTuple):
    """A field of bytes without a schema.

    Attributes:
        depth: of the message or group that it's in, 0 of the outermost.
        number, wire_type: of its tag.
        position: of its tag.
        nbytes: of its value; None of a group, whose end isn't looked for.
        guess: what the value may be: "varint", "fixed32", "fixed64", "group"; of bytes "text", "message",
            "packed varint", "packed float", "packed double", "bytes".
        value: a number, or the beginning of a text, of bytes, or of a list of numbers; None of "message" and
            "group", whose fields follow with the next depth.
        cut: whether there's more of the value.
    """

    depth: int
    number: int
    wire_type: int
    position: int
    nbytes: int | None
    guess: str
    value: Any
    cut: bool


class Unreadable(NamedTuple):
    """Where a message can't be read on.

    Attributes:
        depth: as of a field of the message.
        position: from where on.
        nbytes: that are left of the message.
        fault: what is wrong.
    """

    depth: int
    position: int
    nbytes: int
    fault: VerifyError


def raw_fields(data: Data) -> Iterator[RawField | Unreadable]:
    """The fields of protobuf bytes in order, each before those that are in it.

    Where a message can't be read an `Unreadable` comes, and what follows behind it, if its end is known.

    Args:
        data: bytes, or a memoryview of bytes.
    """
    # (end, number of the group or 0, begin) of the messages and groups that are open
    opened = [(len(data), 0, 0)]
    pos = 0
    while opened:
        end, group, begin = opened[-1]
        depth = len(opened) - 1
        if pos == end and not group:
            opened.pop()
            continue
        try:
            tag, start = read_tag(data, pos, end)
            number, wire_type = tag >> 3, tag & 7
            if wire_type == END and number == group and number:
                opened.pop()
                pos = start
                continue
            found = _field(data, depth, pos, start, end, number, wire_type)
        except (Malformed, IndexError):
            if pos < end:
                fault = fault_of_bytes(data, pos, end, depth)
            else:  # it's the beginning of the group that's wrong
                fault = fault_of_bytes(data, begin, end, depth - 1)
            yield Unreadable(depth, pos, end - pos, fault)
            # The ends of the groups that it's in aren't known either.
            while opened[-1][1]:
                opened.pop()
            opened.pop()
            pos = end
            continue
        yield found
        if found.guess == "group":
            opened.append((end, number, pos))
            pos = start
            continue
        assert found.nbytes is not None
        if wire_type == BYTES:
            start = read_size(data, start, end)[1]
        pos = start
        if found.guess == "message":
            opened.append((start + found.nbytes, 0, start))
        else:
            pos += found.nbytes


def _field(data: Data, depth: int, at: int, start: int, end: int, number: int, wire_type: int) -> RawField:
    if not number:
        raise Malformed
    if wire_type == GROUP and depth < MAX_DEPTH:
        return RawField(depth, number, wire_type, at, None, "group", None, False)
    if wire_type == BYTES:
        size, start = read_size(data, start, end)
        return RawField(depth, number, wire_type, at, size, *_guess(data, start, start + size, depth))
    stop = end_of_value(data, wire_type, start, end)
    if stop > end:
        raise Malformed
    bits = data[start:stop]
    value = varint_at(data, start) if wire_type == VARINT else int.from_bytes(bits, "little")
    return RawField(depth, number, wire_type, at, stop - start, TYPE_NAMES[wire_type], value, False)


def _guess(data: Data, start: int, stop: int, depth: int) -> tuple[str, Any, bool]:
    """What bytes may be, the beginning of the value, and whether there's more."""
    text = _text(data, start, stop)
    # Line feed and tab are tags of numbers 1, too.
    if text is not None and text.isprintable():
        return "text", text[:_SHOWN_CHARACTERS], _is_cut(text, stop - start)
    if depth < MAX_DEPTH and _is_message(data, start, stop):
        return "message", None, False
    if text is not None:
        return "text", text[:_SHOWN_CHARACTERS], _is_cut(text, stop - start)
    for guess in (_packed_varints, _packed_floats):
        found = guess(data, start, stop)
        if found is not None:
            return found
    return "bytes", bytes(data[start : min(stop, start + _SHOWN_BYTES)]), stop - start > _SHOWN_BYTES


def _is_cut(text: str, nbytes: int) -> bool:
    return len(text) > _SHOWN_CHARACTERS or nbytes > _LOOK_NBYTES


def _text(data: Data, start: int, stop: int) -> str | None:
    """The beginning of a text that people could read, or None."""
    looked = bytes(data[start : min(stop, start + _LOOK_NBYTES)])
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(looked, final=len(looked) == stop - start)
    except UnicodeDecodeError:
        return None
    return text if all(char.isprintable() or char in "\n\r\t" for char in text) else None


def _is_message(data: Data, pos: int, stop: int) -> bool:
    """Whether bytes can be read as fields, as far as it's looked at."""
    opened: list[int] = []
    try:
        for _ in range(_LOOK_FIELDS):
            if pos == stop:
                return not opened
            tag, pos = read_tag(data, pos, stop)
            number, wire_type = tag >> 3, tag & 7
            if not number:
                return False
            if wire_type == GROUP:
                opened.append(number)
            elif wire_type == END:
                if not opened or opened.pop() != number:
                    return False
            elif wire_type == BYTES:
                size, pos = read_size(data, pos, stop)
                pos += size
            else:
                pos = end_of_value(data, wire_type, pos, stop)
                if pos > stop:
                    return False
    except (Malformed, IndexError):
        return False
    return True


def _packed_varints(data: Data, pos: int, stop: int) -> tuple[str, Any, bool] | None:
    """Numbers without padding, most of them small."""
    values: list[int] = []
    begin = pos
    try:
        while pos < stop and len(values) < _LOOK_FIELDS:
            after = end_of_varint(data, pos, stop)
            if after - pos > 1 and data[after - 1] == 0:
                return None
            values.append(varint_at(data, pos))
            pos = after
    except Malformed:
        return None
    if pos - begin > 3 * len(values):
        return None
    return "packed varint", values[:_SHOWN_NUMBERS], pos < stop or len(values) > _SHOWN_NUMBERS


def _packed_floats(data: Data, start: int, stop: int) -> tuple[str, Any, bool] | None:
    """Numbers that aren't very large or small."""
    for code, width, guess in (("d", 8, "packed double"), ("f", 4, "packed float")):
        count = (stop - start) // width
        if count and (stop - start) % width == 0:
            values = struct.unpack_from(f"<{min(count, _LOOK_FIELDS)}{code}", data, start)
            if all(map(is_usual, values)):
                return guess, list(values[:_SHOWN_NUMBERS]), count > _SHOWN_NUMBERS
    return None


def is_usual(value: float) -> bool:
    """Whether a float is one that people write."""
    return value == 0 or (math.isfinite(value) and 1e-9 < abs(value) < 1e12)
