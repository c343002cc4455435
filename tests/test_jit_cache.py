"""numba's disk cache under our types: hits in another process, misses after a change, never damaged."""

from __future__ import annotations

import io
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
from yaffjit.jit.constants import EnumType, MessageClassType
from yaffjit.jit.getters import PathType
from yaffjit.jit.integers import uint64_exact
from yaffjit.jit.maps import MapPartType, MapType
from yaffjit.jit.maps.type import MapIteratorType
from yaffjit.jit.paths import Paths
from yaffjit.jit.repeated.type import RepeatedIteratorType, RepeatedType
from yaffjit.jit.text.type import bytes_type, text_type
from yaffjit.jit.types import OneofType, RecordsIteratorType
from yaffjit.kernels import sources

REPOSITORY = Path(__file__).parents[1]

SCRIPT = """
import io
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
    """One of each class that `keys` can make again."""
    mp = jit_kinds.message_type("dynamic").plan
    enum = EnumType("kinds.Color", (("NONE", 0), ("RED", 2)))
    return [
        jit_kinds.message_type("dynamic").numba_type,
        jit_kinds.message_type("dynamic").records_type,
        Paths(mp, ("plain_int32", "child.plain_int32"), ("child",))._numba_type_,
        RecordsIteratorType(mp),
        OneofType(mp, "pick"),
        PathType(mp, "many[0]", "value"),
        RepeatedType(mp, "many"),
        RepeatedIteratorType(mp, "many", True),
        MapType(mp, "pairs"),
        MapPartType(mp, "pairs", "items"),
        MapIteratorType(mp, "pairs", "keys"),
        uint64_exact,
        text_type,
        bytes_type,
        text_type.iterator_type,
        enum,
        MessageClassType("kinds.Dynamic", (("ID_FIELD_NUMBER", 1),), (("Color", enum),)),
    ]


def test_all_classes_are_tried() -> None:
    concrete = {name for name, cls in keys._classes.items() if not cls.__subclasses__()}
    assert {type(numba_type).__name__ for numba_type in all_types()} == concrete


@pytest.mark.parametrize("index", range(len(all_types())))
def test_a_type_pickles_as_its_key_alone(index: int) -> None:
    numba_type = all_types()[index]
    data = pickle.dumps(numba_type)
    assert len(data) < 600
    assert pickle.loads(data) is numba_type


@pytest.mark.parametrize("index", range(len(all_types())))
@pytest.mark.parametrize("position", [1, 3])
def test_a_key_of_another_schema_or_version_stays_itself(index: int, position: int) -> None:
    key = list(all_types()[index].key)
    if not key[position]:
        return  # it isn't of a schema
    key[position] = "0" * len(key[position])
    foreign = keys.rebuild(tuple(key))
    assert type(foreign) is keys.ForeignType
    assert foreign not in all_types()
    again = pickle.loads(pickle.dumps(foreign))
    assert again is foreign
    assert again.key == tuple(key)
    # A class that another version of ours has moved or renamed isn't asked for.
    assert not [name for name in pickle_globals(foreign) if name != "yaffjit.jit.keys rebuild"]


def pickle_globals(value: object) -> list[str]:
    """What a pickle imports."""
    found: list[str] = []

    class Finder(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            found.append(f"{module} {name}")
            return super().find_class(module, name)

    Finder(io.BytesIO(pickle.dumps(value))).load()
    return found


def test_types_differ_where_their_keys_do() -> None:
    made = [*all_types(), jit_kinds.message_type("flat").numba_type]
    count = len(made)
    mp = jit_kinds.message_type("dynamic").plan
    made += [Paths(mp, ("plain_int32",))._numba_type_, Paths(mp, (), ("plain_int32",))._numba_type_]
    assert len(set(made)) == len({t.name for t in made}) == len({t.key for t in made}) == count + 2


def test_a_change_of_our_sources_changes_the_hash(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("one/a.py", "one/emit/b.py", "one/emit/c.txt", "one/__pycache__/d.py", "two/a.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text("1")
    monkeypatch.setattr(sources.importlib.resources, "files", lambda name: tmp_path / name)

    def compute() -> str:
        return sources.hash_of_sources.__wrapped__(("one", "two"))

    seen = [compute()]
    (tmp_path / "one/emit/c.txt").write_text("2")
    (tmp_path / "one/__pycache__/d.py").write_text("2")
    assert compute() == seen[0]
    (tmp_path / "one/emit/b.py").write_text("2")
    seen.append(compute())
    (tmp_path / "one/emit/b.py").rename(tmp_path / "one/emit/e.py")
    seen.append(compute())
    (tmp_path / "two/a.py").write_text("12")
    seen.append(compute())
    assert len(set(seen)) == 4


def test_hashes_are_of_all_that_machine_code_is_made_of() -> None:
    """Modules that jitted code imports are in the packages whose sources are its key."""
    for packages, root in (
        (sources.GETTER_PACKAGES, "yaffjit.jit"),
        (sources.KERNEL_PACKAGES, "yaffjit.kernels.verify"),
    ):
        code = f"import sys, {root}; print(*[name for name in sys.modules if name.startswith('yaffjit.')])"
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        # Which say what a schema or an error is, not what code does; and what keeps the caches.
        others = ("yaffjit.errors", "yaffjit.schema", "yaffjit.kernels")
        for name in done.stdout.split():
            assert name.startswith((*packages, *others)), name


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
