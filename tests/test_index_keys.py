"""Rows of indexes by their keys: against a dict, in all the forms that keys come in."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import yaffjit as yj
from yaffjit.index.key_table import KINDS

pytestmark = pytest.mark.slow

INTEGERS = [*KINDS[0], *KINDS[1]]
FIELDS = "".join(f"optional {kind} {kind}_ = {number};" for number, kind in enumerate(INTEGERS, 10))
SOURCE = f"""
syntax = "proto3"; package k;
message Geo {{ string city = 1; optional string zip = 2; bytes code = 3; }}
message Row {{
    uint64 id = 1; string name = 2; Geo geo = 3; bytes raw = 4; repeated int32 many = 5; double ctr = 6;
    oneof contact {{ string mail = 7; int32 phone = 8; }}
    {FIELDS}
}}
"""


@pytest.fixture(scope="module")
def row_type(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("schema") / "k.proto"
    path.write_text(SOURCE)
    return yj.load_schema(path)["k.Row"]


def built(path: Path, row_type: Any, rows: Iterable[Any], **options: Any) -> yj.Index:
    yj.build_index(path, row_type, rows, **options)
    return yj.open_index(path)


def bounds(kind: str) -> tuple[int, int]:
    bits = 32 if "32" in kind else 64
    return (0, 2**bits - 1) if kind in KINDS[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def integers(kind: str) -> st.SearchStrategy[int]:
    low, high = bounds(kind)
    edges = [low, high, 0, 1, high // 2, high // 2 + 1]
    return st.one_of(st.sampled_from(edges), st.integers(low, high), st.integers(max(low, -9), 9))


@pytest.mark.parametrize("kind", INTEGERS)
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_integers_against_a_dict(data: Any, kind: str, row_type: Any, tmp_path: Path) -> None:
    field = f"{kind}_"
    values = data.draw(st.lists(st.one_of(st.none(), integers(kind)), max_size=30))
    rule = data.draw(st.sampled_from(["first", "last"]))
    rows = [{} if value is None else {field: value} for value in values]
    part_rows = data.draw(st.sampled_from([7, 100]))
    index = built(tmp_path / "x", row_type, rows, key=field, duplicates=rule, part_rows=part_rows)
    expected: dict[int, int] = {}
    for row, value in enumerate(values):
        if value is not None and not (rule == "first" and value in expected):
            expected[value] = row
    asked = [*expected, *data.draw(st.lists(st.integers(-(2**65), 2**65), max_size=9))]
    wanted = [expected.get(key, -1) for key in asked]
    assert index.rows(asked).tolist() == wanted
    assert [index.rows(key) for key in asked] == wanted
    for dtype in (np.int64, np.uint64, np.int8, np.uint16):
        info = np.iinfo(dtype)
        fits = [key for key in asked if info.min <= key <= info.max]
        array = np.array(fits, dtype)
        assert index.rows(array).tolist() == [expected.get(key, -1) for key in fits]


TEXTS = st.one_of(
    st.text(max_size=40),
    st.sampled_from(["", "a", "ab", "abc", "abcd", "é", "𝄞", "x" * 15, "x" * 16, "x" * 17, "y" * 999]),
    st.integers(0, 40).map(lambda count: "\0" * count),
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_text_against_a_dict(data: Any, row_type: Any, tmp_path: Path) -> None:
    values = data.draw(st.lists(TEXTS, max_size=40))
    path = data.draw(st.sampled_from(["name", "geo.city", "geo.zip", "raw", "geo.code"]))
    rule = data.draw(st.sampled_from(["first", "last"]))

    def row_of(value: str) -> dict[str, Any]:
        held: Any = value.encode() if path in ("raw", "geo.code") else value
        names = path.split(".")
        for name in reversed(names):
            held = {name: held}
        return dict(held)

    part_rows = data.draw(st.sampled_from([7, 100]))
    layout = data.draw(st.sampled_from(["flat", "sparse"]))
    index = built(
        *(tmp_path / "x", row_type, [row_of(value) for value in values]),
        **{"key": path, "duplicates": rule, "part_rows": part_rows, "layout": layout},
    )
    expected: dict[str, int] = {}
    for row, value in enumerate(values):
        if not (rule == "first" and value in expected):
            expected[value] = row
    asked = [*expected, *data.draw(st.lists(TEXTS, max_size=9))]
    wanted = [expected.get(key, -1) for key in asked]
    raw = [key.encode() for key in asked]
    assert index.rows(asked).tolist() == wanted
    assert index.rows(raw).tolist() == wanted
    assert index.rows(np.array(asked, object)).tolist() == wanted
    for typ in (pa.string(), pa.large_string(), pa.string_view()):
        assert index.rows(pa.array(asked, typ)).tolist() == wanted
    assert index.rows(pa.chunked_array([asked[:3], asked[3:]], pa.string())).tolist() == wanted
    assert index.rows(pa.array(asked, pa.string()).dictionary_encode()).tolist() == wanted
    assert index.rows(pa.array(["!", *raw], pa.binary())[1:]).tolist() == wanted
    assert [index.rows(key) for key in asked[:5]] == wanted[:5]
    if path == "name":
        column: Any = index.columns("name")["name"]
        assert index.rows(column).tolist() == [expected[value] for value in values]
        assert index.rows(column[2:]).tolist() == [expected[value] for value in values[2:]]
        shared: Any = index.columns("name:dictionary")["name:dictionary"]
        assert index.rows(shared).tolist() == [expected[value] for value in values]


def test_rows_of_many_keys(row_type: Any, tmp_path: Path) -> None:
    count = 20_000
    ids = np.random.default_rng(1).permutation(count) * 2**40
    rows = [row_type.message_class(id=int(key), name=f"n{key}").SerializeToString() for key in ids]
    index = built(tmp_path / "x.arrow", row_type, rows, key="id")
    assert (index.rows(ids) == np.arange(count)).all()
    assert (index.rows(ids + 1) == -1).all()
    assert (index.rows(ids[::-2], threads=2) == np.arange(count)[::-2]).all()
    scores = index.take(index.rows(ids[:300])).map(lambda row: row.id / 2**40)
    assert scores.tolist() == (ids[:300] / 2**40).tolist()
    index = built(tmp_path / "x.arrow", row_type, rows, key="name")
    assert (index.rows([f"n{key}" for key in ids]) == np.arange(count)).all()


def test_what_has_no_key(row_type: Any, tmp_path: Path) -> None:
    rows = [{}, {"geo": {}}, {"geo": {"zip": ""}}, {"geo": {"city": "x"}}, {"id": 5}, {"phone": 0}]
    assert built(tmp_path / "x.arrow", row_type, rows, key="geo.zip").rows(["", "x"]).tolist() == [2, -1]
    first = built(tmp_path / "x.arrow", row_type, rows, key="geo.city", duplicates="first")
    assert first.rows(["", "x"]).tolist() == [1, 3]  # of a field without presence the empty text counts
    assert built(tmp_path / "x.arrow", row_type, rows, key="phone").rows([0, 5]).tolist() == [5, -1]
    index = built(tmp_path / "x.arrow", row_type, rows, key="id", duplicates="last")
    assert index.rows([0, 5]).tolist() == [5, 4]
    bad = [b"\xff", row_type.message_class(id=1).SerializeToString()]
    index = built(tmp_path / "x.arrow", row_type, bad, key="id", on_error="null")
    assert index.rows([0, 1]).tolist() == [-1, 1]


def test_nothing_and_empty(row_type: Any, tmp_path: Path) -> None:
    for key in ("id", "name"):
        index = built(tmp_path / "x.arrow", row_type, [], key=key)
        asked: Any = [1, 2] if key == "id" else ["", "x"]
        assert index.rows(asked).tolist() == [-1, -1]
        assert index.rows([]).dtype == np.int64
        assert (
            index.rows([]).tolist()
            == index.rows(pa.array([], pa.string() if asked[1:] == ["x"] else pa.int8())).tolist()
            == []
        )


def test_duplicates(row_type: Any, tmp_path: Path) -> None:
    twice = (
        'rows 1 and 3 have the same key: id is 7 in both; duplicates="first" or "last" says which one counts'
    )
    rows = [{"id": 3}, {"id": 7, "name": "a"}, {"id": 4}, {"id": 7, "name": "b"}]
    for path, options in ((tmp_path / "x.arrow", {}), (tmp_path / "x", {"part_rows": 2})):
        with pytest.raises(yj.IndexFileError) as caught:
            yj.build_index(path, row_type, rows, key="id", **options)
        assert str(caught.value) == twice
        assert not path.exists()
        for rule, row in (("first", 1), ("last", 3)):
            assert built(path, row_type, rows, key="id", duplicates=rule, **options).rows(7) == row
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x", "x.arrow", "x.keys.arrow"]
    with pytest.raises(yj.IndexFileError, match=r"^rows 0 and 2 have the same key: name is '' in both;"):
        yj.build_keys(tmp_path / "x", "name")
    index = yj.open_index(tmp_path / "x")
    assert (index.key, index.rows(7)) == ("id", 3)


def test_appending(row_type: Any, tmp_path: Path) -> None:
    path = tmp_path / "x"
    built(path, row_type, [{"id": 1}, {"id": 2}], key="id")
    early = yj.open_index(path)
    yj.append_index(path, [{"id": 3}, {"id": 4}])
    before = sorted(found.name for found in path.iterdir())
    with pytest.raises(yj.IndexFileError, match=r"^rows 1 and 5 have the same key: id is 2 in both;"):
        yj.append_index(path, [{"id": 9}, {"id": 2}])
    assert sorted(found.name for found in path.iterdir()) == before
    index = yj.open_index(path)
    assert index.rows([1, 2, 3, 4, 9]).tolist() == [0, 1, 2, 3, -1]
    assert early.rows([1, 3]).tolist() == [0, -1]
    for rule, row in (("first", 1), ("last", 4)):
        built(path, row_type, [{"id": 1}, {"id": 2}], key="id", duplicates=rule)
        yj.append_index(path, [{"id": 5}, {"id": 6}, {"id": 2}])
        assert yj.open_index(path).rows([2, 6, 1]).tolist() == [row, 3, 0]


def test_adopting(row_type: Any, tmp_path: Path) -> None:
    file, path = tmp_path / "f.arrow", tmp_path / "x"
    built(file, row_type, [{"id": 1, "name": "a"}], key="name")
    yj.adopt_index(path, file)  # a new directory has the keys of its first file
    assert yj.open_index(path).rows("a") == 0
    built(file, row_type, [{"id": 1, "name": "b"}], key="id")
    yj.adopt_index(path, file)  # others are made for those of the directory
    assert yj.open_index(path).rows(["b", "a"]).tolist() == [1, 0]
    assert [found.name for found in tmp_path.iterdir()] == ["x"]
    built(file, row_type, [{"name": "a"}])
    with pytest.raises(yj.IndexFileError, match=r"^rows 0 and 2 have the same key: name is 'a' in both;"):
        yj.adopt_index(path, file)
    assert len(yj.open_index(path)) == 2 and file.exists()


def test_keys_for_an_index_that_is_there(row_type: Any, tmp_path: Path) -> None:
    rows = [{"id": number, "name": f"n{number}"} for number in range(9)]
    for path in (tmp_path / "x.arrow", tmp_path / "x"):
        index = built(path, row_type, rows)
        assert index.key is None
        with pytest.raises(yj.IndexFileError) as caught:
            index.rows(3)
        assert str(caught.value) == (
            f"{path} has no keys: `yaffjit keys {path} --key FIELD` or yj.build_keys('{path}', FIELD) "
            "makes them"
        )
        for key, asked in (("id", 3), ("name", "n3"), ("id", 3)):
            yj.build_keys(path, key)
            index = yj.open_index(path)
            assert (index.key, index.rows(asked)) == (key, 3)
        built(path, row_type, rows)
        assert yj.open_index(path).key is None
    names = [found.name for found in (tmp_path / "x").iterdir()]
    assert sorted(names) == [".lock", "manifest.json", "part-000001.arrow"]
    assert sorted(found.name for found in tmp_path.iterdir()) == ["x", "x.arrow"]


def test_who_has_it_open_keeps_its_keys(row_type: Any, tmp_path: Path) -> None:
    for path in (tmp_path / "x.arrow", tmp_path / "x"):
        old = built(path, row_type, [{"id": 1}, {"id": 2}], key="id")
        new = built(path, row_type, [{"id": 2}, {"name": "a"}], key="id")
        assert old.rows([1, 2]).tolist() == [0, 1]
        assert new.rows([1, 2]).tolist() == [-1, 0]


def test_pickles_and_slices(row_type: Any, tmp_path: Path) -> None:
    index = built(tmp_path / "x", row_type, [{"id": 1}, {"id": 2}], key="id")
    again = pickle.loads(pickle.dumps(index))
    yj.append_index(tmp_path / "x", [{"id": 3}])
    late = pickle.loads(pickle.dumps(index))
    for other in (again, late, copy.copy(index)):
        assert other.rows([2, 3]).tolist() == [1, -1]
    for records in (index[:1], index[:], index.take([1]), pickle.loads(pickle.dumps(index[:1]))):
        assert not hasattr(records, "rows")
    with pytest.raises(AttributeError) as caught:
        index[:1].rows  # noqa: B018
    assert str(caught.value) == (
        "'Records' object has no attribute 'rows': rows are looked up in a whole index, as in "
        "index.take(index.rows(keys))"
    )


def test_missing(row_type: Any, tmp_path: Path) -> None:
    index = built(tmp_path / "x.arrow", row_type, [{"id": 1, "name": "a"}], key="id")
    assert index.rows([1], missing="raise").tolist() == [0]
    with pytest.raises(KeyError) as caught:
        index.rows([1, 2, 3], missing="raise")
    assert caught.value.args == ("2 of 3 keys aren't in the index (id): 2, 3",)
    with pytest.raises(KeyError) as caught:
        index.rows(range(1, 10), missing="raise")
    assert caught.value.args == ("8 of 9 keys aren't in the index (id): 2, 3, 4, 5, 6, ...",)
    with pytest.raises(ValueError, match=r"^missing='none' isn't supported; supported: 'absent', 'raise'$"):
        index.rows(1, missing="none")
    index = built(tmp_path / "x.arrow", row_type, [{"id": 1, "name": "a"}], key="name")
    with pytest.raises(KeyError) as caught:
        index.rows([b"b\xff", "c"], missing="raise")
    assert caught.value.args == ("2 of 2 keys aren't in the index (name): b'b\\xff', 'c'",)


def test_forms_of_integers(row_type: Any, tmp_path: Path) -> None:
    top = 2**64 - 1
    index = built(tmp_path / "x.arrow", row_type, [{"id": 1}, {"id": top}], key="id")
    for keys in (
        [1, top, -1],
        (1, top, -1),
        iter([1, top, -1]),
        np.array([1, top, -1], object),
        pa.array([1, top, None], pa.uint64()),
        pa.chunked_array([[1], [top, None]], pa.uint64()),
        pa.array([1, top, None], pa.uint64()).dictionary_encode(),
        [np.uint64(1), np.uint64(top), np.int8(-1)],
    ):
        assert index.rows(keys).tolist() == [0, 1, -1]
    pandas = pytest.importorskip("pandas")
    assert index.rows(pandas.Series([1, top], dtype="uint64")).tolist() == [0, 1]
    assert index.rows(pandas.Series([1, None], dtype="Int64")).tolist() == [0, -1]
    assert index.rows(np.array(top, np.uint64)) == index.rows(np.uint64(top)) == 1
    assert index.rows(pa.scalar(top, pa.uint64())) == 1
    assert isinstance(index.rows(1), int)


@pytest.mark.parametrize(
    ("key", "given", "error"),
    [
        ("id", "1", "a key of id is an integer, not str '1'"),
        ("id", True, "a key of id is an integer, not bool True"),
        ("id", None, "a key of id is an integer, not NoneType"),
        ("id", [1, None], "a key of id is an integer, not NoneType"),
        ("id", [1, 2.0], "a key of id is an integer, not float 2.0"),
        ("id", np.array([1.5]), "a key of id is an integer, but the keys are float64"),
        ("id", np.array([True]), "a key of id is an integer, but the keys are bool"),
        ("id", pa.array(["1"]), "a key of id is an integer, but the keys are string"),
        ("id", {1: 2}, "keys of id are a value, a list or an array, not dict"),
        ("name", 1, "a key of name is text or bytes, not int 1"),
        ("name", [1], "a key of name is text or bytes, not int 1"),
        ("name", ["a", None], "a key of name is text or bytes, not NoneType"),
        ("name", np.array([1]), "a key of name is text or bytes, not int 1"),
        ("name", pa.array([1]), "a key of name is text or bytes, but the keys are int64"),
    ],
)
def test_what_is_no_key(key: str, given: Any, error: str, row_type: Any, tmp_path: Path) -> None:
    index = built(tmp_path / "x.arrow", row_type, [{"id": 1, "name": "a"}], key=key)
    with pytest.raises(TypeError) as caught:
        index.rows(given)
    assert str(caught.value) == error


def test_two_dimensions(row_type: Any, tmp_path: Path) -> None:
    index = built(tmp_path / "x.arrow", row_type, [{"id": 1}], key="id")
    with pytest.raises(ValueError, match=r"^keys must be of one dimension, not of shape \(1, 1\)$"):
        index.rows(np.array([[1]]))


def test_what_can_be_no_key(row_type: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    for key, error in (
        ("many", "'many' can't be a key of k.Row: a key is one value a message"),
        ("many[0]", "'many[0]' can't be a key of k.Row: a key is one value a message"),
        ("ctr", "'ctr' can't be a key of k.Row: keys are integers, text or bytes, not double"),
        ("geo", "'geo' can't be a key of k.Row: keys are integers, text or bytes, not message"),
        ("idd", "path 'idd' of k.Row: k.Row has no field 'idd' (did you mean 'id'?)"),
    ):
        with pytest.raises(yj.SchemaError) as caught:
            yj.build_index(path, row_type, [], key=key)
        assert str(caught.value) == error
    with pytest.raises(TypeError, match=r'^key must be the path of a field, as "id", not int$'):
        yj.build_index(path, row_type, [], key=1)  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r"^duplicates='all' isn't supported; supported: 'error', 'first', 'last'$"
    ):
        yj.build_index(path, row_type, [], key="id", duplicates="all")
    with pytest.raises(ValueError, match=r"^duplicates='last' is about keys: say key= too$"):
        yj.build_index(path, row_type, [], duplicates="last")
    with pytest.raises(
        ValueError, match=r"^an index with a key can't be compressed, but compression is 'lz4'$"
    ):
        yj.build_index(path, row_type, [], key="id", compression="lz4")
    assert not path.exists()


def test_another_file_in_the_way(row_type: Any, tmp_path: Path) -> None:
    other = tmp_path / "x.keys.arrow"
    yj.build_index(other, row_type, [{"id": 1}])
    with pytest.raises(yj.IndexFileError) as caught:
        yj.build_index(tmp_path / "x.arrow", row_type, [{"id": 1}], key="id")
    assert str(caught.value) == f"{other} can't be written: it's there, but isn't a key table"
    yj.build_index(tmp_path / "x.arrow", row_type, [{"id": 1}])
    assert len(yj.open_index(other)) == 1
    with pytest.raises(yj.IndexFileError, match="isn't a key table"):
        yj.open_index(tmp_path / "x.arrow").rows(1)


def test_read_by_another_schema(row_type: Any, tmp_path: Path) -> None:
    index = built(tmp_path / "x.arrow", row_type, [{"id": 1, "name": "a"}], key="id")
    (tmp_path / "k.proto").write_text('syntax = "proto3"; package k; message Row { string name = 2; }')
    other = yj.load_schema(tmp_path / "k.proto")["k.Row"]
    assert yj.open_index_unchecked(index.path, other).rows(1) == 0
