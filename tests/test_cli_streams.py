"""The command line in hard places: odd messages, closed and full outputs, small encodings, interrupts."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import text_format
from pyarrow import parquet

import yaffjit as yj
from yaffjit.cli import main

ROOT = Path(__file__).parents[1]
TEXT = 'Kraków 木 \U0001f600 "quoted" \\ \n'
SCHEMA = """
syntax = "proto3";
package odd;
import "google/protobuf/any.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/field_mask.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
message M {
  uint64 id = 1;
  string text = 2;
  repeated int32 many = 3;
  google.protobuf.Any any = 4;
  google.protobuf.Timestamp time = 5;
  google.protobuf.Duration span = 6;
  google.protobuf.FieldMask mask = 7;
  google.protobuf.Value value = 8;
  bytes raw = 9;
  map<string, int32> map = 10;
}
message Named { int32 ListFields = 1; int32 to_message = 2; }
"""
# By row.
MESSAGES: list[dict[str, Any]] = [
    {"id": 2**64 - 1, "text": TEXT},
    {"any": {"type_url": "type.example/un.known", "value": b"\x01"}},
    {"time": {"seconds": 2**60}},
    {"span": {"seconds": 2**60}},
    {"mask": {"paths": ["A b"]}},
    {"value": {"number_value": float("nan")}},
]

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def odd_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("odd")
    (folder / "odd.proto").write_text(SCHEMA)
    schema = yj.load_schema(folder / "odd.proto")
    yj.build_index(folder / "odd.arrow", schema["odd.M"], MESSAGES)
    yj.build_index(folder / "named.arrow", schema["odd.Named"], [{"ListFields": 1, "to_message": 2}])
    yj.write_delimited(folder / "odd.pb", [schema["odd.M"].message_class(id=7)] * 3)
    return folder


@pytest.fixture(autouse=True)
def in_folder(odd_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(odd_folder)


def fails(capsys: Capture, *arguments: str) -> str:
    """The one line on standard error of a command that fails."""
    assert main(arguments) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("yaffjit: error: ")
    assert err.count("\n") == 1
    return err.removeprefix("yaffjit: error: ").rstrip("\n")


def process(*arguments: str, shell: str = '"$@"', **environment: str) -> subprocess.CompletedProcess[bytes]:
    """`yaffjit` with the arguments, as a line of a shell, which may redirect it."""
    command = ["sh", "-c", shell, "sh", sys.executable, "-m", "yaffjit", *arguments]
    return subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(ROOT), **environment}, capture_output=True, check=False
    )


@pytest.mark.parametrize("row", range(1, len(MESSAGES)))
def test_what_has_no_json_form(capsys: Capture, row: int) -> None:
    sentence = fails(capsys, "show", "odd.arrow", str(row), "--json")
    assert sentence.startswith(f"row {row}: odd.M has no JSON form: ")
    assert main(["show", "odd.arrow", str(row)]) == 0
    message = yj.open_index("odd.arrow")[row].to_message()
    assert text_format.Parse(capsys.readouterr().out, type(message)()) == message


def test_fields_with_the_names_of_methods(capsys: Capture) -> None:
    sentence = fails(capsys, "show", "named.arrow", "0")
    assert sentence.startswith("row 0: it can't be printed as text: ")


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "utf-8"},
    ],
)
def test_small_encodings(environment: dict[str, str]) -> None:
    message = yj.open_index("odd.arrow")[0].to_message()
    shown = process("show", "odd.arrow", "0", **environment)
    assert (shown.returncode, shown.stderr) == (0, b"")
    encoding = environment.get("PYTHONIOENCODING", "ascii")
    assert text_format.Parse(shown.stdout.decode(encoding), type(message)()) == message
    shown = process("show", "odd.arrow", "0", "--json", **environment)
    assert (shown.returncode, shown.stderr) == (0, b"")
    assert json.loads(shown.stdout.decode(encoding)) == {"id": str(2**64 - 1), "text": TEXT}


def test_names_that_no_encoding_has() -> None:
    name = "odd-\udcff.arrow"
    Path(name).write_bytes(Path("odd.arrow").read_bytes())
    done = process("verify", name, PYTHONIOENCODING="utf-8")
    assert (done.stdout, done.returncode) == (b"odd-\\udcff.arrow: 6 odd.M messages, all well-formed\n", 0)


@pytest.mark.parametrize(
    "arguments",
    [
        ("-h",),
        ("show", "-h"),
        ("--version",),
        ("show", "odd.arrow", "0"),
        ("columns", "odd.arrow", "id"),
        ("layout", "odd.proto"),
    ],
)
@pytest.mark.parametrize(
    ("shell", "sentence"),
    [('"$@" >&-', b"standard output is closed"), ('"$@" >/dev/full', b"No space left on device")],
)
def test_outputs_that_take_nothing(arguments: tuple[str, ...], shell: str, sentence: bytes) -> None:
    for unbuffered in ("", "1"):
        done = process(*arguments, shell=shell, PYTHONUNBUFFERED=unbuffered)
        assert (done.stderr, done.returncode) == (b"yaffjit: error: " + sentence + b"\n", 1)


def test_a_closed_output_that_is_not_needed(tmp_path: Path) -> None:
    output = str(tmp_path / "x.csv")
    done = process("columns", "odd.arrow", "id", "-o", output, shell='"$@" >&-')
    said = f"yaffjit: wrote {len(MESSAGES)} rows of 1 column to {output}\n"
    assert (done.stderr.decode(), done.returncode) == (said, 0)
    assert Path(output).read_text().startswith('"id"\n18446744073709551615\n')


def test_errors_do_not_go_into_the_data(tmp_path: Path) -> None:
    done = process("columns", "odd.arrow", "no", shell='"$@" 2>&-')
    assert (done.stdout, done.returncode) == (b"", 1)


SUFFIXES = [".csv", ".parquet", ".arrow", ".feather"]


@pytest.fixture
def small_files(capsys: Capture) -> Iterator[None]:
    """Stands in for a full disk: writing a file beyond the limit fails in the same way."""
    main(["columns", "odd.arrow", "id", "-o", "warm.csv"])
    capsys.readouterr()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_columns_are_whole_or_not_there(
    capsys: Capture, tmp_path: Path, small_files: None, suffix: str
) -> None:
    for before in (None, b"OLD GOOD FILE"):
        path = tmp_path / f"x{suffix}"
        if before is not None:
            path.write_bytes(before)
        sentence = fails(capsys, "columns", "odd.arrow", "id", "-o", str(path))
        assert sentence == f"{path} can't be written: File too large"
        if before is None:
            assert os.listdir(tmp_path) == []
        else:
            assert path.read_bytes() == before
            assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_columns_replace_a_file_as_an_index_does(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_bytes(b"OLD")
    path.chmod(0o640)
    link = tmp_path / f"link{suffix}"
    link.symlink_to(path)
    assert main(["columns", "odd.arrow", "id", "-o", str(link)]) == 0
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    written = {
        ".csv": lambda: [int(line) for line in path.read_text().split()[1:]],
        ".parquet": lambda: parquet.read_table(path)["id"].to_pylist(),
    }
    read_arrow = lambda: pa.ipc.open_file(path).read_all()["id"].to_pylist()  # noqa: E731
    assert written.get(suffix, read_arrow)() == [2**64 - 1, 0, 0, 0, 0, 0]


def test_no_output_takes_the_place_of_an_input(capsys: Capture, tmp_path: Path) -> None:
    index = tmp_path / "x.arrow"
    index.write_bytes(Path("odd.arrow").read_bytes())
    (tmp_path / "link.arrow").symlink_to("x.arrow")
    (tmp_path / "hard.arrow").hardlink_to(index)
    for output in (index, tmp_path / "link.arrow", tmp_path / "hard.arrow"):
        assert fails(capsys, "columns", str(index), "id", "-o", str(output)) == (
            f"{output} is read by this command, so it can't be written by it"
        )
    assert index.read_bytes() == Path("odd.arrow").read_bytes()
    before = [Path(name).read_bytes() for name in ("odd.proto", "odd.pb")]
    for output in ("odd.proto", "odd.pb"):
        assert fails(capsys, "build", "odd.proto", "odd.M", "odd.pb", "odd.pb", "-o", output) == (
            f"{output} is read by this command, so it can't be written by it"
        )
    assert before == [Path(name).read_bytes() for name in ("odd.proto", "odd.pb")]


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("raw", "bytes"),
        ("many", "a list of int32"),
        ("map", "a map of text to int32"),
    ],
)
def test_columns_that_csv_has_no_form_for(capsys: Capture, path: str, what: str) -> None:
    hint = "" if what == "bytes" else ", or name one element or len() of it"
    assert fails(capsys, "columns", "odd.arrow", path) == (
        f"column {path!r} is {what}, for which CSV has no form: write .parquet or .arrow{hint}"
    )


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["layout", ""], "argument SCHEMA: a path can't be empty"),
        (["layout", "odd.proto", "-I", ""], "argument --include/-I: a path can't be empty"),
        (["columns", "odd.arrow", "id", "-o", ""], "argument --output/-o: a path can't be empty"),
        (["columns", "", "id"], "argument INDEX: a path can't be empty"),
        (["show", "", "0"], "argument INDEX: a path can't be empty"),
        (["verify", ""], "argument PATH: a path can't be empty"),
        (["verify", "x", "--schema", ""], "argument --schema: a path can't be empty"),
        (["build", "", "odd.M", "odd.pb", "-o", "x"], "argument SCHEMA: a path can't be empty"),
        (["build", "odd.proto", "odd.M", "", "-o", "x"], "argument INPUT: a path can't be empty"),
        (["build", "odd.proto", "odd.M", "odd.pb", "-o", ""], "argument --output/-o: a path can't be empty"),
        (["demo", "--keep", ""], "argument --keep: a path can't be empty"),
        (["demo", "--rows", "x"], "argument --rows: not a whole number: 'x'"),
        (["demo", "--rows", "1.5"], "argument --rows: not a whole number: '1.5'"),
        (["show", "odd.arrow", "x"], "argument ROW: not a whole number: 'x'"),
    ],
)
def test_wrong_arguments(capsys: Capture, arguments: list[str], complaint: str) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert complaint in capsys.readouterr().err


def test_inputs_that_are_not_there(capsys: Capture, tmp_path: Path) -> None:
    output = str(tmp_path / "x.arrow")
    for inputs in (["none.pb"], ["odd.pb", "none.pb"]):
        sentence = fails(capsys, "build", "odd.proto", "odd.M", *inputs, "-o", output)
        assert sentence == "none.pb: No such file or directory"
    assert fails(capsys, "build", "odd.proto", "odd.M", str(tmp_path), "-o", output) == (
        f"{tmp_path}: Is a directory"
    )
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("message", [(), ("--schema", "odd.proto", "--message", "odd.M")])
def test_verify_does_not_wait_for_a_pipe(capsys: Capture, tmp_path: Path, message: tuple[str, ...]) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, what in ((tmp_path / "pipe", "a pipe"), (Path(os.devnull), "a device")):
        assert fails(capsys, "verify", str(path), *message) == (
            f"{path} can't be opened: it's {what}, not a regular file"
        )
    assert fails(capsys, "verify", str(tmp_path), *message) == (
        f"{tmp_path} is a folder without manifest.json, so it isn't an index"
    )


def test_messages_may_come_through_a_pipe(tmp_path: Path) -> None:
    output = str(tmp_path / "x.arrow")
    done = process("build", "odd.proto", "odd.M", "/dev/stdin", "-o", output, shell='cat odd.pb | "$@"')
    assert (done.returncode, done.stderr) == (0, b"")
    assert [view.id for view in yj.open_index(output)] == [7, 7, 7]  # type: ignore[attr-defined]


INTERRUPTED = """
import signal, sys
import yaffjit
def show(*arguments, **options):
    {how}
yaffjit.open_index = show
from yaffjit.__main__ import run
sys.argv = ["yaffjit", "show", "odd.arrow", "0"]
run()
"""


@pytest.mark.parametrize(
    "how",
    ["signal.raise_signal(signal.SIGINT)", "exec('signal.raise_signal(signal.SIGINT); 1')"],
)
def test_an_interrupted_process_says_130(how: str) -> None:
    """Python remembers an interrupt inside `exec`, even if it's caught, and would end by the signal."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(how=how)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert (done.stdout, done.stderr, done.returncode) == (b"", b"yaffjit: interrupted\n", 130)
