"""Loops over maps, and over their keys(), values() and items(), in jitted code."""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.core.imputils import RefType, impl_ret_borrowed, iternext_impl, lower_builtin
from numba.core.typing.templates import Signature
from numba.extending import overload

from yaffjit.jit.emit.outline import I8, I64
from yaffjit.jit.maps.fields import read_key, read_value
from yaffjit.jit.maps.search import ascend, pairs_of, repeats
from yaffjit.jit.maps.type import MapIteratorType, MapPartType, MapType


@lower_builtin("getiter", MapType)
@lower_builtin("getiter", MapPartType)
def _iterate(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    typ = sig.args[0]
    native = cgutils.create_struct_proxy(typ)(context, builder, args[0])
    made = cgutils.create_struct_proxy(sig.return_type)(context, builder)
    made.members = native.members
    made.count = native.count
    in_order = ascend(builder, pairs_of(typ.entry), native.members, native.count, native.owner, not typ.owned)
    made.in_order = builder.zext(in_order, I8)
    made.owner = native.owner
    made.row = cgutils.alloca_once_value(builder, I64(0))
    return impl_ret_borrowed(context, builder, sig.return_type, made._getvalue())


@lower_builtin("iternext", MapIteratorType)
@iternext_impl(RefType.BORROWED)
def _next_pair(
    context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value], result: Any
) -> None:
    typ = sig.args[0]
    native = cgutils.create_struct_proxy(typ)(context, builder, args[0])
    with cgutils.if_unlikely(builder, builder.icmp_unsigned("==", native.in_order, I8(0))):
        _skip_repeated(builder, typ, native)
    row = builder.load(native.row)
    inside = builder.icmp_signed("<", row, native.count)
    result.set_valid(inside)
    with builder.if_then(inside):
        pair = _pair_at(builder, typ, native, row)
        result.yield_(_part_of(context, builder, typ, pair, native.owner))
        builder.store(builder.add(row, I64(1)), native.row)


def _pair_at(builder: ir.IRBuilder, typ: MapIteratorType, native: Any, row: ir.Value) -> ir.Value:
    return builder.gep(native.members, [builder.mul(row, I64(typ.entry.limit))], inbounds=True)


def _part_of(
    context: Any, builder: ir.IRBuilder, typ: MapIteratorType, pair: ir.Value, owner: ir.Value
) -> ir.Value:
    if typ.part == "keys":
        return read_key(context, builder, typ, pair, owner)
    value = read_value(context, builder, typ, pair, owner)
    if typ.part == "values":
        return value
    return context.make_tuple(builder, typ.yield_type, [read_key(context, builder, typ, pair, owner), value])


def _skip_repeated(builder: ir.IRBuilder, typ: MapIteratorType, native: Any) -> None:
    """Go on to the next pair whose key no earlier one has."""
    head, look = builder.append_basic_block("head"), builder.append_basic_block("look")
    skip, done = builder.append_basic_block("skip"), builder.append_basic_block("done")
    builder.branch(head)
    builder.position_at_end(head)
    row = builder.load(native.row)
    builder.cbranch(builder.icmp_signed("<", row, native.count), look, done)
    builder.position_at_end(look)
    pair = _pair_at(builder, typ, native, row)
    again = repeats(builder, pairs_of(typ.entry), native.members, pair, not typ.owned)
    builder.cbranch(again, skip, done)
    builder.position_at_end(skip)
    builder.store(builder.add(row, I64(1)), native.row)
    builder.branch(head)
    builder.position_at_end(done)


@overload(operator.contains)
def _in_values(values, wanted):  # type: ignore[no-untyped-def]
    """``wanted in m.values()``, and likewise of items()."""
    if not isinstance(values, MapPartType) or values.part == "keys":
        return None

    def contains(values, wanted):  # type: ignore[no-untyped-def]
        for value in values:  # noqa: SIM110  (numba has no any() of a generator)
            if value == wanted:
                return True
        return False

    return contains
