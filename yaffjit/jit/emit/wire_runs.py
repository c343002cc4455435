"""Elements of a repeated field in protobuf bytes as LLVM: the next ones, and those from an index on.

All that lies behind one tag is a *run*: the values of a packed one, or a single value, text or message. So a
field's elements are the elements of its runs, packed, unpacked or mixed. Where one is, is told by a *cursor*
of four values, which functions take and give back, so that LLVM keeps them in registers:

* ``pos``, ``left``: where the next occurrence is to be looked for, and how many there still are;
* ``run``, ``run_end``: what is left of the run that is being read, null and null if there's none.

The message's scan has checked tags and sizes. Varints within packed runs it hasn't: a bad one stays at
``run``, for the frame that reads it to raise.
"""

from __future__ import annotations

from typing import NamedTuple

from llvmlite import ir
from numba.core import cgutils

from yaffjit.jit.emit.outline import I1, I32, I64, NULL, POINTER, Body, call_outlined
from yaffjit.jit.emit.wire_fields import BYTES, FIXED32, FIXED64, GROUP, WireField
from yaffjit.jit.emit.wire_walk import Walker, read_varint, skip_group

_CURSOR = ir.LiteralStructType([POINTER, I64, POINTER, POINTER])


class Cursor(NamedTuple):
    """The values of a cursor."""

    pos: ir.Value
    left: ir.Value
    run: ir.Value
    run_end: ir.Value


class Place(NamedTuple):
    """Where a field's elements are, as its slots tell; all are values.

    Attributes:
        first: the tag of the first occurrence; null if there's none.
        count: of occurrences.
        mask: of a packable field 1 if a packed run was seen, 2 if a single value was.
        run, run_nbytes: the last packed run.
        end: the message's.
        number: the field's; an i64.
    """

    first: ir.Value
    count: ir.Value
    mask: ir.Value
    run: ir.Value
    run_nbytes: ir.Value
    end: ir.Value
    number: ir.Value


class Shape(NamedTuple):
    """All that the code for a field's elements depends on.

    Attributes:
        wire_type: of one value.
        numbers: those of a closed enum, others are left out; None for all else.
    """

    wire_type: int
    numbers: tuple[int, ...] | None

    @property
    def packable(self) -> bool:
        return self.wire_type not in (BYTES, GROUP)

    @property
    def width(self) -> int:
        """Bytes of a value of fixed width; 0 for others."""
        return {FIXED32: 4, FIXED64: 8}.get(self.wire_type, 0)


def shape_of(field: WireField) -> Shape:
    """The shape of a repeated field."""
    return Shape(field.wire_type, field.numbers)


# ---- what is called where a field is used ----


def begin(builder: ir.IRBuilder, shape: Shape, place: Place) -> Cursor:
    """The cursor before the first element."""
    b = builder
    if not shape.packable:
        return Cursor(place.first, place.count, NULL, NULL)
    alone = is_single_run(b, place)
    after = b.gep(place.run, [place.run_nbytes])
    return Cursor(
        b.select(alone, place.end, place.first),
        b.select(alone, I64(0), place.count),
        b.select(alone, place.run, NULL),
        b.select(alone, after, NULL),
    )


def is_single_run(builder: ir.IRBuilder, place: Place) -> ir.Value:
    """Whether all elements are one packed run."""
    one = builder.icmp_unsigned("==", place.count, I64(1))
    return builder.and_(one, builder.icmp_unsigned("==", place.mask, I64(1)))


def settle(builder: ir.IRBuilder, shape: Shape, place: Place, cursor: Cursor, frozen: bool) -> Cursor:
    """The cursor at the next element, its run behind that of the last one if need be; see `is_at_element`."""

    def emit(body: Body) -> None:
        b = body.builder
        *values, end, number = body.args
        cursor = Cursor(*values)
        there = _holds_one(b, shape, cursor) if shape.packable else is_at_element(b, cursor)
        body.return_unless(b.not_(there), _pack(b, cursor))
        b.ret(_pack(b, _next_run(b, shape, end, number, cursor, frozen)))

    def emit_known(body: Body) -> None:
        _emit_known(body, shape)

    closed = shape.numbers is not None
    args = [*cursor, place.end, place.number]
    found = call_outlined(
        builder,
        "wire_settle",
        shape,
        _CURSOR,
        args,
        emit_known if closed else emit,
        frozen,
        inline=not closed,
    )
    return _unpack(builder, found)


def is_at_element(builder: ir.IRBuilder, cursor: Cursor) -> ir.Value:
    """Whether a settled cursor is at an element, and not behind the last one."""
    return builder.icmp_unsigned("!=", cursor.run, NULL)


def read(builder: ir.IRBuilder, shape: Shape, cursor: Cursor, frozen: bool) -> tuple[ir.Value, ir.Value]:
    """The bits of the number that a settled cursor is at, an i64, and the position behind it.

    That's null if the varint is cut off or too long.
    """

    def emit(body: Body) -> None:
        b = body.builder
        run, run_end = body.args
        if shape.width:
            bits = body.load(run, 0, ir.IntType(8 * shape.width))
            bits = bits if shape.width == 8 else b.zext(bits, I64)
            b.ret(cgutils.pack_struct(b, [bits, body.at(run, shape.width)]))
            return
        first = body.load(run, 0, ir.IntType(8))
        short, long = b.append_basic_block(), b.append_basic_block()
        b.cbranch(b.icmp_signed(">=", first, first.type(0)), short, long)
        b.position_at_end(short)
        b.ret(cgutils.pack_struct(b, [b.zext(first, I64), body.at(run, 1)]))
        b.position_at_end(long)
        b.ret(b.call(read_varint(b.module, frozen), [run, run_end]))

    result = ir.LiteralStructType([I64, POINTER])
    args = [cursor.run, cursor.run_end]
    found = call_outlined(builder, "wire_element", shape.wire_type, result, args, emit, frozen)
    return builder.extract_value(found, 0), builder.extract_value(found, 1)


def passed(cursor: Cursor, after: ir.Value) -> Cursor:
    """The cursor behind a number that was read."""
    return cursor._replace(run=after)


def pass_over(cursor: Cursor) -> Cursor:
    """The cursor behind the text or message that it's at."""
    return cursor._replace(run=NULL, run_end=NULL)


def seek(
    builder: ir.IRBuilder, shape: Shape, place: Place, cursor: Cursor, index: ir.Value, frozen: bool
) -> Cursor:
    """The cursor that many elements further, settled; at a bad varint if one comes before."""

    def emit(body: Body) -> None:
        b = body.builder
        *values, index, end, number = body.args
        place = _place_within(end, number)
        cursor = settle(b, shape, place, Cursor(*values), frozen)
        if shape.width:
            cursor, index = _advance_fixed(body, shape, cursor, index)
        before = b.block
        loop, more, done = (b.append_basic_block() for _ in range(3))
        b.branch(loop)
        b.position_at_end(loop)
        phis = Cursor(*(b.phi(value.type) for value in cursor))
        rest = b.phi(I64)
        there = b.and_(b.icmp_signed(">", rest, I64(0)), is_at_element(b, phis))
        b.cbranch(there, more, done)
        b.position_at_end(more)
        if shape.packable:
            _, after = read(b, shape, phis, frozen)
            body.return_unless(b.icmp_unsigned("!=", after, NULL), _pack(b, phis))
            moved = passed(phis, after)
        else:
            moved = pass_over(phis)
        moved = settle(b, shape, place, moved, frozen)
        join(phis, cursor, before, moved, b.block)
        rest.add_incoming(index, before)
        rest.add_incoming(b.sub(rest, I64(1)), b.block)
        b.branch(loop)
        b.position_at_end(done)
        b.ret(_pack(b, phis))

    args = [*cursor, index, place.end, place.number]
    found = call_outlined(builder, "wire_seek", shape, _CURSOR, args, emit, frozen, inline=False)
    return _unpack(builder, found)


# ---- parts ----


def _place_within(end: ir.Value, number: ir.Value) -> Place:
    """What is needed of a place once there's a cursor."""
    return Place(NULL, I64(0), I64(0), NULL, I64(0), end, number)


def _pack(builder: ir.IRBuilder, cursor: Cursor) -> ir.Value:
    return cgutils.pack_struct(builder, list(cursor))


def _unpack(builder: ir.IRBuilder, found: ir.Value) -> Cursor:
    return Cursor(*(builder.extract_value(found, i) for i in range(4)))


def join(phis: Cursor, first: Cursor, before: ir.Block, then: Cursor, block: ir.Block) -> None:
    """Give a loop's cursor its values: the first from before the loop, then those of the last turn."""
    for phi, one, other in zip(phis, first, then, strict=True):
        phi.add_incoming(one, before)
        phi.add_incoming(other, block)


def _holds_one(builder: ir.IRBuilder, shape: Shape, cursor: Cursor) -> ir.Value:
    """Whether there's another element in the run, of whose fixed values none is cut off."""
    b = builder
    if not shape.width:
        return b.icmp_unsigned("<", cursor.run, cursor.run_end)
    left = b.sub(b.ptrtoint(cursor.run_end, I64), b.ptrtoint(cursor.run, I64))
    return b.icmp_signed(">=", left, I64(shape.width))


def _next_run(
    builder: ir.IRBuilder, shape: Shape, end: ir.Value, number: ir.Value, cursor: Cursor, frozen: bool
) -> Cursor:
    """The next run that has elements, from behind the one that was read; null if there's none."""

    def emit(body: Body) -> None:
        b = body.builder
        pos, left, end, number = body.args
        before = b.block
        loop, look, again, found, none = (b.append_basic_block() for _ in range(5))
        b.branch(loop)
        b.position_at_end(loop)
        at, rest = b.phi(POINTER), b.phi(I64)
        b.cbranch(b.icmp_signed(">", rest, I64(0)), look, none)
        b.position_at_end(look)
        occurrence = _occurrence(b, shape, at, end, number, frozen)
        run, run_end, after = (b.extract_value(occurrence, i) for i in range(3))
        fewer = b.sub(rest, I64(1))
        cursor = Cursor(after, fewer, run, run_end)
        if shape.packable:  # a packed run may be empty
            b.cbranch(_holds_one(b, shape, cursor), found, again)
        else:
            b.branch(found)
        b.position_at_end(again)
        b.branch(loop)
        at.add_incoming(pos, before)
        at.add_incoming(after, again)
        rest.add_incoming(left, before)
        rest.add_incoming(fewer, again)
        b.position_at_end(found)
        b.ret(_pack(b, cursor))
        b.position_at_end(none)
        b.ret(_pack(b, Cursor(at, I64(0), NULL, NULL)))

    args = [cursor.pos, cursor.left, end, number]
    return _unpack(builder, call_outlined(builder, "wire_run", shape, _CURSOR, args, emit, frozen))


def _occurrence(
    builder: ir.IRBuilder, shape: Shape, pos: ir.Value, end: ir.Value, number: ir.Value, frozen: bool
) -> ir.Value:
    """Where the field's next occurrence from a position on begins and ends, and the position behind it.

    All three are the message's end where there's none, which can't be if the bytes are those that were
    scanned.
    """
    result = ir.LiteralStructType([POINTER] * 3)

    def emit(body: Body) -> None:
        b = body.builder
        start, end, number = body.args
        pos = b.alloca(POINTER)
        b.store(start, pos)
        loop, look, none, other, alone, packed = (b.append_basic_block() for _ in range(6))
        walker = Walker(body, pos, end, none)
        b.branch(loop)
        b.position_at_end(none)
        b.ret(cgutils.pack_struct(b, [end, end, end]))
        b.position_at_end(loop)
        b.cbranch(walker.is_before_end(), look, none)
        b.position_at_end(look)
        tag = walker.tag()
        base = b.shl(number, I64(3))
        wanted = b.icmp_unsigned("==", tag, b.or_(base, I64(shape.wire_type)))
        if shape.packable:
            second = b.append_basic_block()
            b.cbranch(wanted, alone, second)
            b.position_at_end(second)
            b.cbranch(b.icmp_unsigned("==", tag, b.or_(base, I64(BYTES))), packed, other)
        else:
            b.cbranch(wanted, alone, other)
        b.position_at_end(other)
        _skip(walker, tag, loop)
        b.position_at_end(alone)
        if shape.wire_type == BYTES:
            _return_span(body, walker)
        elif shape.wire_type == GROUP:
            begins = b.load(pos)
            found = b.call(skip_group(b.module, frozen), [begins, end, tag])
            content_end, after = b.extract_value(found, 0), b.extract_value(found, 1)
            walker.require(b.icmp_unsigned("!=", after, NULL))
            b.ret(cgutils.pack_struct(b, [begins, content_end, after]))
        else:
            begins = b.load(pos)
            walker.value(shape.wire_type)
            b.ret(cgutils.pack_struct(b, [begins, b.load(pos), b.load(pos)]))
        b.position_at_end(packed)
        if shape.packable:
            _return_span(body, walker)
        else:
            b.unreachable()

    args = [pos, end, number]
    return call_outlined(builder, "wire_occurrence", shape.wire_type, result, args, emit, frozen)


def _return_span(body: Body, walker: Walker) -> None:
    start, nbytes = walker.span()
    after = body.at(start, nbytes)
    body.builder.ret(cgutils.pack_struct(body.builder, [start, after, after]))


def _skip(walker: Walker, tag: ir.Value, proceed: ir.Block) -> None:
    """Pass over another field, which isn't on the way of most."""

    def emit(body: Body) -> None:
        b = body.builder
        start, end, tag = body.args
        pos = b.alloca(POINTER)
        b.store(start, pos)
        bad, done = b.append_basic_block(), b.append_basic_block()
        inner = Walker(body, pos, end, bad)
        inner.skip(tag, done)
        b.position_at_end(bad)
        b.ret(end)
        b.position_at_end(done)
        b.ret(b.load(pos))

    b = walker.builder
    args = [b.load(walker.pos), walker.end, tag]
    after = call_outlined(b, "wire_skip", "", POINTER, args, emit, walker.body.frozen, inline=False)
    b.store(after, walker.pos)
    b.branch(proceed)


def _advance_fixed(body: Body, shape: Shape, cursor: Cursor, index: ir.Value) -> tuple[Cursor, ir.Value]:
    """As far as it goes within the run; the cursor there, and how many elements are still to be passed."""
    b = body.builder
    nbytes = b.sub(b.ptrtoint(cursor.run_end, I64), b.ptrtoint(cursor.run, I64))
    last = b.sub(b.udiv(nbytes, I64(shape.width)), I64(1))
    last = b.select(b.icmp_signed(">", last, I64(0)), last, I64(0))
    steps = b.select(b.icmp_signed("<", index, last), index, last)
    moved = b.gep(cursor.run, [b.mul(steps, I64(shape.width))])
    run = b.select(is_at_element(b, cursor), moved, cursor.run)
    return cursor._replace(run=run), b.sub(index, steps)


def _emit_known(body: Body, shape: Shape) -> None:
    """`settle` for a closed enum: numbers that it doesn't have are passed over."""
    b = body.builder
    *values, end, number = body.args
    frozen = body.frozen
    plain = shape._replace(numbers=None)
    before = b.block
    loop, look, known, other = (b.append_basic_block() for _ in range(4))
    b.branch(loop)
    b.position_at_end(loop)
    phis = Cursor(*(b.phi(value.type) for value in values))
    cursor = settle(b, plain, _place_within(end, number), phis, frozen)
    b.cbranch(is_at_element(b, cursor), look, known)
    b.position_at_end(look)
    bits, after = read(b, plain, cursor, frozen)
    body.return_unless(b.icmp_unsigned("!=", after, NULL), _pack(b, cursor))
    assert shape.numbers is not None
    b.cbranch(is_number_of(b, shape.numbers, bits), known, other)
    b.position_at_end(known)
    b.ret(_pack(b, cursor))
    b.position_at_end(other)
    join(phis, Cursor(*values), before, passed(cursor, after), other)
    b.branch(loop)


def is_number_of(builder: ir.IRBuilder, numbers: tuple[int, ...], bits: ir.Value) -> ir.Value:
    """Whether the bits of a varint, an i64, are a number that a closed enum has."""
    number = builder.trunc(bits, I32)
    found: ir.Value = I1(0)
    for first, last in _ranges(numbers):
        within = builder.icmp_unsigned("<=", builder.sub(number, I32(first)), I32(last - first))
        found = builder.or_(found, within)
    return found


def _ranges(numbers: tuple[int, ...]) -> list[tuple[int, int]]:
    """Ascending numbers as ranges (first, last) without a gap."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found
