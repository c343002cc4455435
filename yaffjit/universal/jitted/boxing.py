"""Values of universal documents into jitted code and back: containers as views, scalars as themselves."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.extending import NativeValue, box, unbox

from yaffjit.jit.boxing import constant, get_source, integer, owner_of, read_view_owner
from yaffjit.jit.emit.outline import I64
from yaffjit.universal.jitted.type import UniversalType


@unbox(UniversalType)
def _unbox(typ: UniversalType, obj: ir.Value, c: Any) -> NativeValue:
    b = c.builder
    native = cgutils.create_struct_proxy(typ)(c.context, b)
    address, native.owner = read_view_owner(c, obj)
    native.data = b.ptrtoint(address, I64)
    native.nbytes = integer(c, obj, "_nbytes")
    native.word = integer(c, obj, "_word")
    native.flags = integer(c, obj, "_flags")
    c.context.nrt.incref(b, typ, native._getvalue())
    return NativeValue(native._getvalue(), is_error=cgutils.is_not_null(b, c.pyapi.err_occurred()))


@box(UniversalType)
def _box(typ: UniversalType, value: ir.Value, c: Any) -> ir.Value:
    b, api = c.builder, c.pyapi
    native = cgutils.create_struct_proxy(typ)(c.context, b, value)
    source = get_source(c, typ, native.owner)
    function = constant(c, box_value)
    numbers = [api.long_from_longlong(n) for n in (native.data, native.nbytes, native.word, native.flags)]
    result = api.call_function_objargs(function, [*numbers, source])
    for obj in (function, *numbers, source):
        api.decref(obj)
    return result


def box_value(address: int, nbytes: int, word: int, flags: int, source: Any) -> Any:
    """The Python value of one that comes out of jitted code.

    Args:
        address, nbytes: of the document.
        word, flags: of the value.
        source: of the bytes, as `owner_of` takes it.
    """
    from yaffjit.universal.views import Source, value_at

    owner = owner_of(source)
    assert owner is not None
    data, begin, _ = owner.place(address)
    if begin == 0 and nbytes == len(data):
        return value_at(Source(data, owner), word, flags)
    return value_at(Source(memoryview(data)[begin : begin + nbytes]), word, flags)
