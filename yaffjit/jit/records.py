"""Records in jitted code: length, rows, slices, iteration; rows are views.

Row r of records is found through a table of chunks of 65,536 rows: the address of a chunk's data, and that
of its int64 offsets.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.core.errors import NumbaTypeError
from numba.core.imputils import RefType, iternext_impl, lower_builtin
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global, signature
from numba.cpython.slicing import fix_slice
from numba.extending import intrinsic

from yaffjit.errors import RowError
from yaffjit.jit.emit.outline import I32, I64, POINTER, Body, call_outlined
from yaffjit.jit.integers import UInt64ExactType
from yaffjit.jit.lengths import has_length
from yaffjit.jit.refusals import refused_call, shown
from yaffjit.jit.truth import has_truth
from yaffjit.jit.types import RecordsIteratorType, RecordsType, message_type

CHUNK_SHIFT = 16
CACHE_LINE = 64
PREFETCHED_LINES = (
    2  # the header and slots of a root message; what follows comes by the processor's own choice
)


def _buffer_pointer(builder: ir.IRBuilder, table: ir.Value, row: ir.Value) -> ir.Value:
    """Where the bytes of a row begin; it counts from the first chunk."""

    def emit(body: Body) -> None:
        b = body.builder
        table, row = body.args
        chunk = body.at(table, b.shl(b.lshr(row, I64(CHUNK_SHIFT)), I64(4)))
        data = b.inttoptr(body.load(chunk, 0, I64), POINTER)
        offsets = b.inttoptr(body.load(chunk, 8, I64), POINTER)
        within = b.and_(row, I64((1 << CHUNK_SHIFT) - 1))
        b.ret(body.at(data, body.load(offsets, b.shl(within, I64(3)), I64)))

    return call_outlined(builder, "buffer", CHUNK_SHIFT, POINTER, [table, row], emit, frozen=True)


def _row_pointer(builder: ir.IRBuilder, table: ir.Value, row: ir.Value) -> ir.Value:
    """The message at a row, which counts from the first chunk."""

    def emit(body: Body) -> None:
        buffer = body.args[0]
        body.builder.ret(body.at(buffer, body.builder.zext(body.load(buffer, 0, I32), I64)))

    buffer = _buffer_pointer(builder, table, row)
    return call_outlined(builder, "root", "", POINTER, [buffer], emit, frozen=True)


def _view(context: Any, builder: ir.IRBuilder, records: Any, mp: Any, row: ir.Value) -> ir.Value:
    """The view of a row that counts from the records' own first."""
    made = cgutils.create_struct_proxy(message_type(mp))(context, builder)
    made.pointer = _row_pointer(builder, records.table, builder.add(records.start, row))
    made.owner = records.owner
    return made._getvalue()


@intrinsic
def message_at(typingctx, records, row):  # type: ignore[no-untyped-def]
    """``message_at(records, row)``: the view at a row.

    Requires: ``0 <= row < len(records)``.
    """
    if not isinstance(records, RecordsType):
        raise NumbaTypeError(f"message_at takes records, not {records}")

    def codegen(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        native = cgutils.create_struct_proxy(records)(context, builder, args[0])
        return _view(context, builder, native, records.mp, args[1])

    return message_type(records.mp)(records, types.int64), codegen


@intrinsic
def prefetch_at(typingctx, records, row):  # type: ignore[no-untyped-def]
    """``prefetch_at(records, row)``: have the beginning of a row's bytes come into the cache.

    Requires: ``0 <= row < len(records)``.
    """
    if not isinstance(records, RecordsType):
        raise NumbaTypeError(f"prefetch_at takes records, not {records}")

    def codegen(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        native = cgutils.create_struct_proxy(records)(context, builder, args[0])
        buffer = _buffer_pointer(builder, native.table, builder.add(native.start, args[1]))
        kind = ir.FunctionType(ir.VoidType(), [POINTER, I32, I32, I32])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [POINTER], kind)
        for line in range(PREFETCHED_LINES):
            at = builder.gep(buffer, [I64(CACHE_LINE * line)])
            builder.call(prefetch, [at, I32(0), I32(3), I32(1)])  # for reading, to be kept, data
        return context.get_dummy_value()

    return types.none(records, types.int64), codegen


@infer_global(len)
class _Len(AbstractTemplate):
    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
        if len(args) == 1 and isinstance(args[0], RecordsType):
            return signature(types.intp, args[0])
        return None


@lower_builtin(len, RecordsType)
def _len(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    return cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0]).count


@has_truth(RecordsType)
def _is_true(context: Any, builder: ir.IRBuilder, records: types.Type, value: ir.Value) -> ir.Value:
    count = cgutils.create_struct_proxy(records)(context, builder, value).count
    return builder.icmp_signed("!=", count, I64(0))


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):
    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
        records, index = args
        if not isinstance(records, RecordsType):
            return None
        if types.none in args:  # perhaps an optional row number, when more is known
            return None
        if isinstance(getattr(index, "type", index), types.Integer):  # also an optional one
            return signature(message_type(records.mp), records, types.intp)
        if isinstance(index, types.SliceType):
            if index.has_step:
                return refused_call(args, "slices of records have no step in jitted code")
            return signature(records, records, types.slice2_type)
        return refused_call(args, f"records are indexed by row numbers and slices, not by {shown(index)}")


@njit
def _raise_row_error(row, count):  # type: ignore[no-untyped-def]
    raise RowError(row, count)


def call_jitted(
    context: Any,
    builder: ir.IRBuilder,
    dispatcher: Any,
    arg_types: tuple[types.Type, ...],
    args: list[ir.Value],
) -> ir.Value:
    """Call a jitted function from lowered code, through its dispatcher.

    numba's ``compile_internal`` won't do: an exception with values that is raised through it can't be built,
    nor then any other of the same types in the process.
    """
    dispatcher_type = types.Dispatcher(dispatcher)
    sig = dispatcher_type.get_call_type(context.typing_context, arg_types, {})
    function = context.get_function(dispatcher_type, sig)
    result = function(builder, args)
    context.add_linking_libs(getattr(function, "libs", ()))
    return result


@lower_builtin(operator.getitem, RecordsType, types.Integer)
def _get_row(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    native = cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0])
    index, count = args[1], native.count
    row = builder.select(builder.icmp_signed("<", index, I64(0)), builder.add(index, count), index)
    with cgutils.if_unlikely(builder, builder.icmp_unsigned(">=", row, count)):
        call_jitted(context, builder, _raise_row_error, (types.int64, types.int64), [index, count])
    return _view(context, builder, native, sig.args[0].mp, row)


@lower_builtin(operator.getitem, RecordsType, UInt64ExactType)
def _get_unsigned_row(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    native = cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0])
    index, count = args[1], native.count
    with cgutils.if_unlikely(builder, builder.icmp_unsigned(">=", index, count)):
        call_jitted(context, builder, _raise_row_error, (types.uint64, types.int64), [index, count])
    return _view(context, builder, native, sig.args[0].mp, index)


@lower_builtin(operator.getitem, RecordsType, types.SliceType)
def _get_slice(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    native = cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0])
    bounds = context.make_helper(builder, sig.args[1], value=args[1])
    fix_slice(builder, bounds, native.count)
    made = cgutils.create_struct_proxy(sig.return_type)(context, builder, args[0])
    made.start = builder.add(native.start, bounds.start)
    length = builder.sub(bounds.stop, bounds.start)
    made.count = builder.select(builder.icmp_signed(">", length, I64(0)), length, I64(0))
    return made._getvalue()


@lower_builtin("getiter", RecordsType)
def _iterate(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    records = cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0])
    made = cgutils.create_struct_proxy(sig.return_type)(context, builder)
    made.table = records.table
    made.start = records.start
    made.count = records.count
    made.owner = records.owner
    made.row = cgutils.alloca_once_value(builder, I64(0))
    return made._getvalue()


has_length(RecordsIteratorType)


@lower_builtin("iternext", RecordsIteratorType)
@iternext_impl(RefType.BORROWED)
def _next_row(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value], result: Any) -> None:
    native = cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0])
    row = builder.load(native.row)
    inside = builder.icmp_signed("<", row, native.count)
    result.set_valid(inside)
    with builder.if_then(inside):
        result.yield_(_view(context, builder, native, sig.args[0].mp, row))
        builder.store(builder.add(row, I64(1)), native.row)
