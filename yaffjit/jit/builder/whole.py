"""Builders themselves in jitted code: ``Banner.builder(buffer)``, ``finish()``, ``clear()``."""

from __future__ import annotations

import inspect
from typing import Any

from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_new_ref, lower_builtin
from numba.core.typing.templates import AbstractTemplate, Signature, signature
from numba.extending import box
from numba.np.arrayobj import populate_array

from yaffjit.errors import BufferTooSmallError, CompileTypeError, EncodeError
from yaffjit.jit import message_types
from yaffjit.jit.builder.fields import builder_methods
from yaffjit.jit.builder.kernels import call
from yaffjit.jit.builder.type import (
    BuilderType,
    MapBuilderType,
    MessageBuilderType,
    PartType,
    RepeatedBuilderType,
    as_address,
    as_pointer,
    builder_type,
    load_word,
    opened,
    raise_if_null,
    word_at,
)
from yaffjit.jit.constants import refuse_disk_cache
from yaffjit.jit.emit.outline import I64, NULL, POINTER
from yaffjit.jit.message_types import MessageTypeType
from yaffjit.jit.records import raise_jitted
from yaffjit.jit.refusals import refusal, shown
from yaffjit.jit.text.type import constant_bytes
from yaffjit.kernels import builder_memory as memory
from yaffjit.kernels import builder_write

_OWNER = types.MemInfoPointer(types.voidptr)
_ARRAY = types.Array(types.uint8, 1, "C")
_ALIGNED = 32


# ---- making one ----


def _builder(buffer: Any = None) -> None: ...


class _Builder(AbstractTemplate):
    key = "yaffjit.builder"

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature:
        given = [*args, *kws.values()]
        if len(given) > 1 or set(kws) - {"buffer"}:
            raise refusal(CompileTypeError, "builder() takes one buffer")
        for typ in given:
            if not _is_buffer(typ) and not isinstance(typ, types.NoneType):
                text = f"builder() takes a writable contiguous array of uint8, not {shown(typ)}"
                raise refusal(CompileTypeError, text)
        made = signature(builder_type(self.this.mp), *given, recvr=self.this)
        return made.replace(pysig=inspect.signature(_builder)) if given else made


def _is_buffer(typ: types.Type) -> bool:
    return (
        isinstance(typ, types.Array)
        and typ.mutable
        and (typ.ndim, typ.dtype, typ.layout)
        == (
            1,
            types.uint8,
            "C",
        )
    )


message_types.methods["builder"] = _Builder


@lower_builtin(_Builder.key, MessageTypeType)
@lower_builtin(_Builder.key, MessageTypeType, types.NoneType)
def _make(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    return _made(context, builder, sig.return_type, NULL, I64(0), NULL)


@lower_builtin(_Builder.key, MessageTypeType, types.Array)
def _make_over(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    array = context.make_array(sig.args[-1])(context, builder, args[-1])
    context.nrt.incref(builder, _OWNER, array.meminfo)
    data = builder.bitcast(array.data, POINTER)
    return _made(context, builder, sig.return_type, data, array.nitems, array.meminfo)


def _made(
    context: Any,
    builder: ir.IRBuilder,
    typ: BuilderType,
    buffer: ir.Value,
    nbytes: ir.Value,
    owner: ir.Value,
) -> ir.Value:
    """A new builder, which takes a reference of the buffer's owner."""
    if typ not in context.fndesc.argtypes:  # which would tell of a change of the schema
        refuse_disk_cache(builder)
    record = context.nrt.meminfo_alloc_dtor(builder, I64(memory.STATE_NBYTES), _destructor(context, builder))
    state = context.nrt.meminfo_data(builder, record)
    cgutils.memset(builder, state, I64(memory.STATE_NBYTES), 0)
    builder.store(as_address(builder, buffer), word_at(builder, state, memory.BUFFER))
    builder.store(nbytes, word_at(builder, state, memory.BUFFER_NBYTES))
    builder.store(as_address(builder, owner), word_at(builder, state, memory.BUFFER_OWNER))
    args = [as_address(builder, state), I64(typ.builds.nbytes)]
    begun = call(builder, "begin", args)
    raise_if_null(context, builder, begun)
    made = cgutils.create_struct_proxy(typ)(context, builder)
    made.record = as_pointer(builder, load_word(builder, state, memory.ROOT))
    made.state = state
    made.epoch = I64(0)
    made.owner = record
    return impl_ret_new_ref(context, builder, typ, made._getvalue())


def _destructor(context: Any, builder: ir.IRBuilder) -> ir.Function:
    """What numba calls when the last reference to a builder is gone: it gives back all that it holds."""
    module = builder.module
    name = "yaffjit.builder.end"
    function = module.globals.get(name)
    if function is not None:
        return function
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER, I64, POINTER]), name)
    function.linkage = "linkonce_odr"
    b = ir.IRBuilder(function.append_basic_block())
    state = function.args[0]
    free = cgutils.get_or_insert_function(module, ir.FunctionType(ir.VoidType(), [POINTER]), "NRT_Free")
    chunk = cgutils.alloca_once_value(b, load_word(b, state, memory.FIRST))
    loop, body, after = (b.append_basic_block() for _ in range(3))
    b.branch(loop)
    b.position_at_end(loop)
    b.cbranch(b.icmp_unsigned("!=", b.load(chunk), I64(0)), body, after)
    b.position_at_end(body)
    at = as_pointer(b, b.load(chunk))
    b.store(load_word(b, at, memory.NEXT), chunk)
    b.call(free, [at])
    b.branch(loop)
    b.position_at_end(after)
    b.call(free, [as_pointer(b, load_word(b, state, memory.SCRATCH))])
    context.nrt.decref(b, _OWNER, as_pointer(b, load_word(b, state, memory.BUFFER_OWNER)))
    b.ret_void()
    return function


# ---- writing and clearing ----


class _Finish(AbstractTemplate):
    key = "yaffjit.builder.finish"

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature:
        if args or kws:
            raise refusal(CompileTypeError, "finish() takes no arguments")
        return signature(_ARRAY, recvr=self.this)


class _Clear(AbstractTemplate):
    key = "yaffjit.builder.clear"

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature:
        if args or kws:
            raise refusal(CompileTypeError, "clear() takes no arguments")
        return signature(types.none, recvr=self.this)


builder_methods |= {"finish": _Finish, "clear": _Clear}


@lower_builtin(_Clear.key, BuilderType)
def _lower_clear(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    native = opened(context, builder, sig.recvr or sig.args[0], args[0])
    call(builder, "clear", [as_address(builder, native.state)])
    return context.get_dummy_value()


@njit
def _raise_too_small(full_name, needed, nbytes):  # type: ignore[no-untyped-def]
    raise BufferTooSmallError(full_name, needed, nbytes)


@lower_builtin(_Finish.key, BuilderType)
def _lower_finish(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    typ = sig.recvr or sig.args[0]
    native = opened(context, builder, typ, args[0])
    state = as_address(builder, native.state)
    nbytes = _written(context, builder, typ, state)
    data = cgutils.alloca_once_value(builder, NULL)
    record = cgutils.alloca_once_value(builder, NULL)
    buffer = load_word(builder, native.state, memory.BUFFER)
    with builder.if_else(builder.icmp_unsigned("!=", buffer, I64(0))) as (given, growing):
        with given:
            room = load_word(builder, native.state, memory.BUFFER_NBYTES)
            with cgutils.if_unlikely(builder, builder.icmp_unsigned(">", nbytes, room)):
                name = context.get_constant_generic(builder, types.unicode_type, typ.mp.full_name)
                told = (types.unicode_type, types.int64, types.int64)
                raise_jitted(context, builder, _raise_too_small, told, [name, nbytes, room])
            owner = as_pointer(builder, load_word(builder, native.state, memory.BUFFER_OWNER))
            context.nrt.incref(builder, _OWNER, owner)
            builder.store(as_pointer(builder, buffer), data)
            builder.store(owner, record)
        with growing:
            made = context.nrt.meminfo_alloc_aligned(builder, nbytes, ir.IntType(32)(_ALIGNED))
            builder.store(context.nrt.meminfo_data(builder, made), data)
            builder.store(made, record)
    to = as_address(builder, builder.load(data))
    call(builder, "place", [state, to, nbytes])
    array = context.make_array(_ARRAY)(context, builder)
    populate_array(
        array,
        data=builder.load(data),
        shape=[nbytes],
        strides=[I64(1)],
        itemsize=I64(1),
        meminfo=builder.load(record),
    )
    return impl_ret_new_ref(context, builder, _ARRAY, array._getvalue())


def _written(context: Any, builder: ir.IRBuilder, typ: BuilderType, state: ir.Value) -> ir.Value:
    """Write into the scratch; the number of bytes. Raises where there are none."""
    table = as_address(builder, constant_bytes(builder, typ.builds.table.tobytes()))
    nbytes = call(builder, "write", [state, table])
    full_name = typ.mp.full_name
    with cgutils.if_unlikely(builder, builder.icmp_signed("<", nbytes, I64(0))):
        for code, error, text in (
            (builder_write.TOO_DEEP, EncodeError, f"{full_name}: messages nested deeper than 100"),
            (builder_write.TOO_LONG, EncodeError, f"{full_name}: more than {2**31 - 1} bytes"),
        ):
            with builder.if_then(builder.icmp_signed("==", nbytes, I64(code))):
                context.call_conv.return_user_exc(builder, error, (text,))
        context.call_conv.return_user_exc(builder, MemoryError, (f"no memory for a {full_name}",))
    return nbytes


# ---- out of jitted code ----


@box(BuilderType)
@box(MessageBuilderType)
@box(RepeatedBuilderType)
@box(MapBuilderType)
def _box(typ: PartType, value: ir.Value, c: Any) -> ir.Value:
    # Not at compile time: a function that gives a builder to another jitted one has this wrapper too.
    c.context.nrt.decref(c.builder, typ, value)
    text = "builders don't come out of jitted code: return what finish() gives"
    c.pyapi.err_set_string("PyExc_TypeError", text)
    return c.pyapi.get_null_object()
