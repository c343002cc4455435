"""Disks that are full or read-only, and bits that flip anywhere: an IndexFileError, and nothing partial."""

from __future__ import annotations

import errno
import os
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

import yaffjit as yj

SOURCE = 'syntax = "proto3"; package k; message Row { uint64 id = 1; string name = 2; }'
# Of each kind of index; `YAFFJIT_FLIPS=2000` is the whole campaign.
FLIPS = int(os.environ.get("YAFFJIT_FLIPS", "100"))
SEED = 20_261

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def row_type(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("schema") / "k.proto"
    path.write_text(SOURCE)
    return yj.load_schema(path)["k.Row"]


def rows(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [{"id": number, "name": f"{number:50}"} for number in range(first, first + count)]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of half a megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=512k", "none", str(place)]
    try:
        mounted = os.getuid() == 0 and subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("no file system can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def content(place: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(place)): path.read_bytes()
        for path in place.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def refused(fault: str, work: Callable[[], object]) -> None:
    with pytest.raises(yj.IndexFileError) as caught:
        work()
    assert str(caught.value).endswith(f" can't be written: {fault}")


def writes(place: Path, row_type: Any, count: int) -> list[Callable[[], object]]:
    return [
        lambda: yj.build_index(place / "x.arrow", row_type, rows(count)),
        lambda: yj.build_index(place / "x.arrow", row_type, rows(count), key="id"),
        lambda: yj.build_index(place / "new.arrow", row_type, rows(count)),
        lambda: yj.build_index(place / "rows", row_type, rows(count), part_rows=700),
        lambda: yj.append_index(place / "rows", rows(count, 1000)),
        lambda: yj.build_index(place / "other", row_type, rows(count), part_rows=700),
    ]


def test_a_full_disk(row_type: Any, disk: Path) -> None:
    yj.build_index(disk / "x.arrow", row_type, rows(100))
    yj.build_index(disk / "rows", row_type, rows(100), part_rows=50, key="id")
    before = content(disk)
    for write in writes(disk, row_type, 6000):
        refused("No space left on device", write)
        assert content(disk) == before
    left = os.statvfs(disk)
    (disk / "filler").write_bytes(bytes((left.f_bavail - 1) * left.f_bsize))
    refused("No space left on device", lambda: yj.build_keys(disk / "x.arrow", "name"))
    (disk / "filler").unlink()
    assert content(disk) == before
    assert yj.open_index(disk / "rows").rows([7, 99]).tolist() == [7, 99]
    assert len(yj.open_index(disk / "x.arrow")) == 100


def test_a_disk_that_is_mounted_read_only(row_type: Any, disk: Path) -> None:
    yj.build_index(disk / "x.arrow", row_type, rows(100))
    yj.build_index(disk / "rows", row_type, rows(100), part_rows=50, key="id")
    before = content(disk)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    for write in (*writes(disk, row_type, 10), lambda: yj.build_keys(disk / "x.arrow", "id")):
        refused("Read-only file system", write)
    assert content(disk) == before
    assert len(yj.open_index(disk / "x.arrow")) == len(yj.open_index(disk / "rows")) == 100


def test_a_system_that_says_so(row_type: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be mounted: whatever is opened to be written, is refused."""
    yj.build_index(tmp_path / "x.arrow", row_type, rows(100))
    yj.build_index(tmp_path / "rows", row_type, rows(100), part_rows=50, key="id")
    before = content(tmp_path)
    real_open, real_mkdir = os.open, os.mkdir

    def opened(path: Any, flags: int, *args: Any, **options: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        return real_open(path, flags, *args, **options)

    def made(path: Any, *args: Any) -> None:
        if not os.path.isdir(path):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        real_mkdir(path, *args)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", opened)
        patched.setattr(os, "mkdir", made)
        for write in (*writes(tmp_path, row_type, 10), lambda: yj.build_keys(tmp_path / "x.arrow", "id")):
            refused("Read-only file system", write)
    assert content(tmp_path) == before
    refused("No such file or directory", lambda: yj.build_index("/proc/x.arrow", row_type, rows(1)))


def test_foreign_files(row_type: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    table = pa.table({"message": pa.array([b"a"], pa.large_binary())})
    parquet.write_table(table, tmp_path / "parquet")
    with ipc.new_stream(tmp_path / "stream", table.schema) as stream:
        stream.write_table(table)
    with ipc.new_file(tmp_path / "other", table.schema) as file:
        file.write_table(table)
    foreign = {
        "parquet": ": it isn't a whole Arrow file: ",
        "stream": ": it isn't a whole Arrow file: ",
        "other": " isn't an index: it has no large_binary column 'message' of Arrow extension type ",
        "png": ": it isn't a whole Arrow file: ",
        "text": ": it isn't a whole Arrow file: ",
        "empty": " is empty: it isn't an index",
    }
    (tmp_path / "png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(100))
    (tmp_path / "text").write_bytes(b"id,name\n" * 100)
    (tmp_path / "empty").write_bytes(b"")
    for name, fault in foreign.items():
        os.replace(tmp_path / name, path)
        for opens in (yj.open_index, yj.open_index_unchecked, yj.open_packed):
            with pytest.raises(yj.IndexFileError) as caught:
                opens(path)
            assert str(caught.value).startswith(f"{path}{fault}")


def built(kind: str, place: Path, row_type: Any) -> tuple[Path, list[Path]]:
    """An index, and its files."""
    options: dict[str, Any] = {"columns": {"label": ["a", None] * 60}}
    path = place / ("rows" if kind == "directory" else "x.arrow")
    if kind == "directory":
        options |= {"part_rows": 70, "key": "id"}
    elif kind == "protobuf":
        options |= {"representation": "protobuf", "key": "name"}
    yj.build_index(path, row_type, rows(120), **options)
    return path, sorted(found for found in place.rglob("*") if found.is_file() and found.name != ".lock")


def read(index: yj.Index) -> list[Any]:
    keys = list(range(120)) if index.key == "id" else [f"{number:50}" for number in range(120)]
    return [
        [(view.id, view.name) for view in index],
        index.column("label").to_pylist(),
        index.columns("id")["id"].tolist(),
        [] if index.key is None else index.rows(keys).tolist(),
    ]


@pytest.mark.parametrize("kind", ["file", "protobuf", "directory"])
def test_bits_that_flip_and_ends_that_are_missing(kind: str, row_type: Any, tmp_path: Path) -> None:
    """What opens has all that was written; else the error names the index, whichever way it's opened."""
    path, files = built(kind, tmp_path, row_type)
    good = read(yj.open_index(path))
    rng = random.Random(SEED)
    met = 0
    for number in range(FLIPS):
        file = files[number % len(files)]
        whole = file.read_bytes()
        damaged = bytearray(whole)
        if number % 5 == 4:
            del damaged[rng.randrange(len(damaged)) :]
        else:
            for _ in range(rng.choice([1, 1, 2, 8])):
                damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        file.unlink()  # so that what is mapped stays as it is
        file.write_bytes(damaged)
        for opens in (lambda: yj.open_index(path), lambda: yj.open_index(path, verify="batch")):
            try:
                found = read(opens())
            except yj.IndexFileError as error:
                met += 1
                assert str(tmp_path) in str(error)
            else:
                # A table without which there is none: then the index has no keys, and says so.
                assert found[:3] == good[:3] and found[3] in (good[3], []), (number, file)
        try:
            yj.open_index_unchecked(path)  # which reads what describes the batches
        except yj.IndexFileError as error:
            assert str(tmp_path) in str(error)
        file.unlink()
        file.write_bytes(whole)
    assert met > FLIPS
    assert read(yj.open_index(path)) == good
