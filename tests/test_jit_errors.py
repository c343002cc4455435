"""What jitted code can't do is said when it's compiled: one sentence of ours first, and the user's line."""

from __future__ import annotations

import inspect
import pickle
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba import literal_unroll, prange, types

import yaffjit
from yaffjit.errors import (
    CompileAttributeError,
    CompileError,
    CompileTypeError,
    CompileValueError,
    EscapeError,
)

SCHEMA = yaffjit.load_schema(Path(__file__).parent / "schemas" / "constants.proto")
Event = SCHEMA["constants.Event"]
M = Event.message_class
VIEW = Event.view(Event.encode({"id": 5, "state": 1}))
RECORDS = yaffjit.records(Event, [Event.encode({"id": row}) for row in range(5)])

OUTSIDE = "isn't available in jitted code: call it on the Python view, outside"
READ_ONLY = "views are read-only: change a view's to_message() and encode that"
Case = tuple[Callable[[Any], Any], type[CompileError], str]

# Errors that Python has as well, of the same class.
WRONG: list[Case] = [
    (
        lambda v: v.stat,
        CompileAttributeError,
        "constants.Event has no field 'stat' (did you mean 'state', 'at'?)",
    ),
    (lambda v: v.xyz, CompileAttributeError, "constants.Event has no field 'xyz'"),
    (
        lambda v: v.inner.knid,
        CompileAttributeError,
        "constants.Event.Inner has no field 'knid' (did you mean 'kind'?)",
    ),
    (
        lambda v: v.HasField("plain"),
        CompileValueError,
        "Field constants.Event.plain does not have presence",
    ),
    (
        lambda v: v.HasField("many"),
        CompileValueError,
        "Field constants.Event.many does not have presence",
    ),
    (
        lambda v: v.HasField("limt"),
        CompileValueError,
        "Protocol message Event has no \"limt\" field (did you mean 'limit'?)",
    ),
    (
        lambda v: v.WhichOneof("pock"),
        CompileValueError,
        "Protocol message Event has no \"pock\" field (did you mean 'pick'?)",
    ),
    (
        lambda v: v.WhichOneof("plain"),
        CompileValueError,
        "Expected a oneof name, but got field name plain",
    ),
    (lambda v: len(v), CompileTypeError, "constants.Event has no len() in jitted code"),
    (
        lambda v: [x for x in v],
        CompileTypeError,
        "constants.Event can't be iterated over in jitted code: read a field by its name",
    ),
    (
        lambda v: v["plain"],
        CompileTypeError,
        "constants.Event has no items in jitted code: read a field by its name",
    ),
    (lambda v: hash(v), CompileTypeError, "a message isn't hashable: hash fields of constants.Event"),
    (lambda v: v + 1, CompileTypeError, "+ isn't for messages: use fields of constants.Event"),
    (lambda v: v.HasField(), CompileTypeError, "HasField() takes one name"),
    (lambda v: v.id & 1.5, CompileTypeError, "uint64 & float64 isn't supported in jitted code"),
    (lambda v: 1.5 << v.id, CompileTypeError, "float64 << uint64 isn't supported in jitted code"),
    (lambda v: v.id < "a", CompileTypeError, "uint64 < str isn't supported in jitted code"),
]

# What views have in Python, and jitted code hasn't.
MISSING: list[Case] = [
    (
        lambda v: v.ListFields(),
        CompileTypeError,
        "ListFields() of constants.Event isn't available in jitted code: "
        "ask HasField of each field that you need",
    ),
    (
        lambda v: v.SerializeToString(),
        CompileTypeError,
        f"SerializeToString() of constants.Event {OUTSIDE}",
    ),
    (lambda v: v.ByteSize(), CompileTypeError, f"ByteSize() of constants.Event {OUTSIDE}"),
    (lambda v: v.to_message(), CompileTypeError, f"to_message() of constants.Event {OUTSIDE}"),
    (
        lambda v: v.inner.IsInitialized(),
        CompileTypeError,
        f"IsInitialized() of constants.Event.Inner {OUTSIDE}",
    ),
    (
        lambda v: v.DESCRIPTOR.name,
        CompileTypeError,
        "DESCRIPTOR of constants.Event isn't available in jitted code: "
        "read outside what you need of it, and pass that in",
    ),
    (
        lambda v: str(v),
        CompileTypeError,
        "str() of constants.Event isn't available in jitted code: call it outside",
    ),
    (
        lambda v: f"{v}",
        CompileTypeError,
        "str() of constants.Event isn't available in jitted code: call it outside",
    ),
    (
        lambda v: repr(v),
        CompileTypeError,
        "repr() of constants.Event isn't available in jitted code: call it outside",
    ),
    (
        lambda v: v == v,
        CompileTypeError,
        "messages aren't compared in jitted code: compare fields of constants.Event",
    ),
    (
        lambda v: v.HasField(f"{v.plain}"),
        CompileTypeError,
        "HasField() takes a name that is written in the code, not str",
    ),
    (
        lambda v: v.WhichOneof(f"{v.plain}"),
        CompileTypeError,
        "WhichOneof() takes a name that is written in the code, not str",
    ),
    (
        lambda v: -v.id,
        CompileTypeError,
        "- of a uint64 is negative, which a uint64 can't hold: take np.int64(x) first",
    ),
    (
        lambda v: ~v.id,
        CompileTypeError,
        "~ of a uint64 is negative, which a uint64 can't hold: take np.int64(x) first",
    ),
    (lambda v: round(v.id, 2), CompileTypeError, "round(uint64, int64) isn't supported in jitted code"),
    (
        lambda v: max(v.id, 0.5),
        CompileTypeError,
        "max(uint64, float64) isn't supported in jitted code: float(x) makes a float of a uint64",
    ),
    (lambda v: np.sin(v.id), CompileTypeError, "np.sin(uint64) isn't supported in jitted code"),
    (lambda v: v.id == "1", CompileTypeError, "uint64 == str isn't supported in jitted code"),
]

# What our Python views refuse too, in the same words.
REFUSED: list[Case] = [
    (lambda v: v.CopyFrom(v), CompileAttributeError, READ_ONLY),
    (lambda v: v.ParseFromString(b""), CompileAttributeError, READ_ONLY),
    (lambda v: v.Clear(), CompileAttributeError, READ_ONLY),
    (
        lambda v: v.HasExtension("x"),
        CompileAttributeError,
        "views have no extensions: YaFF doesn't carry them",
    ),
    (lambda v: v.old, CompileAttributeError, "YaFF doesn't carry field constants.Event.old: deprecated"),
]


def caught(function: Callable[[Any], Any], argument: Any, error: type[CompileError]) -> CompileError:
    """The compile error, which comes without numba's words and frames."""
    with pytest.raises(error) as info:
        numba.njit(function)(argument)
    raised = info.value
    assert type(raised).__name__ == error.__name__
    assert isinstance(raised, yaffjit.YaffjitError)
    assert raised.args == (raised.text, raised.file, raised.line)
    numbas = [f for f in traceback.extract_tb(info.tb) if "numba" in f.filename]
    assert len(numbas) <= 2
    return raised


def says(function: Callable[[Any], Any], raised: CompileError, sentence: str) -> None:
    lines, first = inspect.getsourcelines(function)
    assert raised.file == __file__
    assert raised.line is not None
    assert first <= raised.line < first + len(lines)
    assert str(raised) == f'{sentence}.\nFile "{raised.file}", line {raised.line}'


@pytest.mark.parametrize(("function", "error", "sentence"), WRONG)
def test_errors_of_python_are_compile_errors(function: Any, error: type, sentence: str) -> None:
    says(function, caught(function, VIEW, error), sentence)
    for message in (M(id=5), VIEW):
        with pytest.raises((AttributeError, TypeError, ValueError)) as info:
            function(message)
        assert issubclass(error, type(info.value))


@pytest.mark.parametrize(("function", "error", "sentence"), MISSING)
def test_what_jitted_code_has_not(function: Any, error: type, sentence: str) -> None:
    says(function, caught(function, VIEW, error), sentence)


@pytest.mark.parametrize(("function", "error", "sentence"), REFUSED)
def test_what_views_refuse_in_the_same_words(function: Any, error: type, sentence: str) -> None:
    says(function, caught(function, VIEW, error), sentence)
    with pytest.raises(AttributeError) as info:
        function(VIEW)
    assert issubclass(error, type(info.value))
    assert str(info.value) == sentence


def test_fields_cant_be_assigned() -> None:
    def direct(v: Any) -> None:
        v.plain = 3

    def nested(v: Any) -> None:
        v.inner.kind = 3

    for function, name in ((direct, "constants.Event"), (nested, "constants.Event.Inner")):
        sentence = f"a view of {name} is read-only: change its to_message() and encode that"
        raised = caught(function, VIEW, CompileAttributeError)
        assert str(raised).splitlines()[0] == f"{sentence}."
        assert raised.line == inspect.getsourcelines(function)[1] + 1
        with pytest.raises(AttributeError) as info:
            function(VIEW)
        assert str(info.value) == sentence


@pytest.mark.parametrize(
    ("function", "error", "sentence"),
    [
        (lambda r: r["a"], CompileTypeError, "records are indexed by row numbers and slices, not by str"),
        (lambda r: r[0.5], CompileTypeError, "records are indexed by row numbers and slices, not by float64"),
        (lambda r: r[::2], CompileTypeError, "slices of records have no step in jitted code"),
        (
            lambda r: r.head(),
            CompileAttributeError,
            "records have no 'head' in jitted code: only len(), rows, slices and loops over them",
        ),
        (lambda r: r == r, CompileTypeError, "records == isn't available in jitted code"),
        (lambda r: r[0].xyz, CompileAttributeError, "constants.Event has no field 'xyz'"),
    ],
)
def test_records(function: Any, error: type, sentence: str) -> None:
    says(function, caught(function, RECORDS, error), sentence)


def test_records_and_views_as_globals() -> None:
    end = "can't be a global, closure variable or default of a jitted function: pass it as an argument"
    raised = caught(lambda v: RECORDS[0].id, VIEW, EscapeError)
    assert str(raised) == f"records of constants.Event {end}"
    raised = caught(lambda v: VIEW.id, VIEW, EscapeError)
    assert str(raised) == f"a view of constants.Event {end}"


# Where the line is


@numba.njit
def _inner(v):  # type: ignore[no-untyped-def]
    return v.plainn


def test_the_line_is_that_of_the_function_which_asks() -> None:
    raised = caught(lambda v: _inner(v) + 1, VIEW, CompileAttributeError)
    assert raised.line == inspect.getsourcelines(_inner.py_func)[1] + 2


@numba.njit
def _key(v):  # type: ignore[no-untyped-def]
    return v.plainn


@numba.njit
def _key_of_global(i):  # type: ignore[no-untyped-def]
    return RECORDS[i].plain


def test_within_numbas_own_functions() -> None:
    """numba takes what fails there for a reason to try something else; ours comes through."""

    def mapped(r: Any) -> Any:
        total = 0
        for x in map(_key, r):
            total += x
        return total

    with pytest.raises(CompileAttributeError) as info:
        numba.njit(mapped)(RECORDS)
    assert str(info.value).splitlines()[0] == "constants.Event has no field 'plainn' (did you mean 'plain'?)."
    assert info.value.line == inspect.getsourcelines(_key.py_func)[1] + 2
    with pytest.raises(EscapeError) as escape:
        numba.njit(lambda v: sorted([0, 1], key=_key_of_global))(VIEW)
    assert str(escape.value).startswith("records of constants.Event can't be a global, closure variable or")


def test_in_loops_and_prange() -> None:
    def function(r: Any) -> Any:
        found = np.zeros(len(r), np.int64)
        for i in prange(len(r)):
            found[i] = r[i].plainn
        return found

    sentence = "constants.Event has no field 'plainn' (did you mean 'plain'?)."
    for options in ({}, {"parallel": True}):
        with pytest.raises(CompileAttributeError) as info:
            numba.njit(**options)(function)(RECORDS)
        assert str(info.value).splitlines()[0] == sentence
        assert info.value.line == inspect.getsourcelines(function)[1] + 3


def test_with_a_signature() -> None:
    with pytest.raises(CompileAttributeError) as info:
        numba.njit(types.int64(Event.numba_type))(lambda v: v.plainn)
    assert str(info.value).splitlines()[0] == "constants.Event has no field 'plainn' (did you mean 'plain'?)."


def test_a_view_of_another_type_than_the_signatures() -> None:
    plain = numba.njit(types.int64(Event.numba_type))(lambda v: v.plain)
    assert plain(VIEW) == 0
    for other, name in ((VIEW.inner, "view[constants.Event.Inner #"), (RECORDS, "records[constants.Event #")):
        with pytest.raises(TypeError) as info:
            plain(other)
        assert str(info.value).startswith(f"No matching definition for argument type(s) {name}")
        assert "\n" not in str(info.value)


# What only tries isn't refused


def test_names_that_are_only_tried() -> None:
    def function(v: Any) -> Any:
        return (
            hasattr(v, "plain"),
            hasattr(v, "plainn"),
            getattr(v, "plain"),  # noqa: B009
            getattr(v, "plainn", 7),
            getattr(v, "plain", 7),
        )

    assert numba.njit(function)(VIEW) == function(VIEW) == function(M()) == (True, False, 0, 7, 0)


def test_types_that_become_known_later() -> None:
    def best(r: Any) -> Any:
        top = None
        row = None
        for i in range(len(r)):
            v = r[i]
            if top is None or v.id > top:
                top = v.id
                row = i
        return top, row, r[row].id

    assert numba.njit(best)(RECORDS) == best(RECORDS) == (4, 4, 4)


def test_names_from_a_literal_tuple() -> None:
    names = ("inner", "limit")

    @numba.njit
    def count(v):  # type: ignore[no-untyped-def]
        found = 0
        for name in literal_unroll(names):
            if v.HasField(name):
                found += 1
        return found

    assert count(VIEW) == 0
    assert count(Event.view(Event.encode({"inner": {}, "limit": 0}))) == 2


# The exceptions themselves


def test_errors_pickle_as_their_public_class() -> None:
    for error, function in (
        (CompileAttributeError, lambda v: v.plainn),
        (CompileValueError, lambda v: v.HasField("plain")),
        (CompileTypeError, lambda v: v.ListFields()),
    ):
        raised = caught(function, VIEW, error)
        again = pickle.loads(pickle.dumps(raised))
        assert type(again) is error
        assert (str(again), again.file, again.line) == (str(raised), raised.file, raised.line)


def test_notebooks_show_the_sentence_alone() -> None:
    raised = caught(lambda v: v.plainn, VIEW, CompileAttributeError)
    assert raised._render_traceback_() == [f"CompileAttributeError: {raised}"]


def test_a_function_can_be_compiled_again_after_an_error() -> None:
    function = numba.njit(lambda v: v.plain)
    with pytest.raises(CompileAttributeError):
        function(VIEW.inner)
    assert function(VIEW) == 0
