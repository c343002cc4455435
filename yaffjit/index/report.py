"""What a build did, as a value, as lines for people, and for the log."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from yaffjit.index.feed import Feed

logger = logging.getLogger("yaffjit")

BECAME = {
    "skip": ("message is left out", "messages are left out"),
    "null": ("message is a null row", "messages are null rows"),
}


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """What `build_index` or `append_index` wrote.

    Attributes:
        path: the file or directory.
        rows: rows that were written.
        nbytes: bytes of the files that were written.
        unknown_fields: unknown fields and extensions that weren't carried, occurrences by
            ``"full.name of message #field number"``.
        dropped_fields: likewise declared fields that YaFF doesn't carry, as deprecated ones.
        uncounted: how many more fields there were, of too many different numbers.
        layouts: rows by how their message is written: "flat", "sparse" or "fixed".
        nulls: rows that are null.
        bad: messages that couldn't be stored, and were left out or made null.
        errors: what was wrong with the first ten of them, and where.
        read_nbytes: bytes of the messages that came as protobuf bytes.
        seconds: what it took.
        parts: names of the files that were written to a directory.
    """

    path: str
    rows: int
    nbytes: int
    unknown_fields: Mapping[str, int] = field(default_factory=dict)
    dropped_fields: Mapping[str, int] = field(default_factory=dict)
    uncounted: int = 0
    layouts: Mapping[str, int] = field(default_factory=dict)
    nulls: int = 0
    bad: int = 0
    errors: tuple[str, ...] = ()
    read_nbytes: int = 0
    seconds: float = 0.0
    parts: tuple[str, ...] = ()

    def summary(self) -> list[str]:
        """Lines for people: what came in and what of it isn't there, what was bad, how long it took."""
        lines = []
        if self.read_nbytes:
            share = 100 * self.nbytes / self.read_nbytes
            lines.append(f"{share:.0f}% of {self.read_nbytes:,} bytes of protobuf messages")
        layouts = [f"{count:,} {layout}" for layout, count in self.layouts.items() if count]
        if len(layouts) > 1:
            lines.append(f"layouts: {', '.join(layouts)}")
        if self.unknown_fields or self.uncounted:
            lines.append(
                f"unknown fields and extensions not carried: {_listed(self.unknown_fields, self.uncounted)}"
            )
        if self.dropped_fields:
            lines.append(f"declared fields that YaFF doesn't carry: {_listed(self.dropped_fields)}")
        if self.nulls:
            lines.append(f"null rows: {self.nulls:,}")
        if self.bad:
            lines.append(f"bad messages: {self.bad:,}")
            lines += [f"  {error}" for error in self.errors]
            if self.bad > len(self.errors):
                lines.append(f"  and {self.bad - len(self.errors):,} more")
        if self.seconds:
            rate = self.rows / self.seconds
            lines.append(f"{self.seconds:.1f} s, {rate:,.0f} messages a second")
        return lines


def built(path: str, feed: Feed, nbytes: int, parts: tuple[str, ...], seconds: float) -> BuiltIndex:
    """The result of a feed that has ended; what is lost is logged."""
    unknown, dropped = feed.dropped()
    made = BuiltIndex(
        path,
        feed.rows,
        nbytes,
        unknown,
        dropped,
        feed.uncounted,
        feed.layouts(),
        feed.nulls,
        feed.bad,
        tuple(feed.errors),
        feed.read_nbytes,
        seconds,
        parts,
    )
    _log_fields(made, feed.message)
    if made.bad:
        became = BECAME[feed.on_error][made.bad != 1]
        shown = "".join(f"\n  {error}" for error in made.errors)
        first = ", at first" if made.bad > len(made.errors) else ""
        logger.warning("%s: %s bad %s%s:%s", path, f"{made.bad:,}", became, first, shown)
    return made


def _log_fields(made: BuiltIndex, message: str) -> None:
    unknown = sum(made.unknown_fields.values())
    if unknown or made.uncounted:
        doubt = f"as many unknown fields as messages: is {message} the right type? "
        logger.warning(
            "%s: %s%s unknown fields or extensions in %s messages aren't carried: %s",
            *(made.path, doubt if unknown >= made.rows else "", f"{unknown + made.uncounted:,}"),
            *(f"{made.rows:,}", _listed(made.unknown_fields, made.uncounted)),
        )
    if made.dropped_fields:
        logger.info(
            "%s: values of declared fields that YaFF doesn't carry: %s",
            *(made.path, _listed(made.dropped_fields)),
        )


def _listed(counts: Mapping[str, int], others: int = 0) -> str:
    shown = [f"{name} ({count:,})" for name, count in counts.items()]
    return ", ".join([*shown, f"others ({others:,})"] if others else shown)
