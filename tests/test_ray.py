"""Ray Data on two local workers: indexes read and written, functions over batches, errors that say where.

`.ci/run` installs Ray for it beside nothing else: Ray doesn't start where opentelemetry-proto is installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import yaffjit as yj
from yaffjit.demo import SCHEMA_FILE, banners

ray = pytest.importorskip("ray")

Banner = yj.load_schema(SCHEMA_FILE)["ads.Banner"]
ROWS = 400
MESSAGES = list(banners(Banner.message_class, ROWS))


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ray") / "banners"
    yj.build_index(path, Banner, MESSAGES, columns={"label": np.arange(ROWS)}, part_rows=100)
    return path


def worth(banner: Any) -> Any:
    return banner.price * banner.stats.ctr if banner.HasField("stats") else None


def test_an_index_read_scored_and_written(path: Path, tmp_path: Path) -> None:
    dataset = yj.ray.read_index(path)
    assert dataset.count() == ROWS
    assert dataset.materialize().num_blocks() == 4  # a task a record batch
    score = yj.ray.map(worth, Banner, to="worth")
    rows = dataset.map_batches(score, batch_format="pyarrow", batch_size=None).take_all()
    assert {row["label"]: row["worth"] for row in rows} == {i: worth(m) for i, m in enumerate(MESSAGES)}

    yj.ray.write_index(dataset, tmp_path / "again", Banner, key="id", layout="sparse")
    again = yj.open_index(tmp_path / "again")
    assert len(again.parts) == 4 and again.column_names == ["label"]
    labels = again.column("label").to_pylist()
    assert [again[row].id for row in range(ROWS)] == [MESSAGES[label].id for label in labels]
    assert labels[again.rows(MESSAGES[7].id)] == 7
    assert sorted(item.name for item in tmp_path.iterdir()) == ["again"]
    with pytest.raises(yj.IndexFileError, match="is there already: append_index adds to an index"):
        yj.ray.write_index(dataset, tmp_path / "again", Banner)


def test_projection_in_the_reader(path: Path) -> None:
    fields = yj.ray.read_index([path, path], columns=["label"], fields=["id", "stats.ctr", "tags"])
    assert fields.columns() == ["label", "id", "stats.ctr", "tags"]
    rows = fields.take_all()
    assert len(rows) == 2 * ROWS
    for row in rows:
        message = MESSAGES[row["label"]]
        assert (row["id"], list(row["tags"])) == (message.id, list(message.tags))
    only = yj.ray.read_index(path, columns=["label"])
    assert only.columns() == ["label"]
    read = yj.ray.read_index(path).map_batches(
        yj.ray.columns(Banner, ["price"]), batch_format="pyarrow", batch_size=None
    )
    assert sorted(row["price"] for row in read.take_all()) == sorted(message.price for message in MESSAGES)
    with pytest.raises(
        yj.IndexFileError, match=r"has no column 'lable'; its columns are \['message', 'label'\]"
    ):
        yj.ray.read_index(path, columns=["lable"])


def failing(banner: Any) -> Any:
    if banner.price < 0:
        raise ValueError("a negative price")
    return banner.price


def test_a_bad_record_is_located(tmp_path: Path) -> None:
    prices = [1.0] * 100
    prices[73] = -1.0
    yj.build_index(tmp_path / "prices", Banner, [{"price": price} for price in prices], part_rows=50)
    dataset = yj.ray.read_index(tmp_path / "prices")
    with pytest.raises(Exception, match=r"prices, row 73, row 23 of its batch: .*a negative price"):
        dataset.map_batches(yj.ray.map(failing, Banner), batch_format="pyarrow", batch_size=None).take_all()
    left = dataset.map_batches(
        yj.ray.map(failing, Banner, on_error="skip"), batch_format="pyarrow", batch_size=None
    )
    assert left.count() == 99


def test_a_worker_that_fails_leaves_nothing(tmp_path: Path) -> None:
    import pyarrow as pa

    tables = [pa.table({"message": [b"\x08\x01"] * 3}), pa.table({"message": [b"\x08\x01", b"\xff"]})]
    dataset = ray.data.from_arrow(tables)
    with pytest.raises(Exception, match=r"row 1: ads.Banner|record 1"):
        yj.ray.write_index(dataset, tmp_path / "index", Banner)
    assert list(tmp_path.iterdir()) == []
    yj.ray.write_index(dataset, tmp_path / "index", Banner, on_error="skip")
    assert len(yj.open_index(tmp_path / "index")) == 4
