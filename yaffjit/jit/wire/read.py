"""Fields of protobuf views in jitted code: slots of the scan of their message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_borrowed, lower_builtin, lower_getattr_generic

from yaffjit.jit import constants
from yaffjit.jit.attributes import presence_target, widen
from yaffjit.jit.emit import wire
from yaffjit.jit.emit.outline import I32, NULL
from yaffjit.jit.emit.wire_fields import wire_field
from yaffjit.jit.emit.yaff import stored_type
from yaffjit.jit.types import WireViewType, form
from yaffjit.jit.wire import fragments
from yaffjit.jit.wire.faults import raise_if_broken
from yaffjit.plan.model import FieldPlan, MessagePlan, OneofPlan

# (context, builder, view's type, native view, field) -> native value of the view's `field_type`, with the
# view's owner and without a reference of its own.
ReadField = Callable[[Any, ir.IRBuilder, WireViewType, Any, FieldPlan], ir.Value]
# How fields that aren't messages are read, by `types.form`.
readers: dict[str, ReadField] = {}


def slots(
    context: Any,
    builder: ir.IRBuilder,
    mp: MessagePlan,
    target: FieldPlan | OneofPlan,
    names: tuple[str, ...],
    pointer: ir.Value,
    nbytes: ir.Value,
    frozen: bool = True,
) -> list[ir.Value]:
    """Slots of a field or oneof of the message there, by name (`emit.wire`); raises where it's broken.

    ``frozen``: the bytes don't change while the function runs that is lowered.
    """
    error, values = wire.scan(builder, mp, target, names, pointer, nbytes, frozen)
    raise_if_broken(context, builder, mp, pointer, nbytes, error)
    return values


def slots_of(
    context: Any,
    builder: ir.IRBuilder,
    view: WireViewType,
    native: Any,
    target: FieldPlan | OneofPlan,
    *names: str,
) -> list[ir.Value]:
    """`slots` of the message of a native view."""
    return slots(context, builder, view.mp, target, names, native.pointer, native.nbytes, not view.owned)


def _read_number(
    context: Any, builder: ir.IRBuilder, view: WireViewType, native: Any, f: FieldPlan
) -> ir.Value:
    (bits,) = slots_of(context, builder, view, native, f, "value")
    if f.kind in ("float", "double"):
        bits = builder.bitcast(bits, stored_type(f))
    return widen(builder, f, bits)


def read_message(
    context: Any, builder: ir.IRBuilder, view: WireViewType, native: Any, f: FieldPlan
) -> ir.Value:
    """The native view of a singular message, with a reference of its own to its owner if it counts that."""
    found = slots_of(context, builder, view, native, f, "pointer", "nbytes", "count", "first")
    end = builder.gep(native.pointer, [native.nbytes])
    made = cgutils.create_struct_proxy(view.field_type(f))(context, builder)
    if view.owned:
        made.pointer, made.nbytes, made.owner = fragments.counted(
            context, builder, wire_field(view.mp, f), native.owner, end, found
        )
    else:
        made.pointer, made.nbytes = fragments.borrowed(
            builder, wire_field(view.mp, f), native.owner, end, found
        )
        made.owner = native.owner
    return made._getvalue()


readers["number"] = _read_number


@lower_getattr_generic(WireViewType)
def _get_field(
    context: Any, builder: ir.IRBuilder, view: WireViewType, value: ir.Value, name: str
) -> ir.Value:
    f = view.mp.by_name.get(name)
    if f is None:
        return constants.lower_attribute(context, builder, constants.of_message(view.mp), name)
    native = cgutils.create_struct_proxy(view)(context, builder, value)
    if form(f) == "message":
        return read_message(context, builder, view, native, f)
    found = readers[form(f)](context, builder, view, native, f)
    return impl_ret_borrowed(context, builder, view.field_type(f), found)


def is_present(
    context: Any, builder: ir.IRBuilder, view: WireViewType, native: Any, f: FieldPlan
) -> ir.Value:
    """Whether a field that has presence is set, as an i1."""
    if f.is_scalar:
        (has,) = slots_of(context, builder, view, native, f, "has")
        return has
    (pointer,) = slots_of(context, builder, view, native, f, "pointer")
    return builder.icmp_unsigned("!=", pointer, NULL)


@lower_builtin("yaffjit.HasField", WireViewType, types.StringLiteral)
def _has_field(context: Any, builder: ir.IRBuilder, sig: Any, args: list[ir.Value]) -> ir.Value:
    view = sig.recvr or sig.args[0]
    native = cgutils.create_struct_proxy(view)(context, builder, args[0])
    target = presence_target(view.mp, sig.args[-1].literal_value)
    if isinstance(target, FieldPlan):
        return is_present(context, builder, view, native, target)
    return builder.icmp_unsigned("!=", _which(context, builder, view, native, target), I32(0))


@lower_builtin("yaffjit.WhichOneof", WireViewType, types.StringLiteral)
def _which_oneof(context: Any, builder: ir.IRBuilder, sig: Any, args: list[ir.Value]) -> ir.Value:
    view = sig.recvr or sig.args[0]
    native = cgutils.create_struct_proxy(view)(context, builder, args[0])
    return _which(context, builder, view, native, sig.return_type.oneof)


def _which(
    context: Any, builder: ir.IRBuilder, view: WireViewType, native: Any, oneof: OneofPlan
) -> ir.Value:
    (number,) = slots_of(context, builder, view, native, oneof, "which")
    return number
