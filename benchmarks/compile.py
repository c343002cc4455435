"""What compiling a function costs: wide schemas, numpy's structured arrays, and a second process."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np

import yaffjit as yj
from benchmarks.timing import Bar, Curve, Race

PLAIN_SCRIPT = '''\
"""Calls a function that is compiled once and kept on disk; nothing of yaffjit."""

import sys

# They load themselves with numba's first function: yaffjit, and a peer of other races.
sys.modules |= dict.fromkeys(("yaffjit", "awkward"))

import numba


@numba.njit(cache=True)
def add(a, b):
    return a + b


print(add(1.0, 2.0))
'''

CACHED_SCRIPT = '''\
"""Opens an index and calls a function that is compiled once and kept on disk."""

import sys

sys.modules["awkward"] = None  # a peer of other races, which loads itself with numba's first function

import numba
import yaffjit as yj


@numba.njit(cache=True)
def total(rows):
    result = 0.0
    for row in rows:
        result += row.f1 + row.f2 * row.f3
    return result


print(total(yj.open_index_unchecked(sys.argv[1])), total.stats.cache_hits)
'''

COLD_SCRIPT = '''\
"""Prints how many seconds the first compilation of a function took: text, a map, repeated messages."""

import sys
import time

import numba
import yaffjit as yj


def worth(items):
    total = 0.0
    for item in items:
        if item.kind == "violin" and item.title.startswith("new"):
            total += item.by_name.get("size", 1.0)
        for part in item.parts:
            if part.name != item.kind:
                total += part.price
    return total


Item = yj.load_schema(sys.argv[1])["items.Item"]
parts = [{"name": "bow", "price": 2.0}, {"name": "violin", "price": 8.0}]
content = {"kind": "violin", "title": "new", "by_name": {"size": 0.5}, "parts": parts}
items = yj.records(Item, [Item.encode(content)])
start = time.perf_counter()
result = numba.njit(worth)(items)
seconds = time.perf_counter() - start
assert result == worth([row.to_message() for row in items]) == 2.5
print(seconds)
'''


WIDTHS = (10, 100, 1_000, 8_000)
QUICK_WIDTHS = (10, 100)


def races(quick: bool) -> Iterator[Race]:
    with tempfile.TemporaryDirectory(prefix="yaffjit-benchmark-") as name:
        folder = Path(name)
        narrow, wide = (few_records(folder, fields) for fields in (10, 1000))
        structured = np.zeros(3, [(f"f{number}", np.float64) for number in range(1, 11)])
        yield Race(
            "compiling a loop that reads three fields",
            1,
            {
                "yaffjit, 10 fields": lambda: compiled(narrow),
                "yaffjit, 1000 fields": lambda: compiled(wide),
                "numpy structured array, 10 fields": lambda: compiled(structured),
            },
            [
                Bar("yaffjit, 1000 fields", "yaffjit, 10 fields", at_most=1.25),
                Bar("yaffjit, 10 fields", "numpy structured array, 10 fields", at_most=2.0),
            ],
            unit="ms to compile",
            checked=False,
            repetitions=3 if quick else 7,
        )
        for fields in QUICK_WIDTHS if quick else WIDTHS:
            yield by_width(folder, fields, quick)
        yield cold(folder, quick)
        yield imports(folder, quick)
        yield second_process(folder, narrow, quick)


def by_width(folder: Path, fields: int, quick: bool) -> Race:
    """Compiling the loop for a message with so many fields, in each representation."""
    rows = few_records(folder, fields)
    raw = [row.SerializeToString() for row in rows]
    unread = yj.records(row_type(folder, fields), raw, representation="protobuf")
    return Race(
        f"compiling a loop that reads three of {fields:,} fields",
        1,
        {
            "yaffjit": lambda: compiled(rows),
            "yaffjit, protobuf's bytes": lambda: compiled(unread),
        },
        unit="ms to compile",
        checked=False,
        repetitions=3 if quick else 7,
        curve=Curve("time to compile a loop that reads three fields", "fields of the message", fields),
    )


def imports(folder: Path, quick: bool) -> Race:
    """What importing takes, in processes of their own."""
    return Race(
        "importing in a new process",
        1,
        {
            "yaffjit": process(["-c", "import yaffjit"], folder),
            "numba": process(["-c", "import numba"], folder),
            "google.protobuf": process(["-c", "import google.protobuf.message"], folder),
            "python alone": process(["-c", "pass"], folder),
        },
        [Bar("yaffjit", "numba", at_most=0.5)],
        unit="ms a process",
        checked=False,
        repetitions=5 if quick else 11,
    )


def cold(folder: Path, quick: bool) -> Race:
    """Processes that compile a function, with nothing compiled before and nothing kept on disk."""
    script = folder / "cold.py"
    script.write_text(COLD_SCRIPT)
    schema = str(Path(__file__).with_name("items.proto"))

    def call() -> float:
        with tempfile.TemporaryDirectory(dir=folder) as empty:
            return float(process([str(script), schema], folder, Path(empty))())

    call()  # Python's own bytecode is there, as after an installation
    return Race(
        "compiling a function with text, a map and repeated messages, cold",
        1,
        {"yaffjit": call},
        [Bar("yaffjit", seconds=1.5)],
        unit="ms to compile",
        checked=False,
        repetitions=3 if quick else 7,
        reported=True,
    )


def few_records(folder: Path, fields: int) -> Any:
    Row = row_type(folder, fields)
    return yj.records(Row, [Row.encode({"f1": 1.0, "f2": 2.0, "f3": 3.0})] * 3)


def row_type(folder: Path, fields: int) -> yj.MessageType:
    lines = "\n".join(f"  double f{number} = {number};" for number in range(1, fields + 1))
    path = folder / f"wide{fields}.proto"
    path.write_text(f'syntax = "proto3";\npackage wide{fields};\nmessage Row {{\n{lines}\n}}\n')
    return yj.load_schema(path)[f"wide{fields}.Row"]


def compiled(rows: Any) -> float:
    """Compile a new function for ``rows`` and call it."""

    def total(rows: Any) -> float:
        result = 0.0
        for row in range(len(rows)):
            result += rows[row].f1 + rows[row].f2 * rows[row].f3
        return result

    return float(numba.njit(total)(rows))


def second_process(folder: Path, rows: Any, quick: bool) -> Race:
    """A process that opens an index and calls a cached function, and one that only imports numba."""
    index, script = folder / "rows.arrow", folder / "cached.py"
    yj.build_index(index, rows.plan, rows)
    script.write_text(CACHED_SCRIPT)
    plain = folder / "plain.py"
    plain.write_text(PLAIN_SCRIPT)
    call = process(["-W", "ignore", str(script), str(index)], folder)
    call()
    printed = call()
    if "Counter()" in printed:
        raise AssertionError(f"the second process didn't take the function from numba's cache: {printed}")
    return Race(
        "a second process: open an index, call a cached function of three fields",
        1,
        {
            "import numba": process(["-c", "import numba"], folder),
            "numba alone, a cached function": process(["-W", "ignore", str(plain)], folder),
            "yaffjit": call,
        },
        [Bar("yaffjit", "import numba", seconds_more=0.4)],
        unit="ms a process",
        checked=False,
        repetitions=5 if quick else 11,
    )


def process(arguments: list[str], folder: Path, cache: Path | None = None) -> Callable[[], str]:
    """A function that runs Python with these arguments and returns what it printed.

    Args:
        folder: where Python keeps bytecode, which it would else do beside the sources, if at all.
        cache: where numba keeps machine code; in ``folder`` if None.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        "NUMBA_CACHE_DIR": str(cache or folder / "cache"),
    }

    def call() -> str:
        command = [sys.executable, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    return call
