"""A text as one of numba's strings, and the error where its bytes aren't UTF-8."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.core.imputils import lower_builtin, lower_cast
from numba.core.typing.templates import Signature, signature

from yaffjit.jit.emit.outline import I8, I32, I64
from yaffjit.jit.records import raise_jitted
from yaffjit.jit.text import utf8
from yaffjit.jit.text.rules import are_frozen, typed
from yaffjit.jit.text.type import (
    BytesType,
    TextLikeType,
    TextType,
    bytes_type,
    make_text,
    numba_bytes,
    text_type,
)

_START, _CONTINUATION, _END = utf8.REASONS


@njit
def _raise_decode_error(raw, found):  # type: ignore[no-untyped-def]
    """What Python raises; found is a fault that `utf8.points` gave."""
    fault = ~found
    start = fault >> 4
    end = start + ((fault >> 2) & 3)
    if fault & 3 == 0:
        raise UnicodeDecodeError("utf-8", raw, start, end, _START)
    if fault & 3 == 1:
        raise UnicodeDecodeError("utf-8", raw, start, end, _CONTINUATION)
    raise UnicodeDecodeError("utf-8", raw, start, end, _END)


def count_points(context: Any, builder: ir.IRBuilder, text: Any, frozen: bool = True) -> ir.Value:
    """The number of characters of a text (a proxy of its members); raises UnicodeDecodeError."""
    count = utf8.points(builder, text.pointer, text.nbytes, frozen)
    with cgutils.if_unlikely(builder, builder.icmp_signed("<", count, I64(0))):
        raw = make_text(context, builder, bytes_type, text.pointer, text.nbytes, text.owner)
        raise_jitted(context, builder, _raise_decode_error, (bytes_type, types.int64), [raw, count])
    return count


def _allocate(context: Any, builder: ir.IRBuilder, size: ir.Value) -> tuple[ir.Value, ir.Value]:
    """A counted piece of memory and its bytes."""
    record = context.nrt.meminfo_alloc(builder, size)
    return record, context.nrt.meminfo_data(builder, record)


def make_string(context: Any, builder: ir.IRBuilder, value: ir.Value, frozen: bool = True) -> ir.Value:
    """A new numba string of a native text; raises UnicodeDecodeError."""
    text = cgutils.create_struct_proxy(types.unicode_type)(context, builder)
    source = cgutils.create_struct_proxy(text_type)(context, builder, value)
    count = count_points(context, builder, source, frozen)
    width = utf8.kind(builder, source.pointer, source.nbytes, count, frozen)
    size = builder.mul(count, width)
    # A zero character ends it.
    text.meminfo, text.data = _allocate(context, builder, builder.add(size, I64(4)))
    ascii = builder.icmp_signed("==", count, source.nbytes)
    with builder.if_else(ascii, likely=True) as (narrow, wide):
        with narrow:
            cgutils.raw_memcpy(builder, text.data, source.pointer, count, 1)
        with wide:
            utf8.decode(builder, source.pointer, source.nbytes, text.data, width)
    end = builder.bitcast(builder.gep(text.data, [size]), I32.as_pointer())
    builder.store(I32(0), end, align=1)
    text.length = count
    text.kind = builder.trunc(width, I32)  # CPython's number of a kind is the width of its characters
    text.is_ascii = builder.zext(ascii, I32)
    text.hash = text.hash.type(-1)
    text.parent = cgutils.get_null_value(text.parent.type)
    return text._getvalue()


def make_bytes(context: Any, builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """New numba bytes of a native bytes value."""
    source = cgutils.create_struct_proxy(bytes_type)(context, builder, value)
    made = context.make_array(numba_bytes)(context, builder)
    made.meminfo, data = _allocate(context, builder, builder.add(source.nbytes, I64(1)))
    cgutils.raw_memcpy(builder, data, source.pointer, source.nbytes, 1)
    builder.store(I8(0), builder.gep(data, [source.nbytes]))
    made.data = data
    made.nitems = source.nbytes
    made.itemsize = I64(1)
    made.shape = cgutils.pack_array(builder, [source.nbytes])
    made.strides = cgutils.pack_array(builder, [I64(1)])
    made.parent = cgutils.get_null_value(made.parent.type)
    return made._getvalue()


# Such a cast makes a reference that nobody counts, so `keep` sees to it that numba hardly casts by itself.
@lower_cast(TextType, types.UnicodeType)
def _to_string(
    context: Any, builder: ir.IRBuilder, source: types.Type, target: types.Type, value: ir.Value
) -> ir.Value:
    return make_string(context, builder, value, are_frozen([source]))


@lower_cast(BytesType, types.Bytes)
def _to_bytes(
    context: Any, builder: ir.IRBuilder, source: types.Type, target: types.Type, value: ir.Value
) -> ir.Value:
    return make_bytes(context, builder, value)


def _constructor(function: type, cls: type[TextLikeType], result: types.Type, make: Any) -> None:
    def rule(context: Any, args: tuple[types.Type, ...]) -> Signature | None:
        return signature(result, args[0]) if len(args) == 1 and isinstance(args[0], cls) else None

    typed(function, rule)
    lower_builtin(function, cls)(make)


_constructor(
    str,
    TextType,
    types.unicode_type,
    lambda context, builder, sig, args: make_string(context, builder, args[0], are_frozen(sig.args)),
)
_constructor(
    bytes, BytesType, numba_bytes, lambda context, builder, sig, args: make_bytes(context, builder, args[0])
)
