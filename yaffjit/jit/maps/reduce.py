"""``sum``, ``min`` and ``max`` of the keys and values of maps, with the results of the Python that runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from llvmlite import ir
from numba import njit
from numba.core import types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global, signature
from numba.core.utils import pysignature

from yaffjit.jit.emit.outline import I64
from yaffjit.jit.integers.type import operand, uint64_exact
from yaffjit.jit.maps.type import MapPartType, MapType
from yaffjit.jit.records import call_jitted
from yaffjit.jit.refusals import refused_call, shown
from yaffjit.jit.repeated.reduce import COMPENSATED

_MAPS = (MapType, MapPartType)


class _Typing(AbstractTemplate):
    metadata: ClassVar[dict[str, str]] = {"target": "cpu"}  # before numba's own
    prefer_literal = True


def _element(typ: Any) -> Any:
    return typ.iterator_type.yield_type


def _place(typ: Any) -> str:
    return f"{typ.part}() of {typ.field_name}"


# ---- sum ----


@njit
def _sum_integers(iterable, start):  # type: ignore[no-untyped-def]
    total = start
    for value in iterable:
        total += value
    return total


@njit
def _sum_floats(iterable, start, is_whole):  # type: ignore[no-untyped-def]
    """As CPython: the first float is added to an integer without compensation."""
    total, lost = start, 0.0
    for value in iterable:
        after = total + value
        if COMPENSATED and not is_whole:
            if abs(total) >= abs(value):
                lost += (total - after) + value
            else:
                lost += (value - after) + total
        is_whole = False
        total = after
    if lost != 0.0 and math.isfinite(lost):
        total += lost
    return total


def _with_start(iterable: Any, start: Any) -> None: ...


@infer_global(sum)
class _Sum(_Typing):
    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
        if not args or not isinstance(args[0], _MAPS):
            return None
        element = operand(_element(args[0])) if args[0].part != "items" else None
        start = args[1] if len(args) > 1 else kws.get("start", types.int64)
        start_as = operand(start)
        if element is None or start_as is None or kws.keys() - {"start"} or len(args) + len(kws) > 2:
            return refused_call(args, f"sum() takes numbers and a start, not {_place(args[0])}")
        taken = {element, start_as}
        if types.float64 in taken:
            result: types.Type = types.float64
        else:
            result = uint64_exact if taken & {uint64_exact, types.uint64} else types.int64
        if len(args) + len(kws) == 1:
            return signature(result, args[0])
        return signature(result, args[0], start_as).replace(pysig=pysignature(_with_start))


@lower_builtin(sum, MapType)
@lower_builtin(sum, MapPartType)
def _sum(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    return _sum_from(context, builder, signature(sig.return_type, *sig.args, types.int64), [*args, I64(0)])


@lower_builtin(sum, MapType, types.Any)
@lower_builtin(sum, MapPartType, types.Any)
def _sum_from(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    typ, start_type = sig.args
    result = sig.return_type
    start = context.cast(builder, args[1], start_type, result)
    if _element(typ) is not types.float64:
        return call_jitted(context, builder, _sum_integers, (typ, result), [args[0], start])
    is_whole = context.get_constant(types.boolean, start_type is not types.float64)
    return call_jitted(
        context, builder, _sum_floats, (typ, result, types.boolean), [args[0], start, is_whole]
    )


# ---- min, max ----


def _with_default(iterable: Any, default: Any) -> None: ...


def _register_extreme(function: Any, better: Callable[[Any, Any], Any]) -> None:
    try:
        function(())
    except ValueError as error:
        empty_text = str(error)
    better = njit(better)

    @njit
    def extreme(iterable):  # type: ignore[no-untyped-def]
        iterator = iter(iterable)
        if not iterable:
            raise ValueError(empty_text)
        best = next(iterator)
        for value in iterator:
            if better(value, best):
                best = value
        return best

    @njit
    def extreme_or(iterable, default):  # type: ignore[no-untyped-def]
        return extreme(iterable) if iterable else default

    @infer_global(function)
    class Extreme(_Typing):
        def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
            if not args or not isinstance(args[0], _MAPS):
                return None
            typ, name = args[0], function.__name__
            element = _element(typ)
            if len(args) > 1 or kws.keys() - {"default"}:
                text = f"{name}() of {_place(typ)} takes no argument but a default in jitted code"
                return refused_call(args, text)
            if typ.part == "items" or (typ.value_field.kind == "message" and typ.part == "values"):
                return refused_call(args, f"{name}() in jitted code takes numbers or text, not {_place(typ)}")
            if not kws:
                return signature(element, typ)
            result = self.context.unify_pairs(element, kws["default"])
            if result is None:
                kinds = f"{shown(element)} and {shown(kws['default'])}"
                text = f"{name}() of {_place(typ)} and its default are of types that don't meet: {kinds}"
                return refused_call(args, text)
            return signature(result, typ, result).replace(pysig=pysignature(_with_default))

    @lower_builtin(function, MapType)
    @lower_builtin(function, MapPartType)
    def of_map(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        return call_jitted(context, builder, extreme, sig.args, args)

    @lower_builtin(function, MapType, types.Any)
    @lower_builtin(function, MapPartType, types.Any)
    def with_default(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        return call_jitted(context, builder, extreme_or, sig.args, args)


_register_extreme(min, lambda value, best: value < best)
_register_extreme(max, lambda value, best: value > best)
