"""Messages within messages, entered one by one: how deep views of protobuf bytes go."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.message import DecodeError as ProtobufError
from numba import njit

import yaffjit as yj
from yaffjit.codec.wire import varint

PROTO = """
syntax = "proto3";
package wp;
message Node { int32 x = 1; Node child = 2; }
"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("depth") / "wp.proto"
    path.write_text(PROTO)
    return yj.load_schema(path)["wp.Node"]


def nested(depth: int) -> bytes:
    parts: list[bytes] = [b"\x08\x01"]
    nbytes = 2
    for _ in range(depth):
        head = b"\x08\x01\x12" + varint(nbytes)
        parts.append(head)
        nbytes += len(head)
    return b"".join(reversed(parts))


@njit
def depth_of(view):  # type: ignore[no-untyped-def]
    depth = 0
    while view.HasField("child"):
        view = view.child
        depth += view.x
    return depth


def test_what_protobuf_accepts(node: Any) -> None:
    for depth in (0, 99, 100):
        assert node.message_class.FromString(nested(depth))
        view = node.view_protobuf(nested(depth))
        assert depth_of(view) == depth_of.py_func(view) == depth


def test_python_refuses_what_is_deeper(node: Any) -> None:
    data = nested(101)
    with pytest.raises(ProtobufError):
        node.message_class.FromString(data)
    for read in (lambda: depth_of.py_func(node.view_protobuf(data)), lambda: node.verify_protobuf(data)):
        with pytest.raises(yj.DecodeError, match=r": messages nested 101 deep \(at most 100\) at byte "):
            read()


def test_jitted_code_goes_as_deep_as_it_asks(node: Any) -> None:
    """It keeps no count, which would be a word in each view; it recurses nowhere."""
    for depth in (101, 100_000):
        assert depth_of(node.view_protobuf(nested(depth))) == depth
    cut = bytearray(nested(50_000))
    cut[-2:] = b"\x12\x7f"  # the innermost message has a size beyond its end
    with pytest.raises(yj.DecodeError) as caught:
        depth_of(node.view_protobuf(bytes(cut)))
    assert str(caught.value) == "wp.Node, field child: a size of 127 bytes, but 0 are left at byte 1"
