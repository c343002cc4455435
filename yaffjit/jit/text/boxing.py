"""Text and bytes out of jitted code: as str and bytes.

Making a str fails on invalid UTF-8. numba's boxing of tuples doesn't expect that, so tuples with borrowed
values in them are boxed here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import boxing as _boxing  # noqa: F401  (registers numba's boxers of tuples, which ours replace)
from numba.core import cgutils, types
from numba.core.pythonapi import _boxers
from numba.extending import box

from yaffjit.jit.emit.outline import I64, NULL, POINTER
from yaffjit.jit.text.type import BytesType, TextType
from yaffjit.jit.types import BorrowedType


@box(TextType)
def _box_text(typ: TextType, value: ir.Value, c: Any) -> ir.Value:
    native = cgutils.create_struct_proxy(typ)(c.context, c.builder, value)
    signature = ir.FunctionType(c.pyapi.pyobj, [POINTER, I64, POINTER])
    decode = cgutils.get_or_insert_function(c.builder.module, signature, "PyUnicode_DecodeUTF8")
    made = c.builder.call(decode, [native.pointer, native.nbytes, NULL])
    c.context.nrt.decref(c.builder, typ, value)
    return made


@box(BytesType)
def _box_bytes(typ: BytesType, value: ir.Value, c: Any) -> ir.Value:
    native = cgutils.create_struct_proxy(typ)(c.context, c.builder, value)
    made = c.pyapi.bytes_from_string_and_size(native.pointer, native.nbytes)
    c.context.nrt.decref(c.builder, typ, value)
    return made


def _has_borrowed(typ: types.Type) -> bool:
    return isinstance(typ, BorrowedType) or (
        isinstance(typ, types.BaseTuple) and any(map(_has_borrowed, typ))
    )


def _may_fail(numbas: Callable[[Any, ir.Value, Any], ir.Value]) -> Callable[[Any, ir.Value, Any], ir.Value]:
    def box_tuple(typ: Any, value: ir.Value, c: Any) -> ir.Value:
        """numba's tuple; null if an item can't be made into an object. All items' references are taken."""
        if not _has_borrowed(typ):
            return numbas(typ, value, c)
        b, api = c.builder, c.pyapi
        result = cgutils.alloca_once_value(b, api.tuple_new(typ.count))
        for i, part in enumerate(typ):
            native = b.extract_value(value, i)
            with b.if_else(cgutils.is_not_null(b, b.load(result))) as (whole, broken):
                with whole:
                    item = c.box(part, native)
                    with b.if_else(cgutils.is_null(b, item), likely=False) as (failed, made):
                        with failed:
                            api.decref(b.load(result))
                            b.store(api.get_null_object(), result)
                        with made:
                            api.tuple_setitem(b.load(result), i, item)
                with broken:
                    c.context.nrt.decref(b, part, native)
        if isinstance(typ, types.BaseNamedTuple):
            with b.if_then(cgutils.is_not_null(b, b.load(result))):
                cls = api.unserialize(api.serialize_object(typ.instance_class))
                plain = b.load(result)
                b.store(api.call(cls, plain), result)
                api.decref(cls)
                api.decref(plain)
        return b.load(result)

    return box_tuple


# numba's decorator for boxers refuses a second one.
for _cls in (types.Tuple, types.UniTuple, types.NamedTuple, types.NamedUniTuple):
    _boxers.functions[_cls] = _may_fail(_boxers.functions[_cls])
