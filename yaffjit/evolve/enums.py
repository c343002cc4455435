"""What the changes of an enum mean: its values, their names and numbers."""

from __future__ import annotations

from collections.abc import Iterator

from yaffjit.evolve.facts import Facts
from yaffjit.evolve.model import Change, Verdict
from yaffjit.schema.model import EnumDef

_STAYS = Verdict("safe", "An enum is stored as its number, and YaFF keeps any number.")
_OPEN = Verdict("safe", "An enum lies on the wire as its number, and an open enum keeps any number.")
_CLOSED = Verdict(
    "conditional",
    "With a closed enum, a number that isn't in it goes to the unknown fields, and the field reads as unset.",
    "Update all readers before a writer uses the value.",
)
_CLOSED_GONE = Verdict(
    "conditional", _CLOSED.rule, "Do it only if no data has the value, and reserve its number and name."
)
_JSON_ADDED = Verdict(
    "conditional",
    "JSON names enum values, and a reader refuses a name that it doesn't know.",
    "Update all readers before a writer uses the value.",
)
_JSON_GONE = Verdict("unsafe", "JSON names enum values, and a reader refuses a name that it doesn't know.")
_RENUMBERED = Verdict(
    "unsafe", "An enum is stored as its number, so old data reads as another value.", "Keep the number."
)
_REUSED = Verdict(
    "unsafe",
    "The number was reserved, so old data may have another value under it.",
    "Take a number that was never used.",
)
_NUMBERS_ONLY = Verdict("safe", "Bytes have the number, not the name.")


def enum_changes(old: Facts, new: Facts, was: EnumDef, now: EnumDef) -> Iterator[Change]:
    """The changes of one enum's values."""
    before, after = dict(was.values), dict(now.values)
    closed = was.closed or now.closed
    numbers = ({number for _, number in was.values}, {number for _, number in now.values})
    for name, number in was.values:
        where = f"{was.full_name}.{name}"
        if name in after:
            if after[name] != number:
                what = f"number {number} -> {after[name]}"
                yield Change(where, "enum-value-number", what, _RENUMBERED, _RENUMBERED)
        elif number in numbers[1]:
            fresh = [label for label, value in now.values if value == number and label not in before]
            if fresh:
                what = f"renamed to {fresh[0]}"
                yield Change(where, "enum-value-renamed", what, _NUMBERS_ONLY, _NUMBERS_ONLY, _JSON_GONE)
            else:
                what = f"alias of number {number} removed"
                yield Change(where, "enum-value-renamed", what, _NUMBERS_ONLY, _NUMBERS_ONLY, _JSON_GONE)
        else:
            advice = (
                ""
                if number in new.reserved(now.full_name)
                else f"Reserve number {number} and the name {name}."
            )
            yaff = Verdict("safe", _STAYS.rule, advice)
            wire = _CLOSED_GONE if closed else Verdict("safe", _OPEN.rule, advice)
            what = f"value removed, number {number}"
            yield Change(where, "enum-value-removed", what, yaff, wire, _JSON_GONE)
    for name, number in now.values:
        if name in before:
            continue
        where = f"{was.full_name}.{name}"
        if number in numbers[0]:
            # With a name that went, it's told there as its new name.
            if all(label in after for label, value in was.values if value == number):
                what = f"alias of number {number} added"
                yield Change(where, "enum-value-added", what, _NUMBERS_ONLY, _NUMBERS_ONLY, _JSON_ADDED)
            continue
        what = f"value added, number {number}"
        if number in old.reserved(was.full_name):
            yield Change(where, "enum-value-reused", what, _REUSED, _REUSED)
        else:
            wire = _CLOSED if closed else _OPEN
            yield Change(where, "enum-value-added", what, _STAYS, wire, _JSON_ADDED)
