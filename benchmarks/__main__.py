"""Runs the races and prints what they measured, each bar beside its ratio; JSON has every repetition.

``--markdown`` keeps what was measured in measured.json and writes it into the pages that show it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks import (
    access,
    arrow,
    build,
    builder,
    calls,
    columns,
    compare,
    compile,
    fields,
    files,
    getters,
    items,
    keys,
    mapping,
    page,
    repeated,
    report,
    sizes,
    transcode,
    trust,
    universal,
    views,
    wire,
)
from benchmarks.native import compiler_version
from benchmarks.timing import RACE_SECONDS, Amount, Curve, Race, Result, run
from yaffjit.render import text_table

SUITES: dict[str, Callable[[bool], Iterator[Race]]] = {
    "fields": fields.races,
    "getters": getters.races,
    "columns": columns.races,
    "arrow": arrow.races,
    "compile": compile.races,
    "views": views.races,
    "repeated": repeated.races,
    "items": items.races,
    "calls": calls.races,
    "mapping": mapping.races,
    "files": files.races,
    "access": access.races,
    "build": build.races,
    "builder": builder.races,
    "keys": keys.races,
    "universal": universal.races,
    "transcode": transcode.races,
    "trust": trust.races,
    "wire": wire.races,
}
AMOUNTS: dict[str, Callable[[bool], Iterable[Amount]]] = {
    "columns": columns.amounts,
    "files": files.amounts,
    "build": build.amounts,
    "universal": universal.amounts,
    "sizes": sizes.amounts,
}
ALL = dict.fromkeys([*SUITES, *AMOUNTS])
ROOT = Path(__file__).parents[1]
PAGES = ((ROOT / "README.md", True), (ROOT / "docs" / "speed.md", False))
PACKAGES = ("yaffjit", "numba", "llvmlite", "numpy", "protobuf", "pyarrow", "ptars", "msgspec")
UNITS = {"ns": 1e9, "ms": 1e3}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows and repetitions")
    parser.add_argument("--only", choices=ALL, help="one suite")
    parser.add_argument(
        "--seconds",
        type=float,
        default=RACE_SECONDS,
        help="fewer repetitions where a race would take longer (default: %(default)s)",
    )
    parser.add_argument("--json", metavar="FILE", help="write all repetitions to this file")
    parser.add_argument(
        "--markdown",
        action="store_true",
        help="write benchmarks/measured.json and the tables of README.md and docs/speed.md anew",
    )
    parser.add_argument("--html", metavar="FILE", help="write a page with plots to this file")
    parser.add_argument(
        "--compare", metavar="FILE", help="print the ratios that moved since --json wrote this file"
    )
    parser.add_argument(
        "--from", dest="source", metavar="FILE", help="measure nothing, take what --json wrote"
    )
    parsed = parser.parse_args()
    if parsed.markdown and parsed.only:
        parser.error("--markdown takes all suites, so not --only")
    if parsed.source:
        measured = json.loads(Path(parsed.source).read_text())
    else:
        measured = measure([parsed.only] if parsed.only else list(ALL), parsed.quick, parsed.seconds)
    lines = [bar_line(race, bar) for race in measured["races"] for bar in race["bars"]]
    print(f"\n{text_table(('bar', 'limit', 'measured', ''), lines)}")
    if parsed.json:
        Path(parsed.json).write_text(json.dumps(measured, indent=1) + "\n")
    if parsed.html:
        Path(parsed.html).write_text(page.page(measured), encoding="utf-8")
    if parsed.markdown:
        measured = report.rounded(measured)
        report.keep(measured, report.KEPT)
        report.write(measured, PAGES)
    if parsed.compare:
        print_moved(json.loads(Path(parsed.compare).read_text()), measured)
    return 1 if any(line[3] for line in lines) else 0


def print_moved(old: dict[str, Any], new: dict[str, Any]) -> None:
    """The bars whose measure moved since another report, and the races that only one of both has."""
    moved = compare.moved(old, new)
    print("\nmoved beyond the spread" if moved else "\nnothing moved beyond the spread")
    if moved:
        print(text_table(("bar", "before", "now", ""), moved))
    only = compare.left_out(old, new)
    if only:
        print("\nonly in one of the reports\n  " + "\n  ".join(only))


def measure(suites: list[str], quick: bool, seconds: float) -> dict[str, Any]:
    """Run all races of suites and print their times; returns what ``--json`` writes."""
    versions = environment()
    print("\n".join(f"{name}: {version}" for name, version in versions.items()))
    races: list[dict[str, Any]] = []
    for suite in suites:
        for race in SUITES[suite](quick) if suite in SUITES else ():
            result = run(race, 9 if quick else 51, seconds)
            print(f"\n{race.name}\n{times(result)}", flush=True)
            races.append({"suite": suite, **as_json(result)})
        for amount in AMOUNTS[suite](quick) if suite in AMOUNTS else ():
            if amount.curve and amount.curve.values:
                print(f"\n{amount.race}\n{values(amount.curve)}", flush=True)
            races.append({"suite": suite, **amount_json(amount)})
    versions["load"] += f", {load()}"
    return {"environment": versions, "quick": quick, "races": races}


def environment() -> dict[str, str]:
    """What the numbers depend on."""
    found = {"cpu": cpu_name(), "load": load()}
    found |= {"python": platform.python_version(), "compiler": compiler_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def load() -> str:
    """How many processes were running or waiting in the last minute, on the mean."""
    return f"{os.getloadavg()[0]:.1f}"


def cpu_name() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]}, {len(names)} cores" if names else platform.processor() or platform.machine()


def times(result: Result) -> str:
    """Medians and minima of one call of each contender, per object."""
    scale = UNITS[result.race.unit[:2]] / result.race.count
    rows = [
        (name, f"{statistics.median(seconds) * scale:,.2f}", f"{min(seconds) * scale:,.2f}")
        for name, seconds in result.seconds.items()
    ]
    unit = result.race.unit
    return text_table(
        ("", f"median {unit}", f"least {unit}"), rows, right=(f"median {unit}", f"least {unit}")
    )


def values(curve: Curve) -> str:
    """What a curve draws at its point, of each contender."""
    rows = [(name, f"{value:,.1f}") for name, value in (curve.values or {}).items()]
    return text_table(("", curve.unit), rows, right=(curve.unit,))


def bar_line(race: dict[str, Any], bar: dict[str, Any]) -> tuple[str, str, str, str]:
    beside = f" / {bar['base']}" if bar["base"] else ""
    verdict = "" if bar["holds"] else "MISSED"
    return f"{race['name']}: {bar['name']}{beside}", bar["limit"], bar["shown"], verdict


def amount_json(amount: Amount) -> dict[str, Any]:
    """A bar on bytes, in the form of a race without times."""
    limit, shown = amount.show()
    bar = {
        "name": amount.name,
        "base": "",
        "limit": limit,
        "measured": amount.nbytes,
        "shown": shown,
        "holds": amount.nbytes <= amount.limit,
    }
    curve = asdict(amount.curve) if amount.curve else None
    return {"name": amount.race, "objects": 1, "seconds": {}, "bars": [bar], "curve": curve}


def as_json(result: Result) -> dict[str, Any]:
    race = result.race
    bars = []
    for bar in race.bars:
        measured = bar.measured(result.seconds)
        limit, shown = bar.show(measured)
        bars.append(
            {
                "name": bar.name,
                "base": bar.base,
                "limit": limit,
                "measured": measured,
                "shown": shown,
                "holds": bar.holds(measured),
            }
        )
    curve = asdict(race.curve) if race.curve else None
    return {
        "name": race.name,
        "objects": race.count,
        "seconds": result.seconds,
        "bars": bars,
        "curve": curve,
    }


if __name__ == "__main__":
    sys.exit(main())
