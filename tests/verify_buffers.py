"""Buffers put together by hand, right ones and wrong ones, for the tests of the verifiers."""

from __future__ import annotations

import struct
from pathlib import Path

import yaffjit
from yaffjit.plan import MessagePlan

SCHEMA = yaffjit.load_schema(Path(__file__).parent / "schemas" / "verify.proto")
CODES = {0: 0, 1: 1, 4: 2, 8: 3}


def plan(name: str) -> MessagePlan:
    return SCHEMA[f"verify.{name}"].plan


def u8(value: int) -> bytes:
    return struct.pack("<B", value)


def u16(value: int) -> bytes:
    return struct.pack("<H", value)


def u32(value: int) -> bytes:
    return struct.pack("<I", value)


def i32(value: int) -> bytes:
    return struct.pack("<i", value)


def text(value: bytes) -> bytes:
    return u32(len(value)) + value + b"\0"


def root(before: bytes, message: bytes) -> bytes:
    """A buffer whose root message has ``before`` before its header."""
    return u32(4 + len(before)) + before + message


def flat_header(count: int, sized: bool = True, explicit: bool = False) -> bytes:
    return u16(0x8000 | (count + 1) << 2 | 2 * sized | explicit)


def metadata(widths: list[int], presence: list[bool] | None = None, sized: bool = True) -> bytes:
    """The presence and size bits of a flat message, as they lie before its header."""
    stream = 0
    width = 2 * sized + (presence is not None)
    for i, bytes_ in enumerate(widths):
        group = CODES[bytes_] if sized else 0
        if presence is not None:
            group = group << 1 | presence[i]
        stream |= group << width * i
    return stream.to_bytes((width * len(widths) + 7) // 8, "big")


def flat(*slots: bytes, presence: list[bool] | None = None, sized: bool = True) -> tuple[bytes, bytes]:
    """What lies before the header of a flat message, and the header with its slots."""
    before = metadata([len(slot) for slot in slots], presence, sized)
    return before, flat_header(len(slots), sized, presence is not None) + b"".join(slots)


def flat_root(*slots: bytes, then: bytes = b"") -> bytes:
    before, message = flat(*slots)
    return root(before, message + then)


def table(entries: dict[int, int]) -> bytes:
    """A sparse message's table."""
    highest = max(entries)
    size = highest + max(0, highest - 31)
    made = bytearray(size)
    for id, entry in entries.items():
        if id < 32:
            made[size - id] = entry
        else:
            made[size - 2 * id + 31 : size - 2 * id + 33] = u16(entry)
    return bytes(made)


def sparse_root(values: dict[int, bytes], then: bytes = b"") -> bytes:
    """A buffer with a sparse root message of these values."""
    entries = {}
    body = b""
    for id in sorted(values):
        entries[id] = 2 + len(body)
        body += values[id]
    header = u16((max(values) + 1) << 2 | 3)
    return root(table(entries) + i32(-4), header + body + then)


def chain(depth: int) -> bytes:
    """Trees in one another by their field ``left``; the innermost, at ``depth``, is empty."""
    step = b"\x02" + u16(0x800A) + u32(2 + 4 + 1)  # one 4-byte slot, then the next one's metadata
    if not depth:
        return u32(4) + u16(0x8000)
    last = b"\x02" + u16(0x800A) + u32(2 + 4)
    return u32(5) + step * (depth - 1) + last + u16(0x8000)


def doubling(levels: int) -> bytes:
    """A tree whose ``left`` and ``right`` are one and the same tree, and so on: 2**levels paths."""
    made = b""
    for level in range(levels):
        size = 2 + 8 + (level < levels - 1)
        made += b"\x0a" + u16(0x800E) + u32(size) * 2
    return u32(5) + made + u16(0x8000)


GOOD_GEO = flat_root(u32(6), then=text(b"Oslo"))


def slots(*numbers: int) -> list[bytes]:
    return [u32(number) for number in numbers]


def banner_slots(**offsets: int) -> list[bytes]:
    """The slots of a flat Banner up to the last one named."""
    fields = plan("Banner").by_name
    last = max(fields[name].id for name in offsets)
    widths = plan("Banner").widths[:last]
    values = {fields[name].id: value for name, value in offsets.items()}
    return [values.get(id, 0).to_bytes(width, "little") for id, width in enumerate(widths, 1)]


def banner(then: bytes, **offsets: int) -> bytes:
    """A flat Banner with these offsets, counted from the end of its slots."""
    size = 2 + sum(map(len, banner_slots(**offsets)))
    return flat_root(*banner_slots(**{name: size + at for name, at in offsets.items()}), then=then)


def shared_texts(length: int, paths: int, count: int = 1) -> bytes:
    """A Banner with ``paths`` tags for each of ``count`` texts."""
    tags = u32(paths * count)
    for i in range(paths * count):
        tags += u32(4 * paths * count + (length + 5) * (i % count))
    return banner(tags + text(b"x" * length) * count, tags=0)
