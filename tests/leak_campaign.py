"""Boxes and unboxes views, text and records again and again: counts and memory stay as they were.

The whole campaign::

    python -m tests.leak_campaign [--calls 10000000]
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numba
from numba.core.runtime import _nrt_python, rtsys

import yaffjit as yj

SOURCE = """
syntax = "proto3";
package leaks;
message Part { int32 x = 1; string name = 2; }
message Row { int32 id = 1; string text = 2; bytes raw = 3; Part part = 4; repeated Part parts = 5;
  map<string, Part> named = 6; }
"""
ROW = {
    "id": 7,
    "text": "Übung macht den Meister",
    "raw": b"\xff\0",
    "part": {"x": 3, "name": "violin"},
    "parts": [{"x": 1}, {"x": 2}],
    "named": {"a": {"x": 5}},
}
# What the interpreter itself may keep of a round's calls, as in its free lists, which are full in the end.
# Blocks of memory too, but less than one a call.
MOST = {"blocks": 400, "objects": 20, "resident bytes": 1 << 20}
LEAST_CALLS = 100  # of a round
ROUNDS = 4  # in which a work is done
# One call of those that take long for so many of the others.
ERROR_SHARE = 10
SLOW_SHARE = 200


class Leak(AssertionError):
    """Something isn't where it was."""


class Wrong(ValueError):
    """A user's exception."""


@numba.njit
def number(m: Any) -> Any:
    return m.id


@numba.njit
def same(m: Any) -> Any:
    return m


@numba.njit
def within(m: Any) -> Any:
    return m.part, m.parts[1], m.named["a"]


@numba.njit
def texts(m: Any) -> Any:
    return m.text, m.raw, m.part.name


@numba.njit
def copied(m: Any, text: Any) -> Any:
    return str(m.text) + text


@numba.njit
def containers(m: Any) -> Any:
    return m.parts, m.named


@numba.njit
def rows(recs: Any) -> Any:
    return recs[1], len(recs)


@numba.njit
def raises(m: Any) -> Any:
    text = str(m.text)
    if m.id > 0:
        raise Wrong("so", m.id)
    return m, text


@numba.njit
def out_of_range(recs: Any) -> Any:
    first = recs[0]
    return recs[len(recs)], first


def raises_in_a_row(m: Any) -> Any:
    if m.id > 0:
        raise Wrong("so", m.id)
    return str(m.text)


@dataclass
class Work:
    """Something to do again and again.

    Attributes:
        name: of it.
        call: does it once; returns nothing that lives on.
        error: what it raises, if it does.
        share: one call for so many of the quick ones.
    """

    name: str
    call: Callable[[], object]
    error: Any = None
    share: int = 1


def works(folder: Path) -> Iterator[tuple[Work, list[object]]]:
    """What is done, each with objects whose references are counted."""
    source = folder / "leaks.proto"
    source.write_text(SOURCE)
    row_type = yj.load_schema(source)["leaks.Row"]
    buf = row_type.encode(ROW)
    broken = buf[:-9]
    wire = row_type.message_class(**ROW).SerializeToString()
    view = row_type.view(buf)
    wire_view = row_type.view_protobuf(wire)
    recs = yj.records(row_type, [buf] * 3)
    yj.build_index(folder / "x.arrow", row_type, [ROW] * 3)
    index = yj.open_index(folder / "x.arrow")
    part = index[1:]
    held = [buf, view, type(view), recs, recs._store, index, row_type, row_type.plan, index._files, wire_view]
    text = "ä"
    for name, call in (
        ("unbox a view", lambda: number(view)),
        ("box a view", lambda: same(view)),
        ("box views within", lambda: within(view)),
        ("box text", lambda: texts(view)),
        ("box a copy of text", lambda: copied(view, text)),
        ("box containers", lambda: containers(view)),
        ("box a row", lambda: rows(recs)),
        ("box a row of an index", lambda: rows(index)),
        ("box a row of a slice", lambda: rows(part)),
        ("a view of protobuf bytes", lambda: same(wire_view)),
        ("text of protobuf bytes", lambda: copied(wire_view, text)),
        ("rows in Python", lambda: index[1].part),
    ):
        yield Work(name, call), held
    for name, call, *error in (
        ("a view made anew", lambda: number(row_type.view(buf))),
        ("an exception", lambda: raises(view), Wrong),
        ("a row out of range", lambda: out_of_range(recs), IndexError),
        ("a view that is refused", lambda: row_type.view(broken), yj.VerifyError),
    ):
        yield Work(name, call, error[0] if error else None, ERROR_SHARE), held
    for name, call, *error in (
        ("columns", lambda: recs.columns("id", "text")),
        ("columns of no such field", lambda: recs.columns("id", "nothing"), yj.SchemaError),
        (
            "columns into what doesn't fit",
            lambda: recs.columns("id", out={"id": b""}),
            (TypeError, ValueError),
        ),
        ("records", lambda: yj.records(row_type, [buf] * 3)),
        ("records that are refused", lambda: yj.records(row_type, [buf, broken]), yj.VerifyError),
        ("map", lambda: recs.map(raises_in_a_row), Wrong),
        ("transcode", lambda: row_type.transcode([wire] * 3)),
        ("transcode what is cut", lambda: row_type.transcode([wire, wire[:-1]]), yj.DecodeError),
        ("transcode to protobuf", lambda: row_type.transcode(recs, representation="protobuf")),
        ("open an index", lambda: yj.open_index(folder / "x.arrow")),
        ("open no index", lambda: yj.open_index(source), yj.IndexFileError),
    ):
        yield Work(name, call, error[0] if error else None, SLOW_SHARE), held


def repeat(work: Work, calls: int) -> None:
    call = work.call
    if work.error is None:
        for _ in range(calls):
            call()
        return
    raised = 0
    for _ in range(calls):
        try:
            call()
        except work.error:
            raised += 1
    if raised != calls:
        raise AssertionError(f"{work.name}: {calls - raised} of {calls} calls raised nothing")


def check(work: Work, held: list[object], calls: int) -> int:
    """Do it so often in some rounds, one of which must leave nothing behind; returns how often it was.

    Raises Leak, with what each of them left behind, and both numbers of the last one.
    """
    each = max(LEAST_CALLS, -(-calls // ROUNDS))
    repeat(work, LEAST_CALLS)
    _counts(held)  # what counting makes itself is there
    after = _counts(held)
    grown: set[str] | None = None
    for _ in range(ROUNDS):
        before = after
        repeat(work, each)
        after = _counts(held)
        most = {**MOST, "blocks": min(MOST["blocks"], each * 9 // 10)}
        more = {name for name in before if after[name] - before[name] > most.get(name, 0)}
        grown = more if grown is None else grown & more
    if grown:
        found = [f"{after[name]:,} {name} ({before[name]:,} before)" for name in sorted(grown)]
        raise Leak(f"{work.name}: after {each:,} calls {', '.join(found)}")
    return each * ROUNDS


def _counts(held: list[object]) -> dict[str, int]:
    gc.collect()
    stats = rtsys.get_allocation_stats()
    found = {
        f"references to {number} ({type(each).__name__})": sys.getrefcount(each)
        for number, each in enumerate(held)
    }
    found["allocations of numba"] = stats.alloc - stats.free
    found["records of numba"] = stats.mi_alloc - stats.mi_free
    found["objects"] = len(gc.get_objects())
    found["blocks"] = sys.getallocatedblocks()
    with suppress(OSError):
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        found["resident bytes"] = pages * os.sysconf("SC_PAGE_SIZE")
    return found


def run(calls: int, folder: Path, tell: Callable[[str], object] = lambda line: None) -> int:
    """Make at least so many calls; returns how many there were."""
    _nrt_python.memsys_enable_stats()
    gc.collect()
    gc.freeze()  # what is there already needn't be looked at each time
    try:
        return _run(calls, list(works(folder)), tell)
    finally:
        gc.unfreeze()


def _run(calls: int, all_works: list[tuple[Work, list[object]]], tell: Callable[[str], object]) -> int:
    each = -(-calls // sum(work.share == 1 for work, _ in all_works))
    made = 0
    for work, held in all_works:
        begin = time.perf_counter()
        calls = check(work, held, each // work.share)
        made += calls
        tell(f"{work.name}: {calls:,} calls in {time.perf_counter() - begin:.1f} s")
    return made


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.leak_campaign", description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000_000, help="(default: 10,000,000)")
    parsed = parser.parse_args()
    with TemporaryDirectory(prefix="yaffjit-leaks-") as name:
        made = run(parsed.calls, Path(name), print)
    print(f"{made:,} calls: nothing is left")
    return 0


if __name__ == "__main__":
    sys.exit(main())
