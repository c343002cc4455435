"""`yaffjit diff`: what it prints, its exit codes, and where it takes schemas from."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import timestamp_pb2

import yaffjit as yj
from yaffjit.cli import main

Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).parents[1]

OLD = "message M { int32 a = 1; string b = 2; S s = 3; } message S { int32 x = 1; }"
SAFE = "message M { int32 a = 1; string c = 2; S s = 3; double d = 4; } message S { int32 x = 1; }"
CONDITIONAL = "message M { int32 a = 1; bytes b = 2; S s = 3; } message S { int32 x = 1; }"
UNSAFE = "message M { int64 a = 1; string b = 2; S s = 3; } message S { int64 x = 1; }"


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, body in (("old", OLD), ("safe", SAFE), ("conditional", CONDITIONAL), ("unsafe", UNSAFE)):
        (tmp_path / f"{name}.proto").write_text(f'syntax = "proto3"; package t; {body}')
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["old.proto", "old.proto"], 0),
        (["old.proto", "safe.proto"], 0),
        (["old.proto", "conditional.proto"], 1),
        (["old.proto", "conditional.proto", "--allow-conditional"], 0),
        (["old.proto", "unsafe.proto"], 2),
        (["old.proto", "unsafe.proto", "--allow-conditional"], 2),
        (["old.proto", "unsafe.proto", "--for", "protobuf"], 1),
        (["old.proto", "safe.proto", "--for", "yaff", "--for", "json"], 2),
        (["old.proto", "unsafe.proto", "-m", "t.S"], 2),
        (["old.proto", "conditional.proto", "-m", "t.S"], 0),
    ],
)
def test_exit_codes(arguments: list[str], code: int, capsys: Capture) -> None:
    assert main(["diff", *arguments]) == code
    assert capsys.readouterr().err == ""
    assert main(["diff", *arguments, "--json"]) == code
    found = json.loads(capsys.readouterr().out)
    assert found["grade"] == ["safe", "conditional", "unsafe"][code] or "--allow-conditional" in arguments


def test_text(capsys: Capture) -> None:
    assert main(["diff", "old.proto", "unsafe.proto", "-m", "t.S"]) == 2
    assert capsys.readouterr().out == (
        "unsafe       t.S.x: type int32 -> int64\n"
        "             YaFF: unsafe. A value of 4 bytes is read as one of 8.\n"
        "             -> Keep the type, and add a field with a free number for the new one.\n"
        "             protobuf: conditional. The encoding is the same, and a reader cuts what its type can't "
        "hold.\n"
        "             -> Do it only if all values are values of int32 and of int64.\n"
        "1 change: 1 unsafe\n"
    )
    assert main(["diff", "old.proto", "safe.proto"]) == 0
    assert capsys.readouterr().out == (
        "safe         t.M.b: renamed to c\n"
        "             Bytes name fields by number.\n"
        "             -> If it isn't the same field, take a number that was never used.\n"
        "             JSON: unsafe. JSON names fields by their names, so a reader doesn't find what the "
        "other wrote.\n"
        "             -> Give the new field the old json_name, if JSON is stored or sent.\n"
        "safe         t.M.d: field added, number 4\n"
        "             A reader without the field passes over it; data without it reads as its default.\n"
        "2 changes: 2 safe\n"
    )
    assert main(["diff", "old.proto", "safe.proto", "--quiet"]) == 0
    assert capsys.readouterr().out == "2 changes: 2 safe\n"
    assert main(["diff", "old.proto", "old.proto"]) == 0
    assert capsys.readouterr().out == "no changes\n"


def test_json(capsys: Capture) -> None:
    assert main(["diff", "old.proto", "conditional.proto", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "grade": "conditional",
        "formats": ["yaff", "protobuf"],
        "changes": [
            {
                "where": "t.M.b",
                "kind": "field-type",
                "what": "type string -> bytes",
                "yaff": verdict(),
                "protobuf": verdict(),
                "json": None,
            }
        ],
    }


def verdict() -> dict[str, str]:
    return {
        "grade": "conditional",
        "rule": "The bytes stay, but a reader with `string` refuses what isn't UTF-8.",
        "advice": "Do it only if all values are UTF-8.",
    }


def test_schemas_come_from_sets_indexes_and_modules(capsys: Capture, tmp_path: Path) -> None:
    old = yj.load_schema("old.proto")
    Path("old.binpb").write_bytes(old.definition.descriptor_set)
    yj.build_index("old.arrow", old["t.S"], [old["t.S"].message_class(x=1)])
    yj.build_index("folder", old["t.S"], [old["t.S"].message_class(x=1)])
    assert main(["diff", "old.binpb", "old.proto"]) == 0
    assert main(["diff", "old.arrow", "unsafe.proto", "--json"]) == 2  # only what the index holds
    out = capsys.readouterr().out.partition("\n")[2]
    assert [change["where"] for change in json.loads(out)["changes"]] == ["t.S.x"]
    assert main(["diff", "folder", "unsafe.proto", "-q"]) == 2
    Path("time.binpb").write_bytes(yj.load_schema(timestamp_pb2).definition.descriptor_set)
    assert main(["diff", "google.protobuf.timestamp_pb2", "time.binpb"]) == 0
    with pytest.raises(SystemExit) as stop:
        main(["diff", "no_such_pb2", "old.proto"])
    assert stop.value.code == 2
    assert "neither a file nor a module: 'no_such_pb2'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["old.proto", "none.proto"], "yaffjit: error: no such file: 'none.proto'\n"),
        (
            ["old.proto", "safe.proto", "-m", "t.N"],
            "yaffjit: error: neither schema has a message 't.N' (did you mean 't.S', 't.M'?)\n",
        ),
    ],
)
def test_what_cannot_be_compared(arguments: list[str], complaint: str, capsys: Capture) -> None:
    assert main(["diff", *arguments]) == 2
    assert capsys.readouterr() == ("", complaint)


@pytest.mark.parametrize("no_colour", [False, True])
def test_colours_only_on_a_terminal(no_colour: bool, capsys: Capture) -> None:
    main(["diff", "old.proto", "unsafe.proto"])
    plain = capsys.readouterr().out
    assert "\x1b" not in plain
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TERM": "xterm",
        "NO_COLOR": "1" if no_colour else "",
    }
    ours, theirs = pty.openpty()
    try:
        command = [sys.executable, "-m", "yaffjit", "diff", "old.proto", "unsafe.proto"]
        subprocess.run(command, stdout=theirs, env=environment, timeout=60, check=False)
        shown = os.read(ours, 1 << 16).decode().replace("\r\n", "\n")
    finally:
        os.close(ours)
        os.close(theirs)
    assert (shown == plain) == no_colour
    assert shown.replace("\x1b[31m", "").replace("\x1b[0m", "") == plain
