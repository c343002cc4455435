"""Maps of messages that are built in jitted code: ``x[key] = value``, ``x[key].field = value``, ``in``."""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_borrowed, lower_builtin
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global, signature

from yaffjit.jit.builder import type as parts
from yaffjit.jit.builder.fields import touch
from yaffjit.jit.builder.kernels import call
from yaffjit.jit.builder.type import (
    MapBuilderType,
    as_address,
    as_pointer,
    load_word,
    opened,
    raise_if_null,
    word_at,
)
from yaffjit.jit.builder.values import check_value, is_text, number, text
from yaffjit.jit.emit.outline import I64
from yaffjit.jit.integers import UInt64ExactType
from yaffjit.jit.refusals import refused_call
from yaffjit.kernels.builder_put import NUMBER_KEY
from yaffjit.plan import builder_tables as tables


def _where(typ: MapBuilderType, part: str) -> str:
    return f"{typ.mp.full_name}.{typ.field.name} ({part})"


def _check_key(typ: MapBuilderType, key: types.Type) -> None:
    check_value(typ.mp.plan, _where(typ, "key"), typ.builds.pair(typ.field)[0], key)


@infer_global(operator.setitem)
class _SetItem(AbstractTemplate):
    prefer_literal = True

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
        typ, key, value = args
        if not isinstance(typ, MapBuilderType):
            return None
        _check_key(typ, key)
        held = typ.builds.pair(typ.field)[1]
        if held.kind == "message":
            text = f"Assignment not allowed to messages of {_where(typ, 'value')}: set the fields of x[key]"
            return refused_call(args, text)
        check_value(typ.mp.plan, _where(typ, "value"), held, value)
        return signature(types.none, *args)


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):
    prefer_literal = True

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
        typ, key = args
        if not isinstance(typ, MapBuilderType):
            return None
        _check_key(typ, key)
        if typ.builds.pair(typ.field)[1].kind != "message":
            text = f"{_where(typ, 'value')} isn't read from a builder in jitted code: keep what was put there"
            return refused_call(args, text)
        return signature(parts.child_type(typ, typ.field), *args)


@infer_global(operator.contains)
class _Contains(AbstractTemplate):
    prefer_literal = True

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
        typ, key = args
        if not isinstance(typ, MapBuilderType):
            return None
        _check_key(typ, key)
        return signature(types.boolean, *args)


def _key_of(
    context: Any,
    builder: ir.IRBuilder,
    typ: MapBuilderType,
    given: types.Type,
    key: ir.Value,
    state: ir.Value,
) -> tuple[ir.Value, ir.Value]:
    """A key as the kernels take it."""
    f = typ.builds.pair(typ.field)[0]
    if is_text(f):
        return text(context, builder, f, given, key, state)
    plain, _ = number(context, builder, typ.mp.plan, f, given, key)
    return plain, I64(NUMBER_KEY)


def _pair(
    context: Any, builder: ir.IRBuilder, typ: MapBuilderType, native: Any, key: tuple[ir.Value, ir.Value]
) -> ir.Value:
    """The address of a key's pair, which may be new."""
    held = typ.builds.pair(typ.field)[1]
    nbytes = typ.builds.child(typ.field).nbytes if held.kind == "message" else 0
    slot = as_address(builder, word_at(builder, native.record, typ.field.slot))
    words = [as_address(builder, native.state), slot, *key, I64(nbytes)]
    pair = call(builder, "put_pair", words)
    raise_if_null(context, builder, pair)
    touch(context, builder, typ, native, typ.field)
    return pair


@lower_builtin(operator.setitem, MapBuilderType, types.Any, types.Any)
@lower_builtin(operator.setitem, MapBuilderType, UInt64ExactType, types.Any)  # which has rules of its own
def _set_item(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    typ, key, given = sig.args
    native = opened(context, builder, typ, args[0])
    state = as_address(builder, native.state)
    found = _key_of(context, builder, typ, key, args[1], state)
    held = typ.builds.pair(typ.field)[1]
    if is_text(held):
        # Copied first: a pair without its value would be one with an empty text.
        source, nbytes = text(context, builder, held, given, args[2], state)
        copied = cgutils.alloca_once(builder, ir.ArrayType(I64, 2))
        slot = as_address(builder, copied)
        put = call(builder, "put_text", [state, slot, source, nbytes])
        raise_if_null(context, builder, put)
        pair = as_pointer(builder, _pair(context, builder, typ, native, found))
        builder.store(put, word_at(builder, pair, tables.PAIR_VALUE))
        builder.store(nbytes, word_at(builder, pair, tables.PAIR_VALUE + 8))
        return context.get_dummy_value()
    _, bits = number(context, builder, typ.mp.plan, held, given, args[2])
    pair = as_pointer(builder, _pair(context, builder, typ, native, found))
    builder.store(bits, word_at(builder, pair, tables.PAIR_VALUE))
    return context.get_dummy_value()


@lower_builtin(operator.getitem, MapBuilderType, types.Any)
@lower_builtin(operator.getitem, MapBuilderType, UInt64ExactType)  # which has rules of its own
def _get_item(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    typ, key = sig.args
    native = opened(context, builder, typ, args[0])
    found = _key_of(context, builder, typ, key, args[1], as_address(builder, native.state))
    pair = as_pointer(builder, _pair(context, builder, typ, native, found))
    record = as_pointer(builder, load_word(builder, pair, tables.PAIR_VALUE))
    made = parts.part_of(context, builder, sig.return_type, native, record)
    return impl_ret_borrowed(context, builder, sig.return_type, made)


@lower_builtin(operator.contains, MapBuilderType, types.Any)
@lower_builtin(operator.contains, MapBuilderType, UInt64ExactType)  # which has rules of its own
def _contains(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    typ, key = sig.args
    native = opened(context, builder, typ, args[0])
    state = as_address(builder, native.state)
    found = _key_of(context, builder, typ, key, args[1], state)
    slot = as_address(builder, word_at(builder, native.record, typ.field.slot))
    pair = call(builder, "find_pair", [state, slot, *found])
    with cgutils.if_unlikely(builder, builder.icmp_signed("<", pair, I64(0))):
        raise_if_null(context, builder, I64(0))
    return builder.icmp_unsigned("!=", pair, I64(0))
