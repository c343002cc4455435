"""Maps in protobuf bytes: how pairs are looked up, counted and listed, and what they give."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import RefType, impl_ret_new_ref, iternext_impl, lower_builtin
from numba.core.typing.templates import Signature

from yaffjit.jit.emit.outline import I64, NULL, POINTER
from yaffjit.jit.emit.wire_entries import ROW_WORDS, find, list_pairs
from yaffjit.jit.emit.wire_runs import Place
from yaffjit.jit.maps.access import MapAccess, access_of, accesses
from yaffjit.jit.maps.search import Key
from yaffjit.jit.records import call_jitted
from yaffjit.jit.types import WireViewType, form, like, message_type
from yaffjit.jit.wire.faults import raise_if_broken
from yaffjit.jit.wire.maps.type import WireMapIteratorType, WireMapPartType, WireMapType
from yaffjit.jit.wire.read import read_message, readers, slots_of
from yaffjit.kernels.wire_pairs import keep_last
from yaffjit.plan.model import FieldPlan

_TABLE = types.MemInfoPointer(types.voidptr)
_ROW_NBYTES = 8 * ROW_WORDS
# Of a row, in words.
_POINTER, _NBYTES = 2, 3


def _read_map(context: Any, builder: ir.IRBuilder, view: WireViewType, native: Any, f: FieldPlan) -> ir.Value:
    made = cgutils.create_struct_proxy(view.field_type(f))(context, builder)
    made.pointer, made.nbytes, made.owner = native.pointer, native.nbytes, native.owner
    made.first, made.occurrences = slots_of(context, builder, view, native, f, "first", "count")
    return made._getvalue()


def _place(builder: ir.IRBuilder, typ: Any, native: Any) -> Place:
    end = builder.gep(native.pointer, [native.nbytes])
    return Place(native.first, native.occurrences, I64(0), NULL, I64(0), end, I64(typ.f.number))


class WireMapAccess(MapAccess):
    """The pairs of a map of a protobuf view: a pair is a struct that begins with its pointer and bytes."""

    def find(self, context: Any, builder: ir.IRBuilder, typ: Any, native: Any, key: Key, frozen: bool) -> Any:
        place = _place(builder, typ, native)
        found = find(builder, typ.entry, place, key, frozen and not typ.owned)
        raise_if_broken(context, builder, typ.entry, *(builder.extract_value(found, i) for i in range(3)))
        return found

    def is_found(self, builder: ir.IRBuilder, pair: Any) -> ir.Value:
        return builder.icmp_unsigned("!=", builder.extract_value(pair, 0), NULL)

    def key(self, context: Any, builder: ir.IRBuilder, typ: Any, pair: Any, owner: ir.Value) -> ir.Value:
        view, native = self._view(context, builder, typ, pair, owner)
        return readers[form(typ.key_field)](context, builder, view, native, typ.key_field)

    def value(self, context: Any, builder: ir.IRBuilder, typ: Any, pair: Any, owner: ir.Value) -> ir.Value:
        view, native = self._view(context, builder, typ, pair, owner)
        f = typ.value_field
        read = read_message if form(f) == "message" else readers[form(f)]
        return read(context, builder, view, native, f)

    def _view(
        self, context: Any, builder: ir.IRBuilder, typ: Any, pair: Any, owner: ir.Value
    ) -> tuple[Any, Any]:
        view = like(typ, message_type(typ.entry, "protobuf"))
        native = cgutils.create_struct_proxy(view)(context, builder)
        native.pointer, native.nbytes = (builder.extract_value(pair, i) for i in range(2))
        native.owner = owner
        return view, native

    def gives_reference(self, typ: Any) -> bool:
        return typ.owned and form(typ.value_field) == "message"

    def count(self, context: Any, builder: ir.IRBuilder, typ: Any, native: Any) -> ir.Value:
        table, count = _listed(context, builder, typ, native)
        context.nrt.decref(builder, _TABLE, table)
        return count

    def is_any(self, context: Any, builder: ir.IRBuilder, typ: Any, native: Any) -> ir.Value:
        return builder.icmp_signed("!=", self.count(context, builder, typ, native), I64(0))


def _listed(context: Any, builder: ir.IRBuilder, typ: Any, native: Any) -> tuple[ir.Value, ir.Value]:
    """A new table of the pairs that count, null if there's none, and their number."""
    b = builder
    table, count = cgutils.alloca_once_value(b, NULL), cgutils.alloca_once_value(b, I64(0))
    occurrences = native.occurrences
    with b.if_then(b.icmp_signed(">", occurrences, I64(0))):
        made = context.nrt.meminfo_alloc(b, b.mul(occurrences, I64(_ROW_NBYTES)))
        rows = context.nrt.meminfo_data(b, made)
        result = list_pairs(b, typ.entry, _place(b, typ, native), rows, not typ.owned)
        written, pointer, nbytes, error = (b.extract_value(result, i) for i in range(4))
        with cgutils.if_unlikely(b, b.icmp_unsigned("!=", error, I64(0))):
            context.nrt.decref(b, _TABLE, made)
            raise_if_broken(context, b, typ.entry, pointer, nbytes, error)
        args = [b.ptrtoint(rows, I64), written]
        b.store(call_jitted(context, b, keep_last, (types.int64, types.int64), args), count)
        b.store(made, table)
    return b.load(table), b.load(count)


readers["map"] = _read_map
_ACCESS = WireMapAccess()
for _cls in (WireMapType, WireMapPartType, WireMapIteratorType):
    accesses[_cls] = _ACCESS


@lower_builtin("getiter", WireMapType)
@lower_builtin("getiter", WireMapPartType)
def _iterate(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    typ = sig.args[0]
    native = cgutils.create_struct_proxy(typ)(context, builder, args[0])
    made = cgutils.create_struct_proxy(sig.return_type)(context, builder)
    made.table, made.count = _listed(context, builder, typ, native)
    made.owner = native.owner
    if typ.owned:
        context.nrt.incref(builder, _TABLE, native.owner)
    made.row = cgutils.alloca_once_value(builder, I64(0))
    return impl_ret_new_ref(context, builder, sig.return_type, made._getvalue())


@lower_builtin("iternext", WireMapIteratorType)
@iternext_impl(RefType.NEW)
def _next_pair(
    context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value], result: Any
) -> None:
    typ = sig.args[0]
    native = cgutils.create_struct_proxy(typ)(context, builder, args[0])
    row = builder.load(native.row)
    inside = builder.icmp_signed("<", row, native.count)
    result.set_valid(inside)
    with builder.if_then(inside):
        rows = context.nrt.meminfo_data(builder, native.table)
        words = builder.bitcast(builder.gep(rows, [builder.mul(row, I64(_ROW_NBYTES))]), I64.as_pointer())
        pointer, nbytes = (builder.load(builder.gep(words, [I64(i)])) for i in (_POINTER, _NBYTES))
        pair = cgutils.pack_struct(builder, [builder.inttoptr(pointer, POINTER), nbytes])
        result.yield_(_part_of(context, builder, typ, pair, native.owner))
        builder.store(builder.add(row, I64(1)), native.row)


def _part_of(
    context: Any, builder: ir.IRBuilder, typ: WireMapIteratorType, pair: ir.Value, owner: ir.Value
) -> ir.Value:
    """What a loop gives of a pair, with references of its own."""
    access = access_of(typ)
    parts = []
    if typ.part != "values":
        key = access.key(context, builder, typ, pair, owner)
        context.nrt.incref(builder, typ.key_type, key)
        parts.append(key)
    if typ.part != "keys":
        value = access.value(context, builder, typ, pair, owner)
        if not access.gives_reference(typ):
            context.nrt.incref(builder, typ.value_type, value)
        parts.append(value)
    return context.make_tuple(builder, typ.yield_type, parts) if typ.part == "items" else parts[0]
