"""Keys of text as LLVM: UTF-8 bytes against each other, and against the code points of numba's strings."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from yaffjit.jit.emit.outline import I1, I8, I16, I32, I64, POINTER, Body, call_outlined

Text = Sequence[ir.Value]  # pointer to UTF-8 bytes, their number
CodePoints = Sequence[ir.Value]  # pointer, number of code points, bytes of each (an i32)


def _memcmp(body: Body, a: ir.Value, b: ir.Value, nbytes: ir.Value) -> ir.Value:
    module = body.builder.module
    function = module.globals.get("memcmp")
    if function is None:
        function = ir.Function(module, ir.FunctionType(I32, [POINTER, POINTER, I64]), "memcmp")
    return body.builder.call(function, [a, b, nbytes])


def bytes_equal(builder: ir.IRBuilder, a: Text, b: Text, frozen: bool) -> ir.Value:
    """Whether two texts are equal."""

    def emit(body: Body) -> None:
        a, a_nbytes, b, b_nbytes = body.args
        body.return_unless(body.builder.icmp_unsigned("==", a_nbytes, b_nbytes), I1(0))
        different = _memcmp(body, a, b, a_nbytes)
        body.builder.ret(body.builder.icmp_unsigned("==", different, I32(0)))

    return call_outlined(builder, "bytes_equal", "", I1, [*a, *b], emit, frozen)


def compare_bytes(builder: ir.IRBuilder, a: Text, b: Text, frozen: bool) -> ir.Value:
    """Below, at or above 0 (an i32) as the first text comes before, is, or comes after the second."""

    def emit(body: Body) -> None:
        builder = body.builder
        a, a_nbytes, b, b_nbytes = body.args
        shorter = builder.icmp_unsigned("<", a_nbytes, b_nbytes)
        different = _memcmp(body, a, b, builder.select(shorter, a_nbytes, b_nbytes))
        body.return_unless(builder.icmp_unsigned("==", different, I32(0)), different)
        longer = builder.icmp_unsigned(">", a_nbytes, b_nbytes)
        builder.ret(builder.sub(builder.zext(longer, I32), builder.zext(shorter, I32)))

    return call_outlined(builder, "compare_bytes", "", I32, [*a, *b], emit, frozen)


def compare_unicode(builder: ir.IRBuilder, text: Text, string: CodePoints, frozen: bool) -> ir.Value:
    """As `compare_bytes`, of UTF-8 and code points: the order of bytes is that of code points.

    Each code point becomes 1 to 4 bytes, the first lowest in an i32, and these are compared one by one.
    """

    def emit(body: Body) -> None:
        b = body.builder
        data, nbytes, points, length, width = body.args
        point_at = b.alloca(I64)
        byte_at = b.alloca(I64)
        left = b.alloca(I32)
        for slot in (point_at, byte_at):
            b.store(I64(0), slot)
        each_point, each_byte = b.append_basic_block("each_point"), b.append_basic_block("each_byte")
        some, done = b.append_basic_block("some"), b.append_basic_block("done")
        b.branch(each_point)

        b.position_at_end(each_point)
        at = b.load(point_at)
        b.cbranch(b.icmp_unsigned("<", at, length), some, done)
        b.position_at_end(some)
        b.store(b.add(at, I64(1)), point_at)
        b.store(_encoded(b, _point(body, points, at, width)), left)
        b.branch(each_byte)

        b.position_at_end(each_byte)
        byte = b.load(byte_at)
        body.return_unless(
            b.icmp_unsigned("<", byte, nbytes), I32(-1)
        )  # the text is a beginning of the string
        b.store(b.add(byte, I64(1)), byte_at)
        own = body.load(data, byte, I8)
        other = b.trunc(b.load(left), I8)
        difference = b.sub(b.zext(own, I32), b.zext(other, I32))
        body.return_unless(b.icmp_unsigned("==", difference, I32(0)), difference)
        rest = b.lshr(b.load(left), I32(8))
        b.store(rest, left)
        b.cbranch(b.icmp_unsigned("!=", rest, I32(0)), each_byte, each_point)

        b.position_at_end(done)
        b.ret(b.zext(b.icmp_unsigned("<", b.load(byte_at), nbytes), I32))

    args = [*text, *string]
    return call_outlined(builder, "compare_unicode", "", I32, args, emit, frozen, inline=False)


def _point(body: Body, points: ir.Value, at: ir.Value, width: ir.Value) -> ir.Value:
    """The code point at an index, as an i32."""
    b = body.builder
    after = b.append_basic_block("point")
    blocks = [b.append_basic_block(f"width_{nbytes}") for nbytes in (1, 2, 4)]
    choice = b.switch(width, blocks[2])
    choice.add_case(I32(1), blocks[0])
    choice.add_case(I32(2), blocks[1])
    found = []
    for shift, (block, typ) in enumerate(zip(blocks, (I8, I16, I32), strict=True)):
        b.position_at_end(block)
        value = body.load(points, b.shl(at, I64(shift)), typ)
        found.append(value if typ is I32 else b.zext(value, I32))
        b.branch(after)
    b.position_at_end(after)
    point = b.phi(I32)
    for value, block in zip(found, blocks, strict=True):
        point.add_incoming(value, block)
    return point


def _encoded(b: ir.IRBuilder, point: ir.Value) -> ir.Value:
    """The UTF-8 bytes of a code point, the first lowest; none of them but that of code point 0 is 0."""

    def part(shift: int, mark: int, position: int) -> ir.Value:
        bits = b.and_(b.lshr(point, I32(shift)), I32(0x3F)) if mark == 0x80 else b.lshr(point, I32(shift))
        return b.shl(b.or_(bits, I32(mark)), I32(8 * position))

    two = b.or_(part(6, 0xC0, 0), part(0, 0x80, 1))
    three = b.or_(b.or_(part(12, 0xE0, 0), part(6, 0x80, 1)), part(0, 0x80, 2))
    four = b.or_(b.or_(part(18, 0xF0, 0), part(12, 0x80, 1)), b.or_(part(6, 0x80, 2), part(0, 0x80, 3)))
    result = b.select(b.icmp_unsigned("<", point, I32(0x10000)), three, four)
    result = b.select(b.icmp_unsigned("<", point, I32(0x800)), two, result)
    return b.select(b.icmp_unsigned("<", point, I32(0x80)), point, result)
