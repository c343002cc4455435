"""Map fields of protobuf views out of jitted code: as a view's containers."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.extending import box

from yaffjit.jit.emit.outline import I64
from yaffjit.jit.wire.maps.type import WireMapPartType, WireMapType
from yaffjit.jit.wire.repeated.boxing import box_container, box_field


@box(WireMapType)
def _box_map(typ: WireMapType, value: ir.Value, c: Any) -> ir.Value:
    native = cgutils.create_struct_proxy(typ)(c.context, c.builder, value)
    return box_container(c, typ, native, box_field, I64(typ.f.number))


@box(WireMapPartType)
def _box_part(typ: WireMapPartType, value: ir.Value, c: Any) -> ir.Value:
    whole = _box_map(typ, value, c)
    result = cgutils.alloca_once_value(c.builder, whole)
    with c.builder.if_then(cgutils.is_not_null(c.builder, whole)):
        c.builder.store(c.pyapi.call_method(whole, typ.part), result)
        c.pyapi.decref(whole)
    return c.builder.load(result)
