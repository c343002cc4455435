"""Protobuf's wire format as LLVM: tags, varints, sizes, and how to pass over a field that nobody wants.

Every read is checked against the end; what can't be there goes to one block of the caller's. The order of the
tests is what makes it fast (branch prediction, not the number of instructions): a byte that ends a varint is
told first, wire types by bits rather than through a table of jumps.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils

from yaffjit.jit.emit.outline import I8, I64, NULL, POINTER, Body, outlined
from yaffjit.jit.emit.wire_fields import BYTES, END, FIXED32, FIXED64, GROUP, VARINT
from yaffjit.plan.limits import MAX_DEPTH

MAX_SIZE = 2**31 - 1
# A value and the position behind it; null for what is cut off or too long.
_READ = ir.LiteralStructType([I64, POINTER])
_SPAN = ir.LiteralStructType([POINTER, POINTER])
_MAX_TAG_NBYTES = 5
_MAX_VARINT_BITS = 70


class Walker:
    """Reads on from a position, which it moves.

    Args:
        body: of the function that is written.
        pos: the variable that holds the position.
        end: where what may be read ends.
        bad: the block for what isn't protobuf.
        compact: tags, long varints and unknown fields are read by functions that aren't opened in place: a
            pass with many loops compiles five times faster so.
    """

    def __init__(
        self, body: Body, pos: ir.Value, end: ir.Value, bad: ir.Block, compact: bool = False
    ) -> None:
        self.compact = compact
        self.body = body
        self.builder = body.builder
        self.pos = pos
        self.end = end
        self.bad = bad

    def block(self, name: str = "") -> ir.Block:
        """A new block, to be gone on in later."""
        return self.builder.append_basic_block(name)

    def require(self, condition: ir.Value) -> None:
        """Go on only where it holds."""
        proceed = self.block()
        self.builder.cbranch(condition, proceed, self.bad)
        self.builder.position_at_end(proceed)

    def is_before_end(self) -> ir.Value:
        return self.builder.icmp_unsigned("<", self.builder.load(self.pos), self.end)

    def byte(self, pointer: ir.Value) -> ir.Value:
        return self.builder.zext(self.body.load(pointer, 0, I8), I64)

    def left(self, pointer: ir.Value) -> ir.Value:
        """How many bytes there are from a pointer to the end."""
        return self.builder.sub(self.builder.ptrtoint(self.end, I64), self.builder.ptrtoint(pointer, I64))

    def varint(self) -> ir.Value:
        """The 64 bits of a varint."""
        b = self.builder
        start = b.load(self.pos)
        self.require(b.icmp_unsigned("<", start, self.end))
        first = self.byte(start)
        short, long, done = self.block(), self.block(), self.block()
        b.cbranch(b.icmp_unsigned("<", first, I64(128)), short, long)
        b.position_at_end(short)
        after_short = self.body.at(start, 1)
        b.branch(done)
        b.position_at_end(long)
        read = b.call(read_varint(b.module, self.body.frozen, not self.compact), [start, self.end])
        value, after = b.extract_value(read, 0), b.extract_value(read, 1)
        self.require(b.icmp_unsigned("!=", after, NULL))
        b.branch(done)
        found = [(first, after_short, short), (value, after, b.block)]
        b.position_at_end(done)
        return self._join(I64, found)

    def tag(self) -> ir.Value:
        """A tag, as an i64. Requires: the position is before the end."""
        b = self.builder
        if self.compact:
            return self._call(_read_tag(b.module, self.body.frozen))
        start = b.load(self.pos)
        first = self.byte(start)
        one, more, two, second, long, done = (self.block() for _ in range(6))
        b.cbranch(b.icmp_unsigned("<", first, I64(128)), one, more)
        b.position_at_end(one)
        found = [(first, self.body.at(start, 1), one)]
        b.branch(done)
        b.position_at_end(more)
        next_pos = self.body.at(start, 1)
        b.cbranch(b.icmp_unsigned("<", next_pos, self.end), second, self.bad)
        b.position_at_end(second)
        high = self.byte(next_pos)
        b.cbranch(b.icmp_unsigned("<", high, I64(128)), two, long)
        b.position_at_end(two)
        value = b.or_(b.and_(first, I64(127)), b.shl(high, I64(7)))
        found.append((value, self.body.at(start, 2), two))
        b.branch(done)
        b.position_at_end(long)
        read = b.call(read_varint(b.module, self.body.frozen), [start, self.end])
        value, after = b.extract_value(read, 0), b.extract_value(read, 1)
        self.require(b.icmp_unsigned("!=", after, NULL))
        length = b.sub(b.ptrtoint(after, I64), b.ptrtoint(start, I64))
        is_short = b.icmp_unsigned("<=", length, I64(_MAX_TAG_NBYTES))
        self.require(b.and_(is_short, b.icmp_unsigned("<", value, I64(1 << 32))))
        found.append((value, after, b.block))
        b.branch(done)
        b.position_at_end(done)
        return self._join(I64, found)

    def fixed(self, width: int) -> ir.Value:
        """The bits of a value of that many bytes."""
        b = self.builder
        start = b.load(self.pos)
        self.require(b.icmp_unsigned(">=", self.left(start), I64(width)))
        b.store(self.body.at(start, width), self.pos)
        return self.body.load(start, 0, ir.IntType(8 * width))

    def size(self) -> tuple[ir.Value, ir.Value]:
        """Where that many bytes begin which a size says, and their number; the position stays there."""
        b = self.builder
        nbytes = self.varint()
        start = b.load(self.pos)
        self.require(b.icmp_unsigned(">=", self.left(start), nbytes))
        return start, nbytes

    def span(self) -> tuple[ir.Value, ir.Value]:
        """As `size`; the position moves behind them."""
        start, nbytes = self.size()
        self.builder.store(self.body.at(start, nbytes), self.pos)
        return start, nbytes

    def value(self, wire_type: int) -> None:
        """Pass over a value whose wire type is known."""
        if wire_type == VARINT:
            self.varint()
        elif wire_type == BYTES:
            self.span()
        else:
            self.fixed(8 if wire_type == FIXED64 else 4)

    def skip(self, tag: ir.Value, proceed: ir.Block) -> None:
        """Pass over the value behind a tag, and go on in a block."""
        b = self.builder
        if self.compact:
            self._call(_skip(b.module, self.body.frozen), tag)
            b.branch(proceed)
            return
        kinds = {kind: self.block() for kind in (VARINT, FIXED64, BYTES, GROUP, FIXED32)}
        low, odd, even, high, sized = (self.block() for _ in range(5))

        def by_bit(bit: int, yes: ir.Block, no: ir.Block) -> None:
            b.cbranch(b.icmp_unsigned("!=", b.and_(tag, I64(bit)), I64(0)), yes, no)

        # Bits, as LLVM makes a table of jumps of a switch over these.
        by_bit(2, high, low)
        b.position_at_end(low)
        by_bit(1, odd, even)
        b.position_at_end(odd)
        by_bit(4, kinds[FIXED32], kinds[FIXED64])
        b.position_at_end(even)
        by_bit(4, self.bad, kinds[VARINT])
        b.position_at_end(high)
        by_bit(4, self.bad, sized)
        b.position_at_end(sized)
        by_bit(1, kinds[GROUP], kinds[BYTES])
        for kind, block in kinds.items():
            b.position_at_end(block)
            if kind == GROUP:
                self.group(tag)
            else:
                self.value(kind)
            b.branch(proceed)

    def group(self, tag: ir.Value) -> ir.Value:
        """Pass over a group whose beginning was the tag; gives where its content ends."""
        b = self.builder
        found = b.call(skip_group(b.module, self.body.frozen), [b.load(self.pos), self.end, tag])
        content_end, after = b.extract_value(found, 0), b.extract_value(found, 1)
        self.require(b.icmp_unsigned("!=", after, NULL))
        b.store(after, self.pos)
        return content_end

    def _call(self, function: ir.Function, *args: ir.Value) -> ir.Value:
        """What a function (pos, end, ...) -> {value, position behind it} reads."""
        b = self.builder
        read = b.call(function, [b.load(self.pos), self.end, *args])
        after = b.extract_value(read, 1)
        self.require(b.icmp_unsigned("!=", after, NULL))
        b.store(after, self.pos)
        return b.extract_value(read, 0)

    def _join(self, typ: ir.Type, found: list[tuple[ir.Value, ir.Value, ir.Block]]) -> ir.Value:
        """The value of several ways to here; moves the position behind it."""
        value, after = self.builder.phi(typ), self.builder.phi(POINTER)
        for one, pos, block in found:
            value.add_incoming(one, block)
            after.add_incoming(pos, block)
        self.builder.store(after, self.pos)
        return value


def _read_tag(module: ir.Module, frozen: bool) -> ir.Function:
    """(pos, end) -> a tag and the position behind it, null for a bad one."""

    def emit(body: Body) -> None:
        walker = _alone(body)
        tag = walker.tag()
        body.builder.ret(cgutils.pack_struct(body.builder, [tag, body.builder.load(walker.pos)]))

    return outlined(module, "wire_tag", "", _READ, [POINTER, POINTER], emit, frozen, inline=False)


def _skip(module: ir.Module, frozen: bool) -> ir.Function:
    """(pos, end, tag) -> 0 and the position behind the value, null for a bad one."""

    def emit(body: Body) -> None:
        walker = _alone(body)
        done = walker.block()
        walker.skip(body.args[2], done)
        body.builder.position_at_end(done)
        body.builder.ret(cgutils.pack_struct(body.builder, [I64(0), body.builder.load(walker.pos)]))

    return outlined(module, "wire_skip", "", _READ, [POINTER, POINTER, I64], emit, frozen, inline=False)


def _alone(body: Body) -> Walker:
    """The walker of a function (pos, end, ...) that gives a null position for what is bad."""
    b = body.builder
    pos, bad = b.alloca(POINTER), b.append_basic_block("bad")
    b.store(body.args[0], pos)
    with b.goto_block(bad):
        b.ret(cgutils.pack_struct(b, [I64(0), NULL]))
    return Walker(body, pos, body.args[1], bad)


def read_varint(module: ir.Module, frozen: bool, inline: bool = True) -> ir.Function:
    """(pos, end) -> the bits of a varint and the position behind it, null for a bad one."""

    def emit(body: Body) -> None:
        b = body.builder
        start, end = body.args
        entry = b.block
        loop, read, more, done, bad = (b.append_basic_block() for _ in range(5))
        b.branch(loop)
        b.position_at_end(loop)
        pos, shift, bits = b.phi(POINTER), b.phi(I64), b.phi(I64)
        within = b.icmp_unsigned("<", shift, I64(_MAX_VARINT_BITS))
        b.cbranch(b.and_(b.icmp_unsigned("<", pos, end), within), read, bad)
        b.position_at_end(read)
        byte = b.zext(body.load(pos, 0, I8), I64)
        value = b.or_(bits, b.shl(b.and_(byte, I64(127)), shift))
        after = body.at(pos, 1)
        b.cbranch(b.icmp_unsigned("<", byte, I64(128)), done, more)
        b.position_at_end(more)
        for phi, first, then in (
            (pos, start, after),
            (shift, I64(0), b.add(shift, I64(7))),
            (bits, I64(0), value),
        ):
            phi.add_incoming(first, entry)
            phi.add_incoming(then, more)
        b.branch(loop)
        b.position_at_end(done)
        b.ret(cgutils.pack_struct(b, [value, after]))
        b.position_at_end(bad)
        b.ret(cgutils.pack_struct(b, [I64(0), NULL]))

    return outlined(module, "wire_varint", "", _READ, [POINTER, POINTER], emit, frozen, inline)


def skip_group(module: ir.Module, frozen: bool) -> ir.Function:
    """(pos, end, tag that began it) -> where a group's content ends, and the position behind its end tag.

    Both are null for a bad one.

    Field number 0 passes within it: some of protobuf's parsers let it.
    """

    def emit(body: Body) -> None:
        b = body.builder
        start, end, tag = body.args
        numbers = b.alloca(I64, MAX_DEPTH)
        pos, depth = b.alloca(POINTER), b.alloca(I64)
        loop, read, bad = (b.append_basic_block() for _ in range(3))
        walker = Walker(body, pos, end, bad)
        b.store(start, pos)
        b.store(I64(1), depth)
        b.store(b.lshr(tag, I64(3)), numbers)
        b.branch(loop)
        b.position_at_end(bad)
        b.ret(cgutils.pack_struct(b, [NULL, NULL]))
        b.position_at_end(loop)
        at = b.load(pos)
        b.cbranch(walker.is_before_end(), read, bad)
        b.position_at_end(read)
        inner = walker.tag()
        number, wire_type = b.lshr(inner, I64(3)), b.and_(inner, I64(7))
        kinds = {kind: walker.block() for kind in (VARINT, FIXED64, BYTES, GROUP, END, FIXED32)}
        switch = b.switch(wire_type, bad)
        for kind, block in kinds.items():
            switch.add_case(I64(kind), block)
            b.position_at_end(block)
            if kind == GROUP:
                opened = b.load(depth)
                walker.require(b.icmp_unsigned("<", opened, I64(MAX_DEPTH)))
                b.store(number, b.gep(numbers, [opened]))
                b.store(b.add(opened, I64(1)), depth)
            elif kind == END:
                last = b.sub(b.load(depth), I64(1))
                walker.require(b.icmp_unsigned("==", b.load(b.gep(numbers, [last])), number))
                b.store(last, depth)
                with b.if_then(b.icmp_unsigned("==", last, I64(0))):
                    b.ret(cgutils.pack_struct(b, [at, b.load(pos)]))
            else:
                walker.value(kind)
            b.branch(loop)

    args = [POINTER, POINTER, I64]
    return outlined(module, "wire_group", "", _SPAN, args, emit, frozen, inline=False)


def declare_helpers(module: ir.Module, frozen: bool) -> None:
    """Add what scans call to a module: while it's printed nothing can be added."""
    read_varint(module, frozen)
    skip_group(module, frozen)
