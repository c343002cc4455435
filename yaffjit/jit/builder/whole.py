"""Builders themselves in jitted code: how they are made, ``finish()``, ``update(view)`` and ``clear()``."""

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
from yaffjit.jit.builder.kernels import call, load_kernels
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
from yaffjit.jit.message_types import MessageTypeType, bytes_of, is_bytes
from yaffjit.jit.records import raise_jitted
from yaffjit.jit.refusals import refusal, shown
from yaffjit.jit.text.type import constant_bytes
from yaffjit.jit.types import WireViewType
from yaffjit.jit.wire.faults import raise_broken
from yaffjit.kernels import builder_memory as memory
from yaffjit.kernels import builder_write
from yaffjit.plan.builder_tables import MESSAGE_WORDS
from yaffjit.plan.wire_tables import parser_habits

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
            if not _is_writable(typ) and not isinstance(typ, types.NoneType):
                text = f"builder() takes a writable contiguous array of uint8, not {shown(typ)}"
                raise refusal(CompileTypeError, text)
        made = signature(builder_type(self.this.mp), *given, recvr=self.this)
        return made.replace(pysig=inspect.signature(_builder)) if given else made


def _is_writable(typ: types.Type) -> bool:
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
    scratch = as_pointer(b, load_word(b, state, memory.SCRATCH))
    with b.if_then(cgutils.is_not_null(b, scratch)):  # numba counts what it's asked to free
        b.call(free, [scratch])
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


class _Update(AbstractTemplate):
    key = "yaffjit.builder.update"

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature:
        if kws or len(args) != 1:
            raise refusal(CompileTypeError, "update() takes one view of protobuf bytes")
        typ, mp = args[0], self.this.mp
        is_view = isinstance(typ, WireViewType)
        if is_view and (typ.mp.full_name, typ.mp.fingerprint) != (mp.full_name, mp.fingerprint):
            text = f"update() of a builder of {mp.full_name} takes no {shown(typ)}"
            raise refusal(CompileTypeError, text)
        if not is_view and not is_bytes(typ):
            text = f"update() takes a view of protobuf bytes, an array of uint8 or bytes, not {shown(typ)}"
            raise refusal(CompileTypeError, text)
        return signature(_ARRAY, *args, recvr=self.this)


builder_methods |= {"finish": _Finish, "update": _Update, "clear": _Clear}


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
    table = as_address(builder, constant_bytes(builder, typ.builds.table.tobytes()))
    nbytes = call(builder, "write", [state, table])
    _raise_unwritten(context, builder, typ, nbytes)
    return _placed(context, builder, typ, native, nbytes)


@lower_builtin(_Update.key, BuilderType, types.Any)
def _lower_update(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    typ, given = sig.recvr or sig.args[0], sig.args[-1]
    load_kernels(updates=True)
    refuse_disk_cache(builder)
    native = opened(context, builder, typ, args[0])
    state = as_address(builder, native.state)
    if isinstance(given, WireViewType):
        view = cgutils.create_struct_proxy(given)(context, builder, args[-1])
        pointer, nbytes = view.pointer, view.nbytes
    else:
        pointer, nbytes, _ = bytes_of(context, builder, given, args[-1])
    habits = parser_habits()
    table = as_address(builder, constant_bytes(builder, typ.builds.table.tobytes()))
    words = [state, table, as_address(builder, pointer), nbytes]
    words += [I64(habits.size_bits), I64(int(habits.groups_take_zero))]
    written = call(builder, "update", words)
    with cgutils.if_unlikely(builder, builder.icmp_signed("==", written, I64(builder_write.BROKEN))):
        places = (memory.BROKEN_AT, memory.BROKEN_NBYTES, memory.BROKEN_ERROR, memory.BROKEN_MESSAGE)
        at, size, error, place = (load_word(builder, native.state, word) for word in places)
        which = builder.udiv(place, I64(8 * MESSAGE_WORDS))
        raise_broken(context, builder, typ.mp, at, size, error, (typ.builds.reached, which))
    _raise_unwritten(context, builder, typ, written)
    return _placed(context, builder, typ, native, written)


def _placed(context: Any, builder: ir.IRBuilder, typ: BuilderType, native: Any, nbytes: ir.Value) -> ir.Value:
    """An array of what is in the scratch: of the buffer, or a new one."""
    state = as_address(builder, native.state)
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


def _raise_unwritten(context: Any, builder: ir.IRBuilder, typ: BuilderType, nbytes: ir.Value) -> None:
    """Raise where a kernel gave a reason and no number of bytes."""
    full_name = typ.mp.full_name
    with cgutils.if_unlikely(builder, builder.icmp_signed("<", nbytes, I64(0))):
        for code, error, text in (
            (builder_write.TOO_DEEP, EncodeError, f"{full_name}: messages nested deeper than 100"),
            (builder_write.TOO_LONG, EncodeError, f"{full_name}: more than {2**31 - 1} bytes"),
        ):
            with builder.if_then(builder.icmp_signed("==", nbytes, I64(code))):
                context.call_conv.return_user_exc(builder, error, (text,))
        context.call_conv.return_user_exc(builder, MemoryError, (f"no memory for a {full_name}",))


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
