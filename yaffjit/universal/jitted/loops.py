"""Loops in jitted code: ``for x in v["items"]``, and over ``keys()``, ``values()``, ``items()`` of objects.

What a value is, isn't known while a function is compiled: so a plain loop is over a collection's values.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.core.datamodel import models, register_default
from numba.core.imputils import RefType, impl_ret_new_ref, iternext_impl, lower_builtin
from numba.core.typing.templates import Signature
from numba.extending import intrinsic, overload_method

from yaffjit.jit.emit.outline import I64
from yaffjit.jit.records import call_jitted
from yaffjit.kernels.universal_scan import (
    ABSENT,
    BAD,
    DEPTH_MASK,
    DEPTH_SHIFT,
    ONE_DEEPER,
    USED_SHIFT,
    next_code,
    next_item,
    skip,
)
from yaffjit.universal.jitted.access import code_of
from yaffjit.universal.jitted.faults import A_COLLECTION, AN_OBJECT, raise_kind, raise_wrong
from yaffjit.universal.jitted.getters import text_at
from yaffjit.universal.jitted.type import (
    UniversalIteratorType,
    UniversalPartType,
    UniversalType,
    members,
    parts,
)

_OBJECT, _COLLECTION = 1, 3


@register_default(UniversalPartType)
class _PartModel(models.StructModel):
    def __init__(self, manager: Any, numba_type: Any) -> None:
        super().__init__(manager, numba_type, members(numba_type))


@register_default(UniversalIteratorType)
class _IteratorModel(models.StructModel):
    def __init__(self, manager: Any, numba_type: Any) -> None:
        held = [("next", types.EphemeralPointer(types.int64))]  # the word of the next item
        super().__init__(manager, numba_type, [*members(numba_type), *held])


@njit
def _first(value, kind):  # type: ignore[no-untyped-def]
    """The word of the first item of a container of a kind."""
    data, nbytes, word, flags = parts(value)
    code = code_of(value, word)
    if code != kind:
        raise_kind("", code, AN_OBJECT if kind == _OBJECT else A_COLLECTION)
    if (flags >> USED_SHIFT) >= (flags >> DEPTH_SHIFT) & DEPTH_MASK:
        raise_wrong(data, nbytes, flags)
    _, pos, half = next_code(data, nbytes, word >> 5, word & 31, (flags & 1) != 0)
    return (pos << 5) | half


@njit
def _step(data, nbytes, word, flags, kind):  # type: ignore[no-untyped-def]
    """The words of an item's value, or `ABSENT`, and of what is behind it."""
    code, pos, half = next_item(data, nbytes, word >> 5, word & 31, flags, kind)
    if code == ABSENT:
        return ABSENT, 0
    after = BAD
    pending = 0
    if code != BAD:
        _, after, pending = next_code(data, nbytes, pos, half, (flags & 1) != 0)
        after, pending = skip(data, nbytes, after, pending, code, flags)
    if after == BAD:
        raise_wrong(data, nbytes, flags)
    return (pos << 5) | half, (after << 5) | pending


@njit
def _key_at(value):  # type: ignore[no-untyped-def]
    """The key that a value's word names."""
    return text_at(value, parts(value)[2], "")


@intrinsic(prefer_literal=True)
def _part(typingctx, value, part):  # type: ignore[no-untyped-def]
    """What ``keys()``, ``values()`` and ``items()`` give: the value itself, of another type."""
    made = UniversalPartType(part.literal_value, value.owned)

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: list[ir.Value]) -> ir.Value:
        context.nrt.incref(builder, value, args[0])
        return args[0]

    return made(value, part), codegen


@overload_method(UniversalType, "keys")
def _keys(value):  # type: ignore[no-untyped-def]
    return lambda value: _part(value, "keys")


@overload_method(UniversalType, "values")
def _values(value):  # type: ignore[no-untyped-def]
    return lambda value: _part(value, "values")


@overload_method(UniversalType, "items")
def _items(value):  # type: ignore[no-untyped-def]
    return lambda value: _part(value, "items")


@lower_builtin("getiter", UniversalType)
@lower_builtin("getiter", UniversalPartType)
def _iterate(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    iterator: UniversalIteratorType = sig.return_type
    value = cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0])
    kind = I64(_COLLECTION if iterator.part == "all" else _OBJECT)
    view_type = iterator.value_type
    first = call_jitted(context, builder, _first, (view_type, types.int64), [args[0], kind])
    made = cgutils.create_struct_proxy(iterator)(context, builder)
    for name, _ in members(iterator):
        setattr(made, name, getattr(value, name))
    made.flags = builder.add(value.flags, I64(ONE_DEEPER))
    made.next = cgutils.alloca_once_value(builder, first)
    context.nrt.incref(builder, sig.args[0], args[0])
    return impl_ret_new_ref(context, builder, iterator, made._getvalue())


@lower_builtin("iternext", UniversalIteratorType)
@iternext_impl(RefType.NEW)
def _next(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value], result: Any) -> None:
    iterator: UniversalIteratorType = sig.args[0]
    native = cgutils.create_struct_proxy(iterator)(context, builder, args[0])
    kind = I64(_COLLECTION if iterator.part == "all" else _OBJECT)
    word = builder.load(native.next)
    arguments = [native.data, native.nbytes, word, native.flags, kind]
    step = call_jitted(context, builder, _step, (types.int64,) * 5, arguments)
    found, after = cgutils.unpack_tuple(builder, step, 2)
    there = builder.icmp_signed("!=", found, I64(ABSENT))
    result.set_valid(there)
    with builder.if_then(there):
        builder.store(after, native.next)
        taken = []
        if iterator.part in ("keys", "items"):
            key = _value(context, builder, iterator, native, word)
            taken.append(call_jitted(context, builder, _key_at, (iterator.value_type,), [key]))
        if iterator.part != "keys":
            value = _value(context, builder, iterator, native, found)
            context.nrt.incref(builder, iterator.value_type, value)
            taken.append(value)
        is_pair = iterator.part == "items"
        result.yield_(context.make_tuple(builder, iterator.yield_type, taken) if is_pair else taken[0])


def _value(
    context: Any, builder: ir.IRBuilder, iterator: UniversalIteratorType, native: Any, word: ir.Value
) -> ir.Value:
    """What a word of the iterator's document names, without a reference of its own."""
    made = cgutils.create_struct_proxy(iterator.value_type)(context, builder)
    for name, _ in members(iterator.value_type):
        setattr(made, name, getattr(native, name))
    made.word = word
    return made._getvalue()
