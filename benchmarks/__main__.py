"""Runs the races and prints what they measured, each bar beside its ratio; JSON has every repetition."""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks import columns, compile, getters, repeated, views
from benchmarks.native import compiler_version
from benchmarks.timing import Race, Result, run
from yaffjit.render import text_table

SUITES: dict[str, Callable[[bool], Iterator[Race]]] = {
    "getters": getters.races,
    "columns": columns.races,
    "compile": compile.races,
    "views": views.races,
    "repeated": repeated.races,
}
PACKAGES = ("yaffjit", "numba", "llvmlite", "numpy", "protobuf", "pyarrow", "ptars")
UNITS = {"ns": 1e9, "ms": 1e3}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows and repetitions")
    parser.add_argument("--only", choices=SUITES, help="one suite")
    parser.add_argument("--json", metavar="FILE", help="write all repetitions to this file")
    parsed = parser.parse_args()
    versions = environment()
    print("\n".join(f"{name}: {version}" for name, version in versions.items()))
    suites = [parsed.only] if parsed.only else list(SUITES)
    report: list[dict[str, Any]] = []
    bars: list[tuple[str, str, str, str]] = []
    for suite in suites:
        for race in SUITES[suite](parsed.quick):
            result = run(race, repetitions=9 if parsed.quick else 51)
            print(f"\n{race.name}\n{times(result)}", flush=True)
            lines = bar_lines(result)
            bars += lines
            report.append(as_json(result))
    if "columns" in suites:
        bars.append(memory_line(parsed.quick))
    print(f"\n{text_table(('bar', 'limit', 'measured', ''), bars)}")
    if parsed.json:
        Path(parsed.json).write_text(json.dumps({"environment": versions, "races": report}, indent=1) + "\n")
    return 1 if any(line[3] for line in bars) else 0


def environment() -> dict[str, str]:
    """What the numbers depend on."""
    found = {"cpu": cpu_name(), "python": platform.python_version(), "compiler": compiler_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


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


def bar_lines(result: Result) -> list[tuple[str, str, str, str]]:
    lines = []
    for bar in result.race.bars:
        measured = bar.measured(result.seconds)
        limit, shown = bar.show(measured)
        verdict = "" if bar.holds(measured) else "MISSED"
        lines.append((f"{result.race.name}: {bar.name} / {bar.base}", limit, shown, verdict))
    return lines


def memory_line(quick: bool) -> tuple[str, str, str, str]:
    nbytes = columns.extra_bytes(quick)
    verdict = "" if nbytes <= columns.MAX_EXTRA_BYTES else "MISSED"
    limit = f"at most {columns.MAX_EXTRA_BYTES / 1e6:g} MB"
    return "five columns into ready arrays: extra memory", limit, f"{nbytes / 1e6:.1f} MB", verdict


def as_json(result: Result) -> dict[str, Any]:
    race = result.race
    return {
        "name": race.name,
        "objects": race.count,
        "seconds": result.seconds,
        "bars": [
            {
                "name": bar.name,
                "base": bar.base,
                "limit": bar.show(0.0)[0],
                "measured": bar.measured(result.seconds),
                "holds": bar.holds(bar.measured(result.seconds)),
            }
            for bar in race.bars
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
