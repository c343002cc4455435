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


def _make_load(bits: int, signed: bool = False) -> Any:
    """An intrinsic (address) -> the little-endian integer of that many bits there, widened to int64."""
    integer = ir.IntType(bits)

    @intrinsic
    def load(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = builder.load(builder.inttoptr(args[0], integer.as_pointer()), align=1)
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


store_i64 = _make_store(64)


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
