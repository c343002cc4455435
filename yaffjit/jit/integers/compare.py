"""Comparisons of uint64_exact with integers and floats, ``in``, ``min`` and ``max``: exact, as Python's."""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import Signature, signature
from numba.cpython.setobj import SetInstance

from yaffjit.jit.refusals import refused_call

from .type import UInt64ExactType, implementation, operand, operands, typed, uint64_exact

_SYMBOL = {
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
}
_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _comparison(context: Any, args: tuple[types.Type, ...]) -> Signature | None:
    taken = operands(args)
    return signature(types.boolean, *taken) if taken and len(taken) == 2 else None


def _with_integer(
    builder: ir.IRBuilder, symbol: str, x: ir.Value, typ: types.Type, other: ir.Value
) -> ir.Value:
    """``x symbol other`` (i1), where `other` is a uint64_exact, uint64 or int64."""
    result = builder.icmp_unsigned(symbol, x, other)
    if typ is types.int64:
        negative = builder.icmp_signed("<", other, other.type(0))
        result = builder.select(negative, cgutils.bool_t(int(symbol in ("!=", ">", ">="))), result)
    return result


def _with_float(builder: ir.IRBuilder, symbol: str, x: ir.Value, other: ir.Value) -> ir.Value:
    """``x symbol other`` (i1) by the exact values: `other`'s whole part as an integer, then its fraction."""
    double = other.type
    below = builder.fcmp_ordered("<", other, double(0.0))
    above = builder.fcmp_ordered(">=", other, double(2.0**64))
    inside = builder.and_(builder.fcmp_ordered("ord", other, other), builder.not_(builder.or_(below, above)))
    safe = builder.select(inside, other, double(0.0))
    whole = builder.fptoui(safe, x.type)
    fraction = builder.fcmp_ordered(">", safe, builder.uitofp(whole, double))
    same = builder.icmp_unsigned("==", x, whole)
    equal = builder.and_(inside, builder.and_(same, builder.not_(fraction)))
    if symbol == "==":
        return equal
    if symbol == "!=":
        return builder.not_(equal)
    if symbol in ("<", "<="):
        less = builder.or_(builder.icmp_unsigned("<", x, whole), builder.and_(same, fraction))
        result = builder.or_(above, builder.and_(inside, less))
    else:
        result = builder.or_(below, builder.and_(inside, builder.icmp_unsigned(">", x, whole)))
    return builder.or_(result, equal) if symbol.endswith("=") else result


def compare(builder: ir.IRBuilder, symbol: str, argtypes: Any, args: Any) -> ir.Value:
    """``args[0] symbol args[1]`` (i1); `argtypes` are operand types, at most one of them float64."""
    (x, y), (xt, yt) = args, argtypes
    if xt is types.int64 and yt is types.int64:
        return builder.icmp_signed(symbol, x, y)
    if xt in (types.int64, types.float64):
        x, y, yt, symbol = y, x, xt, _MIRRORED[symbol]
    return (
        _with_float(builder, symbol, x, y)
        if yt is types.float64
        else _with_integer(builder, symbol, x, yt, y)
    )


def _register_comparison(function: Any, symbol: str) -> None:
    def lower(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
        return compare(builder, symbol, sig.args, args)

    typed(function, _comparison)
    lower_builtin(function, UInt64ExactType, UInt64ExactType)(lower)
    for other in (types.Integer, types.Float):
        lower_builtin(function, UInt64ExactType, other)(lower)
        lower_builtin(function, other, UInt64ExactType)(lower)


for _function, _sign in _SYMBOL.items():
    _register_comparison(_function, _sign)


# Of [2**63 + 5, 7] numba makes a list of floats, and rounds.
FLOATS_OF_INTEGERS = (
    "a uint64 isn't compared with a list or set of floats, which numba makes of integers where some are "
    "above 2**63 - 1 and others aren't: use a tuple"
)


def holds_floats(container: types.Type) -> bool:
    """Whether it's a list or set of floats, which may have been written as integers."""
    kinds = (types.List, types.ListType, types.Set)
    return isinstance(container, kinds) and isinstance(container.dtype, types.Float)


def _elements(container: types.Type) -> tuple[types.Type, ...]:
    if isinstance(container, types.BaseTuple):
        return tuple(container.types)
    one_type = (types.List, types.ListType, types.Set, types.RangeType, types.Array)
    return (container.dtype,) if isinstance(container, one_type) else ()


def _contains(context: Any, args: tuple[types.Type, ...]) -> Signature | None:
    """Without converting the item to the container's type, as numba's own rule for sequences does."""
    container, item = args
    if item is uint64_exact and holds_floats(container):
        return refused_call(args, FLOATS_OF_INTEGERS)
    taken = operands((item, *_elements(container)))
    if taken is None or len(taken) == 1:
        return None
    if taken[0] is not uint64_exact and (
        types.float64 in taken or not isinstance(container, types.BaseTuple)
    ):
        return None
    if isinstance(container, (types.Set, types.Array)) and not isinstance(
        container.dtype, (types.Integer, UInt64ExactType)
    ):
        return None  # numpy compares with floats in float64
    return signature(types.boolean, container, taken[0])


typed(operator.contains, _contains)


def _in_tuple(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
    container, item_type = sig.args
    wide_item = operand(item_type)
    item = context.cast(builder, args[1], item_type, wide_item)
    found = cgutils.false_bit
    for typ, value in zip(container.types, cgutils.unpack_tuple(builder, args[0]), strict=True):
        wide = operand(typ)
        widened = context.cast(builder, value, typ, wide)
        found = builder.or_(found, compare(builder, "==", (wide, wide_item), (widened, item)))
    return found


for _tuple in (types.UniTuple, types.Tuple, types.NamedUniTuple, types.NamedTuple):
    for _item in (UInt64ExactType, types.Integer):
        lower_builtin(operator.contains, _tuple, _item)(_in_tuple)


def _in_loop(container: Any, item: Any) -> bool:
    for element in container:  # noqa: SIM110  (numba compiles this)
        if element == item:
            return True
    return False


def _in_array_loop(container: Any, item: Any) -> bool:
    for element in container.flat:  # noqa: SIM110  (numba compiles this)
        if element == item:
            return True
    return False


@lower_builtin(operator.contains, types.List, UInt64ExactType)
@lower_builtin(operator.contains, types.ListType, UInt64ExactType)
@lower_builtin(operator.contains, types.Array, UInt64ExactType)
def _in_list(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
    loop = _in_array_loop if isinstance(sig.args[0], types.Array) else _in_loop
    return context.compile_internal(builder, loop, sig, args)


@lower_builtin(operator.contains, types.RangeType, UInt64ExactType)
def _in_range(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
    """numba's own answer for what it doesn't know as an integer is False."""
    call, _ = implementation(context, operator.contains, sig.args[0], types.int64)
    fits = builder.icmp_signed(">=", args[1], args[1].type(0))
    return builder.and_(fits, call(builder, args))


@lower_builtin(operator.contains, types.Set, UInt64ExactType)
def _in_set(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
    container = sig.args[0]
    members = SetInstance(context, builder, container, args[0])
    if container.dtype is uint64_exact:
        return members.contains(args[1])
    limit = args[1].type(container.dtype.maxval)
    fits = builder.icmp_unsigned("<=", args[1], limit)
    item = context.cast(builder, builder.select(fits, args[1], limit), types.uint64, container.dtype)
    return builder.and_(fits, members.contains(item))


def _values(args: tuple[types.Type, ...]) -> tuple[types.Type, ...]:
    """What ``min(*args)`` chooses from: the arguments, or the elements of a tuple."""
    return tuple(args[0].types) if len(args) == 1 and isinstance(args[0], types.BaseTuple) else args


def _extreme(function: Any, context: Any, args: tuple[types.Type, ...]) -> Signature | None:
    taken = operands(_values(args))
    if (
        taken is None
        or types.float64 in taken
        or (len(args) == 1 and not isinstance(args[0], types.BaseTuple))
    ):
        return None
    # a minimum among which one is signed is at most 2**63 - 1, so it's an int64
    result = types.int64 if function is min and types.int64 in taken else uint64_exact
    return signature(result, *(taken if _values(args) is args else args))


def _register_extreme(function: Any, symbol: str) -> None:
    def choose(context: Any, builder: ir.IRBuilder, argtypes: Any, args: Any) -> ir.Value:
        best, best_type = None, None
        for typ, value in zip(argtypes, args, strict=True):
            wide = operand(typ)
            value = context.cast(builder, value, typ, wide)
            if best is None:
                best, best_type = value, wide
                continue
            better = compare(builder, symbol, (wide, best_type), (value, best))
            best = builder.select(better, value, best)
            signed = {wide is types.int64, best_type is types.int64}
            best_type = types.int64 if (any if function is min else all)(signed) else uint64_exact
        return best

    def of_arguments(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
        return choose(context, builder, sig.args, args)

    def of_tuple(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
        return choose(context, builder, sig.args[0].types, cgutils.unpack_tuple(builder, args[0]))

    typed(function, partial(_extreme, function))
    lower_builtin(function, types.BaseTuple)(of_tuple)
    lower_builtin(function, types.VarArg(types.Any))(of_arguments)


_register_extreme(min, "<")
_register_extreme(max, ">")
