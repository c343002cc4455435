"""Where a field of a YaFF message lies, in plain Python: the reading rules of one header, nothing else.

A locator is compiled once per field and takes ``(data, at)``: the buffer as ``bytes`` or a byte
memoryview, and the absolute position of the message. Nothing here checks bounds: the bytes are
verified before, or trusted.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeAlias

from yaffjit.errors import VerifyError
from yaffjit.plan.model import FieldPlan, MessagePlan

Buffer: TypeAlias = bytes | memoryview
Locator = Callable[[Buffer, int], int]

# Header bits of flat and sparse messages.
FLAT = 0x8000
SIZED = 2
EXPLICIT = 1
CODE_WIDTH = (0, 1, 4, 8)  # slot bytes by size code

read_u16 = struct.Struct("<H").unpack_from
read_u32 = struct.Struct("<I").unpack_from
read_i32 = struct.Struct("<i").unpack_from


def metadata_bits(data: Buffer, at: int, nbits: int) -> int:
    """The first ``nbits`` metadata bits of the flat message at ``at``, bit i of the stream in bit i."""
    return int.from_bytes(data[at - ((nbits + 7) >> 3) : at], "big")


def hole_widths(holes: tuple[int, ...]) -> Callable[[Buffer, int, int], int]:
    """A function (data, at, header) -> bytes that data of an older schema has at the ids ``holes``.

    It raises VerifyError where the data doesn't carry slot sizes, so that nobody can tell.
    """
    last = holes[-1]
    plain = tuple(2 * (id - 1) for id in holes)
    beside_presence = tuple(3 * (id - 1) + 1 for id in holes)

    def widths(data: Buffer, at: int, header: int) -> int:
        if not header & SIZED:
            gives = "the message gives no sizes to find what follows"
            raise VerifyError(f"id {holes[0]} was removed, but {gives}", at)
        if header & EXPLICIT:
            bits, shifts = metadata_bits(data, at, 3 * last), beside_presence
        else:
            bits, shifts = metadata_bits(data, at, 2 * last), plain
        total = 0
        for shift in shifts:
            total += CODE_WIDTH[bits >> shift & 3]
        return total

    return widths


def locate(mp: MessagePlan, f: FieldPlan) -> Locator:
    """A function (data, at) -> absolute position of the slot of field ``f``, -1 if the message has none.

    Under flat and fixed the slot may belong to an absent field and is then 0; under sparse a slot
    means presence.
    """
    layout = mp.layout
    if layout == "fixed":
        fixed_offset = f.offset
        return lambda data, at: at + fixed_offset

    flat_above = f.id << 2 | 0x8003
    sparse_above = f.id << 2 | 3
    flat_offset = 2 + f.offset
    holes = hole_widths(f.holes) if f.holes else None
    # The entry's place, counted back from the end of the table: one byte up to id 31, then two.
    wide = f.id >= 32
    entry = 2 * f.id - 31 if wide else f.id

    def sparse(data: Buffer, at: int, header: int) -> int:
        if not sparse_above < header < FLAT:
            return -1
        pos = at + read_i32(data, at - 4)[0] - entry
        offset: int = read_u16(data, pos)[0] if wide else data[pos]
        return at + offset if offset else -1

    def locate_sparse(data: Buffer, at: int) -> int:
        return sparse(data, at, data[at] | data[at + 1] << 8)

    def locate_flat(data: Buffer, at: int) -> int:
        return at + flat_offset if flat_above < data[at] | data[at + 1] << 8 else -1

    def locate_dynamic(data: Buffer, at: int) -> int:
        header = data[at] | data[at + 1] << 8
        if flat_above < header:
            return at + flat_offset
        return sparse(data, at, header)

    def locate_after_holes(data: Buffer, at: int) -> int:
        header = data[at] | data[at + 1] << 8
        if flat_above < header:
            assert holes is not None
            return at + flat_offset + holes(data, at, header)
        return sparse(data, at, header)

    if layout == "sparse":
        return locate_sparse
    if holes is not None:
        return locate_after_holes
    return locate_flat if layout == "flat" else locate_dynamic


def presence(mp: MessagePlan, f: FieldPlan) -> Callable[[Buffer, int], bool]:
    """A function (data, at) -> whether field ``f`` is present: slot bits != 0, or a scalar's presence bit."""
    find = locate(mp, f)
    width = f.width
    has_bit = f.is_scalar
    fixed = mp.layout == "fixed"
    bit = f.id - 1

    def present(data: Buffer, at: int) -> bool:
        pos = find(data, at)
        if pos < 0:
            return False
        if not fixed:
            header = data[at] | data[at + 1] << 8
            if not header & FLAT:
                return True
            if has_bit and header & EXPLICIT:
                i = 3 * bit if header & SIZED else bit
                return bool(data[at - 1 - (i >> 3)] >> (i & 7) & 1)
        return int.from_bytes(data[pos : pos + width], "little") != 0

    return present


def target(mp: MessagePlan, f: FieldPlan) -> Locator:
    """A function (data, at) -> absolute position of the object of out-of-line field ``f``, or -1."""
    find = locate(mp, f)

    def follow(data: Buffer, at: int) -> int:
        pos = find(data, at)
        if pos < 0:
            return -1
        offset: int = read_u32(data, pos)[0]
        return at + offset if offset else -1

    return follow
