"""Readers of framed files: each framing, whole, cut and with flipped bits, plain and by the kernel."""

from __future__ import annotations

import gzip
import io
import os
import random
import subprocess
import sys
import threading
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from framings import CASES, Case, by_batches, crc32c, tfrecord, unframed, until_error
from google.protobuf import proto
from google.protobuf.struct_pb2 import Struct
from hypothesis import given, settings
from hypothesis import strategies as st

import yaffjit as yj
from yaffjit.build import framed
from yaffjit.build.streams import Stream
from yaffjit.errors import DecodeError

FIELDS = b"\x08\x96\x01\x12\x07testing"  # a message: 150 in field 1, text in field 2
MESSAGES = [FIELDS, b"", FIELDS * 15, FIELDS * 30, b"\x08\x01", FIELDS * 3000, b"", b""]
ANY_MESSAGES = st.lists(
    st.one_of(st.binary(max_size=8), st.integers(0, 40).map(lambda count: FIELDS * count)), max_size=12
)
EXAMPLES = 40
SIZES = st.sampled_from([1, 3, 64, 1000, 8 << 20])
READERS = pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)


class Trickle(io.BytesIO):
    """A file that hands out three bytes at a time, as a pipe may."""

    def read(self, nbytes: int | None = -1, /) -> bytes:
        return super().read(min(3, nbytes) if nbytes else nbytes)


def ways(case: Case, data: bytes, nbytes: int) -> list[tuple[list[bytes], str]]:
    """The same file read in every way."""
    return [
        until_error(by_batches(case.read(io.BytesIO(data)), nbytes)),
        until_error(by_batches(case.read(Trickle(data)), nbytes)),
        until_error(iter(case.read(io.BytesIO(data)))),
        until_error(iter(case.read(Trickle(data)))),
    ]


@READERS
def test_paths_files_and_compressed_files(split_by: str, case: Case, tmp_path: Path) -> None:
    data = b"".join(map(case.framed, MESSAGES))
    packed = {"x": data, "x.gz": gzip.compress(data), "x.zst": pa.compress(data, codec="zstd", asbytes=True)}
    packed["twice.gz"] = gzip.compress(data[:100]) + gzip.compress(data[100:])
    for name, content in packed.items():
        (tmp_path / name).write_bytes(content)
        payloads = case.read(tmp_path / name)
        assert payloads.name == str(tmp_path / name)
        assert list(payloads) == list(payloads) == MESSAGES  # as often as one likes
        for nbytes in (1, 100, 5000, 8 << 20):
            assert list(by_batches(payloads, nbytes)) == MESSAGES
        with open(tmp_path / name, "rb") as file:
            assert list(by_batches(case.read(file), 100)) == MESSAGES
            assert not file.closed


@READERS
def test_round_trip(split_by: str, case: Case) -> None:
    @settings(max_examples=EXAMPLES)
    @given(ANY_MESSAGES, SIZES)
    def equal(messages: list[bytes], nbytes: int) -> None:
        data = b"".join(map(case.framed, messages))
        assert ways(case, data, nbytes) == [(messages, "")] * 4

    equal()


@READERS
def test_cut_anywhere(split_by: str, case: Case) -> None:
    @settings(max_examples=EXAMPLES)
    @given(ANY_MESSAGES, SIZES, st.data())
    def equal(messages: list[bytes], nbytes: int, data: Any) -> None:
        records = list(map(case.framed, messages))
        whole = b"".join(records)
        cut = data.draw(st.integers(0, len(whole)))
        before, position = 0, 0
        while before < len(records) and position + len(records[before]) <= cut:
            position += len(records[before])
            before += 1
        for found, said in ways(case, whole[:cut], nbytes):
            assert found == messages[:before]
            assert bool(said) is (position < cut)
            assert not said or f"record {before} at byte {position} " in said

    equal()


@READERS
def test_flipped_bits(split_by: str, case: Case) -> None:
    @settings(max_examples=EXAMPLES)
    @given(ANY_MESSAGES.filter(any), SIZES, st.data())
    def equal(messages: list[bytes], nbytes: int, data: Any) -> None:
        whole = bytearray(b"".join(map(case.framed, messages)))
        bit = data.draw(st.integers(0, 8 * len(whole) - 1))
        whole[bit >> 3] ^= 1 << (bit & 7)
        expected, position = unframed(case, bytes(whole))
        if case.title == "TFRecord":
            assert position >= 0
        for found, said in ways(case, bytes(whole), nbytes):
            # Bytes that are none of this framing may be refused before the first of them is handed out.
            if "; it reads as " in said and f"record {len(expected)} at" not in said:
                found = expected
            assert found == expected
            assert bool(said) is (position >= 0)
            assert not said or f"record {len(expected)} at byte {position} " in said

    equal()


def test_parity_with_protobufs_own_delimited_files(split_by: str, tmp_path: Path) -> None:
    values: Any = st.recursive(
        st.one_of(st.none(), st.booleans(), st.floats(allow_nan=False), st.text(max_size=5)),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=8,
    )

    @settings(max_examples=EXAMPLES)
    @given(st.lists(st.dictionaries(st.text(max_size=5), values, max_size=4), max_size=5))
    def equal(contents: list[dict[str, Any]]) -> None:
        messages = []
        file = io.BytesIO()
        for content in contents:
            message = Struct()
            message.update(content)
            messages.append(message)
            proto.serialize_length_prefixed(message, file)
        assert [Struct.FromString(m) for m in yj.read_delimited(io.BytesIO(file.getvalue()))] == messages
        yj.write_delimited(tmp_path / "x", messages)
        with open(tmp_path / "x", "rb") as written:
            assert [proto.parse_length_prefixed(Struct, written) for _ in messages] == messages

    equal()


def test_the_checksums_are_those_of_the_rfc() -> None:
    # RFC 3720, B.4: what the tests' own CRC-32C, and so TFRecord files here, are made by.
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E


@READERS
@pytest.mark.parametrize("nbytes", [1000, 20_000])
def test_another_framing_is_named(split_by: str, case: Case, nbytes: int, tmp_path: Path) -> None:
    messages = [FIELDS * (300 if i % 7 == 3 else 3) for i in range(nbytes // 100)]
    (tmp_path / "x").write_bytes(b"".join(map(case.framed, messages)))
    for other in CASES:
        if other is not case:
            with open(tmp_path / "x", "rb") as file:
                readings = (
                    iter(other.read(tmp_path / "x")),
                    by_batches(other.read(tmp_path / "x"), 8 << 20),
                    iter(other.read(file)),
                )
                for found, said in map(until_error, readings):
                    assert not found
                    assert said.startswith(f"{tmp_path / 'x'}: not {other.title}: record ")
                    assert said.endswith(f"; it reads as {case.title}: {case.call}")


@pytest.mark.parametrize(
    ("case", "data", "sentence"),
    [
        (
            CASES[0],
            CASES[2].framed(FIELDS) * 3,
            "stream: not varint-delimited: record 3 at byte 3 follows 3 empty ones; "
            'it reads as 4-byte big-endian prefixes: read_length_prefixed(path, order="big")',
        ),
        (
            CASES[0],
            CASES[1].framed(FIELDS) * 3,
            "stream: not varint-delimited: record 0 at byte 0 isn't a protobuf message; "
            'it reads as 4-byte little-endian prefixes: read_length_prefixed(path, order="little")',
        ),
        (
            CASES[1],
            CASES[2].framed(FIELDS) * 3,
            "stream: not 4-byte little-endian prefixes: record 0 at byte 0 claims 201326592 bytes, but 44 "
            'are left; it reads as 4-byte big-endian prefixes: read_length_prefixed(path, order="big")',
        ),
        (
            CASES[2],
            CASES[0].framed(FIELDS) * 3,
            "stream: not 4-byte big-endian prefixes: record 0 at byte 0 claims 201889281 bytes, but 35 are "
            "left; it reads as varint-delimited: read_delimited(path)",
        ),
        (
            CASES[3],
            CASES[0].framed(FIELDS) * 3,
            "stream: not TFRecord: record 0 at byte 0 has the checksum 0x6e697473 for its length, "
            "which has 0x87604188; it reads as varint-delimited: read_delimited(path)",
        ),
        (
            CASES[3],
            tfrecord(b"a") + tfrecord(b"bc")[:-1] + b"\0",
            "stream: record 1 at byte 17 has the checksum 0x00db3334 for its data, which has 0xa7db3334",
        ),
        (
            CASES[3],
            tfrecord(b"a") + tfrecord(b"bc")[:-1],
            "stream: record 1 at byte 17 claims 2 bytes, but 5 are left",
        ),
        (
            CASES[3],
            tfrecord(b"a")[:7],
            "stream: record 0 at byte 0 is cut: the file ends after 7 bytes of its length",
        ),
        (
            CASES[1],
            b"\xff\xff\xff\xff" + bytes(9),
            "stream: record 0 at byte 0 claims 4294967295 bytes, but protobuf's limit is 2147483647",
        ),
        (
            CASES[0],
            FIELDS * 5,
            "stream: not varint-delimited: record 1 at byte 9 claims 105 bytes, but 50 are left; "
            "it reads as one protobuf message: read_field, or read_files",
        ),
        (
            CASES[0],
            b"ARROW1\0\0" + bytes(100),
            "stream: not varint-delimited: record 0 at byte 0 isn't a protobuf message; "
            'it is an Arrow file: read_arrow(path, "column")',
        ),
        (
            CASES[0],
            b"PAR1" + b"\xff" * 100,
            "stream: not varint-delimited: record 0 at byte 0 isn't a protobuf message; "
            'it is a Parquet file: read_parquet(path, "column")',
        ),
    ],
)
def test_sentences(split_by: str, case: Case, data: bytes, sentence: str) -> None:
    assert until_error(case.read(io.BytesIO(data)).batches())[1] == sentence


def test_positions_in_batches(split_by: str) -> None:
    for case in CASES:
        data = b"".join(map(case.framed, MESSAGES))
        position = number = 0
        for batch in case.read(io.BytesIO(data)).batches(1000):
            for i in range(len(batch.positions)):
                assert batch.where(i) == f"stream: record {number} at byte {position}"
                position += len(case.framed(MESSAGES[number]))
                number += 1
        assert number == len(MESSAGES)
    (batch,) = yj.read_delimited(io.BytesIO(gzip.compress(b"\x01a"))).batches()
    assert batch.where(0) == "stream: record 0 at byte 0 of the unpacked data"


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_compressed_files_that_are_damaged(codec: str) -> None:
    data = b"".join(map(CASES[0].framed, MESSAGES))
    packed = gzip.compress(data) if codec == "gzip" else pa.compress(data, codec=codec, asbytes=True)
    for cut in (*range(5, 20), len(packed) // 2, len(packed) - 1):
        for compression in ("auto", codec):
            reader = yj.read_delimited(io.BytesIO(packed[:cut]), compression=compression)
            found, said = until_error(iter(reader))
            assert found == MESSAGES[: len(found)]
            assert said.startswith(f"stream: its {codec} data can't be unpacked beyond byte ")
    said = until_error(iter(yj.read_delimited(io.BytesIO(packed + b"more"))))[1]
    assert said.startswith(f"stream: its {codec} data can't be unpacked beyond byte ")


@pytest.mark.parametrize("nbytes", [1, 7, 1000, 1 << 20])
def test_gzip_gives_all_that_is_before_its_damage(nbytes: int) -> None:
    """What zlib makes of a file's bytes one by one is the measure."""
    # Level 0 and random bytes: stored blocks; zeros: one byte of gzip for a thousand.
    parts = [b"abc" * 50, random.Random(3).randbytes(70_000), bytes(300_000), b""]
    members = [gzip.compress(part, level) for part in parts for level in (0, 6)]
    data = b"".join(part for part in parts for _ in range(2))
    whole = b"".join(members)
    flipped = bytearray(whole)
    flipped[-len(members[-1]) - len(members[-2]) - 6] ^= 1  # the checksum of the last zeros
    cases = [(whole[:cut], data, False) for cut in (12, 50, 5000, 140_000, len(whole) - 41)]
    cases += [(bytes(flipped), data, False), (whole + b"more", data, False)]
    cases += [
        (whole, data, True),
        (whole + bytes(1000), data, True),
        (bytes(members[0]) + b"\0" + members[1], b"abc" * 100, True),
    ]
    for packed, wanted, is_sound in cases:
        stream = Stream(io.BytesIO(packed), "x", "gzip")
        room = memoryview(bytearray(nbytes))
        found = bytearray()
        said = ""
        try:
            while count := stream.readinto(room):
                found += room[:count]
                if nbytes == 1 and len(found) > 5000:
                    break
        except DecodeError as error:
            said = str(error)
        assert wanted.startswith(found)
        if nbytes == 1 and len(found) > 5000:
            continue
        assert is_sound == (said == "")
        if is_sound:
            assert found == wanted
        else:
            assert said.startswith(f"x: its gzip data can't be unpacked beyond byte {len(found)}: ")
            assert len(found) == unpacked_nbytes(packed)


def unpacked_nbytes(packed: bytes) -> int:
    """How much of gzip's data there is before its damage."""
    member = zlib.decompressobj(31)
    count = 0
    try:
        for i in range(len(packed)):
            if member.eof:
                member = zlib.decompressobj(31)
            count += len(member.decompress(packed[i : i + 1]))
    except zlib.error:
        pass
    return count


def test_messages_before_damaged_gzip_are_handed_out() -> None:
    packed = gzip.compress(b"".join(map(CASES[0].framed, MESSAGES)))
    for damaged in (packed[:-1], packed[:-8] + b"\0" * 8, packed + b"more"):
        found, said = until_error(iter(yj.read_delimited(io.BytesIO(damaged))))
        assert found == MESSAGES
        assert "can't be unpacked beyond byte" in said


def test_compression_by_hand() -> None:
    # A message of 31 bytes that begins with a group of field 129 looks like gzip's first bytes.
    message = b"\x8b\x08" + bytes(29)
    file = CASES[0].framed(message)
    assert until_error(iter(yj.read_delimited(io.BytesIO(file))))[1].startswith("stream: its gzip data")
    assert list(yj.read_delimited(io.BytesIO(file), compression=None)) == [message]
    with pytest.raises(ValueError) as caught:
        yj.read_delimited(io.BytesIO(file), compression="bz2")
    assert str(caught.value) == "compression must be one of 'auto', None, 'gzip', 'zstd', not 'bz2'"


def peak(work: Callable[[], Any]) -> int:
    """Bytes that a call allocated at most at one time."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("case", CASES[:3], ids=lambda case: case.title)
def test_a_claimed_length_allocates_nothing(split_by: str, case: Case, tmp_path: Path) -> None:
    lengths = (b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\x7f", b"\x7f\xff\xff\xff")
    data = lengths[CASES.index(case)] + bytes(100)
    (tmp_path / "x").write_bytes(data)
    (tmp_path / "x.gz").write_bytes(gzip.compress(data))
    for source in (tmp_path / "x", tmp_path / "x.gz", io.BytesIO(data)):
        for read in (iter, lambda payloads: payloads.batches(1 << 16)):
            payloads = case.read(source if isinstance(source, Path) else io.BytesIO(data))
            assert peak(lambda p=payloads, read=read: until_error(read(p))) < 8 << 20
            assert (
                "claims 2147483647 bytes, but 100 are left" in until_error(read(case.read(tmp_path / "x")))[1]
            )


class Endless(io.RawIOBase):
    """A file of the same record again and again."""

    def __init__(self, record: bytes, count: int) -> None:
        self.record, self.left = record, count * len(record)

    def read(self, nbytes: int = -1) -> bytes:
        nbytes = min(nbytes, self.left)
        begin = -self.left % len(self.record)
        self.left -= nbytes
        return (self.record * (nbytes // len(self.record) + 2))[begin : begin + nbytes]


def test_memory_is_bounded(split_by: str) -> None:
    count = 3000
    for case in CASES[:3]:
        record = case.framed(FIELDS * 1000)

        def read_all(record: bytes = record, case: Case = case) -> None:
            batches = case.read(Endless(record, count)).batches(1 << 20)  # type: ignore[arg-type]
            assert sum(len(batch.positions) for batch in batches) == count

        assert count * len(record) > 30 << 20
        assert peak(read_all) < 8 << 20


def test_a_pipe_hands_out_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = yj.read_delimited(path)  # doesn't wait for the writer
    received = threading.Event()

    def write() -> None:
        with open(path, "wb", buffering=0) as pipe:
            pipe.write(b"\x01a\x02")
            assert received.wait(20)
            pipe.write(b"bc")

    writer = threading.Thread(target=write)
    writer.start()
    messages = iter(reader)
    assert next(messages) == b"a"
    received.set()
    assert list(messages) == [b"bc"]
    writer.join()


def test_small_files_are_read_without_numba(tmp_path: Path) -> None:
    yj.write_delimited(tmp_path / "x", [FIELDS] * 1000)
    program = (
        "import sys, yaffjit as yj\n"
        f"assert len(list(yj.read_delimited({str(tmp_path / 'x')!r}))) == 1000\n"
        "print('numba' in sys.modules, 'pyarrow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


def test_large_files_are_split_by_the_kernel(tmp_path: Path, monkeypatch: Any) -> None:
    loaded = framed._Loaded()
    monkeypatch.setattr(framed, "_loaded", loaded)
    yj.write_delimited(tmp_path / "x", [FIELDS] * (framed.PLAIN_ROWS + 100))
    assert sum(len(batch.positions) for batch in yj.read_delimited(tmp_path / "x").batches()) == (
        framed.PLAIN_ROWS + 100
    )
    assert loaded.split is not None


def test_bytes_of_files(tmp_path: Path) -> None:
    data = b"".join(map(CASES[0].framed, MESSAGES))
    (tmp_path / "x").write_bytes(data)
    (tmp_path / "x.gz").write_bytes(gzip.compress(data))
    assert yj.read_delimited(tmp_path / "x").nbytes == len(data)
    assert yj.read_delimited(tmp_path / "x.gz").nbytes is None
    with open(tmp_path / "x", "rb") as file:
        payloads = yj.read_delimited(file)
        assert (payloads.nbytes, file.tell()) == (None, 0)
        assert list(payloads) == MESSAGES


def test_arguments() -> None:
    with pytest.raises(ValueError) as caught:
        yj.read_length_prefixed(io.BytesIO(b""), "native")
    assert str(caught.value) == 'order must be "little" or "big", not \'native\''
    with pytest.raises(ValueError) as caught:
        yj.read_delimited(io.BytesIO(b"")).batches(0)
    assert str(caught.value) == "a batch has at least 1 byte, not 0"
    assert repr(yj.read_delimited(io.BytesIO(b""))) == "<Framed of stream>"
