"""The words for what a reader meets that takes a protobuf message apart only as far as it's read.

They are those of `yaffjit.codec.verify_protobuf_plain`, of one message without what lies in it.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from yaffjit.codec.verify_protobuf_plain import BYTES, VARINT, Check, Field, Frame, WireType
from yaffjit.errors import VerifyError, YaffjitError
from yaffjit.plan import Plan


class Place(NamedTuple):
    """Which message one is, from the root on.

    Attributes:
        outer: that of the message which has it as a field; None of a root.
        name: of the field; the full name of a root.
        number: in a repeated field, from 0; the row of a root; None if there's none.
        begin: of a root, where its bytes begin, absolute.
        depth: 0 of a root.
        pieces: of a message that was merged, begin of each fragment in its own bytes, and in those of the
            outer one; else both are empty.
    """

    outer: Place | None
    name: str
    number: int | None = None
    begin: int = 0
    depth: int = 0
    pieces: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    def position(self, pos: int) -> int:
        """Where a byte of the message is in the bytes of its root; ``pos`` is absolute in its own data."""
        place = self
        while place.outer is not None:
            own, outer = place.pieces
            if own:
                piece = bisect_right(own, pos) - 1
                pos += outer[piece] - own[piece]
            place = place.outer
        return pos - place.begin


def fault_met(
    plan: Plan, full_name: str, data: bytes | memoryview, begin: int, end: int, place: Place, at: int = -1
) -> YaffjitError:
    """What to raise for the message in ``data[begin:end]`` whose reader found something wrong.

    Args:
        plan: the schema that has the message.
        full_name: its type.
        data, begin, end: its bytes.
        place: which message it is.
        at: absolute begin of what was read in it (a text, packed numbers, a message), -1 if nothing was.
    """
    try:
        _Met(plan, full_name, memoryview(data)[begin:end], place.depth, at - begin).run()
    except VerifyError as error:
        assert error.position is not None
        return placed(error, begin + error.position, place)
    return YaffjitError(f"{full_name}: a reader refuses what the check accepts; this is a bug of yaffjit")


def placed(error: VerifyError, pos: int, place: Place) -> VerifyError:
    """An error of one message as one of its root: its message, path and row, and ``pos`` from its begin."""
    position = place.position(pos)
    steps = [error.path] if error.path else []
    while place.outer is not None:
        steps.append(place.name if place.number is None else f"{place.name}[{place.number}]")
        place = place.outer
    found = VerifyError(
        error.text,
        position,
        message=place.name,
        path=".".join(reversed(steps)),
        found=error.found,
        limit=error.limit,
        row=place.number,
    )
    found.hint = error.hint
    return found


def fault_of_bytes(data: bytes | memoryview, begin: int, end: int, depth: int) -> VerifyError:
    """What is wrong with the bytes from ``begin`` to ``end`` as a message of any type, which they aren't."""
    try:
        _Bare(memoryview(data)[begin:end], depth).run()
    except VerifyError as error:
        assert error.position is not None
        position = begin + error.position
        return VerifyError(error.text, position, path=error.path, found=error.found, limit=error.limit)
    raise AssertionError(f"bytes {begin} to {end} are a message")


class _Bare(Check):
    """Checks bytes without a schema, in a message that's ``depth`` deep: all fields are unknown ones."""

    def __init__(self, data: memoryview, depth: int) -> None:
        self.depth = depth
        self.data = data
        self.pos = 0
        self.step = ""
        self.frames = [Frame(WireType("", {}, is_entry=False, takes_zero=False), len(data), 0, 0, None, "")]

    def check_depth(self, depth: int, at: int) -> None:
        super().check_depth(self.depth + depth, at)


class _Met(Check):
    """Checks what opening a message checks, and what begins at ``strict`` as far as reading that does."""

    def __init__(self, plan: Plan, full_name: str, data: memoryview, depth: int, strict: int) -> None:
        super().__init__(plan, full_name, data, None)
        self.depth = depth
        self.strict = strict

    def enter(self, frame: Frame, f: Field, wire_type: int) -> None:
        at = self.pos
        size = self.size(frame.end) if wire_type == BYTES else 0
        if self.pos == self.strict:
            self.check_depth(1, at)
        if wire_type == BYTES:
            self.pos += size
        else:
            self.skip_group(frame, f.number, at)

    def packed(self, frame: Frame, f: Field) -> None:
        at = self.pos
        size = self.size(frame.end)
        if f.wire_type == VARINT and self.pos != self.strict:
            self.pos += size
            return
        self.pos = at
        super().packed(frame, f)

    def text(self, f: Field, size: int) -> None:
        if self.pos == self.strict:
            super().text(f, size)
        else:
            self.pos += size

    def check_depth(self, depth: int, at: int) -> None:
        super().check_depth(self.depth + depth, at)
