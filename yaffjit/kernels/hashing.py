"""Hashes of integers and of bytes, the same in what writes a table and in what looks up in it.

The step is that of wyhash: both words of a 128-bit product, one xor the other. Whoever knows the seed can
make keys that collide, so tables bound their searches.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from yaffjit.kernels.cached import inner
from yaffjit.kernels.memory import load_i64, load_u8, load_u32

_INT64 = ir.IntType(64)
_INT128 = ir.IntType(128)

# Odd numbers whose bits are half ones: those of wyhash, as int64.
MIX_1 = 0xA0761D6478BD642F - 2**64
MIX_2 = 0xE7037ED1A0B428DB - 2**64
MIX_3 = 0x8EBC6AF09C88C6E3 - 2**64


def _product(builder: ir.IRBuilder, args: Any) -> tuple[ir.Value, ir.Value]:
    """Low and high word of the product of two unsigned integers."""
    wide = builder.mul(builder.zext(args[0], _INT128), builder.zext(args[1], _INT128))
    high = builder.trunc(builder.lshr(wide, _INT128(64)), _INT64)
    return builder.trunc(wide, _INT64), high


@intrinsic
def folded(typingctx: Any, first: Any, second: Any) -> Any:
    """The low word of an unsigned product xor its high word; int64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.xor(*_product(builder, args))

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def scaled(typingctx: Any, hashed: Any, count: Any) -> Any:
    """A hash as an integer from 0 to below ``count``, by its high bits; int64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _product(builder, args)[1]

    return types.int64(types.int64, types.int64), codegen


def _hash_integer(key, seed):  # type: ignore[no-untyped-def]
    """The hash of 64 bits, int64."""
    return folded(folded(key ^ MIX_1, seed ^ MIX_2), MIX_3)


hash_integer = inner(_hash_integer)


def _hash_bytes(address, nbytes, seed):  # type: ignore[no-untyped-def]
    """The hash of bytes, int64.

    Requires: ``nbytes`` bytes can be read at ``address``.
    Source: who calls it.
    """
    state = folded(seed ^ MIX_1, nbytes ^ MIX_2)
    left = nbytes
    at = address
    while left > 16:
        state = folded(load_i64(at) ^ MIX_1, load_i64(at + 8) ^ state)
        at += 16
        left -= 16
    if left >= 8:
        first, second = load_i64(at), load_i64(at + left - 8)
    elif left >= 4:
        first, second = load_u32(at), load_u32(at + left - 4)
    elif left > 0:
        first = (load_u8(at) << 16) | (load_u8(at + (left >> 1)) << 8) | load_u8(at + left - 1)
        second = 0
    else:
        first, second = 0, 0
    return folded(folded(first ^ MIX_2, second ^ state), MIX_3)


hash_bytes = inner(_hash_bytes)


def _same_bytes(first, second, nbytes):  # type: ignore[no-untyped-def]
    """Whether the bytes at two addresses are equal.

    Requires: ``nbytes`` bytes can be read at both.
    Source: who calls it.
    """
    if nbytes < 8:
        differing = 0
        for i in range(nbytes):
            differing |= load_u8(first + i) ^ load_u8(second + i)
        return differing == 0
    for i in range(0, nbytes - 7, 8):
        if load_i64(first + i) != load_i64(second + i):
            return False
    return load_i64(first + nbytes - 8) == load_i64(second + nbytes - 8)


same_bytes = inner(_same_bytes)
