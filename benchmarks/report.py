"""What was measured as tables of Markdown, a row a bar: all of them, or those that the README shows.

The pages show what one checked-in file has, `measured.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.reasons import REASONS
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
KEPT = Path(__file__).with_name("measured.json")
DIGITS = 4  # of kept seconds
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


def why(report: dict[str, Any]) -> str:
    """A list of Markdown: each bar that is missed, and the reason that was found."""
    lines = []
    for race in report["races"]:
        for bar in race["bars"]:
            if not bar["holds"]:
                own = f"{race['name']}: {bar['name']}" + (f" beside {bar['base']}" if bar["base"] else "")
                lines.append(f"* {own}, {bar['limit']}, measured {bar['shown']}. {reason(race, bar)}")
    return "\n".join(lines)


def reason(race: dict[str, Any], bar: dict[str, Any]) -> str:
    """Why a bar is missed, or that it isn't known."""
    key = (without_numbers(race["name"]), bar["name"], bar["base"])
    return REASONS.get(key, "The reason hasn't been found.")


def rounded(value: Any) -> Any:
    """A report with as many digits of its floats as are worth keeping."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    return [rounded(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def keep(report: dict[str, Any], path: Path) -> None:
    """Write a report, a race a line, so that a difference shows which races were measured anew."""
    head = {name: value for name, value in report.items() if name != "races"}
    races = ",\n".join(json.dumps(race) for race in report["races"])
    path.write_text(f'{json.dumps(head)[:-1]}, "races": [\n{races}\n]}}\n')


def write(report: dict[str, Any], pages: Iterable[tuple[Path, bool]]) -> None:
    """Put a report's tables between the marks of pages: all bars, or with True those of the README."""
    for path, of_readme in pages:
        before, _, rest = path.read_text().partition(START)
        _, mark, after = rest.partition(END)
        if not mark:
            raise SystemExit(f"benchmarks: {path} has no lines {START.strip()} and {END.strip()}")
        path.write_text(f"{before}{START}{shown(report, of_readme)}{END}{after}")


def shown(report: dict[str, Any], of_readme: bool) -> str:
    """What stands between the marks of a page."""
    reasons = why(report)
    if reasons and not of_readme:
        reasons = f"## What is missed, and why\n\n{reasons}\n\n"
    return f"\n{table(report, of_readme)}\n{'' if of_readme else reasons}"
