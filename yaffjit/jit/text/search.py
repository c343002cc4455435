"""Text in text and bytes in bytes: ``in``, find, rfind, index, rindex, count, startswith, endswith.

UTF-8 is found as bytes; positions are then counted in characters. Other arguments (start and end, numba's own
strings) go to numba's methods with a copy of the text.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    Signature,
    infer_getattr,
    signature,
)

from yaffjit.errors import CompileAttributeError, near_names
from yaffjit.jit.emit.outline import I1, I8, I32, I64, POINTER, Body, call_outlined
from yaffjit.jit.refusals import is_probed, refusal
from yaffjit.jit.text import utf8
from yaffjit.jit.text.compare import Parts, equal, memory_compare
from yaffjit.jit.text.decode import count_points
from yaffjit.jit.text.keep import kept_type
from yaffjit.jit.text.rules import (
    are_frozen,
    bytes_operand,
    is_bytes,
    is_text,
    members,
    raise_if,
    text_operand,
    typed,
)
from yaffjit.jit.text.type import BytesType, TextLikeType, TextType

# ---- pieces of bytes in pieces of bytes ----


def find(builder: ir.IRBuilder, whole: Parts, part: Parts, frozen: bool) -> ir.Value:
    """Where a piece of bytes first begins in another, as an i64; -1 if it's not there."""

    def emit(body: Body) -> None:
        b = body.builder
        whole, nbytes, part, part_nbytes = body.args
        body.return_unless(b.icmp_unsigned("!=", part_nbytes, I64(0)), I64(0))
        body.return_unless(b.icmp_unsigned("<=", part_nbytes, nbytes), I64(-1))
        first = b.zext(body.load(part, 0, I8), I32)
        memchr = cgutils.get_or_insert_function(
            b.module, ir.FunctionType(POINTER, [POINTER, I32, I64]), "memchr"
        )
        begins = b.add(b.sub(nbytes, part_nbytes), I64(1))  # so many places to begin at
        position = cgutils.alloca_once_value(b, I64(0))
        loop = b.append_basic_block("loop")
        b.branch(loop)
        b.position_at_end(loop)
        at = b.load(position)
        found = b.call(memchr, [body.at(whole, at), first, b.sub(begins, at)])
        body.return_unless(cgutils.is_not_null(b, found), I64(-1))
        offset = b.sub(b.ptrtoint(found, I64), b.ptrtoint(whole, I64))
        differs = b.icmp_signed("!=", memory_compare(b, found, part, part_nbytes), I32(0))
        body.return_unless(differs, offset)
        behind = b.add(offset, I64(1))
        body.return_unless(b.icmp_unsigned("<", behind, begins), I64(-1))
        b.store(behind, position)
        b.branch(loop)

    return call_outlined(builder, "bytes.find", "", I64, [*whole, *part], emit, frozen, inline=False)


def find_last(builder: ir.IRBuilder, whole: Parts, part: Parts, frozen: bool) -> ir.Value:
    """Where a piece of bytes last begins in another, as an i64; -1 if it's not there."""

    def emit(body: Body) -> None:
        b = body.builder
        whole, nbytes, part, part_nbytes = body.args
        position = cgutils.alloca_once_value(b, b.sub(nbytes, part_nbytes))
        loop = b.append_basic_block("loop")
        b.branch(loop)
        b.position_at_end(loop)
        at = b.load(position)
        body.return_unless(b.icmp_signed(">=", at, I64(0)), I64(-1))
        compared = memory_compare(b, body.at(whole, at), part, part_nbytes)
        body.return_unless(b.icmp_signed("!=", compared, I32(0)), at)
        b.store(b.sub(at, I64(1)), position)
        b.branch(loop)

    return call_outlined(builder, "bytes.rfind", "", I64, [*whole, *part], emit, frozen, inline=False)


def occurrences(builder: ir.IRBuilder, whole: Parts, part: Parts, frozen: bool) -> ir.Value:
    """How often a piece that isn't empty is in another, without overlaps, as an i64."""

    def emit(body: Body) -> None:
        b = body.builder
        whole, nbytes, part, part_nbytes = body.args
        position, count = (cgutils.alloca_once_value(b, I64(0)) for _ in range(2))
        loop = b.append_basic_block("loop")
        b.branch(loop)
        b.position_at_end(loop)
        at = b.load(position)
        found = find(b, (body.at(whole, at), b.sub(nbytes, at)), (part, part_nbytes), frozen)
        body.return_unless(b.icmp_signed(">=", found, I64(0)), b.load(count))
        b.store(b.add(b.load(count), I64(1)), count)
        b.store(b.add(at, b.add(found, part_nbytes)), position)
        b.branch(loop)

    return call_outlined(builder, "bytes.count", "", I64, [*whole, *part], emit, frozen, inline=False)


def _begins(builder: ir.IRBuilder, whole: Parts, part: Parts, at_end: bool, frozen: bool) -> ir.Value:
    """Whether a piece of bytes begins, or ends, with another, as an i1."""

    def emit(body: Body) -> None:
        b = body.builder
        whole, nbytes, part, part_nbytes = body.args
        body.return_unless(b.icmp_unsigned("<=", part_nbytes, nbytes), I1(0))
        start = body.at(whole, b.sub(nbytes, part_nbytes)) if at_end else whole
        b.ret(equal(b, (start, part_nbytes), (part, part_nbytes), frozen))

    return call_outlined(builder, "bytes.begins", at_end, I1, [*whole, *part], emit, frozen)


# ---- methods ----


def _operand(owner: types.Type, arg: types.Type) -> types.Type | None:
    """What the search takes an argument as; None for numba's own strings, which are left to numba."""
    if isinstance(owner, BytesType):
        return bytes_operand(arg)
    taken = text_operand(arg)
    return taken if isinstance(taken, TextType) else None


def _position(context: Any, builder: ir.IRBuilder, argtypes: Any, args: Any, search: Any) -> ir.Value:
    """The place that a search finds, in characters; -1 if none."""
    owner, part = argtypes
    whole, other = (members(context, builder, t, v) for t, v in zip((owner, part), args, strict=True))
    if isinstance(owner, BytesType):
        return search(builder, whole, other, are_frozen(argtypes))
    count = _checked(context, builder, owner, args[0])
    _checked(context, builder, part, args[1])
    found = search(builder, whole, other, are_frozen(argtypes))
    result = cgutils.alloca_once_value(builder, found)
    wide = builder.icmp_signed("!=", count, whole[1])
    with builder.if_then(builder.and_(wide, builder.icmp_signed(">", found, I64(0)))):
        builder.store(utf8.points(builder, whole[0], found, are_frozen([owner])), result)
    return builder.load(result)


def _checked(context: Any, builder: ir.IRBuilder, typ: types.Type, value: ir.Value) -> ir.Value:
    native = cgutils.create_struct_proxy(typ)(context, builder, value)
    return count_points(context, builder, native, are_frozen([typ]))


def _emit_find(context: Any, builder: ir.IRBuilder, argtypes: Any, args: Any) -> ir.Value:
    return _position(context, builder, argtypes, args, find)


def _emit_rfind(context: Any, builder: ir.IRBuilder, argtypes: Any, args: Any) -> ir.Value:
    return _position(context, builder, argtypes, args, find_last)


def _or_raise(emit: Any) -> Any:
    def emit_index(context: Any, builder: ir.IRBuilder, argtypes: Any, args: Any) -> ir.Value:
        found = emit(context, builder, argtypes, args)
        what = "subsection" if isinstance(argtypes[0], BytesType) else "substring"
        raise_if(context, builder, builder.icmp_signed("<", found, I64(0)), ValueError, f"{what} not found")
        return found

    return emit_index


def _emit_count(context: Any, builder: ir.IRBuilder, argtypes: Any, args: Any) -> ir.Value:
    whole, part = (members(context, builder, t, v) for t, v in zip(argtypes, args, strict=True))
    length = whole[1]
    if isinstance(argtypes[0], TextType):
        length = _checked(context, builder, argtypes[0], args[0])
        _checked(context, builder, argtypes[1], args[1])
    result = cgutils.alloca_once_value(builder, builder.add(length, I64(1)))
    with builder.if_then(builder.icmp_unsigned("!=", part[1], I64(0)), likely=True):
        builder.store(occurrences(builder, whole, part, are_frozen(argtypes)), result)
    return builder.load(result)


def _emit_begins(at_end: bool) -> Any:
    def emit(context: Any, builder: ir.IRBuilder, argtypes: Any, args: Any) -> ir.Value:
        owner, part = argtypes
        whole = members(context, builder, owner, args[0])
        if not isinstance(part, types.BaseTuple):
            given = members(context, builder, part, args[1])
            return _begins(builder, whole, given, at_end, are_frozen(argtypes))
        found: ir.Value = I1(0)
        for i, typ in enumerate(part):
            one = _operand(owner, typ)
            value = context.cast(builder, builder.extract_value(args[1], i), typ, one)
            begins = _begins(builder, whole, members(context, builder, one, value), at_end, are_frozen([one]))
            found = builder.or_(found, begins)
        return found

    return emit


def _method(name: str, result: types.Type, emit: Any, tuples: bool = False) -> Callable[[Any], Any]:
    """A method of text and bytes that takes one piece to look for."""

    class Method(AbstractTemplate):
        key = f"yaffjit.text.{name}"
        prefer_literal = True

        def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
            if len(args) == 1 and not kws:
                taken = _operand(self.this, args[0])
                if tuples and isinstance(args[0], types.BaseTuple):
                    taken = args[0] if None not in [_operand(self.this, part) for part in args[0]] else None
                if taken is not None:
                    return signature(result, taken, recvr=self.this)
            kept = tuple(map(kept_type, map(types.unliteral, args)))
            numbas = self.context.resolve_getattr(kept_type(self.this), name).get_call_type(
                self.context, kept, kws
            )
            return numbas and numbas.replace(recvr=self.this)

    def lower(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        owner, *rest = sig.args
        if len(rest) == 1 and (isinstance(rest[0], types.BaseTuple) or _operand(owner, rest[0]) is not None):
            return emit(context, builder, sig.args, args)
        function = context.typing_context.resolve_getattr(kept_type(owner), name)
        numbas = function.get_call_type(context.typing_context, rest, {})
        copy = context.cast(builder, args[0], owner, function.this)
        found = context.get_function(function, numbas)(builder, [copy, *args[1:]])
        context.nrt.decref(builder, function.this, copy)
        return found

    for cls in (TextType, BytesType):
        lower_builtin(Method.key, cls, types.VarArg(types.Any))(lower)
    return Method


_METHODS: dict[str, Any] = {
    "find": _method("find", types.intp, _emit_find),
    "rfind": _method("rfind", types.intp, _emit_rfind),
    "index": _method("index", types.intp, _or_raise(_emit_find)),
    "rindex": _method("rindex", types.intp, _or_raise(_emit_rfind)),
    "count": _method("count", types.intp, _emit_count),
    "startswith": _method("startswith", types.boolean, _emit_begins(at_end=False), tuples=True),
    "endswith": _method("endswith", types.boolean, _emit_begins(at_end=True), tuples=True),
}


@infer_getattr
class _TextMethods(AttributeTemplate):
    """The other methods are numba's, of the copy that `keep` makes, if it has them."""

    key = TextLikeType
    metadata: ClassVar = {"target": "cpu"}

    def generic_resolve(self, text: TextLikeType, name: str) -> types.Type | None:
        method = _METHODS.get(name)
        if method is not None:
            return types.BoundFunction(method, text)
        if not is_probed() and not name.startswith("__") and not self._is_numbas(text, name):
            self._refuse(text, name)
        return None

    def _is_numbas(self, text: TextLikeType, name: str) -> bool:
        return self.context.resolve_getattr(kept_type(text), name) is not None

    def _refuse(self, text: TextLikeType, name: str) -> NoReturn:
        of_python = bytes if isinstance(text, BytesType) else str
        if hasattr(of_python, name):
            words = f"{name}() of {text.label} isn't available in jitted code: call it outside"
        else:
            known = [n for n in dir(of_python) if n in _METHODS or self._is_numbas(text, n)]
            words = f"{text.label} has no {name!r} in jitted code{near_names(name, known)}"
        raise refusal(CompileAttributeError, words)


# ---- x in y ----


def _contains(context: Any, args: tuple[types.Type, ...]) -> Signature | None:
    whole, part = args
    if is_text(whole) or is_text(part):
        taken = text_operand(whole), text_operand(part)
        both = all(isinstance(typ, TextType) for typ in taken)
        return signature(types.boolean, *taken) if both else None
    if is_bytes(whole) and isinstance(part, types.Integer):
        return signature(types.boolean, bytes_operand(whole), types.int64)
    if is_bytes(whole) or is_bytes(part):
        taken = bytes_operand(whole), bytes_operand(part)
        return signature(types.boolean, *taken) if None not in taken else None
    return None


typed(operator.contains, _contains)


@lower_builtin(operator.contains, TextType, TextType)
@lower_builtin(operator.contains, BytesType, BytesType)
@lower_builtin(operator.contains, BytesType, types.Bytes)
@lower_builtin(operator.contains, types.Bytes, BytesType)
def _is_in(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    whole, part = (members(context, builder, t, v) for t, v in zip(sig.args, args, strict=True))
    return builder.icmp_signed(">=", find(builder, whole, part, are_frozen(sig.args)), I64(0))


@lower_builtin(operator.contains, BytesType, types.Integer)
def _number_is_in(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    outside = builder.icmp_unsigned(">", args[1], I64(255))
    raise_if(context, builder, outside, ValueError, "byte must be in range(0, 256)")
    whole = members(context, builder, sig.args[0], args[0])
    byte = builder.trunc(args[1], I8)
    return builder.icmp_signed(">=", _find_byte(builder, whole, byte, are_frozen(sig.args[:1])), I64(0))


def _find_byte(builder: ir.IRBuilder, whole: Parts, byte: ir.Value, frozen: bool) -> ir.Value:
    def emit(body: Body) -> None:
        b = body.builder
        whole, nbytes, byte = body.args
        with cgutils.for_range(b, nbytes) as places:
            found = b.icmp_unsigned("==", body.load(whole, places.index, I8), byte)
            body.return_unless(b.not_(found), places.index)
        b.ret(I64(-1))

    return call_outlined(builder, "bytes.find_byte", "", I64, [*whole, byte], emit, frozen)
