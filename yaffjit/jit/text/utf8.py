"""UTF-8 as machine code: check, count, find characters, decode, hash.

Text in unverified or proto2 data may be anything. `points` checks it and counts its characters; the others
require a text that it accepted. Nothing reads outside ``[pointer, pointer + nbytes)``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from llvmlite import ir
from numba.core import cgutils

from yaffjit.jit.emit.outline import I1, I8, I16, I32, I64, POINTER, Body, call_outlined

# What's wrong, in a fault's two lowest bits.
REASONS = ("invalid start byte", "invalid continuation byte", "unexpected end of data")
_START, _CONTINUATION, _END = range(3)
_BLOCK = ir.VectorType(I64, 4)
# CPython's hash of bytes and of a str's characters.
_HASH = "_Py_HashBytes" if sys.version_info < (3, 14) else "Py_HashBuffer"


def is_ascii(builder: ir.IRBuilder, pointer: ir.Value, nbytes: ir.Value, frozen: bool = True) -> ir.Value:
    """Whether all bytes are below 128, as an i1."""

    def emit(body: Body) -> None:
        b = body.builder
        pointer, nbytes = body.args

        def give(joined: ir.Value) -> None:
            """Return whether no byte of an integer has its highest bit set."""
            highest = int.from_bytes(b"\x80" * (joined.type.width // 8), "little")
            b.ret(b.icmp_unsigned("==", b.and_(joined, joined.type(highest)), joined.type(0)))

        def ends(type: ir.Type, width: int) -> ir.Value:
            """The first and the last ``width`` bytes, which overlap if there are fewer than twice as many."""
            last = body.load(pointer, b.sub(nbytes, I64(width)), type)
            return b.or_(body.load(pointer, 0, type), last)

        with b.if_then(b.icmp_unsigned(">", nbytes, I64(32))):
            joined = cgutils.alloca_once_value(b, ends(_BLOCK, 32))
            with cgutils.for_range(b, b.lshr(nbytes, I64(5))) as blocks:
                block = body.load(pointer, b.shl(blocks.index, I64(5)), _BLOCK)
                b.store(b.or_(b.load(joined), block), joined)
            give(b.bitcast(b.load(joined), ir.IntType(256)))
        for width in (16, 8, 4):
            with b.if_then(b.icmp_unsigned(">=", nbytes, I64(width))):
                type = ir.IntType(8 * width)
                give(ends(type, width))
        body.return_unless(b.icmp_unsigned("!=", nbytes, I64(0)), I1(1))
        middle = body.load(pointer, b.lshr(nbytes, I64(1)), I8)
        give(b.or_(ends(I8, 1), middle))

    return call_outlined(builder, "text.is_ascii", "", I1, [pointer, nbytes], emit, frozen)


def points(builder: ir.IRBuilder, pointer: ir.Value, nbytes: ir.Value, frozen: bool = True) -> ir.Value:
    """The number of characters, as an i64; negative where the bytes aren't UTF-8.

    Then its complement is ``start << 4 | width << 2 | reason``: where Python's decoder stops, how many bytes
    it finds wrong, and why.
    """

    def emit(body: Body) -> None:
        pointer, nbytes = body.args
        body.return_unless(body.builder.not_(is_ascii(body.builder, pointer, nbytes, frozen)), nbytes)
        body.builder.ret(_checked_points(body.builder, pointer, nbytes, frozen))

    return call_outlined(builder, "text.points", "", I64, [pointer, nbytes], emit, frozen, inline=False)


def _checked_points(builder: ir.IRBuilder, pointer: ir.Value, nbytes: ir.Value, frozen: bool) -> ir.Value:
    def emit(body: Body) -> None:
        b = body.builder
        pointer, nbytes = body.args
        count = cgutils.alloca_once_value(b, I64(0))
        with _each_character(b, nbytes) as (at, advance):
            lead = body.load(pointer, at, I8)
            left = b.sub(nbytes, at)

            def fault(width: int, reason: int) -> None:
                b.ret(b.not_(b.or_(b.shl(at, I64(4)), I64(width << 2 | reason))))

            def check(nth: int, low: ir.Value, high: ir.Value) -> None:
                """The nth byte of the character: it's there, and from low to high."""
                with b.if_then(b.icmp_unsigned("<=", left, I64(nth)), likely=False):
                    fault(nth, _END)
                byte = body.load(pointer, b.add(at, I64(nth)), I8)
                outside = b.icmp_unsigned(">", b.sub(byte, low), b.sub(high, low))
                with b.if_then(outside, likely=False):
                    fault(nth, _CONTINUATION)

            width = _width(b, lead)
            with b.if_then(b.icmp_unsigned(">=", lead, I8(0x80))):
                valid = b.icmp_unsigned("<=", b.sub(lead, I8(0xC2)), I8(0xF4 - 0xC2))
                with b.if_then(b.not_(valid), likely=False):
                    fault(1, _START)
                low, high = I8(0x80), I8(0xBF)
                for special, first, last in (
                    (0xE0, 0xA0, 0xBF),
                    (0xED, 0x80, 0x9F),
                    (0xF0, 0x90, 0xBF),
                    (0xF4, 0x80, 0x8F),
                ):
                    found = b.icmp_unsigned("==", lead, I8(special))
                    low, high = b.select(found, I8(first), low), b.select(found, I8(last), high)
                check(1, low, high)
                for nth in (2, 3):
                    with b.if_then(b.icmp_unsigned(">", width, I64(nth))):
                        check(nth, I8(0x80), I8(0xBF))
            b.store(b.add(b.load(count), I64(1)), count)
            advance(width)
        b.ret(b.load(count))

    return call_outlined(builder, "text.checked", "", I64, [pointer, nbytes], emit, frozen, inline=False)


def _width(b: ir.IRBuilder, lead: ir.Value) -> ir.Value:
    """Bytes of the character that a byte begins, as an i64."""
    width = I64(1)
    for least, bytes in ((0xC0, 2), (0xE0, 3), (0xF0, 4)):
        width = b.select(b.icmp_unsigned(">=", lead, I8(least)), I64(bytes), width)
    return width


@contextmanager
def _each_character(
    b: ir.IRBuilder, nbytes: ir.Value
) -> Iterator[tuple[ir.Value, Callable[[ir.Value], None]]]:
    """A loop over positions: yields the position, and a function that goes on by some bytes, called last."""
    position = cgutils.alloca_once_value(b, I64(0))
    test = b.append_basic_block("characters")
    body = b.append_basic_block("character")
    done = b.append_basic_block("characters.done")
    b.branch(test)
    b.position_at_end(test)
    at = b.load(position)
    b.cbranch(b.icmp_unsigned("<", at, nbytes), body, done)
    b.position_at_end(body)

    def advance(width: ir.Value) -> None:
        b.store(b.add(at, width), position)
        b.branch(test)

    yield at, advance
    b.position_at_end(done)


def character_width(builder: ir.IRBuilder, pointer: ir.Value, frozen: bool = True) -> ir.Value:
    """Bytes of the character at a pointer, as an i64.

    Requires: a character of a text that `points` accepted is there.
    """

    def emit(body: Body) -> None:
        body.builder.ret(_width(body.builder, body.load(body.args[0], 0, I8)))

    return call_outlined(builder, "text.width", "", I64, [pointer], emit, frozen)


def code_point(builder: ir.IRBuilder, pointer: ir.Value, width: ir.Value, frozen: bool = True) -> ir.Value:
    """The number of the character at a pointer, as an i32. Requires: as `character_width`, which it has."""

    def emit(body: Body) -> None:
        b = body.builder
        pointer, width = body.args
        lead = b.zext(body.load(pointer, 0, I8), I32)
        body.return_unless(b.icmp_unsigned("!=", width, I64(1)), lead)
        # 2, 3, 4 bytes have 5, 4, 3 bits in the first.
        bits = b.and_(lead, b.lshr(I32(0x7F), b.trunc(width, I32)))
        found = cgutils.alloca_once_value(b, bits)
        for nth in (1, 2, 3):
            with b.if_then(b.icmp_unsigned(">", width, I64(nth))):
                more = b.and_(b.zext(body.load(pointer, nth, I8), I32), I32(0x3F))
                b.store(b.or_(b.shl(b.load(found), I32(6)), more), found)
        b.ret(b.load(found))

    return call_outlined(builder, "text.code_point", "", I32, [pointer, width], emit, frozen)


def offset_of(
    builder: ir.IRBuilder,
    pointer: ir.Value,
    nbytes: ir.Value,
    count: ir.Value,
    index: ir.Value,
    frozen: bool = True,
) -> ir.Value:
    """Where the character of a number begins, as an i64; ``nbytes`` for the number of characters."""

    def emit(body: Body) -> None:
        b = body.builder
        pointer, nbytes, count, index = body.args
        body.return_unless(b.icmp_unsigned("!=", count, nbytes), index)
        left = cgutils.alloca_once_value(b, index)
        with _each_character(b, nbytes) as (at, advance):
            remaining = b.load(left)
            body.return_unless(b.icmp_unsigned("!=", remaining, I64(0)), at)
            b.store(b.sub(remaining, I64(1)), left)
            advance(_width(b, body.load(pointer, at, I8)))
        b.ret(nbytes)

    args = [pointer, nbytes, count, index]
    return call_outlined(builder, "text.offset", "", I64, args, emit, frozen)


def kind(
    builder: ir.IRBuilder, pointer: ir.Value, nbytes: ir.Value, count: ir.Value, frozen: bool = True
) -> ir.Value:
    """How many bytes each character of the str has, as an i64: 1, 2 or 4."""

    def emit(body: Body) -> None:
        b = body.builder
        pointer, nbytes, count = body.args
        body.return_unless(b.icmp_unsigned("!=", count, nbytes), I64(1))
        highest = cgutils.alloca_once_value(b, I8(0))
        with cgutils.for_range(b, nbytes) as bytes:
            byte, found = body.load(pointer, bytes.index, I8), b.load(highest)
            b.store(b.select(b.icmp_unsigned(">", byte, found), byte, found), highest)
        lead = b.load(highest)
        wide = b.select(b.icmp_unsigned(">=", lead, I8(0xF0)), I64(4), I64(2))
        b.ret(b.select(b.icmp_unsigned("<", lead, I8(0xC4)), I64(1), wide))

    args = [pointer, nbytes, count]
    return call_outlined(builder, "text.kind", "", I64, args, emit, frozen, inline=False)


def _call(
    builder: ir.IRBuilder,
    name: str,
    result: ir.Type,
    args: Sequence[ir.Value],
    emit: Callable[[Body], None],
    attributes: Sequence[str] = (),
) -> ir.Value:
    """Call a function that ``emit`` writes, which may do anything."""
    symbol = f"yaffjit.{name}"
    function = builder.module.globals.get(symbol)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(result, [arg.type for arg in args]), symbol)
        function.linkage = "linkonce_odr"
        function.attributes._known = function.attributes._known | {"willreturn"}
        for attribute in ("nounwind", "noinline", *attributes):
            function.attributes.add(attribute)
        emit(Body(function, frozen=False))
    return builder.call(function, args)


def decode(
    builder: ir.IRBuilder, pointer: ir.Value, nbytes: ir.Value, out: ir.Value, width: ir.Value
) -> None:
    """Write the characters of a text that isn't all ASCII, ``width`` (1, 2, 4) bytes each, to ``out``."""

    def emit(body: Body) -> None:
        b = body.builder
        pointer, nbytes, out, width = body.args
        index = cgutils.alloca_once_value(b, I64(0))
        with _each_character(b, nbytes) as (at, advance):
            start = body.at(pointer, at)
            length = character_width(b, start)
            character = code_point(b, start, length)
            target = body.at(out, b.mul(b.load(index), width))
            for type in (I8, I16, I32):
                with b.if_then(b.icmp_unsigned("==", width, I64(type.width // 8))):
                    value = character if type is I32 else b.trunc(character, type)
                    b.store(value, b.bitcast(target, type.as_pointer()), align=1)
            b.store(b.add(b.load(index), I64(1)), index)
            advance(length)
        b.ret_void()

    _call(builder, "text.decode", ir.VoidType(), [pointer, nbytes, out, width], emit)


def hash_bytes(builder: ir.IRBuilder, pointer: ir.Value, nbytes: ir.Value, frozen: bool = True) -> ir.Value:
    """CPython's hash of bytes in this process, as an i64."""

    def emit(body: Body) -> None:
        b = body.builder
        signature = ir.FunctionType(I64, [POINTER, I64])
        function = cgutils.get_or_insert_function(b.module, signature, _HASH)
        b.ret(b.call(function, body.args))

    return call_outlined(builder, "text.hash_bytes", _HASH, I64, [pointer, nbytes], emit, frozen)


def hash_text(builder: ir.IRBuilder, pointer: ir.Value, nbytes: ir.Value, frozen: bool = True) -> ir.Value:
    """CPython's hash of the str in this process, as an i64: that of its characters as bytes.

    It's -1, which no hash is, where the bytes aren't UTF-8 or there's no memory.
    """

    def emit_wide(body: Body) -> None:
        b = body.builder
        pointer, nbytes = body.args
        count = points(b, pointer, nbytes)
        body.return_unless(b.icmp_signed(">=", count, I64(0)), I64(-1))
        width = kind(b, pointer, nbytes, count)
        size = b.mul(count, width)
        allocate = cgutils.get_or_insert_function(b.module, ir.FunctionType(POINTER, [I64]), "NRT_Allocate")
        free = cgutils.get_or_insert_function(b.module, ir.FunctionType(ir.VoidType(), [POINTER]), "NRT_Free")
        buffer = b.call(allocate, [size])
        body.return_unless(cgutils.is_not_null(b, buffer), I64(-1))
        decode(b, pointer, nbytes, buffer, width)
        signature = ir.FunctionType(I64, [POINTER, I64])
        found = b.call(cgutils.get_or_insert_function(b.module, signature, _HASH), [buffer, size])
        b.call(free, [buffer])
        b.ret(found)

    def emit(body: Body) -> None:
        b = body.builder
        pointer, nbytes = body.args
        with b.if_then(is_ascii(b, pointer, nbytes, frozen), likely=True):
            b.ret(hash_bytes(b, pointer, nbytes, frozen))
        # Its buffer is gone when it returns, so to its callers it writes to no memory.
        name, touched = ("text.hash_wide", "readnone") if frozen else ("text.hash_wide_changing", "readonly")
        b.ret(_call(b, name, I64, body.args, emit_wide, [touched]))

    return call_outlined(builder, "text.hash", _HASH, I64, [pointer, nbytes], emit, frozen, inline=False)
