"""Reading and writing length-delimited files."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path
from typing import Any

import pytest

from yaffjit.build.delimited import read_delimited, write_delimited
from yaffjit.build.payloads import READ_NBYTES
from yaffjit.errors import DecodeError

PAYLOADS = [b"", b"a", b"b" * 127, b"c" * 128, b"d" * 300, b"e" * (READ_NBYTES + 5), b"", b"f" * 16384]


class Trickle(io.BytesIO):
    """A file that hands out three bytes at a time, as a pipe may."""

    def read(self, nbytes: int | None = -1, /) -> bytes:
        return super().read(min(3, nbytes) if nbytes else nbytes)


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "messages.pb"
    assert write_delimited(path, iter(PAYLOADS)) == len(PAYLOADS)
    assert list(read_delimited(path)) == PAYLOADS
    assert list(read_delimited(str(path))) == PAYLOADS
    with open(path, "rb") as file:
        assert list(read_delimited(file)) == PAYLOADS
        assert not file.closed
    zipped = tmp_path / "messages.pb.gz"
    zipped.write_bytes(gzip.compress(path.read_bytes()))
    assert list(read_delimited(zipped)) == PAYLOADS


def test_writes_protobuf_messages(tmp_path: Path) -> None:
    from google.protobuf.timestamp_pb2 import Timestamp

    path = tmp_path / "messages.pb"
    assert write_delimited(path, [Timestamp(seconds=3), Timestamp()]) == 2
    assert path.read_bytes() == b"\x02\x08\x03\x00"


def test_short_reads() -> None:
    small = PAYLOADS[:5]
    data = b"".join(bytes([len(p) & 127 | 128, len(p) >> 7]) + p for p in small)
    assert list(read_delimited(Trickle(data))) == small


def test_no_messages(tmp_path: Path) -> None:
    path = tmp_path / "empty.pb"
    assert write_delimited(path, []) == 0
    assert list(read_delimited(path)) == []


def test_missing_file_fails_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_delimited(tmp_path / "missing.pb")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (
            b"\x01a\x05bcd",
            "stream: record 1 at byte 2 claims 5 bytes, but 3 are left",
        ),
        (b"\x01a\x80", "stream: record 1 at byte 2 is cut: the file ends after 1 byte of its length"),
        (
            b"\x80" * 10 + b"\x01",
            "stream: record 0 at byte 0 has a length of more than 10 bytes",
        ),
        (
            b"\xff\xff\xff\xff\x0f",
            "stream: record 0 at byte 0 claims 4294967295 bytes, but protobuf's limit is 2147483647",
        ),
        (
            b"\xff\xff\xff\xff\x07ab",
            "stream: record 0 at byte 0 claims 2147483647 bytes, but 2 are left",
        ),
    ],
)
def test_malformed_files(data: bytes, sentence: str) -> None:
    with pytest.raises(DecodeError) as caught:
        list(read_delimited(io.BytesIO(data)))
    assert str(caught.value) == sentence


def test_messages_before_the_fault_are_handed_out() -> None:
    reader = iter(read_delimited(io.BytesIO(b"\x01a\x02")))
    assert next(reader) == b"a"
    with pytest.raises(DecodeError):
        next(reader)


def test_truncated_gzip_is_a_decode_error(tmp_path: Path) -> None:
    path = tmp_path / "messages.pb.gz"
    path.write_bytes(gzip.compress(b"\x01a" * 1000)[:-9])
    with pytest.raises(DecodeError) as caught:
        list(read_delimited(path))
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("form", [str, Path, os.fsencode])
def test_paths_of_many_sorts(tmp_path: Path, form: Any) -> None:
    path = tmp_path / "messages.pb.gz"
    path.write_bytes(gzip.compress(b"\x01a"))
    assert list(read_delimited(form(str(path)))) == [b"a"]


class Strange:
    """A file whose `read` gives what it was told to."""

    def __init__(self, *pieces: Any) -> None:
        self.pieces = list(pieces)

    def read(self, nbytes: int) -> Any:
        return self.pieces.pop(0)


def test_sources_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\x01a")
    with open(tmp_path / "x") as text:
        for file in (text, io.StringIO("\x01a")):
            with pytest.raises(TypeError) as caught:
                read_delimited(file)  # type: ignore[arg-type]
            assert str(caught.value) == (
                "the file is opened as text: messages are bytes, so open it with mode 'rb'"
            )
    for source in (5, None, [b"a"]):
        with pytest.raises(TypeError) as caught:
            read_delimited(source)  # type: ignore[arg-type]
        found = type(source).__name__
        assert str(caught.value) == f"messages are read from a path or a binary file, not from {found}"


@pytest.mark.parametrize("data", [b"\x01a", b"\x01\0", b"", b"\xffa" * 5000])
def test_what_is_in_a_file_is_no_path(data: bytes) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        read_delimited(data)  # type: ignore[arg-type]
    assert caught.value.strerror == "no such path; the content of a file is read as io.BytesIO(content)"
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("pieces", "found"), [(["\x01a"], "str"), ([None], "NoneType"), ([b"\x01", None], "NoneType")]
)
def test_files_that_give_no_bytes(pieces: list[Any], found: str) -> None:
    # A file that has nothing yet isn't at its end.
    with pytest.raises(TypeError) as caught:
        list(read_delimited(Strange(*pieces)))  # type: ignore[arg-type]
    assert str(caught.value) == f"stream: read() must give bytes, not {found}"


def test_messages_that_are_none(tmp_path: Path) -> None:
    assert write_delimited(tmp_path / "x", [b"a", bytearray(b"b"), memoryview(b"c")]) == 3  # type: ignore[list-item]
    assert list(read_delimited(tmp_path / "x")) == [b"a", b"b", b"c"]
    with pytest.raises(TypeError) as caught:
        write_delimited(tmp_path / "y", [b"a", "b"])  # type: ignore[list-item]
    assert str(caught.value) == "message 1: it must be bytes, a protobuf message or a view, not str"
