"""All commands in one table: their help has examples, each runs as it's written, ``--json`` parses."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import yaffjit as yj
from yaffjit.cli import main, parser
from yaffjit.demo import SCHEMA_FILE, banners
from yaffjit.warm import Warmed

Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).parents[1]
ROWS = 300

# What other examples exit with than 0.
CODES = {
    "yaffjit diff old.proto new.proto --for protobuf": 1,
    **dict.fromkeys(["yaffjit diff old.proto new.proto", "yaffjit diff banners.arrow new.proto"], 2),
}
WARMED = (Warmed("the verifier", True, 0.5, "cache"), Warmed("the transcoder", False, 2.0, "cache"))
NO_JSON = {"demo", "stubs"}


def commands() -> dict[str, argparse.ArgumentParser]:
    (action,) = (action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    return dict(action.choices)


def examples_of(name: str) -> list[str]:
    """The commands in the help of a command, without the remarks behind them."""
    epilog = commands()[name].epilog or ""
    block = epilog.partition("examples:\n")[2].partition("\n\n")[0].partition("\nexit codes")[0]
    return [re.split(r" {2,}", line.strip())[0] for line in block.splitlines() if line.strip()]


EXAMPLES = [(name, example) for name in commands() for example in examples_of(name)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All files that examples name, made once."""
    folder = tmp_path_factory.mktemp("verbs")
    (folder / "protos").mkdir()
    text = SCHEMA_FILE.read_text()
    for name in ("ads.proto", "old.proto"):
        (folder / name).write_text(text)
    (folder / "new.proto").write_text(text.replace("uint64 id = 1", "int32 id = 1"))
    Banner = yj.load_schema(folder / "ads.proto")["ads.Banner"]
    messages = list(banners(Banner.message_class, ROWS))
    for name in ("banners.pb", "today.pb", "part1.pb", "part2.pb"):
        yj.write_delimited(folder / name, messages)
    (folder / "in").mkdir()
    for row, message in enumerate(messages[:3]):
        (folder / "in" / f"{row}.pb").write_bytes(message.SerializeToString())
    (folder / "message.pb").write_bytes(messages[0].SerializeToString())
    (folder / "banner.yaff").write_bytes(Banner.encode(messages[0]))
    payloads = [message.SerializeToString() for message in messages]
    parquet.write_table(pa.table({"payload": pa.array(payloads, pa.binary())}), folder / "x.parquet")
    yj.build_index(folder / "banners.arrow", Banner, messages)
    yj.build_index(folder / "banners", Banner, messages)
    yj.build_index(folder / "archive.arrow", Banner, messages, compression="zstd")
    yj.build_index(folder / "archive", Banner, messages, compression="zstd")
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of them, which is where the command runs."""
    copy = tmp_path / "run"
    shutil.copytree(made, copy)
    monkeypatch.chdir(copy)
    return copy


def test_the_table_is_whole() -> None:
    assert {name for name, _ in EXAMPLES} == set(commands())


@pytest.mark.parametrize("name", commands())
def test_help(name: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stop:
        main([name, "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert f"examples:\n  yaffjit {name}" in out
    assert ("--json" in out) == (name not in NO_JSON)
    assert max(map(len, out.splitlines())) <= 130


@pytest.mark.slow
@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=[example for _, example in EXAMPLES])
def test_example_runs(
    name: str, example: str, folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "warm":  # compiles for long, which test_cached tries
        monkeypatch.setattr("yaffjit.warm.warm", lambda mp, paths: iter(WARMED))
    if name == "demo":
        example = example.replace("20000", "500") if "--rows" in example else f"{example} --rows 500"
    if "archive" in example or example.startswith("yaffjit unpack"):
        for taken in ("banners.arrow", "banners"):
            path = folder / taken
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    if "--adopt" in example:
        shutil.rmtree(folder / "banners")
    code = next((code for start, code in CODES.items() if example.startswith(start)), 0)
    words = shlex.split(example)
    assert words[0] == "yaffjit"
    found = main(words[1:])
    printed = capsys.readouterr()
    assert found == code, printed.err
    assert printed.out + printed.err
    if "--json" in words:
        assert parsed(printed.out)


def parsed(text: str) -> list[Any]:
    """JSON values, one after the other."""
    values = []
    decoder = json.JSONDecoder(parse_constant=lambda name: pytest.fail(f"{name} isn't JSON"))
    while text := text.strip():
        value, end = decoder.raw_decode(text)
        values.append(value)
        text = text[end:]
    return values


def run_json(capsys: Capture, *arguments: str, code: int = 0) -> list[Any]:
    assert main([*arguments, "--json"]) == code
    printed = capsys.readouterr()
    assert printed.err == ""
    return parsed(printed.out)


def test_json_of_build_append_keys_verify_and_unpack(folder: Path, capsys: Capture) -> None:
    (built,) = run_json(capsys, "build", "ads.proto", "ads.Banner", "banners.pb", "-o", "new.arrow")
    assert (built["path"], built["rows"], built["bad"]) == ("new.arrow", ROWS, 0)
    assert built["nbytes"] == os.path.getsize("new.arrow")
    (added,) = run_json(capsys, "append", "banners", "today.pb")
    assert added["rows"] == ROWS
    assert run_json(capsys, "keys", "new.arrow", "--key", "id") == [
        {"path": "new.arrow", "key": "id", "duplicates": "error"}
    ]
    assert run_json(capsys, "verify", "banners") == [
        {"path": "banners", "well_formed": True, "message": "ads.Banner", "rows": 2 * ROWS, "compression": ""}
    ]
    (single,) = run_json(capsys, "verify", "banner.yaff", "--schema", "ads.proto", "--message", "ads.Banner")
    assert single["nbytes"] == os.path.getsize("banner.yaff")
    assert run_json(capsys, "verify", "archive.arrow")[0]["compression"] == "zstd"
    (unpacked,) = run_json(capsys, "unpack", "archive.arrow", "-o", "un.arrow")
    assert (unpacked["rows"], unpacked["nbytes"]) == (ROWS, os.path.getsize("un.arrow"))


def test_json_of_layouts(folder: Path, capsys: Capture) -> None:
    (every,) = run_json(capsys, "layout", "ads.proto")
    assert [found["message"] for found in every] == ["ads.Stats", "ads.Geo", "ads.Banner"]
    (one,) = run_json(capsys, "layout", "ads.proto", "ads.Banner")
    assert one == every[2]
    assert one["fields"][2]["name"] == "price" and one["fields"][2]["offset"] == 16
    (sampled,) = run_json(capsys, "layout", "ads.proto", "ads.Banner", "--sample", "banners.pb")
    assert sampled["messages"] == ROWS and sampled["choice"] in ("flat", "sparse", "auto", "any")
    Path("group.proto").write_text(
        'syntax = "proto2"; package g; message M { optional group G = 1 { optional int32 a = 1; } }'
    )
    (groups,) = run_json(capsys, "layout", "group.proto")
    assert groups[0] == {"message": "g.M", "unsupported": "g.M: field g is a group"}


def test_json_of_columns_has_all_kinds(folder: Path, capsys: Capture) -> None:
    rows = run_json(capsys, "columns", "banners.arrow", "id", "tags", "title", "price")
    index = yj.open_index("banners.arrow")
    assert len(rows) == ROWS
    assert rows[3]["tags"] == list(index[3].tags)
    assert rows[3]["id"] == index[3].id
    Path("m.proto").write_text('syntax = "proto3"; package m; message M { double d = 1; bytes b = 2; }')
    M = yj.load_schema("m.proto")["m.M"]
    made = [M.message_class(d=d, b=b"\xff\x00") for d in (np.nan, np.inf, -np.inf, 1.5)]
    yj.build_index("m.arrow", M, made)
    rows = run_json(capsys, "columns", "m.arrow", "d", "b")
    assert [row["d"] for row in rows] == ["NaN", "Infinity", "-Infinity", 1.5]
    assert rows[0]["b"] == "/wA="
    with pytest.raises(SystemExit) as stop:
        main(["columns", "m.arrow", "d", "--json", "-o", "x.csv"])
    assert stop.value.code == 2
    assert "--json prints, so it doesn't go with --output" in capsys.readouterr().err


def test_bad_data_is_one_line_on_standard_error(folder: Path, capsys: Capture) -> None:
    """With --json too nothing half is printed: exit code 1 for bad data, 2 for wrong usage."""
    data = bytearray(Path("banners.arrow").read_bytes())
    data[len(data) // 2] ^= 0xFF
    Path("bad.arrow").write_bytes(data)
    Path("bad.proto").write_text("message M {")
    for arguments, code in (
        (["verify", "bad.arrow", "--json"], 1),
        (["columns", "bad.arrow", "id", "--json"], 1),
        (["head", "no.arrow", "--json"], 1),
        (["layout", "bad.proto", "--json"], 1),
        (["stubs", "bad.proto", "-o", "x"], 1),
        (["diff", "bad.proto", "ads.proto", "--json"], 2),
        (["keys", "banners.arrow", "--key", "nothing", "--json"], 1),
        (["build", "ads.proto", "ads.Nothing", "banners.pb", "-o", "y.arrow", "--json"], 1),
    ):
        assert main(arguments) == code, arguments
        printed = capsys.readouterr()
        assert printed.out == "", arguments
        assert printed.err.startswith("yaffjit: error: "), arguments
        assert "Traceback" not in printed.err
    for arguments in (["diff", "ads.proto"], ["stubs", "ads.proto"], ["warm", "--jsn"], ["sing"]):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 2
        printed = capsys.readouterr()
        assert printed.out == "" and printed.err.startswith("usage: yaffjit")


def test_a_reader_that_goes_is_no_error(folder: Path) -> None:
    """``yaffjit diff ... | head -c 1``: nothing on standard error."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "yaffjit", "layout", "ads.proto", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    try:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141
    finally:
        process.kill()
        process.wait()


def test_json_of_warm(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yaffjit.warm.warm", lambda mp, paths: iter(WARMED))
    assert [one["what"] for one in run_json(capsys, "warm")] == ["the verifier", "the transcoder"]
