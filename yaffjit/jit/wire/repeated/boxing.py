"""Repeated fields of protobuf views out of jitted code: as a view's containers; slices as lists."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.extending import box

from yaffjit.jit.boxing import constant, get_source
from yaffjit.jit.emit.outline import I64
from yaffjit.jit.wire.boxing import box_wire_view
from yaffjit.jit.wire.repeated.elements import WireElements
from yaffjit.jit.wire.repeated.type import WireRepeatedType


@box(WireRepeatedType)
def _box(typ: WireRepeatedType, value: ir.Value, c: Any) -> ir.Value:
    native = cgutils.create_struct_proxy(typ)(c.context, c.builder, value)
    if not typ.part:
        return box_container(c, typ, native, box_field, native.number)
    b = c.builder
    result = cgutils.alloca_once(b, c.pyapi.pyobj)
    with b.if_else(cgutils.is_not_null(b, native.table)) as (of_table, of_field):
        with of_table:
            b.store(_box_table(typ, value, native, c), result)
        with of_field:
            b.store(box_container(c, typ, native, box_list, native.number), result)
    return b.load(result)


def box_container(c: Any, typ: Any, native: Any, function: Any, number: ir.Value) -> ir.Value:
    """What ``function(key, address, nbytes, source, number)`` gives for a container of a native message.

    Args:
        native: its members; the reference to the owner is taken, if it's counted.
        number: of the field, an i64.
    """
    b, api = c.builder, c.pyapi
    source = get_source(c, typ, native.owner)
    objects = [
        constant(c, function),
        constant(c, (typ.mp.fingerprint, typ.mp.full_name)),
        api.long_from_ulonglong(b.ptrtoint(native.pointer, I64)),
        api.long_from_longlong(native.nbytes),
        source,
        api.long_from_longlong(number),
    ]
    result = api.call_function_objargs(objects[0], objects[1:])
    for obj in objects:
        api.decref(obj)
    return result


def _box_table(typ: WireRepeatedType, value: ir.Value, native: Any, c: Any) -> ir.Value:
    """A new list of what is in a slice's table; null if an element can't be made into an object."""
    b, api = c.builder, c.pyapi
    elements = WireElements(c.context, b, typ, native)
    count = elements.count
    result = cgutils.alloca_once_value(b, api.list_new(count))
    with b.if_then(cgutils.is_not_null(b, b.load(result))), cgutils.for_range(b, count) as loop:
        element = elements.of_table(loop.index)
        c.context.nrt.incref(b, elements.type, element)
        obj = c.box(elements.type, element)
        with b.if_then(cgutils.is_null(b, obj), likely=False):
            api.decref(b.load(result))
            b.store(api.get_null_object(), result)
            loop.do_break()
        api.list_setitem(b.load(result), loop.index, obj)
    c.context.nrt.decref(b, typ, value)
    return b.load(result)


def box_field(key: tuple[str, str], address: int, nbytes: int, source: Any, number: int) -> Any:
    """The Python container of a repeated or map field that comes out of jitted code.

    Args:
        key: fingerprint and full name of the message that has the field.
        address, nbytes: of the message, 0 for an absent one.
        source: of the bytes, as `box_wire_view` takes it.
        number: of the field.
    """
    view = box_wire_view(key, address, nbytes, source)
    name = next(f.name for f in view._plan_.fields if f.number == number)
    return getattr(view, name)


def box_list(key: tuple[str, str], address: int, nbytes: int, source: Any, number: int) -> list[Any]:
    """The list of a field that shares a variable with its slices; arguments as for `box_field`."""
    return list(box_field(key, address, nbytes, source, number))
