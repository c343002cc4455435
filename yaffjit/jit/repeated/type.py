"""The numba types of repeated fields, of slices of them, and of their iterators.

A field is a pointer to its array's first element, the number of elements and the bytes' owner. A slice, which
is a list in Python, is another type: the same array with the first index and the step.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models, register_default
from numba.core.imputils import lower_cast
from numba.core.typeconv import Conversion

from yaffjit.jit.emit.outline import I64
from yaffjit.jit.keys import PlanType
from yaffjit.jit.types import BorrowedType, field_types, like, owner_type, value_type
from yaffjit.plan.model import SCALAR_CODE, FieldPlan, MessagePlan


def one_of(f: FieldPlan) -> FieldPlan:
    """A singular field whose value is like an element of a repeated one."""
    return replace(f, repeated=False, width=f.element_width)


class RepeatedType(BorrowedType, PlanType, types.IterableType):
    """A repeated field of a message, or a slice of it.

    Args:
        mp: the message that has the field.
        field: its name.
        part: whether it's a slice.
        owned: whether it counts its owner.
    """

    label = "repeated"
    what = "a repeated field"
    instead = "keep the values that you need, in a list or an array, instead"

    def __init__(self, mp: MessagePlan, field: str, part: bool = False, owned: bool = False) -> None:
        super().__init__(mp, field, part, owned)
        self.f: FieldPlan = mp.by_name[field]
        self.one = one_of(self.f)
        self.part = part
        self.owned = owned

    def as_owned(self) -> RepeatedType:
        return self._like(part=self.part, owned=True)

    def _like(self, *, part: bool, owned: bool) -> RepeatedType:
        """The type of another form of the same field."""
        return type(self)(self.mp, self.f.name, part, owned)

    @property
    def element(self) -> types.Type:
        """The type of an element."""
        return like(self, value_type(self.mp, self.one))

    @property
    def iterator_type(self) -> RepeatedIteratorType:
        return RepeatedIteratorType(self.mp, self.f.name, self.part, self.owned)

    def place(self) -> str:
        """Which field it is, for a sentence."""
        return f"field {self.f.name} of {self.mp.full_name}"

    def sliced(self) -> RepeatedType:
        """The type of this one's slices."""
        return self if self.part else self._like(part=True, owned=self.owned)

    @property
    def elements_stored(self) -> tuple[Any, ...]:
        """What decides how elements are stored, and their type."""
        f = self.f
        if f.kind == "message":
            child = self.mp.child(f)
            return child.full_name, child.fingerprint, f.inlined
        return (SCALAR_CODE.get(f.kind, f.kind),)

    def _is_alike(self, other: Any) -> bool:
        return type(other) is type(self) and other.elements_stored == self.elements_stored

    def unify(self, typingctx: Any, other: Any) -> types.Type | None:
        """Fields of equal elements share a variable; with a slice it's a slice, with an owned one owned."""
        if self._is_alike(other):
            shared: Any = like(other, self)
            return shared.sliced() if other.part else shared
        return None

    def can_convert_from(self, typingctx: Any, other: Any) -> Conversion | None:
        if self._is_alike(other):
            fits = (self.part or not other.part) and (self.owned or not other.owned)
            return Conversion.safe if fits else None
        return None


class RepeatedIteratorType(BorrowedType, PlanType, types.IteratorType):
    label = "iterator of repeated"
    what = "an iterator over a repeated field"
    instead = "keep the index instead"

    def __init__(self, mp: MessagePlan, field: str, part: bool, owned: bool = False) -> None:
        super().__init__(mp, field, part, owned)
        self.repeated = RepeatedType(mp, field, part, owned)
        self.owned = owned

    def as_owned(self) -> RepeatedIteratorType:
        return RepeatedIteratorType(self.mp, self.repeated.f.name, self.repeated.part, True)

    @property
    def yield_type(self) -> types.Type:
        return self.repeated.element


def repeated_type(mp: MessagePlan, f: FieldPlan) -> RepeatedType:
    """The numba type of a repeated field."""
    memo = mp.plan.memo
    key = (RepeatedType, mp.full_name, f.name)
    made: RepeatedType | None = memo.get(key)
    if made is None:
        made = memo[key] = RepeatedType(mp, f.name)
    return made


field_types["repeated"] = repeated_type

_PART = (("first", types.int64), ("step", types.int64))
_INDEX = ("index", types.EphemeralPointer(types.int64))


def _members(typ: Any) -> list[tuple[str, types.Type]]:
    """Those of a field, which other forms begin with."""
    return [("pointer", types.voidptr), ("count", types.int64), ("owner", owner_type(typ))]


@register_default(RepeatedType)
class _RepeatedModel(models.StructModel):
    def __init__(self, manager: Any, numba_type: Any) -> None:
        super().__init__(manager, numba_type, [*_members(numba_type), *(_PART if numba_type.part else ())])


@register_default(RepeatedIteratorType)
class _IteratorModel(models.StructModel):
    def __init__(self, manager: Any, numba_type: types.Type) -> None:
        super().__init__(manager, numba_type, [*_members(numba_type), *_PART, _INDEX])


@lower_cast(RepeatedType, RepeatedType)
def _cast(
    context: Any, builder: ir.IRBuilder, source: RepeatedType, target: RepeatedType, value: ir.Value
) -> ir.Value:
    if source.part == target.part:
        return value
    field = cgutils.create_struct_proxy(source)(context, builder, value)
    made = cgutils.create_struct_proxy(target)(context, builder)
    made.pointer, made.count, made.owner = field.pointer, field.count, field.owner
    made.first, made.step = I64(0), I64(1)
    return made._getvalue()
