"""Loops over repeated fields of protobuf views, forwards and backwards, and their arrays."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import (
    RefType,
    impl_ret_borrowed,
    impl_ret_new_ref,
    iternext_impl,
    lower_builtin,
)
from numba.core.typing.templates import Signature
from numba.np.arrayobj import _empty_nd_impl

from yaffjit.jit.emit.outline import I64
from yaffjit.jit.emit.wire_runs import begin, is_single_run
from yaffjit.jit.lengths import has_length
from yaffjit.jit.repeated.access import reversed_part
from yaffjit.jit.repeated.arrays import array_makers, array_over
from yaffjit.jit.wire.repeated.elements import Variables, WireElements, place_of
from yaffjit.jit.wire.repeated.type import MEMBERS, WireRepeatedIteratorType, WireRepeatedType


@lower_builtin("getiter", WireRepeatedType)
def _iterate(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    iterator = _iterator(context, builder, sig.return_type, args[0])
    return impl_ret_borrowed(context, builder, sig.return_type, iterator)


@lower_builtin(reversed, WireRepeatedType)
def _reversed(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    part = reversed_part(context, builder, sig.args[0], args[0])
    iterator = _iterator(context, builder, sig.return_type, part)
    return impl_ret_new_ref(context, builder, sig.return_type, iterator)


def _iterator(
    context: Any, builder: ir.IRBuilder, typ: WireRepeatedIteratorType, value: ir.Value
) -> ir.Value:
    """An iterator over a native value, whose references it takes."""
    native = cgutils.create_struct_proxy(typ.repeated)(context, builder, value)
    made = cgutils.create_struct_proxy(typ)(context, builder)
    for name in MEMBERS:
        setattr(made, name, getattr(native, name))
    if typ.repeated.part:
        made.table = native.table
    variables = Variables.new(builder, begin(builder, typ.repeated.shape, place_of(builder, native)))
    made.index = variables.index
    made.at, made.left, made.run_at, made.run_end = variables.cursor
    made.count = WireElements(context, builder, typ.repeated, native, variables).most
    return made._getvalue()


has_length(WireRepeatedIteratorType)


@lower_builtin("iternext", WireRepeatedIteratorType)
@iternext_impl(RefType.BORROWED)
def _next(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value], result: Any) -> None:
    iterator: WireRepeatedIteratorType = sig.args[0]
    native = cgutils.create_struct_proxy(iterator)(context, builder, args[0])
    cursor = (native.at, native.left, native.run_at, native.run_end)
    elements = WireElements(
        context, builder, iterator.repeated, native, Variables(builder, native.index, cursor)
    )
    if not iterator.repeated.part:
        there, found = elements.next()
        result.set_valid(there)
        with builder.if_then(there):
            result.yield_(elements.take(found))
        return
    index = builder.load(native.index)
    inside = builder.icmp_signed("<", index, native.count)
    result.set_valid(inside)
    with builder.if_then(inside):
        result.yield_(elements.at(index))
        builder.store(builder.add(index, I64(1)), native.index)


def _array(context: Any, builder: ir.IRBuilder, typ: types.Array, elements: WireElements) -> ir.Value:
    """Over the message's bytes, if one packed run of a fixed width has all elements; else a copy."""
    if not elements.shape.width:
        return _copied(context, builder, typ, elements)
    b = builder
    result = cgutils.alloca_once(b, context.get_value_type(typ))
    with b.if_else(is_single_run(b, elements.place)) as (of_array, of_runs):
        with of_array:
            place = elements.place
            count = b.udiv(place.run_nbytes, I64(elements.shape.width))
            over = array_over(context, b, typ, place.run, count, elements.owner)
            context.nrt.incref(b, typ, over)
            b.store(over, result)
        with of_runs:
            b.store(_copied(context, b, typ, elements), result)
    return b.load(result)


def _copied(context: Any, builder: ir.IRBuilder, typ: types.Array, elements: WireElements) -> ir.Value:
    """A new array of the field's own dtype."""
    count = elements.count
    made = _empty_nd_impl(context, builder, typ, [count])
    with cgutils.for_range(builder, count) as loop:
        stored = elements.stored_at(loop.index)
        slot = cgutils.get_item_pointer(context, builder, typ, made, [loop.index])
        builder.store(stored, builder.bitcast(slot, stored.type.as_pointer()))
    return made._getvalue()


array_makers[WireRepeatedType] = _array
