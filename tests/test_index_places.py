"""Where index files are: what is replaced and how, what isn't read, and files that change under a reader."""

from __future__ import annotations

import io
import os
import resource
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import ipc
from vectors import TESTS

import yaffjit as yj
from yaffjit.index.atomic import replaced_file
from yaffjit.index.blocks import batch_headers, has_dictionaries

SCHEMA = TESTS / "schemas" / "columns.proto"
ROWS = 40


@pytest.fixture(scope="module")
def row_type() -> yj.MessageType:
    return yj.load_schema(SCHEMA)["columns.Row"]


@pytest.fixture
def path(row_type: yj.MessageType, tmp_path: Path) -> Path:
    messages = [{"id": row} for row in range(ROWS)]
    yj.build_index(tmp_path / "x.arrow", row_type, messages, columns={"row": range(ROWS)})
    return tmp_path / "x.arrow"


@pytest.fixture(params=["nameless", "named"])
def temporary(request: pytest.FixtureRequest, monkeypatch: Any) -> None:
    """Both ways to write a file that has no name of its own yet."""
    if request.param == "named":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)


def build(path: Any, row_type: yj.MessageType, *ids: int) -> None:
    yj.build_index(path, row_type, [{"id": number} for number in ids])


def ids(path: Any) -> list[int]:
    return [view.id for view in yj.open_index(path)]


@pytest.mark.parametrize("mode", [0o640, 0o600, 0o666, 0o444, 0o755])
def test_a_replaced_file_keeps_its_mode(
    path: Path, row_type: yj.MessageType, temporary: None, mode: int
) -> None:
    path.chmod(mode)
    build(path, row_type, 7)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert ids(path) == [7]


def test_nobody_else_reads_it_while_it_is_written(path: Path, temporary: None) -> None:
    path.chmod(0o600)
    with replaced_file(str(path)) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600


def test_a_full_disk_that_is_noticed_late(path: Path, row_type: yj.MessageType, temporary: None) -> None:
    """All of a small file is written when it is closed."""
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(yj.IndexFileError) as caught:
            build(path, row_type, 7)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert str(caught.value) == f"{path} can't be written: File too large"
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_symbolic_links_are_followed(path: Path, row_type: yj.MessageType, temporary: None) -> None:
    folder = path.parent / "links"
    folder.mkdir()
    (folder / "near").symlink_to("../x.arrow")
    (folder / "far").symlink_to(folder / "near")
    (folder / "new").symlink_to("../y.arrow")  # leads nowhere yet
    build(folder / "far", row_type, 7)
    build(folder / "new", row_type, 8)
    assert all(link.is_symlink() for link in folder.iterdir())
    assert sorted(os.listdir(folder)) == ["far", "near", "new"]
    assert sorted(os.listdir(path.parent)) == ["links", "x.arrow", "y.arrow"]
    assert (ids(path), ids(path.parent / "y.arrow")) == ([7], [8])
    (folder / "loop").symlink_to("loop")
    with pytest.raises(yj.IndexFileError, match=r"loop can't be written: Too many levels of symbolic links$"):
        build(folder / "loop", row_type, 9)


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(path))


SPECIAL: dict[str, tuple[Callable[[Path], None], str]] = {
    "pipe": (make_pipe, "it's a pipe, not a regular file"),
    "socket": (make_socket, "it's a socket, not a regular file"),
    "device": (lambda path: path.symlink_to(os.devnull), "it's a device, not a regular file"),
    "link to a pipe": (
        lambda path: (make_pipe(path.with_name("p")), path.symlink_to("p"))[1],  # type: ignore[func-returns-value]
        "it's a pipe, not a regular file",
    ),
}


@pytest.mark.parametrize("kind", list(SPECIAL))
def test_what_is_no_regular_file(
    row_type: yj.MessageType, tmp_path: Path, monkeypatch: Any, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "special"
    make, fault = SPECIAL[kind]
    make(path)
    before = (os.lstat(path).st_ino, sorted(os.listdir(tmp_path)))
    with pytest.raises(yj.IndexFileError) as caught:
        build(path, row_type, 7)
    assert str(caught.value) == f"{path} can't be written: {fault}"
    assert (os.lstat(path).st_ino, sorted(os.listdir(tmp_path))) == before
    for open_it in (yj.open_index, yj.open_index_unchecked):
        with pytest.raises(yj.IndexFileError) as caught:
            open_it(path)
        # A socket can't be opened at all.
        opened = "No such device or address" if kind == "socket" else fault
        assert str(caught.value) == f"{path} can't be opened: {opened}"


@pytest.mark.parametrize("form", [str, os.fsencode, Path])
def test_paths_of_many_sorts(row_type: yj.MessageType, tmp_path: Path, form: Any) -> None:
    for name in ("x.arrow", "\udcff\udcfe.arrow", "ü"):
        path = form(str(tmp_path / name)) if form is not os.fsencode else os.fsencode(tmp_path / name)
        build(path, row_type, 3)
        assert ids(path) == [3]


@pytest.mark.parametrize(
    ("path", "error", "sentence"),
    [
        ("", ValueError, "a path can't be empty"),
        ("a\0b", ValueError, "a path can't have a null character: 'a\\x00b'"),
        (5, TypeError, "expected str, bytes or os.PathLike object, not int"),
        (None, TypeError, "expected str, bytes or os.PathLike object, not NoneType"),
    ],
)
def test_what_is_no_path(row_type: yj.MessageType, path: Any, error: Any, sentence: str) -> None:
    for use in (
        lambda: build(path, row_type, 1),
        lambda: yj.open_index(path),
        lambda: yj.open_index_unchecked(path),
    ):
        with pytest.raises(error) as caught:
            use()
        assert str(caught.value) == sentence


def test_wrong_argument_types(path: Path, row_type: yj.MessageType, tmp_path: Path) -> None:
    def fails(use: Callable[[], Any]) -> str:
        with pytest.raises(TypeError) as caught:
            use()
        return str(caught.value)

    def built(messages: Any = (), message_type: Any = row_type, **options: Any) -> Any:
        return lambda: yj.build_index(tmp_path / "y.arrow", message_type, messages, **options)

    for wrong, sentence in (
        (5, "a MessageType is needed, not int"),
        ("columns.Row", "a MessageType is needed, as schema['columns.Row'] would be"),
    ):
        use: Any
        for use in (
            lambda wrong=wrong: yj.open_index(path, wrong),
            lambda wrong=wrong: yj.open_index_unchecked(path, wrong),
            built(message_type=wrong),
        ):
            assert fails(use) == sentence
    assert fails(built(message_type=None)) == "a MessageType is needed, not NoneType"
    assert fails(built(5)) == "messages must be an iterable of messages, not one int"
    assert fails(built(b"")) == "messages must be an iterable of messages, not one bytes"
    assert fails(built({"id": 1})) == "messages must be an iterable of messages, not one dict"
    hint = ": yj.read_delimited and the other readers give the messages of a file"
    file = io.BytesIO(b"\x02\x08\x01")  # a loop over it would give its lines
    for given, name in (("rows.pb", "str"), (Path("rows.pb"), "PosixPath"), (file, "BytesIO")):
        assert fails(built(given)) == f"messages must be an iterable of messages, not one {name}{hint}"
    assert fails(built(row_type.message_class())) == "messages must be an iterable of messages, not one Row"
    assert fails(built(columns=[1])) == 'columns must map names to values, as {"day": days}, not list'
    assert fails(built(columns={5: [1]})) == "the name of a further column must be text, not int"
    assert fails(built(columns={"x": "ab"})) == "column 'x' must hold a value a message, not be one str"
    assert os.listdir(tmp_path) == ["x.arrow"]


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"\ud800": [1]}, "a further column can't be called '\\ud800': half of a surrogate pair isn't text"),
        ({"x": ["\ud800"]}, "column 'x' can't be stored: 'utf-8' codec can't encode character"),
        ({"x": [2**70]}, "column 'x' can't be stored: "),
        ({"x": 5}, "column 'x' can't be stored: 'int' object is not iterable"),
        ({"x": np.zeros((1, 2))}, "column 'x' can't be stored: "),
    ],
)
def test_columns_that_cannot_be_stored(
    row_type: yj.MessageType, tmp_path: Path, columns: Any, sentence: str
) -> None:
    with pytest.raises(ValueError) as caught:
        yj.build_index(tmp_path / "y.arrow", row_type, [{}], columns=columns)
    assert str(caught.value).startswith(sentence)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("grow", [False, True])
def test_a_file_that_is_cut_while_it_is_open(path: Path, grow: bool) -> None:
    index = yj.open_index(path)
    part = index[3:30]
    columns = index.columns("id")
    view = index[7]
    nbytes = path.stat().st_size
    other = nbytes + 1 if grow else 4096
    os.truncate(path, other)
    uses: dict[str, Callable[[], Any]] = {
        "columns": lambda: index.columns("id"),
        "columns of a slice": lambda: part.columns("first"),
        "present": lambda: columns.present("first"),
        "verify": index.verify,
        "verify of a slice": part.verify,
        "loop": lambda: list(index),
        "loop over a slice": lambda: list(part),
        "slice with a step": lambda: part[::2],
        "other column": lambda: index.column("row"),
    }
    for name, use in uses.items():
        with pytest.raises(yj.IndexFileError) as caught:
            use()
        assert str(caught.value) == (
            f"{path} has {other:,} bytes, but had {nbytes:,} when it was opened: "
            "somebody wrote to it in place"
        ), name
    os.truncate(path, nbytes)  # before the mapping is looked at again
    assert view is not None


@pytest.fixture
def allocated() -> Iterator[Callable[[], int]]:
    """The most bytes that pyarrow had allocated at once since the test began."""
    usual = pa.default_memory_pool()
    counting = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(counting)
    yield lambda: counting.max_memory() or 0
    pa.set_memory_pool(usual)


BIG = 8 << 20


def rewritten(path: Path, batches: Any, schema: Any, **options: Any) -> None:
    with ipc.new_file(path, schema, options=ipc.IpcWriteOptions(**options)) as file:
        for batch, metadata in batches:
            file.write_batch(batch, custom_metadata=metadata)


def big_batch(path: Path, other: Any) -> Any:
    """One batch of 8 MiB of zeros and an index's schema, with another column."""
    with ipc.open_file(path) as file:
        field = file.schema.field("message")
    message = pa.array([bytes(BIG)], pa.large_binary())
    schema = pa.schema([field, pa.field("other", other.type)])
    return pa.RecordBatch.from_arrays([message, other], schema=schema)


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
@pytest.mark.parametrize("version", ["V4", "V5"])
def test_compressed_batches_are_not_unpacked(
    path: Path, request: pytest.FixtureRequest, compression: str, version: str
) -> None:
    batch = big_batch(path, pa.array([1]))
    metadata_version = getattr(ipc.MetadataVersion, version)
    rewritten(path, [(batch, None)], batch.schema, compression=compression, metadata_version=metadata_version)
    assert path.stat().st_size < BIG // 10
    allocated = request.getfixturevalue("allocated")
    for open_it in (yj.open_index, yj.open_index_unchecked):
        with pytest.raises(yj.IndexFileError) as caught:
            open_it(path)
        assert str(caught.value) == (
            f"{path} is compressed ({compression}), so it can't be read in place: "
            f"yj.open_packed({str(path)!r}).batches() unpacks a batch at a time, and "
            f"`yaffjit unpack {path} -o OUTPUT` or yj.unpack_index the whole"
        )
    assert allocated() < BIG // 10


def test_compression_as_old_arrow_said_it(path: Path) -> None:
    batch = big_batch(path, pa.array([1]))
    metadata = {"ARROW:experimental_compression": "zstd"}
    rewritten(path, [(batch, metadata)], batch.schema, metadata_version=ipc.MetadataVersion.V4)
    with pytest.raises(yj.IndexFileError) as caught:
        yj.open_index(path)
    assert str(caught.value) == (
        f"{path}: its headers are damaged: its batches are compressed in a way of Arrow before 1.0"
    )


def test_compressed_dictionaries_are_not_unpacked(path: Path, request: pytest.FixtureRequest) -> None:
    batch = big_batch(path, pa.array(["x" * BIG]).dictionary_encode())
    plain = big_batch(path, batch.column(1))
    rewritten(path, [(plain, None)], batch.schema, compression=None)
    allocated = request.getfixturevalue("allocated")
    with pytest.raises(yj.IndexFileError) as caught:
        yj.open_index(path)
    assert str(caught.value) == (
        f"{path}: it has dictionaries, which no checksum covers: another program wrote it"
    )
    assert allocated() < BIG // 10


def test_headers_by_themselves(path: Path) -> None:
    data = path.read_bytes()
    assert [header.compression for header in batch_headers(memoryview(data))] == [""]
    assert not has_dictionaries(memoryview(data))
    # Whatever bytes they are, it ends, and by ValueError if it fails.
    footer = len(data) - 10 - int.from_bytes(data[-10:-6], "little")
    wrong = 0
    for at in range(footer, len(data) - 6):
        for value in (0, 0x7F, 0xFF):
            damaged = bytearray(data)
            damaged[at] = value
            try:
                list(batch_headers(memoryview(damaged)))
                has_dictionaries(memoryview(damaged))
            except ValueError as error:
                wrong += 1
                assert str(error).startswith("its headers lead to byte ")
    assert wrong
    for nbytes in range(20):
        with pytest.raises(ValueError):
            list(batch_headers(memoryview(data)[:nbytes]))
