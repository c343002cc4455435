"""Comparisons of text and of bytes, and membership in a tuple of them.

The order of code points is the order of the bytes of UTF-8, so nothing is decoded.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_borrowed, lower_builtin
from numba.core.typing.templates import Signature, signature

from yaffjit.jit.emit.outline import I1, I8, I16, I32, I64, POINTER, Body, call_outlined
from yaffjit.jit.text.rules import (
    are_frozen,
    bare,
    bytes_operand,
    is_bytes,
    is_text,
    members,
    text_operand,
    typed,
)
from yaffjit.jit.text.type import BytesType, TextLikeType, TextType

_SIGNS = {
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
}
Parts = Sequence[ir.Value]  # pointer, number of bytes
CodePoints = Sequence[ir.Value]  # pointer, number of code points, bytes of each (an i32)


def memory_compare(b: ir.IRBuilder, first: ir.Value, second: ir.Value, nbytes: ir.Value) -> ir.Value:
    """C's memcmp, as an i32."""
    signature = ir.FunctionType(I32, [POINTER, POINTER, I64])
    return b.call(cgutils.get_or_insert_function(b.module, signature, "memcmp"), [first, second, nbytes])


def equal(builder: ir.IRBuilder, first: Parts, second: Parts, frozen: bool) -> ir.Value:
    """Whether two pieces of bytes are the same, as an i1; frozen: neither changes while the caller runs."""

    def emit(body: Body) -> None:
        b = body.builder
        first, nbytes, second, other_nbytes = body.args
        body.return_unless(b.icmp_unsigned("==", nbytes, other_nbytes), I1(0))
        b.ret(b.icmp_signed("==", memory_compare(b, first, second, other_nbytes), I32(0)))

    return call_outlined(builder, "text.equal", "", I1, [*first, *second], emit, frozen)


def order(builder: ir.IRBuilder, first: Parts, second: Parts, frozen: bool) -> ir.Value:
    """Below, at or above 0 (an i64) as the first piece of bytes comes before, is, or comes after the second.

    Args:
        frozen: neither changes while the caller runs.
    """

    def emit(body: Body) -> None:
        b = body.builder
        first, nbytes, second, other_nbytes = body.args
        shorter = b.select(b.icmp_unsigned("<", nbytes, other_nbytes), nbytes, other_nbytes)
        by_bytes = b.sext(memory_compare(b, first, second, shorter), I64)
        by_length = b.sub(nbytes, other_nbytes)
        b.ret(b.select(b.icmp_signed("!=", by_bytes, I64(0)), by_bytes, by_length))

    return call_outlined(builder, "text.order", "", I64, [*first, *second], emit, frozen)


def _order_of_string(builder: ir.IRBuilder, text: Parts, string: Any) -> ir.Value:
    """As `order`, of a text and one of numba's strings."""

    def emit(body: Body) -> None:
        b = body.builder
        text, nbytes, data, length, kind, ascii = body.args
        with b.if_then(b.icmp_unsigned("!=", ascii, I32(0)), likely=True):
            b.ret(order(b, (text, nbytes), (data, length), frozen=False))
        b.ret(order_of_points(b, (text, nbytes), (data, length, kind)))

    args = [*text, string.data, string.length, string.kind, string.is_ascii]
    return call_outlined(builder, "text.order_of_string", "", I64, args, emit, frozen=False, inline=False)


def order_of_points(builder: ir.IRBuilder, text: Parts, points: CodePoints) -> ir.Value:
    """As `order`, of a text and code points, which are encoded on the way and may change."""

    def emit(body: Body) -> None:
        b = body.builder
        _, nbytes, data, length, kind = body.args
        at = cgutils.alloca_once_value(b, I64(0))
        with cgutils.for_range(b, length) as characters:
            _compare_character(body, at, character(body, data, kind, characters.index))
        b.ret(b.sub(nbytes, b.load(at)))

    args = [*text, *points]
    return call_outlined(builder, "text.order_of_points", "", I64, args, emit, frozen=False, inline=False)


def character(body: Body, data: ir.Value, kind: ir.Value, index: ir.Value) -> ir.Value:
    """The number of a numba string's character, as an i32."""
    b = body.builder
    found = cgutils.alloca_once(b, I32)
    for type in (I8, I16, I32):
        with b.if_then(b.icmp_unsigned("==", kind, I32(type.width // 8))):
            value = body.load(data, b.mul(index, I64(type.width // 8)), type)
            b.store(value if type is I32 else b.zext(value, I32), found)
    return b.load(found)


def _compare_character(body: Body, at: ir.Value, character: ir.Value) -> None:
    """Return where the text differs from a character at a position, else move behind it."""
    b = body.builder
    text, nbytes = body.args[:2]

    def compare(byte: ir.Value) -> None:
        position = b.load(at)
        body.return_unless(b.icmp_unsigned("<", position, nbytes), I64(-1))
        found = b.zext(body.load(text, position, I8), I32)
        difference = b.sub(found, byte)
        body.return_unless(b.icmp_unsigned("==", difference, I32(0)), b.sext(difference, I64))
        b.store(b.add(position, I64(1)), at)

    # The first byte of 1, 2, 3 and 4, then six bits in each.
    lead, width = character, I64(1)
    for least, shift, mark, bytes in ((0x80, 6, 0xC0, 2), (0x800, 12, 0xE0, 3), (0x10000, 18, 0xF0, 4)):
        longer = b.icmp_unsigned(">=", character, I32(least))
        lead = b.select(longer, b.or_(b.lshr(character, I32(shift)), I32(mark)), lead)
        width = b.select(longer, I64(bytes), width)
    compare(lead)
    for left in (3, 2, 1):
        with b.if_then(b.icmp_unsigned(">", width, I64(left))):
            bits = b.and_(b.lshr(character, I32(6 * (left - 1))), I32(0x3F))
            compare(b.or_(bits, I32(0x80)))


def compare_texts(context: Any, builder: ir.IRBuilder, operator: Any, argtypes: Any, args: Any) -> ir.Value:
    """An operator's result, an i1, for texts, or a text and one of numba's strings."""
    sign = _SIGNS[operator]
    string_first = isinstance(argtypes[0], types.UnicodeType)
    if string_first or isinstance(argtypes[1], types.UnicodeType):
        text, string = (1, 0) if string_first else (0, 1)
        proxy = cgutils.create_struct_proxy(argtypes[string])(context, builder, args[string])
        found = _order_of_string(builder, members(context, builder, argtypes[text], args[text]), proxy)
        return builder.icmp_signed(sign, *((I64(0), found) if string_first else (found, I64(0))))
    return _compare_bytes(context, builder, operator, argtypes, args)


def _compare_bytes(context: Any, builder: ir.IRBuilder, function: Any, argtypes: Any, args: Any) -> ir.Value:
    first, second = (members(context, builder, t, v) for t, v in zip(argtypes, args, strict=True))
    frozen = are_frozen(argtypes)
    if function in (operator.eq, operator.ne):
        same = equal(builder, first, second, frozen)
        return same if function is operator.eq else builder.not_(same)
    return builder.icmp_signed(_SIGNS[function], order(builder, first, second, frozen), I64(0))


def _may_be_bytes(typ: types.Type) -> bool:
    """Whether it's our bytes, or numba's or None, which is what a variable with ours or None is."""
    return is_bytes(typ) or (isinstance(typ, types.Optional) and isinstance(typ.type, types.Bytes))


def _register(function: Any) -> None:
    equality = function in (operator.eq, operator.ne)

    def rule(context: Any, args: tuple[types.Type, ...]) -> Signature | None:
        for ours, operand in ((is_text, text_operand), (_may_be_bytes, bytes_operand)):
            taken: list[Any] = [operand(arg) for arg in args]
            if any(map(ours, args)) and None not in taken:
                if equality:  # None is equal to None alone; it has no order
                    taken = [
                        types.Optional(t) if isinstance(arg, types.Optional) else t
                        for t, arg in zip(taken, args, strict=True)
                    ]
                return signature(types.boolean, *taken)
        return None

    def lower(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        compare = compare_texts if isinstance(sig.args[0], (TextType, types.UnicodeType)) else _compare_bytes
        return compare(context, builder, function, sig.args, args)

    def lower_optional(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        valid, values = [], []
        for typ, value in zip(sig.args, args, strict=True):
            if isinstance(typ, types.Optional):
                optional = context.make_helper(builder, typ, value=value)
                valid.append(optional.valid)
                values.append(optional.data)
            else:
                valid.append(I1(1))
                values.append(value)
        same = cgutils.alloca_once_value(builder, builder.icmp_unsigned("==", *valid))
        with builder.if_then(builder.and_(*valid)):
            inner = signature(types.boolean, *map(bare, sig.args))
            compared = lower(context, builder, inner, values)
            builder.store(compared if function is operator.eq else builder.not_(compared), same)
        found = builder.load(same)
        return found if function is operator.eq else builder.not_(found)

    typed(function, rule)
    for first, second in (
        (TextType, TextType),
        (TextType, types.UnicodeType),
        (types.UnicodeType, TextType),
        (BytesType, BytesType),
        (BytesType, types.Bytes),
        (types.Bytes, BytesType),
        (types.Bytes, types.Bytes),
    ):
        lower_builtin(function, first, second)(lower)
    if equality:
        lower_builtin(function, types.Optional, types.Optional)(lower_optional)
        for cls in (TextType, BytesType, types.UnicodeType, types.Bytes):
            lower_builtin(function, types.Optional, cls)(lower_optional)
            lower_builtin(function, cls, types.Optional)(lower_optional)


for _function in _SIGNS:
    _register(_function)


def _register_truth(function: Any) -> None:
    def rule(context: Any, args: tuple[types.Type, ...]) -> Signature | None:
        ours = isinstance(args[0], (TextType, BytesType))
        return signature(types.boolean, args[0]) if ours else None

    def lower(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        _, nbytes = members(context, builder, sig.args[0], args[0])
        return builder.icmp_unsigned("==" if function is operator.not_ else "!=", nbytes, I64(0))

    typed(function, rule)
    lower_builtin(function, TextType)(lower)
    lower_builtin(function, BytesType)(lower)


for _test in (bool, operator.truth, operator.not_):
    _register_truth(_test)


# ---- x in ("a", "b") ----


def _membership(context: Any, args: tuple[types.Type, ...]) -> Signature | None:
    container, item = args
    if not isinstance(container, types.BaseTuple):
        return None
    for ours, operand in ((is_text, text_operand), (is_bytes, bytes_operand)):
        if ours(item) and all(operand(typ) is not None or typ is types.none for typ in container):
            return signature(types.boolean, container, bare(item))
    return None


typed(operator.contains, _membership)


# Tuples of one type are sequences too, for which numba has code of its own, so they are named.
@lower_builtin(operator.contains, types.BaseTuple, TextType)
@lower_builtin(operator.contains, types.UniTuple, TextType)
@lower_builtin(operator.contains, types.NamedUniTuple, TextType)
@lower_builtin(operator.contains, types.BaseTuple, BytesType)
@lower_builtin(operator.contains, types.UniTuple, BytesType)
@lower_builtin(operator.contains, types.NamedUniTuple, BytesType)
def _in_tuple(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    container, item = sig.args
    compare = compare_texts if isinstance(item, TextType) else _compare_bytes

    def is_same(typ: types.Type, operand: types.Type, value: ir.Value) -> ir.Value:
        if not isinstance(typ, types.Optional):
            value = context.cast(builder, value, typ, operand)
            return compare(context, builder, operator.eq, (item, operand), (args[1], value))
        optional = context.make_helper(builder, typ, value=value)
        same = cgutils.alloca_once_value(builder, I1(0))
        with builder.if_then(optional.valid):
            builder.store(is_same(typ.type, operand, optional.data), same)
        return builder.load(same)

    found: ir.Value = I1(0)
    for i, typ in enumerate(container):
        if typ is types.none:
            continue  # equal to None alone
        operand = text_operand(typ) if isinstance(item, TextType) else bytes_operand(typ)
        value = builder.extract_value(args[0], i)
        found = builder.or_(found, is_same(typ, operand, value))
    return found


# ---- min and max of several ----


def _register_extreme(function: Any, sign: str) -> None:
    def rule(context: Any, args: tuple[types.Type, ...]) -> Signature | None:
        for ours, operand in ((is_text, text_operand), (is_bytes, bytes_operand)):
            taken = [operand(arg) for arg in args]
            if len(args) > 1 and any(map(ours, args)):
                result = context.unify_types(*taken) if None not in taken else None
                if isinstance(result, TextLikeType):
                    return signature(result, *(result for _ in taken))
        return None

    def lower(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        typ = sig.return_type
        best = args[0]
        for value in args[1:]:
            first, second = (members(context, builder, typ, v) for v in (value, best))
            better = builder.icmp_signed(sign, order(builder, first, second, are_frozen([typ])), I64(0))
            best = builder.select(better, value, best)
        return impl_ret_borrowed(context, builder, typ, best)

    typed(function, rule)
    for cls in (TextType, BytesType):
        lower_builtin(function, cls, cls, types.VarArg(cls))(lower)


_register_extreme(min, "<")
_register_extreme(max, ">")
