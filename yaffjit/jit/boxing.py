"""Views and records into jitted code and back.

What comes in is read from two or three attributes; what goes out is made by `box_view`, which finds the bytes
by their owner. The owner is numba's counted record of the buffer, held without counting: the argument keeps it
alive for the call.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.extending import NativeValue, box, unbox

from yaffjit.errors import YaffjitError
from yaffjit.jit.emit.outline import I64, NULL, POINTER
from yaffjit.jit.keys import find_plan
from yaffjit.jit.types import MessageViewType, RecordsType
from yaffjit.plan.model import MessagePlan


def _integer(c: Any, obj: ir.Value, name: str) -> ir.Value:
    """An int attribute, as an i64; -1 with an exception set where there's none."""
    attribute = c.pyapi.object_getattr_string(obj, name)
    value = cgutils.alloca_once_value(c.builder, I64(-1))
    with c.builder.if_then(cgutils.is_not_null(c.builder, attribute)):
        c.builder.store(c.pyapi.long_as_longlong(attribute), value)
        c.pyapi.decref(attribute)
    return c.builder.load(value)


def _owner(c: Any, obj: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Address of the bytes under an object, and the native record that keeps them; both null for default instances."""
    b = c.builder
    address = cgutils.alloca_once_value(b, NULL)
    record = cgutils.alloca_once_value(b, NULL)
    owner = c.pyapi.object_getattr_string(obj, "_owner")
    with b.if_then(cgutils.is_not_null(b, owner)):
        handle = c.pyapi.object_getattr_string(owner, "handle")
        with b.if_then(cgutils.is_not_null(b, handle)):
            words = b.bitcast(c.pyapi.bytes_as_string(handle), POINTER.as_pointer())
            b.store(b.load(words), address)
            b.store(b.load(b.gep(words, [I64(1)])), record)
            c.pyapi.decref(handle)
        c.pyapi.decref(owner)
    return b.load(address), b.load(record)


@unbox(MessageViewType)
def _unbox_view(view: MessageViewType, obj: ir.Value, c: Any) -> NativeValue:
    b = c.builder
    native = cgutils.create_struct_proxy(view)(c.context, b)
    address, native.owner = _owner(c, obj)
    at = b.gep(address, [_integer(c, obj, "_pos")])
    native.pointer = b.select(cgutils.is_not_null(b, address), at, NULL)
    return NativeValue(native._getvalue(), is_error=cgutils.is_not_null(b, c.pyapi.err_occurred()))


@unbox(RecordsType)
def _unbox_records(records: RecordsType, obj: ir.Value, c: Any) -> NativeValue:
    b = c.builder
    native = cgutils.create_struct_proxy(records)(c.context, b)
    native.table = b.inttoptr(_integer(c, obj, "_chunk_table_address"), POINTER)
    native.start = _integer(c, obj, "_start")
    native.count = _integer(c, obj, "_count")
    _, native.owner = _owner(c, obj)
    return NativeValue(native._getvalue(), is_error=cgutils.is_not_null(b, c.pyapi.err_occurred()))


@box(MessageViewType)
def _box_view(view: MessageViewType, value: ir.Value, c: Any) -> ir.Value:
    native = cgutils.create_struct_proxy(view)(c.context, c.builder, value)
    return _call(c, box_view, (view.mp.fingerprint, view.mp.full_name), native.pointer, native.owner)


def _call(c: Any, function: Any, key: tuple[str, str], *pointers: ir.Value) -> ir.Value:
    """Call a Python function of this module with a constant and addresses."""
    api = c.pyapi
    constants = [api.unserialize(api.serialize_object(constant)) for constant in (function, key)]
    numbers = [api.long_from_ulonglong(c.builder.ptrtoint(pointer, I64)) for pointer in pointers]
    result = api.call_function_objargs(constants[0], [constants[1], *numbers])
    for obj in (*constants, *numbers):
        api.decref(obj)
    return result


def box_view(key: tuple[str, str], address: int, meminfo: int) -> Any:
    """The Python view of a message that comes out of jitted code.

    Args:
        key: fingerprint and full name of the message.
        address: of the message, 0 for the default instance.
        meminfo: address of the owner's native record, 0 if there is none.
    """
    from yaffjit.view import default_view
    from yaffjit.view.owner import owner_at

    owner = owner_at(meminfo) if meminfo else None
    mp = _plan_for(key, owner)
    if not address:
        return default_view(mp)
    assert owner is not None
    return view_of(mp, owner, address - owner.address)


def view_of(mp: MessagePlan, owner: Any, pos: int) -> Any:
    """The view of the message at a position of an owner's data."""
    from yaffjit.view import view_class

    return view_class(mp)(owner.data, pos)


def _plan_for(key: tuple[str, str], owner: Any) -> MessagePlan:
    """The plan whose view class a result has: of the schema that the bytes were read with, where that's known."""
    fingerprint, full_name = key
    if owner is not None and owner.plan is not None and full_name in owner.plan.schema.messages:
        mp: MessagePlan = owner.plan[full_name]
        if mp.fingerprint == fingerprint:
            return mp
    found = find_plan(fingerprint, full_name)
    if found is None:
        raise YaffjitError(f"the schema of {full_name} isn't loaded any more")
    return found
