"""Messages out of columns of Arrow and Parquet files, and of files of one message each."""

from __future__ import annotations

import gzip
import io
import os
import signal
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from framings import by_batches, until_error
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import ipc, parquet

import yaffjit as yj
from yaffjit.build.payloads import Payloads
from yaffjit.errors import DecodeError

VALUES = [b"", b"\x08\x01", b"a" * 500, b"", *(b"b" * (i % 7) for i in range(200))]
TYPES = (pa.binary(), pa.large_binary(), pa.binary_view())
Write = Callable[[Path, pa.Table], None]


def write_file(path: Path, table: pa.Table) -> None:
    with ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=50)


def write_stream(path: Path, table: pa.Table) -> None:
    with ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=50)


def write_packed(path: Path, table: pa.Table) -> None:
    options = ipc.IpcWriteOptions(compression="zstd")
    with ipc.new_file(path, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=50)


def write_parquet(path: Path, table: pa.Table) -> None:
    parquet.write_table(table, path, row_group_size=70)


FORMS = pytest.mark.parametrize(
    ("write", "read"),
    [
        (write_file, yj.read_arrow),
        (write_stream, yj.read_arrow),
        (write_packed, yj.read_arrow),
        (write_parquet, yj.read_parquet),
    ],
    ids=["file", "stream", "packed file", "parquet"],
)


def table_of(values: list[Any], typ: Any) -> pa.Table:
    rows = pa.array(range(len(values)))
    # A slice, so that offsets don't begin with 0.
    data = pa.array([b"before", *values], typ).slice(1)
    return pa.table({"row": rows, "message": data, "text": [str(i) for i in range(len(values))]})


@FORMS
@pytest.mark.parametrize("typ", TYPES, ids=str)
def test_values_of_a_column(write: Write, read: Any, typ: Any, tmp_path: Path) -> None:
    if write is write_parquet and typ == pa.binary_view():
        typ = pa.binary()  # pyarrow doesn't write views to Parquet
    path = tmp_path / "x"
    write(path, table_of(VALUES, typ))
    payloads: Payloads = read(path, "message")
    assert payloads.name == str(path)
    assert list(payloads) == list(payloads) == VALUES
    for nbytes in (1, 100, 8 << 20):
        assert list(by_batches(payloads, nbytes)) == VALUES
    with open(path, "rb") as file:
        assert list(by_batches(read(file, "message"), 100)) == VALUES
        assert not file.closed
        assert list(read(io.BytesIO(path.read_bytes()), "message")) == VALUES
    batches = list(payloads.batches(100))
    assert [batch.first_number for batch in batches] == [batch[2] for batch in batches]
    assert batches[1].where(0) == f"{path}: row {batches[1][2]} of column 'message'"


@FORMS
def test_columns_without_rows(write: Write, read: Any, tmp_path: Path) -> None:
    write(tmp_path / "x", table_of([], pa.binary()))
    assert list(read(tmp_path / "x", "message")) == []


@FORMS
def test_fixed_size_binary(write: Write, read: Any, tmp_path: Path) -> None:
    write(tmp_path / "x", pa.table({"message": pa.array([b"abc", b"def", None], pa.binary(3))}))
    assert list(read(tmp_path / "x", "message", nulls="empty")) == [b"abc", b"def", b""]


@FORMS
def test_nulls(write: Write, read: Any, tmp_path: Path) -> None:
    values = [b"a"] * 60 + [None, b"b", None]
    write(tmp_path / "x", table_of(values, pa.binary()))
    payloads = read(tmp_path / "x", "message")
    sentence = (
        f"{tmp_path / 'x'}: row 60 of column 'message' is null: "
        'nulls="empty" takes nulls for empty messages'
    )
    found, said = until_error(by_batches(payloads, 8 << 20))
    assert set(found) == {b"a"} and said == sentence
    empty = read(tmp_path / "x", "message", nulls="empty")
    assert list(empty) == list(by_batches(empty, 10)) == [b"a"] * 60 + [b"", b"b", b""]
    with pytest.raises(ValueError) as caught:
        read(tmp_path / "x", "message", nulls="skip")
    assert str(caught.value) == 'nulls must be "error" or "empty", not \'skip\''


@FORMS
def test_columns_that_arent_messages(write: Write, read: Any, tmp_path: Path) -> None:
    path = tmp_path / "x"
    write(path, table_of(VALUES, pa.binary()))
    for column, sentence in [
        ("mesage", f"{path} has no column 'mesage' (did you mean 'message'?)"),
        ("zzz", f"{path} has no column 'zzz'; binary columns: 'message'"),
        ("row", f"{path}: column 'row' must be binary, not int64"),
        ("text", f"{path}: column 'text' must be binary, not string"),
    ]:
        with pytest.raises(ValueError) as caught:
            read(path, column)
        assert str(caught.value) == sentence
    with pytest.raises(TypeError) as unfit:
        read(path, 5)
    assert str(unfit.value) == "column must be the name of a column, not int"


def test_an_index_isnt_taken_for_protobuf(tmp_path: Path) -> None:
    (tmp_path / "x.proto").write_text('syntax = "proto3"; package x; message M { int32 id = 1; }')
    message_type = yj.load_schema(tmp_path / "x.proto")["x.M"]
    yj.build_index(tmp_path / "x.arrow", message_type, [{"id": 1}])
    with pytest.raises(ValueError) as caught:
        yj.read_arrow(tmp_path / "x.arrow", "message")
    assert str(caught.value) == (
        f"{tmp_path / 'x.arrow'} is an index, whose messages are YaFF: open it with open_index"
    )


@FORMS
def test_damaged_files(write: Write, read: Any, tmp_path: Path) -> None:
    path = tmp_path / "x"
    write(path, table_of(VALUES, pa.binary()))
    whole = path.read_bytes()

    @settings(max_examples=80)
    @given(st.integers(0, len(whole) - 1), st.integers(1, 255), st.booleans())
    def never_crashes(place: int, change: int, cut: bool) -> None:
        data = whole[:place] if cut else whole[:place] + bytes([whole[place] ^ change]) + whole[place + 1 :]
        path.write_bytes(data)
        try:
            assert all(isinstance(value, bytes) for value in read(path, "message", nulls="empty"))
        except (DecodeError, ValueError) as error:
            assert str(error).startswith(str(path))

    never_crashes()
    for content in (b"", b"abc", bytes(100)):
        path.write_bytes(content)
        with pytest.raises(DecodeError) as caught:
            read(path, "message")
        kind = "a Parquet file" if write is write_parquet else "an Arrow file"
        assert str(caught.value).startswith(f"{path}: not {kind}, or damaged: ")


def test_wrong_offsets_are_found(tmp_path: Path) -> None:
    # Arrow's readers don't look at them.
    write_stream(tmp_path / "x", pa.table({"message": [b"abcde", b"fgh"]}))
    offsets, wrong = struct.pack("<3i", 0, 5, 8), struct.pack("<3i", 0, 5, 1 << 30)
    assert (tmp_path / "x").read_bytes().count(offsets) == 1
    (tmp_path / "x").write_bytes((tmp_path / "x").read_bytes().replace(offsets, wrong))
    with pytest.raises(DecodeError) as caught:
        list(yj.read_arrow(tmp_path / "x", "message"))
    assert str(caught.value).startswith(f"{tmp_path / 'x'}: not an Arrow file, or damaged: ")


def test_file_objects_must_be_seekable() -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    with pytest.raises(ValueError) as caught:
        yj.read_parquet(Pipe(b"PAR1"), "message")
    assert str(caught.value) == "stream: it must be seekable, as Arrow's files are read from their end"


@pytest.mark.parametrize("read", [yj.read_arrow, yj.read_parquet])
def test_pipes_are_refused(read: Any, tmp_path: Path) -> None:
    """Arrow would wait for a writer, deaf to Ctrl-C."""
    os.mkfifo(tmp_path / "pipe")
    signal.alarm(60)
    try:
        with pytest.raises(ValueError) as caught:
            read(tmp_path / "pipe", "message")
    finally:
        signal.alarm(0)
    sentence = "it must be seekable, as Arrow's files are read from their end, and it's a pipe"
    assert str(caught.value) == f"{tmp_path / 'pipe'}: {sentence}"


def test_one_message_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "deep"
    folder.mkdir()
    contents = {"b.pb": b"bb", "a.pb": b"a", "deep/c.pb": b"", "deep/d.pb": b"d" * 3_000_000}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "z.pb").write_bytes(gzip.compress(b"zz"))
    (tmp_path / "other.txt").write_bytes(b"no")
    payloads = yj.read_files(tmp_path / "**/*.pb")
    assert payloads.name == str(tmp_path / "**/*.pb")
    expected = [b"a", b"bb", b"", b"d" * 3_000_000, b"zz"]
    assert list(payloads) == list(payloads) == expected
    for nbytes in (1, 3, 8 << 20):
        assert list(by_batches(payloads, nbytes)) == expected
    (batch,) = payloads.batches()
    assert [batch.where(i) for i in (0, 2)] == [str(tmp_path / "a.pb"), str(folder / "c.pb")]
    listed = yj.read_files([tmp_path / "b.pb", tmp_path / "a.pb"])
    assert (listed.name, list(listed)) == ("2 files", [b"bb", b"a"])
    assert list(yj.read_files(str(tmp_path / "b.pb"))) == [b"bb"]
    with pytest.raises(FileNotFoundError) as caught:
        yj.read_files(str(tmp_path / "*.pbx"))
    assert str(caught.value) == f"no file matches '{tmp_path / '*.pbx'}'"
    (tmp_path / "z.pb").write_bytes(gzip.compress(b"zz")[:-3])
    found, said = until_error(iter(payloads))
    assert found == expected[:-1]
    assert said.startswith(f"{tmp_path / 'z.pb'}: its gzip data can't be unpacked beyond byte ")
