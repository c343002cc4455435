"""The commands build, append, unpack and layout --sample, over files of all forms."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from framings import CASES
from pyarrow import ipc, parquet

import yaffjit as yj
from yaffjit.cli import main
from yaffjit.codec.layouts import sampled_types

Capture = pytest.CaptureFixture[str]

SOURCE = """
syntax = "proto3";
package w;
message M {
  int64 id = 1; string name = 2; repeated M more = 3; int64 a = 4; int64 b = 5; int64 c = 6; int64 d = 7;
  int32 far = 8; map<string, M> by = 9;
}
message Page { string title = 1; Group group = 2; }
message Group { repeated M items = 7; }
"""
ROWS = 40


def payloads(message_type: Any) -> list[bytes]:
    made = []
    for row in range(ROWS):
        message = message_type.message_class(id=row, name="n" * (row % 5))
        if row % 4 == 0:
            message.far = 1
        if row % 8 == 0:
            message.more.add(id=1)
            message.by["x"].far = 7
        made.append(message.SerializeToString())
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    """The same messages in files of all forms."""
    folder: Path = tmp_path_factory.mktemp("forms")
    (folder / "w.proto").write_text(SOURCE)
    schema = yj.load_schema(folder / "w.proto")
    given = payloads(schema["w.M"])
    for name, case in zip(("delimited", "u32le", "u32be", "tfrecord"), CASES, strict=True):
        (folder / name).write_bytes(b"".join(map(case.framed, given)))
    column = pa.table({"id": range(ROWS), "payload": pa.array(given, pa.binary())})
    parquet.write_table(column, folder / "x.parquet")
    with ipc.new_stream(folder / "x.arrows", column.schema) as writer:
        writer.write_table(column)
    for row, payload in enumerate(given):
        (folder / f"{row:02}.pb").write_bytes(payload)
    page = schema["w.Page"].message_class(title="t")
    for payload in given:
        page.group.items.add().ParseFromString(payload)
    (folder / "page").write_bytes(page.SerializeToString())
    yj.build_index(folder / "expected.arrow", schema["w.M"], given)
    return folder


@pytest.fixture(autouse=True)
def in_folder(folder: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(folder)


def run(capsys: Capture, *arguments: object) -> str:
    assert main([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def fails(capsys: Capture, *arguments: object) -> str:
    assert main([str(argument) for argument in arguments]) == 1
    return capsys.readouterr().err.removeprefix("yaffjit: error: ").rstrip("\n")


def misused(capsys: Capture, *arguments: object) -> str:
    with pytest.raises(SystemExit):
        main([str(argument) for argument in arguments])
    return capsys.readouterr().err.splitlines()[-1].partition(": error: ")[2]


@pytest.mark.parametrize(
    ("framing", "name"),
    [
        ("delimited", "delimited"),
        ("u32le", "u32le"),
        ("u32be", "u32be"),
        ("tfrecord", "tfrecord"),
        ("files", "*.pb"),
        ("parquet:payload", "x.parquet"),
        ("arrow:payload", "x.arrows"),
        ("field:w.Page.group.items", "page"),
    ],
)
def test_framings(capsys: Capture, tmp_path: Path, framing: str, name: str) -> None:
    one, grown = tmp_path / "x.arrow", tmp_path / "grown"
    run(capsys, "build", "w.proto", "w.M", name, "-o", one, "--framing", framing, "--threads", 2)
    assert one.read_bytes() == Path("expected.arrow").read_bytes()
    out = run(capsys, "build", "w.proto", "w.M", name, name, "-o", grown, "--framing", framing)
    assert out.startswith(f"{grown}: {2 * ROWS} w.M messages, ")
    assert run(capsys, "append", grown, name, "--framing", framing).startswith(
        f"{grown}: {ROWS} messages more, "
    )
    assert [view.id for view in yj.open_index(grown)] == 3 * list(range(ROWS))


def test_framings_that_make_no_sense(capsys: Capture) -> None:
    build = ("build", "w.proto", "w.M", "page", "-o", "no.arrow", "--framing")
    known = "delimited, tfrecord, u32le, u32be, files, parquet:COLUMN, arrow:COLUMN, field:MESSAGE.PATH"
    known += ", universal:MESSAGE"
    start = "argument --framing: "
    assert misused(capsys, *build, "csv") == f"{start}unknown framing 'csv'; known: {known}"
    assert misused(capsys, *build, "files:x") == f"{start}unknown framing 'files:x'; known: {known}"
    assert misused(capsys, *build, "arrow") == f"{start}'arrow' lacks a name, as arrow:COLUMN has it"
    assert misused(capsys, *build, "field:") == f"{start}'field:' lacks a name, as field:MESSAGE.PATH has it"
    assert fails(capsys, *build, "field:x.Page.items") == (
        "'x.Page.items' doesn't begin with a message type, as field:ads.Page.items would"
    )
    assert fails(capsys, *build, "field:w.Page.group.item") == (
        "w.Group has no field 'item' (did you mean 'items'?)"
    )
    assert not Path("no.arrow").exists()


def test_what_becomes_of_bad_messages(capsys: Capture, tmp_path: Path) -> None:
    bad, output = tmp_path / "bad.pb", tmp_path / "x.arrow"
    bad.write_bytes(Path("delimited").read_bytes() + b"\x01\x08\x00\x03\xf8\x06\x01")
    position = Path("delimited").stat().st_size
    fault = f"{bad}: record {ROWS} at byte {position}: w.M, field id: a varint doesn't end within the 0 bytes"
    build = ("build", "w.proto", "w.M", "delimited", bad, "-o", output)
    assert fails(capsys, *build).startswith(fault)
    for how, rows in (("skip", 2 * ROWS + 2), ("null", 2 * ROWS + 3)):
        out = run(capsys, *build, "--on-error", how).splitlines()
        assert out[0] == f"{output}: {rows} w.M messages, {output.stat().st_size:,} bytes"
        assert out[2] == "  unknown fields and extensions not carried: w.M #111 (1)"
        assert ("  null rows: 1" in out) == (how == "null")
        assert out[-3] == "  bad messages: 1"
        assert out[-2].startswith(f"    {fault}")
        assert re.fullmatch(r"  \d+\.\d s, [\d,]+ messages a second", out[-1])
        assert len(yj.open_index(output)) == rows


def test_layouts_are_counted(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    out = run(capsys, "build", "w.proto", "w.M", "delimited", "-o", path, "--layout", "smallest")
    index = yj.open_index(path)
    flat = sum(index.payload(row) == index.message_type.encode(view) for row, view in enumerate(index))
    assert 0 < flat < ROWS
    assert f"  layouts: {flat} flat, {ROWS - flat} sparse" in out.splitlines()


def test_memory(capsys: Capture, tmp_path: Path, monkeypatch: Any) -> None:
    found: list[int] = []
    real = yj.build_index

    def noted(*args: Any, **options: Any) -> Any:
        found.append(options["memory"])
        return real(*args, **options)

    monkeypatch.setattr(yj, "build_index", noted)
    build = ("build", "w.proto", "w.M", "delimited", "-o", tmp_path / "x.arrow")
    for options in (
        (),
        ("--memory", "1000"),
        ("--memory", "64k"),
        ("--memory", "300MiB"),
        ("--memory", "2G"),
    ):
        run(capsys, *build, *options)
    assert found == [512 << 20, 1000, 64 << 10, 300 << 20, 2 << 30]
    for text in ("0", "-1", "much", "1.5G", "5T"):
        said = misused(capsys, *build, f"--memory={text}")
        assert said == f"argument --memory: not a number of bytes, as 512M: {text!r}"


def test_packed_indexes(capsys: Capture, tmp_path: Path) -> None:
    packed, unpacked = tmp_path / "packed.arrow", tmp_path / "unpacked.arrow"
    run(capsys, "build", "w.proto", "w.M", "delimited", "-o", packed, "--compression", "zstd")
    assert (
        run(capsys, "verify", packed)
        == f"{packed}: {ROWS} w.M messages, compressed (zstd), all well-formed\n"
    )
    said = fails(capsys, "show", packed, 0)
    assert said.startswith(f"{packed} is compressed (zstd), so it can't be read in place: ")
    command = said.split("`")[1].replace("OUTPUT", str(unpacked)).split()
    assert command[0] == "yaffjit"
    nbytes = Path("expected.arrow").stat().st_size
    assert run(capsys, *command[1:]) == f"{unpacked}: {ROWS} messages, {nbytes:,} bytes\n"
    assert unpacked.read_bytes() == Path("expected.arrow").read_bytes()
    assert fails(capsys, "unpack", packed, "-o", packed).endswith("so it can't be written by it")
    run(capsys, "build", "w.proto", "w.M", "delimited", "-o", tmp_path / "d", "--compression", "lz4")
    run(capsys, "unpack", tmp_path / "d", "-o", tmp_path / "e")
    assert [view.id for view in yj.open_index(tmp_path / "e")] == list(range(ROWS))


# --- which layout suits ---


def test_a_sample_is_measured(capsys: Capture) -> None:
    out = run(capsys, "layout", "w.proto", "w.M", "--sample", "delimited").splitlines()
    message_type = yj.load_schema("w.proto")["w.M"]
    given = payloads(message_type)
    messages = [message_type.message_class.FromString(payload) for payload in given]
    assert out[0] == f"{ROWS} messages of w.M, {sum(map(len, given))} bytes of protobuf"
    rows = {line.split()[0]: line.split() for line in out[4:8]}
    sizes = {
        layout: [len(message_type.encode(message, layout)) for message in messages]
        for layout in ("flat", "sparse", "auto")
    }
    for layout, found in sizes.items():
        assert int(rows[layout][1].replace(",", "")) == sum(found)
    smallest = sum(min(pair) for pair in zip(sizes["flat"], sizes["sparse"], strict=True))
    assert int(rows["smallest"][1].replace(",", "")) == smallest
    shares = [100 * sum(s < f - 0.1 * f for f, s in zip(sizes["flat"], sizes["sparse"], strict=True)) / ROWS]
    shares += [100 * sum(s < f for f, s in zip(sizes["flat"], sizes["sparse"], strict=True)) / ROWS]
    assert [rows["auto"][3], rows["smallest"][3]] == [f"{share:.1f}%" for share in shares]
    assert out[9].split(":")[0] in ("flat", "sparse", "auto")
    assert len([line for line in out if line.startswith("w.M ")]) == 1


def test_a_sample_of_other_files(capsys: Capture) -> None:
    whole = run(capsys, "layout", "w.proto", "w.M", "--sample", "delimited")
    sample = ("layout", "w.proto", "w.M", "--sample")
    assert run(capsys, *sample, "x.parquet", "--framing", "parquet:payload") == whole
    assert run(capsys, *sample, "delimited", "--rows", 3).startswith("3 messages of w.M, ")
    assert misused(capsys, "layout", "w.proto", "--sample", "delimited") == "--sample needs the MESSAGE"
    assert fails(capsys, *sample, "u32be").startswith("u32be: not varint-delimited: ")


def test_types_of_a_sample(tmp_path: Path) -> None:
    message_type = yj.load_schema("w.proto")["w.M"]
    make = message_type.message_class
    few = [make(), make(id=5), make(far=1), make(name="n", more=[{"id": 1}])]
    (found,) = sampled_types(message_type.plan, few)
    assert (found.name, found.layout, found.fields, found.messages, found.set) == ("w.M", "dynamic", 9, 5, 5)
    # Without text and lists the buffers are the messages themselves, after 4 bytes.
    for layout, nbytes in (("flat", found.flat_nbytes), ("sparse", found.sparse_nbytes)):
        plain = sum(len(message_type.encode(message, layout)) - 4 for message in few[:3])
        last = len(message_type.encode(few[3], layout)) - 4 - (4 + 1 + 1) - (4 + 4)  # "n", an offset
        assert nbytes == plain + last


def test_types_by_their_layouts(capsys: Capture, tmp_path: Path) -> None:
    text = 'syntax = "proto3"; package g; import "yaff/proto/options.proto";'
    text += (
        "message Gap { int32 a = 1; int32 b = 3; Fix fix = 4; Thin thin = 5; map<int32, Thin> thins = 6; }"
    )
    text += "message Fix { option (yaff.proto.message) = {layout: LAYOUT_FIXED}; int32 a = 1; }"
    text += "message Thin { option (yaff.proto.message) = {layout: LAYOUT_SPARSE}; int32 a = 1; }"
    (tmp_path / "g.proto").write_text(text)
    message_type = yj.load_schema(tmp_path / "g.proto")["g.Gap"]
    message = {"a": 1, "b": 2, "fix": {"a": 1}, "thin": {"a": 3}, "thins": {1: {}, 2: {"a": 1}}}
    proto = message_type.decode(message_type.encode(message))
    yj.write_delimited(tmp_path / "x.pb", [proto] * 2)
    out = run(capsys, "layout", tmp_path / "g.proto", "g.Gap", "--sample", tmp_path / "x.pb").splitlines()
    nbytes = 2 * len(message_type.encode(message))
    assert [line.split()[1] for line in out[4:8]] == [f"{nbytes}"] * 4
    assert out[9] == "Any: all take the same."
    lines = {line.split()[0]: line for line in out if line.startswith("g.")}
    assert lines["g.Gap"].endswith("always sparse: its ids have gaps")
    assert lines["g.Fix"].endswith("fixed: all its fields have room in it")
    assert lines["g.Thin"].endswith("sparse by its schema")
    assert lines["g.Thin"].split()[2:6] == ["6", "0.7", "of", "1"]
