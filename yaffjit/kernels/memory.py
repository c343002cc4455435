"""Raw memory by address, for kernels: loads and stores at any alignment, and words on the stack.

All take and return int64. Nothing is checked: each caller states what it requires.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_INT64 = ir.IntType(64)


def _make_load(bits: int, signed: bool = False, swapped: bool = False) -> Any:
    """An intrinsic (address) -> the integer of that many bits there, widened to int64.

    It's little-endian, or big-endian if ``swapped``.
    """
    integer = ir.IntType(bits)

    @intrinsic
    def load(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = builder.load(builder.inttoptr(args[0], integer.as_pointer()), align=1)
            if swapped:
                value = builder.bswap(value)
            if bits == 64:
                return value
            return builder.sext(value, _INT64) if signed else builder.zext(value, _INT64)

        return types.int64(types.int64), codegen

    return load


load_u8 = _make_load(8)
load_u16 = _make_load(16)
load_u32 = _make_load(32)
load_i32 = _make_load(32, signed=True)
load_i64 = _make_load(64)
load_be64 = _make_load(64, swapped=True)


@intrinsic
def high_bits(typingctx: Any, address: Any) -> Any:
    """The top bits of the 64 bytes at an address, the first byte's lowest."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        octets = ir.VectorType(ir.IntType(8), 64)
        value = builder.load(builder.inttoptr(args[0], octets.as_pointer()), align=1)
        return builder.bitcast(builder.icmp_signed("<", value, octets(None)), _INT64)

    return types.int64(types.int64), codegen


@intrinsic
def opaque(typingctx: Any, value: Any) -> Any:
    """An int64 as it is, of which the compiler knows nothing: it makes no branch of what was a comparison."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(_INT64, [_INT64])
        return builder.call(ir.InlineAsm(kind, "", "=r,0", side_effect=False), args)

    return types.int64(types.int64), codegen


def _make_store(bits: int) -> Any:
    """An intrinsic (address, value) that stores the low bits of an int64 there, little-endian."""
    integer = ir.IntType(bits)

    @intrinsic
    def store(typingctx: Any, address: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = builder.trunc(args[1], integer) if bits < 64 else args[1]
            builder.store(value, builder.inttoptr(args[0], integer.as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), codegen

    return store


store_u8 = _make_store(8)
store_u16 = _make_store(16)
store_u32 = _make_store(32)
store_i64 = _make_store(64)


@intrinsic
def store_words(typingctx: Any, address: Any, words: Any) -> Any:
    """Store a tuple of int64 at an address."""
    if not isinstance(words, types.BaseTuple):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        at = builder.inttoptr(args[0], _INT64.as_pointer())
        for i in range(len(words)):
            word = builder.extract_value(args[1], i)
            builder.store(word, builder.gep(at, [_INT64(i)]), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.UniTuple(types.int64, len(words))), codegen


@intrinsic(prefer_literal=True)
def load_words(typingctx: Any, address: Any, count: Any) -> Any:
    """The tuple of ``count`` (a constant) int64 at an address."""
    if not isinstance(count, types.IntegerLiteral):
        return None
    made = types.UniTuple(types.int64, count.literal_value)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        at = builder.inttoptr(args[0], _INT64.as_pointer())
        words = [builder.load(builder.gep(at, [_INT64(i)]), align=1) for i in range(made.count)]
        return context.make_tuple(builder, made, words)

    return made(types.int64, count), codegen


@intrinsic
def data_address(typingctx: Any, buf: Any) -> Any:
    """The address of the first byte of a bytes object or an array."""
    if not isinstance(buf, types.Buffer):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ptrtoint(context.make_helper(builder, buf, args[0]).data, _INT64)

    return types.int64(buf), codegen


@intrinsic(prefer_literal=True)
def stack_words(typingctx: Any, count: Any) -> Any:
    """The address of ``count`` (a constant) uninitialised words, valid until the calling function returns."""
    if not isinstance(count, types.IntegerLiteral):
        return None
    words = count.literal_value

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        area = cgutils.alloca_once(builder, _INT64, size=words, name="stack_words")
        return builder.ptrtoint(area, _INT64)

    return types.int64(count), codegen
