"""What goes to other processes: records by their bytes, an index by its path, each with its schema."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vectors import TESTS

import yaffjit as yj
from yaffjit.rows import CHUNK_ROWS, Records

ROWS = CHUNK_ROWS + 10


@pytest.fixture(scope="module")
def row_type() -> yj.MessageType:
    return yj.load_schema(TESTS / "schemas" / "columns.proto")["columns.Row"]


@pytest.fixture(scope="module")
def recs(row_type: yj.MessageType) -> Records:
    """Over two chunks; each buffer is preceded by bytes of none."""
    first, last = row_type.encode({"id": 1}), row_type.encode({"id": 2})
    nbytes = len(first)
    data = b"none" + first * (ROWS - 1) + last
    return yj.records(row_type, (data, 4 + nbytes * np.arange(ROWS + 1)))


@pytest.fixture
def index_path(row_type: yj.MessageType, tmp_path: Path) -> Path:
    path = tmp_path / "rows.arrow"
    yj.build_index(path, row_type, [{"id": row} for row in range(10)], columns={"label": list("abcdefghij")})
    return path


@pytest.mark.parametrize(
    "rows",
    [slice(None), slice(3, 5), slice(CHUNK_ROWS - 1, CHUNK_ROWS + 1), slice(CHUNK_ROWS, None), slice(5, 5)],
)
def test_records(recs: Records, rows: slice) -> None:
    part = recs[rows]
    again = pickle.loads(pickle.dumps(part))
    assert type(again) is Records
    assert (len(again), again.nbytes, again.plan) == (len(part), part.nbytes, recs.plan)
    assert again.columns("id")["id"].tolist() == part.columns("id")["id"].tolist()
    assert len(pickle.dumps(part)) < part.nbytes + 8 * len(part) + 20_000  # and the schema
    if len(part):
        assert again.payload(-1) == part.payload(-1)


def test_copies_of_records_are_themselves(recs: Records) -> None:
    assert copy.copy(recs) is recs
    assert copy.deepcopy([recs])[0] is recs


def test_an_index(row_type: yj.MessageType, index_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(index_path.parent)
    for given in (row_type, None):
        index = yj.open_index("rows.arrow", given)
        data = pickle.dumps(index)
        monkeypatch.chdir("/")
        again = pickle.loads(data)
        monkeypatch.chdir(index_path.parent)
        assert type(again) is type(index)
        assert again.path == str(index_path)
        # Of schemas with the same content, that which was pickled first in this process.
        assert again.message_type is pickle.loads(pickle.dumps(row_type))
        assert again.schema is again.message_type.schema
        assert [view.id for view in again] == list(range(10))
        assert again.column("label").to_pylist() == list("abcdefghij")
        assert [view.id for view in pickle.loads(pickle.dumps(index[2:4]))] == [2, 3]


def test_an_index_is_opened_again_as_it_was(index_path: Path) -> None:
    checked, unchecked = yj.open_index(index_path), yj.open_index_unchecked(index_path)
    pickles = [pickle.dumps(index) for index in (checked, unchecked)]
    content = bytearray(index_path.read_bytes())
    content[content.index(bytes(unchecked.payload(0))) + 4] ^= 1
    index_path.unlink()
    index_path.write_bytes(content)
    again = pickle.loads(pickles[0])  # checked when it's first read
    with pytest.raises(yj.IndexFileError, match=r"its checksum is \w+, but \w+ was written$"):
        again[0]
    assert len(pickle.loads(pickles[1])) == 10
    index_path.unlink()
    assert len(pickle.loads(pickles[1])) == 10  # this process still has it open
    del again
    with pytest.raises(yj.IndexFileError, match=r"No such file"):
        pickle.loads(pickles[1])


def test_another_process(row_type: yj.MessageType, recs: Records, index_path: Path, tmp_path: Path) -> None:
    values: list[Any] = [row_type, recs[:3], yj.open_index(index_path, row_type)]
    (tmp_path / "values.pickle").write_bytes(pickle.dumps(values))
    code = (
        "import pickle\n"
        "message_type, recs, index = pickle.load(open('values.pickle', 'rb'))\n"
        "print(index.message_type is message_type, recs.plan is message_type.plan)\n"
        "print([view.id for view in recs], [view.id for view in index])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(TESTS.parent)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"True True\n[1, 1, 1] {list(range(10))}\n"


@pytest.mark.parametrize("representation", ["yaff", "protobuf"])
def test_views_of_an_index(row_type: yj.MessageType, tmp_path: Path, representation: str) -> None:
    """As path and row, from wherever they were taken; also once nobody has the index open."""
    path = tmp_path / "rows"
    rows = [{}, {}, *({"id": row, "name": "x" * 1000} for row in range(200)), {}]
    options: Any = {"part_rows": 70, "representation": representation}
    yj.build_index(path, row_type, rows, columns={"day": ["today"] * len(rows)}, **options)
    index = yj.open_index(path)
    views = [*index, *index.take([150, 3]), index[100:][-5]]
    data = pickle.dumps(views)
    assert len(data) < 100 * len(views)
    again = pickle.loads(data)
    assert again == views
    assert [type(view) for view in again] == [type(view) for view in pickle.loads(data)]
    lonely = pickle.dumps(yj.open_index_unchecked(path)[77])
    del index, again
    before = len(os.listdir("/proc/self/fd"))
    received = [pickle.loads(lonely) for _ in range(100)]
    assert {view.id for view in received} == {75}
    assert len(os.listdir("/proc/self/fd")) <= before + 4
    yj.build_index(path, row_type, rows[1:], **options)
    late = pickle.dumps(yj.open_index(path)[0])
    yj.build_index(path, row_type, rows, **options)
    with pytest.raises(yj.IndexFileError, match=r"was built anew since the pickle was made"):
        pickle.loads(late)


def test_views_of_no_row_of_an_index(row_type: yj.MessageType, tmp_path: Path) -> None:
    schema = tmp_path / "n.proto"
    schema.write_text('syntax = "proto3"; package n; message N { int32 x = 1; N inner = 2; }')
    message_type = yj.load_schema(schema)["n.N"]
    for representation in ("yaff", "protobuf"):
        yj.build_index(
            tmp_path / "n.arrow", message_type, [{"inner": {"x": 3}}], representation=representation
        )
        view = yj.open_index(tmp_path / "n.arrow")[0]
        assert pickle.loads(pickle.dumps(view)) == view
        in_memory = yj.records(message_type, [message_type.encode({"x": 3})])[0]
        for other in (view.inner, view.inner.inner, in_memory):
            with pytest.raises(TypeError) as caught:
                pickle.dumps(other)
            assert str(caught.value) == (
                "a view of n.N can't be pickled: it only points into a buffer; pickle its SerializeToString()"
            )
