"""Index files: building, what is in them, opening, reading."""

from __future__ import annotations

import base64
import gc
import json
import logging
import os
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import ipc
from vectors import TESTS

import yaffjit as yj
from yaffjit.index import Index
from yaffjit.index.metadata import BATCH_ROWS

SCHEMA = TESTS / "schemas" / "columns.proto"
ROWS = 50


@pytest.fixture(scope="module")
def row_type() -> yj.MessageType:
    return yj.load_schema(SCHEMA)["columns.Row"]


@pytest.fixture(scope="module")
def messages(row_type: yj.MessageType) -> list[Any]:
    made = []
    for row in range(ROWS):
        message = row_type.message_class(id=row, name="n" * (row % 7), first=row)
        if row % 2:
            message.kinds.double = row / 7
        made.append(message)
    return made


@pytest.fixture(scope="module")
def index_path(row_type: yj.MessageType, messages: list[Any], tmp_path_factory: Any) -> Path:
    path: Path = tmp_path_factory.mktemp("index") / "rows.arrow"
    yj.build_index(path, row_type, messages, columns={"label": [f"row {row}" for row in range(ROWS)]})
    return path


class FromElsewhere:
    """A column of another library that speaks Arrow's C interface."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return pa.chunked_array([[7], [None, 9]]).__arrow_c_stream__(requested_schema)


@numba.njit
def sum_first(recs: Any) -> Any:
    total = 0
    for view in recs:
        total += view.first
    return total


@pytest.mark.parametrize("layout", ["flat", "sparse", "auto"])
@pytest.mark.parametrize("form", ["message", "bytes", "dict", "view", "other class"])
def test_what_goes_in_comes_out(
    row_type: yj.MessageType, messages: list[Any], tmp_path: Path, layout: str, form: str
) -> None:
    other_class = yj.load_schema(SCHEMA)["columns.Row"].message_class
    make = {
        "message": lambda message: message,
        "bytes": lambda message: message.SerializeToString(),
        "dict": lambda message: {
            "id": message.id,
            "name": message.name,
            "first": message.first,
            **({"kinds": {"double": message.kinds.double}} if message.HasField("kinds") else {}),
        },
        "view": lambda message: row_type.view(row_type.encode(message)),
        "other class": lambda message: other_class.FromString(message.SerializeToString()),
    }[form]
    path = tmp_path / "rows.arrow"
    built = yj.build_index(path, row_type, map(make, messages), layout=layout)
    assert (built.path, built.rows, built.unknown_fields) == (str(path), ROWS, {})
    assert built.nbytes == path.stat().st_size
    index = yj.open_index(path)
    assert [index.payload(row) for row in range(ROWS)] == [row_type.encode(m, layout) for m in messages]
    decoded = [index.message_type.decode(index.payload(row)) for row in range(ROWS)]
    assert [m.SerializeToString() for m in decoded] == [m.SerializeToString() for m in messages]


def test_an_index_behaves_as_records(index_path: Path, messages: list[Any]) -> None:
    for index in (yj.open_index(index_path), yj.open_index_unchecked(str(index_path))):
        assert isinstance(index, Index)
        assert len(index) == ROWS
        assert index[-1].first == ROWS - 1
        assert index[8].kinds.double == 0
        assert [view.first for view in index] == list(range(ROWS))
        assert [view.first for view in index[10:40][::3]] == list(range(10, 40, 3))
        assert [view.name for view in index.head(3)] == ["", "n", "nn"]
        assert np.array_equal(index.columns("id")["id"], np.arange(ROWS))
        assert np.array_equal(index[20:30].columns("id")["id"], np.arange(20, 30))
        assert sum_first(index) == sum(range(ROWS))
        assert sum_first(index[7:9]) == 15
        index.verify()
        index[3:].verify()
        assert index.path == str(index_path)
        assert repr(index) == f"<Index of columns.Row: 50 rows, {index.nbytes:,} bytes, {str(index_path)!r}>"
        assert type(index[3:5]) is not Index
        assert index.message_type.full_name == "columns.Row"
        assert index.schema["columns.Row"] is index.message_type
        with pytest.raises(IndexError):
            index[ROWS]


def test_other_columns(index_path: Path) -> None:
    index = yj.open_index(index_path)
    assert index.column_names == ["label"]
    label = index.column("label")
    assert isinstance(label, pa.ChunkedArray)
    assert label.to_pylist() == [f"row {row}" for row in range(ROWS)]


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("lable", ""),
        (5, ""),
        ("kinds.duoble", ""),
        ("id", ". It's a field of the messages: index.columns('id')"),
        ("kinds.double", ". It's a field of the messages: index.columns('kinds.double')"),
        ("message", ". That one is the messages' own: index[row] reads one, index.columns(...) their fields"),
    ],
)
def test_what_is_no_other_column(index_path: Path, name: Any, instead: str) -> None:
    with pytest.raises(KeyError) as caught:
        yj.open_index(index_path).column(name)
    assert caught.value.args == (f"{index_path} has no column {name!r}; its columns are ['label']{instead}",)


def test_another_column_is_no_field(index_path: Path) -> None:
    index = yj.open_index(index_path)
    with pytest.raises(yj.SchemaError) as caught:
        index.columns("id", "label")
    sentence = "path 'label' of columns.Row: columns.Row has no field 'label'"
    assert str(caught.value) == f"{sentence}. It's another column of the index: index.column('label')"
    with pytest.raises(yj.SchemaError) as caught:
        index.columns("id", "lebal")
    assert str(caught.value) == sentence.replace("label", "lebal")


def test_it_is_an_arrow_file_that_describes_itself(
    index_path: Path, row_type: yj.MessageType, messages: list[Any]
) -> None:
    with ipc.open_file(index_path) as file:
        table = file.read_all()
    assert table.column_names == ["message", "label"]
    field = table.schema.field("message")
    assert field.type == pa.large_binary()
    assert not field.nullable
    assert field.metadata[b"ARROW:extension:name"] == b"yaffjit.message"
    assert table["message"].to_pylist() == [row_type.encode(message) for message in messages]
    said = json.loads(field.metadata[b"ARROW:extension:metadata"])
    packed = said.pop("descriptor_set")
    assert said == {
        "format_version": 1,
        "message": "columns.Row",
        "representation": "yaff",
        "fingerprint": row_type.plan.fingerprint,
        "slice": None,
    }
    schema = yj.load_schema(zlib.decompress(base64.b64decode(packed)))
    assert schema["columns.Row"].plan.fingerprint == row_type.plan.fingerprint


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(TESTS.parent)}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)


def test_another_process_needs_nothing_but_the_file(index_path: Path) -> None:
    done = run_python(f"import yaffjit; print(yaffjit.open_index({str(index_path)!r})[33].first)")
    assert (done.stdout, done.stderr) == ("33\n", "")


def test_the_slice_is_kept(tmp_path: Path) -> None:
    schema = yj.load_schema(TESTS / "schemas" / "golden" / "slices.proto", slice="thin")
    message_type = next(schema[name] for name in schema.messages if schema._plan.fault(name) is None)
    yj.build_index(tmp_path / "x.arrow", message_type, [{}])
    index = yj.open_index(tmp_path / "x.arrow")
    assert index.schema.definition.slice == "thin"
    assert index.plan.fingerprint == message_type.plan.fingerprint


@pytest.mark.parametrize("rows", [0, 1, BATCH_ROWS, 2 * BATCH_ROWS + 1])
def test_batches(row_type: yj.MessageType, tmp_path: Path, rows: int) -> None:
    path = tmp_path / "rows.arrow"
    payloads = [row_type.message_class(first=first).SerializeToString() for first in range(1, 8)]
    day = np.arange(rows, dtype=np.int16)
    built = yj.build_index(path, row_type, (payloads[row % 7] for row in range(rows)), columns={"day": day})
    assert built.rows == rows
    with ipc.open_file(path) as file:
        sizes = [file.get_batch(number).num_rows for number in range(file.num_record_batches)]
    expected = [min(BATCH_ROWS, rows - start) for start in range(0, rows, BATCH_ROWS)]
    assert sizes == (expected or [0])
    for index in (yj.open_index(path), yj.open_index_unchecked(path)):
        firsts = np.arange(rows) % 7 + 1
        assert len(index) == rows
        assert sum_first(index) == firsts.sum()
        assert np.array_equal(index.columns("first")["first"], firsts)
        assert np.array_equal(index.column("day").to_numpy(), day)
        for row in {0, rows // 2, BATCH_ROWS - 1, BATCH_ROWS, rows - 1}:
            if 0 <= row < rows:
                assert index[row].first == firsts[row]
                assert index.payload(row) == row_type.encode({"first": firsts[row]})
        assert [view.first for view in index[BATCH_ROWS - 2 : BATCH_ROWS + 2]] == firsts[
            BATCH_ROWS - 2 : BATCH_ROWS + 2
        ].tolist()
        index.verify()


@pytest.mark.parametrize(
    ("values", "back"),
    [
        ([1.5, None, 3], [1.5, None, 3.0]),
        (("a", "b", "c"), ["a", "b", "c"]),
        (range(3), [0, 1, 2]),
        (np.array([1, 2, 3], np.uint8), [1, 2, 3]),
        (np.array([True, False, True, True])[1:], [False, True, True]),
        (pa.array(["x", "y", None, "z"])[1:], ["y", None, "z"]),
        (pa.chunked_array([["x"], ["y", "z"]]), ["x", "y", "z"]),
        (pa.array(["x", "y", "x"]).dictionary_encode(), ["x", "y", "x"]),
        (FromElsewhere(), [7, None, 9]),
        ([[1], [], [2, 3]], [[1], [], [2, 3]]),
        ([{"a": 1}, {"a": 2}, {"a": None}], [{"a": 1}, {"a": 2}, {"a": None}]),
    ],
)
def test_columns_of_many_sorts(row_type: yj.MessageType, tmp_path: Path, values: Any, back: Any) -> None:
    yj.build_index(tmp_path / "x.arrow", row_type, [{}] * 3, columns={"values": values})
    assert yj.open_index(tmp_path / "x.arrow").column("values").to_pylist() == back


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"day": [1, 2]}, "column 'day' has 2 values for 3 messages"),
        ({"day": [1, 2, 3, 4]}, "column 'day' has 4 values for 3 messages"),
        (
            {"message": [1, 2, 3]},
            "a further column can't be called 'message': the messages' own column is",
        ),
    ],
)
def test_columns_that_do_not_fit(
    row_type: yj.MessageType, tmp_path: Path, columns: Any, sentence: str
) -> None:
    with pytest.raises(ValueError) as caught:
        yj.build_index(tmp_path / "x.arrow", row_type, [{}] * 3, columns=columns)
    assert str(caught.value) == sentence
    assert os.listdir(tmp_path) == []


def test_columns_that_arrow_refuses(row_type: yj.MessageType, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^column 'x' can't be stored: "):
        yj.build_index(tmp_path / "x.arrow", row_type, [{}], columns={"x": [object()]})
    with pytest.raises(ValueError, match=r"^column 'x' can't be stored: .* has a dictionary inside$"):
        inside = pa.ListArray.from_arrays([0, 1], pa.array(["x"]).dictionary_encode())
        yj.build_index(tmp_path / "x.arrow", row_type, [{}], columns={"x": inside})


def test_wrong_options(row_type: yj.MessageType, index_path: Path) -> None:
    before = index_path.read_bytes()
    for options, sentence in (
        ({"layout": "fixed"}, "layout must be one of 'flat', 'sparse', 'auto', 'smallest', not 'fixed'"),
        ({"representation": "wire"}, "representation 'wire' isn't supported; supported: 'yaff', 'protobuf'"),
    ):
        with pytest.raises(ValueError) as caught:
            yj.build_index(index_path, row_type, [{}], **options)  # type: ignore[arg-type]
        assert str(caught.value) == sentence
    with pytest.raises(ValueError) as caught:
        yj.open_index(index_path, verify="never")
    assert str(caught.value) == (
        "verify='never' isn't supported; supported: 'open', 'batch' (or open_index_unchecked)"
    )
    assert index_path.read_bytes() == before


def test_bad_messages_are_named_by_row(row_type: yj.MessageType, tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    with pytest.raises(yj.DecodeError) as decode_error:
        yj.build_index(path, row_type, [b"", b"\x0f"])
    assert str(decode_error.value) == "row 1: columns.Row, field kinds: wire type 7 (at most 5) at byte 0"
    with pytest.raises(yj.EncodeError, match=r"^row 2: .*\bid\b"):
        yj.build_index(path, row_type, [{}, {"id": 1}, {"id": "x"}])
    with pytest.raises(yj.EncodeError, match=r"^row 0: "):
        yj.build_index(path, row_type, [yj.load_schema(SCHEMA)["columns.Flat"].message_class()])
    assert os.listdir(tmp_path) == []


def test_unknown_fields_are_counted_and_said(
    row_type: yj.MessageType, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "x.arrow"
    nested = b"\x0a\x03\xf8\x06\x01"  # kinds { field 111: 1 }
    twice = b"\xf8\x06\x01" * 2
    message = row_type.message_class.FromString(twice)
    with caplog.at_level(logging.WARNING, "yaffjit"):
        built = yj.build_index(path, row_type, [b"", nested, message, twice + nested])
    assert built.unknown_fields == {"columns.Row #111": 4, "columns.Kinds #111": 2}
    assert caplog.messages == [
        f"{path}: as many unknown fields as messages: is columns.Row the right type? 6 unknown fields or "
        "extensions in 4 messages aren't carried: "
        "columns.Kinds #111 (2), columns.Row #111 (4)"
    ]
    assert message.SerializeToString() == twice
    assert yj.open_index(path)[1].HasField("kinds")


def test_a_wrong_type_is_suspected(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = tmp_path / "few.proto"
    source.write_text('syntax = "proto3"; package x; message Few { int32 a = 1; }')
    path = tmp_path / "x.arrow"
    with caplog.at_level(logging.WARNING, "yaffjit"):
        # 2: 1; 10: 1
        built = yj.build_index(path, yj.load_schema(source)["x.Few"], [b"\x50\x01", b"\x10\x01\x50\x01"])
    assert list(built.unknown_fields.items()) == [("x.Few #2", 1), ("x.Few #10", 2)]
    assert caplog.messages == [
        f"{path}: as many unknown fields as messages: is x.Few the right type? 3 unknown fields or "
        "extensions in 2 messages aren't carried: x.Few #2 (1), x.Few #10 (2)"
    ]


def test_swapped_arguments(row_type: yj.MessageType) -> None:
    for path in ("x.arrow", Path("x.arrow")):
        with pytest.raises(TypeError) as caught:
            yj.build_index(row_type, path, [])  # type: ignore[arg-type]
        example = f"build_index({path!r}, message_type, messages)"
        assert str(caught.value) == f"build_index takes the path before the message type: {example}"


def test_extensions_are_counted(tmp_path: Path) -> None:
    source = tmp_path / "ext.proto"
    source.write_text(
        'syntax = "proto2"; package x; message M { optional int32 a = 1; extensions 100 to 200; }'
        " extend M { optional int32 more = 100; repeated int32 many = 101; }"
    )
    message_type = yj.load_schema(source)["x.M"]
    payload = b"\xa0\x06\x05" + b"\xa8\x06\x01" * 3 + b"\xb0\x06\x01"
    for messages in ([b"\x08\x01", payload], [message_type.message_class.FromString(payload)]):
        built = yj.build_index(tmp_path / "x.arrow", message_type, messages)
        assert built.unknown_fields == {"x.M #100": 1, "x.M #101": 3, "x.M #102": 1}


def test_views_outlive_their_index(index_path: Path) -> None:
    view = yj.open_index(index_path)[33]
    part = yj.open_index(index_path)[30:35]
    gc.collect()
    assert view.first == 33
    assert sum_first(part) == sum(range(30, 35))


def test_another_version_of_the_schema_reads_the_index(tmp_path: Path) -> None:
    types = []
    for version, fields in enumerate(("int32 a = 1; int64 b = 2;", "int64 b = 2; optional string c = 3;")):
        source = tmp_path / f"v{version}.proto"
        source.write_text(f'syntax = "proto3"; package x; message M {{ {fields} }}')
        types.append(yj.load_schema(source)["x.M"])
    old, new = types
    yj.build_index(tmp_path / "x.arrow", old, [{"a": 1, "b": 2}])
    index = yj.open_index(tmp_path / "x.arrow", new)
    assert index.message_type is new
    assert (index[0].b, index[0].HasField("c")) == (2, False)
    assert index.columns("b")["b"].tolist() == [2]


def test_nothing_is_printed(row_type: yj.MessageType, tmp_path: Path, capfd: Any) -> None:
    yj.build_index(tmp_path / "x.arrow", row_type, [{}] * 1000)
    yj.open_index(tmp_path / "x.arrow")
    assert capfd.readouterr() == ("", "")


def test_a_bar_if_it_is_asked_for(row_type: yj.MessageType, tmp_path: Path, capfd: Any) -> None:
    yj.build_index(tmp_path / "x.arrow", row_type, [{}] * 1000, progress=True)
    assert "build x.arrow" in capfd.readouterr().err
    yj.open_index(tmp_path / "x.arrow", progress=True)
    assert "verify x.arrow" in capfd.readouterr().err


METHODS = ("ListFields", "CopyFrom", "ByteSize", "DiscardUnknownFields", "SerializeToString", "DESCRIPTOR")
METHODS += ("FromString", "to_message", "HasField", "WhichOneof", "CopyFrom2")


def test_fields_with_the_names_of_methods(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    fields = "".join(f" int32 {name} = {number};" for number, name in enumerate(METHODS, 1))
    source = tmp_path / "named.proto"
    source.write_text(f'syntax = "proto3"; package n; message M {{{fields} M child = 99; }}')
    message_type = yj.load_schema(source)["n.M"]
    values: dict[str, Any] = {name: number for number, name in enumerate(METHODS, 1)}
    message = message_type.message_class(**values, child=values)
    payload = message_type.message_class.SerializeToString(message)
    view = message_type.view(message_type.encode(message))
    unknown = payload + b"\xf8\x3e\x01"  # field 1007: 1
    path = tmp_path / "x.arrow"
    built = yj.build_index(path, message_type, [message, payload, view, {**values, "child": values}, unknown])
    assert built.unknown_fields == {"n.M #1007": 1}
    for read in yj.open_index(path):
        assert yj.to_dict(read) == {**values, "child": values}
    assert yj.write_delimited(tmp_path / "x.pb", [message, payload, view]) == 3
    assert list(yj.read_delimited(tmp_path / "x.pb")) == [payload] * 3
