"""Repeated fields of protobuf bytes by index in jitted code: in any order, over several messages."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from numba import njit

import yaffjit as yj

PROTO = """
syntax = "proto2";
package wi;
enum Closed { NONE = 0; ONE = 1; }
message Part { optional int32 x = 1; }
message Root {
  repeated string texts = 1;
  repeated sint64 packed = 2 [packed = true];
  repeated float floats = 3 [packed = true];
  repeated Part parts = 4;
  repeated Closed levels = 5;
  optional Part part = 6;
}
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("wire_index") / "wi.proto"
    path.write_text(PROTO)
    return yj.load_schema(path)["wi.Root"]


@njit
def picked(records, rows, indices):  # type: ignore[no-untyped-def]
    """One number for each index into each field of a row; -1 where there's no such element."""
    found = np.zeros((len(rows), 5))
    for k in range(len(rows)):
        view, i = records[rows[k]], indices[k]
        if -len(view.texts) <= i < len(view.texts):
            found[k, 0] = len(view.texts[i])
        if -len(view.packed) <= i < len(view.packed):
            found[k, 1] = view.packed[i]
        if -len(view.floats) <= i < len(view.floats):
            found[k, 2] = view.floats[i]
        found[k, 3] = found[k, 4] = -1
        if -len(view.parts) <= i < len(view.parts):
            found[k, 3] = view.parts[i].x
        if -len(view.levels) <= i < len(view.levels):
            found[k, 4] = view.levels[i]
    return found


def test_any_order(root: Any) -> None:
    chance = random.Random(7)
    payloads = []
    for size in (0, 1, 5, 40):
        parts = [
            root.message_class(
                texts=["x" * chance.randrange(200) for _ in range(size)],
                packed=[chance.getrandbits(60) >> chance.randrange(60) for _ in range(size)],
                floats=[chance.randrange(99) for _ in range(size)],
                parts=[{"x": chance.randrange(99)} for _ in range(size)],
                levels=[chance.randrange(2) for _ in range(size)],
            ).SerializeToString()
            + b"\x10\x07\x1d\x00\x00\x80\x3f\x28\x05"  # single ones, and a number that the enum hasn't
            for _ in range(2)
        ]
        payloads.append(b"".join(parts))
    records = yj.records(root, payloads * 2, representation="protobuf")
    rows = np.array([row for row in range(8) for _ in range(60)] + [chance.randrange(8) for _ in range(300)])
    walks = [index for _ in range(8) for index in (*range(20), *range(19, -1, -1), *range(-20, 0))]
    indices = np.array(walks + [chance.randrange(-90, 90) for _ in range(300)])
    found = picked(records, rows, indices)
    assert np.array_equal(found, picked.py_func(records, rows, indices))
    assert (found[:, 3] == -1).any() and (found != -1).all(axis=1).any()


@njit
def survivors(view, count):  # type: ignore[no-untyped-def]
    """What comes before a varint that's broken, asked for again and again."""
    total = refused = 0
    for k in range(count):
        try:
            total += view.packed[k % 5]
        except Exception:
            refused += 1
    return total, refused


def test_after_an_error(root: Any) -> None:
    broken = b"\x12\x04\x02\x04\x06\x80"  # 1, 2, 3 and a varint that's cut off
    whole = b"\x12\x05\x02\x04\x06\x08\x0a"
    assert survivors(root.view_protobuf(whole), 10) == (30, 0)
    assert survivors(root.view_protobuf(broken), 10) == (0, 10)  # as len() raises
    assert survivors(root.view_protobuf(b"\x10\x02"), 10) == (2, 8)


@njit
def summed(view):  # type: ignore[no-untyped-def]
    total = 0
    for i in range(len(view.texts)):
        total += len(view.texts[i]) + view.packed[i] + view.parts[i].x
    return total


def test_a_long_loop_by_index(root: Any) -> None:
    """200,000 elements: seconds if each was counted from the first, and hours if all were."""
    size = 200_000
    message = root.message_class(texts=["ab"] * size, packed=range(size), parts=[{"x": 1}] * size)
    view = root.view_protobuf(message.SerializeToString())
    assert summed(view) == 3 * size + size * (size - 1) // 2
