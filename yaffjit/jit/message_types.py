"""``Banner.view_unchecked(data)`` and ``Banner.view_protobuf(data)`` in jitted code: views of arrays.

The array may just have been written. Such a view is of the twin type that counts its owner
(`yaffjit.jit.types`): the array's own record, so the
bytes live as long as the view or anything that was read from it. Its getters are read where they are written
in the code: what was stored before them they see, what is stored after them they don't.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.core.datamodel import models, register_default
from numba.core.imputils import lower_builtin, lower_constant
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    Signature,
    infer_getattr,
    signature,
)
from numba.extending import NativeValue, unbox

from yaffjit.errors import CompileAttributeError, CompileTypeError, ShortBufferError, near_names
from yaffjit.jit.constants import refuse_disk_cache
from yaffjit.jit.emit.outline import I32, I64, POINTER
from yaffjit.jit.keys import PlanType
from yaffjit.jit.records import raise_jitted
from yaffjit.jit.refusals import Method, is_probed, refusal, shown
from yaffjit.jit.text.type import BytesType
from yaffjit.jit.types import message_type, own
from yaffjit.plan.model import MessagePlan

_ROOT_OFFSET_NBYTES = 4
_LEAST_NBYTES = 2  # of a message


class MessageTypeType(PlanType):
    """A `MessageType`, which makes views; it has no value at run time."""

    label = "message type"

    def __init__(self, mp: MessagePlan) -> None:
        super().__init__(mp)


def message_type_type(mp: MessagePlan) -> MessageTypeType:
    """The numba type of the message type itself."""
    return MessageTypeType(mp)


register_default(MessageTypeType)(models.OpaqueModel)


@unbox(MessageTypeType)
def _unbox(typ: MessageTypeType, obj: ir.Value, c: Any) -> NativeValue:
    return NativeValue(c.context.get_dummy_value())


@lower_constant(MessageTypeType)
def _constant(context: Any, builder: ir.IRBuilder, typ: MessageTypeType, value: Any) -> ir.Value:
    return context.get_dummy_value()


def is_bytes(typ: types.Type) -> bool:
    if isinstance(typ, BytesType):
        return True
    return isinstance(typ, types.Buffer) and (typ.ndim, typ.dtype, typ.layout) == (1, types.uint8, "C")


class _ViewUnchecked(AbstractTemplate):
    key = "yaffjit.view_unchecked"

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature:
        if kws or len(args) != 1:
            raise refusal(CompileTypeError, "view_unchecked() takes one buffer")
        if not is_bytes(args[0]):
            text = f"view_unchecked() takes a contiguous array of uint8, or bytes, not {shown(args[0])}"
            raise refusal(CompileTypeError, text)
        return signature(own(message_type(self.this.mp)), *args, recvr=self.this)


class _ViewProtobuf(AbstractTemplate):
    key = "yaffjit.view_protobuf"

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature:
        if kws or len(args) != 1:
            raise refusal(CompileTypeError, "view_protobuf() takes one buffer")
        if not is_bytes(args[0]):
            text = f"view_protobuf() takes a contiguous array of uint8, or bytes, not {shown(args[0])}"
            raise refusal(CompileTypeError, text)
        return signature(own(message_type(self.this.mp, "protobuf")), *args, recvr=self.this)


# By name; other modules enter theirs.
methods: dict[str, Any] = {"view_protobuf": _ViewProtobuf, "view_unchecked": _ViewUnchecked}
_OUTSIDE = (
    "decode", "encode", "full_name", "getter", "message_class", "name", "numba_type", "plan", "presence",
    "records_type", "schema", "transcode", "verify", "view",
)  # fmt: skip


@infer_getattr
class _Attributes(AttributeTemplate):
    key = MessageTypeType

    def generic_resolve(self, typ: MessageTypeType, name: str) -> types.Type | None:
        method = methods.get(name)
        if method is not None:
            return Method(method, typ)
        if is_probed() or name.startswith("__"):
            return None
        full_name = typ.mp.full_name
        if name in _OUTSIDE:
            text = f"{name} of the message type {full_name} isn't available in jitted code: use it outside"
            raise refusal(CompileTypeError, text)
        near = near_names(name, [*methods, *_OUTSIDE])
        raise refusal(CompileAttributeError, f"the message type {full_name} has no {name!r}{near}")


@lower_builtin(_ViewUnchecked.key, MessageTypeType, types.Any)
def _view_unchecked(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    mp = sig.return_type.mp
    _refuse_stale_cache(context, builder, mp)
    given, nbytes, owner = bytes_of(context, builder, sig.args[-1], args[-1])
    root = _root(context, builder, mp, given, nbytes)
    data, record = _take(context, builder, given, nbytes, owner)
    made = cgutils.create_struct_proxy(sig.return_type)(context, builder)
    made.pointer = builder.gep(data, [root])
    made.owner = record
    return made._getvalue()


@lower_builtin(_ViewProtobuf.key, MessageTypeType, types.Any)
def _view_protobuf(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    _refuse_stale_cache(context, builder, sig.return_type.mp)
    given, nbytes, owner = bytes_of(context, builder, sig.args[-1], args[-1])
    made = cgutils.create_struct_proxy(sig.return_type)(context, builder)
    made.pointer, made.owner = _take(context, builder, given, nbytes, owner)
    made.nbytes = nbytes
    return made._getvalue()


def _refuse_stale_cache(context: Any, builder: ir.IRBuilder, mp: MessagePlan) -> None:
    """Keep numba from caching on disk what would be taken again after the schema has changed.

    The types of arguments tell of a change if one of them is of this message.
    """
    told = (arg.mp for arg in context.fndesc.argtypes if isinstance(arg, PlanType))
    if not any(mp.full_name == of.full_name and mp.fingerprint == of.fingerprint for of in told):
        refuse_disk_cache(builder)


def bytes_of(
    context: Any, builder: ir.IRBuilder, typ: types.Type, value: ir.Value
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Where the bytes of a buffer are, their number, and what keeps them alive."""
    if isinstance(typ, BytesType):
        native = cgutils.create_struct_proxy(typ)(context, builder, value)
        return native.pointer, native.nbytes, native.owner
    array = context.make_array(typ)(context, builder, value)
    return builder.bitcast(array.data, POINTER), array.nitems, array.meminfo


@njit
def _raise_short(full_name, nbytes):  # type: ignore[no-untyped-def]
    raise ShortBufferError(full_name, nbytes)


def _root(context: Any, builder: ir.IRBuilder, mp: MessagePlan, data: ir.Value, nbytes: ir.Value) -> ir.Value:
    """Where the root message of a buffer is; raises where the buffer ends before it."""
    is_long = builder.icmp_unsigned(">=", nbytes, I64(_ROOT_OFFSET_NBYTES))
    root = cgutils.alloca_once_value(builder, I64(0))
    with builder.if_then(is_long, likely=True):
        offset = builder.load(builder.bitcast(data, I32.as_pointer()), align=1)
        builder.store(builder.zext(offset, I64), root)
    within = builder.icmp_unsigned("<=", builder.add(builder.load(root), I64(_LEAST_NBYTES)), nbytes)
    with cgutils.if_unlikely(builder, builder.not_(builder.and_(is_long, within))):
        name = context.get_constant_generic(builder, types.unicode_type, mp.full_name)
        raise_jitted(context, builder, _raise_short, (types.unicode_type, types.int64), [name, nbytes])
    return builder.load(root)


def _take(
    context: Any, builder: ir.IRBuilder, given: ir.Value, nbytes: ir.Value, owner: ir.Value
) -> tuple[ir.Value, ir.Value]:
    """Where bytes are, and a reference of our own to what keeps them alive.

    What nobody is known to keep, such as constants, is copied.
    """
    data = cgutils.alloca_once_value(builder, given)
    record = cgutils.alloca_once_value(builder, owner)
    with builder.if_else(cgutils.is_null(builder, owner), likely=False) as (unowned, owned):
        with unowned:
            new = context.nrt.meminfo_alloc(builder, nbytes)
            copy = context.nrt.meminfo_data(builder, new)
            cgutils.raw_memcpy(builder, copy, given, nbytes, 1)
            builder.store(new, record)
            builder.store(copy, data)
        with owned:
            context.nrt.incref(builder, types.MemInfoPointer(types.voidptr), owner)
    return builder.load(data), builder.load(record)
