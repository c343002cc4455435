"""Enum constants in jitted code as people write them, with the results that protobuf's messages have."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from google.protobuf import descriptor_pb2, struct_pb2
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from numba.core.typing.typeof import typeof

import yaffjit
from yaffjit.errors import CompileAttributeError, CompileTypeError, CompileValueError

REPOSITORY = Path(__file__).parents[1]
SCHEMA = yaffjit.load_schema(Path(__file__).parent / "schemas" / "constants.proto")
Event = SCHEMA["constants.Event"]
M = Event.message_class
State = SCHEMA.enums["constants.Event.State"]
Outer = EnumTypeWrapper(SCHEMA.definition.pool.FindEnumTypeByName("constants.Outer"))
CONTENTS: list[dict[str, Any]] = [
    {},
    {"id": 1, "state": 1, "outer": 2**31 - 1, "inner": {"kind": 7}},
    {"id": 2, "state": -3, "outer": -(2**31), "inner": {}},
    {"id": 3, "state": 0, "outer": 5},
]


def by_class(v):  # type: ignore[no-untyped-def]
    return (
        v.state == M.ACTIVE,
        v.state > M.GONE,
        v.state in (M.ACTIVE, M.GONE),
        v.state not in (M.NONE, M.ALSO_ACTIVE),
        M.GONE + v.plain,
        M.State.ACTIVE,
        M.State.Value("GONE"),
        M.State.Name(v.state),
        M.State.Name(M.ALSO_ACTIVE),
        M.ID_FIELD_NUMBER,
        v.inner.kind == M.Inner.FANCY,
        M.Inner.Kind.Name(v.inner.kind),
        M.Inner.Kind.Value("PLAIN"),
    )


def by_view(v):  # type: ignore[no-untyped-def]
    return (
        v.state == v.ACTIVE,
        v.GONE,
        v.State.Value("ALSO_ACTIVE"),
        v.State.GONE,
        v.State.Name(v.state) == "ACTIVE",
        v.ID_FIELD_NUMBER,
        v.inner.FANCY - v.inner.kind,
    )


def by_enums(v):  # type: ignore[no-untyped-def]
    return (
        v.outer == Outer.Value("OUTER_MOST"),
        v.outer in (Outer.OUTER_LEAST, Outer.OUTER_MOST),
        v.state == State.ACTIVE,
        v.state > State.GONE,
        v.state in (State.ACTIVE, State.GONE),
        v.state != State["ACTIVE"],
        State.GONE.value,
    )


def counts(records):  # type: ignore[no-untyped-def]
    found = {M.NONE: 0}
    last = None
    for v in records:
        found[v.state] = found.get(v.state, 0) + 1
        if v.state != M.NONE:
            last = v.state
    return found, M.State.Name(last)


@pytest.mark.parametrize("function", [by_class, by_view, by_enums])
@pytest.mark.parametrize("layout", ["flat", "sparse"])
def test_constants(function: Callable[[Any], Any], layout: str) -> None:
    jitted = numba.njit(function)
    for content in CONTENTS:
        buffer = Event.encode(content, layout)
        expected = function(M(**content))
        assert function(Event.view(buffer)) == expected
        result = jitted(Event.view(buffer))
        assert result == expected
        assert list(map(type, result)) == list(map(type, expected))


def test_constants_in_loops_and_dicts() -> None:
    records = yaffjit.records(Event, [Event.encode(content) for content in CONTENTS])
    found, last = numba.njit(counts)(records)
    assert (dict(found), last) == counts([M(**content) for content in CONTENTS])
    assert (dict(found), last) == ({0: 2, 1: 1, -3: 1}, "GONE")


def test_generated_modules() -> None:
    Field = descriptor_pb2.FieldDescriptorProto

    def function() -> Any:
        return (
            descriptor_pb2.FieldDescriptorProto.TYPE_INT32,
            Field.TYPE_BOOL,
            Field.Type.Value("TYPE_BOOL"),
            Field.Type.Name(5),
            struct_pb2.NULL_VALUE,
            struct_pb2.NullValue.NULL_VALUE,
            struct_pb2.NullValue.Name(0),
        )

    assert numba.njit(function)() == function() == (5, 8, 8, "TYPE_INT32", 0, 0, "NULL_VALUE")


def test_classes_and_enums_as_arguments() -> None:
    def function(cls: Any, enum: Any, number: int) -> Any:
        return cls.ACTIVE, cls.State.Name(number), enum.Name(number), enum.Value("GONE"), cls.Inner.FANCY

    assert numba.njit(function)(M, M.State, 1) == function(M, M.State, 1)


@pytest.mark.parametrize("number", [1, True, np.int8(-3), np.uint8(0), np.uint64(1), State.GONE])
def test_name_takes_any_integer(number: Any) -> None:
    assert NAME(number) == M.State.Name(int(number))


NAME = numba.njit(lambda number: M.State.Name(number))
NAME_OF_ID = numba.njit(lambda v: M.State.Name(v.id))


@pytest.mark.parametrize("number", [2, -1, 2**31 - 1, np.uint64(2)])
def test_a_number_without_a_name_is_protobufs_error(number: int) -> None:
    with pytest.raises(ValueError) as expected:
        M.State.Name(int(number))
    with pytest.raises(ValueError) as caught:
        NAME(number)
    assert str(caught.value) == str(expected.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(expected.value)


def test_an_exact_uint64_has_a_name_or_not() -> None:
    assert NAME_OF_ID(Event.view(Event.encode({"id": 1}))) == "ACTIVE"
    for number in (2**32 + 1, 2**64 - 3):
        with pytest.raises(ValueError, match=f"^Enum State has no name defined for value {number}"):
            NAME_OF_ID(Event.view(Event.encode({"id": number})))


@pytest.mark.parametrize(
    ("function", "error", "sentence"),
    [
        (
            lambda v: M.ACTIV,
            CompileAttributeError,
            "the class of constants.Event has no constant, enum or message 'ACTIV' "
            "(did you mean 'ACTIVE', 'ALSO_ACTIVE'?)",
        ),
        (
            lambda v: M.State.GOME,
            CompileAttributeError,
            "Enum State has no value defined for name 'GOME' (did you mean 'GONE'?)",
        ),
        (
            lambda v: M.State.Value("GOME"),
            CompileValueError,
            "Enum State has no value defined for name 'GOME' (did you mean 'GONE'?)",
        ),
        (
            lambda v: M.State.Value(f"{v.plain}"),
            CompileTypeError,
            "Value() takes a name that is written in the code, not str",
        ),
        (
            lambda v: M.State.Name("GONE"),
            CompileTypeError,
            "Enum value for State must be an int, but got str",
        ),
        (lambda v: M.State.Name(), CompileTypeError, "Name() takes one argument"),
        (
            lambda v: M.State.keys(),
            CompileTypeError,
            "keys of enum constants.Event.State isn't available in jitted code: use it outside",
        ),
        (
            lambda v: M.FromString(b""),
            CompileTypeError,
            "FromString of constants.Event isn't available in jitted code: use it outside",
        ),
        (
            lambda v: M(),
            CompileTypeError,
            "messages can't be made in jitted code: constants.Event() is for outside",
        ),
    ],
)
def test_what_isnt_there_is_a_compile_error(function: Any, error: type, sentence: str) -> None:
    with pytest.raises(error) as caught:
        numba.njit(function)(Event.view(Event.encode({})))
    assert str(caught.value).splitlines()[0] == f"{sentence}."
    if error is not CompileTypeError:  # then it's an error in Python too, of the same class
        with pytest.raises((AttributeError, ValueError)) as in_python:
            function(M())
        assert issubclass(error, type(in_python.value))


def test_types_tell_the_content_and_pickle_by_it() -> None:
    again = yaffjit.load_schema(SCHEMA.definition.descriptor_set)["constants.Event"].message_class
    assert again is not M
    for mine, other in [(M, again), (M.State, again.State)]:
        numba_type = typeof(mine)
        assert numba_type == typeof(other)
        assert pickle.loads(pickle.dumps(numba_type)) == numba_type
    assert typeof(M.State) != typeof(M.Inner.Kind)


# numba's disk cache

SCRIPT = """
import json
import sys
import warnings

import numba

import yaffjit

message_type = yaffjit.load_schema(sys.argv[1])["cached.M"]
M = message_type.message_class


@numba.njit(cache=True)
def told(m):
    return m.state == M.ON, M.State.Name(m.state), M.State.Value("ON"), m.ON


@numba.njit(cache=True)
def told_by_argument(cls):
    return cls.ON


@numba.njit(cache=True)
def untold(state):
    return state == M.ON


@numba.njit(cache=True)
def declared(m):
    return M.Alone.Value("ONE"), m.ONE, m.LOST_FIELD_NUMBER


@numba.njit(cache=True)
def unreached(m):
    return M.Unreached.Alone.Value("FIRST")


buffer = message_type.encode({"state": 1})
functions = told, told_by_argument, untold, declared, unreached
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    view = message_type.view(buffer)
    results = [told(view), told_by_argument(M), untold(1), declared(view), unreached(view)]
refused = [f.__name__ for f in functions for w in caught if f'function "{f.__name__}"' in str(w.message)]
print(json.dumps([results, [sum(f.stats.cache_hits.values()) for f in functions], refused]))
"""


@pytest.mark.slow
def test_cached_functions_never_have_old_numbers(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    for name, on, also, one in [("one", 1, 2, 1), ("two", 2, 1, 5)]:
        (tmp_path / f"{name}.proto").write_text(
            'syntax = "proto3"; package cached; message M {'
            f"enum State {{ OFF = 0; ON = {on}; ALSO = {also}; }} State state = 1;"
            f"enum Alone {{ ZERO = 0; ONE = {one}; }} int32 lost = {one + 1} [deprecated = true];"
            f"message Unreached {{ enum Alone {{ NONE = 0; FIRST = {one}; }} }} }}"
        )

    def run(name: str) -> Any:
        environment = {
            **os.environ,
            "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
            "PYTHONPATH": str(REPOSITORY),
        }
        command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path / f"{name}.proto")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    one = [[True, "ON", 1, 1], 1, True, [1, 1, 2], 1]
    two = [[False, "ALSO", 2, 2], 2, False, [5, 5, 6], 5]
    refused = ["untold", "unreached"]
    assert run("one") == [one, [0, 0, 0, 0, 0], refused]
    assert run("one") == [one, [1, 1, 0, 1, 0], refused]
    assert run("two") == [two, [0, 0, 0, 0, 0], refused]
    assert run("one") == [one, [1, 1, 0, 1, 0], refused]


@pytest.mark.parametrize(
    ("name", "declared", "numbers"),
    [
        ("ONE", "enum Alone {{ ZERO = 0; ONE = {}; }}", (1, 7)),
        ("LOST_FIELD_NUMBER", "int32 lost = {} [deprecated = true];", (5, 6)),
    ],
)
def test_constants_that_no_field_tells(
    tmp_path: Path, name: str, declared: str, numbers: tuple[int, ...]
) -> None:
    """Two schemas of one process that differ in nothing else."""
    function = numba.njit(lambda v: v.ONE if name == "ONE" else v.LOST_FIELD_NUMBER)
    views = []
    for number in numbers:
        path = tmp_path / f"{number}.proto"
        path.write_text(f'syntax = "proto3"; message M {{ int32 x = 1; {declared.format(number)} }}')
        message_type = yaffjit.load_schema(path)["M"]
        views.append(message_type.view(message_type.encode({})))
    assert [function(view) for view in views] == [getattr(view, name) for view in views] == list(numbers)


# ---- before anything of ours has come into jitted code ----

NAMED = """
import sys
{first}
import yaffjit
M = yaffjit.load_schema(sys.argv[1])["constants.Event"].message_class
State = M.State
import numba

@numba.njit
def named(number):
    return number == M.ACTIVE, number == State.Value("ACTIVE"), State.Name(number)

assert "yaffjit.jit" not in sys.modules
print(named(M.ACTIVE))
"""


@pytest.mark.parametrize(
    "first",
    [
        pytest.param("", id="numba later"),
        pytest.param("import numba", id="numba first"),
        pytest.param("import numba; numba.njit(lambda: 1)()", id="numba used first"),
    ],
)
def test_names_in_functions_without_our_values(tmp_path: Path, first: str) -> None:
    """As the package is installed: numba finds us by the entry point of the distribution."""
    metadata = tmp_path / "yaffjit-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: yaffjit\nVersion: 0\n")
    project = (REPOSITORY / "pyproject.toml").read_text()
    declared = re.search(r'^\[project\.entry-points\.(\w+)\]\n(\w+) = "(.*)"$', project, re.MULTILINE)
    assert declared is not None
    (metadata / "entry_points.txt").write_text("[{}]\n{} = {}\n".format(*declared.groups()))
    done = subprocess.run(
        [sys.executable, "-c", NAMED.format(first=first), REPOSITORY / "tests/schemas/constants.proto"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(REPOSITORY)])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "(True, True, 'ACTIVE')\n"


def test_numba_alone_loads_nothing_of_ours() -> None:
    code = (
        "import sys, yaffjit, numba; yaffjit._init_numba(); numba.njit(lambda: 1)();"
        "print([name for name in sys.modules if name.startswith(('yaffjit.', 'google.protobuf'))])"
    )
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
