"""The command keys, and keys that build makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import yaffjit as yj
from yaffjit.cli import main

Capture = pytest.CaptureFixture[str]

SOURCE = """
syntax = "proto3";
package k;
message Geo { string city = 1; }
message Row { uint64 id = 1; string name = 2; Geo geo = 3; repeated int32 many = 4; double ctr = 5; }
"""
ROWS = 7
CITIES = ("Oslo", "Lima")


@pytest.fixture(scope="module")
def row_type(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("keys") / "k.proto"
    path.write_text(SOURCE)
    return yj.load_schema(path)["k.Row"]


@pytest.fixture
def folder(tmp_path: Path, row_type: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index as a file, and as a directory, without keys."""
    rows = [{"id": 100 - i, "name": f"n{i}", "geo": {"city": CITIES[i % 2]}} for i in range(ROWS)]
    yj.build_index(tmp_path / "x.arrow", row_type, rows)
    yj.build_index(tmp_path / "x", row_type, rows, part_rows=3)
    (tmp_path / "k.proto").write_text(SOURCE)
    yj.write_delimited(tmp_path / "rows.pb", [row_type.message_class(**row) for row in rows])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: Capture, *arguments: str) -> str:
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def fails(capsys: Capture, *arguments: str) -> str:
    assert main(list(arguments)) == 1
    return capsys.readouterr().err.removeprefix("yaffjit: error: ").rstrip("\n")


def misused(capsys: Capture, *arguments: str) -> str:
    with pytest.raises(SystemExit):
        main(list(arguments))
    return capsys.readouterr().err.splitlines()[-1].partition(": error: ")[2]


@pytest.mark.parametrize("name", ["x.arrow", "x"])
def test_an_index_gets_keys_and_others(folder: Path, capsys: Capture, name: str) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*.arrow")}
    with pytest.raises(yj.IndexFileError):
        yj.open_index(name).rows(100)
    assert run(capsys, "keys", name, "--key", "id") == f"{name}: rows can be looked up by id\n"
    index = yj.open_index(name)
    assert index.rows([100, 94, 7]).tolist() == [0, 6, -1]
    run(capsys, "keys", name, "--key", "geo.city", "--duplicates", "last")
    assert yj.open_index(name).rows(list(CITIES)).tolist() == [6, 5]
    run(capsys, "keys", name, "--key", "geo.city", "--duplicates", "first")
    assert yj.open_index(name).rows(list(CITIES)).tolist() == [0, 1]
    assert run(capsys, "verify", name).startswith(f"{name}: ")
    assert {path: path.read_bytes() for path in before} == before  # the messages stay as they are


@pytest.mark.parametrize("name", ["x.arrow", "x"])
def test_what_is_no_key_is_refused(folder: Path, capsys: Capture, name: str) -> None:
    run(capsys, "keys", name, "--key", "name")
    assert fails(capsys, "keys", name, "--key", "geo.city") == (
        "rows 0 and 2 have the same key: geo.city is 'Oslo' in both; "
        'duplicates="first" or "last" says which one counts'
    )
    where = "can't be a key of k.Row: "
    assert fails(capsys, "keys", name, "--key", "many") == f"'many' {where}a key is one value a message"
    assert fails(capsys, "keys", name, "--key", "ctr") == (
        f"'ctr' {where}keys are integers, text or bytes, not double"
    )
    assert fails(capsys, "keys", name, "--key", "nam").endswith("(did you mean 'name'?)")
    assert yj.open_index(name).rows(["n3", "n9"]).tolist() == [3, -1]  # those that were there still are


def test_an_argument_is_missing(folder: Path, capsys: Capture) -> None:
    assert misused(capsys, "keys", "x.arrow") == "the following arguments are required: --key"
    assert "no.arrow" in fails(capsys, "keys", "no.arrow", "--key", "id")


def test_build_makes_keys(folder: Path, capsys: Capture) -> None:
    run(capsys, "build", "k.proto", "k.Row", "rows.pb", "-o", "new.arrow", "--key", "name")
    assert yj.open_index("new.arrow").rows(["n6", "n0", ""]).tolist() == [6, 0, -1]
    build = ("build", "k.proto", "k.Row", "rows.pb", "-o", "packed.arrow")
    fault = "an index with keys can't be compressed: --key or --compression"
    assert misused(capsys, *build, "--key", "id", "--compression", "zstd") == fault
    assert misused(capsys, *build, "--duplicates", "last") == "--duplicates is about keys: say --key too"
    assert not Path("packed.arrow").exists()
    run(capsys, "keys", "x", "--key", "id", "--duplicates", "last")
    append = ("append", "x", "rows.pb")
    assert fails(capsys, *append, "--compression", "lz4") == (
        "x has keys, which compressed parts can't have, but compression is 'lz4'"
    )
    run(capsys, *append)
    assert yj.open_index("x").rows([100, 94]).tolist() == [ROWS, 2 * ROWS - 1]
