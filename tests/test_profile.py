"""Profiles of records beside the same numbers by plain Python over protobuf messages."""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import yaffjit as yj
from yaffjit.demo import SCHEMA_FILE, banners

Banner = yj.load_schema(SCHEMA_FILE)["ads.Banner"]
ROWS = 300

TREES = """
syntax = "proto3";
package trees;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
enum Kind { NONE = 0; LEAF = 1; }
message Tree {
  optional float weight = 1;
  Kind kind = 2;
  Tree left = 3;
  map<string, int64> counts = 4;
  repeated bytes blobs = 5;
  google.protobuf.Timestamp seen = 6;
  google.protobuf.Int32Value limit = 7;
  bool done = 8;
}
"""


@pytest.fixture(scope="module")
def messages() -> list[Any]:
    return list(banners(Banner.message_class, ROWS))


def expected(messages: list[Any], path: str) -> tuple[float, list[Any]]:
    """The share of rows in which a field is set, and the values there."""
    found = []
    for message in messages:
        *way, name = path.split(".")
        for step in way:
            message = getattr(message, step) if message is not None and message.HasField(step) else None
        if message is None:
            continue
        field = type(message).DESCRIPTOR.fields_by_name[name]
        value = getattr(message, name)
        if message.HasField(name) if field.has_presence else bool(value):
            found.append(value)
    return len(found) / len(messages), found


@pytest.mark.parametrize("representation", ["yaff", "protobuf"])
def test_each_field(messages: list[Any], representation: str) -> None:
    encode = Banner.encode if representation == "yaff" else Banner.message_class.SerializeToString
    recs = yj.records(Banner, [encode(message) for message in messages], representation=representation)
    profile = recs.profile()
    assert list(profile)[:3] == ["id", "campaign_id", "price"] and len(profile) == 21
    for path, row in profile.items():
        share, values = expected(messages, path)
        assert row.share == pytest.approx(share), path
        if row.kind in ("uint64", "uint32", "double"):
            assert (row.least, row.most) == (min(values), max(values))
            assert row.mean == pytest.approx(statistics.fmean(values))
        elif row.kind == "string" or row.kind.startswith("list"):
            assert row.size == pytest.approx(statistics.fmean(map(len, values)))
    weights = np.concatenate([message.weights for message in messages]).astype(np.float32)
    assert profile["weights"].most == pytest.approx(weights.max())
    sizes = [len(recs.payload(row)) for row in range(ROWS)]
    assert profile.nbytes == (min(sizes), pytest.approx(statistics.fmean(sizes)), max(sizes))
    assert profile.layouts == ({"flat": ROWS} if representation == "yaff" else {})


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("trees") / "trees.proto"
    path.write_text(TREES)
    return yj.load_schema(path)["trees.Tree"]


def test_kinds_nulls_and_recursion(tree: Any) -> None:
    made = [
        {
            "weight": math.nan,
            "kind": 1,
            "counts": {"a": 1, "b": 2},
            "seen": {"seconds": 5},
            "limit": {"value": -3},
        },
        {"weight": 0.0, "kind": 7, "blobs": [b"", b"xyz"], "left": {"weight": 1.0}, "limit": {}},
        {"done": True},
    ]
    recs = yj.records(tree, [*(tree.encode(message, layout="sparse") for message in made), None])
    profile = recs.profile()
    told = {path: (row.kind, row.share, row.size, row.least, row.most) for path, row in profile.items()}
    assert told == {
        "weight": ("float", 0.5, None, 0.0, 0.0),
        "kind": ("trees.Kind", 0.5, None, "LEAF (1)", "7"),
        "counts": ("map of string to int64", 0.25, 2.0, None, None),
        "blobs": ("list of bytes", 0.25, 2.0, None, None),
        "seen": ("google.protobuf.Timestamp", 0.25, None, *[np.datetime64("1970-01-01T00:00:05", "ns")] * 2),
        "limit": ("google.protobuf.Int32Value", 0.5, None, -3, 0),
        "done": ("bool", 0.25, None, True, True),
    }
    assert profile.layouts == {"sparse": 3}
    assert profile.rows == (4, 4)


def test_as_text_html_frame_and_plot(messages: list[Any]) -> None:
    recs = yj.records(Banner, [Banner.encode(message) for message in messages])
    profile = recs.profile(rows=100)
    lines = repr(profile).splitlines()
    assert lines[0].startswith("ads.Banner: 100 of 300 rows, ") and lines[0].endswith(
        " on the mean, 100 flat"
    )
    assert lines[1].split() == ["field", "kind", "set", "size", "least", "mean", "most"]
    assert profile._repr_html_().count("linear-gradient") == len(profile)
    frame = profile.to_pandas()
    assert list(frame["path"]) == list(profile) and frame["share"].between(0, 1).all()
    (axes,) = profile.plot().axes
    assert [label.get_text() for label in axes.get_yticklabels()] == list(profile)[::-1]
    with pytest.raises(KeyError, match=r"no field .prize. .*price"):
        profile["prize"]
    with pytest.raises(ValueError, match=r"^a profile takes at least 1 row, not 0$"):
        recs.profile(0)


def test_no_rows_and_an_index(messages: list[Any], tmp_path: Path) -> None:
    assert {row.share for row in yj.records(Banner, []).profile().values()} == {0.0}
    yj.build_index(tmp_path / "banners.arrow", Banner, messages)
    assert yj.open_index(tmp_path / "banners.arrow").profile()["price"].share == 1.0


def test_broken_rows_are_named() -> None:
    with pytest.raises(yj.VerifyError, match="row 1"):
        yj.records(Banner, [b"", b"\xff"], representation="protobuf").profile()
