"""A malformed message of a file of each form: which record, where in the file and in itself, which field."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from framings import CASES
from pyarrow import ipc, parquet

import yaffjit as yj

SOURCE = """
syntax = "proto3";
package f;
message Inner { string text = 1; }
message Row { int64 id = 1; Inner inner = 2; }
message Page { string title = 1; Group group = 2; }
message Group { repeated Row items = 7; }
"""
GOOD = b"\x08\x07"
BAD = b"\x08\x01\x12\x04\x0a\x02\xffx"  # inner.text isn't UTF-8
FAULT = "f.Row, field inner.text: text isn't UTF-8 from byte 0xff on at byte 6"
ROWS = [GOOD, b"", BAD, GOOD]
BAD_ROW = 2


class Form(NamedTuple):
    """How a file is written and read, and how an error names the bad record, after the file's name."""

    name: str
    write: Callable[[Path], object]
    read: Callable[[Path, Any], Any]
    where: str


def framed(number: int) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(b"".join(map(CASES[number].framed, ROWS)))


def write_field(path: Path) -> None:
    group = b"".join(bytes([7 << 3 | 2, len(row)]) + row for row in ROWS)
    path.write_bytes(b"\x0a\x01t" + bytes([2 << 3 | 2, len(group)]) + group)


def write_arrow(path: Path) -> None:
    table = pa.table({"payload": pa.array(ROWS, pa.binary())})
    with ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, 2)


def write_files(path: Path) -> None:
    path.mkdir()
    for number, row in enumerate(ROWS):
        (path / f"{number}.pb").write_bytes(row)


FORMS = [
    Form("delimited", framed(0), lambda path, _: yj.read_delimited(path), ": record 2 at byte 4"),
    Form("little", framed(1), lambda path, _: yj.read_length_prefixed(path), ": record 2 at byte 10"),
    Form("big", framed(2), lambda path, _: yj.read_length_prefixed(path, "big"), ": record 2 at byte 10"),
    Form("tfrecord", framed(3), lambda path, _: yj.read_tfrecord(path), ": record 2 at byte 34"),
    Form("files", write_files, lambda path, _: yj.read_files(str(path / "*.pb")), "/2.pb"),
    Form(
        "field",
        write_field,
        lambda path, schema: yj.read_field(path, schema["f.Page"], "group.items"),
        ": element 2 of group.items at byte 11",
    ),
    Form(
        "arrow",
        write_arrow,
        lambda path, _: yj.read_arrow(path, "payload"),
        ": row 2 of column 'payload'",
    ),
    Form(
        "parquet",
        lambda path: parquet.write_table(pa.table({"payload": pa.array(ROWS, pa.binary())}), path),
        lambda path, _: yj.read_parquet(path, "payload"),
        ": row 2 of column 'payload'",
    ),
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_where_a_bad_message_is(tmp_path: Path, form: Form) -> None:
    (tmp_path / "f.proto").write_text(SOURCE)
    schema = yj.load_schema(tmp_path / "f.proto")
    path, output = tmp_path / form.name, tmp_path / "x.arrow"
    form.write(path)
    expected = f"{path}{form.where}: {FAULT}"
    for threads in (1, 2):
        with pytest.raises(yj.DecodeError) as caught:
            yj.build_index(output, schema["f.Row"], form.read(path, schema), threads=threads)
        assert str(caught.value) == expected
    assert not output.exists()
    made = yj.build_index(output, schema["f.Row"], form.read(path, schema), on_error="skip")
    assert (made.rows, made.bad, made.errors) == (len(ROWS) - 1, 1, (expected,))
    (batch,) = [batch for batch in form.read(path, schema).batches() if batch.first_number <= BAD_ROW][-1:]
    assert batch.where(BAD_ROW - batch.first_number) == f"{path}{form.where}"
