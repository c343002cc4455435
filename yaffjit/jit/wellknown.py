"""What protobuf's Timestamp and Duration can do, in jitted code: numbers, datetime64, timedelta64, sums.

Rounding and checks are protobuf's. Where Python's integers grow beyond 64 bits, an OverflowError is raised.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global, signature

from yaffjit.errors import CompileTypeError, NumberError, NumberOverflowError
from yaffjit.jit import dates  # noqa: F401  (arrays of what is made here)
from yaffjit.jit.emit import yaff
from yaffjit.jit.emit.outline import I64
from yaffjit.jit.refusals import refusal
from yaffjit.jit.types import MessageViewType, WireViewType
from yaffjit.plan.model import MessagePlan
from yaffjit.plan.requests import DURATION, TIMESTAMP

NANOS = 10**9
FIRST_SECOND = -62135596800  # of year 1
LAST_SECOND = 253402300799  # of year 9999
_DATETIME = types.NPDatetime("us")
_TIMEDELTA = types.NPTimedelta("us")
_I128 = ir.IntType(128)


@njit
def _raise_invalid(seconds, nanos):  # type: ignore[no-untyped-def]
    if seconds < FIRST_SECOND or seconds > LAST_SECOND:
        raise NumberError(
            "Timestamp is not valid: Seconds {} must be in range [-62135596800, 253402300799].", seconds
        )
    raise NumberError("Timestamp is not valid: Nanos {} must be in a range [0, 999999].", nanos)


@njit
def _raise_too_large(seconds):  # type: ignore[no-untyped-def]
    raise NumberOverflowError("{} seconds are too many for the unit asked for, in 64 bits", seconds)


def _read(context: Any, builder: ir.IRBuilder, view: MessageViewType, value: ir.Value) -> tuple[Any, Any]:
    """The seconds and nanos of a Timestamp or Duration, as i64; a Timestamp's are checked."""
    from yaffjit.jit.records import raise_jitted

    mp = view.mp
    native = cgutils.create_struct_proxy(view)(context, builder, value)
    fields = mp.by_name["seconds"], mp.by_name["nanos"]
    if isinstance(view, WireViewType):
        from yaffjit.jit.wire.read import slots_of

        seconds, nanos = (slots_of(context, builder, view, native, f, "value")[0] for f in fields)
    else:
        seconds, nanos = (yaff.scalar(builder, mp, f, native.pointer, not view.owned) for f in fields)
    nanos = builder.sext(nanos, I64)
    if mp.full_name == TIMESTAMP:
        # One comparison each: below the range, the difference is a large unsigned number.
        late = builder.icmp_unsigned(
            ">", builder.sub(seconds, I64(FIRST_SECOND)), I64(LAST_SECOND - FIRST_SECOND)
        )
        odd = builder.icmp_unsigned(">=", nanos, I64(NANOS))
        with cgutils.if_unlikely(builder, builder.or_(late, odd)):
            raise_jitted(context, builder, _raise_invalid, (types.int64, types.int64), [seconds, nanos])
    return seconds, nanos


def _in_units(
    context: Any, builder: ir.IRBuilder, view: MessageViewType, value: ir.Value, per_second: int
) -> ir.Value:
    """The whole number of units, a part of one cut off towards zero."""
    from yaffjit.jit.records import raise_jitted

    seconds, nanos = _read(context, builder, view, value)
    if per_second == 1:
        return seconds
    rest = builder.sdiv(nanos, I64(NANOS // per_second))
    if view.mp.full_name == TIMESTAMP and per_second < NANOS:  # what is valid fits
        return builder.add(builder.mul(seconds, I64(per_second)), rest)
    whole = builder.mul(builder.sext(seconds, _I128), _I128(per_second))
    whole = builder.add(whole, builder.sext(rest, _I128))
    result = builder.trunc(whole, I64)
    with cgutils.if_unlikely(builder, builder.icmp_signed("!=", builder.sext(result, _I128), whole)):
        raise_jitted(context, builder, _raise_too_large, (types.int64,), [seconds])
    return result


# ---- methods ----


def _make_method(name: str, result: types.Type, per_second: int) -> type[AbstractTemplate]:
    class Convert(AbstractTemplate):
        key = f"yaffjit.{name}"

        def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature:
            if args or kws:
                takes = "no time zone in jitted code" if name == "ToDatetime" else "no argument"
                raise refusal(CompileTypeError, f"{name}() takes {takes}")
            return signature(result, recvr=self.this)

    @lower_builtin(Convert.key, MessageViewType)
    def lower(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        return _in_units(context, builder, sig.recvr or sig.args[0], args[0], per_second)

    return Convert


_NUMBERS = {
    "ToNanoseconds": _make_method("ToNanoseconds", types.int64, NANOS),
    "ToMicroseconds": _make_method("ToMicroseconds", types.int64, 10**6),
    "ToMilliseconds": _make_method("ToMilliseconds", types.int64, 10**3),
    "ToSeconds": _make_method("ToSeconds", types.int64, 1),
}
_METHODS = {
    TIMESTAMP: {**_NUMBERS, "ToDatetime": _make_method("ToDatetime", _DATETIME, 10**6)},
    DURATION: {**_NUMBERS, "ToTimedelta": _make_method("ToTimedelta", _TIMEDELTA, 10**6)},
}


def method(mp: MessagePlan, name: str) -> type[AbstractTemplate] | None:
    """The template of a helper of a well-known type, or None."""
    return _METHODS.get(mp.full_name, {}).get(name)


def instead(mp: MessagePlan, name: str) -> str | None:
    """What to do instead of calling a helper of protobuf's that jitted code hasn't; None for other names."""
    return "call it outside" if name in _helpers(mp.full_name) else None


@cache
def _helpers(full_name: str) -> frozenset[str]:
    """The names of the helpers that protobuf gives messages of this type."""
    from google.protobuf.internal.well_known_types import WKTBASES

    base = WKTBASES.get(full_name)
    return frozenset(name for name in vars(base) if not name.startswith("_")) if base else frozenset()


# ---- sums and differences, as of ToDatetime() and ToTimedelta() ----


def _as_numpy(t: types.Type) -> types.Type | None:
    if isinstance(t, MessageViewType):
        return {TIMESTAMP: _DATETIME, DURATION: _TIMEDELTA}.get(t.mp.full_name)
    return t if isinstance(t, (types.NPDatetime, types.NPTimedelta)) else None


def _combines(function: Callable[[Any, Any], Any]) -> None:
    class Combine(AbstractTemplate):
        metadata: ClassVar[dict[str, str]] = {"target": "cpu"}

        def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
            if not any(isinstance(arg, MessageViewType) for arg in args):
                return None
            taken = tuple(_as_numpy(arg) for arg in args)
            if None in taken:
                return None
            sig = self.context.resolve_function_type(function, taken, {})
            return signature(sig.return_type, *args) if sig is not None else None

    infer_global(function)(Combine)

    def lower(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        taken = tuple(_as_numpy(arg) for arg in sig.args)
        values = [
            _in_units(context, builder, t, value, 10**6) if isinstance(t, MessageViewType) else value
            for t, value in zip(sig.args, args, strict=True)
        ]
        function_type = context.typing_context.resolve_value_type(function)
        inner = function_type.get_call_type(context.typing_context, taken, {})
        return context.get_function(function_type, inner)(builder, values)

    others = (MessageViewType, types.NPDatetime, types.NPTimedelta)
    for other in others:
        lower_builtin(function, MessageViewType, other)(lower)
        if other is not MessageViewType:
            lower_builtin(function, other, MessageViewType)(lower)


_combines(operator.add)
_combines(operator.sub)
