"""Protobuf bytes as no serializer writes them, and damaged ones; what transcoding them must give.

Fields in any order and several times, sub-messages in parts, packed and unpacked values mixed, padded
varints, unknown fields and groups, values at their edges.
"""

from __future__ import annotations

import math
import random
import struct
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError as ProtobufError

import yaffjit as yj

F = FieldDescriptor
VARINT_TYPES = (
    F.TYPE_INT64,
    F.TYPE_UINT64,
    F.TYPE_INT32,
    F.TYPE_BOOL,
    F.TYPE_UINT32,
    F.TYPE_ENUM,
    F.TYPE_SINT32,
    F.TYPE_SINT64,
)
FIXED32_TYPES = (F.TYPE_FLOAT, F.TYPE_FIXED32, F.TYPE_SFIXED32)
TEXTS = (b"", b"a", b"a\0", b"Z", "caf\u00e9".encode(), b"x" * 40, b"key", b"anise", "\U0001d11e".encode())
BAD_TEXTS = (b"\xff\xfe", b"\xed\xa0\x80", b"y" * 300)
NUMBERS = (0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1, 2**64 - 2**31)
FLOATS = (1.5, -2.25, -4.0, 1e-9, math.pi, 3.14159274, 3.141593, 0.333333, math.inf, math.nan, 0.0, 1.0)
MAX_DEPTH = 3


def varint(number: int) -> bytes:
    groups = bytearray()
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    groups.append(number)
    return bytes(groups)


class Maker:
    """Makes messages by one source of chance."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def happens(self, probability: float) -> bool:
        return self.chance.random() < probability

    def varint(self, number: int, most: int = 10) -> bytes:
        """A varint, now and then padded."""
        groups = bytearray(varint(number))
        if self.happens(0.04):
            more = self.chance.randint(0, most - len(groups))
            if more:
                groups[-1] |= 128
                groups += b"\x80" * (more - 1) + b"\0"
        return bytes(groups)

    def tag(self, number: int, wire_type: int) -> bytes:
        return self.varint(number << 3 | wire_type, 5)

    def counted(self, number: int, data: bytes) -> bytes:
        return self.tag(number, 2) + self.varint(len(data), 5) + data

    def number(self) -> int:
        which = self.chance.random()
        if which < 0.4:
            return self.chance.choice((0, 1, 2, 3, 5, 127, 128, 300))
        if which < 0.6:
            return self.chance.getrandbits(self.chance.choice((7, 14, 31, 32, 33, 63, 64)))
        return self.chance.choice(NUMBERS)

    def scalar(self, field: FieldDescriptor) -> bytes:
        if field.type == F.TYPE_ENUM and self.happens(0.8):
            value = self.chance.choice(field.enum_type.values).number
            return self.varint(value & 2**64 - 1)
        if field.type in VARINT_TYPES:
            return self.varint(self.number())
        width = 4 if field.type in FIXED32_TYPES else 8
        which = self.chance.random()
        if which < 0.4:
            return bytes(width - 1) + self.chance.choice((b"\0", b"\x80"))
        if field.type in (F.TYPE_FLOAT, F.TYPE_DOUBLE):
            return self.float(field, width)
        return self.chance.getrandbits(8 * width).to_bytes(width, "little")

    def float(self, field: FieldDescriptor, width: int) -> bytes:
        """An edge, or what is near it: defaults and their neighbours have rules of their own."""
        own = () if field.is_repeated else (field.default_value,)
        value = self.chance.choice((*FLOATS, *own)) * self.chance.choice((1.0, 1.0, -1.0))
        data = struct.pack("<f" if width == 4 else "<d", value)
        if self.happens(0.3):
            data = bytes([data[0] ^ self.chance.choice((1, 2, 3))]) + data[1:]
        return data

    def text(self, field: FieldDescriptor) -> bytes:
        often = field.type == F.TYPE_STRING and self.happens(0.97)
        return self.chance.choice(TEXTS if often else (*TEXTS, *BAD_TEXTS))

    def unknown(self, depth: int = 0) -> bytes:
        number = self.chance.choice((self.chance.randint(1, 40), self.chance.randint(1, 2**29 - 1), 33554431))
        wire_type = self.chance.choice((0, 1, 2, 3, 5))
        tag = self.tag(number, wire_type)
        if wire_type == 0:
            return tag + self.varint(self.number())
        if wire_type == 2:
            return tag + self.varint(3, 5) + b"abc"
        if wire_type == 3:
            held = [self.unknown(depth + 1) for _ in range(self.chance.randint(0, 2 * (depth < 3)))]
            return tag + b"".join(held) + self.tag(number, 4)
        return tag + bytes(8 if wire_type == 1 else 4)

    def field(self, field: FieldDescriptor, depth: int) -> bytes:
        number = field.number
        if field.message_type is not None:
            held = self.message(field.message_type, depth + 1)
            if field.type == F.TYPE_GROUP:
                return self.tag(number, 3) + held + self.tag(number, 4)
            return self.counted(number, held)
        if field.type in (F.TYPE_STRING, F.TYPE_BYTES):
            return self.counted(number, self.text(field))
        if field.is_repeated and self.happens(0.5):
            values = [self.scalar(field) for _ in range(self.chance.randint(0, 4))]
            return self.counted(number, b"".join(values))
        wire_type = 0 if field.type in VARINT_TYPES else 5 if field.type in FIXED32_TYPES else 1
        return self.tag(number, wire_type) + self.scalar(field)

    def message(self, descriptor: Descriptor, depth: int = 0) -> bytes:
        fields = list(descriptor.fields)
        count = self.chance.choice((0, 1, 3, len(fields), 2 * len(fields)))
        if depth > 1:
            count = min(count, 4)
        # Some fields come often, so that they come several times.
        often = self.chance.sample(fields, min(len(fields), self.chance.randint(1, 4)))
        parts = []
        for _ in range(count if fields and depth <= MAX_DEPTH else 0):
            field = self.chance.choice(often if self.happens(0.5) else fields)
            if field.message_type is None or depth < MAX_DEPTH:
                parts.append(self.unknown() if self.happens(0.03) else self.field(field, depth))
        if not fields and self.happens(0.3):
            parts.append(self.unknown())
        return b"".join(parts)

    def damaged(self, data: bytes) -> bytes:
        """A copy with one or some changes that parsers trip over."""
        made = bytearray(data or b"\x08")
        for _ in range(self.chance.choice((1, 1, 1, 2, 4))):
            at = self.chance.randrange(len(made)) if made else 0
            how = self.chance.randrange(7)
            if how == 0 and made:
                made[at] ^= 1 << self.chance.randrange(8)
            elif how == 1 and made:
                made[at] = self.chance.choice((0, 1, 2, 3, 4, 7, 8, 10, 0x7F, 0x80, 0xFF))
            elif how == 2:
                del made[at:]
            elif how == 3:
                del made[at : at + 1]
            elif how == 4:
                made.insert(at, self.chance.choice((0, 1, 3, 4, 8, 0x80, 0xFF, self.chance.randrange(256))))
            elif how == 5:
                other = self.chance.randrange(len(made) + 1)
                made[at:at] = made[other : other + self.chance.randint(1, 8)]
            else:
                del made[at : self.chance.randrange(len(made) + 1)]
        return bytes(made)


def expected(message_type: yj.MessageType, payload: bytes, layout: str) -> bytes | str:
    """What parsing and `encode` give: a buffer, or which of them refuses."""
    message: Any
    try:
        message = message_type.message_class.FromString(payload)
    except ProtobufError:
        return "DecodeError"
    try:
        return message_type.encode(message, layout)
    except yj.EncodeError:
        return "EncodeError"
