"""The command line, as a person types it: what it prints, its errors and exit codes."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from cache_copy import copy_kernels
from google.protobuf import text_format
from pyarrow import parquet

import yaffjit as yj
from yaffjit.cli import main
from yaffjit.demo import SCHEMA_FILE, banners

ROOT = Path(__file__).parents[1]
ROWS = 300
COMMANDS = ("build", "show", "columns", "layout", "verify", "demo", "warm")

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ads.proto, banners.pb and banners.arrow."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "ads.proto").write_bytes(SCHEMA_FILE.read_bytes())
    Banner = yj.load_schema(folder / "ads.proto")["ads.Banner"]
    yj.write_delimited(folder / "banners.pb", banners(Banner.message_class, ROWS))
    yj.build_index(folder / "banners.arrow", Banner, yj.read_delimited(folder / "banners.pb"))
    return folder


@pytest.fixture(autouse=True)
def in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def run(capsys: Capture, *arguments: str, code: int = 0) -> tuple[str, str]:
    """Exit code checked; standard output and standard error."""
    assert main(arguments) == code
    printed = capsys.readouterr()
    return printed.out, printed.err


def fails(capsys: Capture, *arguments: str) -> str:
    """The one line on standard error of a command that fails."""
    out, err = run(capsys, *arguments, code=1)
    assert out == ""
    assert "Traceback" not in err
    assert err.startswith("yaffjit: error: ")
    return err.removeprefix("yaffjit: error: ").rstrip("\n")


def process(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "yaffjit", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, **options)  # type: ignore[call-overload,no-any-return]


def test_version() -> None:
    done = process("--version")
    assert (done.stdout, done.returncode) == (f"yaffjit {yj.__version__}\n", 0)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples(command: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "-h"])
    assert stop.value.code == 0
    assert f"examples:\n  yaffjit {command}" in capsys.readouterr().out


def test_help_names_all_commands_and_exit_codes(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["-h"])
    out = capsys.readouterr().out
    assert all(f"\n    {command} " in out for command in COMMANDS)
    assert "exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted" in out


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, yaffjit.cli\n"
        "try: yaffjit.cli.main(['-h'])\n"
        "except SystemExit: pass\n"
        "heavy = ('numpy', 'numba', 'pyarrow', 'google.protobuf', 'grpc_tools')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["sing"], "invalid choice: 'sing'"),
        (["show", "banners.arrow"], "name the rows, or say --where, and not both"),
        (["show", "banners.arrow", "first"], "argument ROW: not a whole number: 'first'"),
        (["build", "ads.proto", "ads.Banner", "banners.pb"], "required: --output/-o"),
        (["build", "a", "b", "c", "-o", "d", "--layout", "round"], "invalid choice: 'round'"),
        (["demo", "--rows", "0"], "argument --rows: at least one row is needed"),
        (["demo", "--rows", "many"], "argument --rows: not a whole number: 'many'"),
    ],
)
def test_wrong_usage(arguments: list[str], complaint: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert complaint in capsys.readouterr().err


def test_build_show_and_verify(capsys: Capture, tmp_path: Path) -> None:
    index = str(tmp_path / "two.arrow")
    out, err = run(capsys, "build", "ads.proto", "ads.Banner", "banners.pb", "banners.pb", "-o", index)
    nbytes = Path(index).stat().st_size
    first_line, *lines = out.splitlines()
    assert (first_line, err) == (f"{index}: {2 * ROWS} ads.Banner messages, {nbytes:,} bytes", "")
    read = 2 * sum(map(len, yj.read_delimited("banners.pb")))
    assert lines[0] == f"  {100 * nbytes / read:.0f}% of {read:,} bytes of protobuf messages"
    assert re.fullmatch(r"  \d+\.\d s, [\d,]+ messages a second", lines[1])
    first = next(banners(yj.load_schema("ads.proto")["ads.Banner"].message_class, 1))
    for row in ("0", str(ROWS), str(-2 * ROWS)):
        shown, _ = run(capsys, "show", index, row)
        assert text_format.Parse(shown, type(first)()) == first
    shown, _ = run(capsys, "show", index, "0", "--json")
    assert json.loads(shown)["id"] == str(first.id)  # type: ignore[attr-defined]
    out, _ = run(capsys, "verify", index)
    assert out == f"{index}: {2 * ROWS} ads.Banner messages, all well-formed\n"


def test_build_sparse(capsys: Capture, tmp_path: Path) -> None:
    index = str(tmp_path / "sparse.arrow")
    run(capsys, "build", "ads.proto", "ads.Banner", "banners.pb", "-o", index, "--layout", "sparse")
    Banner = yj.load_schema("ads.proto")["ads.Banner"]
    first = next(banners(Banner.message_class, 1))
    assert yj.open_index(index).payload(0) == Banner.encode(first, layout="sparse")


def test_build_with_includes_and_slice(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "part.proto").write_text(
        'syntax = "proto3"; package p; message Part { int32 n = 1; }'
    )
    (tmp_path / "whole.proto").write_text(
        'syntax = "proto3"; package w; import "part.proto"; import "yaff/proto/options.proto";\n'
        'message Whole { option (yaff.proto.message) = {slice_name: "thin"};\n'
        "  p.Part part = 1 [(yaff.proto.field) = {id: 1}];\n"
        "  int32 n = 2 [(yaff.proto.field) = {id: 1}]; }"
    )
    (tmp_path / "empty.pb").write_bytes(b"\x02\x10\x05")
    schema, messages = str(tmp_path / "whole.proto"), str(tmp_path / "empty.pb")
    index = str(tmp_path / "whole.arrow")
    options = ("-I", str(tmp_path / "deep"), "--slice", "thin")
    run(capsys, "build", schema, "w.Whole", messages, "-o", index, *options)
    assert run(capsys, "show", index, "0")[0] == "n: 5\n"
    assert "'part': p.Part isn't in slice 'thin'." in run(capsys, "layout", schema, "w.Whole", *options)[0]


def test_columns_to_standard_output(capsys: Capture) -> None:
    done = process("columns", "banners.arrow", "id", "stats.ctr")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    index = yj.open_index("banners.arrow")
    assert [int(row["id"]) for row in rows] == [banner.id for banner in index]
    assert [float(row["stats.ctr"]) for row in rows] == [banner.stats.ctr for banner in index]


@pytest.mark.parametrize(
    ("suffix", "read"),
    [
        (".parquet", parquet.read_table),
        (".arrow", lambda path: pa.ipc.open_file(path).read_all()),
        (".feather", lambda path: pa.ipc.open_file(path).read_all()),
    ],
)
def test_columns_to_a_file(
    suffix: str, read: Callable[[str], pa.Table], capsys: Capture, tmp_path: Path
) -> None:
    path = str(tmp_path / f"out{suffix}")
    out, err = run(capsys, "columns", "banners.arrow", "id", "price", "state", "-o", path)
    assert (out, err) == ("", f"yaffjit: wrote {ROWS} rows of 3 columns to {path}\n")
    expected = yj.open_index("banners.arrow").columns("id", "price", "state").to_arrow()
    assert read(path).equals(expected)


def test_columns_of_any_path(capsys: Capture, tmp_path: Path) -> None:
    """The same language as in Python, whatever the file."""
    paths = ("title", "tags", "weights", "state:category", "len(tags)", "tags[0]", "contact", "geo.*")
    for suffix, read in (
        (".parquet", parquet.read_table),
        (".arrow", lambda path: pa.ipc.open_file(path).read_all()),
    ):
        path = str(tmp_path / f"any{suffix}")
        run(capsys, "columns", "banners.arrow", *paths, "-o", path)
        expected = yj.open_index("banners.arrow").columns(*paths).to_arrow()
        assert read(path).to_pylist() == expected.to_pylist()
    out, _ = run(capsys, "columns", "banners.arrow", "title", "state:category", "geo.city", "len(tags)")
    rows = list(csv.DictReader(io.StringIO(out)))
    banners = yj.open_index("banners.arrow")
    assert [row["title"] for row in rows] == [banner.title for banner in banners]
    assert [row["len(tags)"] for row in rows] == [str(len(banner.tags)) for banner in banners]
    assert {row["state:category"] for row in rows} <= {
        "STATE_ACTIVE",
        "STATE_PAUSED",
        "STATE_ARCHIVED",
        "STATE_UNKNOWN",
    }


def test_csv_has_no_lists(capsys: Capture) -> None:
    for path, kind in (("tags", "list of text"), ("weights", "list of float32")):
        assert fails(capsys, "columns", "banners.arrow", "id", path) == (
            f"column {path!r} is a {kind}, for which CSV has no form: write .parquet or .arrow, "
            "or name one element or len() of it"
        )
    assert "doesn't fit: float64 holds all integers only up to" in fails(
        capsys, "columns", "banners.arrow", "id:float64"
    )


def test_columns_to_a_csv_file(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    run(capsys, "columns", "banners.arrow", "daily_limit", "--output", str(path))
    lines = path.read_text().splitlines()
    assert lines[0] == '"daily_limit"'
    assert len(lines) == 1 + ROWS


def test_layout_of_a_message_and_of_a_schema(capsys: Capture) -> None:
    out, _ = run(capsys, "layout", "ads.proto", "ads.Banner")
    assert out.startswith("ads.Banner: dynamic layout, 15 fields, ids 1 to 15, slots of 76 bytes\n")
    out, _ = run(capsys, "layout", "ads.proto")
    assert [line.split()[:2] for line in out.splitlines()[2:]] == [
        ["ads.Stats", "dynamic"],
        ["ads.Geo", "dynamic"],
        ["ads.Banner", "dynamic"],
    ]


def test_layout_of_what_cant_be_held(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "far.proto"
    path.write_text('syntax = "proto3"; message Far { int32 n = 9000; }')
    assert (
        "can't be held: Far: field n has id 9000, the highest is 8190" in run(capsys, "layout", str(path))[0]
    )
    assert fails(capsys, "layout", str(path), "Far") == (
        "YaFF can't hold Far: field n has id 9000, the highest is 8190"
    )


def test_verify_a_single_buffer(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "banner.yaff"
    buf = yj.load_schema("ads.proto")["ads.Banner"].encode({"id": 7, "title": "violin"})
    path.write_bytes(buf)
    named = ("verify", str(path), "--schema", "ads.proto", "--message", "ads.Banner")
    out, _ = run(capsys, *named)
    assert out == f"{path}: a well-formed ads.Banner of {len(buf)} bytes\n"
    path.write_bytes(buf[:-3])
    assert fails(capsys, *named).startswith("ads.Banner")
    assert fails(capsys, "verify", str(path)) == (
        f"{path} isn't an index file; if it holds one message, give --schema and --message"
    )


def test_errors_are_one_line_each(capsys: Capture, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    assert fails(capsys, "show", "banners.arrow", "300") == "row 300 is out of range: there are 300 rows"
    assert fails(capsys, "columns", "banners.arrow", "stats.ctn").endswith("(did you mean 'ctr'?)")
    assert fails(capsys, "columns", "banners.arrow", "id", "-o", "out.xls") == (
        "out.xls: the suffix must be one of .csv, .parquet, .arrow, .feather"
    )
    assert "No such file or directory" in fails(capsys, "verify", missing)
    assert "missing" in fails(capsys, "show", missing, "0")
    assert "missing" in fails(capsys, "layout", missing)
    assert "missing" in fails(capsys, "build", "ads.proto", "ads.Banner", missing, "-o", "out.arrow")
    assert "missing" in fails(capsys, "columns", "banners.arrow", "id", "-o", f"{missing}/out.parquet")
    assert fails(capsys, "build", "ads.proto", "ads.Banne", "banners.pb", "-o", "out.arrow") == (
        "the schema has no message 'ads.Banne' (did you mean 'ads.Banner', 'ads.Geo'?)"
    )
    assert not Path("out.arrow").exists()


def test_build_says_what_isnt_a_delimited_file(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "cut.pb"
    path.write_bytes(Path("banners.pb").read_bytes()[:-1])
    output = str(tmp_path / "out.arrow")
    said = fails(capsys, "build", "ads.proto", "ads.Banner", str(path), "-o", output)
    assert f"{path}: record {ROWS - 1} at byte " in said and " bytes, but " in said
    assert not Path(output).exists()


def test_build_names_the_file_of_a_message(capsys: Capture, tmp_path: Path) -> None:
    bad, cut, output = (str(tmp_path / name) for name in ("bad.pb", "cut.pb", "out.arrow"))
    yj.write_delimited(bad, [b"", b"\x08"])  # a field without its value
    Path(cut).write_bytes(b"\x05\x08")
    build = ("build", "ads.proto", "ads.Banner", "banners.pb")
    said = fails(capsys, *build, bad, "banners.pb", "-o", output)
    fault = "ads.Banner, field id: a varint doesn't end within the 0 bytes that are left at byte 1"
    assert said == f"{bad}: record 1 at byte 1: {fault}"
    assert fails(capsys, *build, cut, "-o", output) == (
        f"{cut}: record 0 at byte 0 claims 5 bytes, but 1 are left"
    )


@pytest.mark.slow
def test_warm_compiles_what_the_next_process_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = process("warm")  # where all tests find it
    assert (done.stderr, done.returncode) == ("", 0)
    assert len(done.stdout.splitlines()) == 6
    kernels = copy_kernels(tmp_path)
    gone = list(kernels.glob("frames.*"))
    assert gone
    for file in gone:
        file.unlink()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for how in ("compiled", "there already, loaded"):
        done = process("warm", "ads.proto", "ads.Banner", "id", "stats.ctr", "id")
        assert (done.stderr, done.returncode) == ("", 0)
        verifier, floats, frames, transcoder, *others = done.stdout.splitlines()
        universal, views, columns, presence = others
        found = "there already, loaded"
        time, folder = r"\d+\.\d s, in ", f"{re.escape(str(tmp_path))}/"
        assert re.fullmatch(f"the verifier: {found} in {time}{folder}kernels_.*", verifier)
        assert re.fullmatch(f"the text of floats: {how} in {time}{folder}jit_.*", floats)
        assert re.fullmatch(f"what splits files of messages: {how} in {time}{folder}kernels_.*", frames)
        assert re.fullmatch(f"the transcoder: {found} in {time}{folder}kernels_.*", transcoder)
        documents = "what writes and reads universal documents"
        assert re.fullmatch(f"{documents}: {found} in {time}{folder}kernels_.*", universal)
        opening = "what opens views of protobuf bytes"
        assert re.fullmatch(f"{opening}: {found} in {time}{folder}kernels_.*", views)
        assert re.fullmatch(
            f"columns id, stats.ctr of ads.Banner: {how} in {time}{folder}columns_.*", columns
        )
        assert re.fullmatch(
            f"presence of id, stats.ctr of ads.Banner: {how} in {time}{folder}columns_.*", presence
        )
    code = (
        "import yaffjit as yj\n"
        "from yaffjit.codec import transcode\n"
        "kernel = transcode.work.load()\n"
        "columns = yj.open_index('banners.arrow').columns('id', 'stats.ctr')\n"
        "print(columns.rows, *[len(columns.present(path)) for path in columns])\n"
        "from yaffjit.jit.columns.loops import measure\n"
        "from yaffjit.jit.floats import text_of\n"
        "print(text_of(0.1))\n"
        "from yaffjit.codec import verify\n"
        "verify._loaded.load()\n"
        "verifier = verify._loaded.kernel\n"
        "loaded = (measure, text_of, kernel.run, verifier.check_one, verifier.check_rows)\n"
        "print([(len(f.stats.cache_hits), len(f.stats.cache_misses)) for f in loaded])"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (
        f"{ROWS} {ROWS} {ROWS}\n0.1\n[(3, 0), (1, 0), (1, 0), (1, 0), (1, 0)]\n",
        "",
    )


def test_warm_says_what_it_cannot_do(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fails(capsys, "warm", "ads.proto") == (
        "warm: name the columns that will be read, after the schema and the message type"
    )
    assert fails(capsys, "warm", "ads.proto", "ads.Banner", "stats.ctn").endswith("(did you mean 'ctr'?)")
    monkeypatch.setattr("numba.config.DISABLE_JIT", 1)
    assert fails(capsys, "warm") == "nothing is compiled where NUMBA_DISABLE_JIT is set"


def test_protocs_own_lines(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "bad.proto"
    path.write_text('syntax = "proto3";\nmessage M { int32 n = ; }\n')
    assert "bad.proto:2:23" in fails(capsys, "layout", str(path))


def test_interrupted(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("yaffjit.open_index", interrupted)
    assert run(capsys, "show", "banners.arrow", "0", code=130) == ("", "yaffjit: interrupted\n")


def test_reader_that_goes_away() -> None:
    command = [sys.executable, "-m", "yaffjit", "columns", "banners.arrow", *["id", "price", "stats.ctr"]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        done = subprocess.run(
            command, env=environment, stdout=write_end, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(write_end)
    assert (done.returncode, done.stderr) == (141, "")
