"""The numba types of map fields, of their keys(), values() and items(), and of iterators over these."""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.datamodel import models, register_default
from numba.core.imputils import lower_cast

from yaffjit.jit.keys import PlanType
from yaffjit.jit.types import BorrowedType, like, owner_type, value_type
from yaffjit.plan.model import FieldPlan, MessagePlan

PARTS = ("keys", "values", "items")


class _OfMap(BorrowedType, PlanType):
    """What points into the pairs of a map field.

    Args:
        mp: the message that has the field.
        name: of the field.
        details: what else tells types of one class apart; the last is whether it counts its owner.
    """

    by_position = False

    def __init__(self, mp: MessagePlan, name: str, *details: Any) -> None:
        super().__init__(mp, name, *details)
        self.f: FieldPlan = mp.by_name[name]
        # The pairs are fixed messages of a key and a value.
        self.entry = mp.child(self.f)
        self.key_field, self.value_field = self.entry.fields
        self.owned = details[-1]

    def as_owned(self) -> types.Type:
        return type(self)(self.mp, self.f.name, *self.details[1:-1], True)

    def _type_of(self, f: FieldPlan) -> types.Type:
        """That of a field of the pairs."""
        return value_type(self.entry, f)

    @property
    def key_type(self) -> Any:
        return like(self, self._type_of(self.key_field))

    @property
    def value_type(self) -> Any:
        return like(self, self._type_of(self.value_field))

    @property
    def field_name(self) -> str:
        """The field in an error's sentence."""
        return f"map field {self.mp.full_name}.{self.f.name}"


class MapType(_OfMap, types.IterableType):
    """A map field; iteration gives keys."""

    label = "map"
    what = "a map"
    instead = "keep the values that you need instead"
    part = "keys"

    def __init__(self, mp: MessagePlan, name: str, owned: bool = False) -> None:
        super().__init__(mp, name, owned)

    @property
    def iterator_type(self) -> MapIteratorType:
        return MapIteratorType(self.mp, self.f.name, self.part, self.owned)

    def part_type(self, part: str) -> MapPartType:
        """The type of its keys(), values() or items()."""
        return MapPartType(self.mp, self.f.name, part, self.owned)


class MapPartType(_OfMap, types.IterableType):
    """The keys(), values() or items() of a map field."""

    label = "part of map"
    what = "a part of a map"
    instead = "keep the values that you need, in a list, instead"

    def __init__(self, mp: MessagePlan, name: str, part: str, owned: bool = False) -> None:
        super().__init__(mp, name, part, owned)
        self.part = part

    @property
    def iterator_type(self) -> MapIteratorType:
        return MapIteratorType(self.mp, self.f.name, self.part, self.owned)


class MapIteratorType(_OfMap, types.IteratorType):
    label = "iterator of map"
    what = "an iterator over a map"
    instead = "keep the key instead"

    def __init__(self, mp: MessagePlan, name: str, part: str, owned: bool = False) -> None:
        super().__init__(mp, name, part, owned)
        self.part = part

    @property
    def yield_type(self) -> types.Type:
        if self.part == "items":
            return types.Tuple.from_types((self.key_type, self.value_type))
        found: types.Type = self.key_type if self.part == "keys" else self.value_type
        return found


# members: the first pair, null if the map is absent. searchable: pairs are so many that they are searched by
# halving, and strictly ascending, as that needs. (numba's parallel loops don't take a boolean in a struct.)
def _members(typ: types.Type, about_keys: str) -> list[tuple[str, types.Type]]:
    return [
        ("members", types.voidptr),
        ("count", types.int64),
        (about_keys, types.uint8),
        ("owner", owner_type(typ)),
    ]


@register_default(MapType)
@register_default(MapPartType)
class _MapModel(models.StructModel):
    def __init__(self, manager: Any, numba_type: types.Type) -> None:
        super().__init__(manager, numba_type, _members(numba_type, "searchable"))


@register_default(MapIteratorType)
class _IteratorModel(models.StructModel):
    def __init__(self, manager: Any, numba_type: types.Type) -> None:
        # in_order: keys are strictly ascending, so each pair counts
        row = ("row", types.EphemeralPointer(types.int64))
        super().__init__(manager, numba_type, [*_members(numba_type, "in_order"), row])


@lower_cast(MapType, MapType)
@lower_cast(MapPartType, MapPartType)
def _to_twin(context: Any, builder: Any, source: types.Type, target: types.Type, value: Any) -> Any:
    return value
