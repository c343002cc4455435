"""Views that jitted code makes of arrays: they read what was written before, and keep their bytes alive."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import textwrap
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jit_kinds
import numba
import numpy as np
import pytest
from numba import njit
from numba.core.runtime import _nrt_python, rtsys

import yaffjit
from yaffjit.errors import (
    CompileAttributeError,
    CompileTypeError,
    EscapeError,
    ShortBufferError,
    VerifyError,
)
from yaffjit.view import View

SCHEMAS = Path(__file__).parent / "schemas"
Shelf = yaffjit.load_schema(SCHEMAS / "shown.proto")["shown.Shelf"]
COUNT = 8


def content(i: int) -> dict[str, Any]:
    return {
        "id": 2**63 + i,
        "small": i,
        "weight": i / 4,
        "open": i % 2 == 0,
        "state": i % 2,
        "title": f"añb{i}",
        "raw": b"\xff" * i,
        "numbers": list(range(i)),
        "names": [f"n{k}" for k in range(i)],
        "shelves": [{"id": k, "title": f"t{k}"} for k in range(i)],
        "by_number": {k: k * i for k in range(i)},
        "by_name": {f"k{k}": {"small": k, "title": f"s{k}"} for k in range(i)},
        "inner": {"weight": -i / 2, "title": f"i{i}"},
        **({"left": i} if i % 2 else {"right": f"r{i}"}),
    }


PAYLOADS = [Shelf.encode(content(i)) for i in range(COUNT)]
DATA = np.frombuffer(b"".join(PAYLOADS), np.uint8)
OFFSETS = np.cumsum([0, *map(len, PAYLOADS)])


@njit
def waste() -> int:
    """Writes over memory that was freed: takes much of each size, and fills it."""
    total = 0
    for size in range(16, 800, 16):
        taken = [np.full(size, 255, np.uint8) for _ in range(4)]
        total += len(taken)
    return total


@njit
def copy_of(data: Any, offsets: Any, i: int) -> Any:
    return data[offsets[i] : offsets[i + 1]].copy()


def plain(value: Any) -> Any:
    """A value to be compared: views as their bytes, containers as lists.

    Not as messages, which differ where another test has loaded the schema too.
    """
    if isinstance(value, View):
        return value.SerializeToString(deterministic=True)
    if isinstance(value, dict) or hasattr(value, "items"):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (str, bytes, int, float, np.generic)) or value is None:
        return value
    return list(map(plain, value))


@contextmanager
def balanced_memory() -> Iterator[None]:
    """All that's allocated inside is freed inside."""
    had_stats = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        yield
        gc.collect()
        after = rtsys.get_allocation_stats()
    finally:
        if not had_stats:
            _nrt_python.memsys_disable_stats()
    assert after.alloc - before.alloc == after.free - before.free > 0
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free > 0


# ---- what is read from a made view outlives the array ----

Case = Callable[[Any, Any], Any]


def best(data: Any, offsets: Any) -> Any:
    best = None
    for i in range(COUNT):
        view = Shelf.view_unchecked(copy_of(data, offsets, i))
        if best is None or view.small * 3 % 8 > best.small * 3 % 8:
            best = view
        waste()
    return best


def tuples(data: Any, offsets: Any) -> Any:
    view = Shelf.view_unchecked(copy_of(data, offsets, 3))
    pair = (view.inner, view.shelves[1], view.small)
    waste()
    return pair, (pair[0].title, pair[1].title)


def lists(data: Any, offsets: Any) -> Any:
    views = [Shelf.view_unchecked(copy_of(data, offsets, i)) for i in range(COUNT)]
    waste()
    return [view.inner for view in views], [view.title for view in views]


def helped(data: Any, offsets: Any) -> Any:
    first, second = made_by_helper(data, offsets, 2), inner_of(made_by_helper(data, offsets, 5))
    waste()
    return first, second, second.weight


@njit
def made_by_helper(data: Any, offsets: Any, i: int) -> Any:
    return Shelf.view_unchecked(copy_of(data, offsets, i))


@njit(inline="always")
def inner_of(view: Any) -> Any:
    return view.inner


def texts(data: Any, offsets: Any) -> Any:
    longest = ""
    characters = []
    for i in range(COUNT):
        view = Shelf.view_unchecked(copy_of(data, offsets, i))
        title, part, other = view.title, view.title[1:], view.inner.title
        waste()
        if title > longest:
            longest = title
        for character in part:
            waste()
            characters.append(character)
        characters.append(min(other, title))
    return longest, characters


def raw(data: Any, offsets: Any) -> Any:
    found = Shelf.view_unchecked(copy_of(data, offsets, 6)).raw
    part = Shelf.view_unchecked(copy_of(data, offsets, 7)).raw[3:]
    waste()
    return found, part, sum([number for number in part]), len(np.frombuffer(part, np.uint8))


def repeated(data: Any, offsets: Any) -> Any:
    numbers = Shelf.view_unchecked(copy_of(data, offsets, 6)).numbers
    names = Shelf.view_unchecked(copy_of(data, offsets, 5)).names[1:4]
    array = np.asarray(Shelf.view_unchecked(copy_of(data, offsets, 4)).numbers)
    waste()
    titles = []
    for shelf in Shelf.view_unchecked(copy_of(data, offsets, 6)).shelves:
        waste()
        titles.append(shelf.title)
    for name in reversed(Shelf.view_unchecked(copy_of(data, offsets, 3)).names):
        waste()
        titles.append(name)
    for i, name in enumerate(Shelf.view_unchecked(copy_of(data, offsets, 3)).names):
        waste()
        titles.append(name[i:])
    return numbers, names, titles, sum(numbers), max(names), array.sum(), "n2" in names


def maps(data: Any, offsets: Any) -> Any:
    by_name = Shelf.view_unchecked(copy_of(data, offsets, 6)).by_name
    by_number = Shelf.view_unchecked(copy_of(data, offsets, 5)).by_number
    shelf = Shelf.view_unchecked(copy_of(data, offsets, 4)).by_name["k2"]
    waste()
    found = by_name.get("k1", by_name["k2"])
    titles = []
    for key, value in Shelf.view_unchecked(copy_of(data, offsets, 3)).by_name.items():
        waste()
        titles.append(value.title[1:])
        titles.append(key)
    for value in Shelf.view_unchecked(copy_of(data, offsets, 7)).by_name.values():
        waste()
        titles.append(value.title)
    missing = by_name.get("none") is None
    return by_name, by_number, shelf, found, titles, missing, by_number[4], len(by_number)


def oneofs(data: Any, offsets: Any) -> Any:
    found = []
    for i in range(COUNT):
        kind = Shelf.view_unchecked(copy_of(data, offsets, i)).WhichOneof("choice")
        waste()
        found.append((kind is None, kind == "left"))
    return found


def optional(data: Any, offsets: Any) -> Any:
    found = [maybe(Shelf.view_unchecked(copy_of(data, offsets, i)), i % 3 == 0) is None for i in range(COUNT)]
    kept = maybe(Shelf.view_unchecked(copy_of(data, offsets, 4)), False)
    waste()
    return found, kept


@njit
def maybe(view: Any, none: bool) -> Any:
    if none:
        return None
    return view.inner


def values_of(data: Any, offsets: Any) -> Any:
    return [(view.title, view.inner) for view in all_views(data, offsets)]


@njit
def all_views(data: Any, offsets: Any) -> Any:
    kept = [Shelf.view_unchecked(copy_of(data, offsets, 0))]
    for i in range(1, COUNT):
        kept.append(Shelf.view_unchecked(copy_of(data, offsets, i)))
        waste()
    kept[0], kept[1] = kept[1], kept[0]
    last = kept.pop()
    kept.insert(0, last)
    return kept


CASES = [best, tuples, lists, helped, texts, raw, repeated, maps, oneofs, optional, values_of]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_bytes_live_as_long_as_what_was_read(case: Case) -> None:
    """Equal results of plain Python and of jitted code; nothing is leaked or freed twice."""
    expected = plain(case(DATA, OFFSETS))
    jitted = njit(case)
    found = jitted(DATA, OFFSETS)
    waste()
    assert plain(found) == expected
    del found
    gc.collect()
    with balanced_memory():
        assert plain(jitted(DATA, OFFSETS)) == expected


# ---- what was written before is read ----

Dynamic = jit_kinds.message_type("dynamic")
Fixed = jit_kinds.message_type("fixed")


def all_of(m: Any) -> Any:
    return (
        (m.plain_double, m.plain_float, m.plain_int32, m.plain_int64, m.plain_uint32, m.plain_uint64),
        (m.plain_sint32, m.plain_sint64, m.plain_fixed32, m.plain_fixed64, m.plain_sfixed32),
        (m.plain_sfixed64, m.plain_bool, m.plain_color, m.maybe_double, m.maybe_float, m.maybe_int32),
        (m.maybe_int64, m.maybe_uint32, m.maybe_uint64, m.maybe_sint32, m.maybe_sint64, m.maybe_fixed32),
        (m.maybe_fixed64, m.maybe_sfixed32, m.maybe_sfixed64, m.maybe_bool, m.maybe_color),
        (
            m.HasField("maybe_double"),
            m.HasField("maybe_bool"),
            m.HasField("maybe_color"),
            m.HasField("child"),
        ),
        (
            m.child.plain_int64,
            m.child.maybe_double,
            m.child.child.plain_bool,
            m.child.child.HasField("child"),
        ),
        (m.text, m.raw, len(m.many), len(m.pairs)),
    )


@pytest.mark.parametrize("of", [Dynamic, Fixed], ids=["dynamic", "fixed"])
def test_fields_of_every_kind(of: yaffjit.MessageType) -> None:
    """All messages are written into one array after each other."""
    read = njit(all_of)
    reading = njit(lambda buffer: read(of.view_unchecked(buffer)))
    forms = ("flat", "sparse") if of is Dynamic else ("flat",)
    layout = "dynamic" if of is Dynamic else "fixed"
    payloads = [of.encode(values, form) for values in jit_kinds.contents(layout).values() for form in forms]
    buffer = np.zeros(max(map(len, payloads)), np.uint8)
    for payload in payloads:
        buffer[: len(payload)] = np.frombuffer(payload, np.uint8)
        assert repr(reading(buffer)) == repr(all_of(of.view(payload)))


ONE = np.frombuffer(Dynamic.encode({"plain_int32": 5, "text": "one", "many": [1, 2]}), np.uint8)
NUMBER_AT = ONE.tobytes().index(b"\x05\0\0\0", 12)
TEXT_AT = ONE.tobytes().index(b"one")
MANY_AT = ONE.tobytes().index(b"\x01\0\0\0\x02\0\0\0")


def total_of_rewritten(buffer: Any, turns: int) -> Any:
    total, last, first = 0, 0, ""
    for i in range(turns):
        buffer[NUMBER_AT] = i
        buffer[MANY_AT] = 2 * i
        buffer[TEXT_AT] = 97 + i
        view = Dynamic.view_unchecked(buffer)
        total += view.plain_int32 * sum(view.many) * (1 if "b" in view.text else 2)
        last = view.plain_int32 + view.many[0]  # read here, used only behind the loop
        first = str(view.text)
        buffer[NUMBER_AT] = 200
        buffer[MANY_AT] = 200
        buffer[TEXT_AT] = 65
    return total, last, first


def test_each_turn_of_a_loop_reads_what_it_wrote() -> None:
    """Getters of views of records are taken to read what never changes: LLVM moves such behind the writes."""
    expected = total_of_rewritten(ONE.copy(), 7)
    assert expected[1:] == (18, "gne")
    assert njit(total_of_rewritten)(ONE.copy(), 7) == expected


def reads_between_writes(buffer: Any) -> Any:
    view = Dynamic.view_unchecked(buffer)
    many = view.many
    before = view.plain_int32, many[0], view.text == "one", hash(view.text) == hash("one"), many[1] in many
    buffer[NUMBER_AT] = 9
    buffer[MANY_AT] = 8
    buffer[TEXT_AT] = 79
    return before, (view.plain_int32, many[0], view.text == "one", view.text == "One", sum(many), 8 in many)


def test_reads_and_writes_stay_in_order() -> None:
    expected = reads_between_writes(ONE.copy())
    assert expected == ((5, 1, True, True, True), (9, 8, False, True, 10, True))
    assert njit(reads_between_writes)(ONE.copy()) == expected


def test_no_getter_of_a_made_view_is_taken_to_read_what_never_changes() -> None:
    borrowed = njit(lambda view: view.child.plain_int64 + len(view.text) + view.many[0])
    read = njit(borrowed.py_func)
    of_made = njit(lambda data: read(Dynamic.view_unchecked(data)))
    for function, given, expected in ((of_made, ONE, False), (borrowed, Dynamic.view(ONE), True)):
        function(given)
        (text,) = function.inspect_llvm().values()
        assert bool(re.search(r"!invariant\.load", text)) is expected


# ---- in loops of many threads, in generators, beside views of records ----


def in_parallel(data: Any, offsets: Any, view: Any) -> Any:
    found = np.zeros(COUNT)
    for i in numba.prange(COUNT):
        made = Shelf.view_unchecked(data[offsets[i] : offsets[i + 1]])
        found[i] = made.weight + made.inner.weight + len(made.names) + view.weight
    return found


def test_prange() -> None:
    jitted = njit(parallel=True)(in_parallel)
    both = njit(lambda data, offsets: jitted(data, offsets, Shelf.view_unchecked(copy_of(data, offsets, 5))))
    expected = in_parallel(DATA, OFFSETS, Shelf.view(PAYLOADS[5]))
    found = both(DATA, OFFSETS).tolist()
    with balanced_memory():
        again = both(DATA, OFFSETS).tolist()
    assert found == again == expected.tolist()


def test_generators_within_jitted_code() -> None:
    @njit
    def shelves(data: Any, offsets: Any) -> Any:
        for i in range(COUNT):
            yield Shelf.view_unchecked(copy_of(data, offsets, i))

    @njit
    def total(data: Any, offsets: Any) -> Any:
        total = 0
        for view in shelves(data, offsets):
            waste()
            if len(view.numbers) > 2:
                total += view.numbers[2] * len(view.shelves)
            else:
                total += 100
        return total

    assert total(DATA, OFFSETS) == 300 + 2 * sum(range(3, COUNT))


def test_a_variable_of_both_holds_what_it_has() -> None:
    """A view of records that meets a made one is counted from there on."""

    @njit
    def heavier(view: Any, data: Any, least: float) -> Any:
        chosen = view
        if view.weight < least:
            chosen = Shelf.view_unchecked(data.copy())
        waste()
        return chosen, chosen.names, chosen.by_number, chosen.title, chosen.names[1:]

    given = yaffjit.records(Shelf, PAYLOADS)[2]
    for least, i in ((0.0, 2), (9.0, 6)):
        found = heavier(given, np.frombuffer(PAYLOADS[6], np.uint8), least)
        of = Shelf.view(PAYLOADS[i])
        expected = of, of.names, of.by_number, of.title, of.names[1:]
        assert plain(found) == plain(expected)
    bytes_of_given = weakref.ref(found[0]._owner_)
    del found, of, expected
    assert bytes_of_given() is None


# ---- what comes out ----


@njit
def parts(data: Any) -> Any:
    view = Shelf.view_unchecked(data)
    return view, view.inner, view.numbers, view.names, view.shelves, view.by_name, view.names[1:], view.raw


def arrays() -> dict[str, Any]:
    """Buffers of one message, by how numba comes to know them."""
    payload = PAYLOADS[6]
    array = np.frombuffer(payload, np.uint8).copy()
    whole = np.zeros((3, len(payload)), np.uint8)
    whole[1] = array
    padded = np.concatenate([np.full(7, 255, np.uint8), array, array])
    return {
        "an array": array,
        "a read-only array": np.frombuffer(payload, np.uint8),
        "bytes": payload,
        "a bytearray": bytearray(payload),
        "a memoryview": memoryview(payload),
        "a row": whole[1],
        "a slice": padded[7:],
    }


@njit
def made(data: Any) -> Any:
    return Shelf.view_unchecked(data)


@pytest.mark.parametrize("name", arrays())
def test_views_come_out_with_a_hold_of_the_bytes(name: str) -> None:
    data = arrays()[name]
    found = made(data)
    if isinstance(data, bytearray):
        with pytest.raises(BufferError):
            data.clear()
    del data
    gc.collect()
    waste()
    assert found == Shelf.view(PAYLOADS[6])
    names = found.names
    del found
    gc.collect()
    waste()
    assert list(names) == ["n0", "n1", "n2", "n3", "n4", "n5"]


def test_what_is_read_of_views_comes_out_too() -> None:
    expected = Shelf.view(PAYLOADS[6])
    found = parts(np.frombuffer(PAYLOADS[6], np.uint8).copy())
    gc.collect()
    waste()
    values = [expected, expected.inner, expected.numbers, expected.names, expected.shelves]
    values += [expected.by_name, expected.names[1:], expected.raw]
    assert plain(found) == plain(values)
    assert found[0].shelves[-1].title == "t5"
    assert np.asarray(found[2]).tolist() == [0, 1, 2, 3, 4, 5]
    # and into jitted code again
    assert njit(lambda view: view.inner.title)(found[0]) == "i6"
    alone = found[4]
    del found
    gc.collect()
    waste()
    assert plain(alone) == plain(expected.shelves)


def test_a_view_that_comes_out_is_of_the_array_itself() -> None:
    array = np.frombuffer(PAYLOADS[4], np.uint8).copy()
    kept = weakref.ref(array)
    view = made(array)
    assert np.shares_memory(np.frombuffer(view._data_, np.uint8), array)
    del array
    gc.collect()
    assert kept() is not None
    assert view.title == "añb4"
    del view
    gc.collect()
    assert kept() is None


def test_absent_messages_and_defaults_come_out() -> None:
    empty = np.frombuffer(Shelf.encode({}), np.uint8)
    view, inner, numbers, names, shelves, by_name, part, raw = parts(empty)
    assert not view.HasField("inner")
    assert inner == Shelf.view(Shelf.encode({})).inner
    assert (list(numbers), list(names), list(shelves), dict(by_name), part, raw) == ([], [], [], {}, [], b"")


def test_bytes_within_messages_and_constants() -> None:
    nested = yaffjit.records(Shelf, [Shelf.encode({"raw": PAYLOADS[i]}) for i in range(COUNT)])

    @njit
    def inner_of(records: Any, i: int) -> Any:
        view = Shelf.view_unchecked(records[i].raw)
        array = Shelf.view_unchecked(np.frombuffer(records[i].raw, np.uint8))
        return view, array.inner, array.names

    found = inner_of(nested, 3)
    expected = Shelf.view(PAYLOADS[3])
    del nested
    gc.collect()
    waste()
    assert plain(found) == plain([expected, expected.inner, expected.names])

    constant = np.frombuffer(PAYLOADS[5], np.uint8)
    view, names = njit(lambda: (Shelf.view_unchecked(constant), Shelf.view_unchecked(constant).names))()
    assert view == Shelf.view(PAYLOADS[5])
    assert list(names) == ["n0", "n1", "n2", "n3", "n4"]


def test_text_that_is_not_utf8_frees_what_was_made() -> None:
    broken = np.frombuffer(PAYLOADS[4].replace("ñ".encode(), b"\xff\xff"), np.uint8)
    titles = njit(lambda data: (Shelf.view_unchecked(data), Shelf.view_unchecked(data).title, data.copy()))
    with pytest.raises(UnicodeDecodeError):
        titles(broken)
    with balanced_memory():
        for _ in range(3):
            with pytest.raises(UnicodeDecodeError):
                titles(broken)


# ---- what is refused, and raised ----


def test_buffers_that_end_too_soon() -> None:
    titles = njit(lambda data: Shelf.view_unchecked(data).title)
    whole = np.frombuffer(PAYLOADS[3], np.uint8)
    root = int(whole[:4].view(np.uint32)[0])
    for nbytes in (0, 3, 4, root, root + 1):
        for read in (titles, lambda data: Shelf.view_unchecked(data).title):
            with pytest.raises(ShortBufferError) as raised:
                read(whole[:nbytes])
            assert isinstance(raised.value, VerifyError)
            assert raised.value.nbytes == nbytes
            text = f"shown.Shelf: the buffer of {nbytes} bytes ends before the root message"
            assert str(raised.value) == text


OUTSIDE = "of the message type shown.Shelf isn't available in jitted code: use it outside"
REFUSED: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda data: Shelf.view_unchecked(), CompileTypeError, "view_unchecked() takes one buffer"),
    (lambda data: Shelf.view_unchecked(buf=data), CompileTypeError, "view_unchecked() takes one buffer"),
    (
        lambda data: Shelf.view_unchecked(data[::2]),
        CompileTypeError,
        "view_unchecked() takes a contiguous array of uint8, or bytes, not array(uint8, 1d, A)",
    ),
    (
        lambda data: Shelf.view_unchecked("text"),
        CompileTypeError,
        "view_unchecked() takes a contiguous array of uint8, or bytes, not str",
    ),
    (lambda data: Shelf.encode(data), CompileTypeError, f"encode {OUTSIDE}"),
    (
        lambda data: Shelf.view_unsure(data),
        CompileAttributeError,
        "the message type shown.Shelf has no 'view_unsure' (did you mean 'view_unchecked'?)",
    ),
    (
        lambda data: numba.typed.List([Shelf.view_unchecked(data)]),
        EscapeError,
        "a view of shown.Shelf can't be stored in a typed List, which may outlive the bytes: "
        "keep its row number, or the values that you need, instead",
    ),
]


@pytest.mark.parametrize(("function", "error", "text"), REFUSED)
def test_refused(function: Callable[[Any], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as raised:
        njit(function)(np.frombuffer(PAYLOADS[1], np.uint8).copy())
    assert str(raised.value).startswith(f"{text}.\nFile")


# ---- message types in jitted code ----


def test_a_message_type_is_an_argument_too() -> None:
    @njit
    def weight(of: Any, data: Any) -> Any:
        return of.view_unchecked(data).weight

    assert weight(Shelf, np.frombuffer(PAYLOADS[3], np.uint8)) == 0.75


def test_a_first_function_that_takes_only_an_array(tmp_path: Path) -> None:
    """Nothing of ours is loaded when numba comes to the message type. It isn't kept on disk: its arguments
    don't tell the schema.
    """
    script = f"""
        import numba
        import numpy as np
        import yaffjit

        Shelf = yaffjit.load_schema({str(SCHEMAS / "shown.proto")!r})["shown.Shelf"]

        @numba.njit(cache=True)
        def weight(data):
            return Shelf.view_unchecked(data).weight

        @numba.njit(cache=True)
        def weight_of(of, data):
            return of.view_unchecked(data).weight

        data = np.frombuffer(Shelf.encode({{"weight": 2.5}}), np.uint8)
        print(weight(data), weight_of(Shelf, data))
        print(sum(weight.stats.cache_hits.values()), sum(weight_of.stats.cache_hits.values()))
    """
    path = tmp_path / "first.py"
    path.write_text(textwrap.dedent(script))
    runs = [
        subprocess.run([sys.executable, path], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    ]
    assert runs == [["2.5", "2.5", "0", "0"], ["2.5", "2.5", "0", "1"]]
