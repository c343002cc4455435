"""Iterators that are half-consumed when the interpreter ends: nothing is printed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROTO = """syntax = "proto3";
message A { int32 x = 1; repeated int32 r = 2; map<string, int32> m = 3; string s = 4; }
"""
HALF = """
import numba
import yaffjit as yj

A = yj.load_schema("a.proto")["A"]
rows = [{"x": row, "s": "a", "r": [1, 2], "m": {"a": 1, "b": 2}} for row in range(5)]
yj.build_index("a.arrow", A, rows)
yj.build_index("packed.arrow", A, rows, compression="zstd")
with open("a.pb", "wb") as file:
    for row in rows:
        data = A.message_class(**row).SerializeToString()
        file.write(bytes([len(data)]) + data)
index = yj.open_index("a.arrow")
recs = yj.records(A, [A.encode(row) for row in rows])
cols = recs.columns("r", "s", "m")
kept = [iter(each) for each in (index, index.take([1, 2]), recs, recs[1:], yj.concat([recs, index]))]
kept += [iter(each) for each in (recs[0].r, recs[0].m, cols["r"], cols["s"], cols["m"])]
kept += [reversed(recs), recs.batches(2), yj.open_packed("packed.arrow").batches(), yj.read_delimited("a.pb")]
for each in kept:
    next(iter(each))
function = numba.njit(lambda x: x)
function(1)
function.kept = kept  # numba keeps it until all modules are emptied
del kept, each
print("done")
"""


def test_half_consumed_iterators(tmp_path: Path) -> None:
    (tmp_path / "a.proto").write_text(PROTO)
    done = subprocess.run(
        [sys.executable, "-c", HALF],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
