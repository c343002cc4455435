"""The builder of protobuf messages in plain Python."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import yaffjit as yj

PROTO = """
syntax = "proto3";
package b;
enum Level { LOW = 0; HIGH = 5; }
message Part { optional int32 x = 1; string text = 2; repeated Part parts = 3; }
message Root {
  int64 id = 1;
  string title = 2;
  Part part = 3;
  repeated Part parts = 4;
  repeated string tags = 5;
  repeated float weights = 6;
  map<string, double> attrs = 7;
  Level level = 8;
  oneof choice { string a = 9; Part b = 10; }
  bytes raw = 11;
  int32 finish = 12;
}
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> yj.MessageType:
    path = tmp_path_factory.mktemp("builder") / "b.proto"
    path.write_text(PROTO)
    return yj.load_schema(path)["b.Root"]


def test_what_is_set_is_written_by_number(root: yj.MessageType) -> None:
    b = root.builder()
    b.raw = b"\x00\xff"
    b.level = 5
    b.attrs["z"] = 1.0
    b.attrs["a"] = 2.0
    b.weights.extend(np.array([1.0, 2.0], np.float32))
    b.tags.append("x")
    item = b.parts.add()
    item.x = 0
    b.part.parts.add().text = "deep"
    b.a = "gone"
    b.b.x = 3
    b.title = "é"
    b.id = -1
    message = root.message_class(
        id=-1,
        title="é",
        part={"parts": [{"text": "deep"}]},
        parts=[{"x": 0}],
        tags=["x"],
        weights=[1.0, 2.0],
        attrs={"a": 2.0, "z": 1.0},
        level=5,
        b={"x": 3},
        raw=b"\x00\xff",
    )
    written = b.finish()
    assert written.dtype == np.uint8 and written.flags.writeable
    assert bytes(written) == message.SerializeToString(deterministic=True)
    assert b.id == -1 and b.HasField("b") and b.WhichOneof("choice") == "b"
    b.clear()
    assert len(b.finish()) == 0
    assert bytes(written) == message.SerializeToString(deterministic=True)


def test_a_buffer_is_written_from_its_beginning(root: yj.MessageType) -> None:
    expected = root.message_class(id=300, title="abc").SerializeToString()
    for buffer in (np.full(20, 7, np.uint8), bytearray(b"\x07" * 20), memoryview(bytearray(b"\x07" * 20))):
        b = root.builder(buffer)
        for _ in range(2):
            b.clear()
            b.id = 300
            b.title = "abc"
            written = b.finish()
            assert bytes(written) == expected
            assert bytes(buffer) == expected + b"\x07" * (20 - len(expected))
            assert np.shares_memory(written, np.frombuffer(buffer, np.uint8))


def test_a_buffer_that_is_too_small_stays_as_it_was(root: yj.MessageType) -> None:
    needed = len(root.message_class(id=300, title="abc").SerializeToString())
    for nbytes in range(needed + 2):
        buffer = np.full(nbytes, 7, np.uint8)
        b = root.builder(buffer)
        b.id = 300
        b.title = "abc"
        if nbytes >= needed:
            assert len(b.finish()) == needed
            continue
        with pytest.raises(yj.BufferTooSmallError) as caught:
            b.finish()
        assert str(caught.value) == f"b.Root: {needed} bytes are needed, but the buffer has {nbytes}"
        assert (caught.value.needed, caught.value.nbytes) == (needed, nbytes)
        assert isinstance(caught.value, yj.EncodeError)
        assert (buffer == 7).all()
        again = pickle.loads(pickle.dumps(caught.value))
        assert str(again) == str(caught.value)


def test_what_is_refused(root: yj.MessageType) -> None:
    b = root.builder()
    with pytest.raises(ValueError, match="Value out of range: 9223372036854775808"):
        b.id = 2**63
    with pytest.raises(TypeError, match="'str' object cannot be interpreted as an integer"):
        b.id = "1"
    with pytest.raises(AttributeError, match='has no "ids" field'):
        b.ids = 1
    with pytest.raises(AttributeError, match="Assignment not allowed"):
        b.part = root.message_class().part
    for buffer in (b"bytes", np.zeros((3, 3), np.uint8).T, np.zeros(3, np.int32)):
        with pytest.raises(ValueError) as caught:
            root.builder(buffer)
        text = "a builder of b.Root takes a buffer of bytes that is writable and contiguous"
        assert str(caught.value) == text
    with pytest.raises(TypeError, match="a builder can't be pickled or copied"):
        pickle.dumps(b)


def test_fields_with_names_of_methods(root: yj.MessageType) -> None:
    b = root.builder()
    b.finish = 3
    assert bytes(b.finish()) == root.message_class(finish=3).SerializeToString()
    assert repr(b) == "<builder of b.Root>"
    assert {"finish", "clear", "id", "title"} <= set(dir(b))


def test_messages_that_yaff_cannot_hold(tmp_path: Path) -> None:
    path = tmp_path / "g.proto"
    path.write_text('syntax = "proto2"; message G { optional group Part = 1 { optional int32 x = 1; } }')
    message_type = yj.load_schema(path)["G"]
    assert "G" in message_type.schema.unsupported
    b = message_type.builder()
    b.part.x = 3
    assert bytes(b.finish()) == b"\x0b\x08\x03\x0c"
    assert message_type.update_protobuf(b.finish(), {"part.x": 4}) == b"\x0b\x08\x04\x0c"
