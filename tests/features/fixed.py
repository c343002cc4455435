"""Messages that are the same in every Python: random ones, drawn by nothing that may change one day."""

from __future__ import annotations

import math
from random import Random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as F
from google.protobuf.message import Message

from features.messages import NEAR_NOW, WORDS

# No NaN: the largest value of a map would depend on the map's order.
FLOATS = (0.0, -0.0, 1.0, 0.1, 0.25, -1.5, 3.0, 9.75, 120.0, 1e-9, 1e30, math.inf)
SMALL = (*range(-3, 9), -(2**31), 2**31 - 1)
UNSIGNED = (*range(9), 2**31, 2**32 - 1)
LONG = (*SMALL, -(2**50) - 1, 2**50 + 1)
UNSIGNED_LONG = (*range(9), 2**53, 2**53 + 1, 2**60 + 1, 2**63, 2**63 + 5, 2**64 - 1)
VALUES: dict[int, tuple[Any, ...]] = {
    F.TYPE_STRING: WORDS,
    F.TYPE_BYTES: (b"", b"\0\xff", b"\0", b"abc"),
    F.TYPE_FLOAT: FLOATS,
    F.TYPE_DOUBLE: FLOATS,
    F.TYPE_BOOL: (False, True),
    F.TYPE_INT32: SMALL,
    F.TYPE_SINT32: SMALL,
    F.TYPE_UINT32: UNSIGNED,
    F.TYPE_INT64: LONG,
    F.TYPE_UINT64: UNSIGNED_LONG,
    F.TYPE_FIXED64: UNSIGNED_LONG,
    F.TYPE_ENUM: tuple(range(-1, 7)),
}
VALUES_OF: dict[str, tuple[Any, ...]] = {
    "google.protobuf.Timestamp.seconds": (NEAR_NOW, NEAR_NOW - 77, 0, -1, NEAR_NOW - 864_000, 9_000_000_000),
    "google.protobuf.Duration.seconds": tuple(range(0, 90, 7)),
    "google.protobuf.Timestamp.nanos": (0, 1, 500_000_000, 999_999_999),
    "google.protobuf.Duration.nanos": (0, 1, 500_000_000, 999_999_999),
}


def fixed_messages(message_class: Any, count: int) -> list[Any]:
    """That many messages of a class."""
    draw = _Draw()
    made = []
    for _ in range(count):
        message = message_class()
        draw.fill(message, 4)
        made.append(message)
    return made


class _Draw:
    def __init__(self) -> None:
        self._random = Random(7).random  # of all that Random has, this alone stays as it is

    def below(self, limit: int) -> int:
        return int(self._random() * limit)

    def value(self, field: FieldDescriptor) -> Any:
        values = VALUES_OF.get(field.full_name) or VALUES[field.type]
        return values[self.below(len(values))]

    def fill(self, message: Message, depth: int) -> None:
        for field in message.DESCRIPTOR.fields:
            if self.below(3):
                self._fill_field(message, field, depth)

    def _fill_field(self, message: Message, field: FieldDescriptor, depth: int) -> None:
        held = getattr(message, field.name)
        entry = field.message_type
        if field.is_repeated and entry is not None and entry.GetOptions().map_entry:
            key, value = entry.fields
            for _ in range(self.below(5)):
                name = self.value(key)
                if value.message_type is None:
                    held[name] = self.value(value)
                elif depth > 0:
                    self.fill(held[name], depth - 1)
        elif field.is_repeated:
            for _ in range(self.below(5 if entry is None or depth > 2 else 2)):
                if entry is None:
                    held.append(self.value(field))
                elif depth > 0:
                    self.fill(held.add(), depth - 1)
        elif entry is None:
            setattr(message, field.name, self.value(field))
        elif depth > 0:
            held.SetInParent()
            self.fill(held, depth - 1)
