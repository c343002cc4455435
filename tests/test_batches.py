"""Functions of Arrow batches, and the data set for PyTorch, by the protocols that other engines have."""

from __future__ import annotations

import logging
import multiprocessing
import pickle
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import yaffjit as yj
from yaffjit.demo import SCHEMA_FILE, banners
from yaffjit.interop.batches import ROW_KEY, SHARD_KEY, BatchError
from yaffjit.interop.torch import Batch, ColumnsDataset

Banner = yj.load_schema(SCHEMA_FILE)["ads.Banner"]
ROWS = 200
MESSAGES = list(banners(Banner.message_class, ROWS))


def worth(banner: Any) -> Any:
    return banner.price * banner.stats.ctr if banner.HasField("stats") else None


def strict(banner: Any) -> Any:
    if banner.id == 3:
        raise ValueError("three")
    return banner.id, banner.title


def expected() -> list[float | None]:
    return [worth(message) for message in MESSAGES]


@pytest.fixture(scope="module")
def table() -> Any:
    raw = pa.array([message.SerializeToString() for message in MESSAGES], pa.binary())
    return pa.table({"message": raw, "label": np.arange(ROWS)})


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("batches") / "banners.arrow"
    yj.build_index(path, Banner, MESSAGES, columns={"label": np.arange(ROWS)})
    return yj.open_index(path)


def test_a_function_over_batches(table: Any) -> None:
    add = yj.batches.map(worth, Banner, to="worth")
    out = add(table)
    assert out.column_names == ["label", "worth"]
    assert out["worth"].to_pylist() == expected()
    (batch,) = table.to_batches()
    assert add(batch).equals(out.to_batches()[0])
    streamed = pa.Table.from_batches(add.stream(table.to_batches(max_chunksize=64)))
    assert streamed.equals(out)
    kept = yj.batches.map(worth, Banner, keep=True)(table)
    assert kept.column_names == ["message", "label", "worth"]
    assert yj.batches.map(worth, Banner, to="label")(table).column_names == ["label"]


def test_columns_over_batches(table: Any) -> None:
    out = yj.batches.columns(Banner, ["id", "stats.ctr", "tags"])(table)
    recs = yj.records(Banner, table["message"], representation="protobuf")
    assert out.drop_columns(["label"]).equals(recs.to_arrow(["id", "stats.ctr", "tags"]).combine_chunks())


def test_an_index_says_how_its_messages_are_encoded(index: Any) -> None:
    with pa.ipc.open_file(index.path) as file:
        table = file.read_all()
    out = yj.batches.columns(Banner, "id")(table)
    assert out["id"].to_pylist() == [message.id for message in MESSAGES]


def test_pickles_are_one_function_in_a_process(table: Any) -> None:
    add = yj.batches.map(worth, Banner)
    first, second = (pickle.loads(pickle.dumps(add)) for _ in range(2))
    assert first is second
    assert first(table).equals(add(table))


# ---- rows that can't be read ----


def bad_table() -> Any:
    raw = [b"\x08\x01", b"\xff", None, b"\x08\x03", b"\x2a\x05abc", b"\x08\x05"]
    located = {SHARD_KEY: b"part-3.arrow", ROW_KEY: b"65536"}
    return pa.table({"message": pa.array(raw, pa.large_binary())}).replace_schema_metadata(located)


def test_bad_rows_name_shard_and_row() -> None:
    with pytest.raises(BatchError) as caught:
        yj.batches.columns(Banner, "id")(bad_table())
    assert str(caught.value).startswith("part-3.arrow, row 65,537, row 1 of its batch: ")
    assert isinstance(caught.value.__cause__, yj.DecodeError)
    with pytest.raises(yj.DecodeError, match=r"row 1: ads.Banner"):
        yj.batches.columns(Banner, "id")(bad_table().replace_schema_metadata(None))
    with pytest.raises(BatchError, match=r"^part-3.arrow, row 65,539, row 3 of its batch: .*three"):
        yj.batches.map(strict, Banner, to=("id", "title"))(bad_table().take([0, 0, 0, 3]))


def test_bad_rows_become_null_or_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "yaffjit"):
        out = yj.batches.map(strict, Banner, to=("id", "title"), on_error="null")(bad_table())
    assert out["id"].to_pylist() == [1, None, None, None, None, 5]
    assert "3 of 6 rows can't be read: part-3.arrow, row 65,537, row 1 of its batch: " in caplog.text
    out = yj.batches.map(strict, Banner, to=("id", "title"), on_error="skip")(bad_table())
    assert out["id"].to_pylist() == [1, None, 5]  # a null row isn't an error


def test_wrong_uses(table: Any) -> None:
    with pytest.raises(KeyError, match=r"no column 'payload'; its columns are \['message', 'label'\]"):
        yj.batches.columns(Banner, "id", column="payload")(table)
    with pytest.raises(TypeError, match="int64"):
        yj.batches.columns(Banner, "id", column="label")(table)
    with pytest.raises(
        ValueError, match=r"on_error='drop' isn't supported; supported: 'raise', 'null', 'skip'"
    ):
        yj.batches.columns(Banner, "id", on_error="drop")
    with pytest.raises(ValueError, match=r"the function gives 2 values a row, for 1 names \('strict',\)"):
        yj.batches.map(strict, Banner)(table[:2])
    with pytest.raises(yj.SchemaError, match="idd"):
        yj.batches.columns(Banner, "idd", on_error="null")(table)


# ---- DuckDB and Dask ----


def test_duckdb_reads_what_comes_out(table: Any) -> None:
    scored = yj.batches.map(worth, Banner)(table)  # DuckDB finds it by its name
    assert scored.num_rows == ROWS
    ((total, missing),) = duckdb.sql("select sum(worth), count(*) - count(worth) from scored").fetchall()
    assert total == pytest.approx(sum(filter(None, expected())))
    assert missing == expected().count(None)


def test_dask_runs_it(table: Any) -> None:
    dask = pytest.importorskip("dask")
    add = dask.delayed(yj.batches.map(worth, Banner))
    parts = dask.compute(*map(add, table.to_batches(max_chunksize=50)), scheduler="threads")
    assert pa.Table.from_batches(parts)["worth"].to_pylist() == expected()


# ---- PyTorch's protocol ----


def test_rows_and_batches(index: Any) -> None:
    data = ColumnsDataset(
        index, ["id", "stats.ctr", "state", "daily_limit"], columns=["label"], tensors=False
    )
    assert len(data) == ROWS
    row = data[-1]
    assert (row["id"], row["state"], row["label"]) == (MESSAGES[-1].id, MESSAGES[-1].state, ROWS - 1)
    assert row["daily_limit"].dtype == np.int64
    batch = data.__getitems__([5, 3, 5])
    assert isinstance(batch, Batch) and len(batch) == 3
    assert data.collate(batch)["id"].tolist() == [MESSAGES[i].id for i in (5, 3, 5)]
    assert data.collate([data[5], data[3]])["label"].tolist() == [5, 3]
    assert [one["label"] for one in batch[1:]] == [3, 5]
    with pytest.raises(IndexError):
        data[ROWS]


def test_data_sets_refuse_what_is_no_number(index: Any) -> None:
    with pytest.raises(
        yj.SchemaError, match="path 'title' isn't one number a row, which a tensor takes; it's text"
    ):
        ColumnsDataset(index, ["title"], tensors=False)
    with pytest.raises(TypeError, match="only an index has other columns, as 'label'; these are Records"):
        ColumnsDataset(index[:5].take([1]), ["id"], columns=["label"], tensors=False)


def _sum(data: ColumnsDataset, rows: list[int]) -> int:
    return int(data.__getitems__(rows).columns["label"].sum())


def test_forked_workers_read_the_same_index(index: Any) -> None:
    data = ColumnsDataset(index, ["id"], columns=["label"], tensors=False)
    data[0]  # used before
    with multiprocessing.get_context("fork").Pool(2) as pool:
        jobs = [pool.apply_async(_sum, (data, list(range(i, ROWS, 4)))) for i in range(4)]
        assert sum(job.get(timeout=120) for job in jobs) == sum(range(ROWS))


def test_tensors(index: Any) -> None:
    torch = pytest.importorskip("torch")
    data = ColumnsDataset(index, ["id", "price", "stats.ctr"], columns=["label"])
    loader = torch.utils.data.DataLoader(data, batch_size=64, collate_fn=data.collate, num_workers=2)
    batches = list(loader)
    assert [len(batch["label"]) for batch in batches] == [64, 64, 64, 8]
    assert torch.cat([batch["price"] for batch in batches]).tolist() == [
        message.price for message in MESSAGES
    ]


def test_without_torch(index: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        ImportError, match="a data set of tensors needs torch: pip install torch; tensors=False"
    ):
        yj.torch.ColumnsDataset(index, ["id"])


def test_ray_says_what_it_needs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import importlib
    import sys

    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "yaffjit.interop.ray", raising=False)
    with pytest.raises(ImportError, match=r"yaffjit.ray needs Ray Data: pip install 'yaffjit\[ray\]'"):
        importlib.import_module("yaffjit.interop.ray")


def test_each_form_of_results(table: Any) -> None:
    def several(banner: Any) -> Any:
        number = banner.daily_limit if banner.HasField("daily_limit") else None
        return number, np.array([banner.price, float("nan")]), banner.title

    out = yj.batches.map(several, Banner, to=("limit", "pair", "title"))(table)
    limits = [m.daily_limit if m.HasField("daily_limit") else None for m in MESSAGES]
    assert out["limit"].to_pylist() == limits and None in limits
    assert out["pair"].type == pa.list_(pa.float64(), 2)
    assert [pair[0] for pair in out["pair"].to_pylist()] == [m.price for m in MESSAGES]
    assert out["title"].to_pylist() == [m.title for m in MESSAGES]


def test_times_become_integers_in_data_sets(tmp_path: Path) -> None:
    path = tmp_path / "times.proto"
    path.write_text(
        'syntax = "proto3"; package times; import "google/protobuf/timestamp.proto";\n'
        "message Row { google.protobuf.Timestamp at = 1; bool done = 2; }\n"
    )
    row_type = yj.load_schema(path)["times.Row"]
    recs = yj.records(row_type, [row_type.encode({"at": {"seconds": 5}, "done": True})])
    row = ColumnsDataset(recs, ["at", "done"], tensors=False)[0]
    assert (row["at"].dtype, int(row["at"]), bool(row["done"])) == (np.int64, 5_000_000_000, True)
