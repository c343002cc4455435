"""Records in jitted code: length, rows, slices, iteration; rows are views.

A row is found through a table, in the form that the records' type tells: of chunks (`yaffjit.rows.chunks`) or
of the address of each message (`yaffjit.rows.places`).
"""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.core.callconv import RETCODE_USEREXC
from numba.core.errors import NumbaTypeError
from numba.core.imputils import RefType, iternext_impl, lower_builtin
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global, signature
from numba.cpython.slicing import fix_slice
from numba.extending import intrinsic

from yaffjit.errors import RowError
from yaffjit.jit.emit import wire_rows
from yaffjit.jit.emit.outline import I32, I64, NULL, POINTER, Body, call_outlined
from yaffjit.jit.emit.wire_rows import PLACE_SHIFT
from yaffjit.jit.integers import UInt64ExactType
from yaffjit.jit.lengths import has_length
from yaffjit.jit.refusals import refused_call, shown
from yaffjit.jit.truth import has_truth
from yaffjit.jit.types import RecordsIteratorType, RecordsType
from yaffjit.plan.pages import CHUNK_NBYTES, END_AT, OFFSETS_AT, PAGE_SHIFT, PAGES_AT

CACHE_LINE = 64
# The header and slots of a root message; what follows comes by the processor's own choice.
PREFETCHED_LINES = 2
# Of messages anywhere in memory none comes by itself; most are within these lines.
SCATTERED_LINES = 4
# Rows between the one that a loop over scattered records is at and the one that is fetched meanwhile.
ROWS_AHEAD = 24


def _chunk(builder: ir.IRBuilder, table: ir.Value, row: ir.Value) -> ir.Value:
    """The words of the chunk that holds a row, which counts from the first chunk."""

    def emit(body: Body) -> None:
        b = body.builder
        table, row = body.args
        page_at = b.add(b.shl(b.lshr(row, I64(PAGE_SHIFT)), I64(3)), I64(PAGES_AT))
        first = b.inttoptr(body.load(table, page_at, I64), POINTER)
        before = b.block
        search, found = b.append_basic_block(), b.append_basic_block()
        b.branch(search)
        b.position_at_end(search)
        chunk = b.phi(POINTER)
        chunk.add_incoming(first, before)
        chunk.add_incoming(body.at(chunk, CHUNK_NBYTES), search)
        b.cbranch(b.icmp_signed("<", row, body.load(chunk, END_AT, I64)), found, search)
        b.position_at_end(found)
        b.ret(chunk)

    return call_outlined(builder, "chunk", CHUNK_NBYTES, POINTER, [table, row], emit, frozen=True)


def _buffer_in_chunk(builder: ir.IRBuilder, data: ir.Value, offsets: ir.Value, row: ir.Value) -> ir.Value:
    """Where the bytes of a row begin, by the addresses that a chunk has; all are int64."""

    def emit(body: Body) -> None:
        b = body.builder
        data, offsets, row = body.args
        # A chunk's offsets count from a row that may lie before them, so they aren't pointed into.
        offset_at = b.inttoptr(b.add(offsets, b.shl(row, I64(3))), POINTER)
        b.ret(body.at(b.inttoptr(data, POINTER), body.load(offset_at, 0, I64)))

    return call_outlined(builder, "in_chunk", "", POINTER, [data, offsets, row], emit, frozen=True)


def _only_chunk(builder: ir.IRBuilder, table: ir.Value) -> list[ir.Value]:
    """Addresses of the data and of the offsets of a chunk that is the only one, else zeros.

    Loops keep them in registers if they are read before anything can end an iteration.
    """

    def emit(at: int, body: Body) -> None:
        body.builder.ret(body.load(body.args[0], at, I64))

    return [
        call_outlined(builder, "only_chunk", at, I64, [table], partial(emit, at), frozen=True)
        for at in (0, OFFSETS_AT)
    ]


def _buffer_pointer(builder: ir.IRBuilder, table: ir.Value, row: ir.Value, only: list[ir.Value]) -> ir.Value:
    """Where the bytes of a row begin, which counts from the first chunk."""

    def emit(body: Body) -> None:
        b = body.builder
        table, row, data, offsets = body.args
        with b.if_then(b.icmp_unsigned("!=", data, I64(0))):
            b.ret(_buffer_in_chunk(b, data, offsets, row))
        chunk = _chunk(b, table, row)
        data, offsets = body.load(chunk, 0, I64), body.load(chunk, OFFSETS_AT, I64)
        b.ret(_buffer_in_chunk(b, data, offsets, row))

    args = [table, row, *only]
    return call_outlined(builder, "buffer", CHUNK_NBYTES, POINTER, args, emit, frozen=True)


def _place_pointer(builder: ir.IRBuilder, table: ir.Value, row: ir.Value) -> ir.Value:
    """Where the bytes of a scattered row begin, which counts from the table's first; null of a null row."""

    def emit(body: Body) -> None:
        b = body.builder
        table, row = body.args
        b.ret(b.inttoptr(body.load(table, b.shl(row, I64(PLACE_SHIFT)), I64), POINTER))

    return call_outlined(builder, "place", PLACE_SHIFT, POINTER, [table, row], emit, frozen=True)


def _root(builder: ir.IRBuilder, buffer: ir.Value, scattered: bool) -> ir.Value:
    """The message in a buffer; null for a null row."""

    def emit(body: Body) -> None:
        buffer = body.args[0]
        if scattered:
            body.return_unless(body.builder.icmp_unsigned("!=", buffer, NULL), NULL)
        body.builder.ret(body.at(buffer, body.builder.zext(body.load(buffer, 0, I32), I64)))

    return call_outlined(builder, "root", scattered, POINTER, [buffer], emit, frozen=True)


def _view(
    context: Any,
    builder: ir.IRBuilder,
    typ: Any,
    buffer: ir.Value,
    nbytes: ir.Value | None,
    owner: ir.Value,
) -> ir.Value:
    """The view of the message in a buffer of records, or of an iterator over them.

    ``nbytes``: of a protobuf message; None of others, which begin somewhere within their buffer.
    """
    made = cgutils.create_struct_proxy(typ.row_type)(context, builder)
    if nbytes is None:
        made.pointer = _root(builder, buffer, typ.scattered)
    else:
        made.pointer, made.nbytes = buffer, nbytes
    made.owner = owner
    return made._getvalue()


class _Rows:
    """Rows of native records by number from their own first, each within them."""

    def __init__(self, builder: ir.IRBuilder, typ: RecordsType, records: Any) -> None:
        self._builder = builder
        self._typ = typ
        self._records = records
        self._only = [] if typ.scattered else _only_chunk(builder, records.table)

    def buffer(self, row: ir.Value) -> ir.Value:
        """Where the bytes of a row begin."""
        table, place = self._records.table, self._builder.add(self._records.start, row)
        if self._typ.scattered:
            return _place_pointer(self._builder, table, place)
        return _buffer_pointer(self._builder, table, place, self._only)

    def view(self, context: Any, row: ir.Value) -> ir.Value:
        """The view of a row."""
        owner = self._records.owner
        if self._typ.representation != "protobuf":
            return _view(context, self._builder, self._typ, self.buffer(row), None, owner)
        table, place = self._records.table, self._builder.add(self._records.start, row)
        if self._typ.scattered:
            pointer, nbytes = wire_rows.scattered(self._builder, table, place)
        else:
            pointer, nbytes = wire_rows.regular(self._builder, _chunk, table, place, self._only)
        return _view(context, self._builder, self._typ, pointer, nbytes, owner)


def _prefetch(builder: ir.IRBuilder, buffer: ir.Value, lines: int) -> None:
    kind = ir.FunctionType(ir.VoidType(), [POINTER, I32, I32, I32])
    prefetch = builder.module.declare_intrinsic("llvm.prefetch", [POINTER], kind)
    for line in range(lines):
        at = builder.gep(buffer, [I64(CACHE_LINE * line)])
        builder.call(prefetch, [at, I32(0), I32(3), I32(1)])  # for reading, to be kept, data


@intrinsic
def message_at(typingctx, records, row):  # type: ignore[no-untyped-def]
    """``message_at(records, row)``: the view at a row.

    Requires: ``0 <= row < len(records)``.
    """
    if not isinstance(records, RecordsType):
        raise NumbaTypeError(f"message_at takes records, not {records}")

    def codegen(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        native = cgutils.create_struct_proxy(records)(context, builder, args[0])
        return _Rows(builder, records, native).view(context, args[1])

    return records.row_type(records, types.int64), codegen


@intrinsic
def prefetch_at(typingctx, records, row):  # type: ignore[no-untyped-def]
    """``prefetch_at(records, row)``: have the beginning of a row's bytes come into the cache.

    Requires: ``0 <= row < len(records)``.
    """
    if not isinstance(records, RecordsType):
        raise NumbaTypeError(f"prefetch_at takes records, not {records}")

    def codegen(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        native = cgutils.create_struct_proxy(records)(context, builder, args[0])
        buffer = _Rows(builder, records, native).buffer(args[1])
        _prefetch(builder, buffer, SCATTERED_LINES if records.scattered else PREFETCHED_LINES)
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
            return signature(records.row_type, records, types.intp)
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


def raise_jitted(
    context: Any,
    builder: ir.IRBuilder,
    dispatcher: Any,
    arg_types: tuple[types.Type, ...],
    args: list[ir.Value],
) -> None:
    """Raise by a jitted function that does nothing else; the block ends with it.

    Within a ``try`` numba goes on after a call that raised, to look for that before the next statement. What
    was lowered for this one would meanwhile read what the error says isn't there.
    """
    call_jitted(context, builder, dispatcher, arg_types, args)
    handler = getattr(builder, "_in_try_block", None)
    if handler is not None:
        builder.branch(handler["target"])
    else:  # as numba's own rules do: out of the function
        context.call_conv._return_errcode_raw(builder, RETCODE_USEREXC)


@lower_builtin(operator.getitem, RecordsType, types.Integer)
def _get_row(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    native = cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0])
    index, count = args[1], native.count
    rows = _Rows(builder, sig.args[0], native)
    before = builder.block
    with cgutils.if_unlikely(builder, builder.icmp_unsigned(">=", index, count)):
        from_end = builder.add(index, count)
        not_there = builder.or_(
            builder.icmp_signed(">=", index, I64(0)), builder.icmp_signed("<", from_end, I64(0))
        )
        with cgutils.if_unlikely(builder, not_there):
            raise_jitted(context, builder, _raise_row_error, (types.int64, types.int64), [index, count])
        outside = builder.block
    row = builder.phi(I64)
    row.add_incoming(index, before)
    row.add_incoming(from_end, outside)
    return rows.view(context, row)


@lower_builtin(operator.getitem, RecordsType, UInt64ExactType)
def _get_unsigned_row(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    native = cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0])
    rows = _Rows(builder, sig.args[0], native)
    index, count = args[1], native.count
    with cgutils.if_unlikely(builder, builder.icmp_unsigned(">=", index, count)):
        raise_jitted(context, builder, _raise_row_error, (types.uint64, types.int64), [index, count])
    return rows.view(context, index)


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
    # The first row's chunk is looked up as that of a row behind the end of another one.
    made.data = cgutils.alloca_once_value(builder, I64(0))
    made.offsets = cgutils.alloca_once_value(builder, I64(0))
    made.end = cgutils.alloca_once_value(builder, I64(-1))
    return made._getvalue()


has_length(RecordsIteratorType)


@lower_builtin("iternext", RecordsIteratorType)
@iternext_impl(RefType.BORROWED)
def _next_row(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value], result: Any) -> None:
    typ = sig.args[0]
    native = cgutils.create_struct_proxy(typ)(context, builder, args[0])
    row = builder.load(native.row)
    inside = builder.icmp_signed("<", row, native.count)
    result.set_valid(inside)
    with builder.if_then(inside):
        buffer = (_next_place if typ.scattered else _next_in_chunk)(builder, native, row)
        nbytes = None
        if typ.representation == "protobuf":
            place = builder.add(native.start, row)
            if typ.scattered:
                _, nbytes = wire_rows.scattered(builder, native.table, place)
            else:
                nbytes = wire_rows.nbytes_in_chunk(builder, builder.load(native.offsets), place)
        result.yield_(_view(context, builder, typ, buffer, nbytes, native.owner))
        builder.store(builder.add(row, I64(1)), native.row)


def _next_in_chunk(builder: ir.IRBuilder, native: Any, row: ir.Value) -> ir.Value:
    """The buffer of an iterator's row; the chunk is looked up when the last one has ended."""
    place = builder.add(native.start, row)
    with cgutils.if_unlikely(builder, builder.icmp_signed(">=", place, builder.load(native.end))):
        chunk = _chunk(builder, native.table, place)
        for at, variable in ((0, native.data), (OFFSETS_AT, native.offsets), (END_AT, native.end)):
            word = builder.load(builder.bitcast(builder.gep(chunk, [I64(at)]), I64.as_pointer()))
            builder.store(word, variable)
    return _buffer_in_chunk(builder, builder.load(native.data), builder.load(native.offsets), place)


def _next_place(builder: ir.IRBuilder, native: Any, row: ir.Value) -> ir.Value:
    """The buffer of an iterator's row; one that comes later is fetched meanwhile."""
    last = builder.sub(native.count, I64(1))
    ahead = builder.add(row, I64(ROWS_AHEAD))
    ahead = builder.select(builder.icmp_signed("<", ahead, last), ahead, last)
    _prefetch(
        builder, _place_pointer(builder, native.table, builder.add(native.start, ahead)), SCATTERED_LINES
    )
    return _place_pointer(builder, native.table, builder.add(native.start, row))
