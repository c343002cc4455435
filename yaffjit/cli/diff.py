"""`yaffjit diff`: which changes between two schemas are safe, for people and for CI."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from yaffjit.cli.options import add_command, add_json_option, add_schema_options, print_json
from yaffjit.cli.sources import SOURCES, schema_source
from yaffjit.errors import YaffjitError
from yaffjit.terminal import complain, paint

if TYPE_CHECKING:
    from yaffjit.evolve import Change, SchemaComparison, Verdict
    from yaffjit.evolve.model import Grade

EXIT_CODES: dict[Grade, int] = {"safe": 0, "conditional": 1, "unsafe": 2}
EXIT_UNREADABLE = 2
FORMATS = ("yaff", "protobuf", "json")
COUNTED = FORMATS[:2]
COLOURS = {"safe": "green", "conditional": "yellow", "unsafe": "red"}

_EXIT_CODES_TEXT = """
exit codes:
  0  nothing has changed, or all changes are safe
  1  some are conditional: they are safe for some values, or in some order of roll-out
     (0 with --allow-conditional)
  2  some are unsafe; also wrong usage, and schemas that can't be read
"""


def add_diff(commands: Any) -> None:
    parser = add_command(
        commands,
        "diff",
        _diff,
        "say which changes between two schemas are safe for data and readers that exist",
        "yaffjit diff old.proto new.proto\n"
        "yaffjit diff old.proto new.proto --message ads.Banner      it and what it reaches\n"
        "yaffjit diff banners.arrow new.proto                       an index has its schema in it\n"
        "yaffjit diff old.proto new.proto --for protobuf            YaFF's verdicts don't count\n"
        "yaffjit diff old.proto new.proto --json --allow-conditional",
    )
    parser.epilog = f"{parser.epilog}{_EXIT_CODES_TEXT}"
    parser.add_argument("old", type=schema_source, metavar="OLD", help=f"the schema before: {SOURCES}")
    parser.add_argument("new", type=schema_source, metavar="NEW", help="the schema after, likewise")
    parser.add_argument(
        "--message", "-m", metavar="MESSAGE", help="compare only this message type and what it reaches"
    )
    parser.add_argument(
        "--for",
        dest="formats",
        action="append",
        choices=FORMATS,
        metavar="FORMAT",
        help="whose verdicts count, may come again: yaff, protobuf, json (only names are looked at for json; "
        "default: yaff and protobuf)",
    )
    parser.add_argument(
        "--allow-conditional", action="store_true", help="exit with 0 where no change is unsafe"
    )
    parser.add_argument("--quiet", "-q", action="store_true", help="don't print changes that are safe")
    add_json_option(parser)
    add_schema_options(parser)


def _diff(parsed: argparse.Namespace) -> int:
    from yaffjit.evolve import compare_schemas

    try:
        comparison = compare_schemas(
            parsed.old, parsed.new, parsed.message, include=parsed.include, slice=parsed.slice
        )
    except (YaffjitError, OSError) as error:
        complain(f"error: {error}")
        return EXIT_UNREADABLE
    formats = tuple(parsed.formats or COUNTED)
    grade = comparison.grade(formats)
    if parsed.json:
        print_json({**comparison.to_dict(), "grade": grade, "formats": formats})
    else:
        for line in diff_lines(comparison, formats, parsed.quiet):
            print(line)
    if grade == "conditional" and parsed.allow_conditional:
        return 0
    return EXIT_CODES[grade]


def diff_lines(comparison: SchemaComparison, formats: tuple[str, ...], quiet: bool = False) -> Iterator[str]:
    """A comparison as text: a block a change, then how many there are."""
    for change in comparison.changes:
        if not quiet or change.grade(formats) != "safe":
            yield from _block(change, formats)
    counts = {grade: comparison.count(grade, formats) for grade in reversed(EXIT_CODES)}
    total = len(comparison.changes)
    if not total:
        yield "no changes"
        return
    shown = ", ".join(f"{count} {grade}" for grade, count in counts.items() if count)
    yield f"{total} change{'s' * (total != 1)}: {shown}"


def _block(change: Change, formats: tuple[str, ...]) -> Iterator[str]:
    grade = change.grade(formats)
    yield f"{paint(f'{grade:11}', COLOURS[grade])}  {change.where}: {change.what}"
    if change.yaff == change.protobuf:
        told: list[tuple[str, Verdict]] = [("", change.yaff)]
    else:
        told = [(f"YaFF: {change.yaff.grade}. ", change.yaff)]
        told.append((f"protobuf: {change.protobuf.grade}. ", change.protobuf))
    if change.json is not None:
        told.append((f"JSON: {change.json.grade}. ", change.json))
    for name, verdict in told:
        yield f"             {name}{verdict.rule}"
        if verdict.advice:
            yield f"             -> {verdict.advice}"
