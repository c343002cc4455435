"""The numba types of map fields in protobuf bytes, of their parts, and of iterators over these.

A field is its message and what the message's scan found of it. An iterator has a table of the pairs that
count, which is made when a loop begins.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.datamodel import models, register_default

from yaffjit.jit.maps.type import MapIteratorType, MapPartType, MapType
from yaffjit.jit.types import owner_type, wire_field_types, wire_value_type
from yaffjit.plan.model import FieldPlan, MessagePlan


class _OfWireMap:
    """What differs for all of them: the types of keys and values."""

    entry: MessagePlan

    def _type_of(self, f: FieldPlan) -> types.Type:
        return wire_value_type(self.entry, f)


class WireMapType(_OfWireMap, MapType):
    """A map field of a protobuf view; iteration gives keys."""

    label = "map of protobuf"

    @property
    def iterator_type(self) -> MapIteratorType:
        return WireMapIteratorType(self.mp, self.f.name, self.part, self.owned)

    def part_type(self, part: str) -> MapPartType:
        return WireMapPartType(self.mp, self.f.name, part, self.owned)


class WireMapPartType(_OfWireMap, MapPartType):
    """The keys(), values() or items() of a map field of a protobuf view."""

    label = "part of map of protobuf"

    @property
    def iterator_type(self) -> MapIteratorType:
        return WireMapIteratorType(self.mp, self.f.name, self.part, self.owned)


class WireMapIteratorType(_OfWireMap, MapIteratorType):
    label = "iterator of map of protobuf"


def _map_type(mp: MessagePlan, f: FieldPlan) -> types.Type:
    return WireMapType(mp, f.name)


wire_field_types["map"] = _map_type


@register_default(WireMapType)
@register_default(WireMapPartType)
class _MapModel(models.StructModel):
    def __init__(self, manager: Any, numba_type: Any) -> None:
        members = [
            ("pointer", types.voidptr),  # the message, null if it's absent
            ("nbytes", types.int64),
            ("owner", owner_type(numba_type)),
            ("first", types.voidptr),  # as the slots of the field
            ("occurrences", types.int64),
        ]
        super().__init__(manager, numba_type, members)


@register_default(WireMapIteratorType)
class _IteratorModel(models.StructModel):
    def __init__(self, manager: Any, numba_type: Any) -> None:
        members = [
            ("owner", owner_type(numba_type)),
            ("table", types.MemInfoPointer(types.voidptr)),  # rows of `emit.wire_entries`, or null
            ("count", types.int64),
            ("row", types.EphemeralPointer(types.int64)),
        ]
        super().__init__(manager, numba_type, members)
