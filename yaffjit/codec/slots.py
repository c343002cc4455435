"""What a message's bytes are made of besides its values: formats of slots, metadata, headers, meta tables.

Nothing here knows a value; what comes out depends on the type and on which fields are written, and is
remembered by the caller.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from yaffjit.plan.model import SCALAR_CODE, FieldPlan, MessagePlan

UNSIGNED_CODE = {1: "B", 4: "I", 8: "Q"}
SIZE_CODE = {0: 0, 1: 1, 4: 2, 8: 3}

# a value -> its slot bits (XOR with the default), and whether only a presence bit can show that it's there
SlotOf = Callable[[Any], tuple[int, bool]]


@dataclass(frozen=True, slots=True)
class FlatHead:
    """A flat message up to its slots."""

    data: bytes  # metadata and header
    pack: Callable[..., bytes]  # of the slots
    count: int  # of live fields up to the last written one
    nbytes: int  # of header and slots


@dataclass(frozen=True, slots=True)
class SparseHead:
    """A sparse message up to its values."""

    header: bytes
    table: bytes
    pack: Callable[..., bytes]  # of the values
    indexes: tuple[int, ...]  # of the written fields
    nbytes: int  # of header and values


def value_code(f: FieldPlan) -> str:
    """The struct character of a value as it is."""
    return "I" if f.out_of_line else SCALAR_CODE[f.kind]


def slot_code(f: FieldPlan) -> str:
    """The struct character of a flat or fixed slot: of bits where they are XORed with a default."""
    return UNSIGNED_CODE[f.width] if f.default_bits else value_code(f)


def reads_zero(f: FieldPlan) -> bool:
    """An absent scalar reads as 0, and so does its slot."""
    return f.default_bits == 0 and f.declared_bits == 0


def slot_formats(mp: MessagePlan) -> list[str]:
    """For each live field its struct characters, those of the dead slots before it included."""
    formats = []
    end = 0
    for f in mp.fields:
        gap = f.offset - end
        formats.append((f"{gap}x" if gap else "") + slot_code(f))
        end = f.offset + f.width
    if mp.layout == "fixed" and mp.limit > end:
        formats.append(f"{mp.limit - end}x")
    return formats


def flat_head(mp: MessagePlan, formats: list[str], key: int) -> FlatHead:
    """``key`` is (mask of the written fields) << 1 | 1 with presence bits, (count of fields) << 1 without."""
    explicit = key & 1
    mask = key >> 1
    count = mask.bit_length() if explicit else mask
    fields = mp.fields[:count]
    last = fields[-1]
    present = {f.id for i, f in enumerate(fields) if mask >> i & 1}
    sized = int(mp.layout == "dynamic")
    stride = 2 * sized + explicit
    nbits = last.id * stride
    bits = 0
    for id, width in enumerate(mp.widths[: last.id], 1):
        group = SIZE_CODE[width] << explicit if sized else 0
        if explicit and id in present:
            group |= 1
        bits |= group << stride * (id - 1)
    header = 0x8000 | (last.id + 1) << 2 | sized << 1 | explicit
    return FlatHead(
        data=bits.to_bytes((nbits + 7) >> 3, "big") + header.to_bytes(2, "little"),
        pack=struct.Struct("<" + "".join(formats[:count])).pack,
        count=count,
        nbytes=2 + last.offset + last.width,
    )


def sparse_head(mp: MessagePlan, mask: int) -> SparseHead:
    """``mask``: the written fields, by their index."""
    indexes = tuple(i for i in range(mask.bit_length()) if mask >> i & 1)
    fields = [mp.fields[i] for i in indexes]
    last = fields[-1].id
    table = bytearray(last + max(0, last - 31))
    nbytes = 2
    for f in fields:
        if f.id < 32:
            table[len(table) - f.id] = nbytes
        else:
            struct.pack_into("<H", table, len(table) - 2 * f.id + 31, nbytes)
        nbytes += f.width
    return SparseHead(
        header=((last + 1) << 2 | 3).to_bytes(2, "little"),
        table=bytes(table),
        pack=struct.Struct("<" + "".join(map(value_code, fields))).pack,
        indexes=indexes,
        nbytes=nbytes,
    )


def slot_of(f: FieldPlan) -> SlotOf:
    """How a value of a field with a default of its own becomes a slot."""
    width = f.width
    default = f.default_bits
    if f.kind not in ("float", "double"):
        low = (1 << 8 * width) - 1

        def slot(value: Any) -> tuple[int, bool]:
            bits = int(value) & low ^ default
            return bits, bits == 0

        return slot

    pack = struct.Struct("<" + SCALAR_CODE[f.kind]).pack
    (number,) = struct.unpack("<" + SCALAR_CODE[f.kind], default.to_bytes(width, "little"))
    epsilon = 2.0**-23 if width == 4 else 2.0**-52
    sign = 1 << 8 * width - 1

    def float_slot(value: float) -> tuple[int, bool]:
        bits = int.from_bytes(pack(value), "little") ^ default
        # The reference calls neighbours equal, and without presence bits reads 0 and -0.0 as absent.
        near = abs(value - number) <= min(abs(value), abs(number)) * epsilon
        return bits, near or bits in (0, sign)

    return float_slot
