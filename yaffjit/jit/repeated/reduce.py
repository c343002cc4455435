"""``sum``, ``min``, ``max``, ``any`` and ``all`` of repeated fields: results of the Python that runs.

From Python 3.12 on ``sum`` adds floats with a compensation for what rounding loses.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_borrowed, impl_ret_new_ref, lower_builtin
from numba.core.typing.templates import Signature, infer_global, signature
from numba.core.utils import pysignature
from numba.extending import overload

from yaffjit.jit.emit.outline import I64
from yaffjit.jit.integers import uint64_exact
from yaffjit.jit.integers.type import operand
from yaffjit.jit.refusals import refused_call, shown
from yaffjit.jit.repeated.access import Typing
from yaffjit.jit.repeated.elements import Elements, elements_of
from yaffjit.jit.repeated.equality import call_function, taken_as
from yaffjit.jit.repeated.type import RepeatedType
from yaffjit.jit.types import BorrowedType

_DOUBLE = ir.DoubleType()
COMPENSATED = sum([0.1] * 10) == 1.0


def _empty_text(function: Callable[[Any], Any]) -> str:
    """What Python says where nothing is compared."""
    try:
        function(())
    except ValueError as error:
        return str(error)
    raise AssertionError


# ---- sum ----


def _with_start(iterable: Any, start: Any) -> None: ...


@infer_global(sum)
class _Sum(Typing):
    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
        if not args or not isinstance(args[0], RepeatedType):
            return None
        if kws.keys() - {"start"} or len(args) + len(kws) > 2:
            return refused_call(args, "sum() takes an iterable and a start")
        element = operand(args[0].element)
        start = args[1] if len(args) > 1 else kws.get("start")
        start_as = operand(start) if start is not None else types.int64
        if element is None or start_as is None:
            return refused_call(args, f"sum() takes numbers: {args[0].place()}")
        taken = {element, start_as}
        if types.float64 in taken:
            result: types.Type = types.float64
        else:
            result = uint64_exact if taken & {uint64_exact, types.uint64} else types.int64
        if start is None:
            return signature(result, args[0])
        return signature(result, args[0], start_as).replace(pysig=pysignature(_with_start))


@lower_builtin(sum, RepeatedType)
def _sum(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    return _sum_from(context, builder, sig, [args[0], I64(0)])


@lower_builtin(sum, RepeatedType, types.Any)
def _sum_from(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    elements = elements_of(context, builder, sig.args[0], args[0])
    start_type = sig.args[1] if len(sig.args) > 1 else types.int64
    wide = taken_as(elements.type)
    if sig.return_type is not types.float64:  # modulo 2**64
        total = cgutils.alloca_once_value(builder, args[1])
        with cgutils.for_range(builder, elements.count) as loop:
            value = context.cast(builder, elements.at(loop.index), elements.type, wide)
            builder.store(builder.add(builder.load(total), value), total)
        return builder.load(total)
    start = _as_float(builder, start_type, args[1])
    if wide is not types.float64:
        total = cgutils.alloca_once_value(builder, start)
        with cgutils.for_range(builder, elements.count) as loop:
            value = context.cast(builder, elements.at(loop.index), elements.type, wide)
            builder.store(builder.fadd(builder.load(total), _as_float(builder, wide, value)), total)
        return builder.load(total)
    return _sum_floats(builder, elements, start, start_type is not types.float64)


def _sum_floats(builder: ir.IRBuilder, elements: Elements, start: ir.Value, whole: bool) -> ir.Value:
    """The sum of floats; Python adds the first one to a start that's an integer without compensation."""
    total = cgutils.alloca_once_value(builder, start)
    lost = cgutils.alloca_once_value(builder, _DOUBLE(0.0))
    begin = I64(0)
    if whole:
        any_element = builder.icmp_signed(">", elements.count, I64(0))
        with builder.if_then(any_element):
            builder.store(builder.fadd(start, elements.at(I64(0))), total)
        begin = I64(1)
    with cgutils.for_range(builder, elements.count, start=begin) as loop:
        before = builder.load(total)
        value = elements.at(loop.index)
        after = builder.fadd(before, value)
        builder.store(after, total)
        if COMPENSATED:
            larger = builder.fcmp_ordered(">=", _magnitude(builder, before), _magnitude(builder, value))
            big = builder.select(larger, before, value)
            small = builder.select(larger, value, before)
            rest = builder.fadd(builder.fsub(big, after), small)
            builder.store(builder.fadd(builder.load(lost), rest), lost)
    result, rest = builder.load(total), builder.load(lost)
    finite = builder.fcmp_ordered("<", _magnitude(builder, rest), _DOUBLE(float("inf")))
    used = builder.and_(finite, builder.fcmp_ordered("!=", rest, _DOUBLE(0.0)))
    return builder.select(used, builder.fadd(result, rest), result)


def _as_float(builder: ir.IRBuilder, wide: types.Type, value: ir.Value) -> ir.Value:
    if wide is types.float64:
        return value
    return (builder.sitofp if wide is types.int64 else builder.uitofp)(value, _DOUBLE)


def _magnitude(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    function = ir.FunctionType(_DOUBLE, [_DOUBLE])
    return builder.call(cgutils.get_or_insert_function(builder.module, function, "llvm.fabs.f64"), [value])


# ---- min, max ----


def _with_default(iterable: Any, default: Any) -> None: ...


def _register_extreme(function: Any, better: Any, sign: str) -> None:
    empty_text = _empty_text(function)

    @infer_global(function)
    class Extreme(Typing):
        def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
            if not args or not isinstance(args[0], RepeatedType):
                return None
            repeated, name = args[0], function.__name__
            if len(args) > 1 or kws.keys() - {"default"}:
                text = f"{name}() of {repeated.place()} takes no argument but a default in jitted code"
                return refused_call(args, text)
            if repeated.f.kind == "message":
                return refused_call(args, f"messages have no order: {name}() of {repeated.place()}")
            if not kws:
                return signature(repeated.element, repeated)
            default = kws["default"]
            result = self.context.unify_types(repeated.element, types.unliteral(default))
            if result is None:
                kinds = f"{shown(repeated.element)} and {shown(default)}"
                text = f"{name}() of {repeated.place()} and its default are of types that don't meet: {kinds}"
                return refused_call(args, text)
            return signature(result, repeated, result).replace(pysig=pysignature(_with_default))

    def is_better(context: Any, builder: ir.IRBuilder, typ: types.Type, x: ir.Value, y: ir.Value) -> ir.Value:
        if typ is types.float64:
            return builder.fcmp_ordered(sign, x, y)
        if typ in (types.boolean, uint64_exact):
            return builder.icmp_unsigned(sign, x, y)
        if typ is types.int64:
            return builder.icmp_signed(sign, x, y)
        return call_function(context, builder, better, (typ, typ), (x, y))

    def best_of(context: Any, builder: ir.IRBuilder, elements: Elements) -> ir.Value:
        """The first of the best elements; there is one."""
        best = cgutils.alloca_once_value(builder, elements.at(I64(0)))
        with cgutils.for_range(builder, elements.count, start=I64(1)) as loop:
            value, before = elements.at(loop.index), builder.load(best)
            replaced = is_better(context, builder, elements.type, value, before)
            builder.store(builder.select(replaced, value, before), best)
        return builder.load(best)

    @lower_builtin(function, RepeatedType)
    def of_elements(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        elements = elements_of(context, builder, sig.args[0], args[0])
        with builder.if_then(builder.icmp_signed("==", elements.count, I64(0)), likely=False):
            context.call_conv.return_user_exc(builder, ValueError, (empty_text,))
        return impl_ret_borrowed(context, builder, sig.return_type, best_of(context, builder, elements))

    @lower_builtin(function, RepeatedType, types.Any)
    def with_default(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        elements = elements_of(context, builder, sig.args[0], args[0])
        result_type = sig.return_type
        result = cgutils.alloca_once_value(builder, args[1])
        with builder.if_else(builder.icmp_signed(">", elements.count, I64(0))) as (some, none):
            with some:  # a cast to a string of numba's makes a new one
                best = context.cast(builder, best_of(context, builder, elements), elements.type, result_type)
                if isinstance(result_type, BorrowedType):
                    context.nrt.incref(builder, result_type, best)
                builder.store(best, result)
            with none:
                context.nrt.incref(builder, result_type, args[1])
        return impl_ret_new_ref(context, builder, result_type, builder.load(result))


_register_extreme(min, operator.lt, "<")
_register_extreme(max, operator.gt, ">")


# ---- any, all ----


@overload(any)
def _any(iterable):  # type: ignore[no-untyped-def]
    """numba has neither for anything."""
    if not isinstance(iterable, types.IterableType):
        return None

    def impl(iterable):  # type: ignore[no-untyped-def]
        for element in iterable:  # noqa: SIM110  (numba compiles this)
            if element:
                return True
        return False

    return impl


@overload(all)
def _all(iterable):  # type: ignore[no-untyped-def]
    if not isinstance(iterable, types.IterableType):
        return None

    def impl(iterable):  # type: ignore[no-untyped-def]
        for element in iterable:  # noqa: SIM110  (numba compiles this)
            if not element:
                return False
        return True

    return impl
