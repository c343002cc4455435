"""Index files that are damaged, foreign or unfinished: nothing is returned from them."""

from __future__ import annotations

import base64
import os
import re
import resource
import signal
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import ipc
from vectors import TESTS

import yaffjit as yj
from yaffjit.index import atomic, batches, checks, encoders
from yaffjit.index.metadata import BATCH_ROWS

SCHEMA = TESTS / "schemas" / "columns.proto"
# A prime step, so that all bits of a byte and all bytes of a word are met.
FLIP_STEP = 61
CUT_STEP = 331


@pytest.fixture(scope="module")
def row_type() -> yj.MessageType:
    return yj.load_schema(SCHEMA)["columns.Row"]


@pytest.fixture(scope="module")
def small(row_type: yj.MessageType, tmp_path_factory: Any) -> bytes:
    """A file of three messages and another column."""
    path: Path = tmp_path_factory.mktemp("small") / "x.arrow"
    yj.build_index(path, row_type, [{"id": row} for row in range(3)], columns={"label": ["a", "bb", None]})
    return path.read_bytes()


@pytest.fixture(scope="module")
def three_batches(row_type: yj.MessageType, tmp_path_factory: Any) -> Path:
    path: Path = tmp_path_factory.mktemp("three") / "x.arrow"
    empty = row_type.message_class().SerializeToString()
    yj.build_index(path, row_type, (empty for _ in range(2 * BATCH_ROWS + 10)))
    return path


def refusal(path: Path, *args: Any) -> str:
    with pytest.raises(yj.IndexFileError) as caught:
        yj.open_index(path, *args)
    sentence = str(caught.value)
    assert sentence.startswith(str(path))
    return sentence.removeprefix(str(path))


def parts(path: Path) -> tuple[Any, list[tuple[Any, dict[bytes, bytes]]]]:
    with ipc.open_file(path) as file:
        batches = [file.get_batch_with_custom_metadata(number) for number in range(file.num_record_batches)]
        return file.schema, [(batch, dict(metadata or {})) for batch, metadata in batches]


def write(path: Path, schema: Any, batches: list[tuple[Any, Any]], **options: Any) -> None:
    with ipc.new_file(path, schema, options=ipc.IpcWriteOptions(**options)) as file:
        for batch, metadata in batches:
            file.write_batch(batch, custom_metadata=metadata)


def test_flipped_bits(small: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    path.write_bytes(small)
    good = [yj.open_index(path).payload(row) for row in range(3)]
    opened = 0
    for position in range(0, len(small), FLIP_STEP):
        damaged = bytearray(small)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        try:
            index = yj.open_index(path)
        except yj.IndexFileError as error:
            assert str(error).startswith(str(path))
            continue
        # Padding, and names of no meaning to us.
        opened += 1
        assert [index.payload(row) for row in range(3)] == good, position
        assert index.column(index.column_names[0]).to_pylist() == ["a", "bb", None], position
    assert opened < len(small) // FLIP_STEP / 10


def test_cut_files(small: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    for nbytes in range(1, len(small), CUT_STEP):
        path.write_bytes(small[:nbytes])
        assert refusal(path).startswith(": it isn't a whole Arrow file: ")
    path.write_bytes(b"")
    assert refusal(path) == " is empty: it isn't an index"
    path.write_bytes(small + b"x")
    assert refusal(path).startswith(": it isn't a whole Arrow file: ")


def test_a_damaged_batch_is_named(three_batches: Path, tmp_path: Path) -> None:
    data = bytearray(three_batches.read_bytes())
    schema, batches = parts(three_batches)
    size = batches[0][0].column(0).buffers()[2].size
    data[len(data) // 2] ^= 1  # within the second of two full batches
    path = tmp_path / "x.arrow"
    path.write_bytes(data)
    written = batches[1][1][b"yaffjit.xxh3"].decode()
    sentence = refusal(path)
    start = ": batch 1 (rows 65,536 to 131,071): its checksum is "
    assert sentence.startswith(start)
    assert sentence.endswith(f", but {written} was written")
    assert size > 4 * BATCH_ROWS
    # Unchecked, it is opened all the same.
    assert len(yj.open_index_unchecked(path)) == 2 * BATCH_ROWS + 10
    assert schema is not None


def test_batches_out_of_place(three_batches: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    schema, batches = parts(three_batches)
    write(path, schema, batches)
    assert len(yj.open_index(path)) == 2 * BATCH_ROWS + 10
    write(path, schema, [batches[1], batches[0], batches[2]])
    assert refusal(path).endswith("was written (it was written as batch 1)")
    write(path, schema, batches[:2])
    sentence = refusal(path)
    assert sentence.startswith(": batch 1 (rows 65,536 to 131,071): its checksum is ")
    assert sentence.endswith("was written (it wasn't the last one when it was written)")
    write(path, schema, [])
    assert refusal(path) == ": it has no batch, so its end is missing"
    write(path, schema, [(batches[0][0], None), *batches[1:]])
    assert refusal(path).endswith(", but none was written (it was written as batch ?)")


def test_a_message_that_is_not_well_formed(
    row_type: yj.MessageType, tmp_path: Path, monkeypatch: Any
) -> None:
    def spoilt(mp: Any, message: Any, layout: str) -> bytes:
        payload = row_type.encode(message)
        return payload[:-1] if message.id == 2 else payload

    monkeypatch.setattr(encoders, "encode", spoilt)
    path = tmp_path / "x.arrow"
    yj.build_index(path, row_type, [row_type.message_class(id=row) for row in range(5)])
    with pytest.raises(yj.VerifyError) as verify_error:
        row_type.verify(yj.open_index_unchecked(path).payload(2))
    with pytest.raises(yj.IndexFileError) as caught:
        yj.open_index(path)
    assert str(caught.value) == f"{path}: batch 0 (rows 0 to 4): row 2: {verify_error.value}"
    index = yj.open_index_unchecked(path)
    with pytest.raises(yj.IndexFileError):
        index.verify()
    index[3:].verify()


@pytest.mark.parametrize("offsets", [[0, 20, 10, 30], [-8, 0, 10, 20], [0, 1, 2, 2**40]])
def test_offsets_are_checked_too(
    row_type: yj.MessageType, small: bytes, tmp_path: Path, monkeypatch: Any, offsets: list[int]
) -> None:
    lengths = [len(row_type.encode({"id": row})) for row in range(3)]
    written = np.cumsum([0, *lengths]).astype("<i8").tobytes()
    assert small.count(written) == 1
    path = tmp_path / "x.arrow"
    path.write_bytes(small.replace(written, np.array(offsets, "<i8").tobytes()))
    original = tmp_path / "original.arrow"
    original.write_bytes(small)
    checksum = parts(original)[1][0][1][b"yaffjit.xxh3"].decode()

    class Digest:
        update = staticmethod(lambda data: None)
        hexdigest = staticmethod(lambda: checksum)

    monkeypatch.setattr(checks, "started_checksum", lambda *args: Digest)
    assert refusal(path).startswith(": batch 0 (rows 0 to 2): column 'message': ")


def test_wrong_type(small: bytes, row_type: yj.MessageType, tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    path.write_bytes(small)
    other = row_type.schema["columns.Kinds"]
    assert refusal(path, other) == " holds messages of columns.Row, not of columns.Kinds"
    with pytest.raises(yj.IndexFileError):
        yj.open_index_unchecked(path, other)
    assert len(yj.open_index(path, row_type)) == 3


def test_foreign_files(tmp_path: Path, row_type: yj.MessageType) -> None:
    path = tmp_path / "x.arrow"
    assert refusal(path) == " can't be opened: No such file or directory"
    assert refusal(tmp_path) == " is a folder without manifest.json, so it isn't an index"
    path.write_bytes(b"not an Arrow file at all, but long enough to be one")
    assert refusal(path).startswith(": it isn't a whole Arrow file: ")
    not_ours = (
        " isn't an index: it has no large_binary column 'message' of Arrow extension type yaffjit.message"
    )
    for column in ("x", "message"):
        batch = pa.record_batch({column: pa.array([row_type.encode({})], pa.large_binary())})
        write(path, batch.schema, [(batch, None)])
        assert refusal(path) == not_ours


def rewritten(small: bytes, path: Path, old: bytes, new: bytes) -> None:
    """The small file with another description."""
    path.write_bytes(small)
    schema, batches = parts(path)
    field = schema.field("message")
    metadata = dict(field.metadata)
    text = metadata[b"ARROW:extension:metadata"]
    assert old in text
    metadata[b"ARROW:extension:metadata"] = text.replace(old, new)
    schema = schema.set(0, field.with_metadata(metadata))
    write(path, schema, [(batch.cast(schema), said) for batch, said in batches])


def test_descriptions_that_make_no_sense(small: bytes, tmp_path: Path, row_type: yj.MessageType) -> None:
    path = tmp_path / "x.arrow"
    rewritten(small, path, b'"format_version": 1', b'"format_version": 2')
    assert refusal(path) == (
        " has format version 2, but this yaffjit reads up to 1: a newer yaffjit wrote it"
    )
    rewritten(small, path, b'"yaff"', b'"wire"')
    assert refusal(path) == ": its messages are encoded as 'wire', which this yaffjit can't read"
    for old, new in (
        (b'"format_version": 1', b'"format_version": "1"'),
        (b'"format_version": 1', b'"format_version": true'),
        (b'"format_version": 1, ', b""),
        (b"{", b"["),
        (b'"columns.Row"', b"7"),
        (b'"descriptor_set": "', b'"descriptor_set": "AAAA'),
    ):
        rewritten(small, path, old, new)
        assert refusal(path).startswith(": its description of the messages is damaged: ")
    packed = re.search(rb'"descriptor_set": "([^"]*)"', small)
    assert packed is not None
    for garbage in (b"\xff\xff", b"\x0a\x03abc", b""):
        rewritten(small, path, packed[1], base64.b64encode(zlib.compress(garbage)))
        assert refusal(path).startswith(": its schema can't be loaded: ")
    rewritten(small, path, b'"columns.Row"', b'"columns.Rows"')
    assert refusal(path).startswith(": its schema can't be loaded: the schema has no message 'columns.Rows'")
    rewritten(small, path, b'"columns.Row"', b'"columns.Kinds"')
    assert refusal(path).startswith(": its schema has the fingerprint ")
    # The checksums cover the description.
    rewritten(small, path, b'"slice": null', b'"slice":  null')
    assert refusal(path).startswith(": batch 0 (rows 0 to 2): its checksum is ")


def test_a_small_file_does_not_unpack_into_a_large_schema(
    small: bytes, tmp_path: Path, monkeypatch: Any
) -> None:
    path = tmp_path / "x.arrow"
    path.write_bytes(small)
    monkeypatch.setattr("yaffjit.index.metadata.MAX_DESCRIPTOR_SET", 1000)
    assert "the descriptor set is cut short or larger than 1000 bytes" in refusal(path)


def test_files_that_other_programs_rewrote(small: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    path.write_bytes(small)
    schema, [(batch, metadata)] = parts(path)
    write(path, schema, [(batch, metadata)] * 2)
    assert refusal(path) == (
        ": batch 0 of 2 has 3 rows, but an index has 65,536 in each batch but the last: "
        "another program wrote it; yj.records takes its column"
    )
    write(path, schema, [(batch, metadata)], compression="zstd")
    assert refusal(path).startswith(" is compressed (zstd), so it can't be read in place: yj.open_packed(")
    nulls = pa.array([None, b"", b""], pa.large_binary())
    nullable = schema.set(0, schema.field(0).with_nullable(True))
    write(path, nullable, [(pa.RecordBatch.from_arrays([nulls, batch.column(1)], schema=nullable), metadata)])
    assert refusal(path).startswith(": batch 0 (rows 0 to 2): its checksum is ")


@pytest.fixture(params=["nameless", "named"])
def temporary(request: pytest.FixtureRequest, monkeypatch: Any) -> str:
    """Both ways to write a file that has no name of its own yet."""
    kind: str = request.param
    if kind == "named":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    return kind


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, OSError])
def test_an_interrupted_build_leaves_the_old_file(
    row_type: yj.MessageType, tmp_path: Path, temporary: str, monkeypatch: Any, error: type[BaseException]
) -> None:
    monkeypatch.setattr(batches, "BATCH_ROWS", 100)

    def messages() -> Iterator[dict[str, int]]:
        for row in range(300):
            if row == 250:
                raise error
            yield {}

    path = tmp_path / "x.arrow"
    with pytest.raises(error):
        yj.build_index(path, row_type, messages())
    assert os.listdir(tmp_path) == []
    yj.build_index(path, row_type, [{"id": 3}])
    before = path.read_bytes()
    with pytest.raises(error):
        yj.build_index(path, row_type, messages())
    assert os.listdir(tmp_path) == ["x.arrow"]
    assert path.read_bytes() == before


def test_a_build_replaces_the_old_file(row_type: yj.MessageType, tmp_path: Path, temporary: str) -> None:
    path = tmp_path / "x.arrow"
    yj.build_index(path, row_type, [{"id": 3}])
    old = yj.open_index(path)
    yj.build_index(path, row_type, [{"id": 4}, {"id": 5}])
    assert os.listdir(tmp_path) == ["x.arrow"]
    assert old[0].id == 3
    assert [view.id for view in yj.open_index(path)] == [4, 5]
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask


KILLED = """
import os, sys
if sys.argv[3] == "named" and hasattr(os, "O_TMPFILE"):
    del os.O_TMPFILE
import yaffjit as yj
import yaffjit.index.batches
yaffjit.index.batches.BATCH_ROWS = 100
message_type = yj.load_schema(sys.argv[1])["columns.Row"]
def messages():
    for row in range(300):
        if row == 250:
            print("now", flush=True)
            sys.stdin.read()
        yield b""
yj.build_index(sys.argv[2], message_type, messages())
"""


def start_build(path: Path, kind: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(TESTS.parent)}
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(SCHEMA), str(path), kind],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "now\n"
    return process


@pytest.mark.parametrize("kind", ["nameless", "named"])
def test_a_killed_build_leaves_the_old_file(row_type: yj.MessageType, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.arrow"
    yj.build_index(path, row_type, [{"id": 3}])
    with start_build(path, kind) as process:
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert [view.id for view in yj.open_index(path)] == [3]
    left = [name for name in os.listdir(tmp_path) if name != "x.arrow"]
    if kind == "named":
        assert len(left) == 1
        assert left[0].startswith(".x.arrow.")
        assert left[0].endswith(".tmp")
    else:
        assert left == [] or not hasattr(os, "O_TMPFILE")
    yj.build_index(path, row_type, [{"id": 4}])
    assert [view.id for view in yj.open_index(path)] == [4]


def test_control_c_stops_a_build(tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    with start_build(path, "named") as process:
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode != 0
    assert os.listdir(tmp_path) == []


def test_places_that_cannot_be_written(row_type: yj.MessageType, tmp_path: Path, temporary: str) -> None:
    path = tmp_path / "missing" / "x.arrow"
    with pytest.raises(yj.IndexFileError) as caught:
        yj.build_index(path, row_type, [{}])
    assert str(caught.value) == f"{path} can't be written: No such file or directory"
    (tmp_path / "mine").touch()
    with pytest.raises(yj.IndexFileError) as caught:
        yj.build_index(tmp_path, row_type, [{}])
    fault = "it's a folder without manifest.json, but with 'mine' in it"
    assert str(caught.value) == f"{tmp_path} can't be written: {fault}"
    assert [name for name in os.listdir(tmp_path) if name != ".lock"] == ["mine"]


def test_a_full_disk(row_type: yj.MessageType, tmp_path: Path, temporary: str) -> None:
    path = tmp_path / "x.arrow"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Stands in for a full disk: writing beyond the limit fails in the same way.
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(yj.IndexFileError) as caught:
            yj.build_index(path, row_type, [{"name": "x" * 1000}] * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert str(caught.value) == f"{path} can't be written: File too large"
    assert os.listdir(tmp_path) == []


def test_a_file_is_on_disk_before_it_has_its_name(
    row_type: yj.MessageType, tmp_path: Path, temporary: str, monkeypatch: Any
) -> None:
    steps: list[str] = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)

        def noted(*args: Any, name: str = name, real: Any = real) -> Any:
            steps.append(name)
            return real(*args)

        monkeypatch.setattr(atomic.os, name, noted)
    yj.build_index(tmp_path / "x.arrow", row_type, [{}])
    assert steps == ["fsync", "replace", "fsync"]
