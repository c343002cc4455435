"""Delimited messages of edition 2023 that come in parts: merged, also in oneofs, as protobuf has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from numba import njit

import yaffjit as yj

PROTO = """
edition = "2023";
package wd;
option features.message_encoding = DELIMITED;
message Leaf { int32 x = 1; string text = 2; repeated int32 list = 3; Leaf next = 4; oneof pick { Leaf p = 5; int32 q = 6; } }
message Root {
  int32 id = 1;
  Leaf leaf = 2;
  oneof choice { Leaf left = 3; Leaf right = 4 [features.message_encoding = LENGTH_PREFIXED]; int32 number = 5; }
  repeated Leaf leaves = 6;
}
"""  # noqa: E501


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("delimited") / "wd.proto"
    path.write_text(PROTO)
    return yj.load_schema(path)["wd.Root"]


LEAVES: list[dict[str, Any]] = [
    {}, {"x": 1}, {"x": 2, "text": "b"}, {"list": [3, 4]}, {"next": {"x": 5}},
    {"next": {"text": "c", "list": [6]}}, {"p": {"x": 7}}, {"p": {"text": "d", "next": {"x": 8}}},
    {"q": 9}, {"next": {"p": {"q": 1}}}, {"next": {"q": 2}},
]  # fmt: skip
PIECES: list[dict[str, Any]] = [
    {"id": 1},
    {"number": 2},
    *({name: leaf} for leaf in LEAVES for name in ("leaf", "left", "right")),
    *({"leaves": [leaf]} for leaf in LEAVES),
]
STRANGE = [
    b"\x12\x02\x08\x09",
    b"\x1a\x00",
    b"\x23\x08\x01\x24",
    b"\x7b\x13\x08\x01\x14\x7c",
]  # other wire types


def serialized(root: Any, pieces: list[Any]) -> bytes:
    parts = (
        piece if isinstance(piece, bytes) else root.message_class(**piece).SerializeToString()
        for piece in pieces
    )
    return b"".join(parts)


@njit
def told(view):  # type: ignore[no-untyped-def]
    """Numbers of what a view has."""
    leaf, left, right = view.leaf, view.left, view.right
    total = 0
    for each in view.leaves:
        total = 3 * total + each.x + 7 * each.p.x + 11 * len(each.list) + 13 * each.next.x
    choice = 0
    if view.WhichOneof("choice") == "left":
        choice = 1
    elif view.WhichOneof("choice") == "right":
        choice = 2
    elif view.WhichOneof("choice") == "number":
        choice = 3
    return (
        view.HasField("leaf"), leaf.x, len(leaf.text), leaf.next.x, sum(leaf.next.list), leaf.p.next.x,
        leaf.q, choice, left.x, sum(left.list), left.p.x, left.q, right.next.x, right.p.x, view.number, total,
    )  # fmt: skip


PATHS = ("leaf.x", "leaf.text", "leaf.next.x", "left.x", "left.list", "left.q", "right.p.x", "leaves.next.x")


@pytest.mark.slow
@settings(max_examples=settings().max_examples // 2)
@given(st.lists(st.lists(st.sampled_from([*PIECES, *STRANGE]), max_size=7), min_size=1, max_size=4))
def test_parts_are_merged(root: Any, rows: list[list[Any]]) -> None:
    payloads = [serialized(root, pieces) for pieces in rows]
    messages = [root.message_class.FromString(payload) for payload in payloads]
    records = yj.records(root, payloads, representation="protobuf")
    for view, message, payload in zip(records, messages, payloads, strict=True):
        note(payload.hex())
        assert view == message and yj.to_dict(view) == yj.to_dict(message)
        assert told(view) == told.py_func(message)
        assert told(root.view_protobuf(payload)) == told.py_func(message)
    for each in messages:
        each.DiscardUnknownFields()
    encoded = yj.records(root, [root.encode(message) for message in messages])
    made = root.transcode(records)
    assert [view.to_message() for view in made] == messages
    found, wanted = records.columns(*PATHS), encoded.columns(*PATHS)
    assert found.to_arrow().equals(wanted.to_arrow())
    for path in ("leaf", "leaf.next", "left", "right.p"):
        assert np.array_equal(found.present(path), wanted.present(path))
