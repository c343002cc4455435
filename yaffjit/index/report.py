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


def summary(made: BuiltIndex) -> list[str]:
    """Lines for people, after the one with the path, rows and bytes."""
    lines = []
    if made.read_nbytes:
        share = f", {100 * made.nbytes / made.read_nbytes:.0f}% of" if made.nbytes else " of"
        lines.append(f"{share.removeprefix(', ')} {made.read_nbytes:,} bytes of protobuf messages")
    layouts = [f"{count:,} {layout}" for layout, count in made.layouts.items() if count]
    if len(layouts) > 1:
        lines.append(f"layouts: {', '.join(layouts)}")
    if made.unknown_fields or made.uncounted:
        lines.append(
            f"unknown fields and extensions not carried: {_listed(made.unknown_fields, made.uncounted)}"
        )
    if made.dropped_fields:
        lines.append(f"declared fields that YaFF doesn't carry: {_listed(made.dropped_fields)}")
    if made.nulls:
        lines.append(f"null rows: {made.nulls:,}")
    if made.bad:
        lines.append(f"bad messages: {made.bad:,}")
        lines += [f"  {error}" for error in made.errors]
        if made.bad > len(made.errors):
            lines.append(f"  and {made.bad - len(made.errors):,} more")
    if made.seconds:
        rate = made.rows / made.seconds
        lines.append(f"{made.seconds:.1f} s, {rate:,.0f} messages a second")
    return lines
