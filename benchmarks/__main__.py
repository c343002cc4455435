"""Runs the races and prints what they measured, each bar beside its ratio; JSON has every repetition.

``--markdown`` writes what was measured into the pages that show it.
"""

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

from benchmarks import (
    access,
    build,
    calls,
    columns,
    compile,
    files,
    getters,
    items,
    keys,
    mapping,
    repeated,
    report,
    transcode,
    universal,
    views,
)
from benchmarks.native import compiler_version
from benchmarks.timing import Race, Result, run
from yaffjit.render import text_table

SUITES: dict[str, Callable[[bool], Iterator[Race]]] = {
    "getters": getters.races,
    "columns": columns.races,
    "compile": compile.races,
    "views": views.races,
    "repeated": repeated.races,
    "items": items.races,
    "calls": calls.races,
    "mapping": mapping.races,
    "files": files.races,
    "access": access.races,
    "build": build.races,
    "keys": keys.races,
    "universal": universal.races,
    "transcode": transcode.races,
}
ROOT = Path(__file__).parents[1]
PAGES = ((ROOT / "README.md", True), (ROOT / "docs" / "speed.md", False))
PACKAGES = ("yaffjit", "numba", "llvmlite", "numpy", "protobuf", "pyarrow", "ptars", "msgspec")
UNITS = {"ns": 1e9, "ms": 1e3}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows and repetitions")
    parser.add_argument("--only", choices=SUITES, help="one suite")
    parser.add_argument("--json", metavar="FILE", help="write all repetitions to this file")
    parser.add_argument(
        "--markdown", action="store_true", help="write the tables of README.md and docs/speed.md anew"
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
        measured = measure([parsed.only] if parsed.only else list(SUITES), parsed.quick)
    lines = [bar_line(race, bar) for race in measured["races"] for bar in race["bars"]]
    print(f"\n{text_table(('bar', 'limit', 'measured', ''), lines)}")
    if parsed.json:
        Path(parsed.json).write_text(json.dumps(measured, indent=1) + "\n")
    if parsed.markdown:
        report.write(measured, PAGES)
    return 1 if any(line[3] for line in lines) else 0


def measure(suites: list[str], quick: bool) -> dict[str, Any]:
    """Run all races of suites and print their times; returns what ``--json`` writes."""
    versions = environment()
    print("\n".join(f"{name}: {version}" for name, version in versions.items()))
    races: list[dict[str, Any]] = []
    for suite in suites:
        for race in SUITES[suite](quick):
            result = run(race, repetitions=9 if quick else 51)
            print(f"\n{race.name}\n{times(result)}", flush=True)
            races.append(as_json(result))
    if "columns" in suites:
        races.append(memory(quick))
    if "files" in suites:
        races.append(page_cache(quick))
    if "build" in suites:
        races.append(build_memory(quick))
    if "universal" in suites:
        races.append(size_of_map(quick))
    return {"environment": versions, "quick": quick, "races": races}


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


def bar_line(race: dict[str, Any], bar: dict[str, Any]) -> tuple[str, str, str, str]:
    beside = f" / {bar['base']}" if bar["base"] else ""
    verdict = "" if bar["holds"] else "MISSED"
    return f"{race['name']}: {bar['name']}{beside}", bar["limit"], bar["shown"], verdict


def memory(quick: bool) -> dict[str, Any]:
    """The bar on memory, in the form of a race without times."""
    nbytes = columns.extra_bytes(quick)
    bar = {
        "name": "extra memory",
        "base": "",
        "limit": f"at most {columns.MAX_EXTRA_BYTES / 1e6:g} MB",
        "measured": nbytes,
        "shown": f"{nbytes / 1e6:.1f} MB",
        "holds": nbytes <= columns.MAX_EXTRA_BYTES,
    }
    return {"name": "five columns into ready arrays", "objects": 1, "seconds": {}, "bars": [bar]}


def page_cache(quick: bool) -> dict[str, Any]:
    """The bar on what opening an index loads, in the form of a race without times."""
    nbytes, limit = files.resident_bytes(quick)
    bar = {
        "name": "loaded",
        "base": "",
        "limit": f"at most {limit / 1e6:.2f} MB",
        "measured": nbytes,
        "shown": f"{nbytes / 1e6:.2f} MB",
        "holds": nbytes <= limit,
    }
    return {"name": "opening an index file unchecked", "objects": 1, "seconds": {}, "bars": [bar]}


def build_memory(quick: bool) -> dict[str, Any]:
    """The bar on the memory of a build, in the form of a race without times."""
    nbytes = build.peak_bytes(quick)
    bar = {
        "name": "memory of the process",
        "base": "",
        "limit": f"at most {build.MEMORY / 1e6:.0f} MB",
        "measured": nbytes,
        "shown": f"{nbytes / 1e6:.0f} MB",
        "holds": nbytes <= build.MEMORY,
    }
    return {"name": build.NAME, "objects": 1, "seconds": {}, "bars": [bar]}


def size_of_map(quick: bool) -> dict[str, Any]:
    """The bar on the size of a universal document, in the form of a race without times."""
    sizes = universal.sizes(quick)
    rows = [(name, f"{nbytes:,}") for name, nbytes in sizes.items()]
    print(f"\na map of pairs\n{text_table(('', 'bytes'), rows, right=('bytes',))}", flush=True)
    own, other = sizes["yaffjit"], sizes.get(universal.PEER)
    bars = []
    if other is not None:
        bars.append(
            {
                "name": "size",
                "base": "",
                "limit": f"at most {other:,} bytes",
                "measured": own,
                "shown": f"{own:,} bytes",
                "holds": own <= other,
            }
        )
    return {"name": "the size of a map of pairs", "objects": 1, "seconds": {}, "bars": bars}


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
    return {"name": race.name, "objects": race.count, "seconds": result.seconds, "bars": bars}


if __name__ == "__main__":
    sys.exit(main())
