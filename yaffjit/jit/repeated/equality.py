"""Whether two elements are equal, as Python says: numbers by their exact values, whatever their types."""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from yaffjit.jit.emit.outline import I64
from yaffjit.jit.integers.compare import compare
from yaffjit.jit.integers.type import implementation, operand
from yaffjit.jit.refusals import shown
from yaffjit.jit.text.type import BytesType, TextType
from yaffjit.jit.types import MessageViewType

_DOUBLE = ir.DoubleType()


def family(typ: types.Type) -> str:
    """What a value is compared with by its content: "number", "text", "bytes", "message"; "" for others."""
    if operand(typ) is not None:
        return "number"
    if isinstance(typ, (TextType, types.UnicodeType, types.StringLiteral)):
        return "text"
    if isinstance(typ, (BytesType, types.Bytes)):
        return "bytes"
    return "message" if isinstance(typ, MessageViewType) else ""


def comparable(x: types.Type, y: types.Type) -> bool:
    """Whether values of two types can be equal."""
    return family(x) == family(y)


def why_not_compared(element: types.Type, other: types.Type, place: str) -> str | None:
    """The sentence, if jitted code can't compare elements of a repeated field with values of a type."""
    if family(element) == family(other) == "message":
        return f"messages aren't compared in jitted code: compare fields of {place}"
    return f"{place}: its elements aren't compared with {shown(other)}" if not family(other) else None


def taken_as(typ: types.Type) -> types.Type:
    """The type that a value is compared as: a number as its wide type."""
    wide: types.Type | None = operand(typ)
    return typ if wide is None else wide


def call_function(
    context: Any,
    builder: ir.IRBuilder,
    function: Any,
    arg_types: tuple[types.Type, ...],
    args: tuple[ir.Value, ...],
) -> ir.Value:
    """``function(*args)`` as jitted code would have it."""
    call, sig = implementation(context, function, *arg_types)
    converted = [
        context.cast(builder, value, typ, wanted)
        for value, typ, wanted in zip(args, arg_types, sig.args, strict=True)
    ]
    return call(builder, converted)


def equal(
    context: Any, builder: ir.IRBuilder, x_type: types.Type, x: ir.Value, y_type: types.Type, y: ir.Value
) -> ir.Value:
    """Whether two values of one family are equal, as an i1; of types as `taken_as` gives them."""
    if family(x_type) != "number":
        return call_function(context, builder, operator.eq, (x_type, y_type), (x, y))
    kinds = {x_type, y_type}
    if kinds == {types.int64, types.float64}:
        whole, double = (x, y) if x_type is types.int64 else (y, x)
        possible, converted = _float_as_int64(builder, double)
        return builder.and_(possible, builder.icmp_signed("==", whole, converted))
    if kinds == {types.float64}:
        return builder.fcmp_ordered("==", x, y)
    return compare(builder, "==", (x_type, y_type), (x, y))


def _float_as_int64(builder: ir.IRBuilder, value: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Whether a float is an int64 exactly, and that."""
    inside = builder.and_(
        builder.fcmp_ordered(">=", value, _DOUBLE(-(2.0**63))),
        builder.fcmp_ordered("<", value, _DOUBLE(2.0**63)),
    )
    converted = builder.fptosi(builder.select(inside, value, _DOUBLE(0.0)), I64)
    same = builder.fcmp_ordered("==", builder.sitofp(converted, _DOUBLE), value)
    return builder.and_(inside, same), converted


class Sought:
    """A value that elements are compared with, many times.

    A number is made one of the elements' type first, if one is equal to it; else no element is.
    """

    def __init__(
        self, context: Any, builder: ir.IRBuilder, element: types.Type, typ: types.Type, value: ir.Value
    ) -> None:
        self._context = context
        self._builder = builder
        self.element = taken_as(element)
        self.possible: ir.Value = cgutils.true_bit
        wide = taken_as(typ)
        value = value if wide is typ else context.cast(builder, value, typ, wide)
        if (self.element, wide) == (types.int64, types.float64):
            self.possible, value = _float_as_int64(builder, value)
            wide = types.int64
        self.typ = wide
        self.value = value

    def matches(self, raw_type: types.Type, raw: ir.Value) -> ir.Value:
        """Whether an element equals it, given that that's possible."""
        context, builder = self._context, self._builder
        element = raw if self.element is raw_type else context.cast(builder, raw, raw_type, self.element)
        return equal(context, builder, self.element, element, self.typ, self.value)
