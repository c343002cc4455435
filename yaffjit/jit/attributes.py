"""Fields and methods of message views in jitted code: resolved by name as each is used, so that a schema's
size costs nothing.

What protobuf raises for a wrong name is a compile error here, with the same words and near names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_borrowed, lower_builtin, lower_getattr_generic
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    Signature,
    infer_getattr,
    signature,
)

from yaffjit.errors import (
    CompileAttributeError,
    CompileError,
    CompileTypeError,
    CompileValueError,
    near_names,
)
from yaffjit.jit import constants, wellknown
from yaffjit.jit.emit import yaff
from yaffjit.jit.emit.outline import I8, I64
from yaffjit.jit.refusals import Method, is_asked_by_inference, is_probed, refusal, shown
from yaffjit.jit.truth import has_truth
from yaffjit.jit.types import MessageViewType, OneofType, form, message_type
from yaffjit.plan.model import FieldPlan, MessagePlan, OneofPlan


def widen(builder: ir.IRBuilder, f: FieldPlan, value: ir.Value) -> ir.Value:
    """A stored scalar as the native value of its `value_type`."""
    if f.kind == "bool":
        return builder.icmp_unsigned("!=", value, I8(0))
    if f.kind == "float":
        return builder.fpext(value, ir.DoubleType())
    if f.kind == "double" or f.width == 8:
        return value
    signless = f.kind in ("uint32", "fixed32")
    return builder.zext(value, I64) if signless else builder.sext(value, I64)


# (context, builder, message's plan, field, pointer to the message, owner, frozen) -> native value
ReadField = Callable[[Any, ir.IRBuilder, MessagePlan, FieldPlan, ir.Value, ir.Value, bool], ir.Value]
# How fields that aren't numbers or messages are read, by `types.form`: their packages enter it here.
field_readers: dict[str, ReadField] = {}


def read_field(
    context: Any,
    builder: ir.IRBuilder,
    mp: MessagePlan,
    f: FieldPlan,
    message: ir.Value,
    owner: ir.Value,
    frozen: bool = True,
) -> ir.Value:
    """The native value of a field of the message at a pointer.

    It has the owner, counted or not, without a reference of its own. ``frozen``: the bytes don't change.
    """
    read = field_readers.get(form(f))
    if read is not None:
        return read(context, builder, mp, f, message, owner, frozen)
    if f.kind != "message":
        return widen(builder, f, yaff.scalar(builder, mp, f, message, frozen))
    made = cgutils.create_struct_proxy(message_type(mp.child(f)))(context, builder)
    made.pointer = yaff.reference(builder, mp, f, message, frozen)
    made.owner = owner
    return made._getvalue()


@infer_getattr
class MessageAttributes(AttributeTemplate):
    key = MessageViewType

    def generic_resolve(self, view: MessageViewType, name: str) -> types.Type | None:
        mp = view.mp
        f = mp.by_name.get(name)
        if f is not None:
            if is_asked_by_inference("resolve_setattr"):
                text = f"a view of {mp.full_name} is read-only: change its to_message() and encode that"
                raise refusal(CompileAttributeError, text)
            return view.field_type(f)
        constant = constants.of_message(mp).attribute(name)
        if constant is not None:
            return constant
        method = _METHODS.get(name) or wellknown.method(mp, name)
        if method is not None:
            return Method(method, view)
        _refuse_absent(mp, name)
        if is_probed() or name.startswith("__"):  # numba asks for some of these by itself
            return None
        _refuse_lost(mp, name, CompileAttributeError)
        near = near_names(name, [*mp.by_name, *_METHODS])
        raise refusal(CompileAttributeError, f"{mp.full_name} has no field {name!r}{near}")


def _refuse_lost(mp: MessagePlan, name: str, cls: type[CompileError]) -> None:
    """Say why YaFF doesn't carry a field, if it's a declared one."""
    for field, reason in mp.lost:
        if field == name:
            raise refusal(cls, f"YaFF doesn't carry field {mp.full_name}.{name}: {reason}")


_ABSENT = {
    "ByteSize": "call it on the Python view, outside",
    "FindInitializationErrors": "call it on the Python view, outside",
    "IsInitialized": "call it on the Python view, outside",
    "ListFields": "ask HasField of each field that you need",
    "SerializePartialToString": "call it on the Python view, outside",
    "SerializeToString": "call it on the Python view, outside",
    "to_message": "call it on the Python view, outside",
}
_CHANGES = frozenset(
    {
        "Clear",
        "ClearExtension",
        "ClearField",
        "CopyFrom",
        "DiscardUnknownFields",
        "MergeFrom",
        "MergeFromString",
        "ParseFromString",
        "SetInParent",
    }
)


def _refuse_absent(mp: MessagePlan, name: str) -> None:
    """Say what to do instead, if it's a name that Python views have or explain."""
    if name in _CHANGES:
        text = "views are read-only: change a view's to_message() and encode that"
        raise refusal(CompileAttributeError, text)
    if name in ("Extensions", "HasExtension"):
        raise refusal(CompileAttributeError, "views have no extensions: YaFF doesn't carry them")
    if name == "DESCRIPTOR":
        text = "isn't available in jitted code: read outside what you need of it, and pass that in"
        raise refusal(CompileTypeError, f"DESCRIPTOR of {mp.full_name} {text}")
    instead = _ABSENT.get(name) or wellknown.instead(mp, name)
    if instead:
        text = f"{name}() of {mp.full_name} isn't available in jitted code: {instead}"
        raise refusal(CompileTypeError, text)


def _refuse_unknown(mp: MessagePlan, name: str, known: Iterable[str]) -> NoReturn:
    short = mp.full_name.rpartition(".")[2]
    text = f'Protocol message {short} has no "{name}" field{near_names(name, known)}.'
    raise refusal(CompileValueError, text)


@lower_getattr_generic(MessageViewType)
def _get_field(
    context: Any, builder: ir.IRBuilder, view: MessageViewType, value: ir.Value, name: str
) -> ir.Value:
    if name not in view.mp.by_name:
        return constants.lower_attribute(context, builder, constants.of_message(view.mp), name)
    native = cgutils.create_struct_proxy(view)(context, builder, value)
    mp, f = view.mp, view.mp.by_name[name]
    found = read_field(context, builder, mp, f, native.pointer, native.owner, not view.owned)
    return impl_ret_borrowed(context, builder, view.field_type(f), found)


def presence_target(mp: MessagePlan, name: str) -> FieldPlan | OneofPlan:
    """The field or oneof that ``HasField(name)`` asks about.

    Raises:
        CompileValueError: in protobuf's words, where there is none or it has no presence.
    """
    f = mp.by_name.get(name)
    oneof = next((oneof for oneof in mp.oneofs if oneof.name == name), None)
    if f is not None and f.explicit:
        return f
    if f is not None:
        raise refusal(CompileValueError, f"Field {mp.full_name}.{name} does not have presence.")
    if oneof is not None:
        return oneof
    _refuse_lost(mp, name, CompileValueError)
    known = [*(f.name for f in mp.fields if f.explicit), *(oneof.name for oneof in mp.oneofs)]
    _refuse_unknown(mp, name, known)


def _oneof(mp: MessagePlan, name: str) -> OneofPlan:
    found = next((oneof for oneof in mp.oneofs if oneof.name == name), None)
    if found is not None:
        return found
    if name in mp.by_name:
        raise refusal(CompileValueError, f"Expected a oneof name, but got field name {name}.")
    _refuse_unknown(mp, name, [oneof.name for oneof in mp.oneofs])


def _literal(method: str, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> str:
    """The name that a method is called with, which the compiler must know."""
    if kws or len(args) != 1:
        raise refusal(CompileTypeError, f"{method}() takes one name")
    if not isinstance(args[0], types.StringLiteral):
        text = f"{method}() takes a name that is written in the code, not {shown(args[0])}"
        raise refusal(CompileTypeError, text)
    return args[0].literal_value


class _HasField(AbstractTemplate):
    key = "yaffjit.HasField"
    prefer_literal = True

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature:
        presence_target(self.this.mp, _literal("HasField", args, kws))
        return signature(types.boolean, *args, recvr=self.this)


class _WhichOneof(AbstractTemplate):
    key = "yaffjit.WhichOneof"
    prefer_literal = True

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature:
        mp = self.this.mp
        oneof = _oneof(mp, _literal("WhichOneof", args, kws))
        return signature(OneofType(mp, oneof.name), *args, recvr=self.this)


# protobuf's own methods; a field of such a name hides them, as it does on protobuf's messages.
_METHODS = {"HasField": _HasField, "WhichOneof": _WhichOneof}


@lower_builtin(_HasField.key, MessageViewType, types.StringLiteral)
def _has_field(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    view = sig.recvr or sig.args[0]
    pointer = cgutils.create_struct_proxy(view)(context, builder, args[0]).pointer
    target = presence_target(view.mp, sig.args[-1].literal_value)
    if isinstance(target, FieldPlan):
        return yaff.present(builder, view.mp, target, pointer, not view.owned)
    number = yaff.which(builder, view.mp, target, pointer, not view.owned)
    return builder.icmp_unsigned("!=", number, number.type(0))


@lower_builtin(_WhichOneof.key, MessageViewType, types.StringLiteral)
def _which_oneof(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    view = sig.recvr or sig.args[0]
    pointer = cgutils.create_struct_proxy(view)(context, builder, args[0]).pointer
    return yaff.which(builder, view.mp, sig.return_type.oneof, pointer, not view.owned)


@has_truth(MessageViewType)
def _is_true(context: Any, builder: ir.IRBuilder, view: types.Type, value: ir.Value) -> ir.Value:
    """A message is always true."""
    return context.get_constant(types.boolean, True)
