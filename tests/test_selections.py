"""Records of every origin, in every selection, beside plain lists: in Python, jitted and pickled."""

from __future__ import annotations

import copy
import gc
import itertools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import yaffjit as yj
from yaffjit.errors import RowError
from yaffjit.plan.pages import PAGE_ROWS
from yaffjit.rows import Records, places
from yaffjit.rows.chunks import MOST_CHUNKS_OF_A_PAGE, Chunk, Chunks

ROWS = 40
Rows = list[int]  # what records hold, by row number among all; -1 for null


PROTO = """
syntax = "proto3";
package selections;
message Row {
  uint64 id = 1;
  string name = 2;
  repeated double weights = 3;
  map<int32, string> names = 4;
  Row child = 5;
  // Enough for a byte of presence bits above 127.
  optional int32 f6 = 6;
  optional int32 f7 = 7;
  optional string f8 = 8;
  optional int32 f9 = 9;
  repeated string f10 = 10;
  optional double f17 = 17;
}
"""


@pytest.fixture(scope="module")
def schema_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("selections") / "selections.proto"
    path.write_text(PROTO)
    return path


@pytest.fixture(scope="module")
def row_type(schema_path: Path) -> yj.MessageType:
    return yj.load_schema(schema_path)["selections.Row"]


@pytest.fixture(scope="module")
def payloads(row_type: yj.MessageType) -> list[bytes]:
    return [row_type.encode({"id": row, "name": "n" * (row % 5)}) for row in range(ROWS)]


def total(recs: Any) -> tuple[int, int, int]:
    found = 0
    of_rows = 0
    named = 0
    for place, view in enumerate(recs):
        found += (place + 1) * view.id
        named += len(view.name)
    for place in range(len(recs)):
        of_rows += (place + 1) * recs[place].id + recs[place - len(recs)].id
    return found, of_rows, named


jitted_total = numba.njit(total)


@numba.njit
def one(recs: Any, row: int) -> Any:
    return recs[row]


def chunked(mp: Any, payloads: list[bytes], sizes: list[int], shared: bool = False) -> Records:
    """Chunks of so many rows, with offsets that start somewhere, in one buffer or in one each."""
    chunks = []
    whole = b"xyz" + b"".join(payloads)
    end = 3
    left = list(payloads)
    for size in sizes:
        mine, left = left[:size], left[size:]
        nbytes = np.cumsum([0, *map(len, mine)])
        if shared:
            chunks.append(Chunk(whole, end - 2, int(nbytes[-1]) + 2, nbytes + 2))
            end += int(nbytes[-1])
        else:
            data = memoryview(b"ab" + b"".join(mine))
            chunks.append(Chunk(data, 1, len(data) - 1, nbytes + 1))
    assert not left
    return Records._of(mp, Chunks(mp.plan, chunks))


Make = Callable[[yj.MessageType, list[Any], Path], Records]


def arrow(kind: Any) -> Make:
    return lambda message_type, payloads, folder: yj.records(message_type, pa.array(payloads, kind))


def joined(message_type: yj.MessageType, payloads: list[bytes], folder: Path) -> Records:
    return yj.records(message_type, (b"".join(payloads), np.cumsum([0, *map(len, payloads)])))


def index(message_type: yj.MessageType, payloads: list[bytes], folder: Path) -> Records:
    path = folder / "rows.arrow"
    if not path.exists():
        yj.build_index(path, message_type, (message_type.decode(payload) for payload in payloads))
    return yj.open_index(path, message_type)


def pieces(message_type: yj.MessageType, payloads: list[bytes], folder: Path) -> Records:
    return yj.concat(
        [
            joined(message_type, payloads[:9], folder),
            yj.records(message_type, payloads[9:15]),
            joined(message_type, payloads[15:], folder),
        ]
    )


# Each takes all payloads, None for null rows if its name says so.
ORIGINS: dict[str, Make] = {
    "list": lambda message_type, payloads, folder: yj.records(message_type, payloads),
    "list, nulls": lambda message_type, payloads, folder: yj.records(message_type, payloads),
    "data and offsets": joined,
    "binary": arrow(pa.binary()),
    "large_binary, nulls": arrow(pa.large_binary()),
    "binary_view": arrow(pa.binary_view()),
    "binary_view, nulls": arrow(pa.binary_view()),
    "dictionary, nulls": lambda message_type, payloads, folder: yj.records(
        message_type, pa.array(payloads, pa.binary()).dictionary_encode()
    ),
    "index": index,
    "concatenation": pieces,
    "chunks in buffers": lambda message_type, payloads, folder: chunked(
        message_type.plan, payloads, [0, 1, 0, 0, 7, 30, 2, 0]
    ),
    "chunks in one buffer": lambda message_type, payloads, folder: chunked(
        message_type.plan, payloads, [5, 0, 5, 25, 4, 1], shared=True
    ),
    "many tiny chunks": lambda message_type, payloads, folder: chunked(
        message_type.plan, payloads, [1] * ROWS
    ),
}
SCATTERED = ("list", "binary_view", "concatenation", "many tiny chunks")


def check(recs: Records, rows: Rows, payloads: list[bytes], jitted: bool = True) -> None:
    """Records hold what the list says."""
    expected = [payloads[row] if row >= 0 else None for row in rows]
    assert (len(recs), bool(recs)) == (len(rows), bool(rows))
    assert [view.id for view in recs] == [max(0, row) for row in rows]
    assert [view.id for view in reversed(recs)] == [max(0, row) for row in rows[::-1]]
    assert [recs.payload(row) for row in range(-len(rows), 0)] == expected
    assert recs.valid.tolist() == [row >= 0 for row in rows]
    assert recs.nbytes == sum(len(payload or b"") for payload in expected)
    if jitted:
        assert jitted_total(recs) == total(recs)
        if rows:
            view = one(recs, -1)
            assert view == recs[-1]
            assert view.name == "n" * (max(0, rows[-1]) % 5)


def keys(count: int) -> st.SearchStrategy[Any]:
    bound = st.none() | st.integers(-count - 2, count + 2)
    step = st.sampled_from([None, 1, 1, 1, 2, -1, -3])
    rows = st.lists(st.integers(-count, count - 1), max_size=count + 3) if count else st.just([])
    return st.one_of(
        st.builds(slice, bound, bound, step),
        st.lists(st.booleans(), min_size=count, max_size=count).map(lambda mask: np.array(mask, np.bool_)),
        rows,
        rows.map(lambda found: np.array(found, np.int16)),
        st.integers(0, count + 2).map(lambda size: ("batches", size)),
        st.just("twice"),
        st.just("pickled"),
    )


def select(rows: list[Any], key: Any) -> list[Any]:
    """What a key selects of a list."""
    if isinstance(key, slice):
        return rows[key]
    if isinstance(key, np.ndarray) and key.dtype == np.bool_:
        return list(itertools.compress(rows, key))
    return [rows[row] for row in key]


@pytest.mark.parametrize("origin", list(ORIGINS))
def test_selections_are_those_of_lists(
    row_type: yj.MessageType,
    payloads: list[bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    origin: str,
) -> None:
    rows = list(range(ROWS))
    if origin.endswith(", nulls"):
        rows[::7] = [-1] * len(rows[::7])
    whole = ORIGINS[origin](row_type, [payloads[row] if row >= 0 else None for row in rows], tmp_path)
    assert whole._store.scattered == (origin in SCATTERED or origin.endswith(", nulls"))
    check(whole, rows, payloads)
    whole.verify()

    @settings(max_examples=40, deadline=None)
    @given(st.data())
    def run(data: Any) -> None:
        compiled = data.draw(st.booleans())
        monkeypatch.setattr(places, "COMPILED_ROWS", 1 if compiled else 10**9)
        recs, held = whole, list(rows)
        for _ in range(data.draw(st.integers(1, 4))):
            key = data.draw(keys(len(held)))
            if isinstance(key, tuple):
                parts = list(recs.batches(max(1, key[1])))
                assert [len(part) for part in parts[:-1]] == [max(1, key[1])] * (len(parts) - 1)
                recs = yj.concat(parts) if parts else recs
            elif isinstance(key, str):
                recs, held = (
                    (recs + recs, held + held) if key == "twice" else (pickle.loads(pickle.dumps(recs)), held)
                )
            else:
                selected = recs[key]
                if not isinstance(key, slice) and getattr(key, "dtype", None) != np.bool_:
                    check(recs.take(key), select(held, key), payloads, jitted=False)
                recs, held = selected, select(held, key)
        check(recs, held, payloads)

    run()


def test_one_function_is_compiled_once_for_each_form(
    row_type: yj.MessageType, payloads: list[bytes], tmp_path: Path
) -> None:
    function = numba.njit(lambda recs: recs[0].id)
    for make in ORIGINS.values():
        function(make(row_type, payloads, tmp_path))
    assert set(function.signatures) == {(row_type.records_type,), (row_type.scattered_records_type,)}
    explicit = numba.njit((row_type.scattered_records_type,))(lambda recs: recs[1].id)
    assert explicit(yj.records(row_type, payloads)) == 1


def test_selections_share_the_messages(row_type: yj.MessageType, payloads: list[bytes]) -> None:
    recs = yj.records(row_type, payloads)
    joined_recs = joined(row_type, payloads, Path())
    for whole in (recs, joined_recs):
        for part in (
            whole[::2],
            whole[[4, 2]],
            whole[np.arange(ROWS) > 3],
            whole.take([9])[:1],
            whole.sample(3),
        ):
            assert part._owner is whole._owner
        assert whole[4:][2:][1]._data_ is whole.take([7, 7])[1]._data_ is whole[7]._data_
        assert (whole[:3] + whole[5:])._owner is whole._owner
    both = recs + joined_recs
    assert both[3]._data_ is payloads[3]
    assert both[ROWS + 3]._data_ is joined_recs[0]._data_


@numba.njit
def parts(recs: Any, row: int) -> Any:
    view = recs[row]
    return view.weights, view.names, view.child, np.asarray(view.weights)


def test_what_comes_out_of_jitted_code_has_its_bytes(row_type: yj.MessageType) -> None:
    """Of many buffers, also where nothing but an array is left that knows them."""
    contents: list[dict[str, Any]] = [
        {"weights": [row / 4, 2.0], "names": {7: "seven"}, "child": {"id": row}} for row in range(ROWS)
    ]
    contents[3] = {"weights": [], "names": {}, "child": {"name": "last"}}
    contents[4] = {}
    made = [row_type.encode(content) for content in contents]
    whole = b"".join(made)
    offsets = np.cumsum([0, *map(len, made)]).tolist()
    side_by_side = [memoryview(whole)[start:stop] for start, stop in itertools.pairwise(offsets)]
    for payloads in (made, side_by_side, [*made[:20], None, *side_by_side[20:]]):
        recs = yj.records(row_type, payloads)
        for row in range(len(payloads)):
            weights, names, child, array = parts(recs, row)
            view = recs[row]
            assert (list(weights), dict(names), child) == (list(view.weights), dict(view.names), view.child)
            assert array.tolist() == list(view.weights)
            if payloads[row] is not None and row > 4:
                assert child._data_ is view._data_
    array = parts(recs, 1)[3]
    del recs, view, weights, names, child, payloads, side_by_side, made, whole
    gc.collect()
    assert array.tolist() == [0.25, 2.0]


def test_head_tail_and_sample(row_type: yj.MessageType, payloads: list[bytes]) -> None:
    recs = yj.records(row_type, payloads)
    rows = list(range(ROWS))
    for n in (0, 1, 5, ROWS, ROWS + 7, 2**70, -1, -ROWS, -ROWS - 1):
        check(recs.head(n), rows[:n], payloads, jitted=False)
        check(recs.tail(n), rows[max(0, ROWS - n) :] if n >= 0 else rows[-n:], payloads, jitted=False)
    check(recs.tail(), rows[-5:], payloads, jitted=False)
    sampled = [view.id for view in recs.sample(ROWS, seed=1)]
    assert sampled != rows and sorted(sampled) == rows
    assert [view.id for view in recs.sample(7, seed=1)] == [view.id for view in recs.sample(7, seed=1)]
    generator = np.random.default_rng(1)
    assert [view.id for view in recs.sample(7, generator)] != [view.id for view in recs.sample(7, generator)]
    assert len(recs[:0].sample(0)) == 0
    for n in (-1, ROWS + 1, 2**70):
        with pytest.raises(ValueError) as caught:
            recs.sample(n)
        assert str(caught.value) == f"{n} rows can't be sampled of 40"
    for method in (recs.head, recs.tail, recs.sample, recs.batches):
        with pytest.raises(TypeError):
            method(1.5)  # type: ignore[arg-type]


def test_batches(row_type: yj.MessageType, payloads: list[bytes]) -> None:
    recs = yj.records(row_type, payloads)
    assert [[view.id for view in part] for part in recs[3:10].batches(3)] == [[3, 4, 5], [6, 7, 8], [9]]
    assert list(recs[:0].batches()) == []
    assert [len(part) for part in recs.batches()] == [ROWS]
    for rows in (0, -1):
        with pytest.raises(ValueError) as caught:
            recs.batches(rows)
        assert str(caught.value) == f"a batch has at least 1 row, not {rows}"


INDEXED_BY = "records are indexed by row numbers, slices, masks and arrays of rows, not by "
TAKES = "take takes row numbers, not "
MISSING = "an array of which {} of {} are missing: say what these count for, as mask.filled(False) does"


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("id", "str"),
        (b"id", "bytes"),
        (1.5, "float"),
        (None, "NoneType"),
        ((1, 2), "tuple"),
        ({1, 2}, "set"),
        (range(3), "range"),
        (np.array(1.5), "float64 of shape ()"),
        ([1.5, 2], "float64 of shape (2,)"),
        ([[1], [2]], "int64 of shape (2, 1)"),
        ([[1], [2, 3]], "list"),
        (["a"], "<U1 of shape (1,)"),
        ([None, 1], "object of shape (2,)"),
        (np.array([True, False], object), "object of shape (2,)"),
        (np.zeros(0), "float64 of shape (0,)"),
        (np.zeros((40, 1), bool), "bool of shape (40, 1)"),
        (np.zeros(2, "M8[s]"), "datetime64[s] of shape (2,)"),
        (pa.array([1, None]), MISSING.format(1, 2)),
        (pa.array([True, None, None]), MISSING.format(2, 3)),
        (np.ma.array([1, 2, 3], mask=[False, True, False]), MISSING.format(1, 3)),
        (np.ma.array([True] * ROWS, mask=[True] * ROWS), MISSING.format(ROWS, ROWS)),
        (pd.Series([True, None], dtype="boolean"), "object of shape (2,)"),
    ],
)
def test_keys_that_make_no_sense(
    row_type: yj.MessageType, payloads: list[bytes], key: Any, found: str
) -> None:
    recs = yj.records(row_type, payloads)
    with pytest.raises(TypeError) as caught:
        recs[key]
    assert str(caught.value) == INDEXED_BY + found
    if not isinstance(key, (tuple, range)):
        with pytest.raises(TypeError) as caught:
            recs.take(key)
        assert str(caught.value) == TAKES + found


def test_results_with_missing_rows_select_once_they_are_filled(
    row_type: yj.MessageType, payloads: list[bytes]
) -> None:
    recs = yj.records(row_type, payloads)
    large = recs.map(lambda row: row.id > 5 if row.id % 2 else None, jit=False)
    wanted = [row.id for row in recs if row.id % 2 and row.id > 5]
    assert [row.id for row in recs[large.filled(False)]] == wanted
    assert [row.id for row in recs[np.ma.array([3, 1])]] == [recs[3].id, recs[1].id]


@pytest.mark.parametrize("step", [ROWS, 2**62, 2**63 - 1, 2**63, 2**70])
@pytest.mark.parametrize("start", [None, 0, 3, -1, ROWS, -(2**70), 2**70])
def test_steps_of_any_size(
    row_type: yj.MessageType, payloads: list[bytes], start: int | None, step: int
) -> None:
    recs = yj.records(row_type, payloads)
    for part in (recs, recs[:0], recs[:1]):
        ids = [row.id for row in part]
        for way in (step, -step):
            assert [row.id for row in part[start::way]] == ids[start::way]


def test_masks_of_another_length(row_type: yj.MessageType, payloads: list[bytes]) -> None:
    recs = yj.records(row_type, payloads)
    for mask in ([True], np.zeros(ROWS + 1, np.bool_), [False] * (ROWS - 1)):
        with pytest.raises(IndexError) as caught:
            recs[mask]
        assert str(caught.value) == f"the mask has {len(mask)} values, but there are 40 rows"
    for mask in (np.ones(ROWS, np.bool_), [True] * ROWS, pd.Series([True] * ROWS), recs.valid):
        assert len(recs[mask]) == ROWS
        with pytest.raises(TypeError) as type_error:
            recs.take(mask)
        assert str(type_error.value) == f"{TAKES}a mask: recs[mask] takes one"


@pytest.mark.parametrize(
    ("rows", "row"),
    [
        ([0, ROWS], ROWS),
        ([-ROWS - 1], -ROWS - 1),
        (np.array([0, 2**63], np.uint64), 2**63),
        (np.array([2**64 - 1], np.uint64), 2**64 - 1),
        ([3, 2**70], 2**70),
        ([2**63, -1], 2**63),
        ([-(2**63)], -(2**63)),
        (np.array([200], np.uint8), 200),
    ],
)
def test_rows_out_of_range(row_type: yj.MessageType, payloads: list[bytes], rows: Any, row: int) -> None:
    recs = yj.records(row_type, payloads)
    for read in (recs.take, recs.__getitem__):
        with pytest.raises(RowError) as caught:
            read(rows)
        assert str(caught.value) == f"row {row} is out of range: there are 40 rows"
        assert (caught.value.row, caught.value.count) == (row, ROWS)
    with pytest.raises(RowError):
        recs[:0].take([0])
    with pytest.raises(RowError):
        recs[:0][[-1]]


def test_no_rows(row_type: yj.MessageType, payloads: list[bytes]) -> None:
    recs = yj.records(row_type, payloads)
    empty = (recs[:0], recs[5:5], recs[[]], recs.take(()), recs.take(range(0)), recs[np.zeros(ROWS, bool)])
    more = (recs[:0][::2], yj.records(row_type, []), recs[:0] + recs[:0], yj.concat([recs[:0].take([])]))
    for none in (*empty, *more, joined(row_type, payloads, Path())[40:]):
        check(none, [], payloads)
        check(none[::-1], [], payloads, jitted=False)
        check(pickle.loads(pickle.dumps(none)), [], payloads)
        none.verify()


def test_concatenations_of_what_does_not_fit(
    tmp_path: Path, schema_path: Path, row_type: yj.MessageType
) -> None:
    def made(text: str, name: str) -> Records:
        path = tmp_path / "other.proto"
        path.write_text(f'syntax = "proto3"; package selections; message {name} {{ {text} }}')
        return yj.records(yj.load_schema(path)[f"selections.{name}"], [])

    recs = yj.records(row_type, [])
    with pytest.raises(ValueError) as caught:
        recs + made("int32 a = 1;", "Other")
    assert str(caught.value) == "records of selections.Row and of selections.Other can't be one"
    other = made("int32 a = 1;", "Row")
    with pytest.raises(ValueError) as caught:
        yj.concat([recs, recs, other])
    assert str(caught.value) == (
        "records of selections.Row by two schemas can't be one: their fingerprints are "
        f"{recs.plan.fingerprint} and {other.plan.fingerprint}"
    )
    again = yj.load_schema(schema_path)["selections.Row"]
    assert len(recs + yj.records(again, [])) == 0
    with pytest.raises(ValueError) as caught:
        yj.concat([])
    assert str(caught.value) == "concat takes at least one records, whose message type it has"
    with pytest.raises(TypeError) as type_error:
        yj.concat([recs, [b""]])  # type: ignore[list-item]
    assert str(type_error.value) == "concat takes records, not list"
    with pytest.raises(TypeError, match="unsupported operand"):
        recs + [b""]  # noqa: RUF005


# ---- the table of chunks ----


def test_chunks_of_any_size(row_type: yj.MessageType) -> None:
    """Rows of pages that begin within chunks, and chunks that begin within pages."""
    encoded = [row_type.encode({"id": number}) for number in range(1, 8)]
    sizes = [3, 0, PAGE_ROWS - 3, 0, 0, PAGE_ROWS + 5, 1, 40, PAGE_ROWS // 2, 2 * PAGE_ROWS, 7, 0]
    count = sum(sizes)
    recs = chunked(row_type.plan, [encoded[row % 7] for row in range(count)], sizes)
    assert not recs._store.scattered
    ids = np.arange(count) % 7 + 1
    edges = sorted({0, count - 1, *np.cumsum(sizes).tolist(), *range(0, count, PAGE_ROWS)})
    for edge in edges:
        for row in range(max(0, edge - 2), min(count, edge + 2)):
            assert recs[row].id == one(recs, row).id == ids[row]
    for start, stop in ((0, count), (1, count - 1), (PAGE_ROWS - 1, PAGE_ROWS + 1), (count - 8, count)):
        assert jitted_sum(recs[start:stop]) == ids[start:stop].sum()
    rows = np.random.default_rng(1).integers(0, count, 20_000)
    assert jitted_sum(recs.take(rows)) == ids[rows].sum()
    assert (recs.take(rows).nbytes, recs.nbytes) == (len(encoded[0]) * len(rows), len(encoded[0]) * count)


@numba.njit
def jitted_sum(recs: Any) -> Any:
    found = 0
    for view in recs:
        found += view.id
    return found


def test_many_chunks(row_type: yj.MessageType) -> None:
    """A search in a page passes over few chunks, however small they are."""
    payload = row_type.encode({"id": 5})
    offsets = np.array([0, len(payload)])
    none = Chunk(b"", 0, 0, np.zeros(1, np.int64))
    one_row = Chunk(payload, 0, len(payload), offsets)
    for chunks, scattered in (
        ([one_row] * MOST_CHUNKS_OF_A_PAGE, False),
        ([one_row] * (MOST_CHUNKS_OF_A_PAGE + 1), True),
        ([one_row, *[none] * 100_000, one_row], True),
        ([none] * 100_000, False),
    ):
        recs = Records._of(row_type.plan, Chunks(row_type.plan.plan, chunks))
        assert recs._store.scattered is scattered
        assert jitted_sum(recs) == sum(view.id for view in recs) == 5 * len(recs)


# ---- pickles ----


@pytest.fixture
def index_path(row_type: yj.MessageType, tmp_path: Path) -> Path:
    path = tmp_path / "rows.arrow"
    yj.build_index(path, row_type, [{"id": row, "name": "long" * 99} for row in range(ROWS)])
    return path


def test_rows_of_an_index_pickle_as_its_path(
    row_type: yj.MessageType, index_path: Path, tmp_path: Path
) -> None:
    index = yj.open_index(index_path, row_type)
    other_path = tmp_path / "other.arrow"
    yj.build_index(other_path, row_type, [{"id": 100 + row, "name": "long" * 99} for row in range(ROWS)])
    other = yj.open_index(other_path, row_type)
    own = yj.records(row_type, [row_type.encode({"id": 7, "name": "long" * 99})])
    for part in (
        index[3:9],
        index[::-3],
        index.take([5, 5, 1]),
        index[np.arange(ROWS) % 2 == 0],
        index[3:20].take([2])[:1],
        index.sample(5),
        index + other,
        (index[2:9] + other[7:] + index[:1])[1:-1],
        (index.take([9, 1]) + other)[::-2],
    ):
        data = pickle.dumps(part)
        assert b"longlong" not in data
        again = pickle.loads(data)
        assert [view.id for view in again] == [view.id for view in part]
        assert [view.id for view in pickle.loads(pickle.dumps(again))] == [view.id for view in part]
        assert again[0]._data_ is not part[0]._data_
    mixed = (index[:2] + own + other[:1]).take([2, 0, 3, 1])
    data = pickle.dumps(mixed)
    assert data.count(b"long" * 99) == 1
    assert [view.id for view in pickle.loads(data)] == [7, 0, 100, 1]
    assert copy.copy(mixed) is mixed


def test_pickles_hold_the_bytes_of_their_rows_alone(row_type: yj.MessageType) -> None:
    names = [f"name of {row}" for row in range(ROWS)]
    recs = yj.records(row_type, [row_type.encode({"id": row, "name": names[row]}) for row in range(ROWS)])
    for whole in (recs, joined(row_type, [recs.payload(row) or b"" for row in range(ROWS)], Path())):
        for part in (whole.take([3, 3, 8]), whole[3:9:5]):
            data = pickle.dumps(part)
            assert [name for name in names if name.encode() in data] == [names[3], names[8]]
            assert [view.name for view in pickle.loads(data)] == [view.name for view in part]


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("layout", ["flat", "sparse"])
def test_views_of_each_origin_read_bytes_above_127(
    row_type: yj.MessageType, tmp_path: Path, origin: str, layout: str
) -> None:
    """pyarrow's buffers export signed bytes, which Python's readers mustn't see."""
    message = {
        "id": 2**64 - 1,
        "name": "\u00fc" * 200,
        "weights": [-0.5] * 200,
        "names": {-1: "\u20ac"},
        "child": {"child": {"id": 200}},
        **{"f6": -1, "f7": 1, "f8": "x", "f9": -9, "f10": ["y", "z"], "f17": 0.5},
    }
    encoded = row_type.encode(message, layout)
    recs = ORIGINS[origin](row_type, [encoded] * ROWS, tmp_path)
    for row in (0, ROWS - 1):
        view, expected = recs[row], row_type.view(encoded)
        assert memoryview(view._data_).format == "B"
        assert view == expected
        assert view.SerializeToString(deterministic=True) == expected.SerializeToString(deterministic=True)
        assert [f.name for f, _ in view.ListFields()] == list(message)
        assert view.child.child.id == 200 and view.names[-1] == "\u20ac" and view.name == message["name"]


@pytest.mark.parametrize("count", [0, 1, places.ARRAY_ROWS - 1, places.ARRAY_ROWS, 700, places.COMPILED_ROWS])
@pytest.mark.parametrize("part", [slice(None), slice(3, 50)])
def test_however_many_rows_are_taken(
    row_type: yj.MessageType, tmp_path: Path, count: int, part: slice
) -> None:
    """Few are looked up one by one, more by numpy, many by a compiled loop: in chunks with nulls and not."""
    payloads = [row_type.encode({"id": row + 1}) for row in range(60)]
    offsets = np.cumsum([0, *map(len, payloads)])
    whole = yj.records(row_type, (b"".join(payloads), offsets))
    recs = yj.concat([whole[:7], whole[:1], whole[8:]])
    nulls = pa.array([None if row % 5 == 2 else payload for row, payload in enumerate(payloads)])
    yj.build_index(tmp_path / "x.arrow", row_type, yj.records(row_type, nulls))
    rows = np.random.default_rng(count).integers(-40, 40, count)
    for whole in (recs, yj.records(row_type, nulls), yj.open_index(tmp_path / "x.arrow", verify="batch")):
        given_rows = rows.copy()
        taken = whole[part].take(given_rows)
        expected = [whole[part].payload(row) for row in rows.tolist()]
        assert [taken.payload(row) for row in range(count)] == expected
        assert taken.valid.tolist() == [payload is not None for payload in expected]
        assert given_rows.tolist() == rows.tolist()
        assert [view.id for view in taken] == [whole[part][row].id for row in rows.tolist()]
