"""Repeated fields of messages that are built in jitted code: ``append``, ``extend``, ``add``, ``len``."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit
from numba.core import types
from numba.core.imputils import impl_ret_borrowed, lower_builtin
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    Signature,
    infer_getattr,
    infer_global,
    signature,
)

from yaffjit.errors import CompileAttributeError, CompileTypeError, near_names
from yaffjit.jit.builder import type as parts
from yaffjit.jit.builder.fields import touch
from yaffjit.jit.builder.kernels import call
from yaffjit.jit.builder.type import (
    MapBuilderType,
    RepeatedBuilderType,
    as_address,
    as_pointer,
    load_word,
    opened,
    raise_if_null,
    word_at,
)
from yaffjit.jit.builder.values import check_value, is_text, number, text
from yaffjit.jit.emit.outline import I64
from yaffjit.jit.records import call_jitted
from yaffjit.jit.refusals import Method, is_probed, refusal
from yaffjit.plan import builder_tables as tables

_LISTS = (tables.MESSAGES, tables.GROUPS)


def _one(method: str, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> types.Type:
    if kws or len(args) != 1:
        raise refusal(CompileTypeError, f"{method}() takes one argument")
    return args[0]


def _where(field: RepeatedBuilderType) -> str:
    return f"{field.mp.full_name}.{field.field.name}"


class _Append(AbstractTemplate):
    key = "yaffjit.builder.append"
    prefer_literal = True

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature:
        given = _one("append", args, kws)
        field = self.this
        check_value(field.mp.plan, _where(field), field.field.definition, given)
        return signature(types.none, given, recvr=field)


class _Extend(AbstractTemplate):
    key = "yaffjit.builder.extend"

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature:
        return signature(types.none, _one("extend", args, kws), recvr=self.this)


class _Add(AbstractTemplate):
    key = "yaffjit.builder.add"

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature:
        if args or kws:
            raise refusal(CompileTypeError, "add() takes no arguments: set the fields of what it gives")
        return signature(parts.child_type(self.this, self.this.field), recvr=self.this)


@infer_getattr
class _Attributes(AttributeTemplate):
    key = RepeatedBuilderType

    def generic_resolve(self, field: RepeatedBuilderType, name: str) -> types.Type | None:
        known: dict[str, Any] = {"append": _Append, "extend": _Extend}
        if field.field.op in _LISTS:
            known = {"add": _Add}
        if name in known:
            return Method(known[name], field)
        if is_probed() or name.startswith("__"):
            return None
        text = f"repeated field {_where(field)} of a builder has no {name!r}{near_names(name, known)}"
        raise refusal(CompileAttributeError, text)


@lower_builtin(_Append.key, RepeatedBuilderType, types.Any)
def _append(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    typ, given = sig.recvr or sig.args[0], sig.args[-1]
    native = opened(context, builder, typ, args[0])
    f = typ.field
    state = as_address(builder, native.state)
    slot = as_address(builder, word_at(builder, native.record, f.slot))
    if is_text(f.definition):
        pointer, nbytes = text(context, builder, f.definition, given, args[1], state)
        words = [state, slot, I64(f.tag), pointer, nbytes]
        done = call(builder, "append_text", words)
    else:
        _, bits = number(context, builder, typ.mp.plan, f.definition, given, args[1])
        tag = 0 if f.op == tables.PACKED else f.tag
        words = [state, slot, I64(tag), I64(tables.number_op(f.kind)), bits]
        done = call(builder, "append_number", words)
    raise_if_null(context, builder, done)
    touch(context, builder, typ, native, f)
    return context.get_dummy_value()


@njit
def _extend(field, values):  # type: ignore[no-untyped-def]
    for value in values:
        field.append(value)


@lower_builtin(_Extend.key, RepeatedBuilderType, types.Any)
def _lower_extend(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    typ = sig.recvr or sig.args[0]
    call_jitted(context, builder, _extend, (typ, sig.args[-1]), args)
    return context.get_dummy_value()


@lower_builtin(_Add.key, RepeatedBuilderType)
def _add(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    typ = sig.recvr or sig.args[0]
    native = opened(context, builder, typ, args[0])
    slot = as_address(builder, word_at(builder, native.record, typ.field.slot))
    words = [as_address(builder, native.state), slot, I64(sig.return_type.builds.nbytes)]
    record = call(builder, "new_element", words)
    raise_if_null(context, builder, record)
    touch(context, builder, typ, native, typ.field)
    made = parts.part_of(context, builder, sig.return_type, native, as_pointer(builder, record))
    return impl_ret_borrowed(context, builder, sig.return_type, made)


@infer_global(len)
class _Len(AbstractTemplate):
    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
        if len(args) == 1 and isinstance(args[0], (RepeatedBuilderType, MapBuilderType)):
            return signature(types.intp, *args)
        return None


@lower_builtin(len, RepeatedBuilderType)
@lower_builtin(len, MapBuilderType)
def _len(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    typ = sig.args[0]
    native = opened(context, builder, typ, args[0])
    at = tables.COUNT if typ.field.op in (tables.PACKED, tables.PLAIN) else tables.USED
    return load_word(builder, native.record, typ.field.slot + at)
