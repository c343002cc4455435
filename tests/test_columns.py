"""Columns: what they hold, that protobuf agrees, and how they are refused."""

from __future__ import annotations

import math
import pickle
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from vectors import TESTS

from yaffjit import MessageType, load_schema
from yaffjit.codec.encode import encode
from yaffjit.columns import Columns, gather
from yaffjit.errors import SchemaError
from yaffjit.jit.columns.paths import Paths
from yaffjit.rows import Records, records

ROWS = 300
VALUES: dict[str, tuple[Any, ...]] = {
    "double": (0.0, -0.0, 1.5, math.inf, -math.inf, 5e-324),
    "float": (0.0, -0.0, 1.5, math.inf, 2.0**-149),
    "int64": (0, 1, -1, 2**63 - 1, -(2**63)),
    "uint64": (0, 1, 2**63, 2**64 - 1),
    "int32": (0, 1, -1, 2**31 - 1, -(2**31)),
    "uint32": (0, 1, 2**32 - 1),
    "bool": (False, True),
    "enum": (0, 7, 12, -1),
}
SAME_VALUES = {
    "fixed64": "uint64",
    "fixed32": "uint32",
    "sfixed32": "int32",
    "sfixed64": "int64",
    "sint32": "int32",
    "sint64": "int64",
}
VALUES |= {kind: VALUES[other] for kind, other in SAME_VALUES.items()}
DTYPES = {
    "double": "float64",
    "float": "float32",
    "enum": "int32",
    "fixed64": "uint64",
    "fixed32": "uint32",
    "sfixed32": "int32",
    "sfixed64": "int64",
    "sint32": "int32",
    "sint64": "int64",
}
PATHS = (
    *(f"kinds.{kind}" for kind in VALUES),
    *(f"choices.{kind}" for kind in VALUES),
    "id",
    "first",
    "sparse.a",
    "sparse.flat.a",
    "sparse.flat.fixed.a",
    "sparse.flat.fixed.b",
    "next.next.id",
    "next.kinds.float",
)


@pytest.fixture(scope="module")
def row_type() -> MessageType:
    return load_schema(TESTS / "schemas" / "columns.proto")["columns.Row"]


@pytest.fixture(scope="module")
def messages(row_type: MessageType) -> list[Any]:
    draw = random.Random(7)
    return [_message(draw, row_type.message_class(), 2) for _ in range(ROWS)]


def _message(draw: random.Random, message: Any, depth: int) -> Any:
    def often() -> bool:
        return draw.random() < 0.7

    for field in ("kinds", "choices"):
        if often():
            part = getattr(message, field)
            part.SetInParent()
            for kind, values in VALUES.items():
                if often():
                    setattr(part, kind, draw.choice(values))
    if often():
        message.sparse.SetInParent()
        if often():
            message.sparse.flat.SetInParent()
            message.sparse.a = draw.choice(VALUES["int32"])
            if often():
                message.sparse.flat.fixed.SetInParent()
                message.sparse.flat.a = draw.choice(VALUES["int32"])
                message.sparse.flat.fixed.a = draw.choice(VALUES["int32"])
                message.sparse.flat.fixed.b = draw.choice(VALUES["uint64"])
    message.id = draw.choice(VALUES["uint64"])
    if often():
        message.first = draw.choice(VALUES["int32"])
    elif often():
        message.second = "x"
    message.name = "n" * draw.randrange(3)
    if depth and often():
        _message(draw, message.next, depth - 1)
    return message


@pytest.fixture(scope="module", params=["flat", "sparse"])
def recs(request: pytest.FixtureRequest, row_type: MessageType, messages: list[Any]) -> Records:
    return records(row_type.plan, [encode(row_type.plan, message, request.param) for message in messages])


@pytest.fixture(scope="module")
def cols(recs: Records) -> Columns:
    return recs.columns(*PATHS)


def _read(message: Any, path: str) -> tuple[Any, bool]:
    """The value at a path by protobuf, and whether all of the path is set."""
    *outer, name = path.split(".")
    there = True
    for step in outer:
        there = there and message.HasField(step)
        message = getattr(message, step)
    value = getattr(message, name)
    field = message.DESCRIPTOR.fields_by_name[name]
    if field.has_presence:
        return value, there and message.HasField(name)
    return value, value != 0 or math.copysign(1, value) < 0


@pytest.mark.parametrize("path", PATHS)
def test_columns_are_what_protobuf_reads(cols: Columns, messages: list[Any], path: str) -> None:
    kind = path.split(".")[-1]
    expected = [_read(message, path)[0] for message in messages]
    column = cols[path]
    if path.startswith(("kinds", "choices")):
        assert column.dtype == DTYPES.get(kind, kind)
    wanted = np.array(expected, dtype=column.dtype)
    assert column.tobytes() == wanted.tobytes()  # by bits: -0.0 and the sign of it too


def test_presence_is_what_protobuf_says(recs: Records, messages: list[Any]) -> None:
    """Of many paths at once, since each set of them is compiled."""
    asked = (*PATHS, "sparse", "sparse.flat.fixed", "next.choices", "second")
    paths = Paths(recs.plan, (), asked)
    arrays = gather.gathered(recs, paths, {})
    for path, found in zip(asked, paths.gathering.presences, strict=True):
        expected = [_read(message, path)[1] for message in messages]
        assert arrays[found.leaf.values].tolist() == expected, path


@pytest.mark.parametrize("path", ["kinds.double", "choices.int32", "sparse.flat.fixed", "second"])
def test_presence_of_one_path(cols: Columns, messages: list[Any], path: str) -> None:
    present = cols.present(path)
    assert present.dtype == np.bool_
    assert present.tolist() == [_read(message, path)[1] for message in messages]
    assert cols.present(path) is present
    assert not present.flags.writeable


def test_presence_is_read_from_the_messages_whatever_happened_to_the_arrays(recs: Records) -> None:
    untouched = recs.columns("id").present("id").tolist()
    changed = recs.columns("id")
    changed["id"][:] = 0
    assert changed.present("id").tolist() == untouched
    assert any(untouched)


@pytest.mark.slow
def test_custom_defaults_read_as_protobuf_says() -> None:
    schema = load_schema(TESTS / "schemas" / "golden" / "defaults2.proto")
    for message_type in schema.messages.values():
        plan = message_type.plan
        paths = [f.name for f in plan.fields if f.is_scalar]
        if not paths:
            continue
        empty = message_type.message_class()
        cols = records(plan, [encode(plan, {})] * 2).columns(*paths)
        for path in paths:
            assert cols[path][1].tobytes() == np.array(getattr(empty, path), cols[path].dtype).tobytes(), path
            assert not cols.present(path)[0], path


def test_columns_are_a_mapping_in_the_order_that_was_asked(recs: Records) -> None:
    cols = recs.columns("sparse.a", "id", "sparse.a")
    assert list(cols) == ["sparse.a", "id"]
    assert len(cols) == 2
    assert cols.rows == ROWS
    assert "kinds.bool" not in cols
    with pytest.raises(KeyError):
        cols["kinds.bool"]


def test_slices_and_no_rows(recs: Records, cols: Columns) -> None:
    assert recs[100:200].columns("id")["id"].tolist() == cols["id"][100:200].tolist()
    assert recs[::-7].columns("id")["id"].tolist() == cols["id"][::-7].tolist()
    assert recs[5:5].columns("id")["id"].shape == (0,)
    assert recs[5:5].columns("id").present("first").shape == (0,)


@pytest.mark.parametrize("threads", [None, 1, 3])
def test_stretches_of_rows_join_up(
    recs: Records, cols: Columns, monkeypatch: pytest.MonkeyPatch, threads: int | None
) -> None:
    names = list(recs.columns("name")["name"])
    monkeypatch.setattr(gather, "GATHER_ROWS", 64)
    monkeypatch.setattr(gather, "FEWEST_ROWS", 32)
    assert recs.columns("id", threads=threads)["id"].tolist() == cols["id"].tolist()
    assert list(recs.columns("name", threads=threads)["name"]) == names


def test_no_thread_is_refused(recs: Records) -> None:
    with pytest.raises(ValueError) as caught:
        recs.columns("id", threads=0)
    assert str(caught.value) == "threads must be at least 1, not 0"


def test_rows_beyond_one_chunk(row_type: MessageType) -> None:
    payloads = [encode(row_type.plan, {"id": row}) for row in range(1000)]
    many = records(row_type.plan, (payloads * 132)[: 2 * 65536 + 5])
    ids = many.columns("id")["id"]
    assert np.array_equal(ids, np.arange(2 * 65536 + 5) % 1000)
    assert np.array_equal(many[65535:65538].columns("id")["id"], ids[65535:65538])


def test_out_is_filled(recs: Records, cols: Columns) -> None:
    out = {"id": np.zeros(ROWS, np.uint64)}
    filled = recs.columns("id", "kinds.bool", out=out)
    assert filled["id"] is out["id"]
    assert out["id"].tolist() == cols["id"].tolist()
    assert filled["kinds.bool"].tolist() == cols["kinds.bool"].tolist()


@pytest.mark.parametrize(
    ("out", "sentence"),
    [
        ([1, 2], "out['id'] must be a numpy array, not list"),
        (np.ma.zeros(ROWS, np.uint64), "out['id'] must be a numpy array, not MaskedArray"),
        (np.zeros(ROWS, np.int64), "out['id'] has dtype int64, but the field needs uint64"),
        (np.zeros(ROWS - 1, np.uint64), "out['id'] has shape (299,), but the records need (300,)"),
        (np.zeros((ROWS, 1), np.uint64), "out['id'] has shape (300, 1), but the records need (300,)"),
        (np.zeros(2 * ROWS, np.uint64)[::2], "out['id'] must be contiguous and aligned"),
        (np.frombuffer(bytes(8 * ROWS), np.uint64), "out['id'] is read-only"),
    ],
)
def test_arrays_that_do_not_fit(recs: Records, out: Any, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        recs.columns("id", out={"id": out})
    assert str(caught.value) == sentence


def test_an_array_for_another_path_is_refused(recs: Records) -> None:
    with pytest.raises(ValueError) as caught:
        recs.columns("id", out={"ids": np.zeros(ROWS, np.uint64)})
    assert str(caught.value) == "out has an array for 'ids', which isn't among the columns ['id']"


def test_no_path_is_refused(recs: Records) -> None:
    with pytest.raises(ValueError) as caught:
        recs.columns()
    assert str(caught.value) == 'columns: name at least one, as in recs.columns("id", "stats.ctr")'


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("idd", "path 'idd' of columns.Row: columns.Row has no field 'idd' (did you mean 'id'?)"),
        (
            "sparse.flat.fixd.a",
            "path 'sparse.flat.fixd.a' of columns.Row: columns.Flat has no field 'fixd' "
            "(did you mean 'fixed'?)",
        ),
        ("sparse", "path 'sparse' of columns.Row is a message: name a field of columns.Sparse"),
        ("id.x", "path 'id.x' of columns.Row: field id is of kind uint64, and has no field 'x'"),
        (
            "counts.x",
            "path 'counts.x' of columns.Row: field counts has values of kind int32, without a field 'x'",
        ),
        ("old", "path 'old' of columns.Row: columns.Row has no field 'old' under YaFF: deprecated"),
    ],
)
def test_unknown_paths(recs: Records, path: str, sentence: str) -> None:
    with pytest.raises(SchemaError) as caught:
        recs.columns("id", path)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("path", [5, None, b"id", ["id", "first"], ("id",)])
def test_paths_that_are_not_text(recs: Records, cols: Columns, path: Any) -> None:
    sentence = f'a path must be text, as "stats.ctr", not {type(path).__name__}'
    if isinstance(path, (list, tuple)):
        sentence += ': name them one by one, as in recs.columns("id", "stats.ctr")'
    for ask in (recs.columns, cols.present):
        with pytest.raises(TypeError) as caught:
            ask(path)
        assert str(caught.value) == sentence


@pytest.mark.parametrize("out", [5, [1], np.zeros(10), "id"])
def test_out_that_is_no_mapping(recs: Records, out: Any) -> None:
    with pytest.raises(TypeError) as caught:
        recs.columns("id", out=out)
    assert str(caught.value) == (
        f'out must map paths to arrays, as {{"id": array}}, not {type(out).__name__}'
    )


@pytest.mark.parametrize("shift", [0, 1, ROWS - 1, 1 - ROWS])
def test_arrays_that_overlap(recs: Records, shift: int) -> None:
    memory = np.zeros(3 * ROWS, np.uint64)
    out = {
        "id": memory[ROWS : 2 * ROWS],
        "sparse.flat.fixed.b": memory[ROWS + shift : 2 * ROWS + shift],
    }
    with pytest.raises(ValueError) as caught:
        recs.columns(*out, out=out)
    assert str(caught.value) == "out['id'] and out['sparse.flat.fixed.b'] overlap in memory"
    assert not memory.any()


def test_arrays_of_other_widths_that_overlap(recs: Records) -> None:
    memory = np.zeros(4 * ROWS, np.uint32)
    out = {"first": memory[:ROWS].view(np.int32), "id": memory[ROWS - 2 : 3 * ROWS - 2].view(np.uint64)}
    with pytest.raises(ValueError) as caught:
        recs.columns("id", "first", out=out)
    assert str(caught.value) == "out['first'] and out['id'] overlap in memory"


def test_arrays_side_by_side(recs: Records, cols: Columns) -> None:
    memory = np.zeros((2, ROWS), np.uint64)
    recs.columns("id", "sparse.flat.fixed.b", out={"id": memory[1], "sparse.flat.fixed.b": memory[0]})
    assert memory[1].tolist() == cols["id"].tolist()
    assert memory[0].tolist() == cols["sparse.flat.fixed.b"].tolist()
    assert recs[:0].columns("id", "sparse.flat.fixed.b", out={"id": memory[0, :0]}).rows == 0


def test_arrays_of_other_classes(recs: Records, cols: Columns, tmp_path: Path) -> None:
    mapped = np.memmap(tmp_path / "out", np.uint64, "w+", shape=(ROWS,))
    record_array = np.zeros(ROWS, np.uint64).view(np.recarray)
    for array in (mapped, record_array):
        assert recs.columns("id", out={"id": array})["id"] is array
        assert array.tolist() == cols["id"].tolist()


def test_tables_of_other_libraries(cols: Columns) -> None:
    table = cols.to_arrow()
    assert table.column_names == list(cols)
    assert table.schema.field("choices.float").type == pa.float32()
    assert table["kinds.bool"].to_pylist() == cols["kinds.bool"].tolist()
    structured = cols.to_numpy()
    assert structured.dtype.names == tuple(cols)
    assert structured["id"].tolist() == cols["id"].tolist()


def test_libraries_that_take_any_table(cols: Columns) -> None:
    assert pa.table(cols).equals(cols.to_arrow())
    assert pa.RecordBatchReader.from_stream(cols).read_all().equals(cols.to_arrow())


def test_pandas(recs: Records, cols: Columns, monkeypatch: Any) -> None:
    frame = cols.to_pandas()
    assert list(frame.columns) == list(cols)
    assert len(frame) == ROWS
    for path, array in cols.items():
        assert frame[path].dtype == array.dtype
        assert frame[path].to_numpy().tobytes() == array.tobytes()
    assert len(recs[:0].columns("id").to_pandas()) == 0
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError) as caught:
        cols.to_pandas()
    assert str(caught.value) == "to_pandas needs pandas: pip install pandas"


def test_an_unknown_column(cols: Columns) -> None:
    with pytest.raises(KeyError) as caught:
        cols["idd"]
    assert caught.value.args == ("no column 'idd' (did you mean 'id'?)",)
    with pytest.raises(KeyError, match=r"no column 5"):
        cols[5]  # type: ignore[index]
    assert cols.get("idd") is None
    assert "idd" not in cols
    assert "id" in cols
    assert cols._ipython_key_completions_() == list(cols)


def test_columns_cannot_be_pickled(cols: Columns) -> None:
    with pytest.raises(TypeError) as caught:
        pickle.dumps(cols)
    assert str(caught.value) == (
        "columns can't be pickled: they read presence from their records; "
        "pickle dict(cols), the arrays by path"
    )
    again = pickle.loads(pickle.dumps(dict(cols)))
    assert {path: array.tolist() for path, array in again.items()} == {
        path: array.tolist() for path, array in cols.items()
    }


def test_repr_is_a_small_table(row_type: MessageType) -> None:
    payloads = [encode(row_type.plan, {"id": row, "kinds": {"double": row / 3}}) for row in range(7)]
    text = repr(records(row_type.plan, payloads).columns("id", "kinds.double"))
    assert text.split("\n") == [
        "<Columns: 7 rows>",
        "id (uint64)  kinds.double (float64)",
        "-----------  ----------------------",
        "          0                       0",
        "          1                0.333333",
        "          2                0.666667",
        "          3                       1",
        "          4                 1.33333",
        "        ...                     ...",
    ]
    assert len(repr(records(row_type.plan, payloads[:5]).columns("id")).split("\n")) == 3 + 5


@pytest.mark.slow
def test_second_process_takes_the_loops_from_the_cache(tmp_path: Path) -> None:
    import os
    import subprocess

    code = f"""
from yaffjit.api import load_schema
from yaffjit.codec.encode import encode
from yaffjit.columns import Columns, gather
from yaffjit.rows import records_unchecked
from yaffjit.jit.columns.loops import fill, measure
plan = load_schema({str(TESTS / "schemas" / "columns.proto")!r})["columns.Row"].plan
columns = records_unchecked(plan, [encode(plan, {{"id": 3, "name": "n"}})]).columns("id", "name")
assert columns["id"].tolist() == [3] and list(columns["name"]) == ["n"]
for loop in (measure, fill):
    print(sum(loop.stats.cache_hits.values()), sum(loop.stats.cache_misses.values()))
"""
    environment = {**os.environ, "PYTHONPATH": str(TESTS.parent), "NUMBA_CACHE_DIR": str(tmp_path)}
    counts = [
        subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert counts == [["0", "1"] * 2, ["1", "0"] * 2]
