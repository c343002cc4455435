"""Numbers as the dtype that a column has, and whether they fit it exactly, as LLVM."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir

from yaffjit.jit.emit.outline import I1, I8, I64

_UNSIGNED = ("uint32", "fixed32", "uint64", "fixed64")
_FLOATS = {"float32": (ir.FloatType(), 24), "float64": (ir.DoubleType(), 53)}  # bits of what is exact

Converted = tuple[ir.Value, ir.Value | None]


@dataclass(frozen=True, slots=True)
class _Integers:
    """The integers that a type holds."""

    bits: int
    signed: bool

    @property
    def low(self) -> int:
        return -(2 ** (self.bits - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        return 2 ** (self.bits - 1) - 1 if self.signed else 2**self.bits - 1


def from_field(builder: ir.IRBuilder, kind: str, value: ir.Value, dtype: str) -> Converted:
    """A number of a field in a column's dtype.

    Args:
        kind: the field's.
        value: as `yaff.stored_type`.

    Returns:
        The value, and whether it fits, as an i1: rounding to float32 fits, anything else that isn't exact
        doesn't. None where all values fit.
    """
    if kind == "bool":
        return from_integer(builder, builder.icmp_unsigned("!=", value, I8(0)), False, dtype)
    if kind not in ("float", "double"):
        return from_integer(builder, value, kind not in _UNSIGNED, dtype)
    if kind == "float":
        return (builder.fpext(value, ir.DoubleType()) if dtype == "float64" else value), None
    if dtype == "float64":
        return value, None
    rounded = builder.fptrunc(value, ir.FloatType())
    limit = ir.Constant(ir.FloatType(), math.inf)
    became = _magnitude_is(builder, rounded, limit)
    was = _magnitude_is(builder, value, ir.Constant(ir.DoubleType(), math.inf))
    return rounded, builder.or_(was, builder.not_(became))


def from_integer(builder: ir.IRBuilder, value: ir.Value, signed: bool, dtype: str) -> Converted:
    """An integer in a column's dtype, and whether it fits; an i1 for "bool"."""
    source = _Integers(value.type.width, signed)
    if dtype == "bool":
        return builder.zext(value, I8), None
    if dtype in _FLOATS:
        typ, exact = _FLOATS[dtype]
        convert: Callable[..., ir.Value] = builder.sitofp if signed else builder.uitofp
        fits = None if source.bits - signed <= exact else _is_exact(builder, value, source, exact)
        return convert(value, typ), fits
    target = _integers(dtype)
    wide = value
    if source.bits < 64:
        wide = builder.sext(value, I64) if signed else builder.zext(value, I64)
    compare = builder.icmp_signed if signed else builder.icmp_unsigned
    fits = None
    if source.low < target.low:
        fits = compare(">=", wide, I64(target.low))
    if source.high > target.high:
        below = compare("<=", wide, I64(target.high))
        fits = below if fits is None else builder.and_(fits, below)
    return (wide if target.bits == 64 else builder.trunc(wide, ir.IntType(target.bits))), fits


def _integers(dtype: str) -> _Integers:
    return _Integers(int(dtype.removeprefix("u").removeprefix("int")), not dtype.startswith("u"))


def _magnitude_is(builder: ir.IRBuilder, value: ir.Value, limit: ir.Constant) -> ir.Value:
    fabs = builder.module.declare_intrinsic("llvm.fabs", [value.type])
    return builder.fcmp_ordered("==", builder.call(fabs, [value]), limit)


def _is_exact(builder: ir.IRBuilder, value: ir.Value, source: _Integers, exact: int) -> ir.Value:
    """Whether an integer's bits from its first to its last 1 are at most ``exact``."""
    if source.signed:
        negative = builder.icmp_signed("<", value, value.type(0))
        value = builder.select(negative, builder.neg(value), value)
    zero_counts = []
    for name in ("llvm.ctlz", "llvm.cttz"):
        count = builder.module.declare_intrinsic(
            name, [value.type], ir.FunctionType(value.type, [value.type, I1])
        )
        zero_counts.append(builder.call(count, [value, I1(0)]))  # of 0 all are zeros
    zeros = builder.add(*zero_counts)
    return builder.icmp_unsigned(">=", zeros, value.type(source.bits - exact))
