"""Text as a sequence of characters: length, index, slices, iteration, ``ord``, hash. Bytes likewise.

A character or a slice is a text that points into the same bytes. Each of these operations first makes sure
that the bytes are UTF-8; ASCII, which most text is, needs no search for where a character begins.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import RefType, impl_ret_borrowed, iternext_impl, lower_builtin
from numba.core.typing.templates import Signature, signature
from numba.cpython.slicing import fix_slice

from yaffjit.jit.emit.outline import I64
from yaffjit.jit.text import utf8
from yaffjit.jit.text.decode import count_points
from yaffjit.jit.text.rules import are_frozen, bare, is_bytes, is_text, raise_if, typed
from yaffjit.jit.text.type import BytesType, TextIteratorType, TextLikeType, TextType, make_text


def _native(context: Any, builder: ir.IRBuilder, typ: types.Type, value: ir.Value) -> Any:
    return cgutils.create_struct_proxy(typ)(context, builder, value)


def _unary(function: Any, result: types.Type, for_bytes: bool = True) -> None:
    def rule(context: Any, args: tuple[types.Type, ...]) -> Signature | None:
        taken = len(args) == 1 and (is_text(args[0]) or (for_bytes and is_bytes(args[0])))
        return signature(result, bare(args[0])) if taken else None

    typed(function, rule)


_unary(len, types.intp)
_unary(hash, types.intp)
_unary(ord, types.intp)


@lower_builtin(len, TextType)
def _len(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    return _count(context, builder, sig.args[0], _native(context, builder, sig.args[0], args[0]))


def _count(context: Any, builder: ir.IRBuilder, typ: types.Type, text: Any) -> ir.Value:
    """The number of characters of a text (a proxy of its members); raises UnicodeDecodeError."""
    return count_points(context, builder, text, are_frozen([typ]))


@lower_builtin(len, BytesType)
def _len_bytes(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    return _native(context, builder, sig.args[0], args[0]).nbytes


@lower_builtin(hash, TextType)
def _hash(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    text = _native(context, builder, sig.args[0], args[0])
    found = utf8.hash_text(builder, text.pointer, text.nbytes, are_frozen(sig.args))
    with cgutils.if_unlikely(builder, builder.icmp_signed("==", found, I64(-1))):
        _count(context, builder, sig.args[0], text)
        context.call_conv.return_user_exc(builder, MemoryError, ("no memory to hash a text",))
    return found


@lower_builtin(hash, BytesType)
def _hash_bytes(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    raw = _native(context, builder, sig.args[0], args[0])
    return utf8.hash_bytes(builder, raw.pointer, raw.nbytes, are_frozen(sig.args))


_ORD_TEXT = "ord() expected a character, but got a string of another length"


@lower_builtin(ord, TextType)
def _ord(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    text = _native(context, builder, sig.args[0], args[0])
    count = _count(context, builder, sig.args[0], text)
    raise_if(context, builder, builder.icmp_signed("!=", count, I64(1)), TypeError, _ORD_TEXT)
    return builder.zext(utf8.code_point(builder, text.pointer, text.nbytes, are_frozen(sig.args)), I64)


@lower_builtin(ord, BytesType)
def _ord_bytes(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    raw = _native(context, builder, sig.args[0], args[0])
    raise_if(context, builder, builder.icmp_signed("!=", raw.nbytes, I64(1)), TypeError, _ORD_TEXT)
    return builder.zext(_byte(builder, sig.args[0], raw.pointer, I64(0)), I64)


def _byte(builder: ir.IRBuilder, typ: types.Type, pointer: ir.Value, at: ir.Value) -> ir.Value:
    loaded = builder.load(builder.gep(pointer, [at], inbounds=True))
    if are_frozen([typ]):
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded


# ---- index and slices ----


def _item(context: Any, args: tuple[types.Type, ...]) -> Signature | None:
    value, index = bare(args[0]), args[1]
    if not isinstance(value, TextLikeType):
        return None
    if isinstance(index, (types.Integer, types.Boolean)):
        return signature(types.int64 if isinstance(value, BytesType) else value, value, types.intp)
    if isinstance(index, types.SliceType) and not index.has_step:
        return signature(value, value, types.slice2_type)
    return None  # with a step the result is a copy: numba's own


typed(operator.getitem, _item)


def _within(context: Any, builder: ir.IRBuilder, index: ir.Value, count: ir.Value, what: str) -> ir.Value:
    """An index counted from the start; IndexError if there's nothing."""
    counted = builder.select(builder.icmp_signed("<", index, I64(0)), builder.add(index, count), index)
    outside = builder.icmp_unsigned(">=", counted, count)
    raise_if(context, builder, outside, IndexError, f"{what} out of range")
    return counted


@lower_builtin(operator.getitem, TextType, types.Integer)
def _get_character(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    text = _native(context, builder, sig.args[0], args[0])
    frozen = are_frozen(sig.args[:1])
    count = _count(context, builder, sig.args[0], text)
    index = _within(context, builder, args[1], count, "string index")
    at = utf8.offset_of(builder, text.pointer, text.nbytes, count, index, frozen)
    start = builder.gep(text.pointer, [at], inbounds=True)
    width = utf8.character_width(builder, start, frozen)
    return _part(context, builder, sig.return_type, start, width, text.owner)


def _part(
    context: Any,
    builder: ir.IRBuilder,
    typ: TextLikeType,
    start: ir.Value,
    nbytes: ir.Value,
    owner: ir.Value,
) -> ir.Value:
    """A part of a text as a result of its own."""
    return impl_ret_borrowed(context, builder, typ, make_text(context, builder, typ, start, nbytes, owner))


@lower_builtin(operator.getitem, BytesType, types.Integer)
def _get_byte(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    raw = _native(context, builder, sig.args[0], args[0])
    index = _within(context, builder, args[1], raw.nbytes, "index")
    return builder.zext(_byte(builder, sig.args[0], raw.pointer, index), I64)


@lower_builtin(operator.getitem, TextType, types.SliceType)
@lower_builtin(operator.getitem, BytesType, types.SliceType)
def _get_slice(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    native = _native(context, builder, sig.args[0], args[0])
    is_bytes, frozen = isinstance(sig.args[0], BytesType), are_frozen(sig.args[:1])
    count = native.nbytes if is_bytes else _count(context, builder, sig.args[0], native)
    bounds = context.make_helper(builder, sig.args[1], value=args[1])
    fix_slice(builder, bounds, count)
    stop = builder.select(builder.icmp_signed("<", bounds.stop, bounds.start), bounds.start, bounds.stop)
    first, last = bounds.start, stop
    if not is_bytes:
        first, last = (
            utf8.offset_of(builder, native.pointer, native.nbytes, count, index, frozen)
            for index in (first, last)
        )
    start = builder.gep(native.pointer, [first], inbounds=True)
    return _part(context, builder, sig.return_type, start, builder.sub(last, first), native.owner)


# ---- iteration ----


@lower_builtin("getiter", TextType)
@lower_builtin("getiter", BytesType)
def _iterate(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    native = _native(context, builder, sig.args[0], args[0])
    if isinstance(sig.args[0], TextType):
        _count(context, builder, sig.args[0], native)
    made = _native(context, builder, sig.return_type, None)
    made.pointer, made.nbytes, made.owner = native.pointer, native.nbytes, native.owner
    made.at = cgutils.alloca_once_value(builder, I64(0))
    return impl_ret_borrowed(context, builder, sig.return_type, made._getvalue())


@lower_builtin("iternext", TextIteratorType)
@iternext_impl(RefType.BORROWED)
def _next(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value], result: Any) -> None:
    (iterator,) = sig.args
    native = _native(context, builder, iterator, args[0])
    at = builder.load(native.at)
    inside = builder.icmp_unsigned("<", at, native.nbytes)
    result.set_valid(inside)
    with builder.if_then(inside):
        if isinstance(iterator.text, BytesType):
            result.yield_(builder.zext(_byte(builder, iterator.text, native.pointer, at), I64))
            builder.store(builder.add(at, I64(1)), native.at)
        else:
            start = builder.gep(native.pointer, [at], inbounds=True)
            width = utf8.character_width(builder, start, are_frozen([iterator.text]))
            result.yield_(make_text(context, builder, iterator.text, start, width, native.owner))
            builder.store(builder.add(at, width), native.at)
