"""Views of protobuf's bytes into jitted code and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba.core import cgutils
from numba.extending import NativeValue, box, unbox

from yaffjit.arrays import array_address
from yaffjit.errors import YaffjitError
from yaffjit.jit.boxing import constant, get_source, integer, owner_of, read_view_owner
from yaffjit.jit.emit.outline import I64
from yaffjit.jit.keys import find_plan
from yaffjit.jit.types import WireViewType

if TYPE_CHECKING:
    from yaffjit.plan.build import Plan
    from yaffjit.view.base import View
    from yaffjit.view.wire import WireView


@unbox(WireViewType)
def _unbox_view(view: WireViewType, obj: ir.Value, c: Any) -> NativeValue:
    b = c.builder
    native = cgutils.create_struct_proxy(view)(c.context, b)
    address, native.owner = read_view_owner(c, obj)
    begin = integer(c, obj, "_begin_")
    native.pointer = b.gep(address, [begin])
    native.nbytes = b.sub(integer(c, obj, "_end_"), begin)
    c.context.nrt.incref(b, view, native._getvalue())
    return NativeValue(native._getvalue(), is_error=cgutils.is_not_null(b, c.pyapi.err_occurred()))


@box(WireViewType)
def _box_view(view: WireViewType, value: ir.Value, c: Any) -> ir.Value:
    b, api = c.builder, c.pyapi
    native = cgutils.create_struct_proxy(view)(c.context, b, value)
    source = get_source(c, view, native.owner)
    function = constant(c, box_wire_view)
    key = constant(c, (view.mp.fingerprint, view.mp.full_name))
    address = api.long_from_ulonglong(b.ptrtoint(native.pointer, I64))
    nbytes = api.long_from_longlong(native.nbytes)
    result = api.call_function_objargs(function, [key, address, nbytes, source])
    for obj in (function, key, address, nbytes, source):
        api.decref(obj)
    return result


def box_wire_view(key: tuple[str, str], address: int, nbytes: int, source: Any) -> View:
    """The Python view of a message that comes out of jitted code.

    Args:
        key: fingerprint and full name of the message.
        address, nbytes: of the message, 0 for the absent one.
        source: of the bytes, as `owner_of` takes it.

    Raises:
        VerifyError: protobuf doesn't accept the message; jitted code hadn't read it yet.
    """
    from yaffjit.view.owner import Held

    owner = owner_of(source)
    cls = wire_view_class_of(key, owner.plan if owner is not None else None)
    if not address:
        return cls._default_()
    held = source if isinstance(source, Held) else getattr(source, "parent", None)
    for room in tuple(held.joined.values()) if isinstance(held, Held) else ():
        pos = address - array_address(room)
        if 0 <= pos <= len(room):
            return cls(memoryview(room.data).toreadonly(), pos, pos + nbytes)
    assert owner is not None
    data, pos, found = owner.place(address)
    return cls(data, pos, pos + nbytes, found)


def wire_view_class_of(key: tuple[str, str], plan: Plan | None) -> type[WireView]:
    """The class that a result has: that of the owner's own schema, if this has an equal message."""
    from yaffjit.view.wire import wire_view_class

    fingerprint, full_name = key
    mp = plan[full_name] if plan is not None and full_name in plan.schema.messages else None
    if mp is None or mp.fingerprint != fingerprint:
        mp = find_plan(fingerprint, full_name)
    if mp is None:
        raise YaffjitError(f"the schema of {full_name} isn't loaded any more")
    return wire_view_class(mp.plan, full_name)
