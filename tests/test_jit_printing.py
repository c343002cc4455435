"""What jitted code shows, returns and keeps: Python's text and objects, or one sentence that says no."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import yaffjit
from yaffjit.errors import CompileError, CompileTypeError, EscapeError

SCHEMA = yaffjit.load_schema(Path(__file__).parent / "schemas" / "shown.proto")
Shelf = SCHEMA["shown.Shelf"]
M = Shelf.message_class
ROW = {
    "id": 2**64 - 1,
    "small": -5,
    "weight": 1.5,
    "open": True,
    "state": 1,
    "title": "añ'b",
    "raw": b"a\xffb",
    "numbers": [1, 2],
    "by_name": {"a": {"id": 1}},
    "inner": {"id": 3},
    "left": 4,
}
VIEW = Shelf.view(Shelf.encode(ROW))
EMPTY = Shelf.view(Shelf.encode({}))
RECORDS = yaffjit.records(Shelf, [Shelf.encode(ROW), Shelf.encode({})])

One = Callable[[Any], Any]


def refused(function: One, argument: Any, error: type[CompileError]) -> str:
    with pytest.raises(error) as caught:
        numba.njit(function)(argument)
    assert caught.value.file == __file__
    return caught.value.text


@pytest.mark.slow
def test_texts_are_pythons() -> None:
    @numba.njit
    def texts(v: Any) -> Any:
        shown = f"{v.id} {v.small} {v.weight} {v.open} {v.state} {v.title} {v.WhichOneof('choice')}"
        converted = str(v.id), str(v.weight), str(v.title), str(v.WhichOneof("choice"))
        return shown, converted, repr(v.id), repr(v.weight), repr(v.WhichOneof("choice"))

    for view in (VIEW, EMPTY):
        assert texts(view) == texts.py_func(view) == texts.py_func(view.to_message())


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (lambda v: f"{v}", "str() of shown.Shelf"),
        (lambda v: str(v.inner), "str() of shown.Shelf"),
        (lambda v: repr(v), "repr() of shown.Shelf"),
        (lambda v: f"{v.numbers}", "str() of field numbers of shown.Shelf"),
        (lambda v: str(v.numbers[1:]), "str() of field numbers of shown.Shelf"),
        (lambda v: repr(v.names), "repr() of field names of shown.Shelf"),
        (lambda v: f"{v.by_name}", "str() of map field shown.Shelf.by_name"),
        (lambda v: repr(v.by_number), "repr() of map field shown.Shelf.by_number"),
        (lambda v: str(v.by_name.items()), "str() of items() of map field shown.Shelf.by_name"),
        (lambda v: f"{v.raw}", "str() of bytes"),
        (lambda v: repr(v.raw), "repr() of bytes"),
        (lambda v: repr(v.title), "repr() of text"),
        (lambda v: str(iter(v.numbers)), "str() of an iterator over a repeated field"),
        (lambda v: str(enumerate(v.numbers)), "str() of an enumerate with an iterator over a repeated field"),
        (lambda v: f"{(v.inner, 1)}", "str() of a tuple with shown.Shelf"),
        (lambda v: str([v]), "str() of a list with shown.Shelf"),
        (lambda v: f"{(v.title, 1)}", "str() of a tuple"),
        (lambda v: f"{[v.title]}", "str() of a list"),
        (lambda v: repr({v.small: 1}), "repr() of a dict"),
        (lambda v: str(M.State), "str() of enum shown.Shelf.State"),
        (lambda v: f"{M}", "str() of the class of shown.Shelf"),
        (lambda v: print((v.small, M.State)), "print() of a tuple with enum shown.Shelf.State"),
        (lambda v: print(M), "print() of the class of shown.Shelf"),
        (lambda v: print(iter(v.numbers)), "print() of an iterator over a repeated field"),
    ],
)
def test_what_has_no_text(function: One, what: str) -> None:
    assert refused(function, VIEW, CompileTypeError) == (
        f"{what} isn't available in jitted code: call it outside"
    )


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (lambda r: f"{r}", "str() of records"),
        (lambda r: repr(r[:1]), "repr() of records"),
        (lambda r: print(r), "print() of records"),
        (lambda r: print("rows:", (r, 1)), "print() of a tuple with records"),
        (lambda r: print(iter(r)), "print() of an iterator over records"),
    ],
)
def test_records_have_no_text(function: One, what: str) -> None:
    assert refused(function, RECORDS, CompileTypeError) == (
        f"{what} isn't available in jitted code: call it outside"
    )


PRINTS = """
import sys
import numba, yaffjit
Shelf = yaffjit.load_schema(sys.argv[1])["shown.Shelf"]
view = Shelf.view(Shelf.encode({"id": 2**64 - 1, "title": "a", "raw": b"b", "numbers": [1, 2], "left": 4,
                                "by_number": {1: 2}, "inner": {"small": 3}}))

def show(v):
    print(v.id, v.weight, v.title, v.raw, v.numbers, v.numbers[1:], v.by_number, v.WhichOneof("choice"))
    print(v.inner, (v.title, 1), [v.small])

show(view)
sys.stdout.flush()
numba.njit(show)(view)
sys.stdout.flush()
"""


def test_prints_are_pythons() -> None:
    schema = Path(__file__).parent / "schemas" / "shown.proto"
    done = subprocess.run(
        [sys.executable, "-c", PRINTS, schema],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    half = len(done.stdout) // 2
    assert done.stdout[:half] == done.stdout[half:]
    assert done.stdout.startswith("18446744073709551615 0.0 a b'b' [1, 2] [2] {1: 2} left\n")


def test_types_without_ours_are_left_to_numba() -> None:
    assert numba.njit(lambda x: str((x, 1)))(5).startswith("<object type:")


# ---- what comes out ----


def test_records_in_containers_dont_come_out() -> None:
    text = "records don't come out of jitted code: return row numbers, and slice them outside"
    for function in (
        lambda r: r,
        lambda r: (r, 1),
        lambda r: [r],
        lambda r: [(r, 1), (r, 2)],
        lambda r: [[r], [r]],
    ):
        with pytest.raises(TypeError) as caught:
            numba.njit(function)(RECORDS)
        assert str(caught.value) == text


@pytest.mark.filterwarnings("ignore::numba.NumbaPendingDeprecationWarning")
def test_lists_of_views_come_out() -> None:
    @numba.njit
    def lists(r: Any) -> Any:
        return [v for v in r], [[v.inner] for v in r], [(v, row) for row, v in enumerate(r)]

    assert lists(RECORDS) == lists.py_func(RECORDS)
    given = [VIEW]
    assert numba.njit(lambda views: views)(given) is given


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (lambda r: iter(r), "an iterator over records of shown.Shelf"),
        (lambda r: (iter(r), 1), "an iterator over records of shown.Shelf"),
        (lambda r: [iter(r)], "an iterator over records of shown.Shelf"),
        (lambda r: enumerate(r), "an enumerate with an iterator over records of shown.Shelf"),
        (lambda r: zip(r, r), "a zip with an iterator over records of shown.Shelf"),  # noqa: B905
        (lambda r: iter(r[0].numbers), "an iterator over a repeated field of shown.Shelf"),
        (lambda r: reversed(r[0].shelves), "an iterator over a repeated field of shown.Shelf"),
        (lambda r: iter(r[0].by_name), "an iterator over a map of shown.Shelf"),
        (lambda r: iter(r[0].title), "an iterator"),
        (lambda r: iter([v for v in r]), "an iterator over a list with a view of shown.Shelf"),
    ],
)
def test_iterators_dont_come_out(function: One, what: str) -> None:
    assert refused(function, RECORDS, EscapeError) == (
        f"{what} can't be returned from a jitted function: return a list, or loop over it inside"
    )


SET = "can't be stored in a set, which may outlive the bytes: "
VALUES = "keep the values that you need instead"
ROW_NUMBER = "keep its row number, or the values that you need, instead"
HASH = "what WhichOneof gives has no hash in jitted code: put str(x) into sets and keys"


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (lambda v: {v}, EscapeError, f"a view of shown.Shelf {SET}{ROW_NUMBER}"),
        (lambda v: len(set([v])), EscapeError, f"a view of shown.Shelf {SET}{ROW_NUMBER}"),
        (lambda v: {(v, 1)}, EscapeError, f"a view of shown.Shelf {SET}{ROW_NUMBER}"),
        (lambda v: {v.by_name}, EscapeError, f"a map of shown.Shelf {SET}{VALUES}"),
        (lambda v: {v.WhichOneof("choice")}, EscapeError, HASH),
        (lambda v: {v.WhichOneof("choice"): 1}, EscapeError, HASH),
        (lambda v: hash(v.WhichOneof("choice")), CompileTypeError, HASH),
        (lambda v: hash(v), CompileTypeError, "a message isn't hashable: hash fields of shown.Shelf"),
    ],
)
def test_sets_and_keys(function: One, error: type[CompileError], text: str) -> None:
    assert refused(function, VIEW, error) == text


def test_names_of_members_count_as_text() -> None:
    @numba.njit
    def count(r: Any) -> Any:
        counts = {}
        for v in r:
            name = str(v.WhichOneof("choice"))
            counts[name] = counts.get(name, 0) + 1
        return counts

    assert dict(count(RECORDS)) == count.py_func(RECORDS) == {"left": 1, "None": 1}


# ---- a uint64 where a float may be ----

MIXED = "a variable or result can't be a uint64 here and a float64 there: float(x) makes a float"


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda v: v.id if v.open else 1.5, MIXED),
        (lambda v: v.id and v.weight, MIXED),
        (lambda v: v.weight or v.id, MIXED),
        (lambda v: [v.id, 1.5], MIXED),
        (lambda v: sum([v.id if n > 1 else 0.5 for n in v.numbers]), MIXED),
        (lambda v: min(v.id, 1.5), "min(uint64, float64) isn't supported in jitted code: "
                                   "float(x) makes a float of a uint64"),
        (lambda v: max(v.weight, v.id), "max(float64, uint64) isn't supported in jitted code: "
                                        "float(x) makes a float of a uint64"),
        (lambda v: np.array([v.id]), "np.array isn't for uint64 fields: use np.uint64(x), of each element"),
        (lambda v: np.asarray((v.id, 1)), "np.asarray isn't for uint64 fields: "
                                          "use np.uint64(x), of each element"),
        (lambda v: np.full(3, v.id), "np.full isn't for uint64 fields: use np.uint64(x), of each element"),
        (lambda v: np.zeros(2) + v.id, "array(float64, 1d, C) + uint64 isn't supported in jitted code"),
    ],
)  # fmt: skip
def test_uint64_and_floats(function: One, text: str) -> None:
    assert refused(function, VIEW, CompileTypeError) == text


def test_what_the_sentences_advise() -> None:
    @numba.njit
    def advised(v: Any) -> Any:
        best = 0.5
        best = max(best, float(v.id))
        mixed = float(v.id) if v.open else 1.5
        return best, mixed, np.array([np.uint64(v.id)])[0], np.full(2, np.uint64(v.id))[1], round(v.id)

    assert advised(VIEW) == advised.py_func(VIEW)


def test_a_uint64_and_a_float_in_two_variables_of_one_name() -> None:
    """numba's own renaming keeps them apart."""

    @numba.njit
    def both(v: Any) -> Any:
        x = v.id
        first = x
        x = 1.5
        return first, x

    assert both(VIEW) == both.py_func(VIEW)


def test_a_negative_integer_where_a_uint64_is_kept() -> None:
    """As the page on jitted functions says: numba puts it there before it's asked for its truth."""
    for function in (lambda v: v.small and v.id, lambda v: v.id and v.small, lambda v: v.small or v.id):
        with pytest.raises(OverflowError) as caught:
            numba.njit(function)(VIEW)
        assert str(caught.value) == "a negative integer doesn't fit where a uint64 is kept"


def test_dicts_of_uint64_keys_take_such_keys() -> None:
    made = numba.njit(lambda r: {v.id: v.weight for v in r})(RECORDS)
    assert made == {2**64 - 1: 1.5, 0: 0.0}
    assert 5 not in made
    with pytest.raises(OverflowError):
        -1 in made  # noqa: B015
