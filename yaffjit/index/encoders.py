"""How messages become the bytes that an index stores: one encoder a representation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Thread
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from yaffjit.build.unknown import UnknownFields
from yaffjit.codec.encode import encode, own_message
from yaffjit.codec.transcode import prepare, transcode_many
from yaffjit.codec.verify_protobuf import faults_of_many, verify_protobuf
from yaffjit.errors import DecodeError, EncodeError
from yaffjit.index.sources import Offsets, Unit
from yaffjit.plan import MessagePlan

FLAT_BIT = 0x80  # in the second byte of the header of a dynamic message


@dataclass
class Made:
    """What became of a unit.

    Attributes:
        data, offsets: as they are stored; rows that are bad have no bytes.
        errors: of bad rows.
        uncarried: occurrences of fields that aren't carried, by full name of the message and number.
        uncounted: how many more there were.
    """

    unit: Unit
    data: NDArray[np.uint8]
    offsets: Offsets
    errors: dict[int, DecodeError | EncodeError]
    uncarried: Counter[tuple[str, int]] = field(default_factory=Counter)
    uncounted: int = 0


class Encoder(Protocol):
    """Makes what is stored of messages."""

    def prepare(self, nbytes: int) -> Thread | None:
        """Have what encodes so many bytes there in time; a thread that is still at it, to be joined."""

    def many(self, unit: Unit) -> Made:
        """Of protobuf bytes; threads call it at the same time."""

    def one(self, item: Any) -> bytes:
        """Of a Python object. Raises EncodeError or DecodeError."""

    def default(self) -> bytes:
        """What stands for a null row."""

    def count(self, data: NDArray[np.uint8], offsets: Offsets) -> None:
        """Called with messages that are stored, for `layouts`."""

    def layouts(self, rows: int) -> dict[str, int]:
        """How many of the rows have which layout at their root."""


def encoder(mp: MessagePlan, representation: str, layout: str, counted: UnknownFields) -> Encoder:
    """The encoder of one representation; ``counted`` is told of what objects hold and isn't carried."""
    if representation == "protobuf":
        return _Protobuf(mp)
    return _Yaff(mp, layout, counted)


class _Yaff:
    def __init__(self, mp: MessagePlan, layout: str, counted: UnknownFields) -> None:
        self._mp = mp
        self._layout = layout
        self._read = _reader(mp, counted)
        self._is_mixed = mp.layout == "dynamic" and not mp.gapped and layout in ("auto", "smallest")
        self._flat = 0

    def prepare(self, nbytes: int) -> Thread | None:
        return prepare(self._mp, self._layout, nbytes)

    def many(self, unit: Unit) -> Made:
        done = transcode_many(
            *(self._mp, unit.data, unit.offsets, self._layout, 1, unit.number), keep_errors=True
        )
        return Made(unit, done.data, done.offsets, done.errors, done.uncarried, done.uncounted)

    def one(self, item: Any) -> bytes:
        return encode(self._mp, self._read(item), self._layout)

    def default(self) -> bytes:
        return encode(self._mp, class_of(self._mp)(), self._layout)

    def count(self, data: NDArray[np.uint8], offsets: Offsets) -> None:
        if self._is_mixed:
            self._flat += _flat_roots(data, offsets)
        elif self._layout != "sparse" and not self._mp.gapped:
            self._flat += len(offsets) - 1

    def layouts(self, rows: int) -> dict[str, int]:
        if self._mp.layout != "dynamic":
            return {self._mp.layout: rows}
        return {"flat": self._flat, "sparse": rows - self._flat}


class _Protobuf:
    """Protobuf bytes are stored as they come, once they are verified; objects are serialized."""

    def __init__(self, mp: MessagePlan) -> None:
        self._mp = mp
        self._class = class_of(mp)

    def prepare(self, nbytes: int) -> None:
        """Nothing: the verifier loads itself, in little time."""

    def many(self, unit: Unit) -> Made:
        mp, offsets = self._mp, unit.offsets
        errors: dict[int, DecodeError | EncodeError] = dict(
            faults_of_many(mp.plan, mp.full_name, unit.data, offsets, unit.number)
        )
        begin, end = int(offsets[0]), int(offsets[-1])
        # A copy, because readers may use their buffers again.
        data = np.frombuffer(unit.data, np.uint8)[begin:end].copy()
        if not errors:
            return Made(unit, data, offsets - begin, errors)
        lengths = np.diff(offsets)
        bad = np.zeros(unit.rows, np.bool_)
        bad[list(errors)] = True
        kept = np.repeat(~bad, lengths)
        lengths[bad] = 0
        return Made(unit, data[kept], np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths))), errors)

    def one(self, item: Any) -> bytes:
        mp, own_class = self._mp, self._class
        own = item if type(item) is own_class else own_message(mp, own_class, item)
        payload: bytes = own_class.SerializePartialToString(own, deterministic=True)
        verify_protobuf(mp.plan, mp.full_name, payload)
        return payload

    def default(self) -> bytes:
        return b""

    def count(self, data: NDArray[np.uint8], offsets: Offsets) -> None:
        """There is nothing to count."""

    def layouts(self, rows: int) -> dict[str, int]:
        return {}


def class_of(mp: MessagePlan) -> Any:
    """protobuf's class of a message."""
    return mp.plan.schema.message_class(mp.full_name)


def _flat_roots(data: NDArray[np.uint8], offsets: Offsets) -> int:
    """How many of the dynamic messages are flat, by their headers."""
    at = offsets[:-1]
    root = at + data[at]
    for byte in range(1, 4):
        root += data[at + byte].astype(np.int64) << 8 * byte
    return int(np.count_nonzero(data[root + 1] & FLAT_BIT))


def _reader(mp: MessagePlan, counted: UnknownFields) -> Callable[[Any], Any]:
    """Turns what people have into what `encode` takes, and counts what is lost."""
    from google.protobuf.message import Message

    from yaffjit.view import View

    message_class = class_of(mp)

    def read(item: Any) -> Any:
        if isinstance(item, dict):
            return item
        if isinstance(item, View):
            item = View.to_message(item)
        if isinstance(item, Message):
            if type(item) is not message_class:
                item = own_message(mp, message_class, item)
            counted.count(item)
        return item

    return read
