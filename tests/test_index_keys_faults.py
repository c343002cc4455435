"""Key tables that are damaged, foreign, missing or hostile: an error that names them, or wrong rows."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import yaffjit as yj
from yaffjit.index import key_build, key_table
from yaffjit.index.key_table import KeyTable, write_table
from yaffjit.kernels import keys as kernels
from yaffjit.kernels.hashing import MIX_1

SOURCE = 'syntax = "proto3"; package k; message Row { uint64 id = 1; string name = 2; bytes raw = 3; }'
ROWS = 40
OPENERS: tuple[Callable[[Path], yj.Index], ...] = (
    lambda path: yj.open_index(path),
    lambda path: yj.open_index(path, verify="batch"),
    lambda path: yj.open_index_unchecked(path),
)


@pytest.fixture(scope="module")
def row_type(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("schema") / "k.proto"
    path.write_text(SOURCE)
    return yj.load_schema(path)["k.Row"]


def build(path: Path, row_type: Any, key: str, first: int = 0, **options: Any) -> None:
    rows = [{"id": number, "name": f"n{number}"} for number in range(first, first + ROWS)]
    yj.build_index(path, row_type, rows, key=key, **options)


def asked(key: str) -> Any:
    return list(range(ROWS)) if key == "id" else [f"n{number}" for number in range(ROWS)]


def rewritten(path: Path, change: Callable[[Any], Any], **head: Any) -> None:
    """A table whose slots were changed, with the checksum that belongs to them."""
    table = KeyTable(str(path))
    slots = np.array(table.slots)
    change(slots)
    texts = np.array(table.texts)
    made = replace(table.head, **{"xxh3": key_table.content_checksum(slots, texts), **head})
    path.unlink()
    with open(path, "wb") as file:
        write_table(str(path), file, made, slots, texts)


def faults(path: Path, key: str) -> list[str]:
    """What each way to open an index says of its keys; "" for nothing."""
    found = []
    for opener in OPENERS:
        try:
            opener(path).rows(asked(key))
            found.append("")
        except yj.IndexFileError as error:
            found.append(str(error))
    return found


@pytest.mark.parametrize("key", ["id", "name"])
def test_missing_cut_and_foreign(key: str, row_type: Any, tmp_path: Path) -> None:
    path = tmp_path / "x"
    build(path, row_type, key)
    table = path / "part-000000.keys.arrow"
    content = table.read_bytes()
    table.unlink()
    assert faults(path, key) == [f"{table} is missing: its manifest says that it has the keys {key!r}"] * 3
    assert len(yj.open_index(path, verify="batch")) == ROWS
    table.write_bytes(b"")
    assert faults(path, key) == [f"{table} is empty: it isn't a key table"] * 3
    table.write_bytes(content[:-1])
    assert all(fault.startswith(f"{table}: it isn't a whole Arrow file: ") for fault in faults(path, key))
    shutil.copy(path / "part-000000.arrow", table)
    assert faults(path, key) == [f"{table} isn't a key table: its schema has no metadata yaffjit.keys"] * 3
    build(tmp_path / "y", row_type, key, first=5)
    shutil.copy(tmp_path / "y" / "part-000000.keys.arrow", table)
    (fault,) = set(faults(path, key))
    assert fault.startswith(f"{table} is of another file: it says {ROWS} rows with checksum ")
    build(tmp_path / "z", row_type, "name" if key == "id" else "id")
    shutil.copy(tmp_path / "z" / "part-000000.keys.arrow", table)
    (fault,) = set(faults(path, key))
    assert f", but its manifest says {key!r} (duplicates='error')" in fault
    yj.build_keys(path, key)
    assert faults(path, key) == [""] * 3


def test_of_a_single_file(row_type: Any, tmp_path: Path) -> None:
    path, table = tmp_path / "x.arrow", tmp_path / "x.keys.arrow"
    build(path, row_type, "id")
    before = table.read_bytes()
    build(path, row_type, "id", first=7)
    table.write_bytes(before)
    (fault,) = set(faults(path, "id"))
    assert fault.startswith(f"{table} is of another file: it says {ROWS} rows with checksum ")
    os.unlink(table)
    os.mkfifo(table)
    assert faults(path, "id") == [f"{table} can't be opened: it's a pipe, not a regular file"] * 3


def test_killed_between_the_names(row_type: Any, tmp_path: Path) -> None:
    """The index file has its new name, and its keys still the one that they have until then."""
    path = tmp_path / "x.arrow"
    build(path, row_type, "id")
    old = (tmp_path / "x.keys.arrow").read_bytes()
    build(path, row_type, "id", first=100)
    (tmp_path / "x.keys.arrow").rename(tmp_path / "x.keys.new.arrow")
    (tmp_path / "x.keys.arrow").write_bytes(old)
    for opener in OPENERS:
        assert opener(path).rows(100) == 0
    build(path, row_type, "id")
    assert sorted(found.name for found in tmp_path.iterdir()) == ["x.arrow", "x.keys.arrow"]


@pytest.mark.parametrize("key", ["id", "name"])
def test_slots_that_lie(key: str, row_type: Any, tmp_path: Path) -> None:
    path = tmp_path / "x"
    build(path, row_type, key)
    table = path / "part-000000.keys.arrow"
    content = table.read_bytes()
    words = (0, 1) if key == "id" else (1, 0)  # of a slot: what isn't the row, and the row
    shift = 1 if key == "id" else 2**32

    def taken(slots: Any) -> Any:
        return np.flatnonzero(slots[1::2] != -1)

    def far(slots: Any) -> None:
        slots[2 * taken(slots) + words[1]] += ROWS * shift

    def negative(slots: Any) -> None:
        at = 2 * taken(slots) + words[1]
        slots[at] = -2 if key == "id" else -(2**62) | slots[at] & 0xFFFFFFFF

    def swapped(slots: Any) -> None:
        first, second = taken(slots)[:2]
        rows = slots[[2 * first + words[1], 2 * second + words[1]]]
        if key == "name":  # the hash stays
            rows = rows & ~0xFFFFFFFF
            slots[2 * first] = rows[1] | slots[2 * first] & 0xFFFFFFFF
            slots[2 * second] = rows[0] | slots[2 * second] & 0xFFFFFFFF
        else:
            slots[[2 * first + words[1], 2 * second + words[1]]] = rows[::-1]

    def empty(slots: Any) -> None:
        slots[2 * taken(slots)[0] + 1] = -1

    for change, count in ((far, ROWS), (negative, ROWS), (swapped, ROWS), (empty, ROWS - 1)):
        table.write_bytes(content)
        rewritten(table, change, keys=count)
        with pytest.raises(yj.IndexFileError, match=rf"^{table} is damaged: "):
            yj.open_index(path)
        index = yj.open_index_unchecked(path)
        if change in (far, negative):
            with pytest.raises(yj.IndexFileError) as caught:
                index.rows(asked(key))
            assert str(caught.value) == f"{table} is damaged: a key leads to what isn't in its part"
            assert faults(path, key)[1] == (
                f"{table} is damaged: it has a row out of range, but says {ROWS} keys of {ROWS} rows"
            )
        else:
            assert set(index.rows(asked(key)).tolist()) <= set(range(-1, ROWS))
        with pytest.raises(yj.IndexFileError):
            index.verify()


@pytest.mark.parametrize("key", ["id", "name"])
def test_a_full_table_of_others(key: str, row_type: Any, tmp_path: Path) -> None:
    """A search in it ends."""
    path = tmp_path / "x"
    rows = [{"id": number, "name": f"n{number}"} for number in range(5000)]
    yj.build_index(path, row_type, rows, key=key)

    def full(slots: Any) -> None:
        slots[0::2] = 2**60 if key == "id" else 77
        slots[1::2] = 0

    rewritten(path / "part-000000.keys.arrow", full)
    index = yj.open_index_unchecked(path)
    assert set(index.rows(asked(key)).tolist()) == {-1}
    assert index.rows(asked(key)[3]) == -1


def test_bytes_that_were_changed(row_type: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    build(path, row_type, "id")
    table = tmp_path / "x.keys.arrow"
    content = bytearray(table.read_bytes())
    at = content.index(KeyTable(str(table)).slots.tobytes()[:64])
    assert at % 64 == 0  # a bucket is a line of the cache
    content[at] ^= 1
    table.write_bytes(content)
    checked, batch, unchecked = faults(path, "id")
    assert checked == batch
    assert checked.startswith(f"{table}: the checksum of its content is ")
    assert unchecked == ""


def test_any_byte(row_type: Any, tmp_path: Path) -> None:
    """Of a file changed anywhere: an IndexFileError, or what was there before."""
    rng = random.Random(5)
    for key in ("id", "name"):
        path = tmp_path / f"{key}.arrow"
        build(path, row_type, key)
        table = tmp_path / f"{key}.keys.arrow"
        content = table.read_bytes()
        for _ in range(120):
            changed = bytearray(content)
            for _ in range(rng.choice([1, 1, 8])):
                changed[rng.randrange(len(changed))] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
            table.write_bytes(changed)
            for opener in OPENERS:
                try:
                    found = opener(path).rows(asked(key))
                except yj.IndexFileError as error:
                    assert str(table) in str(error)
                else:
                    assert len(found) == ROWS and found.max() < ROWS


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (
            {"format_version": 2},
            "has format version 2, but this yaffjit reads up to 1: a newer yaffjit wrote",
        ),
        (
            {"format_version": True},
            "its description of the keys is damaged: ValueError('a value makes no sense')",
        ),
        ({"kind": "float"}, "its description of the keys is damaged: ValueError('a value makes no sense')"),
        (
            {"duplicates": "all"},
            "its description of the keys is damaged: ValueError('a value makes no sense')",
        ),
        ({"rows": 2**40}, "its description of the keys is damaged: ValueError('a value makes no sense')"),
        ({"rows": ROWS * 9}, ", but a table of 360 rows has 11,584"),
        ({"seed": 2**64}, "its description of the keys is damaged: ValueError('a value makes no sense')"),
        ({"part": 5}, "its description of the keys is damaged: ValueError('a value makes no sense')"),
    ],
)
def test_heads_that_lie(change: dict[str, Any], fault: str, row_type: Any, tmp_path: Path) -> None:
    path, table = tmp_path / "x.arrow", tmp_path / "x.keys.arrow"
    build(path, row_type, "id")
    with pa.memory_map(str(table)) as source:
        batch = pa.ipc.open_file(source).get_batch(0)
        head = json.loads(batch.schema.metadata[key_table.KEYS_KEY])
        changed = batch.replace_schema_metadata({key_table.KEYS_KEY: json.dumps({**head, **change})})
        with pa.OSFile(str(tmp_path / "new"), "wb") as sink, pa.ipc.new_file(sink, changed.schema) as writer:
            writer.write_batch(changed)
    (tmp_path / "new").rename(table)
    assert fault in faults(path, "id")[2]


def test_equal_hashes(row_type: Any, tmp_path: Path) -> None:
    """Texts that were made to have one hash, by eight bytes that make a product zero, whatever the seed."""
    zero = (MIX_1 % 2**64).to_bytes(8, "little")
    keys = [zero + number.to_bytes(8, "little") + b"the same for all" for number in range(1500)]
    rows = [{"raw": key} for key in keys]
    yj.build_index(tmp_path / "x.arrow", row_type, rows[:700], key="raw")
    index = yj.open_index(tmp_path / "x.arrow")
    tags = index._files.keys.tables[0].slots[::2] & kernels.TAG  # type: ignore[union-attr]
    assert len(set(tags.tolist())) == 2  # theirs, and that of empty slots
    assert index.rows(keys).tolist() == [*range(700), *[-1] * 800]
    with pytest.raises(yj.IndexFileError, match=r"too many keys have one hash$"):
        yj.build_index(tmp_path / "y.arrow", row_type, rows, key="raw")


@pytest.mark.parametrize("key", ["id", "name"])
def test_other_seeds_are_tried(
    key: str, row_type: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_build, "SEEDS", 3)
    calls = []
    real = kernels.insert_integers if key == "id" else kernels.insert_texts

    def crowded(*args: Any) -> tuple[int, int, int]:
        calls.append(args)
        return (kernels.CROWDED, 4, 4) if len(calls) < 3 else real(*args)

    monkeypatch.setattr(kernels, real.__name__.lstrip("_"), crowded)
    build(tmp_path / "x.arrow", row_type, key)
    assert len(calls) == 3
    index = yj.open_index(tmp_path / "x.arrow")
    assert index.rows(asked(key)).tolist() == list(range(ROWS))
    monkeypatch.setattr(kernels, real.__name__.lstrip("_"), lambda *args: (kernels.CROWDED, 4, 4))
    with pytest.raises(yj.IndexFileError) as caught:
        build(tmp_path / "y.arrow", row_type, key)
    value = 4 if key == "id" else "'n4'"
    assert str(caught.value) == (
        f"{tmp_path}/y.keys.new.arrow can't be written: no place is left for the key of row 4, {value}: "
        "too many keys have one hash"
    )
    assert sorted(found.name for found in tmp_path.iterdir()) == ["x.arrow", "x.keys.arrow"]


def test_cut_while_it_is_open(row_type: Any, tmp_path: Path) -> None:
    path, table = tmp_path / "x.arrow", tmp_path / "x.keys.arrow"
    build(path, row_type, "id")
    index = yj.open_index(path)
    os.truncate(table, 500)
    with pytest.raises(yj.IndexFileError, match=rf"^{table} has 500 bytes, but had .* when it was opened"):
        index.rows(3)


FULL = """
import resource, signal, sys
import yaffjit as yj
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
row_type = yj.load_schema(sys.argv[1])["k.Row"]
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[4]), int(sys.argv[4])))
try:
    yj.build_index(sys.argv[2], row_type, ({"id": number} for number in range(4000)), key=sys.argv[3])
except yj.IndexFileError as error:
    print(error)
"""


@pytest.mark.parametrize("name", ["x.arrow", "x"])
def test_full_disk(name: str, row_type: Any, tmp_path: Path) -> None:
    (tmp_path / "k.proto").write_text(SOURCE)
    build(tmp_path / name, row_type, "id")
    before = sorted(tmp_path.rglob("*"))
    # The messages' file takes less than the table of their keys.
    arguments = [str(tmp_path / "k.proto"), str(tmp_path / name), "id", "105000"]
    done = subprocess.run(
        [sys.executable, "-c", FULL, *arguments], capture_output=True, text=True, check=True
    )
    assert "keys" in done.stdout and "can't be written: File too large" in done.stdout
    assert sorted(tmp_path.rglob("*")) == before
    assert yj.open_index(tmp_path / name).rows(3) == 3


def test_a_part_of_too_many_rows(tmp_path: Path, row_type: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_build, "MOST_ROWS", 5)
    path = tmp_path / "x.arrow"
    rows = [{"id": number} for number in range(5)]
    with pytest.raises(yj.IndexFileError) as caught:
        yj.build_index(path, row_type, rows, key="id")
    assert str(caught.value) == (
        f"{tmp_path / 'x.keys.new.arrow'} can't be written: {path} has 5 rows, but keys are for less than 5: "
        "build a directory, with part_rows="
    )
    assert not list(tmp_path.glob("x*"))
    yj.build_index(tmp_path / "x", row_type, rows, key="id", part_rows=4)
    assert yj.open_index(tmp_path / "x").rows([4, 0]).tolist() == [4, 0]
