"""YaFF messages as LLVM: where a field's slot is, its value, its presence (docs/format.md).

Each function takes a builder and a message pointer, and calls a getter there. The null pointer is the absent
message: all its fields are absent.

Requires: the message is well-formed (verified). Source: docs/format.md.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from llvmlite import ir

from yaffjit.jit.emit.outline import I1, I8, I16, I32, I64, NULL, POINTER, Body, call_outlined
from yaffjit.plan.model import FieldPlan, MessagePlan, OneofPlan

# Header bits of flat and sparse messages.
_FLAT = 0x8000
_SIZED = 2
_EXPLICIT = 1
# Up to this id an entry of a sparse message's table is one byte, then two.
_LAST_NARROW_ID = 31


def stored_type(f: FieldPlan) -> ir.Type:
    """The LLVM type of a scalar as it lies in a message; a bool is an i8 that is 0 or not."""
    if f.kind == "float":
        return ir.FloatType()
    return ir.DoubleType() if f.kind == "double" else ir.IntType(8 * f.width)


def scalar(
    builder: ir.IRBuilder, mp: MessagePlan, f: FieldPlan, message: ir.Value, frozen: bool = True
) -> ir.Value:
    """The value of a singular scalar, as a `stored_type`; its default where it's absent."""
    bits = ir.IntType(8 * f.width)
    absent = _constant(f)

    def emit(body: Body) -> None:
        b = body.builder

        def give(slot: ir.Value, default_bits: int) -> None:
            value = body.load(slot, 0, bits)
            if default_bits:
                value = b.xor(value, bits(default_bits))
            b.ret(b.bitcast(value, stored_type(f)) if f.kind in ("float", "double") else value)

        def of_slot(slot: ir.Value, header: ir.Value | None) -> None:
            if f.declared_bits != f.default_bits:
                body.return_unless(_slot_is_set(body, f, slot, header), absent)
            give(slot, f.default_bits)

        _find_slot(body, mp, f, absent, of_slot, lambda packed: give(packed, 0))

    content = (_place(mp, f), f.kind, f.default_bits, f.declared_bits)
    value = call_outlined(
        builder, "scalar", content, stored_type(f), _found_by(builder, mp, message, frozen), emit, frozen
    )
    counts = _counts(builder, mp, f, message, frozen)
    return value if counts is None else builder.select(counts, value, absent)


def reference(
    builder: ir.IRBuilder, mp: MessagePlan, f: FieldPlan, message: ir.Value, frozen: bool = True
) -> ir.Value:
    """The pointer to what a message, text or repeated field's slot leads to; null where it's absent."""

    def emit(body: Body) -> None:
        b = body.builder

        def follow(slot: ir.Value) -> None:
            offset = body.load(slot, 0, I32)
            target = body.at(body.args[0], b.zext(offset, I64))
            b.ret(b.select(b.icmp_unsigned("!=", offset, I32(0)), target, NULL))

        _find_slot(body, mp, f, NULL, lambda slot, header: follow(slot), follow)

    target = call_outlined(
        builder, "reference", _place(mp, f), POINTER, _found_by(builder, mp, message, frozen), emit, frozen
    )
    counts = _counts(builder, mp, f, message, frozen)
    return target if counts is None else builder.select(counts, target, NULL)


def present(
    builder: ir.IRBuilder, mp: MessagePlan, f: FieldPlan, message: ir.Value, frozen: bool = True
) -> ir.Value:
    """Whether a field is present, as an i1; of a oneof's members only the one that counts is."""
    counts = _counts(builder, mp, f, message, frozen)
    return _present_alone(builder, mp, f, message, frozen) if counts is None else counts


def which(
    builder: ir.IRBuilder, mp: MessagePlan, oneof: OneofPlan, message: ir.Value, frozen: bool = True
) -> ir.Value:
    """The number of the oneof's member that is set, as an i32; 0 if none is.

    Where bits of several are set, which older schemas can bring about, the first by precedence counts.
    """
    members = [mp.by_name[name] for name in oneof.fields]

    def emit(body: Body) -> None:
        for f in members:
            found = _present_alone(body.builder, mp, f, body.args[0], frozen)
            body.return_unless(body.builder.not_(found), I32(f.number))
        body.builder.ret(I32(0))

    content = [(_place(mp, f), f.out_of_line, f.number) for f in members]
    return call_outlined(builder, "which", content, I32, [message], emit, frozen)


def _counts(
    builder: ir.IRBuilder, mp: MessagePlan, f: FieldPlan, message: ir.Value, frozen: bool
) -> ir.Value | None:
    """Whether a member of a oneof is the one that is set; None where no other member comes before it."""
    if not f.oneof:
        return None
    oneof = next(oneof for oneof in mp.oneofs if oneof.name == f.oneof)
    if oneof.fields[0] == f.name:
        return None
    return builder.icmp_unsigned("==", which(builder, mp, oneof, message, frozen), I32(f.number))


def _present_alone(
    builder: ir.IRBuilder, mp: MessagePlan, f: FieldPlan, message: ir.Value, frozen: bool
) -> ir.Value:
    """Whether a field is present, other members of its oneof apart."""

    def emit(body: Body) -> None:
        b = body.builder
        _find_slot(
            body,
            mp,
            f,
            I1(0),
            lambda slot, header: b.ret(_slot_is_set(body, f, slot, header)),
            lambda packed: b.ret(I1(1)),
        )

    return call_outlined(
        builder,
        "present",
        (_place(mp, f), f.out_of_line),
        I1,
        _found_by(builder, mp, message, frozen),
        emit,
        frozen,
    )


def _constant(f: FieldPlan) -> ir.Constant:
    """The value of an absent scalar: the declared default."""
    if f.kind in ("float", "double"):
        code = "<f" if f.kind == "float" else "<d"
        return stored_type(f)(struct.unpack(code, f.declared_bits.to_bytes(f.width, "little"))[0])
    return stored_type(f)(f.declared_bits)


def _place(mp: MessagePlan, f: FieldPlan) -> tuple[object, ...]:
    """All that decides where a field's slot and presence are."""
    return mp.layout, f.id, f.width, f.offset, f.holes


def _found_by(builder: ir.IRBuilder, mp: MessagePlan, message: ir.Value, frozen: bool) -> list[ir.Value]:
    """A getter's arguments: the message and, where it may be sparse, the end of its table.

    The end is a getter of its own, so that LLVM finds it once a message, not once a field. Before a message
    that isn't sparse there are other bytes of the buffer, at least its root offset; then nobody uses it.
    """
    if mp.layout not in ("sparse", "dynamic"):
        return [message]

    def emit(body: Body) -> None:
        b = body.builder
        body.return_unless(b.icmp_unsigned("!=", body.args[0], NULL), NULL)
        b.ret(body.at(body.args[0], b.sext(body.load(body.args[0], -4, I32), I64)))

    return [message, call_outlined(builder, "table_end", "", POINTER, [message], emit, frozen)]


def _find_slot(
    body: Body,
    mp: MessagePlan,
    f: FieldPlan,
    absent: ir.Constant,
    of_slot: Callable[[ir.Value, ir.Value | None], None],
    of_packed: Callable[[ir.Value], None],
) -> None:
    """Write a getter's body around the two ways in which a value is stored.

    Args:
        absent: returned where the message has no slot for the field.
        of_slot: goes on at a slot of a flat or fixed message, which is all zero if the field is absent; takes
            the slot and the header (None if fixed).
        of_packed: goes on at a value of a sparse message, where being there means presence.
    """
    b = body.builder
    message = body.args[0]
    body.return_unless(b.icmp_unsigned("!=", message, NULL), absent)
    if mp.layout == "fixed":
        of_slot(body.at(message, f.offset), None)
        return
    header = body.load(message, 0, I16)
    if mp.layout != "sparse":
        flat = b.append_basic_block("flat")
        other = b.append_basic_block("other")
        b.cbranch(b.icmp_unsigned(">", header, I16(f.id << 2 | _FLAT | 3)), flat, other)
        b.position_at_end(flat)
        slot = body.at(message, 2 + f.offset)
        for first, last in _runs(f.holes):
            slot = body.at(slot, _removed_bytes(body, message, header, first, last))
        of_slot(slot, header)
        b.position_at_end(other)
    if mp.layout == "flat":
        b.ret(absent)
        return
    above = b.icmp_signed(">", header, I16(f.id << 2 | 3))  # a flat header is negative
    body.return_unless(above, absent)
    table_end = body.args[1]
    if f.id <= _LAST_NARROW_ID:
        offset = b.zext(body.load(table_end, -f.id, I8), I64)
    else:
        offset = b.zext(body.load(table_end, _LAST_NARROW_ID - 2 * f.id, I16), I64)
    body.return_unless(b.icmp_unsigned("!=", offset, I64(0)), absent)
    of_packed(body.at(message, offset))


def _slot_is_set(body: Body, f: FieldPlan, slot: ir.Value, header: ir.Value | None) -> ir.Value:
    """Whether a field that has a slot is present: slot != 0, or a scalar's presence bit if there is one."""
    b = body.builder
    bits = ir.IntType(8 * f.width)
    nonzero = b.icmp_unsigned("!=", body.load(slot, 0, bits), bits(0))
    if header is None or f.out_of_line:
        return nonzero
    before = b.block
    with b.if_then(_header_bit(b, header, _EXPLICIT)):
        sized = _header_bit(b, header, _SIZED)
        beside_sizes, alone = 3 * (f.id - 1), f.id - 1
        back = b.select(sized, I64(-1 - (beside_sizes >> 3)), I64(-1 - (alone >> 3)))
        mask = b.select(sized, I8(1 << (beside_sizes & 7)), I8(1 << (alone & 7)))
        byte = body.load(body.args[0], back, I8)
        by_bit = b.icmp_unsigned("!=", b.and_(byte, mask), I8(0))
        within = b.block
    result = b.phi(I1)
    result.add_incoming(nonzero, before)
    result.add_incoming(by_bit, within)
    return result


def _header_bit(b: ir.IRBuilder, header: ir.Value, bit: int) -> ir.Value:
    return b.icmp_unsigned("!=", b.and_(header, I16(bit)), I16(0))


def _runs(ids: tuple[int, ...]) -> list[tuple[int, int]]:
    """Ascending ids as runs (first, last) of consecutive ones."""
    runs: list[tuple[int, int]] = []
    for id in ids:
        if runs and runs[-1][1] == id - 1:
            runs[-1] = (runs[-1][0], id)
        else:
            runs.append((id, id))
    return runs


def _removed_bytes(body: Body, message: ir.Value, header: ir.Value, first: int, last: int) -> ir.Value:
    """Bytes of slots that flat data of an older schema has at the ids first..last, which this schema has not.

    Data that doesn't tell slot sizes has none there, for all that this says; verified data always tells.
    """

    def emit(inner: Body) -> None:
        b = inner.builder
        message, header, first, last = inner.args
        inner.return_unless(_header_bit(b, header, _SIZED), I64(0))
        explicit = _header_bit(b, header, _EXPLICIT)
        stride = b.select(explicit, I64(3), I64(2))
        start = b.select(explicit, I64(1), I64(0))
        loop = b.append_basic_block("loop")
        done = b.append_basic_block("done")
        entry = b.block
        b.branch(loop)
        b.position_at_end(loop)
        id = b.phi(I64)
        total = b.phi(I64)
        bit = b.add(b.mul(b.sub(id, I64(1)), stride), start)
        low = _stream_bit(inner, message, bit)
        high = _stream_bit(inner, message, b.add(bit, I64(1)))
        code = b.or_(low, b.shl(high, I64(1)))
        # Slot sizes 0, 1, 4, 8 by size code, a byte each.
        size = b.and_(b.lshr(I64(0x08040100), b.shl(code, I64(3))), I64(0xFF))
        new_total = b.add(total, size)
        next_id = b.add(id, I64(1))
        for phi, begin, step in ((id, first, next_id), (total, I64(0), new_total)):
            phi.add_incoming(begin, entry)
            phi.add_incoming(step, loop)
        b.cbranch(b.icmp_unsigned("<=", next_id, last), loop, done)
        b.position_at_end(done)
        b.ret(new_total)

    args = [message, header, I64(first), I64(last)]
    return call_outlined(body.builder, "removed", "", I64, args, emit, body.frozen, inline=False)


def _stream_bit(body: Body, message: ir.Value, bit: ir.Value) -> ir.Value:
    """Bit ``bit`` of the metadata that lies before a message's header, as an i64."""
    b = body.builder
    back = b.sub(I64(-1), b.lshr(bit, I64(3)))
    byte = b.zext(body.load(message, back, I8), I64)
    return b.and_(b.lshr(byte, b.and_(bit, I64(7))), I64(1))
