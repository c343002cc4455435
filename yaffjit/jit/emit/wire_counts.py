"""How many elements a repeated field in protobuf bytes has, as LLVM: what its runs hold, packed or not."""

from __future__ import annotations

from llvmlite import ir

from yaffjit.jit.emit.outline import I64, NULL, Body, call_outlined
from yaffjit.jit.emit.wire_runs import (
    Cursor,
    Place,
    Shape,
    begin,
    is_at_element,
    is_single_run,
    join,
    passed,
    read,
    settle,
)

_MAX_VARINT_NBYTES = 10


def count(builder: ir.IRBuilder, shape: Shape, place: Place, frozen: bool) -> ir.Value:
    """How many elements there are, as an i64; ``~n`` if the varint at index ``n`` is bad."""
    if not shape.packable:
        return place.count

    def emit(body: Body) -> None:
        b = body.builder
        place = Place(*body.args)
        alone = is_single_run(b, place)
        if shape.numbers is None:
            unpacked = b.icmp_unsigned("!=", place.mask, I64(2))
            empty = b.icmp_unsigned("==", place.count, I64(0))
            body.return_unless(b.and_(unpacked, b.not_(empty)), place.count)
            with b.if_then(alone):
                if shape.width:
                    b.ret(b.udiv(place.run_nbytes, I64(shape.width)))
                else:
                    b.ret(_count_varints(b, place, frozen))
        b.ret(_count_all(b, shape, place, frozen))

    return call_outlined(builder, "wire_count", shape, I64, [*place], emit, frozen)


def _count_varints(builder: ir.IRBuilder, place: Place, frozen: bool) -> ir.Value:
    """As `count`, of one packed run of varints: their last bytes are those below 128."""

    def emit(body: Body) -> None:
        b = body.builder
        run, nbytes = body.args
        before = b.block
        loop, more, done, bad = (b.append_basic_block() for _ in range(4))
        b.branch(loop)
        b.position_at_end(loop)
        index, found, length = (b.phi(I64) for _ in range(3))
        b.cbranch(b.icmp_unsigned("<", index, nbytes), more, done)
        b.position_at_end(more)
        byte = body.load(run, index, ir.IntType(8))
        is_last = b.icmp_signed(">=", byte, byte.type(0))
        longer = b.add(length, I64(1))
        too_long = b.and_(b.not_(is_last), b.icmp_unsigned(">=", longer, I64(_MAX_VARINT_NBYTES)))
        proceed = b.append_basic_block()
        b.cbranch(too_long, bad, proceed)
        b.position_at_end(proceed)
        for phi, then in (
            (index, b.add(index, I64(1))),
            (found, b.add(found, b.zext(is_last, I64))),
            (length, b.select(is_last, I64(0), longer)),
        ):
            phi.add_incoming(I64(0), before)
            phi.add_incoming(then, proceed)
        b.branch(loop)
        b.position_at_end(done)
        whole = b.icmp_unsigned("==", length, I64(0))
        b.ret(b.select(whole, found, b.not_(found)))
        b.position_at_end(bad)
        b.ret(b.not_(found))

    args = [place.run, place.run_nbytes]
    return call_outlined(builder, "wire_count_varints", "", I64, args, emit, frozen, inline=False)


def _count_all(builder: ir.IRBuilder, shape: Shape, place: Place, frozen: bool) -> ir.Value:
    """As `count`, by a walk through all elements."""

    def emit(body: Body) -> None:
        b = body.builder
        place = Place(*body.args)
        cursor = begin(b, shape, place)
        before = b.block
        loop, more, done = (b.append_basic_block() for _ in range(3))
        b.branch(loop)
        b.position_at_end(loop)
        phis = Cursor(*(b.phi(value.type) for value in cursor))
        found = b.phi(I64)
        at = settle(b, shape, place, phis, frozen)
        b.cbranch(is_at_element(b, at), more, done)
        b.position_at_end(more)
        _, after = read(b, shape, at, frozen)
        body.return_unless(b.icmp_unsigned("!=", after, NULL), b.not_(found))
        join(phis, cursor, before, passed(at, after), b.block)
        found.add_incoming(I64(0), before)
        found.add_incoming(b.add(found, I64(1)), b.block)
        b.branch(loop)
        b.position_at_end(done)
        b.ret(found)

    return call_outlined(builder, "wire_count_all", shape, I64, [*place], emit, frozen, inline=False)
