"""Where the protobuf message of a row is, by the tables that records have (`yaffjit.jit.records`).

Its beginning and its number of bytes come from one function, so that LLVM keeps them together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir
from numba.core import cgutils

from yaffjit.jit.emit.outline import I64, NULL, POINTER, Body, call_outlined
from yaffjit.plan.pages import CHUNK_NBYTES, OFFSETS_AT

PLACE_SHIFT = 4  # of the table of scattered records: address, bytes
_PLACE = ir.LiteralStructType([POINTER, I64])


def nbytes_in_chunk(builder: ir.IRBuilder, offsets: ir.Value, row: ir.Value) -> ir.Value:
    """The bytes of a row, by the address of its chunk's offsets; all are int64."""

    def emit(body: Body) -> None:
        body.builder.ret(_nbytes(body, *body.args))

    return call_outlined(builder, "nbytes_in_chunk", "", I64, [offsets, row], emit, frozen=True)


def _nbytes(body: Body, offsets: ir.Value, row: ir.Value) -> ir.Value:
    b = body.builder
    at = b.inttoptr(b.add(offsets, b.shl(row, I64(3))), POINTER)
    return b.sub(body.load(at, 8, I64), body.load(at, 0, I64))


def regular(
    builder: ir.IRBuilder,
    chunk_of: Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value],
    table: ir.Value,
    row: ir.Value,
    only: Sequence[ir.Value],
) -> tuple[ir.Value, ir.Value]:
    """Where the message of a row begins, and its bytes.

    Args:
        chunk_of: finds the words of a row's chunk.
        table: of chunks.
        row: counts from the first chunk.
        only: addresses of the data and the offsets of the only chunk; zeros if there are several.
    """

    def emit(body: Body) -> None:
        b = body.builder
        table, row, data, offsets = body.args
        with b.if_then(b.icmp_unsigned("!=", data, I64(0))):
            give(body, data, offsets, row)
        chunk = chunk_of(b, table, row)
        give(body, body.load(chunk, 0, I64), body.load(chunk, OFFSETS_AT, I64), row)

    def give(body: Body, data: ir.Value, offsets: ir.Value, row: ir.Value) -> None:
        b = body.builder
        at = b.inttoptr(b.add(offsets, b.shl(row, I64(3))), POINTER)
        pointer = body.at(b.inttoptr(data, POINTER), body.load(at, 0, I64))
        b.ret(cgutils.pack_struct(b, [pointer, _nbytes(body, offsets, row)]))

    found = call_outlined(builder, "wire_row", CHUNK_NBYTES, _PLACE, [table, row, *only], emit, frozen=True)
    return builder.extract_value(found, 0), builder.extract_value(found, 1)


def scattered(builder: ir.IRBuilder, table: ir.Value, row: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The same by a table of addresses; null and 0 of a null row."""

    def emit(body: Body) -> None:
        b = body.builder
        table, row = body.args
        at = body.at(table, b.shl(row, I64(PLACE_SHIFT)))
        pointer = b.inttoptr(body.load(at, 0, I64), POINTER)
        nbytes = b.select(b.icmp_unsigned("==", pointer, NULL), I64(0), body.load(at, 8, I64))
        b.ret(cgutils.pack_struct(b, [pointer, nbytes]))

    found = call_outlined(builder, "wire_place", PLACE_SHIFT, _PLACE, [table, row], emit, frozen=True)
    return builder.extract_value(found, 0), builder.extract_value(found, 1)
