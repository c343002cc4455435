"""A YaFF buffer that grows from its end to its front.

Children come before what points at them, so each object is put in front of what is there already: the
chunks are kept in the order of writing and joined in reverse. The position of an object is the distance
of its first byte (of a message: of its header) from the end of the buffer, which never changes.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from typing import Any

from yaffjit.plan.limits import MAX_DEPTH
from yaffjit.plan.model import MAX_OFFSET

PARTS_SHOWN = 20  # of a path in an error

pack_u32 = struct.Struct("<I").pack
pack_i32 = struct.Struct("<i").pack


class Refused(Exception):
    """A value that can't be written; ``parts`` of its path are added on the way out, innermost last."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.parts: list[str] = []

    def within(self, part: str) -> Refused:
        self.parts.insert(0, part)
        return self

    def sentence(self, full_name: str) -> str:
        """The reason behind the names of the root message and of the field."""
        parts = self.parts
        if len(parts) > PARTS_SHOWN:
            left_out = len(parts) - PARTS_SHOWN
            parts = [*parts[: PARTS_SHOWN // 2], f"({left_out} more)", *parts[-PARTS_SHOWN // 2 :]]
        path = "".join(part if part.startswith("[") else f".{part}" for part in parts)
        where = f"{full_name}, field {path.removeprefix('.')}" if path else full_name
        return f"{where}: {self.reason}"


class Writer:
    """One buffer being written.

    ``shared`` holds the positions of all strings and scalar arrays by their whole bytes, ``tables`` the
    positions of the ends of all sparse meta tables: equal ones are written once.
    """

    __slots__ = ("chunks", "depth", "nbytes", "shared", "sparse", "tables")

    def __init__(self, sparse: bool) -> None:
        self.sparse = sparse  # the form of dynamic messages
        self.chunks: list[bytes] = []
        self.nbytes = 0
        self.depth = 0
        self.shared: dict[bytes, int] = {}
        self.tables: dict[bytes, int] = {}

    def enter(self) -> None:
        """Go into a message within a message, or into a map's pair."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Refused(f"messages nested deeper than {MAX_DEPTH}")

    def push(self, chunk: bytes) -> int:
        """Put ``chunk`` in front; its position."""
        self.chunks.append(chunk)
        self.nbytes += len(chunk)
        return self.nbytes

    def share(self, item: bytes) -> int:
        """Position of a string or scalar array with these bytes, written if it's the first."""
        position = self.shared.get(item)
        if position is None:
            self.chunks.append(item)
            position = self.nbytes = self.nbytes + len(item)
            self.shared[item] = position
        return position

    def text(self, value: str | bytes) -> int:
        """Position of a string or bytes object."""
        data = value.encode() if isinstance(value, str) else value
        count = len(data)
        if count > MAX_OFFSET:
            raise too_many(count, "bytes")
        item = pack_u32(count) + data + b"\0"
        position = self.shared.get(item)  # as `share`, without its call: most of the time is spent here
        if position is None:
            self.chunks.append(item)
            position = self.nbytes = self.nbytes + count + 5
            self.shared[item] = position
        return position

    def scalars(self, code: str, values: Sequence[Any]) -> int:
        """Position of an array of scalars; ``code`` is their struct character."""
        if len(values) > MAX_OFFSET:
            raise too_many(len(values), "elements")
        packed = bytes(values) if code == "?" else array(code, values).tobytes()
        return self.share(pack_u32(len(values)) + packed)

    def offsets(self, positions: list[int]) -> int:
        """Position of an array of offsets to the objects at ``positions``."""
        base = self.nbytes + 4 * len(positions)
        offsets = [base - position for position in positions]
        if base > MAX_OFFSET and max(offsets) > MAX_OFFSET:
            raise too_far(max(offsets))
        return self.push(pack_u32(len(offsets)) + array("I", offsets).tobytes())

    def finish(self, root: int) -> bytes:
        """The whole buffer, whose root message is at position ``root``."""
        self.chunks.append(pack_u32(self.nbytes + 4 - root))
        return b"".join(self.chunks[::-1])


def too_many(count: int, what: str) -> Refused:
    return Refused(f"{count} {what} (at most {MAX_OFFSET})")


def too_far(offset: int, what: str = "lies too far from its message") -> Refused:
    return Refused(f"{what}, {offset} bytes (at most {MAX_OFFSET})")
