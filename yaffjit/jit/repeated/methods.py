"""Methods of repeated fields in jitted code: ``count`` and ``index``; they are read-only."""

from __future__ import annotations

from typing import Any

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

from yaffjit.errors import CompileAttributeError, CompileTypeError, near_names
from yaffjit.jit.emit.outline import I64
from yaffjit.jit.integers.type import is_integer
from yaffjit.jit.refusals import Method, is_probed, refusal
from yaffjit.jit.repeated.compare import find
from yaffjit.jit.repeated.elements import elements_of
from yaffjit.jit.repeated.equality import Sought, comparable, why_not_compared
from yaffjit.jit.repeated.type import RepeatedType

_CHANGES = (
    "MergeFrom",
    "add",
    "append",
    "clear",
    "extend",
    "insert",
    "pop",
    "remove",
    "reverse",
    "sort",
)


def _refuse_uncomparable(repeated: RepeatedType, typ: types.Type) -> None:
    text = why_not_compared(repeated.element, typ, repeated.place())
    if text is not None:
        raise refusal(CompileTypeError, text)


class _Count(AbstractTemplate):
    key = "yaffjit.repeated.count"
    prefer_literal = True

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature:
        if kws or len(args) != 1:
            raise refusal(CompileTypeError, "count() takes one value")
        _refuse_uncomparable(self.this, args[0])
        return signature(types.int64, *args, recvr=self.this)


class _Index(AbstractTemplate):
    key = "yaffjit.repeated.index"
    prefer_literal = True

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature:
        if kws or not 1 <= len(args) <= 3 or not all(map(is_integer, args[1:])):
            text = "index() takes a value and, perhaps, the first index and the end"
            raise refusal(CompileTypeError, text)
        _refuse_uncomparable(self.this, args[0])
        return signature(types.int64, args[0], *(types.int64 for _ in args[1:]), recvr=self.this)


_METHODS = {"count": _Count, "index": _Index}


@infer_getattr
class _Attributes(AttributeTemplate):
    key = RepeatedType

    def generic_resolve(self, repeated: RepeatedType, name: str) -> types.Type | None:
        method = _METHODS.get(name)
        if method is not None:
            return Method(method, repeated)
        if is_probed() or name.startswith("__") or name == "ravel":  # numba asks for these by itself
            return None
        if name in _CHANGES:
            what = "a slice is" if repeated.part else "repeated fields are"
            text = f"{what} read-only in jitted code: {repeated.place()} has no {name}(), but list(x) has"
            raise refusal(CompileAttributeError, text)
        near = near_names(name, _METHODS)
        text = f"{repeated.place()} is repeated, and has no {name!r}{near}"
        raise refusal(CompileAttributeError, text)


@lower_builtin(_Count.key, RepeatedType, types.Any)
def _count(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    repeated, typ = sig.recvr or sig.args[0], sig.args[-1]
    if not comparable(repeated.element, typ):
        return I64(0)
    elements = elements_of(context, builder, repeated, args[0])
    sought = Sought(context, builder, repeated.element, typ, args[1])
    total = cgutils.alloca_once_value(builder, I64(0))
    with cgutils.for_range(builder, elements.count) as loop:
        equal = builder.and_(sought.possible, sought.matches(elements.type, elements.at(loop.index)))
        builder.store(builder.add(builder.load(total), builder.zext(equal, I64)), total)
    return builder.load(total)


@lower_builtin(_Index.key, RepeatedType, types.Any)
@lower_builtin(_Index.key, RepeatedType, types.Any, types.int64)
@lower_builtin(_Index.key, RepeatedType, types.Any, types.int64, types.int64)
def _index(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    repeated = sig.recvr or sig.args[0]
    value_type = sig.args[0] if sig.recvr else sig.args[1]
    count = elements_of(context, builder, repeated, args[0]).count
    start, stop = (_bound(builder, value, count) for value in (*args[2:], *(I64(0), count)[len(args) - 2 :]))
    found = find(context, builder, signature(types.int64, repeated, value_type), args, start)
    missing = builder.icmp_unsigned(">=", found, stop)  # -1 is missing too
    with builder.if_then(missing, likely=False):
        context.call_conv.return_user_exc(builder, ValueError, (_not_in_list(value_type),))
    return found


def _bound(builder: ir.IRBuilder, value: ir.Value, count: ir.Value) -> ir.Value:
    """A bound as Python's lists take it: from the end if negative, then within the list."""
    value = builder.select(builder.icmp_signed("<", value, I64(0)), builder.add(value, count), value)
    value = builder.select(builder.icmp_signed("<", value, I64(0)), I64(0), value)
    return builder.select(builder.icmp_signed(">", value, count), count, value)


def _not_in_list(typ: types.Type) -> str:
    """Python's words, which name the value: that's known here only if it's written in the code."""
    if not isinstance(typ, types.Literal):
        return "the value is not in list"
    try:
        [].index(typ.literal_value)
    except ValueError as error:
        return str(error)
    raise AssertionError
