"""Messages that lack required fields: protobuf's own search for them may crash, so views go round it."""

from __future__ import annotations

import functools
import random
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import EncodeError
from wire_messages import Maker

import yaffjit as yj
from yaffjit.universal.payloads import DocumentPayloads
from yaffjit.view.required import missing_required

SOURCE = """
syntax = "proto2";
package need;
message R { required int32 b = 2; optional R sub = 3; required int32 a = 1; }
message M {
  map<int32, R> m = 1; map<bool, R> b = 2; map<string, R> s = 3; repeated R l = 4; map<uint64, R> u = 5;
  map<int32, M> deep = 6; optional R one = 7;
}
message Crash { repeated Crash many = 1; map<int32, int32> numbers = 2; required int32 must = 3; }
"""


@pytest.fixture(scope="module")
def schema(tmp_path_factory: Any) -> yj.Schema:
    path: Path = tmp_path_factory.mktemp("need") / "need.proto"
    path.write_text(SOURCE)
    return yj.load_schema(path)


def test_a_map_of_scalars_beside_what_is_missing_crashes_nobody(schema: yj.Schema) -> None:
    """By protobuf's own ByteSize this kills the interpreter."""
    crash = schema["need.Crash"]
    message = crash.message_class()
    message.must = 1
    message.many.add().numbers[391610893] = 128
    message.many.add()
    payload = message.SerializePartialToString()
    sentence = "Message need.Crash is missing required fields: many[0].must,many[1].must"
    for view in (crash.view(crash.encode(message)), crash.view_protobuf(payload)):
        assert not view.IsInitialized()
        assert view.FindInitializationErrors() == ["many[0].must", "many[1].must"]
        for read in (view.ByteSize, view.SerializeToString):
            with pytest.raises(EncodeError) as caught:
                read()
            assert str(caught.value) == sentence
        assert view.SerializePartialToString() == payload
        assert view == message


def test_unknown_fields_of_such_messages_are_counted(schema: yj.Schema, tmp_path: Path) -> None:
    crash = schema["need.Crash"]
    message = crash.message_class(must=1)
    message.many.add().numbers[3] = 5
    message.many.add()
    payload = message.SerializePartialToString() + b"\xf8\x3e\x01"
    built = yj.build_index(tmp_path / "x.arrow", crash, [payload])
    assert dict(built.unknown_fields) == {"need.Crash #1007": 1}


def test_paths_are_protobufs(schema: yj.Schema) -> None:
    """Where protobuf's search doesn't crash, both find the same, if perhaps in another order."""
    message_class: Any = schema["need.M"].message_class
    maker = Maker(random.Random(3))
    differ = 0
    for _ in range(400):
        try:
            message = message_class.FromString(maker.message(message_class.DESCRIPTOR))
        except Exception:  # some aren't protobuf
            continue
        wanted = message.FindInitializationErrors()
        # protobuf's end where a key has a zero.
        found = [path.partition("\0")[0] for path in missing_required(message)]
        assert sorted(found) == sorted(wanted)
        differ += bool(wanted)
    assert differ > 50
    held = message_class()
    held.s['a"\\\né'].SetInParent()
    assert missing_required(held) == held.FindInitializationErrors()


def test_a_key_that_is_not_utf_8_crashes_nobody(schema: yj.Schema, tmp_path: Path) -> None:
    """protobuf's maps have such a key, and don't give its value."""
    payload = b"\x1a\x05\x0a\x03a\xff\x00"
    message_type = schema["need.M"]
    view = message_type.view_protobuf(payload)
    message = message_type.message_class.FromString(payload)
    assert not view.IsInitialized()
    assert view.FindInitializationErrors() == ['s["a\ufffd\0"]']
    sentence = 'Message need.M is missing required fields: s["a\ufffd\0"]'
    write = functools.partial(yj.write_delimited, tmp_path / "x.pb")
    for read in (view.ByteSize, view.SerializeToString, lambda: write([view]), lambda: write([message])):
        with pytest.raises(EncodeError) as caught:
            read()
        assert str(caught.value) == sentence
    assert view == message


def test_universal_documents_need_no_required_fields(schema: yj.Schema, tmp_path: Path) -> None:
    path = tmp_path / "x.ub"
    path.write_bytes(yj.universal.dumps({"numbers": {"1": 2}, "many": [{}]}))
    crash = schema["need.Crash"]
    built = yj.build_index(tmp_path / "x.arrow", crash, DocumentPayloads(path, crash.message_class, None))
    assert built.rows == 1
    (row,) = yj.open_index(tmp_path / "x.arrow")
    assert dict(row.numbers) == {1: 2}
    assert not row.HasField("must")
