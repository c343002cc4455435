"""Records, columns and message types in the hands of other libraries, by the Arrow PyCapsule interface."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_arrow import held, records, row_type

import yaffjit as yj
from yaffjit.columns.arrow import convert

ROWS = 100


@pytest.fixture(params=["yaff", "protobuf"])
def recs(request: pytest.FixtureRequest) -> Any:
    return records(request.param)[:ROWS]


# ---- the interface ----


def test_pyarrow(recs: Any) -> None:
    table = recs.to_arrow()
    assert pa.table(recs) == table
    assert pa.record_batch(recs) == table.to_batches()[0]
    assert pa.array(recs).type == pa.struct(list(table.schema))
    assert pa.array(recs).to_pylist()[3] == table.to_pylist()[3]
    assert pa.RecordBatchReader.from_stream(recs).read_all() == table
    assert pa.table(recs[:0]) == table[:0]
    assert pa.record_batch(recs[:0]).schema == table.schema


def test_a_requested_schema_is_cast_to(recs: Any) -> None:
    columns = recs.columns("price", "number")
    wanted = pa.schema([("price", pa.float64()), ("number", pa.int64())])
    assert pa.table(columns, schema=wanted).schema == wanted
    integers = row_type().arrow_schema(enums="integer")
    names = row_type().arrow_schema()
    text = pa.schema([(f.name, pa.string() if f.name == "colour" else f.type) for f in names])
    assert integers != names
    assert pa.table(recs, schema=text)["colour"].to_pylist() == recs.to_arrow()["colour"].to_pylist()


def test_polars(recs: Any) -> None:
    frame = pl.DataFrame(recs)
    assert frame.equals(recs.to_polars())
    assert frame["id"].to_list() == [message.id for message in held()[:ROWS]]
    leaves = [row and row["leaves"] for row in recs.to_arrow()["branch"].to_pylist()]
    assert [row and row["leaves"] for row in frame["branch"].to_list()] == leaves
    assert frame["count"].null_count() == sum(not message.HasField("count") for message in held()[:ROWS])
    assert frame.schema["seen_at"] == pl.Datetime("ns")
    assert frame["colour"].cast(pl.String).to_list() == recs.to_arrow()["colour"].to_pylist()


def test_duckdb(recs: Any) -> None:
    messages = held()[:ROWS]
    found = duckdb.sql("select sum(price), count(count), count(distinct pick) from recs").fetchall()[0]
    picks = {message.WhichOneof("pick") for message in messages} - {None}
    counts = sum(message.HasField("count") for message in messages)
    assert found == (sum(message.price for message in messages), counts, len(picks))
    words = duckdb.sql("select sum(len(branch.leaves)) from recs where branch is not null").fetchall()[0]
    assert words == (sum(len(message.branch.leaves) for message in messages),)
    columns = recs.columns("id", "name", "seen_at")
    assert columns.rows == ROWS
    assert duckdb.sql("select count(*), max(id) from columns").fetchall()[0] == (ROWS, 2**64 - 1)


def test_pandas(recs: Any) -> None:
    frame = recs.to_pandas()
    assert frame.shape == (ROWS, len(row_type().arrow_schema()))
    few = recs.to_pandas("id", "count", "price", "colour", "pick", "seen_at", "took", "limit", "note")
    assert [str(dtype) for dtype in few.dtypes][:8] == [
        *("uint64", "UInt32", "float64", "category", "category", "datetime64[ns]", "timedelta64[ns]", "Int64")
    ]
    messages = held()[:ROWS]
    assert few["id"].tolist() == [message.id for message in messages]
    assert few["count"].isna().tolist() == [not message.HasField("count") for message in messages]
    assert few["seen_at"].isna().tolist() == [not message.HasField("seen_at") for message in messages]
    assert few["note"].isna().tolist() == [not message.HasField("note") for message in messages]
    picks = [message.WhichOneof("pick") for message in messages]
    assert few["pick"].astype(object).where(few["pick"].notna(), None).tolist() == picks
    assert list(few["colour"].cat.categories) == ["NONE", "RED", "BLUE"]
    if hasattr(pd.DataFrame, "from_arrow"):  # pandas 3
        assert pd.DataFrame.from_arrow(recs)["id"].tolist() == [message.id for message in messages]


def test_numpy(recs: Any) -> None:
    made = recs.to_numpy("id", "name", "seen_at")
    assert made.dtype.names == ("id", "name", "seen_at")
    assert made["id"].tolist() == [message.id for message in held()[:ROWS]]
    assert np.isnat(made["seen_at"]).tolist() == [not m.HasField("seen_at") for m in held()[:ROWS]]


def test_columns(recs: Any) -> None:
    columns = recs.columns("id", "name", "colours", "weights", "seen_at")
    table = columns.to_arrow()
    assert pa.table(columns) == table
    assert pa.record_batch(columns).num_rows == ROWS
    assert pa.array(columns).field("id").to_pylist() == columns["id"].tolist()
    empty = recs[:0].columns("id", "name", "seen_at")
    assert pa.record_batch(empty).schema == empty.to_arrow().schema
    frame = columns.to_polars()
    assert frame["name"].to_list() == list(columns["name"])
    assert frame["seen_at"].null_count() == int(np.isnat(columns["seen_at"]).sum())
    assert frame["weights"].len() == ROWS
    assert pl.Series(columns).struct.unnest().equals(frame)  # DataFrame(columns) takes them for a dict


@pytest.mark.parametrize(("library", "method"), [("pandas", "to_pandas"), ("polars", "to_polars")])
def test_a_library_that_is_not_there(
    library: str, method: str, recs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    for holder in (recs, recs.columns("id")):
        with pytest.raises(ImportError, match=f"^{method} needs {library}: pip install {library}$"):
            getattr(holder, method)()


def test_records_are_no_payloads(recs: Any) -> None:
    with pytest.raises(TypeError, match=r"^payloads must be bytes, and these are Records already$"):
        yj.records(row_type(), recs)


# ---- streams ----


def test_a_stream_makes_a_batch_when_it_is_asked_for(recs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    gathered = convert.gathered

    def noted(part: Any, *others: Any) -> Any:
        asked.append(len(part))
        return gathered(part, *others)

    monkeypatch.setattr(convert, "gathered", noted)
    reader = recs.arrow_reader(rows=30)
    assert asked == []
    assert reader.read_next_batch().num_rows == 30
    assert asked == [30]
    assert reader.read_all() == recs.to_arrow()[30:]
    assert asked[:4] == [30, 30, 30, 10]
    with pytest.raises(ValueError, match=r"^a batch has at least 1 row, not 0$"):
        recs.arrow_reader(rows=0)


def test_an_index_is_read_a_batch_at_a_time(tmp_path: Path) -> None:
    """What lies behind the first batch isn't even checked."""
    path = tmp_path / "rows.arrow"
    payloads = [message.SerializeToString() for message in held()[:ROWS]]
    yj.build_index(path, row_type(), payloads + [b"\x08\x05"] * 80_000)
    index = yj.open_index(path, verify="batch")
    whole = index[:1000].to_arrow()
    raw = bytearray(path.read_bytes())
    raw[raw.rindex(row_type().encode({"id": 5}))] ^= 255
    damaged = tmp_path / "damaged.arrow"
    damaged.write_bytes(raw)
    reader = yj.open_index(damaged, verify="batch").arrow_reader()
    first = reader.read_next_batch()
    assert first.num_rows == 65_536
    assert pa.Table.from_batches([first])[:1000] == whole
    with pytest.raises(Exception, match="batch 1"):
        reader.read_next_batch()
    assert pl.DataFrame(index[:ROWS]).equals(pl.DataFrame(whole[:ROWS]))


# ---- Parquet ----


def test_parquet_and_back(recs: Any, tmp_path: Path) -> None:
    table = recs.to_arrow(
        ["id", "name", "colour", "branch", "branches", "weights", "seen_at", "leaf", "pick"]
    )
    path = tmp_path / "rows.parquet"
    pq.write_table(table, path)
    assert pq.read_table(path) == table


class Counted(io.FileIO):
    """A file that counts what is read of it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.nbytes = 0

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(-1 if size is None else size)
        self.nbytes += len(found or b"")
        return found or b""

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(buffer) or 0
        self.nbytes += count
        return count


@pytest.mark.parametrize("writer", ["polars", "duckdb"])
def test_a_column_of_messages_that_another_tool_wrote(writer: str, tmp_path: Path) -> None:
    messages = held()[:ROWS]
    payloads = [message.SerializeToString() for message in messages]
    noise = np.random.default_rng(3).bytes(2_000_000)
    others = [noise[i * 20_000 : (i + 1) * 20_000] for i in range(ROWS)]
    path = tmp_path / "table.parquet"
    frame = pl.DataFrame({"before": others, "message": payloads, "behind": others[::-1]})
    if writer == "polars":
        frame.write_parquet(path)
    else:
        duckdb.sql("select * from frame").write_parquet(str(path))
    assert path.stat().st_size > 4_000_000
    for column in (
        pl.read_parquet(path, columns=["message"])["message"],
        pq.read_table(path, columns=["message"])["message"],
    ):
        recs = yj.records(row_type(), column, representation="protobuf")
        assert recs.to_arrow() == records("protobuf")[:ROWS].to_arrow()
    file = Counted(path)
    read = list(yj.read_parquet(file, "message"))
    assert read == payloads
    assert file.nbytes < 300_000
