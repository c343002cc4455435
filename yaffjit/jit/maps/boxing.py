"""Map fields out of jitted code: as the containers that views have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba.core import cgutils
from numba.extending import box

from yaffjit.jit.boxing import constant, get_source, owner_of, view_class_of
from yaffjit.jit.emit.outline import I64
from yaffjit.jit.maps.type import MapPartType, MapType

if TYPE_CHECKING:
    from yaffjit.view.maps import MapView

_COUNT_WIDTH = 4


@box(MapType)
def _box_map(typ: MapType, value: ir.Value, c: Any) -> ir.Value:
    b, api = c.builder, c.pyapi
    native = cgutils.create_struct_proxy(typ)(c.context, b, value)
    source = get_source(c, typ, native.owner)
    function = constant(c, box_map)
    key = constant(c, (typ.mp.fingerprint, typ.mp.full_name))
    name = constant(c, typ.f.name)
    address = api.long_from_ulonglong(b.ptrtoint(native.members, I64))
    count = api.long_from_ulonglong(native.count)
    result = api.call_function_objargs(function, [key, name, address, count, source])
    for obj in (function, key, name, address, count, source):
        api.decref(obj)
    return result


@box(MapPartType)
def _box_part(typ: MapPartType, value: ir.Value, c: Any) -> ir.Value:
    whole = _box_map(typ, value, c)
    result = cgutils.alloca_once_value(c.builder, whole)
    with c.builder.if_then(cgutils.is_not_null(c.builder, whole)):
        c.builder.store(c.pyapi.call_method(whole, typ.part), result)
        c.pyapi.decref(whole)
    return c.builder.load(result)


def box_map(key: tuple[str, str], name: str, address: int, count: int, source: Any) -> MapView:
    """The Python container of a map field that comes out of jitted code.

    Args:
        key: fingerprint and full name of the message that has the field.
        name: of the field.
        address: of the first pair, 0 if the map is absent.
        count: of pairs.
        source: of the bytes, as `box_view` takes it.
    """
    from yaffjit.view.classes import make_map

    owner = owner_of(source)
    mp = view_class_of(key, owner.plan if owner is not None else None)._plan_
    if owner is None or not address:
        return make_map(mp, mp.by_name[name])
    # An empty map's first pair may be where another buffer begins; the count before it isn't.
    data, pos, owner = owner.place(address - _COUNT_WIDTH)
    return make_map(mp, mp.by_name[name], data, pos + _COUNT_WIDTH, count, owner)
