"""The numba type of exact 64-bit unsigned integers, its casts, and what its operators take."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from llvmlite import ir
from numba.core import types
from numba.core.datamodel import models
from numba.core.imputils import lower_cast, lower_constant
from numba.core.typeconv import Conversion
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global
from numba.extending import box, intrinsic, register_model

from yaffjit.errors import CompileTypeError
from yaffjit.jit.keys import PlainType
from yaffjit.jit.refusals import is_asked_by_inference, refusal

INTEGERS = (
    types.Integer,
    types.IntegerLiteral,
    types.Boolean,
    types.BooleanLiteral,
    types.IntEnumMember,
)


class UInt64ExactType(PlainType, types.Hashable):
    """A value in [0, 2**64) that no implicit conversion leaves; one instance, ``uint64_exact``."""

    label = "uint64"

    def __init__(self) -> None:
        super().__init__("uint64_exact")

    def unify(self, context: Any, other: types.Type) -> types.Type | None:
        """With any integer: this type. With a float: nothing, hence a compile error."""
        if isinstance(other, types.Float) and is_asked_by_inference():
            text = f"a variable or result can't be a uint64 here and a {other} there: float(x) makes a float"
            raise refusal(CompileTypeError, text)
        return self if other is self or is_integer(other) else None

    def can_convert_from(self, context: Any, other: types.Type) -> Conversion | None:
        return Conversion.safe if is_integer(other) else None


uint64_exact = UInt64ExactType()


@register_model(UInt64ExactType)
class UInt64ExactModel(models.IntegerModel):
    """The bits of numba's uint64."""

    def __init__(self, dmm: Any, fe_type: types.Type) -> None:
        super().__init__(dmm, types.uint64)


@box(UInt64ExactType)
def _box(typ: types.Type, value: ir.Value, c: Any) -> ir.Value:
    return c.pyapi.long_from_ulonglong(value)


def is_integer(typ: types.Type) -> bool:
    """Whether `typ` is one of numba's integers, a literal, a boolean or a member of an IntEnum."""
    return isinstance(typ, INTEGERS)


def operand(typ: types.Type) -> types.Type | None:
    """The one type among uint64_exact, uint64, int64, float64 that an operator takes `typ` as, else None."""
    if isinstance(typ, types.Optional):
        typ = typ.type
    if typ is uint64_exact:
        return typ
    typ = types.unliteral(typ)
    if isinstance(typ, types.Integer) and not typ.signed:
        return types.uint64
    if is_integer(typ):
        return types.int64
    if isinstance(typ, types.Float):
        return types.float64
    return None


def operands(args: Iterable[types.Type]) -> tuple[types.Type, ...] | None:
    """What an operator takes `args` as; None if one isn't a number or none is a uint64_exact."""
    taken = tuple(operand(a) for a in args)
    return taken if uint64_exact in taken and None not in taken else None


def typed(
    function: Any, rule: Callable[[Any, tuple[types.Type, ...]], Signature | None], literals: bool = False
) -> None:
    """Let numba ask ``rule(context, argument types)`` for the signature of a call of `function`.

    Before its own rules, because some of them would take the type by converting it (``x in list_of_int64``).
    ``literals``: first with the types that numba takes for literals, which text is to it.
    """

    class Rule(AbstractTemplate):
        prefer_literal = literals
        metadata: ClassVar = {"target": "cpu"}  # more specific than the generic rules, so it comes first

        def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
            return None if kws else rule(self.context, args)

    infer_global(function)(Rule)


def raise_if(
    context: Any, builder: ir.IRBuilder, condition: ir.Value, error: type[Exception], text: str
) -> None:
    """Raise `error` from the jitted function that is being built where `condition` (i1) holds."""
    with builder.if_then(condition, likely=False):
        context.call_conv.return_user_exc(builder, error, (text,))


def implementation(context: Any, function: Any, *args: types.Type) -> tuple[Any, Signature]:
    """numba's own implementation of ``function(*args)``, overloads included, and its signature."""
    fnty = context.typing_context.resolve_value_type(function)
    sig = fnty.get_call_type(context.typing_context, args, {})
    return context.get_function(fnty, sig), sig


@lower_constant(UInt64ExactType)
def _constant(context: Any, builder: ir.IRBuilder, typ: types.Type, value: int) -> ir.Value:
    return context.get_constant(types.uint64, value)


@lower_cast(types.Integer, UInt64ExactType)
@lower_cast(types.IntegerLiteral, UInt64ExactType)
@lower_cast(types.Boolean, UInt64ExactType)
@lower_cast(types.BooleanLiteral, UInt64ExactType)
@lower_cast(types.IntEnumMember, UInt64ExactType)
def _from_integer(
    context: Any, builder: ir.IRBuilder, fromty: types.Type, toty: types.Type, value: ir.Value
) -> ir.Value:
    wide = operand(fromty)
    value = context.cast(builder, value, fromty, wide)
    if wide is types.int64:
        negative = builder.icmp_signed("<", value, value.type(0))
        text = "a negative integer doesn't fit where a uint64 is kept"
        raise_if(context, builder, negative, OverflowError, text)
    return value


@lower_cast(UInt64ExactType, types.Integer)
def _to_integer(
    context: Any, builder: ir.IRBuilder, fromty: types.Type, toty: Any, value: ir.Value
) -> ir.Value:
    if toty.maxval < 2**64 - 1:
        above = builder.icmp_unsigned(">", value, value.type(toty.maxval))
        text = f"a uint64 above {toty.maxval} doesn't fit in {toty}"
        raise_if(context, builder, above, OverflowError, text)
    return context.cast(builder, value, types.uint64, toty)


@lower_cast(UInt64ExactType, types.Float)
def _to_float(
    context: Any, builder: ir.IRBuilder, fromty: types.Type, toty: types.Type, value: ir.Value
) -> ir.Value:
    # to float32 by way of float64, as numpy does with Python's integers
    return context.cast(builder, builder.uitofp(value, ir.DoubleType()), types.float64, toty)


@intrinsic
def as_uint64(typingctx: Any, x: types.Type) -> Any:
    """``as_uint64(x)``: a uint64_exact as numba's own uint64."""
    if x is not uint64_exact:
        return None

    def codegen(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
        return args[0]

    return types.uint64(x), codegen
