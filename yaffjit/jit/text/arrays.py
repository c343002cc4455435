"""Bytes as an array, without a copy: ``np.frombuffer(x, dtype)``; the array keeps the bytes alive."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import lower_builtin
from numba.core.typing.npydecl import parse_dtype
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global, signature
from numba.np.arrayobj import populate_array

from yaffjit.jit.emit.outline import I64
from yaffjit.jit.text.decode import make_bytes
from yaffjit.jit.text.rules import raise_if
from yaffjit.jit.text.type import BytesType, numba_bytes

_SIZE_TEXT = "buffer size must be a multiple of element size"


def _frombuffer(buffer: Any, dtype: Any = np.float64) -> None: ...


@infer_global(np.frombuffer)
class _FromBuffer(AbstractTemplate):
    prefer_literal = True
    metadata: ClassVar = {"target": "cpu"}

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
        given = dict(zip(("buffer", "dtype"), args, strict=False), **kws)
        buffer = given.get("buffer")
        if len(args) > 2 or not isinstance(buffer, BytesType) or set(given) - {"buffer", "dtype"}:
            return None
        dtype = given.get("dtype", types.NumberClass(types.float64))
        element = parse_dtype(dtype)
        if not isinstance(element, (types.Integer, types.Float)):
            return None
        aligned = element.bitwidth == 8
        array = types.Array(element, 1, "C", readonly=True, aligned=aligned)
        return signature(array, buffer, dtype).replace(pysig=inspect.signature(_frombuffer))


@lower_builtin(np.frombuffer, BytesType, types.Any)
def _lower(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    typ = sig.return_type
    width = typ.dtype.bitwidth // 8
    source = cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0])
    rest = builder.urem(source.nbytes, I64(width))
    raise_if(context, builder, builder.icmp_unsigned("!=", rest, I64(0)), ValueError, _SIZE_TEXT)
    data = cgutils.alloca_once_value(builder, source.pointer)
    record = cgutils.alloca_once_value(builder, source.owner)
    with builder.if_else(cgutils.is_null(builder, source.owner), likely=False) as (unowned, owned):
        with unowned:  # a default, which is part of the code
            copy = context.make_array(numba_bytes)(context, builder, make_bytes(context, builder, args[0]))
            builder.store(copy.data, data)
            builder.store(copy.meminfo, record)
        with owned:
            context.nrt.incref(builder, types.MemInfoPointer(types.voidptr), source.owner)
    array = context.make_array(typ)(context, builder)
    element = context.get_data_type(typ.dtype).as_pointer()
    populate_array(
        array,
        data=builder.bitcast(builder.load(data), element),
        shape=[builder.udiv(source.nbytes, I64(width))],
        strides=[I64(width)],
        itemsize=I64(width),
        meminfo=builder.load(record),
    )
    return array._getvalue()
