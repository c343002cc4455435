"""Map fields of messages: how they are read, and what a pair gives."""

from __future__ import annotations

import dataclasses
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from yaffjit.jit.attributes import field_readers, read_field
from yaffjit.jit.emit import yaff
from yaffjit.jit.emit.outline import I8, I32, I64, NULL, Body, call_outlined
from yaffjit.jit.maps.search import are_searchable, pairs_of
from yaffjit.jit.maps.type import MapType
from yaffjit.jit.types import field_types
from yaffjit.plan.model import FieldPlan, MessagePlan


def _map_type(mp: MessagePlan, f: FieldPlan) -> types.Type:
    return MapType(mp, f.name)


def _read_map(
    context: Any,
    builder: ir.IRBuilder,
    mp: MessagePlan,
    f: FieldPlan,
    message: ir.Value,
    owner: ir.Value,
    frozen: bool = True,
) -> ir.Value:
    typ = MapType(mp, f.name)
    array = yaff.reference(builder, mp, f, message, frozen)
    made = cgutils.create_struct_proxy(typ)(context, builder)
    made.members = builder.select(
        builder.icmp_unsigned("!=", array, NULL), builder.gep(array, [I64(4)]), NULL
    )
    made.count = _count(builder, array, frozen)
    searchable = are_searchable(builder, pairs_of(typ.entry), made.members, made.count, owner, frozen)
    made.searchable = builder.zext(searchable, I8)
    made.owner = owner
    return made._getvalue()


def _count(builder: ir.IRBuilder, array: ir.Value, frozen: bool) -> ir.Value:
    """The number of elements of an array in a message, 0 for null."""

    def emit(body: Body) -> None:
        body.return_unless(body.builder.icmp_unsigned("!=", body.args[0], NULL), I64(0))
        body.builder.ret(body.builder.zext(body.load(body.args[0], 0, I32), I64))

    return call_outlined(builder, "array_count", "", I64, [array], emit, frozen)


def read_key(context: Any, builder: ir.IRBuilder, typ: Any, pair: ir.Value, owner: ir.Value) -> ir.Value:
    """The native key of a pair."""
    return read_field(context, builder, typ.entry, typ.key_field, pair, owner, not typ.owned)


def read_value(context: Any, builder: ir.IRBuilder, typ: Any, pair: ir.Value, owner: ir.Value) -> ir.Value:
    """The native value of a pair; for a null pair that of a missing key."""
    f, frozen = typ.value_field, not typ.owned
    if f.default_bits == f.declared_bits:
        return read_field(context, builder, typ.entry, f, pair, owner, frozen)
    # A map's pairs have no absent values: the number that is stored counts, whatever the default is.
    stored = dataclasses.replace(f, declared_bits=f.default_bits)
    found = read_field(context, builder, typ.entry, stored, pair, owner, frozen)
    missing = read_field(context, builder, typ.entry, f, NULL, owner, frozen)
    return builder.select(builder.icmp_unsigned("==", pair, NULL), missing, found)


field_types["map"] = _map_type
field_readers["map"] = _read_map
