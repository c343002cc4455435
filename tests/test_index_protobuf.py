"""Indexes that keep protobuf bytes as they came: built, checked, opened, grown, packed, shown."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from vectors import TESTS

import yaffjit as yj
from yaffjit.index import IndexPart

ROWS = 70_000  # more than a batch
BAD = b"\x08"  # a tag without its varint
SENTENCE = "columns.Row, field kinds: a varint doesn't end within the 0 bytes that are left at byte 1"


@pytest.fixture(scope="module")
def row_type() -> yj.MessageType:
    return yj.load_schema(TESTS / "schemas" / "columns.proto")["columns.Row"]


@pytest.fixture(scope="module")
def payloads(row_type: yj.MessageType) -> list[bytes]:
    make = row_type.message_class
    unknown = b"\xf8\x3f\x05"  # field 1023
    return [make(id=row, name=f"n{row % 5}").SerializeToString() + unknown for row in range(ROWS)]


@pytest.fixture(scope="module")
def path(row_type: yj.MessageType, payloads: list[bytes], tmp_path_factory: Any) -> Path:
    path: Path = tmp_path_factory.mktemp("index") / "rows.arrow"
    built = yj.build_index(path, row_type, payloads, representation="protobuf")
    assert (built.rows, built.read_nbytes) == (ROWS, sum(map(len, payloads)))
    assert (built.layouts, built.unknown_fields) == ({}, {})
    return path


def held(recs: Any) -> list[bytes | None]:
    return [recs.payload(row) for row in range(len(recs))]


def test_bytes_are_kept_as_they_came(path: Path, payloads: list[bytes]) -> None:
    for index in (yj.open_index(path), yj.open_index(path, verify="batch"), yj.open_index_unchecked(path)):
        assert index.representation == "protobuf"
        assert held(index) == payloads
        assert held(index[65_530:65_540]) == payloads[65_530:65_540]
        index.verify()
    assert repr(index) == (
        f"<Index of columns.Row: 70,000 rows, {index.nbytes:,} bytes, protobuf, {str(path)!r}>"
    )
    for part, expected in ((index, payloads), (index.take([69_999, 3]), [payloads[69_999], payloads[3]])):
        again = pickle.loads(pickle.dumps(part))
        assert again.representation == "protobuf"
        assert held(again) == expected


def test_objects_are_serialized(row_type: yj.MessageType, tmp_path: Path) -> None:
    make = row_type.message_class
    message = make(id=7, name="a")
    given = [
        message,
        {"id": 7, "name": "a"},
        message.SerializeToString(),
        row_type.view(row_type.encode(message)),
    ]
    yj.build_index(tmp_path / "x.arrow", row_type, given, representation="protobuf")
    assert held(yj.open_index(tmp_path / "x.arrow")) == 4 * [message.SerializeToString()]


def test_bad_messages(row_type: yj.MessageType, payloads: list[bytes], tmp_path: Path) -> None:
    given = [*payloads[:300], BAD, b"", *payloads[300:600], BAD]
    path = tmp_path / "x.arrow"
    with pytest.raises(yj.DecodeError) as caught:
        yj.build_index(path, row_type, given, representation="protobuf")
    assert str(caught.value) == f"row 300: {SENTENCE}"
    assert not path.exists()
    built = yj.build_index(path, row_type, given, representation="protobuf", on_error="skip")
    assert (built.bad, built.errors) == (2, (f"row 300: {SENTENCE}", f"row 602: {SENTENCE}"))
    assert held(yj.open_index(path)) == [*payloads[:300], b"", *payloads[300:600]]
    column = pa.array([*given[:-1], None, BAD], pa.binary())
    built = yj.build_index(path, row_type, column, representation="protobuf", on_error="null")
    index = yj.open_index(path)
    assert np.flatnonzero(~index.valid).tolist() == [300, 602, 603]
    assert held(index) == [None if payload == BAD else payload for payload in column.to_pylist()]
    made = row_type.transcode(index)
    assert np.flatnonzero(~made.valid).tolist() == [300, 602, 603]


def test_opening_verifies(row_type: yj.MessageType, payloads: list[bytes], tmp_path: Path) -> None:
    """By another version of the schema, bytes may not be what protobuf accepts."""
    path = tmp_path / "x.arrow"
    source = (TESTS / "schemas" / "columns.proto").read_text()
    assert "string name = 5;" in source
    (tmp_path / "columns.proto").write_text(source.replace("string name = 5;", "bytes name = 5;"))
    loose = yj.load_schema(tmp_path / "columns.proto")["columns.Row"]
    yj.build_index(path, loose, [*payloads[:9], b"\x2a\x01\xff"], representation="protobuf")
    for verify in ("open", "batch"):
        with pytest.raises(yj.IndexFileError) as caught:
            held(yj.open_index(path, row_type, verify=verify))
        assert str(caught.value).startswith(
            f"{path}: batch 0 (rows 0 to 9): row 9: columns.Row, field name: "
        )
    yj.open_index(path)


def test_directories(row_type: yj.MessageType, payloads: list[bytes], tmp_path: Path) -> None:
    directory = tmp_path / "rows"
    yj.build_index(directory, row_type, payloads[:500], representation="protobuf", part_rows=300)
    added = yj.append_index(directory, [*payloads[500:505], {"id": 1}])
    assert added.layouts == {}
    yj.build_index(tmp_path / "more.arrow", row_type, payloads[505:510], representation="protobuf")
    yj.adopt_index(directory, tmp_path / "more.arrow")
    index = yj.open_index(directory)
    assert [part[1:3] for part in index.parts] == [(0, 300), (300, 200), (500, 6), (506, 5)]
    assert isinstance(index.parts[0], IndexPart)
    assert held(index) == [
        *payloads[:505],
        row_type.message_class(id=1).SerializeToString(),
        *payloads[505:510],
    ]
    yj.build_index(tmp_path / "yaff.arrow", row_type, payloads[:5])
    with pytest.raises(yj.IndexFileError) as caught:
        yj.adopt_index(directory, tmp_path / "yaff.arrow")
    assert str(caught.value) == (
        f"{tmp_path / 'yaff.arrow'} has messages that are encoded as 'yaff', but those of "
        f"{directory / 'part-000000.arrow'} are 'protobuf'"
    )


def test_packed(row_type: yj.MessageType, path: Path, payloads: list[bytes], tmp_path: Path) -> None:
    packed = tmp_path / "packed.arrow"
    yj.build_index(packed, row_type, payloads, representation="protobuf", compression="zstd")
    batches = list(yj.open_packed(packed).batches())
    assert [batch.representation for batch in batches] == ["protobuf", "protobuf"]
    assert held(batches[1]) == payloads[65_536:]
    yj.unpack_index(packed, tmp_path / "again.arrow")
    assert (tmp_path / "again.arrow").read_bytes() == path.read_bytes()


def test_keys(row_type: yj.MessageType, payloads: list[bytes], tmp_path: Path) -> None:
    make = row_type.message_class
    named = [make(id=row, name=f"name {row}").SerializeToString() for row in range(300)]
    yj.build_index(tmp_path / "ids.arrow", row_type, payloads[:300], representation="protobuf", key="id")
    index = yj.open_index(tmp_path / "ids.arrow")
    assert index.rows([5, 299, 10**6]).tolist() == [5, 299, -1]
    assert [view.id for view in index.take(index.rows([17, 3]))] == [17, 3]
    yj.build_index(tmp_path / "names", row_type, named, representation="protobuf", key="name", part_rows=200)
    yj.append_index(tmp_path / "names", [{"name": "the last"}])
    index = yj.open_index(tmp_path / "names")
    assert index.rows(["name 250", "name 3", "the last", ""]).tolist() == [250, 3, 300, -1]
    with pytest.raises(yj.IndexFileError, match="rows 7 and 301 have the same key: name is 'name 7' in both"):
        yj.append_index(tmp_path / "names", [{"name": "name 7"}])
    yj.build_keys(tmp_path / "names", "id", duplicates="last")
    assert yj.open_index(tmp_path / "names").rows([9]).tolist() == [9]


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], path: Path) -> None:
    from yaffjit.cli import main

    schema = TESTS / "schemas" / "columns.proto"
    index = tmp_path / "cli.arrow"
    payload = b"\x20\x07\x2a\x01n"
    (tmp_path / "in.pb").write_bytes(bytes([len(payload)]) + payload)
    arguments = [str(schema), "columns.Row", str(tmp_path / "in.pb"), "-o", str(index)]
    assert main(["build", *arguments, "--representation", "protobuf"]) == 0
    assert yj.open_index(index).payload(0) == payload
    capsys.readouterr()
    for command, expected in (
        (["head", str(index)], '# row 0\nid: 7\nname: "n"\n'),
        (["show", str(index), "0", "--json"], '{\n  "id": "7",\n  "name": "n"\n}\n'),
        (["show", str(index), "--where", "id > 6 and name == 'n'"], '# row 0\nid: 7\nname: "n"\n'),
        (["show", str(index), "--where", "id > 7"], ""),
        (["verify", str(index)], f"{index}: 1 columns.Row messages, all well-formed"),
    ):
        assert main(command) == 0
        assert capsys.readouterr().out.startswith(expected)
    assert main(["columns", str(index), "id", "name", "-o", str(tmp_path / "out.csv")]) == 0
    assert (tmp_path / "out.csv").read_text() == '"id","name"\n7,"n"\n'
