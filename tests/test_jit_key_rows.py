"""Rows of indexes by their keys in jitted code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import yaffjit as yj

SOURCE = """
syntax = "proto3"; package k;
message Row { uint64 id = 1; string name = 2; sint64 n = 3; bytes raw = 4; }
"""
TEXTS = ["", "a", "é", "€uro", "𝄞", "x" * 100, "ends\0"]
TOP = 2**64 - 1


@numba.njit
def rows_of(index, keys):  # type: ignore[no-untyped-def]
    return index.rows(keys)


@numba.njit
def rows_of_own(index):  # type: ignore[no-untyped-def]
    return [index.rows(row.id) for row in index]


@numba.njit
def rows_of_own_text(index):  # type: ignore[no-untyped-def]
    return [index.rows(row.name) for row in index], index.rows("€uro"), index.rows("b")


@numba.njit
def rows_of_own_bytes(index):  # type: ignore[no-untyped-def]
    return [index.rows(row.raw) for row in index]


@numba.njit
def names(index, keys):  # type: ignore[no-untyped-def]
    found = 0
    for row in index.rows(keys):
        if row >= 0:
            found += len(index[row].name)
    return found


@pytest.fixture(scope="module")
def row_type(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("schema") / "k.proto"
    path.write_text(SOURCE)
    return yj.load_schema(path)["k.Row"]


def built(path: Path, row_type: Any, key: str, **options: Any) -> yj.Index:
    rows = [
        {"id": TOP - number, "name": text, "n": -number, "raw": text.encode()[:3]}
        for number, text in enumerate(TEXTS)
    ]
    yj.build_index(path, row_type, rows, key=key, **options)
    return yj.open_index(path)


def test_integers(row_type: Any, tmp_path: Path) -> None:
    every = list(range(len(TEXTS)))
    index = built(tmp_path / "x.arrow", row_type, "id")
    assert rows_of_own(index) == every
    assert rows_of(index, np.array([TOP, TOP - 3, 5], np.uint64)).tolist() == [0, 3, -1]
    assert rows_of(index, np.array([-1, 5])).tolist() == [-1, -1]  # isn't 2**64 - 1
    assert rows_of(index, -1) == -1
    assert rows_of(index, np.uint64(TOP - 2)) == 2
    assert names(index, np.array([TOP - 3, 7, TOP - 1], np.uint64)) == 5
    index = built(tmp_path / "y.arrow", row_type, "n")
    assert [rows_of(index, -number) for number in every] == every
    assert rows_of(index, np.array([-3, 3, 0], np.int8)).tolist() == [3, -1, 0]
    assert rows_of(index, np.arange(-6, 1)[::-2]).tolist() == [0, 2, 4, 6]
    assert rows_of(index, np.array([TOP], np.uint64)).tolist() == [-1]


def test_text(row_type: Any, tmp_path: Path) -> None:
    every = list(range(len(TEXTS)))
    for path, options in ((tmp_path / "x.arrow", {}), (tmp_path / "x", {"part_rows": 2})):
        index = built(path, row_type, "name", **options)
        assert rows_of_own_text(index) == (every, 3, -1)
        assert [rows_of(index, text) for text in TEXTS] == every
        assert [rows_of(index, text.encode()) for text in TEXTS] == every
        assert rows_of(index, "ends") == -1
    index = built(tmp_path / "y.arrow", row_type, "raw", duplicates="last")
    assert rows_of_own_bytes(index) == index.rows([text.encode()[:3] for text in TEXTS]).tolist()


def test_what_is_refused(row_type: Any, tmp_path: Path) -> None:
    index = built(tmp_path / "x.arrow", row_type, "id")
    texts = built(tmp_path / "y.arrow", row_type, "name")
    with pytest.raises(TypeError, match=r"^the keys of this index are integers, not text$"):
        rows_of(index, "a")
    with pytest.raises(TypeError, match=r"^the keys of this index are text, not integers$"):
        rows_of(texts, 1)
    for records in (index[1:], index[:-1]):
        with pytest.raises(yj.IndexFileError) as caught:
            rows_of(records, 1)
        assert str(caught.value) == "rows are looked up in a whole index, not in a slice of one"
    yj.build_index(tmp_path / "z.arrow", row_type, [{"id": 1}])
    buf = row_type.encode({})
    for records in (yj.open_index(tmp_path / "z.arrow"), yj.records(row_type, (buf, [0, len(buf)]))):
        with pytest.raises(yj.IndexFileError) as caught:
            rows_of(records, 1)
        assert str(caught.value) == (
            "these records have no keys to look rows up by: only an index has that was built with key="
        )
    with pytest.raises(yj.CompileError) as compiled:
        rows_of(index.take([0]), 1)
    assert str(compiled.value).startswith(
        "these records have no 'rows' in jitted code: only a whole index has, of parts that aren't tiny."
    )
    with pytest.raises(yj.CompileError) as compiled:
        rows_of(index, 1.5)
    assert str(compiled.value).startswith(
        "rows are looked up by an integer, an array of integers, or text, not by float64."
    )


def test_damaged(row_type: Any, tmp_path: Path) -> None:
    index = built(tmp_path / "x.arrow", row_type, "n")
    content = bytearray((tmp_path / "x.keys.arrow").read_bytes())
    slots = np.frombuffer(index._files.keys.tables[0].slots.tobytes(), np.int64).copy()  # type: ignore[union-attr]
    at = content.index(slots.tobytes())
    slots[1::2][slots[1::2] >= 0] = 1000
    content[at : at + slots.nbytes] = slots.tobytes()
    (tmp_path / "x.keys.arrow").write_bytes(content)
    for keys in (-1, np.array([-1])):
        with pytest.raises(yj.IndexFileError) as caught:
            rows_of(yj.open_index_unchecked(tmp_path / "x.arrow"), keys)
        assert str(caught.value) == (
            "a key table of the index is damaged: a key leads to what isn't in its part"
        )
        with pytest.raises(yj.IndexFileError, match="the checksum of its content is"):
            rows_of(yj.open_index(tmp_path / "x.arrow", verify="batch"), keys)
