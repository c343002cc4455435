"""An index that is a directory of parts: building, growing, what its manifest holds, who may write."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pytest
import xxhash
from vectors import TESTS

import yaffjit as yj
from yaffjit.index import atomic, directory, opened
from yaffjit.index.metadata import BATCH_ROWS
from yaffjit.rows import Records

SCHEMA = TESTS / "schemas" / "columns.proto"


@pytest.fixture(scope="module")
def row_type() -> yj.MessageType:
    return yj.load_schema(SCHEMA)["columns.Row"]


@numba.njit
def sum_ids(recs: Any) -> Any:
    total = 0
    for view in recs:
        total += view.first
    return total


def rows(*numbers: int) -> list[dict[str, int]]:
    return [{"first": number} for number in numbers]


def firsts(path: Any, **options: Any) -> list[int]:
    return [view.first for view in yj.open_index(path, **options)]


def listed(path: Path) -> list[str]:
    return sorted(os.listdir(path))


def manifest(path: Path) -> dict[str, Any]:
    said: dict[str, Any] = json.loads((path / "manifest.json").read_text())
    return said


def refusal(use: Any, *args: Any, **options: Any) -> str:
    with pytest.raises(yj.IndexFileError) as caught:
        use(*args, **options)
    return str(caught.value)


@pytest.fixture
def path(row_type: yj.MessageType, tmp_path: Path) -> Path:
    """Two parts, of five and three rows."""
    path = tmp_path / "rows"
    yj.build_index(path, row_type, rows(*range(5)), columns={"label": list("abcde")})
    yj.append_index(path, rows(5, 6, 7), columns={"label": list("fgh")})
    return path


# Which form it has


def test_what_becomes_a_directory(row_type: yj.MessageType, tmp_path: Path) -> None:
    for name, options in (
        ("plain", {}),
        ("with.suffix/", {}),
        ("x.arrow", {"part_rows": 2}),
        ("y.arrow/", {}),
    ):
        built = yj.build_index(f"{tmp_path}/{name}", row_type, rows(1, 2, 3), **options)  # type: ignore[arg-type]
        assert (tmp_path / name).is_dir()
        assert built.path == f"{tmp_path}/{name}"
        assert built.parts == ("part-000000.arrow", "part-000001.arrow")[: len(built.parts)]
        assert len(built.parts) == 1 + ("part_rows" in options)
        assert built.nbytes == sum((tmp_path / name / part).stat().st_size for part in built.parts)
        assert firsts(tmp_path / name) == [1, 2, 3]
        yj.build_index(tmp_path / name, row_type, rows(4))  # it stays one
        assert firsts(tmp_path / name) == [4]
    (tmp_path / "empty").mkdir()
    yj.build_index(tmp_path / "empty", row_type, rows(5))
    assert firsts(tmp_path / "empty") == [5]


def test_what_becomes_a_file(row_type: yj.MessageType, tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    (tmp_path / "link").symlink_to("there.arrow")
    for name in ("x.arrow", "x.idx", "plain", "link"):
        built = yj.build_index(tmp_path / name, row_type, rows(1))
        assert (tmp_path / name).is_file()
        assert built.parts == ()
    assert (tmp_path / "link").is_symlink()
    path = tmp_path / "plain"
    assert refusal(yj.build_index, path, row_type, rows(1), part_rows=5) == (
        f"{path} can't be written: it's a file, but part_rows is given, which is for folders"
    )
    assert refusal(yj.build_index, f"{path}/", row_type, rows(1)) == (
        f"{path}/ can't be written: Not a directory"
    )


@pytest.mark.parametrize(
    ("part_rows", "error", "sentence"),
    [
        (0, ValueError, "part_rows must be at least 1, not 0"),
        (-3, ValueError, "part_rows must be at least 1, not -3"),
        (1.5, TypeError, "part_rows must be an int, not float"),
        (True, TypeError, "part_rows must be an int, not bool"),
    ],
)
def test_part_rows_that_make_no_sense(
    row_type: yj.MessageType, tmp_path: Path, part_rows: Any, error: Any, sentence: str
) -> None:
    for use in (
        lambda: yj.build_index(tmp_path / "x", row_type, rows(1), part_rows=part_rows),
        lambda: yj.append_index(tmp_path / "x", rows(1), part_rows=part_rows),
    ):
        with pytest.raises(error) as caught:
            use()
        assert str(caught.value) == sentence
    assert listed(tmp_path) == []


# What is in it


def test_an_index_of_parts_behaves_as_records(path: Path) -> None:
    for index in (
        yj.open_index(path),
        yj.open_index(path, verify="batch"),
        yj.open_index_unchecked(path),
    ):
        assert len(index) == 8
        assert [view.first for view in index] == list(range(8))
        assert [view.first for view in index[3:7]] == [3, 4, 5, 6]
        assert [view.first for view in index[::-3]] == [7, 4, 1]
        assert index[-1].first == 7
        assert index.columns("first")["first"].tolist() == list(range(8))
        assert index[4:6].columns("first")["first"].tolist() == [4, 5]
        assert sum_ids(index) == 28
        assert sum_ids(index[4:7]) == 15
        assert sum_ids(index.take([7, 0, 5])) == 12
        assert index.column_names == ["label"]
        assert isinstance(index.column("label"), pa.ChunkedArray)
        assert index.column("label").to_pylist() == list("abcdefgh")
        index.verify()
        assert index.path == str(path)
        sizes = [(path / name).stat().st_size for name in ("part-000000.arrow", "part-000001.arrow")]
        assert index.parts == (
            (f"{path}/part-000000.arrow", 0, 5, sizes[0]),
            (f"{path}/part-000001.arrow", 5, 3, sizes[1]),
        )
        assert repr(index) == f"<Index of columns.Row: 8 rows, {index.nbytes:,} bytes, {str(path)!r}>"


def test_the_manifest(path: Path, row_type: yj.MessageType) -> None:
    said = manifest(path)
    checksum = said.pop("checksum")
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    assert checksum == xxhash.xxh3_64(text.encode()).hexdigest()
    parts = said.pop("parts")
    assert said == {
        "format": "yaffjit.index",
        "format_version": 1,
        "message": "columns.Row",
        "fingerprint": row_type.plan.fingerprint,
        "generation": 2,
        "rows": 8,
    }
    assert [(part["name"], part["rows"]) for part in parts] == [
        ("part-000000.arrow", 5),
        ("part-000001.arrow", 3),
    ]
    assert [part["nbytes"] for part in parts] == [(path / part["name"]).stat().st_size for part in parts]
    assert listed(path) == [".lock", "manifest.json", "part-000000.arrow", "part-000001.arrow"]


def test_a_part_is_an_index_of_its_own(path: Path) -> None:
    assert firsts(path / "part-000001.arrow") == [5, 6, 7]


@pytest.mark.parametrize("part_rows", [1, 7, 64, 1000])
def test_many_parts(row_type: yj.MessageType, tmp_path: Path, part_rows: int) -> None:
    """Few rows a part make records scattered."""
    count = 64
    days = np.arange(count, dtype=np.int16)
    built = yj.build_index(
        tmp_path / "x", row_type, iter(rows(*range(count))), columns={"day": days}, part_rows=part_rows
    )
    assert built.rows == count
    assert len(built.parts) == -(-count // part_rows)
    for verify in ("open", "batch"):
        index = yj.open_index(tmp_path / "x", verify=verify)
        assert [view.first for view in index] == list(range(count))
        assert sum_ids(index) == sum(range(count))
        assert index.columns("first")["first"].tolist() == list(range(count))
        assert index.column("day").to_pylist() == days.tolist()


def test_batches_within_parts(row_type: yj.MessageType, tmp_path: Path) -> None:
    count = BATCH_ROWS + 10
    payload = row_type.message_class(first=3).SerializeToString()
    for _ in range(2):
        if not (tmp_path / "x").exists():
            yj.build_index(tmp_path / "x", row_type, (payload for _ in range(count)), part_rows=count - 3)
        else:
            yj.append_index(tmp_path / "x", (payload for _ in range(count)))
    index = yj.open_index(tmp_path / "x")
    assert [part.rows for part in index.parts] == [count - 3, 3, count]
    assert sum_ids(index) == 6 * count
    assert index.columns("first")["first"].sum() == 6 * count
    assert index[2 * count - 1].first == 3


def test_no_messages(row_type: yj.MessageType, tmp_path: Path, path: Path) -> None:
    assert yj.build_index(tmp_path / "none", row_type, []).rows == 0
    index = yj.open_index(tmp_path / "none")
    assert (len(index), list(index), sum_ids(index)) == (0, [], 0)
    assert index.columns("first")["first"].tolist() == []
    yj.append_index(tmp_path / "none", rows(1, 2))
    assert firsts(tmp_path / "none") == [1, 2]
    before = manifest(path)
    added = yj.append_index(path, [], columns={"label": []})
    assert (added.rows, added.parts, added.nbytes) == (0, (), 0)
    assert manifest(path) == before


# Growing


def test_readers_keep_what_they_opened(path: Path, row_type: yj.MessageType) -> None:
    old, lazy = yj.open_index(path), yj.open_index(path, verify="batch")
    yj.append_index(path, rows(8), columns={"label": ["i"]})
    assert firsts(path) == list(range(9))
    yj.build_index(path, row_type, rows(100))
    assert listed(path) == [".lock", "manifest.json", "part-000003.arrow"]
    assert firsts(path) == [100]
    for index in (old, lazy):
        assert [view.first for view in index] == list(range(8))
        assert index.column("label").to_pylist() == list("abcdefgh")
        index.verify()


def test_what_is_added_is_told(path: Path, row_type: yj.MessageType) -> None:
    unknown = row_type.message_class(first=8).SerializeToString() + b"\xf8\x06\x01"
    added = yj.append_index(
        path, iter([unknown, *rows(9, 10)]), columns={"label": ["x", "y", None]}, part_rows=2
    )
    assert (added.path, added.rows) == (str(path), 3)
    assert added.unknown_fields == {"columns.Row #111": 1}
    assert added.parts == ("part-000002.arrow", "part-000003.arrow")
    assert added.nbytes == sum((path / name).stat().st_size for name in added.parts)
    assert manifest(path)["generation"] == 3
    assert yj.open_index(path).column("label").to_pylist()[-3:] == ["x", "y", None]


@pytest.mark.parametrize("form", ["message", "bytes", "view", "records"])
def test_messages_of_many_forms(path: Path, row_type: yj.MessageType, form: str) -> None:
    message = row_type.message_class(first=8)
    view = row_type.view(row_type.encode(message))
    messages: Any = {
        "message": [message],
        "bytes": [message.SerializeToString()],
        "view": [view],
        "records": yj.records(row_type, [row_type.encode(message)]),
    }[form]
    yj.append_index(path, messages, columns={"label": ["i"]})
    assert firsts(path) == list(range(9))


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (None, "column 'label' is missing: {path} has the columns ['label']"),
        ({}, "column 'label' is missing: {path} has the columns ['label']"),
        ({"label": ["x"], "day": [1]}, "{path} has no column 'day'; its columns are ['label']"),
        ({"lable": ["x"]}, "{path} has no column 'lable' (did you mean 'label'?); its columns are ['label']"),
        ({"label": pa.array([1])}, "column 'label' is int64, but in {path} it is string"),
        ({"label": np.array([1.5])}, "column 'label' is double, but in {path} it is string"),
        ({"label": [7]}, "column 'label' can't be stored as string: Expected bytes, got a 'int' object"),
        ({"label": ["x", "y"]}, "column 'label' has 2 values for 1 messages"),
        ({"label": []}, "column 'label' has 0 values for 1 messages"),
    ],
)
def test_columns_must_agree(path: Path, columns: Any, sentence: str) -> None:
    before = listed(path), manifest(path)
    with pytest.raises(ValueError) as caught:
        yj.append_index(path, rows(8), columns=columns)
    assert str(caught.value) == sentence.format(path=path)
    assert (listed(path), manifest(path)) == before


def test_columns_are_put_in_order_and_take_the_type(row_type: yj.MessageType, tmp_path: Path) -> None:
    path = tmp_path / "x"
    yj.build_index(path, row_type, rows(1), columns={"day": np.int16([1]), "share": np.float32([0.5])})
    yj.append_index(path, rows(2), columns={"share": [1], "day": [None]})
    index = yj.open_index(path)
    assert index.column("day").type == pa.int16()
    assert index.column("day").to_pylist() == [1, None]
    assert index.column("share").to_pylist() == [0.5, 1.0]
    with pytest.raises(ValueError, match=r"^column 'day' can't be stored as int16: .*70000"):
        yj.append_index(path, rows(2), columns={"share": [1], "day": [70000]})


def other_version(tmp_path: Path, fields: str) -> yj.MessageType:
    source = tmp_path / f"{len(fields)}.proto"
    source.write_text(f'syntax = "proto3"; package x; message M {{ {fields} }}')
    return yj.load_schema(source)["x.M"]


def test_another_schema_is_refused(tmp_path: Path, row_type: yj.MessageType) -> None:
    old = other_version(tmp_path, "int32 a = 1;")
    new = other_version(tmp_path, "int32 a = 1; int32 b = 2;")
    path = tmp_path / "x"
    yj.build_index(path, old, [{"a": 1}])
    same = yj.load_schema(tmp_path / "12.proto")["x.M"]
    yj.append_index(path, [{"a": 2}], message_type=same)
    yj.append_index(path, [same.message_class(a=3)])
    assert refusal(yj.append_index, path, [{"a": 2}], message_type=new) == (
        f"{path} holds messages of x.M with fingerprint {old.plan.fingerprint}, but those to add are of x.M "
        f"with {new.plan.fingerprint}: an index has messages of one schema"
    )
    assert refusal(yj.append_index, path, [], message_type=row_type) == (
        f"{path} holds messages of x.M with fingerprint {old.plan.fingerprint}, but those to add are of "
        f"columns.Row with {row_type.plan.fingerprint}: an index has messages of one schema"
    )
    assert [view.a for view in yj.open_index(path)] == [1, 2, 3]
    # It's read by a newer version all the same.
    assert [(view.a, view.b) for view in yj.open_index(path, new)] == [(1, 0), (2, 0), (3, 0)]


def test_bad_messages_leave_it_as_it_was(path: Path) -> None:
    before = listed(path), manifest(path)
    with pytest.raises(yj.EncodeError, match=r"^row 2: .*\bfirst\b"):
        yj.append_index(path, [{}, {}, {"first": "x"}], columns={"label": list("abc")}, part_rows=1)
    assert (listed(path), manifest(path)) == before
    assert firsts(path) == list(range(8))


def test_a_single_file_does_not_grow(row_type: yj.MessageType, tmp_path: Path) -> None:
    file = tmp_path / "my rows.arrow"
    yj.build_index(file, row_type, rows(1, 2))
    sentence = refusal(yj.append_index, file, rows(3))
    command = f"yaffjit append '{tmp_path}/my rows' --adopt '{tmp_path}/my rows.arrow'"
    call = f"yj.adopt_index('{tmp_path}/my rows', '{tmp_path}/my rows.arrow')"
    assert sentence == (
        f"{file} is a single file, which doesn't grow: make it the first part of a directory by `{command}` "
        f"or {call}"
    )
    yj.adopt_index(tmp_path / "my rows", file)
    yj.append_index(tmp_path / "my rows", rows(3))
    assert firsts(tmp_path / "my rows") == [1, 2, 3]
    assert not file.exists()
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    assert f"yaffjit append {plain}.parts --adopt {plain}`" in refusal(yj.append_index, plain, rows(3))


@pytest.mark.parametrize("linked", [True, False])
def test_adopting(
    row_type: yj.MessageType, tmp_path: Path, path: Path, linked: bool, monkeypatch: Any
) -> None:
    if not linked:  # as on another file system

        def refused(*args: Any, real: Any = os.link, **options: Any) -> None:
            if not options:
                raise OSError("not here")
            real(*args, **options)

        monkeypatch.setattr(os, "link", refused)
    file = tmp_path / "more.arrow"
    yj.build_index(file, row_type, rows(8, 9), columns={"label": ["i", "j"]})
    inode = file.stat().st_ino
    yj.adopt_index(path, file)
    assert not file.exists()
    assert firsts(path) == list(range(10))
    assert ((path / "part-000002.arrow").stat().st_ino == inode) == linked
    assert listed(path)[-1] == "part-000002.arrow"


def test_what_is_not_adopted(row_type: yj.MessageType, tmp_path: Path, path: Path) -> None:
    before = listed(path), manifest(path)
    file = tmp_path / "more.arrow"
    yj.build_index(file, row_type, rows(8))
    assert refusal(yj.adopt_index, path, file) == (
        f"{file} has the columns none beside its messages, but {path}/part-000000.arrow has label (string)"
    )
    other = other_version(tmp_path, "int32 a = 1;")
    yj.build_index(file, other, [{}])
    assert refusal(yj.adopt_index, path, file) == (
        f"{path} holds messages of columns.Row with fingerprint {row_type.plan.fingerprint}, but {file} has "
        f"x.M with {other.plan.fingerprint}: an index has messages of one schema"
    )
    assert refusal(yj.adopt_index, path, path / "part-000001.arrow") == (
        f"{path}/part-000001.arrow is a part of {path} already"
    )
    assert refusal(yj.adopt_index, path, tmp_path / "none") == (
        f"{tmp_path}/none can't be opened: No such file or directory"
    )
    assert refusal(yj.adopt_index, file, file) == f"{file} can't be written: it's a file, not a folder"
    (tmp_path / "junk").write_bytes(b"junk" * 100)
    with pytest.raises(yj.IndexFileError, match=r"junk: it isn't a whole Arrow file: "):
        yj.adopt_index(tmp_path / "new", tmp_path / "junk")
    assert not (tmp_path / "new").exists()
    assert file.exists()
    assert (listed(path), manifest(path)) == before


# One writer at a time


HELD = """
import sys
import yaffjit as yj
message_type = yj.load_schema(sys.argv[1])["columns.Row"]
def messages():
    yield {"first": 100}
    print("now", flush=True)
    sys.stdin.readline()
yj.build_index(sys.argv[2], message_type, messages())
"""


def test_two_processes_do_not_mix(path: Path, row_type: yj.MessageType) -> None:
    environment = {**os.environ, "PYTHONPATH": str(TESTS.parent)}
    process = subprocess.Popen(
        [sys.executable, "-c", HELD, str(SCHEMA), str(path)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "now\n"
        sentence = f"{path} can't be written: process {process.pid} is writing to it"
        assert refusal(yj.build_index, path, row_type, rows(1)) == sentence
        assert refusal(yj.append_index, path, rows(8), columns={"label": ["x"]}) == sentence
        assert firsts(path) == list(range(8))
        process.communicate("go on\n")
    assert process.returncode == 0
    assert firsts(path) == [100]
    yj.append_index(path, rows(101))
    assert firsts(path) == [100, 101]


def test_two_threads_do_not_mix(path: Path) -> None:
    sentences: list[str] = []

    def messages() -> Any:
        yield {"first": 8}
        other = threading.Thread(
            target=lambda: sentences.append(refusal(yj.append_index, path, rows(9), columns={"label": ["x"]}))
        )
        other.start()
        other.join()

    yj.append_index(path, messages(), columns={"label": ["i"]})
    assert sentences == [f"{path} can't be written: process {os.getpid()} is writing to it"]
    assert firsts(path) == list(range(9))


def test_a_lock_that_is_removed_meanwhile(path: Path, monkeypatch: Any) -> None:
    """As a failed first build does; the next one must not hold a lock that nobody else sees."""
    real = directory.fcntl.flock
    removed = []

    def flock(fd: int, operation: int) -> None:
        real(fd, operation)
        if not removed and operation & directory.fcntl.LOCK_EX:
            removed.append((path / ".lock").stat().st_ino)
            (path / ".lock").unlink()

    monkeypatch.setattr(directory.fcntl, "flock", flock)
    yj.append_index(path, rows(8), columns={"label": ["i"]})
    assert removed
    assert (path / ".lock").exists()


def test_readers_while_others_write(path: Path, row_type: yj.MessageType) -> None:
    """A directory that is built anew again and again is opened whole, old or new."""
    stop = threading.Event()
    found: list[Any] = []

    def read() -> None:
        while not stop.is_set():
            try:
                found.append([view.first for view in yj.open_index(path)])
            except BaseException as error:
                found.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for round_ in range(12):
            yj.build_index(path, row_type, rows(round_))
            yj.append_index(path, rows(round_, round_))
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    seen = {tuple(numbers) if isinstance(numbers, list) else numbers for numbers in found}
    assert seen <= {tuple(range(8)), *((r,) * n for r in range(12) for n in (1, 3))}
    assert len(seen) > 1


# What is left behind


def test_what_a_killed_writer_left_is_removed(path: Path) -> None:
    (path / "part-000002.arrow").write_bytes(b"named, but not in the manifest")
    (path / ".part-000003.arrow.01234567.tmp").write_bytes(b"not whole")
    (path / ".manifest.json.89abcdef.tmp").write_bytes(b"not whole")
    (path / ".lock").write_text("process 1\npart-000002.arrow\npart-000001.arrow\n../x\npart-000009.arrow\n")
    mine = {".part-000003.arrow.tmp", "part-000007.arrow", "notes.txt", ".part-000003.arrow.0123456g.tmp"}
    for name in mine:
        (path / name).write_bytes(b"mine")
    assert firsts(path) == list(range(8))
    yj.append_index(path, rows(8), columns={"label": ["i"]})
    assert set(listed(path)) == mine | {
        ".lock",
        "manifest.json",
        "part-000000.arrow",
        "part-000001.arrow",
        "part-000008.arrow",
    }
    assert firsts(path) == list(range(9))


def test_what_somebody_is_writing_is_not_removed(path: Path, monkeypatch: Any) -> None:
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    with atomic.replaced_file(str(path / "part-000005.arrow")) as file:
        file.write(b"mine")
        file.flush()
        yj.append_index(path, rows(8), columns={"label": ["i"]})
        assert len([name for name in listed(path) if name.endswith(".tmp")]) == 1
    assert (path / "part-000005.arrow").read_bytes() == b"mine"


def test_an_error_after_the_manifest_is_there(path: Path, monkeypatch: Any) -> None:
    """Then the new parts are in use."""
    real = atomic.sync_folder
    calls = []

    def failing(folder: str) -> None:
        real(folder)
        calls.append(folder)
        if len(calls) == 2:  # after the part comes the manifest
            raise OSError("no more")

    monkeypatch.setattr(atomic, "sync_folder", failing)
    assert refusal(yj.append_index, path, rows(8), columns={"label": ["i"]}) == (
        f"{path}/manifest.json can't be written: no more"
    )
    assert firsts(path) == list(range(9))


def test_a_full_disk(path: Path, row_type: yj.MessageType) -> None:
    before = listed(path), manifest(path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Stands in for a full disk: writing beyond the limit fails in the same way.
    for nbytes, name, fault in (
        (100_000, "/part-000002.arrow", "File too large"),
        (10, "", "No space left on device"),  # the list of what is written doesn't fit
    ):
        resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, limits[1]))
        try:
            sentence = refusal(
                yj.append_index, path, [{"name": "x" * 1000}] * 1000, columns={"label": ["x"] * 1000}
            )
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert sentence == f"{path}{name} can't be written: {fault}"
        assert (listed(path), manifest(path)) == before
    yj.append_index(path, rows(8), columns={"label": ["i"]})
    assert firsts(path) == list(range(9))


def test_a_folder_that_is_not_ours(row_type: yj.MessageType) -> None:
    """Read by somebody who may not write; not in pytest's own folder, which is closed to others."""
    with tempfile.TemporaryDirectory(prefix="yaffjit-test-") as name:
        os.chmod(name, 0o755)
        path = Path(name) / "rows"
        yj.build_index(path, row_type, rows(1, 2))
        yj.build_index(Path(name) / "x.arrow", row_type, rows(3))
        mode = path.stat().st_mode
        path.chmod(0o555)
        (path / ".lock").chmod(0o444)
        before = listed(path)
        child = os.fork()
        if child == 0:
            try:
                if os.getuid() == 0:
                    os.setuid(65534)
                assert firsts(path) == [1, 2]
                denied = f"{path} can't be written: Permission denied"
                assert refusal(yj.append_index, path, rows(3)) == denied
                assert refusal(yj.build_index, path, row_type, rows(3)) == denied
                for target in (f"{name}/new", f"{name}/new.arrow"):
                    if os.getuid() == 65534:
                        fault = f"{target} can't be written: Permission denied"
                        assert refusal(yj.build_index, target, row_type, rows(3)) == fault
                os._exit(0)
            except BaseException as error:
                os.write(2, f"{error!r}\n".encode())
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert listed(path) == before
        path.chmod(mode)


def test_many_processes_read_at_once(path: Path) -> None:
    """By fork after use, and by spawn; each opens what was pickled, though the directory grows meanwhile."""
    index = yj.open_index(path)
    assert sum_ids(index) == 28
    for method, count in (("fork", 6), ("spawn", 2)):
        with multiprocessing.get_context(method).Pool(count) as pool:
            tasks = [
                pool.apply_async(read_all, (part,)) for part in (index, index[2:], index.take([7, 1])) * 4
            ]
            yj.append_index(path, rows(100), columns={"label": ["x"]})
            assert [task.get(120) for task in tasks] == [list(range(8)), list(range(2, 8)), [7, 1]] * 4
    assert len(yj.open_index(path)) == 10


def test_what_was_replaced_is_not_unpickled(path: Path, row_type: yj.MessageType) -> None:
    index = yj.open_index(path)
    pickles = [pickle.dumps(index), pickle.dumps(index[2:4])]
    yj.append_index(path, rows(8), columns={"label": ["x"]})
    assert [len(pickle.loads(data)) for data in pickles] == [8, 2]
    yj.build_index(path, row_type, rows(*range(8)))
    for data in pickles:
        sentence = refusal(pickle.loads, data)
        assert sentence.startswith(
            f"{path} was built anew since the pickle was made: its first 2 parts had the "
        )


def read_all(records: Any) -> list[int]:
    return [view.first for view in records]


def test_a_first_build_that_fails_leaves_nothing(row_type: yj.MessageType, tmp_path: Path) -> None:
    with pytest.raises(yj.EncodeError):
        yj.build_index(tmp_path / "x", row_type, [{}, {"first": "x"}], part_rows=1)
    assert listed(tmp_path) == []
    (tmp_path / "x").mkdir()
    with pytest.raises(yj.EncodeError):
        yj.build_index(tmp_path / "x", row_type, [{}, {"first": "x"}], part_rows=1)
    assert listed(tmp_path / "x") == [".lock"]
    yj.build_index(tmp_path / "x", row_type, rows(1))
    assert firsts(tmp_path / "x") == [1]


def test_where_no_index_is_nothing_is_left(tmp_path: Path) -> None:
    assert refusal(yj.append_index, tmp_path, rows(1)) == (
        f"{tmp_path} is a folder without manifest.json, so it isn't an index"
    )
    assert listed(tmp_path) == []
    assert (
        refusal(yj.append_index, tmp_path / "x", rows(1))
        == f"{tmp_path}/x can't be opened: No such file or directory"
    )


def test_parts_that_are_replaced_while_they_are_opened(
    path: Path, row_type: yj.MessageType, monkeypatch: Any
) -> None:
    real = opened.open_part
    calls = []

    def slow(*args: Any) -> Any:
        calls.append(args)
        if len(calls) == 2:
            yj.build_index(path, row_type, rows(7))
        return real(*args)

    monkeypatch.setattr(opened, "open_part", slow)
    assert firsts(path) == [7]
    assert len(calls) == 3


def test_records_of_an_index_are_records(path: Path) -> None:
    index = yj.open_index(path)
    assert isinstance(index, Records)
    both = yj.concat([index[:2], index[6:]])
    assert [view.first for view in both] == [0, 1, 6, 7]
