"""What kernels that write need beside `yaffjit.kernels.memory`: copies, hashes, floats by their bits.

All take and return int64, floats apart. Nothing is checked: each caller states what it requires.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from yaffjit.kernels.cached import inner
from yaffjit.kernels.memory import (
    load_i64,
    load_u8,
    load_u16,
    load_u32,
    store_i64,
    store_u8,
    store_u16,
    store_u32,
)

_BYTES = ir.IntType(8).as_pointer()
_INT64 = ir.IntType(64)
_LONG = 256  # bytes from which on libc copies faster


@intrinsic
def _memcpy(typingctx: Any, to: Any, source: Any, nbytes: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        to, source = builder.inttoptr(args[0], _BYTES), builder.inttoptr(args[1], _BYTES)
        cgutils.raw_memcpy(builder, to, source, args[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic
def zero(typingctx: Any, to: Any, nbytes: Any) -> Any:
    """Set bytes to 0."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        cgutils.memset(builder, builder.inttoptr(args[0], _BYTES), args[1], 0)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def mix(typingctx: Any, a: Any, b: Any) -> Any:
    """High and low half of the product of two unsigned numbers, XORed."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        high = builder.trunc(builder.lshr(product, wide(64)), _INT64)
        return builder.xor(high, builder.trunc(product, _INT64))

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def float64_of(typingctx: Any, bits: Any) -> Any:
    """The double of its bits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@intrinsic
def float32_of(typingctx: Any, bits: Any) -> Any:
    """The float of the low 32 bits, as a double."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        single = builder.bitcast(builder.trunc(args[0], ir.IntType(32)), ir.FloatType())
        return builder.fpext(single, ir.DoubleType())

    return types.float64(types.int64), codegen


@inner
def copy(to: int, source: int, nbytes: int) -> None:
    """Copy bytes between places that don't overlap."""
    if nbytes >= _LONG:
        _memcpy(to, source, nbytes)
    elif nbytes >= 8:
        for i in range(0, nbytes - 8, 8):
            store_i64(to + i, load_i64(source + i))
        store_i64(to + nbytes - 8, load_i64(source + nbytes - 8))
    elif nbytes >= 4:
        head = load_u32(source)
        tail = load_u32(source + nbytes - 4)
        store_u32(to, head)
        store_u32(to + nbytes - 4, tail)
    elif nbytes >= 2:
        head = load_u16(source)
        tail = load_u16(source + nbytes - 2)
        store_u16(to, head)
        store_u16(to + nbytes - 2, tail)
    elif nbytes == 1:
        store_u8(to, load_u8(source))


@inner
def _short_word(pos: int, nbytes: int) -> int:
    """Up to seven bytes as one number."""
    if nbytes >= 4:
        return load_u32(pos) | load_u32(pos + nbytes - 4) << 32
    if nbytes >= 2:
        return load_u16(pos) | load_u16(pos + nbytes - 2) << 16
    return load_u8(pos) if nbytes == 1 else 0


@inner
def hash_of(pos: int, nbytes: int, seed: int) -> int:
    """A hash of bytes: who doesn't know the seed can't make many of them equal."""
    state = seed ^ nbytes
    end = pos + nbytes
    if nbytes < 8:
        return mix(state ^ _short_word(pos, nbytes), seed | 1)
    while end - pos > 8:
        state = mix(state ^ load_i64(pos), seed | 1)
        pos += 8
    return mix(state ^ load_i64(end - 8), seed | 1)


@inner
def are_equal(a: int, b: int, nbytes: int) -> bool:
    """Whether the same bytes lie at both places."""
    if nbytes < 8:
        return _short_word(a, nbytes) == _short_word(b, nbytes)
    for i in range(0, nbytes - 8, 8):
        if load_i64(a + i) != load_i64(b + i):
            return False
    return load_i64(a + nbytes - 8) == load_i64(b + nbytes - 8)


@inner
def compare(a: int, a_nbytes: int, b: int, b_nbytes: int) -> int:
    """Negative, 0 or positive: the order of two strings of bytes."""
    shared = min(a_nbytes, b_nbytes)
    for i in range(shared):
        difference = load_u8(a + i) - load_u8(b + i)
        if difference != 0:
            return difference
    return a_nbytes - b_nbytes
