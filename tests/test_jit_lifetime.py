"""Jitted code can't keep what it borrows: ways out are refused with their sentence, lawful use works."""

from __future__ import annotations

import collections
import gc
import inspect
import os
import subprocess
import sys
import textwrap
import weakref
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest
from numba import njit, objmode, prange, types
from numba.experimental import jitclass, structref
from numba.typed import Dict, List

import yaffjit
from yaffjit.errors import EscapeError

PROTO = Path(__file__).parent / "schemas" / "lifetime.proto"
User = yaffjit.load_schema(PROTO)["lifetime.User"]
VIEW = User.numba_type
COUNT = 40

A_VIEW = "a view of lifetime.User"
STATS = "a view of lifetime.Stats"
RECORDS = "records of lifetime.User"
ITERATOR = "an iterator over records of lifetime.User"
KEEP_ROW = "keep its row number, or the values that you need, instead"
OBJMODE = "objmode block, whose objects are gone when it ends: pass it to the jitted function as an argument"
GENERATOR = (
    "between its values, which may outlive the bytes: "
    "iterate over it inside another jitted function, or return a list"
)
CONSTANT = "can't be a global, closure variable or default of a jitted function: pass it as an argument"


def payloads() -> list[bytes]:
    contacts: list[dict[str, Any]] = [{}, {"phone": 0}, {"mail": {"score": 3}}]
    return [
        User.encode({"id": i, "stats": {"score": (i * 7 % COUNT) / 2}, "group": i % 3, **contacts[i % 3]})
        for i in range(COUNT)
    ]


PAYLOADS = payloads()


def made() -> tuple[Any, weakref.ref[Any]]:
    """Records, and a weak reference to their bytes."""
    data = np.frombuffer(b"".join(PAYLOADS), np.uint8).copy()
    data.flags.writeable = False
    offsets = np.cumsum([0, *map(len, PAYLOADS)])
    return yaffjit.records_unchecked(User, (data, offsets)), weakref.ref(data)


def users() -> Any:
    return made()[0]


def stored(what: str, where: str, instead: str = KEEP_ROW) -> str:
    return f"{what} can't be stored in {where}, which may outlive the bytes: {instead}"


Case = Callable[[], object]
REFUSED: list[tuple[Case, str]] = []
LAWFUL: list[Case] = []


def refused(sentence: str) -> Callable[[Case], Case]:
    """The case ends with this sentence and the file and line that its comment `out` marks, if there's one."""

    def note(case: Case) -> Case:
        REFUSED.append((case, sentence))
        return case

    return note


def lawful(case: Case) -> Case:
    """The case returns pairs that are equal."""
    LAWFUL.append(case)
    return case


LIST = "a typed List"
DICT = "a typed Dict"

# ---- typed containers ----


@refused(stored(A_VIEW, LIST))
def list_append() -> None:
    @njit
    def f(records):
        kept = List()
        for v in records:
            kept.append(v)  # out
        return kept

    f(users())


@refused(stored(A_VIEW, LIST))
def list_append_without_rewrites() -> None:
    @njit(no_rewrites=True)
    def f(records):
        kept = List()
        kept.append(records[0])  # out
        return kept

    f(users())


@refused(stored(A_VIEW, LIST))
def list_insert() -> None:
    @njit
    def f(records):
        kept = List()
        kept.insert(0, records[0])  # out
        return kept

    f(users())


@refused(stored(A_VIEW, LIST))
def list_extend() -> None:
    @njit
    def f(records):
        kept = List()
        kept.extend([v for v in records])  # out
        return kept

    f(users())


@refused(stored(A_VIEW, LIST))
def list_of_items() -> None:
    @njit
    def f(records):
        return List([records[0], records[1]])  # out

    f(users())


@refused(stored(A_VIEW, LIST))
def list_of_tuples() -> None:
    @njit
    def f(records):
        kept = List()
        kept.append((1, records[0]))  # out
        return kept

    f(users())


@refused(stored(A_VIEW, LIST))
def list_of_lists() -> None:
    @njit
    def f(records):
        kept = List()
        kept.append([records[0]])  # out
        return kept

    f(users())


@refused(stored(RECORDS, LIST, "pass the records as an argument instead"))
def list_holding_records() -> None:
    @njit
    def f(records):
        kept = List()
        kept.append(records[1:])  # out
        return kept

    f(users())


@refused(stored(ITERATOR, LIST, "keep the row number instead"))
def list_holding_an_iterator() -> None:
    @njit
    def f(records):
        kept = List()
        kept.append(iter(records))  # out
        return kept

    f(users())


@refused(stored(STATS, LIST))
def list_of_nested_messages() -> None:
    @njit
    def f(view):
        kept = List()
        kept.append(view.stats)  # out
        return kept

    f(users()[0])


@refused(stored(A_VIEW, DICT))
def dict_of_views() -> None:
    @njit
    def f(records):
        last = {}
        for v in records:
            last[v.group] = v  # out
        return last

    f(users())


@refused(stored(A_VIEW, DICT))
def dict_literal() -> None:
    @njit
    def f(records):
        return {1: records[0], 2: records[1]}  # out

    f(users())


@refused(stored(A_VIEW, DICT))
def dict_literal_of_names() -> None:
    @njit
    def f(records):
        return {"a": records[0], "b": records[1]}  # out

    f(users())


@refused(stored(A_VIEW, DICT))
def dict_comprehension() -> None:
    @njit
    def f(records):
        return {v.group: v for v in records}  # out

    f(users())


@refused(stored(A_VIEW, DICT))
def dict_empty() -> None:
    @njit
    def f(records):
        kept = Dict.empty(types.int64, VIEW)  # out
        kept[1] = records[0]
        return kept

    f(users())


@refused(stored(A_VIEW, LIST))
def python_list_append() -> None:
    kept = List()
    kept.append(users()[0])  # out


@refused(stored(A_VIEW, LIST))
def python_empty_list() -> None:
    List.empty_list(VIEW)  # out


@refused(stored(A_VIEW, DICT))
def python_dict() -> None:
    Dict.empty(types.int64, VIEW)  # out


# ---- classes ----


@refused(stored(A_VIEW, "a jitclass"))
def jitclass_field() -> None:
    @jitclass([("view", VIEW)])
    class Box:
        def __init__(self, view):  # out
            self.view = view

    Box(users()[0])


@refused(stored(A_VIEW, "a jitclass"))
def jitclass_optional_field() -> None:
    @jitclass([("view", types.optional(VIEW))])
    class Box:
        def __init__(self):  # out
            self.view = None

    Box()


@refused(stored(A_VIEW, "a jitclass"))
def jitclass_deferred_field() -> None:
    later = types.deferred_type()

    @jitclass([("view", later)])
    class Box:
        def __init__(self, view):  # out
            self.view = view

    later.define(VIEW)
    Box(users()[0])


@structref.register
class BoxType(types.StructRef):
    pass


class Box(structref.StructRefProxy):
    def __new__(cls, view: Any) -> Box:
        return structref.StructRefProxy.__new__(cls, view)  # out


structref.define_proxy(Box, BoxType, ["view"])


@refused(stored(A_VIEW, "a structref"))
def struct() -> None:
    Box(users()[0])


# ---- objmode, generators, constants ----


@refused(f"{A_VIEW} can't come out of an {OBJMODE}")
def objmode_result() -> None:
    first = users()[0]

    def make() -> Any:
        return first

    @njit
    def f():
        with objmode(view=VIEW):  # out
            view = make()
        return view.id

    f()


@refused(f"the jitted generator ids holds {RECORDS} {GENERATOR}")
def generator_of_scalars() -> None:
    @njit
    def ids(records):
        for v in records:
            yield v.id

    ids(users())


@refused(f"the jitted generator g holds {A_VIEW} {GENERATOR}")
def generator_of_a_views_values() -> None:
    @njit
    def g(view):
        for i in range(3):
            yield view.id + i

    g(users()[0])


@refused(stored(RECORDS, "a returned generator", "pass the records as an argument instead"))
def generator_in_a_tuple() -> None:
    @njit
    def ids(records):
        for v in records:
            yield v.id

    @njit  # out
    def f(records):
        return 1, ids(records)

    f(users())


@refused(f"{RECORDS} {CONSTANT}")
def closure_of_records() -> None:
    records = users()

    @njit
    def f():
        return records[3].id

    f()


@refused(f"{A_VIEW} {CONSTANT}")
def closure_of_a_view() -> None:
    view = users()[3]

    @njit
    def f():
        return view.id

    f()


@refused(f"{A_VIEW} {CONSTANT}")
def closure_of_a_tuple() -> None:
    pair = (users()[3], users()[4])

    @njit
    def f():
        return pair[0].id

    f()


@refused(f"{A_VIEW} {CONSTANT}")
def closure_of_a_list() -> None:
    listed = [users()[3]]

    @njit
    def f():
        return listed[0].id

    f()


@refused(f"{RECORDS} {CONSTANT}")
def attribute_of_a_module() -> None:
    module = ModuleType("settings")
    module.records = users()

    @njit
    def f():
        return module.records[3].id

    f()


@refused(f"{RECORDS} {CONSTANT}")
def default_of_records() -> None:
    records = users()

    @njit
    def f(i, all_records=records):
        return all_records[i].id

    f(3)


# ---- what goes on working ----


@lawful
def best_so_far() -> Any:
    @njit
    def f(records):
        best = records[0]
        for v in records:
            if v.stats.score > best.stats.score:
                best = v
        return best

    records = users()
    return f(records).id, f.py_func(records).id


@lawful
def optional_best() -> Any:
    @njit
    def f(records, least):
        best = None
        for v in records:
            if v.id > least and (best is None or v.stats.score > best.stats.score):
                best = v
        return best

    records = users()
    return (f(records, 10).id, f(records, COUNT)), (f.py_func(records, 10).id, None)


@lawful
def tuples() -> Any:
    @njit
    def f(records):
        kept = (records[0], records[1], 3)
        a, b, c = kept
        return kept[1].id + a.id + b.id + c

    records = users()
    return f(records), f.py_func(records)


@lawful
def list_comprehension() -> Any:
    @njit
    def f(records):
        kept = [v for v in records if v.id > 5]
        return len(kept), kept[0].id, sum([v.id for v in kept])

    records = users()
    return f(records), f.py_func(records)


@lawful
def oneof_kept_in_a_variable() -> Any:
    @njit
    def f(records):
        phones = mails = 0
        last = None
        for v in records:
            which = v.WhichOneof("contact")
            if which == "phone":
                phones += 1
            elif which is not None:
                mails += 1
                last = which
        return phones, mails, last

    records = users()
    return f(records), f.py_func(records)


@lawful
def through_functions() -> Any:
    @njit
    def score(view, weight):
        return view.stats.score * weight

    @njit
    def better(a, b):
        return a if a.stats.score > b.stats.score else b

    @njit
    def f(records):
        best = records[0]
        for v in records:
            best = better(best, v)
        return score(best, 2.0)

    return f(users()), (COUNT - 1.0)


@lawful
def in_prange() -> Any:
    @njit(parallel=True)
    def f(records, view):
        total = 0.0
        for i in prange(len(records)):
            total += records[i].stats.score + view.stats.score
        return total

    records = users()
    return f(records, records[1]), f.py_func(records, records[1])


@lawful
def closure_of_scalars() -> Any:
    least, weight = 10, 2.5

    @njit
    def f(records):
        def weighted(view):
            return view.stats.score * weight

        total = 0.0
        for v in records:
            if v.id > least:
                total += weighted(v)
        return total

    records = users()
    return f(records), f.py_func(records)


@lawful
def generator_inside() -> Any:
    @njit
    def above(records, least):
        for v in records:
            if v.id > least:
                yield v

    @njit
    def f(records):
        total = 0
        for v in above(records, 5):
            total += v.id
        return total

    return f(users()), sum(range(6, COUNT))


@lawful
def generator_of_an_array() -> Any:
    @njit
    def doubled(numbers):
        for x in numbers:
            yield x * 2

    return list(doubled(np.arange(3))), [0, 2, 4]


@lawful
def containers_of_values() -> Any:
    @njit
    def f(records):
        ids, scores = List(), {}
        for v in records:
            ids.append(v.id)
            scores[v.id] = v.stats.score
        return len(ids), len(scores), scores[2]

    return f(users()), (COUNT, COUNT, 7.0)


@lawful
def list_argument() -> Any:
    @njit
    def f(views, records):
        views.append(records[9])
        return views[0].id + views[1].id

    records = users()
    views = [records[3], records[4]]
    return (f(views, records), [v.id for v in views]), (7, [3, 4, 9])


@lawful
def tuple_argument() -> Any:
    @njit
    def f(pair):
        return pair[0].id + pair[1].id

    records = users()
    return f((records[3], records[4])), 7


@lawful
def enumerate_zip_and_iterators() -> Any:
    @njit
    def f(records):
        total = 0
        for i, v in enumerate(records):
            total += i * v.group
        for a, b in zip(records, records[1:]):  # noqa: B905, RUF007
            total += b.group - a.group
        for v in iter(records):
            total += v.group
        return total

    records = users()
    return f(records), sum(i * (i % 3) for i in range(COUNT)) + (COUNT - 1) % 3 + sum(
        i % 3 for i in range(COUNT)
    )


@lawful
def objmode_argument() -> Any:
    seen: list[int] = []

    def put(view: Any) -> None:
        seen.append(view.id)

    @njit
    def f(records):
        v = records[3]
        with objmode():
            put(v)

    f(users())
    return seen, [3]


@lawful
def try_and_raise() -> Any:
    @njit
    def f(records):
        chosen = records[0]
        try:
            chosen = records[3]
            if chosen.id > 1:
                raise ValueError
        except Exception:
            chosen = records[2]
        return chosen.id

    return f(users()), 2


@lawful
def over_a_tuple() -> Any:
    @njit
    def f(records):
        total = 0
        for v in (records[3], records[4]):
            total += v.id
        pair = [records[3], 1]
        return total + pair[0].id + pair[1]

    return f(users()), 11


@lawful
def temporary_argument() -> Any:
    @njit
    def f(records):
        return records[3].id

    return f(users()), 3


@lawful
def slices() -> Any:
    @njit
    def f(records):
        part = records[3:9]
        if len(part) > 4:
            part = part[1:]
        return [v.id for v in part]

    return f(users()), [4, 5, 6, 7, 8]


# ---- the tests ----


def place(case: Case) -> str:
    """``File "...", line n`` of the comment that marks the way out."""
    lines, first = inspect.getsourcelines(case)
    marked = [first + i for i, line in enumerate(lines) if line.rstrip().endswith("# out")]
    if not marked and case is struct:
        lines, first = inspect.getsourcelines(Box)
        marked = [first + i for i, line in enumerate(lines) if line.rstrip().endswith("# out")]
    return f'.\nFile "{__file__}", line {marked[0]}' if marked else ""


@pytest.mark.parametrize(("case", "sentence"), REFUSED, ids=[case.__name__ for case, _ in REFUSED])
def test_refused(case: Case, sentence: str) -> None:
    for _ in range(2):  # a second compilation isn't harmed by the first
        with pytest.raises(EscapeError) as caught:
            case()
        assert str(caught.value) == sentence + place(case)
    assert isinstance(caught.value, TypeError)
    assert caught.value.args[0] == sentence  # numba has put no words of its own there


@pytest.mark.parametrize("case", LAWFUL, ids=lambda case: case.__name__)
def test_lawful(case: Case) -> None:
    result, expected = case()  # type: ignore[misc]
    assert result == expected


Pair = collections.namedtuple("Pair", "view number")


@njit
def one(records):
    return records[5]


@njit
def nested(records):
    return records[5].stats


@njit
def several(records):
    return records[5], records[6].id, records[7].stats


@njit
def named(records):
    return Pair(records[5], 2)


@njit
def listed(records):
    return [v for v in records if v.id > COUNT - 4]


@njit
def nested_lists(records):
    return [[v] for v in records]


@njit
def maybe(records):
    found = None
    for v in records:
        if v.id == 5:
            found = v
    return found


@njit
def from_a_slice(records):
    return records[3:][2]


@njit
def raises(records):
    raise ValueError(records[5])


def raised(records: Any) -> Any:
    try:
        raises(records)
    except ValueError as error:
        return error.args[0]


@pytest.mark.parametrize(
    ("function", "read", "expected"),
    [
        (one, lambda v: v.id, 5),
        (nested, lambda v: v.score, 17.5),
        (several, lambda t: (t[0].id, t[1], t[2].score), (5, 6, 4.5)),
        (named, lambda p: (p.view.id, p.number), (5, 2)),
        (listed, lambda views: [v.id for v in views], [COUNT - 3, COUNT - 2, COUNT - 1]),
        (nested_lists, lambda lists: lists[5][0].id, 5),
        (maybe, lambda v: v.id, 5),
        (from_a_slice, lambda v: v.id, 5),
        (raised, lambda v: v.id, 5),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_returned_keeps_the_bytes(function: Any, read: Callable[[Any], Any], expected: Any) -> None:
    records, data = made()
    result = function(records)
    del records
    gc.collect()
    assert data() is not None
    assert read(result) == expected
    del result
    gc.collect()
    if function is not raised:  # numba leaks what it raises
        assert data() is None


def test_two_owners_in_one_variable() -> None:
    @njit
    def last(first, second):
        chosen = first[0]
        for v in second:
            chosen = v
        return chosen

    (first, first_data), (second, second_data) = made(), made()
    view = last(first, second)
    del first, second
    gc.collect()
    assert (first_data() is None, second_data() is None) == (True, False)
    assert view.id == COUNT - 1


def test_functions_without_our_types_compile_as_before() -> None:
    @njit
    def f(n):
        squares, by_number = List(), {}
        for i in range(n):
            squares.append((i, i * i))
            by_number[i] = (i, "x")
        return squares, by_number

    squares, by_number = f(3)
    assert list(squares) == [(0, 0), (1, 1), (2, 4)]
    assert by_number[2] == (2, "x")


def test_a_view_compiles_after_a_refusal_in_the_same_function() -> None:
    @njit
    def f(x, keep):
        kept = List()
        kept.append(x)
        return len(kept)

    with pytest.raises(EscapeError):
        f(users()[0], True)
    assert f(3, True) == 1
    with pytest.raises(EscapeError):
        f(users()[0], True)


def test_in_code_from_a_string() -> None:
    """No file has the line then: the sentence is there all the same."""
    code = textwrap.dedent(f"""
        import yaffjit, numba
        from numba.typed import List
        user = yaffjit.load_schema({str(PROTO)!r})["lifetime.User"]

        @numba.njit
        def f(view):
            kept = List()
            kept.append(view)
            return kept

        try:
            f(user.view(user.encode({{"id": 1}})))
        except yaffjit.errors.EscapeError as error:
            print(error)
    """)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert not done.stderr
    assert done.stdout == stored(A_VIEW, LIST) + '.\nFile "<string>", line 9\n'


def test_numbas_private_places_are_there() -> None:
    """What the boxer of generators replaces; a numba without it needs another way."""
    from numba.core.pythonapi import _boxers

    assert _boxers.functions[numba.types.Generator].__module__ == "yaffjit.jit.lifetime"
