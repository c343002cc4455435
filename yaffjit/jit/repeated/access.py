"""Length, truth, indices, slices and iteration of repeated fields in jitted code."""

from __future__ import annotations

import operator
from typing import Any, ClassVar

from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.core.imputils import (
    RefType,
    impl_ret_borrowed,
    impl_ret_new_ref,
    iternext_impl,
    lower_builtin,
)
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global, signature
from numba.cpython.slicing import fix_slice, guard_invalid_slice

from yaffjit.errors import ElementError
from yaffjit.jit.emit.outline import I64
from yaffjit.jit.integers import uint64_exact
from yaffjit.jit.lengths import has_length
from yaffjit.jit.records import raise_jitted
from yaffjit.jit.refusals import refused_call, shown
from yaffjit.jit.repeated.elements import ArrayElements, elements_of
from yaffjit.jit.repeated.type import RepeatedIteratorType, RepeatedType
from yaffjit.jit.truth import has_truth


class Typing(AbstractTemplate):
    """A rule that comes before numba's own."""

    metadata: ClassVar[dict[str, str]] = {"target": "cpu"}


@infer_global(len)
class _Len(Typing):
    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
        if len(args) == 1 and isinstance(args[0], RepeatedType):
            return signature(types.intp, args[0])
        return None


@lower_builtin(len, RepeatedType)
def _len(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    return elements_of(context, builder, sig.args[0], args[0]).count


@has_truth(RepeatedType)
def _is_true(context: Any, builder: ir.IRBuilder, repeated: Any, value: ir.Value) -> ir.Value:
    return builder.icmp_signed("!=", elements_of(context, builder, repeated, value).count, I64(0))


@infer_global(operator.getitem)
class _GetItem(Typing):
    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
        repeated, index = args
        if not isinstance(repeated, RepeatedType):
            return None
        if isinstance(index, (types.Integer, types.Boolean, types.IntEnumMember)):
            return signature(repeated.element, repeated, types.intp)
        if isinstance(index, types.SliceType):
            bounds = types.slice3_type if index.has_step else types.slice2_type
            return signature(repeated.sliced(), repeated, bounds)
        if index is uint64_exact:
            return None  # it has a rule of its own, which comes back here
        text = f"list indices must be integers, not {shown(index)}: {repeated.place()}"
        return refused_call(args, text)


@njit
def _raise_element_error(name, index, count):  # type: ignore[no-untyped-def]
    raise ElementError(name, index, count)


def raise_element_error(
    context: Any, builder: ir.IRBuilder, name: str, index: ir.Value, count: ir.Value
) -> None:
    """Raise `ElementError` where the builder is; the index as it was asked for, the count as i64."""
    arg_types = types.unicode_type, types.int64, types.int64
    text = context.get_constant_generic(builder, types.unicode_type, name)
    raise_jitted(context, builder, _raise_element_error, arg_types, [text, index, count])


@lower_builtin(operator.getitem, RepeatedType, types.Integer)
def _get_element(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    repeated = sig.args[0]
    elements = elements_of(context, builder, repeated, args[0]).remembered()
    index, count = args[1], elements.count
    index = builder.select(builder.icmp_signed("<", index, I64(0)), builder.add(index, count), index)
    with builder.if_then(builder.icmp_unsigned(">=", index, count), likely=False):
        if repeated.part:  # a list in Python
            context.call_conv.return_user_exc(builder, IndexError, ("list index out of range",))
        else:
            raise_element_error(context, builder, repeated.f.name, args[1], count)
    return impl_ret_borrowed(context, builder, sig.return_type, elements.at(index))


@lower_builtin(operator.getitem, RepeatedType, types.SliceType)
def _get_slice(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    elements = elements_of(context, builder, sig.args[0], args[0])
    bounds = context.make_helper(builder, sig.args[1], value=args[1])
    guard_invalid_slice(context, builder, sig.args[1], bounds)
    fix_slice(builder, bounds, elements.count)
    count = _slice_length(builder, bounds)
    part = elements.part(bounds.start, bounds.step, count)
    return impl_ret_new_ref(context, builder, sig.return_type, part)


def _slice_length(builder: ir.IRBuilder, bounds: Any) -> ir.Value:
    """How many indices a slice within its array has."""
    up = builder.icmp_signed(">", bounds.step, I64(0))
    distance = builder.sub(bounds.stop, bounds.start)
    distance = builder.select(up, distance, builder.neg(distance))
    step = builder.select(up, bounds.step, builder.neg(bounds.step))
    length = builder.udiv(builder.add(distance, builder.sub(step, I64(1))), step)
    return builder.select(builder.icmp_signed(">", distance, I64(0)), length, I64(0))


@lower_builtin("getiter", RepeatedType)
def _iterate(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    iterator = _iterator(context, builder, sig.return_type, args[0])
    return impl_ret_borrowed(context, builder, sig.return_type, iterator)


def _iterator(context: Any, builder: ir.IRBuilder, typ: RepeatedIteratorType, value: ir.Value) -> ir.Value:
    """An iterator over a native value, whose references it takes."""
    native = cgutils.create_struct_proxy(typ.repeated)(context, builder, value)
    made = cgutils.create_struct_proxy(typ)(context, builder)
    made.pointer, made.count, made.owner = native.pointer, native.count, native.owner
    if typ.repeated.part:
        made.first, made.step = native.first, native.step
    made.index = cgutils.alloca_once_value(builder, I64(0))
    return made._getvalue()


@lower_builtin("iternext", RepeatedIteratorType)
@iternext_impl(RefType.BORROWED)
def _next(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value], result: Any) -> None:
    iterator: RepeatedIteratorType = sig.args[0]
    native = cgutils.create_struct_proxy(iterator)(context, builder, args[0])
    index = builder.load(native.index)
    inside = builder.icmp_signed("<", index, native.count)
    result.set_valid(inside)
    with builder.if_then(inside):
        result.yield_(ArrayElements(context, builder, iterator.repeated, native).at(index))
        builder.store(builder.add(index, I64(1)), native.index)


has_length(RepeatedIteratorType)


@infer_global(reversed)
class _Reversed(Typing):
    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
        if len(args) == 1 and isinstance(args[0], RepeatedType) and not kws:
            return signature(args[0].sliced().iterator_type, args[0])
        return None


@lower_builtin(reversed, RepeatedType)
def _reversed(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    iterator: RepeatedIteratorType = sig.return_type
    part = reversed_part(context, builder, sig.args[0], args[0])
    return impl_ret_new_ref(context, builder, iterator, _iterator(context, builder, iterator, part))


def reversed_part(context: Any, builder: ir.IRBuilder, typ: RepeatedType, value: ir.Value) -> ir.Value:
    """The slice of all elements in reverse, with references of its own."""
    elements = elements_of(context, builder, typ, value)
    count = elements.count
    return elements.part(builder.sub(count, I64(1)), I64(-1), count)
