"""What it means that fields enter a oneof, leave it or change it."""

from __future__ import annotations

from collections.abc import Iterator

from yaffjit.evolve.model import Change, Verdict
from yaffjit.schema.model import FieldDef, MessageDef

_Pair = tuple[FieldDef, FieldDef]

_ALONE = Verdict("safe", "A oneof with one old field in it reads and writes that field as before.")
_SEVERAL = Verdict(
    "conditional",
    "Old data may have several of these fields set, and a oneof keeps one.",
    "Do it only if no message has more than one of them set.",
)
_EXISTING = Verdict(
    "unsafe",
    "Old data may have the field set beside a member of the oneof, and one of the two is lost.",
    "Leave the field outside, or add a new field to the oneof.",
)
_LEFT = Verdict(
    "conditional",
    "Where a new writer sets the field beside a member of the oneof, old readers lose one of them.",
    "Update all readers first, or never set both.",
)
_RENAMED = Verdict("safe", "Bytes don't name oneofs.", "WhichOneof takes the new name in code.")


def oneof_changes(was: MessageDef, pairs: tuple[_Pair, ...]) -> Iterator[Change]:
    """Changes of oneofs among the fields that both schemas have."""
    renamed = _renamed(pairs)
    for before, after in renamed.items():
        if before != after:
            where = f"{was.full_name}.{before}"
            yield Change(where, "oneof-renamed", f"oneof renamed to {after}", _RENAMED, _RENAMED)
    for f, g in pairs:
        if f.oneof == g.oneof == "" or renamed.get(f.oneof) == g.oneof:
            continue
        where = f"{was.full_name}.{f.name}"
        if not g.oneof:
            others = [other for other, _ in pairs if other.oneof == f.oneof and other is not f]
            verdict = _LEFT if others else _ALONE
            yield Change(where, "oneof-left", f"moved out of oneof {f.oneof}", verdict, verdict)
            continue
        what = f"moved into oneof {g.oneof}" if not f.oneof else f"moved from oneof {f.oneof} to {g.oneof}"
        others = [other for other, now in pairs if now.oneof == g.oneof and other is not f]
        verdict = _ALONE
        if any(other.oneof and other.oneof != f.oneof for other in others):
            verdict = _EXISTING
        elif any(not other.oneof for other in others):
            verdict = _SEVERAL
        if f.oneof and verdict is not _EXISTING:
            verdict = _LEFT
        yield Change(where, "oneof-joined", what, verdict, verdict)


def _renamed(pairs: tuple[_Pair, ...]) -> dict[str, str]:
    """The oneof of the new schema that an old one became: a namesake, or where its first member went."""
    became: dict[str, str] = {}
    for f, g in pairs:
        if f.oneof and f.oneof == g.oneof:
            became[f.oneof] = g.oneof
    taken = set(became.values())
    for f, g in pairs:
        if f.oneof and g.oneof and f.oneof not in became and g.oneof not in taken:
            became[f.oneof] = g.oneof
            taken.add(g.oneof)
    return became
