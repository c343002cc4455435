"""What the changes of a message type mean: its fields together, its layout, its reserves."""

from __future__ import annotations

from collections.abc import Iterator

from yaffjit.evolve.facts import Facts, Laid, Reserved
from yaffjit.evolve.fields import FieldRules
from yaffjit.evolve.model import Change, Verdict
from yaffjit.evolve.oneofs import oneof_changes
from yaffjit.evolve.pairs import pair_fields
from yaffjit.schema.model import MessageDef

_NOTHING = Verdict("safe", "Protobuf knows nothing of YaFF's options.")
_NO_BYTES = Verdict("safe", "YaFF couldn't hold the message by the old schema, so there are no such bytes.")
_UNRESERVED = Verdict(
    "conditional",
    "Nothing keeps what was set aside from being used again, and data may have another field under it.",
    "Keep the reserve.",
)


def message_changes(old: Facts, new: Facts, was: MessageDef, now: MessageDef) -> Iterator[Change]:
    """The changes of one message type and its fields, without those of the types of its fields."""
    could = old.laid(was.full_name).fault is None
    for change in _changes(old, new, was, now):
        if could or change.yaff.grade == "safe":
            yield change
        else:
            yield Change(change.where, change.kind, change.what, _NO_BYTES, change.protobuf, change.json)


def _changes(old: Facts, new: Facts, was: MessageDef, now: MessageDef) -> Iterator[Change]:
    laid = old.laid(was.full_name), new.laid(now.full_name)
    yield from _of_layout(was, *laid)
    own_fault = laid[1].fault is not None and laid[1].fault.startswith(f"{now.full_name}: ")
    if own_fault and laid[0].fault is None and laid[1].layout:
        assert laid[1].fault is not None
        what = f"YaFF can't hold it any more: {laid[1].fault.removeprefix(f'{now.full_name}: ')}"
        verdict = Verdict("unsafe", "The new schema neither reads nor writes the message as YaFF.")
        yield Change(was.full_name, "message-fault", what, verdict, _NOTHING)
    rules = FieldRules(old, new, was, now)
    pairs = pair_fields(was, now)
    partner = {id(f): g for f, g in pairs.all}
    told: set[int] = set()  # ids whose fault is told with their field
    for f in was.fields:
        found = partner.get(id(f))
        changes = [rules.removed(f)] if found is None else list(rules.compared(f, found))
        yield from changes
        if any(change.yaff.grade == "unsafe" for change in changes):
            told.update(id for id in (old.id(was, f), found and new.id(now, found)) if id)
    yield from oneof_changes(was, pairs.all)
    for f in pairs.added:
        change = rules.added(f, f.number in pairs.reused)
        yield change
        if change.yaff.grade == "unsafe":
            told.update(id for id in (new.id(now, f),) if id)
    yield from _of_slots(was, *laid, told)
    yield from _of_reserves(was.full_name, old.reserved(was.full_name), new.reserved(now.full_name), now)


def _of_layout(was: MessageDef, old: Laid, new: Laid) -> Iterator[Change]:
    if old.layout == new.layout:
        return
    what = f"layout {old.layout or 'none'} -> {new.layout or 'none'}"
    if not new.layout:
        rule = "The message is ignored or not in the slice: YaFF's readers know it no longer."
        yaff = Verdict("conditional", rule, "Do it only if no data has it as its root.")
    elif not old.layout:
        yaff = Verdict("safe", "There are no YaFF bytes of it yet.")
    elif "fixed" in (old.layout, new.layout):
        rule = "A fixed message has no header, and arrays hold it inline: readers misread the other's bytes."
        yaff = Verdict("unsafe", rule, "Add a new message type with the other layout.")
    elif new.layout == "dynamic":
        rule = "Dynamic readers take flat and sparse bytes, a reader with a pinned layout takes only that."
        yaff = Verdict("conditional", rule, "Update all readers first, then the writers.")
    elif old.layout == "dynamic":
        rule = "A reader with a pinned layout takes only that, and older bytes may have the other."
        advice = f"Update all writers first, and the readers when all bytes are {new.layout}."
        yaff = Verdict("conditional", rule, advice)
    else:
        rule = f"A reader with the pinned layout {new.layout} doesn't read {old.layout} bytes."
        yaff = Verdict("unsafe", rule, "Go by way of dynamic: readers first, then writers.")
    yield Change(was.full_name, "message-layout", what, yaff, _NOTHING)


def _of_slots(was: MessageDef, old: Laid, new: Laid, told: set[int]) -> Iterator[Change]:
    """Ids that take another number of bytes, which no change of a field explains."""
    if not old.layout or not new.layout or old.layout == new.layout == "sparse":
        return
    for id, width in old.widths.items():
        other = new.widths.get(id)
        if other is None or other == width or id in told:
            continue
        rule = "Fields behind a slot of another size are looked for in the wrong place."
        yaff = Verdict("unsafe", rule, f"Reserve id {id} with a type of {width} byte{'s' * (width > 1)}.")
        what = f"the slot of id {id} takes {width} -> {other} bytes"
        yield Change(was.full_name, "message-slot", what, yaff, _NOTHING)


def _of_reserves(where: str, old: Reserved, new: Reserved, now: MessageDef) -> Iterator[Change]:
    used = {f.number for f in now.fields}
    names = {f.name for f in now.fields}
    dropped = [
        f"{first} to {last}" if last > first else str(first)
        for first, last in old.ranges
        if not _covered(first, last, new) and not used & set(range(first, min(last, first + 10_000) + 1))
    ]
    dropped += sorted(old.names - new.names - names)
    if dropped:
        what = f"reserve dropped: {', '.join(dropped)}"
        yield Change(where, "reserve-dropped", what, _UNRESERVED, _UNRESERVED)


def _covered(first: int, last: int, reserved: Reserved) -> bool:
    """Whether all numbers of a range are reserved, perhaps by several ranges."""
    for start, end in sorted(reserved.ranges):
        if start <= first <= end:
            first = end + 1
        if first > last:
            return True
    return False
