"""The numba types of repeated fields in protobuf bytes, of slices of them, and of their iterators.

A field is its message and what the message's scan found of it (`emit.wire_runs.Place`). A slice, which is a
list in Python, is a table of its elements: each was looked for once. So is what is reversed. A field that
shares a variable with its slices has no table.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models, register_default
from numba.core.imputils import lower_cast

from yaffjit.jit.emit.wire_fields import wire_field
from yaffjit.jit.emit.wire_runs import Shape, shape_of
from yaffjit.jit.repeated.type import RepeatedIteratorType, RepeatedType
from yaffjit.jit.types import like, owner_type, wire_field_types, wire_value_type
from yaffjit.plan.model import FieldPlan, MessagePlan


class WireRepeatedType(RepeatedType):
    """A repeated field of a protobuf view, or a slice of it."""

    label = "repeated of protobuf"

    @property
    def shape(self) -> Shape:
        return shape_of(wire_field(self.mp, self.f))

    @property
    def element(self) -> types.Type:
        return like(self, wire_value_type(self.mp, self.one))

    @property
    def iterator_type(self) -> WireRepeatedIteratorType:
        return WireRepeatedIteratorType(self.mp, self.f.name, self.part, self.owned)

    @property
    def elements_stored(self) -> tuple[Any, ...]:
        """Of one message type, as containers in Python are looked for in a view of it."""
        f = self.f
        child = self.mp.child(f) if f.kind == "message" else None
        below = (child.full_name, child.fingerprint) if child is not None else ()
        return self.mp.full_name, self.mp.fingerprint, f.kind, f.enum, self.shape, *below


class WireRepeatedIteratorType(RepeatedIteratorType):
    label = "iterator of repeated of protobuf"

    def __init__(self, mp: MessagePlan, field: str, part: bool, owned: bool = False) -> None:
        super().__init__(mp, field, part, owned)
        self.repeated = WireRepeatedType(mp, field, part, owned)

    def as_owned(self) -> WireRepeatedIteratorType:
        return WireRepeatedIteratorType(self.mp, self.repeated.f.name, self.repeated.part, True)


def wire_repeated_type(mp: MessagePlan, f: FieldPlan) -> WireRepeatedType:
    """The numba type of a repeated field."""
    memo = mp.plan.memo
    key = (WireRepeatedType, mp.full_name, f.name)
    made: WireRepeatedType | None = memo.get(key)
    if made is None:
        made = memo[key] = WireRepeatedType(mp, f.name)
    return made


wire_field_types["repeated"] = wire_repeated_type


def _members(typ: Any) -> list[tuple[str, types.Type]]:
    return [
        ("pointer", types.voidptr),  # the message, null if it's absent
        ("nbytes", types.int64),
        ("owner", owner_type(typ)),
        ("number", types.int64),  # the field's
        ("first", types.voidptr),
        ("occurrences", types.int64),
        ("modes", types.int64),
        ("run", types.voidptr),
        ("run_nbytes", types.int64),
    ]


# table: of the elements, null if there's none; count: how many elements there are, known of slices only.
_PART = (("table", types.MemInfoPointer(types.voidptr)), ("count", types.int64))
# count: how many elements there are at most, for numba. index: of the next element; the rest is the cursor.
_ITERATOR = (
    ("count", types.int64),
    ("index", types.EphemeralPointer(types.int64)),
    ("at", types.EphemeralPointer(types.voidptr)),
    ("left", types.EphemeralPointer(types.int64)),
    ("run_at", types.EphemeralPointer(types.voidptr)),
    ("run_end", types.EphemeralPointer(types.voidptr)),
)


@register_default(WireRepeatedType)
class _RepeatedModel(models.StructModel):
    def __init__(self, manager: Any, numba_type: Any) -> None:
        super().__init__(manager, numba_type, [*_members(numba_type), *(_PART if numba_type.part else ())])


@register_default(WireRepeatedIteratorType)
class _IteratorModel(models.StructModel):
    def __init__(self, manager: Any, numba_type: Any) -> None:
        part = _PART[:1] if numba_type.repeated.part else ()
        super().__init__(manager, numba_type, [*_members(numba_type), *part, *_ITERATOR])


MEMBERS = ("pointer", "nbytes", "owner", "number", "first", "occurrences", "modes", "run", "run_nbytes")


@lower_cast(WireRepeatedType, WireRepeatedType)
def _cast(
    context: Any, builder: ir.IRBuilder, source: WireRepeatedType, target: WireRepeatedType, value: ir.Value
) -> ir.Value:
    from yaffjit.jit.wire.repeated.elements import WireElements

    if source.part == target.part:
        return value
    field = cgutils.create_struct_proxy(source)(context, builder, value)
    made = cgutils.create_struct_proxy(target)(context, builder)
    for name in MEMBERS:
        setattr(made, name, getattr(field, name))
    made.count = WireElements(context, builder, source, field).count
    return made._getvalue()
