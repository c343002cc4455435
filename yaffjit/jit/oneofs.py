"""What ``WhichOneof`` gives in jitted code: it compares with names and None, and is a str outside."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, ClassVar

from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.core.imputils import lower_builtin, lower_cast
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global, signature
from numba.extending import box, intrinsic, overload, overload_method

from yaffjit.jit.emit.outline import I32
from yaffjit.jit.truth import has_truth
from yaffjit.jit.types import OneofType


def _bare(t: types.Type) -> types.Type:
    """A oneof's own type for a variable that was first None, which numba makes an Optional."""
    return t.type if isinstance(t, types.Optional) and isinstance(t.type, OneofType) else t


class _Typing(AbstractTemplate):
    prefer_literal = True
    # Comes before numba's own rules, by which nothing equals None and only an Optional is None.
    metadata: ClassVar[dict[str, str]] = {"target": "cpu"}


_NAMES = (types.StringLiteral, types.NoneType)
_MAYBE_TEXT = types.Optional(types.unicode_type)


@infer_global(operator.eq)
@infer_global(operator.ne)
@infer_global(operator.is_)
@infer_global(operator.is_not)
class _Compare(_Typing):
    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
        a, b = map(_bare, args)
        plain = (types.NoneType,) if self.key in (operator.is_, operator.is_not) else _NAMES
        if isinstance(a, OneofType) and (a == b or isinstance(b, plain)):
            return signature(types.boolean, a, b)
        if isinstance(b, OneofType) and isinstance(a, plain):
            return signature(types.boolean, a, b)
        return None


@infer_global(operator.truth)
@infer_global(operator.not_)
class _OptionalTruth(_Typing):
    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
        bare = _bare(args[0])
        return signature(types.boolean, bare) if bare != args[0] else None


@lower_cast(types.Optional, OneofType)
def _from_optional(
    context: Any, builder: ir.IRBuilder, source: types.Optional, target: OneofType, value: ir.Value
) -> ir.Value:
    optional = context.make_helper(builder, source, value=value)
    return builder.select(optional.valid, optional.data, I32(0))


def _number(oneof: OneofType, other: types.Type, value: ir.Value) -> ir.Value:
    """The number that the other side of a comparison stands for."""
    if isinstance(other, OneofType):
        return value
    return I32(0 if isinstance(other, types.NoneType) else oneof.number(other.literal_value))


def _lower_compare(function: Callable[[Any, Any], Any], sign: str) -> None:
    def compare(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        oneof = next(t for t in sig.args if isinstance(t, OneofType))
        left, right = (_number(oneof, t, value) for t, value in zip(sig.args, args, strict=True))
        return builder.icmp_signed(sign, left, right)

    for other in (types.StringLiteral, types.NoneType, OneofType):
        lower_builtin(function, OneofType, other)(compare)
        if other is not OneofType:
            lower_builtin(function, other, OneofType)(compare)


_lower_compare(operator.eq, "==")
_lower_compare(operator.ne, "!=")


@lower_builtin(operator.is_, OneofType, types.NoneType)
@lower_builtin(operator.is_, types.NoneType, OneofType)
def _is_none(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    value = args[0] if isinstance(sig.args[0], OneofType) else args[1]
    return builder.icmp_signed("==", value, I32(0))


@has_truth(OneofType)
def _is_true(context: Any, builder: ir.IRBuilder, oneof: types.Type, value: ir.Value) -> ir.Value:
    return builder.icmp_signed("!=", value, I32(0))


@lower_cast(types.NoneType, OneofType)
def _from_none(
    context: Any, builder: ir.IRBuilder, source: types.Type, target: OneofType, value: ir.Value
) -> Any:
    return I32(0)


@lower_cast(OneofType, types.Optional)
def _to_text(
    context: Any, builder: ir.IRBuilder, source: OneofType, target: types.Optional, value: ir.Value
) -> ir.Value:
    """The member's name as a string that may be None, or the same where the target is its own Optional."""
    if isinstance(target.type, OneofType):
        return context.make_optional_value(builder, target.type, value)
    result = cgutils.alloca_once_value(builder, context.make_optional_none(builder, target.type))
    for f in source.members:
        with builder.if_then(builder.icmp_signed("==", value, I32(f.number))):
            name = context.get_constant_generic(builder, target.type, f.name)
            builder.store(context.make_optional_value(builder, target.type, name), result)
    return builder.load(result)


@intrinsic
def _shown(typingctx, oneof):  # type: ignore[no-untyped-def]
    """The member's name as a string; "None" for None."""

    def codegen(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        optional = context.make_helper(
            builder, _MAYBE_TEXT, value=_to_text(context, builder, oneof, _MAYBE_TEXT, args[0])
        )
        none = context.get_constant_generic(builder, types.unicode_type, "None")
        return builder.select(optional.valid, optional.data, none)

    return types.unicode_type(oneof), codegen


@overload_method(OneofType, "__str__")
def _str(oneof):  # type: ignore[no-untyped-def]
    return lambda oneof: _shown(oneof)


@overload_method(OneofType, "__repr__")
def _repr(oneof):  # type: ignore[no-untyped-def]
    return lambda oneof: "None" if oneof is None else "'" + _shown(oneof) + "'"


@intrinsic
def _member_number(typingctx, oneof):  # type: ignore[no-untyped-def]
    """The number of the member that is set, as an int64; 0 for None."""

    def codegen(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        return builder.sext(args[0], ir.IntType(64))

    return types.int64(oneof), codegen


def _compare_with_text(oneof: OneofType, function: Callable[[Any, Any], Any], oneof_first: bool) -> Any:
    """A comparison with a name that is only known when the code runs."""
    numbers = tuple(f.number for f in oneof.members)
    names = tuple(f.name for f in oneof.members)
    negate = function is operator.ne

    def named(number, name):  # type: ignore[no-untyped-def]
        for i in range(len(numbers)):
            if numbers[i] == number:
                return names[i] == name
        return False

    named = njit(named)
    if oneof_first:
        return lambda a, b: named(_member_number(a), b) != negate
    return lambda a, b: named(_member_number(b), a) != negate


def _overload_compare(function: Callable[[Any, Any], Any]) -> None:
    @overload(function)
    def compare(a, b):  # type: ignore[no-untyped-def]
        if isinstance(a, OneofType) and isinstance(b, types.UnicodeType):
            return _compare_with_text(a, function, True)
        if isinstance(b, OneofType) and isinstance(a, types.UnicodeType):
            return _compare_with_text(b, function, False)
        return None


_overload_compare(operator.eq)
_overload_compare(operator.ne)


@box(OneofType)
def _box(oneof: OneofType, value: ir.Value, c: Any) -> ir.Value:
    """The member's name, or None."""
    none = c.pyapi.borrow_none()
    result = c.builder.alloca(none.type)
    c.pyapi.incref(none)
    c.builder.store(none, result)
    for f in oneof.members:
        with c.builder.if_then(c.builder.icmp_signed("==", value, I32(f.number))):
            c.pyapi.decref(none)
            name = c.pyapi.unserialize(c.pyapi.serialize_object(f.name))
            c.builder.store(name, result)
    return c.builder.load(result)
