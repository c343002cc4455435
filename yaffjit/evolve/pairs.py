"""Which message, enum and field of the new schema is which of the old one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from yaffjit.schema.model import EnumDef, FieldDef, MessageDef

Declared = TypeVar("Declared", MessageDef, EnumDef)


@dataclass(frozen=True, slots=True)
class FieldPairs:
    """The fields of two message types.

    Attributes:
        same: pairs with one number; their names may differ.
        moved: pairs with one name and two numbers.
        removed, added: what has no partner.
        reused: of ``same`` and ``added``, numbers of the new fields that had another field in the old type.
    """

    same: tuple[tuple[FieldDef, FieldDef], ...]
    moved: tuple[tuple[FieldDef, FieldDef], ...]
    removed: tuple[FieldDef, ...]
    added: tuple[FieldDef, ...]
    reused: frozenset[int]

    @property
    def all(self) -> tuple[tuple[FieldDef, FieldDef], ...]:
        return (*self.same, *self.moved)


def pair_fields(old: MessageDef, new: MessageDef) -> FieldPairs:
    """Fields by number; but a name that stands for another number now has moved there."""
    old_names = {f.name: f for f in old.fields}
    old_numbers = {f.number: f for f in old.fields}
    new_numbers = {f.number: f for f in new.fields}
    moved = [
        (old_names[f.name], f)
        for f in new.fields
        if f.name in old_names and old_names[f.name].number != f.number
    ]
    gone = {f.number for f, _ in moved}  # numbers that the moved fields had
    arrived = {f.number for _, f in moved}
    same = [
        (f, new_numbers[f.number])
        for f in old.fields
        if f.number in new_numbers and f.number not in gone and f.number not in arrived
    ]
    paired = {f.number for f, _ in same}
    return FieldPairs(
        same=tuple(same),
        moved=tuple(moved),
        removed=tuple(f for f in old.fields if f.number not in paired | gone),
        added=tuple(f for f in new.fields if f.number not in paired | arrived),
        reused=frozenset(new_numbers.keys() & old_numbers.keys() - paired),
    )


def pair_types(
    old: Mapping[str, Declared], new: Mapping[str, Declared], of_fields: Iterable[tuple[str, str]] = ()
) -> dict[str, str]:
    """New full names by old ones.

    Types of one name are one type. What is left are the types that a field had and has, if neither has a
    partner; then types of the same content, if there is one of each.
    """
    pairs = {name: name for name in old if name in new}
    left = [name for name in old if name not in pairs]
    free = [name for name in new if name not in pairs]
    for before, after in of_fields:
        if before in left and after in free:
            pairs[before] = after
            left.remove(before)
            free.remove(after)
    contents: dict[object, tuple[list[str], list[str]]] = {}
    for side, names, types in ((0, left, old), (1, free, new)):
        for name in names:
            contents.setdefault(_content(types[name]), ([], []))[side].append(name)
    for befores, afters in contents.values():
        if len(befores) == len(afters) == 1:
            pairs[befores[0]] = afters[0]
    return pairs


def _content(declared: MessageDef | EnumDef) -> object:
    """What two types have in common that differ in their name only."""
    if isinstance(declared, EnumDef):
        return declared.values
    shapes = [(f.number, f.name, f.kind, f.repeated, f.is_map) for f in declared.fields]
    return tuple(sorted(shapes)) or declared.full_name  # empty ones are no evidence
