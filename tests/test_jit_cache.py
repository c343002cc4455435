"""numba's disk cache under our types: hits in another process, misses after a change, never damaged."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import jit_kinds
import pytest

import yaffjit
from yaffjit.jit import keys
from yaffjit.jit.paths import Paths
from yaffjit.jit.types import OneofType, RecordsIteratorType

REPOSITORY = Path(__file__).parents[1]

SCRIPT = """
import json
import sys

import numba

import yaffjit


@numba.njit(cache=True)
def read(m):
    return m.first, m.second, m.child.first, m.child


@numba.njit(cache=True)
def total(records):
    found = 0
    for m in records:
        found += m.first
    return found


@numba.njit(cache=True)
def row_of(records, row):
    return records[row].second


results = []
for path in sys.argv[1:]:
    message_type = yaffjit.load_schema(path)["cached.M"]
    buffer = message_type.encode({"first": 7, "second": 8, "child": {"first": 9}})
    *numbers, child = read(message_type.view(buffer))
    records = yaffjit.records(message_type, [buffer] * 3)
    results.append([*numbers, child.first, total(records), row_of(records, -1)])
    try:
        row_of(records, 3)
    except IndexError as error:
        results[-1].append(str(error))
hits = [sum(f.stats.cache_hits.values()) for f in (read, total, row_of)]
misses = [sum(f.stats.cache_misses.values()) for f in (read, total, row_of)]
print(json.dumps([results, hits, misses]))
"""

FIELDS = {
    "one": "int64 first = 1; int64 second = 2; M child = 3;",
    "two": "int64 second = 1; int64 first = 2; M child = 3;",
}
EXPECTED = [7, 8, 9, 9, 21, 8, "row 3 is out of range: there are 3 rows"]


def run(folder: Path, *versions: str) -> Any:
    """Results, hits and misses of a process that uses these versions of the schema in turn."""
    script = folder / "reader.py"
    if not script.exists():
        script.write_text(SCRIPT)
        for version, fields in FIELDS.items():
            source = f'syntax = "proto3"; package cached; message M {{ {fields} }}'
            (folder / f"{version}.proto").write_text(source)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, str(script), *(str(folder / f"{version}.proto") for version in versions)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_second_process_hits_and_another_schema_misses(tmp_path: Path) -> None:
    assert run(tmp_path, "one") == [[EXPECTED], [0, 0, 0], [1, 1, 1]]
    assert run(tmp_path, "one") == [[EXPECTED], [1, 1, 1], [0, 0, 0]]
    # This process has never seen the schema of the entries that it leaves in the cache.
    assert run(tmp_path, "two") == [[EXPECTED], [0, 0, 0], [1, 1, 1]]
    assert run(tmp_path, "two", "one") == [[EXPECTED, EXPECTED], [2, 2, 2], [0, 0, 0]]


def all_types() -> list[Any]:
    mp = jit_kinds.message_type("dynamic").plan
    records = jit_kinds.message_type("dynamic").records_type
    paths = Paths(mp, ("plain_int32", "child.plain_int32"), ("child",))
    view = jit_kinds.message_type("dynamic").numba_type
    return [view, records, RecordsIteratorType(mp), OneofType(mp, "pick"), paths._numba_type_]


@pytest.mark.parametrize("index", range(5))
def test_a_type_pickles_as_its_key_alone(index: int) -> None:
    numba_type = all_types()[index]
    data = pickle.dumps(numba_type)
    assert len(data) < 600
    assert pickle.loads(data) is numba_type


@pytest.mark.parametrize("position", [1, 3])
def test_a_key_of_another_schema_or_version_stays_itself(position: int) -> None:
    key = list(all_types()[4].key)
    key[position] = "0" * len(key[position])
    foreign = keys.rebuild(tuple(key))
    assert type(foreign) is keys.ForeignType
    assert foreign not in all_types()
    again = pickle.loads(pickle.dumps(foreign))
    assert again is foreign
    assert again.key == tuple(key)
    assert pickle.dumps(foreign).count(b"Paths") <= 2


def test_types_differ_where_their_keys_do() -> None:
    made = [*all_types(), jit_kinds.message_type("flat").numba_type]
    mp = jit_kinds.message_type("dynamic").plan
    made += [Paths(mp, ("plain_int32",))._numba_type_, Paths(mp, (), ("plain_int32",))._numba_type_]
    assert len(set(made)) == len({t.name for t in made}) == len({t.key for t in made}) == 8


def test_a_change_of_our_sources_changes_the_hash(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = Path(keys.__file__).parent
    for name in ("a.py", "emit/b.py", "emit/c.txt", "__pycache__/d.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    monkeypatch.setattr(keys.importlib.resources, "files", lambda name: tmp_path)
    compute = keys.source_hash.__wrapped__
    before = compute()
    (tmp_path / "emit/c.txt").write_text("2")
    (tmp_path / "__pycache__/d.py").write_text("2")
    assert compute() == before
    (tmp_path / "emit/b.py").write_text("2")
    changed = compute()
    assert changed != before
    (tmp_path / "emit/b.py").rename(tmp_path / "emit/e.py")
    assert compute() not in (before, changed)
    assert (package / "emit" / "yaff.py").exists()


def test_a_function_that_uses_a_getter_is_not_cached(tmp_path: Path) -> None:
    """Its argument types don't tell the schema, so a cached one would outlive a change of it."""
    script = tmp_path / "uses_getter.py"
    script.write_text(
        """
import sys, warnings
import numba
import yaffjit

message_type = yaffjit.load_schema(sys.argv[1])["cached.M"]
get = message_type.getter("first")

@numba.njit(cache=True)
def read(data):
    return get(data, 0)

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert read(message_type.encode({"first": 7})) == 7
print(len(read.stats.cache_hits), *[str(w.message) for w in caught])
"""
    )
    proto = tmp_path / "one.proto"
    proto.write_text('syntax = "proto3"; package cached; message M { int64 first = 1; }')
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(REPOSITORY)}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, str(script), str(proto)], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith('0 Cannot cache compiled function "read" as it uses dynamic globals')


def test_equal_plans_of_two_loads_are_one_type() -> None:
    golden = Path(__file__).parent / "schemas" / "golden"
    types = [yaffjit.load_schema(golden / "hier.proto")["golden.hier.Mid"].records_type for _ in range(2)]
    assert types[0] is types[1]
