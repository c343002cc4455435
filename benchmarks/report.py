"""What was measured as tables of Markdown, a row a bar: all of them, or those that the README shows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.timing import duration

# The races of README.md's table; `docs/speed.md` has all. A bar that is missed is in both.
README_RACES = (
    "sum of root.mid.leaf, flat, N messages in cache",
    "sum of root.mid.leaf, sparse, N messages in cache",
    "store after each read of root.mid.leaf, flat, N messages in cache",
    "five columns of N banners",
    "adding up a repeated double by a loop",
    "a look-up by text key in one map of N pairs",
    "comparing a text with a literal",
    "comparing each of a repeated text with a literal",
    "the hash of a text",
    "calling a jitted function that returns a number",
    "compiling a loop that reads three fields",
    "compiling a function with text, a map and repeated messages, cold",
    "a banner from its bytes, and one scalar",
    "reading a scalar (price), ten times a banner",
)
COLUMNS = ("what", "yaffjit", "time", "beside", "time", "bar", "measured", "met")
START, END = "<!-- measured -->\n", "<!-- /measured -->\n"


def without_numbers(name: str) -> str:
    """A race's name with N for the numbers, which are others in a quick run."""
    return re.sub(r"\b\d[\d,]*\b", "N", name)


def table(report: dict[str, Any], of_readme: bool = False) -> str:
    """A report's bars as a table of Markdown, with what they were measured on above it.

    Args:
        report: what ``--json`` writes.
        of_readme: only the README's races and what was missed.
    """
    lines = [f"| {' | '.join(COLUMNS)} |", "|---|---|--:|---|--:|---|--:|---|"]
    for race in report["races"]:
        for bar in race["bars"]:
            if not of_readme or without_numbers(race["name"]) in README_RACES or not bar["holds"]:
                lines.append(f"| {' | '.join(row(race, bar))} |")
    quick = " A quick run: fewer rows and repetitions." if report["quick"] else ""
    return f"{machine(report['environment'])}{quick}\n\n" + "\n".join(lines) + "\n"


def row(race: dict[str, Any], bar: dict[str, Any]) -> tuple[str, ...]:
    own, base = (time_of(race, bar[side]) for side in ("name", "base"))
    met = "yes" if bar["holds"] else "**no**"
    return race["name"], bar["name"], own, bar["base"], base, bar["limit"], bar["shown"], met


def time_of(race: dict[str, Any], contender: str) -> str:
    """The least time that a contender took for one object."""
    seconds = race["seconds"].get(contender)
    return duration(min(seconds) / race["objects"]) if seconds else ""


def machine(environment: dict[str, str]) -> str:
    """What the numbers depend on, in a line."""
    packages = ("python", "yaffjit", "numba", "numpy", "protobuf", "pyarrow", "ptars")
    versions = ", ".join(f"{name} {environment[name]}" for name in packages if name in environment)
    return f"{environment['cpu']}; {environment['compiler']}; {versions}."


def write(report: dict[str, Any], pages: Iterable[tuple[Path, bool]]) -> None:
    """Put a report's tables between the marks of pages: all bars, or with True those of the README."""
    for path, of_readme in pages:
        before, _, rest = path.read_text().partition(START)
        _, mark, after = rest.partition(END)
        if not mark:
            raise SystemExit(f"benchmarks: {path} has no lines {START.strip()} and {END.strip()}")
        path.write_text(f"{before}{START}\n{table(report, of_readme)}\n{END}{after}")
