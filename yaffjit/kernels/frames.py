"""Splits a block of framed records: their messages move together, and where each was is noted.

Only well-formed records that are there whole are taken: at any other it stops, and the plain steps of
`build.frames` say what is the matter.
"""

from __future__ import annotations

from typing import Any

from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from yaffjit.kernels.cached import cached
from yaffjit.kernels.memory import load_u8, load_u32, store_i64

# The framings: the first three as in build.frames, and a length-delimited field of a protobuf message.
VARINT, LITTLE, BIG, FIELD = range(4)
MAX_NBYTES = 2**31 - 1
VARINT_NBYTES = 10


@intrinsic
def _move(typingctx: Any, target: Any, source: Any, nbytes: Any) -> Any:
    """Copy bytes by address; they may overlap."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target, source = (builder.inttoptr(arg, cgutils.voidptr_t) for arg in args[:2])
        cgutils.raw_memmove(builder, target, source, args[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@njit
def _varint(at: int, end: int) -> tuple[int, int]:
    """The varint at an address and the address behind it; -1 if it isn't whole, or above MAX_NBYTES."""
    value = 0
    for count in range(VARINT_NBYTES):
        if at + count >= end:
            return -1, at
        byte = load_u8(at + count)
        if count < 5:
            value |= (byte & 0x7F) << (7 * count)
        elif byte & 0x7F:
            return -1, at
        if byte < 0x80:
            return (value if value <= MAX_NBYTES else -1), at + count + 1
    return -1, at


@njit
def _big_endian(at: int) -> int:
    return load_u8(at) << 24 | load_u8(at + 1) << 16 | load_u8(at + 2) << 8 | load_u8(at + 3)


def _split(
    framing: int,
    tag: int,
    data: int,
    at: int,
    end: int,
    out: int,
    row: int,
    rows: int,
    offsets: int,
    positions: int,
    base: int,
    result: int,
) -> int:
    """Take records until one isn't whole and well-formed; returns the number of rows that there are now.

    Args:
        framing: VARINT, LITTLE, BIG or FIELD.
        tag: of FIELD, the tag that each record begins with.
        data: address of the block.
        at, end: where the first record begins, and where the last one must end, within the block.
        out: where the next message goes, within the block; at most ``at``.
        row, rows: how many messages there are already, and may be.
        offsets, positions: addresses of int64[rows + 1] and int64[rows] that are filled.
        base: position of the block in the file, added to ``positions``.
        result: address of two words: ``at`` and ``out`` when it ends.

    Requires: the block is writable and has ``end`` bytes; 0 <= out <= at <= end; the arrays are as long as
        said, and ``offsets[row]`` is set.
    Source: `build.frames.Framing.step`, and `build.envelope` for FIELD.
    """
    while row < rows and at < end:
        begin = data + at
        if framing == FIELD:
            found, begin = _varint(begin, data + end)
            if found != tag:
                break
        if framing in (LITTLE, BIG):
            if end - at < 4:
                break
            nbytes = load_u32(begin) if framing == LITTLE else _big_endian(begin)
            begin += 4
        else:
            nbytes, begin = _varint(begin, data + end)
        if nbytes < 0 or nbytes > MAX_NBYTES or nbytes > data + end - begin:
            break
        store_i64(positions + 8 * row, base + at)
        _move(data + out, begin, nbytes)
        out += nbytes
        at = begin - data + nbytes
        row += 1
        store_i64(offsets + 8 * row, out)
    store_i64(result, at)
    store_i64(result + 8, out)
    return row


split = cached(_split, nogil=True)
