"""Directories whose parts or manifest aren't what they were: errors name the file and both numbers."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pytest
import xxhash
from vectors import TESTS

import yaffjit as yj
from yaffjit.index import checks, opened
from yaffjit.index.metadata import BATCH_ROWS

SCHEMA = TESTS / "schemas" / "columns.proto"
BATCHES = 4


@pytest.fixture(scope="module")
def row_type() -> yj.MessageType:
    return yj.load_schema(SCHEMA)["columns.Row"]


@pytest.fixture
def path(row_type: yj.MessageType, tmp_path: Path) -> Path:
    """Two parts, of five and three rows."""
    path = tmp_path / "rows"
    yj.build_index(path, row_type, [{"first": row} for row in range(8)], part_rows=5)
    return path


@numba.njit
def sum_ids(recs: Any) -> Any:
    total = 0
    for view in recs:
        total += view.first
    return total


def refusal(path: Path, opens: Callable[..., Any] = yj.open_index_unchecked) -> str:
    """What both ways to open say, without the path."""
    sentences = set()
    for open_it in {opens, yj.open_index}:
        with pytest.raises(yj.IndexFileError) as caught:
            open_it(path)
        sentences.add(str(caught.value))
    assert len(sentences) == 1
    sentence = sentences.pop()
    assert sentence.startswith(f"{path}/")
    return sentence.removeprefix(f"{path}/")


def rewrite(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    said = json.loads((path / "manifest.json").read_text())
    change(said)
    said.pop("checksum", None)
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    said["checksum"] = xxhash.xxh3_64(text.encode()).hexdigest()
    (path / "manifest.json").write_text(json.dumps(said))


# Parts


def test_a_missing_part(path: Path) -> None:
    nbytes = (path / "part-000001.arrow").stat().st_size
    (path / "part-000001.arrow").unlink()
    assert refusal(path) == (
        f"part-000001.arrow is missing: its manifest says that it has 3 rows in {nbytes:,} bytes"
    )


def test_a_truncated_part(path: Path) -> None:
    nbytes = (path / "part-000001.arrow").stat().st_size
    for left in (0, 1000, nbytes - 1, nbytes + 1):
        os.truncate(path / "part-000001.arrow", left)
        assert refusal(path) == f"part-000001.arrow has {left:,} bytes, but its manifest says {nbytes:,}"


def test_a_foreign_file_in_place_of_a_part(path: Path) -> None:
    nbytes = (path / "part-000001.arrow").stat().st_size
    (path / "part-000001.arrow").write_bytes(b"x" * nbytes)
    assert refusal(path).startswith("part-000001.arrow: it isn't a whole Arrow file: ")


def replace_part(path: Path, file: Path) -> None:
    """Another index as the second part, its size believed."""
    shutil.copy(file, path / "part-000001.arrow")
    rewrite(path, lambda said: said["parts"][1].update(nbytes=file.stat().st_size))


def test_another_index_in_place_of_a_part(path: Path, row_type: yj.MessageType, tmp_path: Path) -> None:
    yj.build_index(tmp_path / "x.arrow", row_type, [{"first": row} for row in (5, 6, 8)])
    replace_part(path, tmp_path / "x.arrow")
    said = json.loads((path / "manifest.json").read_text())["parts"][1]["checksum"]
    sentence = refusal(path)
    assert sentence.startswith("part-000001.arrow: the checksum of its headers is ")
    assert sentence.endswith(f", but its manifest says {said}: it isn't the file that was written")
    yj.build_index(tmp_path / "x.arrow", row_type, [{}] * 4)
    replace_part(path, tmp_path / "x.arrow")
    assert refusal(path) == "part-000001.arrow has 4 rows, but its manifest says 3"


def test_a_part_of_another_schema(path: Path, row_type: yj.MessageType, tmp_path: Path) -> None:
    other = row_type.schema["columns.Kinds"]
    yj.build_index(tmp_path / "x.arrow", other, [{}] * 3)
    replace_part(path, tmp_path / "x.arrow")
    assert refusal(path) == (
        f"part-000001.arrow holds messages of columns.Kinds with fingerprint {other.plan.fingerprint}, "
        f"but its manifest says columns.Row with {row_type.plan.fingerprint}"
    )


def test_a_part_with_other_columns(path: Path, row_type: yj.MessageType, tmp_path: Path) -> None:
    file = tmp_path / "x.arrow"
    yj.build_index(file, row_type, [{}] * 3, columns={"day": [1, 2, 3], "label": list("abc")})
    replace_part(path, file)
    part = opened.Part(str(file))
    rewrite(path, lambda said: said["parts"][1].update(checksum=part.headers_checksum()))
    assert refusal(path) == (
        f"part-000001.arrow has the columns day (int64), label (string) beside its messages, but "
        f"{path}/part-000000.arrow has none"
    )


def test_a_part_that_is_a_link(path: Path, tmp_path: Path) -> None:
    (path / "part-000001.arrow").rename(tmp_path / "elsewhere.arrow")
    (path / "part-000001.arrow").symlink_to(tmp_path / "elsewhere.arrow")
    assert refusal(path) == (
        "part-000001.arrow can't be opened: it's a symbolic link, which could lead anywhere"
    )
    os.unlink(path / "part-000001.arrow")
    os.mkfifo(path / "part-000001.arrow")
    assert refusal(path) == "part-000001.arrow can't be opened: it's a pipe, not a regular file"


def test_flipped_bits(path: Path) -> None:
    """Whatever opens has the content that was written."""
    for name in ("part-000001.arrow", "manifest.json"):
        good = (path / name).read_bytes()
        opened_again = 0
        for position in range(0, len(good), 97 if name.endswith("arrow") else 7):
            damaged = bytearray(good)
            damaged[position] ^= 1 << position % 8
            (path / name).write_bytes(damaged)
            try:
                index = yj.open_index(path)
            except yj.IndexFileError as error:
                assert str(path) in str(error)
                continue
            opened_again += 1
            assert [view.first for view in index] == list(range(8)), position
        (path / name).write_bytes(good)
        assert opened_again < len(good) // 60
    assert len(yj.open_index(path)) == 8


# The manifest


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", " is damaged: Expecting value: line 1 column 1 (char 0)"),
        ("{", " is damaged: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("\xff", " is damaged: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
        ("[]", " isn't the manifest of an index: it doesn't say 'yaffjit.index'"),
        ('{"format": "else"}', " isn't the manifest of an index: it doesn't say 'yaffjit.index'"),
        ("[" * 100_000, " is damaged: maximum recursion depth exceeded"),
    ],
)
def test_a_manifest_that_is_none(path: Path, text: str, sentence: str) -> None:
    (path / "manifest.json").write_bytes(text.encode("latin-1"))
    assert refusal(path).startswith(f"manifest.json{sentence}")
    with pytest.raises(yj.IndexFileError, match=r"manifest\.json"):
        yj.append_index(path, [{}])
    assert sorted(os.listdir(path))[1:] == ["manifest.json", "part-000000.arrow", "part-000001.arrow"]


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "newer": (
        lambda said: said.update(format_version=2),
        " has format version 2, but this yaffjit reads up to 1: a newer yaffjit wrote it",
    ),
    "version": (
        lambda said: said.update(format_version="1"),
        " is damaged: the format version is '1'",
    ),
    "bool version": (
        lambda said: said.update(format_version=True),
        " is damaged: the format version is True",
    ),
    "float version": (
        lambda said: said.update(format_version=1.0),
        " is damaged: the format version is 1.0",
    ),
    "no version": (lambda said: said.pop("format_version"), " is damaged: it has no 'format_version'"),
    "no parts": (lambda said: said.pop("parts"), " is damaged: it has no 'parts'"),
    "empty": (lambda said: said.update(parts=[]), " is damaged: it names no part"),
    "parts": (lambda said: said.update(parts=7), " is damaged: 'int' object is not iterable"),
    "part": (lambda said: said.update(parts=[7]), " is damaged: a part is described by an object, not by 7"),
    "twice": (
        lambda said: said.update(parts=said["parts"] + said["parts"][:1]),
        " is damaged: it names part-000000.arrow twice",
    ),
    "sum": (
        lambda said: said.update(rows=9),
        " is damaged: its parts have 8 rows together, but it says 9",
    ),
    "bool sum": (
        lambda said: (said.update(rows=True), said.update(parts=[{**said["parts"][0], "rows": 1}])),
        " is damaged: its parts have 1 rows together, but it says True",
    ),
    "rows": (
        lambda said: (said.update(rows=9), said["parts"][0].update(rows=6)),
        "part-000000.arrow has 5 rows, but its manifest says 6",
    ),
    "negative": (
        lambda said: said["parts"][0].update(rows=-1),
        " is damaged: rows is a count, not -1",
    ),
    "huge": (
        lambda said: said["parts"][0].update(nbytes=1 << 70),
        f" is damaged: nbytes is a count, not {1 << 70}",
    ),
    "bool": (
        lambda said: said.update(generation=True),
        " is damaged: generation is a count, not True",
    ),
    "checksum": (
        lambda said: said["parts"][0].update(checksum="../../x"),
        " is damaged: part-000000.arrow has the checksum '../../x', which isn't 16 hex digits",
    ),
    "message": (lambda said: said.update(message=7), " is damaged: message is text, not 7"),
    **{
        name: (
            lambda said, name=name: said["parts"][0].update(name=name),
            f" is damaged: a part is called {name!r}, but part-000000.arrow is the form of their names",
        )
        for name in (
            "../x",
            "/etc/passwd",
            "../rows/part-000000.arrow",
            "part-000000.arrow\n",
            "part-000000.arrow\0",
            "part-" + "\u0660" * 6 + ".arrow",
            "x.arrow",
            "",
        )
    },
}


@pytest.mark.parametrize("change", list(CHANGES))
def test_a_manifest_that_makes_no_sense(path: Path, change: str) -> None:
    make, sentence = CHANGES[change]
    rewrite(path, make)
    assert refusal(path) == (sentence if sentence.startswith("part-") else f"manifest.json{sentence}")


EDITS: dict[str, Callable[[dict[str, Any]], object]] = {
    "generation": lambda said: said.update(generation=7),
    "more": lambda said: said.update(day="2024-05-01"),
    "order": lambda said: said["parts"].reverse(),
    "a part less": lambda said: said.update(parts=said["parts"][:1], rows=5),
    "checksum": lambda said: said.update(checksum="0" * 16),
    "no text": lambda said: said.update(checksum=7),
}


@pytest.mark.parametrize("edit", list(EDITS))
def test_a_manifest_that_was_edited(path: Path, edit: str) -> None:
    said = json.loads((path / "manifest.json").read_text())
    EDITS[edit](said)
    (path / "manifest.json").write_text(json.dumps(said))
    with pytest.raises(yj.IndexFileError) as caught:
        yj.open_index(path)
    written = said.pop("checksum")
    found = xxhash.xxh3_64(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    sentence = f"{path}/manifest.json is damaged: its checksum is {found}, but it says {written!r}"
    assert str(caught.value) == sentence
    with pytest.raises(yj.IndexFileError) as caught:
        yj.append_index(path, [{}])
    assert str(caught.value) == sentence
    assert len(yj.open_index_unchecked(path)) == said["rows"]


def test_a_manifest_of_an_older_version_has_no_checksum(path: Path) -> None:
    said = json.loads((path / "manifest.json").read_text())
    del said["checksum"]
    (path / "manifest.json").write_text(json.dumps(said, indent=3))
    assert len(yj.open_index(path)) == 8
    yj.append_index(path, [{}])
    assert len(yj.open_index(path)) == 9
    assert "checksum" in json.loads((path / "manifest.json").read_text())


def test_a_manifest_of_another_schema(path: Path, row_type: yj.MessageType) -> None:
    rewrite(path, lambda said: said.update(fingerprint="f" * 32))
    assert refusal(path) == (
        f"part-000000.arrow holds messages of columns.Row with fingerprint {row_type.plan.fingerprint}, "
        f"but its manifest says columns.Row with {'f' * 32}"
    )


def test_a_manifest_that_is_a_link(path: Path, tmp_path: Path) -> None:
    (path / "manifest.json").rename(tmp_path / "manifest.json")
    (path / "manifest.json").symlink_to(tmp_path / "manifest.json")
    assert refusal(path) == "manifest.json can't be opened: it's a symbolic link, which could lead anywhere"


def test_a_manifest_that_is_too_long(path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("yaffjit.index.manifest.MAX_NBYTES", 100)
    assert refusal(path) == "manifest.json has over 100 bytes, which no manifest needs"


# While it's open


def test_a_part_that_is_cut_while_it_is_open(path: Path, row_type: yj.MessageType, tmp_path: Path) -> None:
    yj.append_index(path, pa.array([row_type.message_class(first=9).SerializeToString(), None]))
    index = yj.open_index(path)
    part = index[1:3]
    nbytes = (path / "part-000001.arrow").stat().st_size
    os.truncate(path / "part-000001.arrow", 4096)
    sentence = (
        f"{path}/part-000001.arrow has 4,096 bytes, but had {nbytes:,} when it was opened: "
        "somebody wrote to it in place"
    )
    uses: list[Callable[[], Any]] = [
        lambda: index.columns("first"),
        index.verify,
        lambda: list(index),
        lambda: list(reversed(index)),
        lambda: index.take([7, 0]),
        lambda: index[::2],
        lambda: part.columns("first"),
        lambda: index.columns("name"),
        lambda: index.columns("first").present("first"),
        lambda: index.nbytes,
        lambda: index.valid,
        lambda: repr(index),
        lambda: repr(part),
        lambda: part.nbytes,
        lambda: part + part,
        lambda: yj.concat([index[:1], part]),
        lambda: index.map(lambda row: row.first),
        lambda: index.map(lambda row: row.first, jit=False),
        lambda: index.filter(lambda row: row.first),
        lambda: row_type.transcode(index, representation="protobuf"),
        lambda: yj.build_index(tmp_path / "x.arrow", row_type, index),
        lambda: [repr(batch) for batch in index.batches(2)],
    ]
    for use in uses:
        with pytest.raises(yj.IndexFileError) as caught:
            use()
        assert str(caught.value) == sentence
    os.truncate(path / "part-000001.arrow", nbytes)  # before the mapping is looked at again


# verify="batch"


@pytest.fixture(scope="module")
def batches(row_type: yj.MessageType, tmp_path_factory: Any) -> Path:
    """Two parts of two batches each, the second of a part being short."""
    path: Path = tmp_path_factory.mktemp("batches") / "rows"
    rows = BATCHES // 2 * (BATCH_ROWS + 10)
    payload = row_type.message_class(first=1).SerializeToString()
    days = {"day": np.arange(rows)}
    yj.build_index(path, row_type, (payload for _ in range(rows)), part_rows=BATCH_ROWS + 10, columns=days)
    return path


@pytest.fixture
def checked(monkeypatch: Any) -> list[tuple[str, int]]:
    """The batches that were checked: name of the part, number."""
    seen: list[tuple[str, int]] = []
    real = checks.check_batch

    def noted(part: Any, number: int, *args: Any) -> bool:
        seen.append((os.path.basename(part.path), number))
        return real(part, number, *args)

    monkeypatch.setattr(opened, "check_batch", noted)
    return seen


ALL = [(f"part-00000{part}.arrow", number) for part in range(2) for number in range(2)]
LAST = BATCH_ROWS + 10  # the first row of the second part
USES: dict[str, tuple[Callable[[Any], Any], list[tuple[str, int]]]] = {
    "nothing": (lambda index: (len(index), repr(index), index.nbytes, index[5:], index.parts), []),
    "row": (lambda index: index[0], ALL[:1]),
    "last row": (lambda index: index[-1], ALL[3:]),
    "payload": (lambda index: index.payload(BATCH_ROWS), ALL[1:2]),
    "first rows": (lambda index: [view.first for view in index.head()], ALL[:1]),
    "some of all": (lambda index: next(iter(index)), ALL[:1]),
    "all": (lambda index: sum(view.first for view in index[: BATCH_ROWS + 1]), ALL[:2]),
    "another column": (lambda index: index.column("day"), ALL),
    "columns": (lambda index: index[BATCH_ROWS : LAST + 1].columns("first"), ALL[1:3]),
    "jitted": (lambda index: sum_ids(index[LAST - 3 : LAST]), ALL[1:2]),
    "jitted, all": (sum_ids, ALL),
    "take": (lambda index: index.take([LAST, 0]), [ALL[2], ALL[0]]),
    "take many": (lambda index: index.take(np.arange(BATCH_ROWS)), ALL[:1]),
    "take of both ends": (lambda index: index.take([0, 2 * LAST - 1]), [ALL[0], ALL[3]]),
    "take many of both ends": (
        lambda index: index.take(np.arange(2 * BATCH_ROWS) % 3000 + (LAST + BATCH_ROWS - 3000)),
        ALL[2:3],
    ),
    "take many of all but one": (
        lambda index: index.take(np.r_[0:6000, LAST : 2 * LAST]),
        [ALL[0], *ALL[2:]],
    ),
    "mask": (lambda index: index[np.arange(2 * LAST) % LAST < 6000], [ALL[0], ALL[2]]),
    "slice with a step": (lambda index: index[LAST - 5 : LAST : 2], ALL[1:2]),
    "concat": (lambda index: yj.concat([index[:2], index[-2:]]), [ALL[0], ALL[3]]),
    "map": (lambda index: index[:2].map(lambda view: view.first, jit=False), ALL[:1]),
}


@pytest.mark.parametrize("use", list(USES))
def test_batches_are_checked_when_they_are_read(
    batches: Path, checked: list[tuple[str, int]], use: str
) -> None:
    index = yj.open_index(batches, verify="batch")
    assert checked == []
    work, expected = USES[use]
    work(index)
    assert sorted(checked) == sorted(expected)
    work(index)
    assert sorted(checked) == sorted(expected)
    index.columns("first")
    assert sorted(checked) == ALL
    sum_ids(index)
    assert sorted(checked) == ALL


def test_each_batch_is_checked_once_by_all_threads(batches: Path, checked: list[tuple[str, int]]) -> None:
    index = yj.open_index(batches, verify="batch")
    start = threading.Barrier(8)
    sums: list[int] = []

    def work(turn: int) -> None:
        start.wait()
        rows = index[turn % 2 * LAST :] if turn % 2 else index
        sums.append(sum_ids(rows) if turn % 4 < 2 else int(rows.columns("first")["first"].sum()))

    threads = [threading.Thread(target=work, args=(turn,)) for turn in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(sums) == [LAST] * 4 + [2 * LAST] * 4
    assert sorted(checked) == ALL


def test_a_damaged_batch_is_named_when_it_is_read(batches: Path, tmp_path: Path) -> None:
    path = tmp_path / "rows"
    shutil.copytree(batches, path)
    name = path / "part-000001.arrow"
    with open(name, "r+b") as file:
        file.seek(os.path.getsize(name) // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))
    where = f"batch 0 (rows {LAST:,} to {LAST + BATCH_ROWS - 1:,})"
    index = yj.open_index(path, verify="batch")
    assert sum_ids(index[:LAST]) == LAST
    assert index[-1].first == 1
    for use in (
        lambda: index[LAST],
        lambda: sum_ids(index),
        lambda: index.columns("first"),
        lambda: index.map(lambda row: row.first),
        lambda: index.column("day"),
        lambda: list(index),
        lambda: index.payload(LAST),
        lambda: index.take([LAST]),
        lambda: index[LAST:].verify(),
        index.verify,
    ):
        with pytest.raises(yj.IndexFileError) as caught:
            use()
        assert str(caught.value).startswith(f"{name}: {where}: its checksum is ")
        assert not hasattr(caught.value, "row")  # it's of no row
    with pytest.raises(yj.IndexFileError) as caught:
        yj.open_index(path)
    assert str(caught.value).startswith(f"{name}: {where}: its checksum is ")
    assert len(yj.open_index_unchecked(path)) == 2 * LAST


def test_a_fork_checks_for_itself(batches: Path, checked: list[tuple[str, int]]) -> None:
    """Also while another thread of the parent was checking."""
    index = yj.open_index(batches, verify="batch")
    index._files._locks[2] = lock = threading.Lock()
    with lock:
        child = os.fork()
        if child == 0:
            os._exit(0 if sum_ids(index) == 2 * LAST and sorted(checked) == ALL else 1)
        _, status = os.waitpid(child, 0)
    assert status == 0
    assert checked == []
