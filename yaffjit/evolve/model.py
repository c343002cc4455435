"""What a comparison of two schemas finds: changes, with a verdict for each format of data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

Grade = Literal["safe", "conditional", "unsafe"]
GRADES: tuple[Grade, ...] = ("safe", "conditional", "unsafe")
FORMATS = ("yaff", "protobuf", "json")


def worst(grades: Iterable[Grade]) -> Grade:
    """The gravest of some grades, "safe" if there are none."""
    return max(grades, key=GRADES.index, default="safe")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a change does to bytes of one format that are written by one schema and read by the other.

    Attributes:
        grade: "safe": both read what the other wrote; "conditional": that depends on the values, or on what
            is changed first; "unsafe": values are lost or misread, or readers refuse the bytes.
        rule: why, in one sentence.
        advice: what to do about it, "" where there is nothing to do.
    """

    grade: Grade
    rule: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference of two schemas.

    Attributes:
        where: the message, field, oneof, enum or enum value, by its full name in the old schema, or in the
            new one where it is added.
        kind: which sort of change, a word that stays the same between versions: "field-type", say.
        what: the change in words, as "type int32 -> int64".
        yaff, protobuf: the verdicts for YaFF and for protobuf bytes.
        json: that for protobuf's JSON; only changes of names have one.
    """

    where: str
    kind: str
    what: str
    yaff: Verdict
    protobuf: Verdict
    json: Verdict | None = None

    def verdict(self, format: str) -> Verdict | None:
        """The verdict for one of `FORMATS`."""
        found: Verdict | None = getattr(self, format)
        return found

    def grade(self, formats: Iterable[str] = FORMATS[:2]) -> Grade:
        """The gravest grade for some formats."""
        verdicts = (self.verdict(format) for format in formats)
        return worst(verdict.grade for verdict in verdicts if verdict is not None)


@dataclass(frozen=True, slots=True)
class SchemaComparison:
    """All changes between two schemas.

    Attributes:
        changes: message by message in the order of the old schema.
    """

    changes: tuple[Change, ...]

    def grade(self, formats: Iterable[str] = FORMATS[:2]) -> Grade:
        """The gravest grade of all changes for some formats: "yaff", "protobuf", "json"."""
        formats = tuple(formats)
        return worst(change.grade(formats) for change in self.changes)

    def count(self, grade: Grade, formats: Iterable[str] = FORMATS[:2]) -> int:
        """How many changes have this grade."""
        formats = tuple(formats)
        return sum(change.grade(formats) == grade for change in self.changes)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {"grade": self.grade(), "changes": [asdict(change) for change in self.changes]}
