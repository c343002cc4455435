"""Arithmetic of uint64_exact: ``+ - * // % divmod ** / & | ^ << >>``; an operator is one to ten instructions.

Integers come as int64, uint64 or uint64_exact; with a float the uint64_exact becomes a float64 first.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import Signature, signature

from .type import UInt64ExactType, implementation, operands, raise_if, typed, uint64_exact

Emit = Callable[[Any, ir.IRBuilder, Any, Any], ir.Value]
_DIVISION_TEXT = "integer division or modulo by zero"


def _register(
    functions: tuple[Any, ...],
    emit: Emit,
    result: Callable[[types.Type, types.Type], types.Type] = lambda x, y: uint64_exact,
    floats: bool = True,
) -> None:
    """Give `functions` the integer code `emit`; with a float, numba's own code for two floats if `floats`."""

    def rule(context: Any, args: tuple[types.Type, ...]) -> Signature | None:
        taken = operands(args)
        if taken is None or len(taken) != 2:
            return None
        if types.float64 not in taken:
            return signature(result(*taken), *taken)
        return context.resolve_function_type(functions[0], (types.float64,) * 2, {}) if floats else None

    def lower(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
        return emit(context, builder, sig.args, args)

    for function in functions:
        typed(function, rule)
        lower_builtin(function, UInt64ExactType, UInt64ExactType)(lower)
        lower_builtin(function, UInt64ExactType, types.Integer)(lower)
        lower_builtin(function, types.Integer, UInt64ExactType)(lower)


def _negative(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    return builder.icmp_signed("<", value, value.type(0))


def _refuse_negative(
    context: Any, builder: ir.IRBuilder, argtypes: Any, args: Any, text: str, which: tuple[int, ...] = (0, 1)
) -> None:
    """Raise ValueError where one of the int64 operands that `which` numbers is negative."""
    for i in which:
        if argtypes[i] is types.int64:
            raise_if(context, builder, _negative(builder, args[i]), ValueError, text)


# ---- wrapping modulo 2**64 ----


def _wrapping(name: str) -> Emit:
    return lambda context, builder, argtypes, args: getattr(builder, name)(*args)


_register((operator.add, operator.iadd), _wrapping("add"))
_register((operator.sub, operator.isub), _wrapping("sub"))
_register((operator.mul, operator.imul), _wrapping("mul"))


# ---- bits ----


def _bits(name: str, symbol: str) -> Emit:
    def emit(context: Any, builder: ir.IRBuilder, argtypes: Any, args: Any) -> ir.Value:
        if symbol != "&":
            text = f"uint64 {symbol} a negative integer is negative, which a uint64 can't hold"
            _refuse_negative(context, builder, argtypes, args, text)
        return getattr(builder, name)(*args)

    return emit


_register((operator.and_, operator.iand), _bits("and_", "&"), floats=False)
_register((operator.or_, operator.ior), _bits("or_", "|"), floats=False)
_register((operator.xor, operator.ixor), _bits("xor", "^"), floats=False)


def _shift(left: bool) -> Emit:
    def emit(context: Any, builder: ir.IRBuilder, argtypes: Any, args: Any) -> ir.Value:
        value, count = args
        _refuse_negative(context, builder, argtypes, args, "negative shift count", (1,))
        inside = builder.icmp_unsigned("<", count, count.type(64))
        if not left and argtypes[0] is types.int64:
            return builder.ashr(value, builder.select(inside, count, count.type(63)))
        count = builder.select(inside, count, count.type(0))
        shifted = (builder.shl if left else builder.lshr)(value, count)
        return builder.select(inside, shifted, shifted.type(0))

    return emit


_register((operator.lshift, operator.ilshift), _shift(left=True), floats=False)
_register(
    (operator.rshift, operator.irshift),
    _shift(left=False),
    result=lambda x, y: types.int64 if x is types.int64 else uint64_exact,
    floats=False,
)


# ---- whole division ----


def _safe_divisor(
    context: Any, builder: ir.IRBuilder, divisor: ir.Value, text: str
) -> tuple[ir.Value, ir.Value]:
    """Raise ZeroDivisionError where numba does; else 1 for 0, and whether it was 0 (the result is 0 then)."""
    zero = builder.icmp_unsigned("==", divisor, divisor.type(0))
    with builder.if_then(zero, likely=False):
        context.error_model.fp_zero_division(builder, (text,))
    return builder.select(zero, divisor.type(1), divisor), zero


def _floordiv(context: Any, builder: ir.IRBuilder, argtypes: Any, args: Any) -> ir.Value:
    x, y = args
    if argtypes[1] is types.int64:
        text = "uint64 // a negative integer is negative, which a uint64 can't hold"
        below = builder.and_(_negative(builder, y), builder.icmp_unsigned("!=", x, x.type(0)))
        raise_if(context, builder, below, ValueError, text)
    divisor, zero = _safe_divisor(context, builder, y, _DIVISION_TEXT)
    if argtypes[0] is types.int64:  # floor(x / y) == ~(~x // y) below 0
        negative = _negative(builder, x)
        quotient = builder.udiv(builder.select(negative, builder.not_(x), x), divisor)
        quotient = builder.select(negative, builder.not_(quotient), quotient)
    else:
        quotient = builder.udiv(x, divisor)
    return builder.select(zero, quotient.type(0), quotient)


def _mod(context: Any, builder: ir.IRBuilder, argtypes: Any, args: Any) -> ir.Value:
    x, y = args
    divisor, zero = _safe_divisor(context, builder, y, _DIVISION_TEXT)
    if argtypes[0] is types.int64:
        negative = _negative(builder, x)
        rest = builder.urem(builder.select(negative, builder.not_(x), x), divisor)
        mirrored = builder.sub(builder.sub(divisor, rest), rest.type(1))
        rest = builder.select(negative, mirrored, rest)
    elif argtypes[1] is types.int64:
        negative = _negative(builder, divisor)
        rest = builder.urem(x, builder.select(negative, builder.neg(divisor), divisor))
        below = builder.and_(negative, builder.icmp_unsigned("!=", rest, rest.type(0)))
        rest = builder.select(below, builder.add(rest, divisor), rest)
    else:
        rest = builder.urem(x, divisor)
    return builder.select(zero, rest.type(0), rest)


def _quotient_type(x: types.Type, y: types.Type) -> types.Type:
    return types.int64 if x is types.int64 else uint64_exact


def _rest_type(x: types.Type, y: types.Type) -> types.Type:
    return types.int64 if y is types.int64 else uint64_exact


def _divmod_type(x: types.Type, y: types.Type) -> types.Type:
    return types.Tuple((_quotient_type(x, y), _rest_type(x, y)))


def _divmod(context: Any, builder: ir.IRBuilder, argtypes: Any, args: Any) -> ir.Value:
    pair = (_floordiv(context, builder, argtypes, args), _mod(context, builder, argtypes, args))
    return context.make_tuple(builder, _divmod_type(*argtypes), pair)


_register((operator.floordiv, operator.ifloordiv), _floordiv, _quotient_type)
_register((operator.mod, operator.imod), _mod, _rest_type)
_register((divmod,), _divmod, _divmod_type)


# ---- true division ----


def _magnitude(builder: ir.IRBuilder, typ: types.Type, value: ir.Value) -> ir.Value:
    if typ is not types.int64:
        return value
    return builder.select(_negative(builder, value), builder.neg(value), value)


def _long_division(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """x / y as a double, x and y not 0: 56 bits of the quotient, a rest is or-ed into the last.

    So many that the one conversion to a double rounds as the exact quotient would; scaling by 2 is exact.
    """
    integer, double = x.type, ir.DoubleType()
    quotient = cgutils.alloca_once_value(builder, builder.udiv(x, y))
    rest = cgutils.alloca_once_value(builder, builder.urem(x, y))
    scale = cgutils.alloca_once_value(builder, double(1.0))
    loop, body, end = (builder.append_basic_block(f"quotient.{name}") for name in ("loop", "body", "end"))
    builder.branch(loop)
    builder.position_at_end(loop)
    builder.cbranch(builder.icmp_unsigned("<", builder.load(quotient), integer(2**55)), body, end)
    builder.position_at_end(body)
    left = builder.load(rest)
    doubled = builder.shl(left, integer(1))
    take = builder.or_(_negative(builder, left), builder.icmp_unsigned(">=", doubled, y))
    builder.store(builder.select(take, builder.sub(doubled, y), doubled), rest)
    bit = builder.zext(take, integer)
    builder.store(builder.or_(builder.shl(builder.load(quotient), integer(1)), bit), quotient)
    builder.store(builder.fmul(builder.load(scale), double(0.5)), scale)
    builder.branch(loop)
    builder.position_at_end(end)
    inexact = builder.zext(builder.icmp_unsigned("!=", builder.load(rest), integer(0)), integer)
    whole = builder.uitofp(builder.or_(builder.load(quotient), inexact), double)
    return builder.fmul(whole, builder.load(scale))


def _truediv(context: Any, builder: ir.IRBuilder, argtypes: Any, args: Any) -> ir.Value:
    double = ir.DoubleType()
    x, y = (_magnitude(builder, t, v) for t, v in zip(argtypes, args, strict=True))
    zero = builder.icmp_unsigned("==", y, y.type(0))
    with builder.if_then(zero, likely=False):
        context.error_model.fp_zero_division(builder, ("division by zero",))
    result = cgutils.alloca_once(builder, double)
    exact = [builder.icmp_unsigned("<=", v, v.type(2**53)) for v in (x, y)]
    simple = builder.or_(builder.and_(*exact), builder.or_(zero, builder.icmp_unsigned("==", x, x.type(0))))
    with builder.if_else(simple, likely=True) as (quick, slow):
        with quick:
            builder.store(builder.fdiv(builder.uitofp(x, double), builder.uitofp(y, double)), result)
        with slow:
            builder.store(_long_division(builder, x, y), result)
    quotient = builder.load(result)
    for typ, value in zip(argtypes, args, strict=True):
        if typ is types.int64:
            quotient = builder.select(_negative(builder, value), builder.fneg(quotient), quotient)
    return quotient


_register((operator.truediv, operator.itruediv), _truediv, lambda x, y: types.float64)


# ---- powers ----


def _text_of_power() -> str:
    """What this Python says of a negative power of zero."""
    try:
        pow(0, -1)
    except ZeroDivisionError as error:
        return str(error)
    raise AssertionError("0 has no negative power")


_POWER_TEXT = _text_of_power()


def _refuse_zero(context: Any, builder: ir.IRBuilder, base: ir.Value, negative: ir.Value) -> None:
    """Raise ZeroDivisionError where numba raises it, and the base is 0 and the exponent negative (an i1)."""
    zero = builder.icmp_unsigned("==", base, base.type(0))
    with builder.if_then(builder.and_(zero, negative), likely=False):
        context.error_model.fp_zero_division(builder, (_POWER_TEXT,))


def _power(context: Any, builder: ir.IRBuilder, argtypes: Any, args: Any) -> ir.Value:
    """By squaring, modulo 2**64."""
    if argtypes[1] is types.int64:
        _refuse_zero(context, builder, args[0], _negative(builder, args[1]))
    text = "a negative power of integers isn't one: use floats"
    _refuse_negative(context, builder, argtypes, args, text, (1,))
    integer = args[0].type
    factor, left = (cgutils.alloca_once_value(builder, v) for v in args)
    result = cgutils.alloca_once_value(builder, integer(1))
    loop, body, end = (builder.append_basic_block(f"power.{name}") for name in ("loop", "body", "end"))
    builder.branch(loop)
    builder.position_at_end(loop)
    exponent = builder.load(left)
    builder.cbranch(builder.icmp_unsigned("!=", exponent, integer(0)), body, end)
    builder.position_at_end(body)
    odd = builder.trunc(exponent, cgutils.bool_t)
    base = builder.load(factor)
    product = builder.load(result)
    builder.store(builder.select(odd, builder.mul(product, base), product), result)
    builder.store(builder.mul(base, base), factor)
    builder.store(builder.lshr(exponent, integer(1)), left)
    builder.branch(loop)
    builder.position_at_end(end)
    return builder.load(result)


def _of_float(context: Any, args: tuple[types.Type, ...]) -> Signature | None:
    taken = operands(args)
    return signature(types.float64, *taken) if taken == (uint64_exact, types.float64) else None


def _float_power(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
    base, exponent = args
    below = builder.fcmp_ordered("<", exponent, exponent.type(0.0))
    finite = builder.fcmp_ordered(">", exponent, exponent.type(-math.inf))  # else it's infinite in Python too
    _refuse_zero(context, builder, base, builder.and_(below, finite))
    call, _ = implementation(context, operator.pow, types.float64, types.float64)
    return call(builder, (builder.uitofp(base, exponent.type), exponent))


_POWERS = (operator.pow, operator.ipow, pow)
for _function in _POWERS:
    typed(_function, _of_float)
    lower_builtin(_function, UInt64ExactType, types.Float)(_float_power)
_register(_POWERS, _power)
