"""numba's disk cache under our types: hits in another process, misses after a change, never damaged."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jit_kinds
import numba
import pytest

import yaffjit
from yaffjit.jit import keys
from yaffjit.jit.builder.type import (
    BuilderType,
    MapBuilderType,
    MessageBuilderType,
    RepeatedBuilderType,
)
from yaffjit.jit.columns.paths import Paths
from yaffjit.jit.constants import EnumType, MessageClassType
from yaffjit.jit.getters import PathType
from yaffjit.jit.integers import uint64_exact
from yaffjit.jit.maps import MapPartType, MapType
from yaffjit.jit.maps.type import MapIteratorType
from yaffjit.jit.message_types import MessageTypeType
from yaffjit.jit.repeated.type import RepeatedIteratorType, RepeatedType
from yaffjit.jit.text.type import bytes_type, text_type
from yaffjit.jit.types import (
    OneofType,
    RecordsIteratorType,
    WireRecordsIteratorType,
    WireRecordsType,
    WireViewType,
    message_type,
)
from yaffjit.jit.wire.maps.type import WireMapIteratorType, WireMapPartType, WireMapType
from yaffjit.jit.wire.repeated.type import WireRepeatedIteratorType, WireRepeatedType
from yaffjit.kernels import sources
from yaffjit.universal.jitted.type import UniversalIteratorType, UniversalPartType, view_type

REPOSITORY = Path(__file__).parents[1]

SCRIPT = """
import json
import os
import sys

import numba
import numpy

import yaffjit
from yaffjit.jit.columns.loops import measure


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


@numba.njit(cache=True)
def last_digit(number):
    return number % 10


@numba.njit(cache=True)
def shouts(text):
    return text.endswith("!")


@numba.njit(cache=True)
def features(m):
    known = sum(m.ints) + m.weights["a"] + len(m.weights) if "a" in m.weights else -1.0
    return m.title, known, [part.first for part in m.parts], m.tags[-1]


@numba.njit
def helped(m):
    return last_digit(m.big), shouts(m.title)


FUNCTIONS = read, total, row_of, features, last_digit, shouts
CONTENT = {
    "first": 7, "second": 8, "child": {"first": 9}, "big": 2**63 + 5, "title": "\u00fc!",
    "ints": [1, 2], "weights": {"a": 0.5, "b": 2.0}, "parts": [{"first": 3}, {}], "tags": ["x", "y"],
}
results = []
for path in sys.argv[1:]:
    message_type = yaffjit.load_schema(path)["cached.M"]
    buffer = message_type.encode(CONTENT)
    view = message_type.view(buffer)
    *numbers, child = read(view)
    records = yaffjit.records(message_type, [buffer] * 3)
    columns = records.columns("first")["first"].tolist()
    results.append([*numbers, child.first, total(records), row_of(records, -1), columns])
    results[-1] += [features(view), helped(view)]
    try:
        row_of(records, 3)
    except IndexError as error:
        results[-1].append(str(error))
if os.environ["OURS"]:
    from yaffjit.kernels.places import find_bytes

    find_bytes(0, 0, 0, 0, 0, 0, numpy.empty((0, 2), numpy.int64))
    FUNCTIONS = features, last_digit, shouts, measure, find_bytes
hits = [sum(f.stats.cache_hits.values()) for f in FUNCTIONS]
misses = [sum(f.stats.cache_misses.values()) for f in FUNCTIONS]
print(json.dumps([results, hits, misses]))
"""

PARTS = (
    "M child = 3; repeated int32 ints = 5; map<string, double> weights = 6; repeated M parts = 7; "
    "repeated string tags = 8;"
)
FIELDS = {
    "one": f"int64 first = 1; int64 second = 2; uint64 big = 4; {PARTS} string title = 9;",
    "two": f"int64 second = 1; int64 first = 2; fixed64 big = 4; {PARTS} string title = 10;",
}
FEATURES = ["\u00fc!", 5.5, [3, 0], "y"]
HELPED = [3, True]
EXPECTED = [7, 8, 9, 9, 21, 8, [7, 7, 7], FEATURES, HELPED, "row 3 is out of range: there are 3 rows"]
ALL = [1] * 6
NONE = [0] * 6


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder with a copy of the package, which changes only where a test changes it."""
    source, copy = REPOSITORY / "yaffjit", tmp_path / "copy"
    shutil.copytree(source, copy / "yaffjit", ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def write_schema(folder: Path, version: str) -> Path:
    path = folder / f"{version}.proto"
    path.write_text(f'syntax = "proto3"; package cached; message M {{ {FIELDS[version]} }}')
    return path


def run(package: Path, *versions: str, ours: bool = False) -> Any:
    """Results, hits and misses of a process that uses these versions of the schema in turn.

    ``ours``: the hits and misses are of some functions of the package too.
    """
    folder = package.parent
    script = folder / "reader.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), *(str(write_schema(folder, version)) for version in versions)]
    given = {
        "NUMBA_CACHE_DIR": str(folder / "cache"),
        "PYTHONPATH": str(package),
        "OURS": "1" if ours else "",
    }
    done = subprocess.run(command, env={**os.environ, **given}, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_second_process_hits_and_another_schema_misses(package: Path) -> None:
    assert run(package, "one") == [[EXPECTED], NONE, ALL]
    assert run(package, "one") == [[EXPECTED], ALL, NONE]
    # This process has never seen the schema of the entries that it leaves in the cache; what takes only
    # numbers and text is the same under all schemas.
    assert run(package, "two") == [[EXPECTED], [0, 0, 0, 0, 1, 1], [1, 1, 1, 1, 0, 0]]
    assert run(package, "two", "one") == [[EXPECTED, EXPECTED], [2, 2, 2, 2, 1, 1], NONE]


@pytest.mark.slow
def test_a_change_of_our_sources_misses(package: Path) -> None:
    def hits() -> list[int]:
        """Of a function over a view, of two over its values, of the loop under columns, of a kernel."""
        results, hits, misses = run(package, "one", ours=True)
        assert results == [EXPECTED]
        assert [hit + miss for hit, miss in zip(hits, misses, strict=True)] == [1] * 5
        return list(hits)

    def change(module: str) -> None:
        with (package / "yaffjit" / module).open("a") as file:
            file.write("# changed\n")

    assert hits() == [0, 0, 0, 0, 0]
    assert hits() == [1, 1, 1, 1, 1]
    change("jit/maps/search.py")
    assert hits() == [0, 0, 0, 0, 1]
    change("kernels/decimal.py")  # which writes floats in users' functions
    assert hits() == [0, 0, 0, 0, 0]
    assert hits() == [1, 1, 1, 1, 1]
    change("plan/tables.py")
    assert hits() == [0, 0, 0, 0, 0]


READING = """
import sys

import yaffjit
from yaffjit.codec.verify import _loaded
from yaffjit.jit.columns.loops import measure

_loaded.load()
message_type = yaffjit.load_schema(sys.argv[1])["cached.M"]
buffer = message_type.encode({"first": 7, "title": "t"})
columns = yaffjit.records(message_type, [buffer]).columns("first")
print(message_type.getter("title")(buffer, 0), columns["first"], measure.stats.cache_path)
"""


@pytest.mark.slow
def test_an_installation_that_cannot_be_written_works_uncached(package: Path, tmp_path: Path) -> None:
    """Files where the folders would be stop the superuser too, who ignores permissions."""
    for folder in {module.parent for module in package.rglob("*.py")}:
        (folder / "__pycache__").write_text("")
    environment = {**os.environ, "PYTHONPATH": str(package), "HOME": "/dev/null/none"}
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        environment.pop(name, None)

    def python(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path)

    done = python("-c", READING, str(write_schema(tmp_path, "one")))
    assert (done.stdout, done.stderr, done.returncode) == ("t [7] None\n", "", 0)
    done = python("-m", "yaffjit", "warm")
    assert (done.stdout, done.returncode) == ("", 1)
    assert done.stderr == (
        f"yaffjit: error: numba can't keep machine code: neither in {package}/yaffjit/kernels nor in the "
        "user's folder for caches can files be written; set NUMBA_CACHE_DIR to a folder where they can\n"
    )
    assert not list(tmp_path.rglob("*.nb?"))


# A user's functions and a damaged cache


def of_view(m: Any) -> Any:
    return m.plain_int32, len(m.text)


def of_number(number: Any) -> Any:
    return number + 1


def called(function: Any, *args: Any) -> tuple[Any, int, int]:
    """Result, hits and misses of a new dispatcher, which knows nothing but what is in the cache."""
    dispatcher = numba.njit(cache=True)(function)
    result = dispatcher(*args)
    return result, sum(dispatcher.stats.cache_hits.values()), sum(dispatcher.stats.cache_misses.values())


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_a_damaged_cache_of_a_users_function_heals(cache_folder: Path, suffix: str) -> None:
    message_type = jit_kinds.message_type("dynamic")
    view = message_type.view(message_type.encode({"plain_int32": 5, "text": "four"}))
    assert called(of_view, view) == ((5, 4), 0, 1)
    assert called(of_view, view) == ((5, 4), 1, 0)
    for damage in (b"", None, b"\x7f" * 5000, b"version https://example.org\n"):
        (file,) = cache_folder.rglob(f"*{suffix}")
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2] if damage is None else damage)
        assert called(of_view, view) == ((5, 4), 0, 1)
        assert called(of_view, view) == ((5, 4), 1, 0)


def test_a_cache_that_cannot_be_written(cache_folder: Path) -> None:
    message_type = jit_kinds.message_type("dynamic")
    view = message_type.view(message_type.encode({"plain_int32": 5, "text": "four"}))
    assert called(of_view, view) == ((5, 4), 0, 1)
    for file in list(cache_folder.rglob("*.nb?")):
        file.unlink()
        file.mkdir()
    assert called(of_view, view) == ((5, 4), 0, 1)


def test_functions_without_values_of_ours_are_left_to_numba(cache_folder: Path) -> None:
    assert called(of_number, 1) == (2, 0, 1)
    (file,) = cache_folder.rglob("*.nbi")
    file.write_bytes(b"")
    with pytest.raises(EOFError):
        called(of_number, 1)


# How many types `all_types` has: those of builders compile kernels, which no collection of tests waits for.
TYPES = 38


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
        MessageTypeType(mp),
        message_type(mp).as_owned(),
        RepeatedType(mp, "many", True, owned=True),
        MapIteratorType(mp, "pairs", "keys", owned=True),
        view_type,
        view_type.as_owned(),
        UniversalPartType("items"),
        UniversalIteratorType("all", True),
        WireViewType(mp),
        WireRecordsType(mp),
        WireRecordsIteratorType(mp),
        WireRepeatedType(mp, "many"),
        WireRepeatedIteratorType(mp, "many", True),
        WireMapType(mp, "pairs"),
        WireMapPartType(mp, "pairs", "items"),
        WireMapIteratorType(mp, "pairs", "keys"),
        BuilderType(mp),
        MessageBuilderType(mp),
        RepeatedBuilderType(mp, "", "many"),
        MapBuilderType(mp, "", "pairs"),
        text_type.as_owned(),
        uint64_exact,
        text_type,
        bytes_type,
        text_type.iterator_type,
        enum,
        MessageClassType("kinds.Dynamic", (("ID_FIELD_NUMBER", 1),), (("Color", enum),)),
    ]


def test_all_classes_are_tried() -> None:
    abstract = {"PlainType", "PlanType", "PartType", "TextLikeType"}
    concrete = {name for name in keys._classes if not name.startswith("_") and name not in abstract}
    assert {type(numba_type).__name__ for numba_type in all_types()} == concrete
    assert len(all_types()) == TYPES


@pytest.mark.parametrize("index", range(TYPES))
def test_a_type_pickles_as_its_key_alone(index: int) -> None:
    numba_type = all_types()[index]
    data = pickle.dumps(numba_type)
    assert len(data) < 600
    assert pickle.loads(data) is numba_type


@pytest.mark.parametrize("index", range(TYPES))
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
        # Which say what a schema or an error is, or serve Python alone: not what code does.
        others = ("yaffjit.errors", "yaffjit.schema", "yaffjit.forks", "yaffjit.arrays")
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
