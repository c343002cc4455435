"""Messages as universal documents: protobuf's JSON mapping, with integers and floats as they are."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

import yaffjit as yj
from yaffjit.cli import main
from yaffjit.universal import dumps, loads
from yaffjit.universal.payloads import DocumentPayloads

PROTO = """
syntax = "proto3";
package bridge;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/field_mask.proto";
enum Color { NONE = 0; RED = 1; }
message Leaf { string long_name = 1; repeated bytes raw = 2; }
message Root {
  int64 wide = 1; uint64 most = 2; int32 narrow = 3; double d = 4; float f = 5; bool b = 6; string s = 7;
  bytes raw = 8; Color color = 9; repeated Color colors = 10; Leaf leaf = 11; repeated Leaf leaves = 12;
  map<string, int64> counts = 13; map<int32, Leaf> by_number = 14; map<bool, string> by_bool = 15;
  google.protobuf.Timestamp time = 16; google.protobuf.Duration span = 17; google.protobuf.Struct any = 18;
  google.protobuf.Int64Value boxed = 19; google.protobuf.FieldMask mask = 20; repeated uint64 many = 21;
  optional int32 maybe = 22; google.protobuf.BoolValue flag = 23; google.protobuf.UInt64Value large = 24;
  google.protobuf.ListValue list = 25; repeated google.protobuf.ListValue lists = 26;
  repeated Root roots = 27;
}
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> yj.MessageType:
    path = tmp_path_factory.mktemp("bridge") / "bridge.proto"
    path.write_text(PROTO)
    return yj.load_schema(str(path))["bridge.Root"]


FULL: dict[str, Any] = {
    "wide": -(2**60),
    "most": 2**63 - 1,
    "narrow": -5,
    "d": 0.1,
    "f": 1.5,
    "b": True,
    "s": "caf\xe9",
    "raw": "AAH/",
    "color": "RED",
    "colors": ["RED", 7, "NONE"],
    "leaf": {"long_name": "x"},
    "leaves": [{}, {"raw": ["", "QUI="]}],
    "counts": {"a": 2**40},
    "by_number": {"-3": {"long_name": "y"}},
    "by_bool": {"true": "t", "false": "f"},
    "time": "2020-01-02T03:04:05.600Z",
    "span": "1.500s",
    "any": {"k": [1.0, "x", True, {"n": {}}]},
    "boxed": 2**55,
    "mask": "a,bC",
    "many": [1, 2**50],
    "maybe": 0,
    "flag": False,
}


def test_a_message_of_all_kinds_comes_back(root: yj.MessageType) -> None:
    message = root.from_universal(dumps(FULL))
    assert loads(root.to_universal(message)) == FULL
    assert loads(root.to_universal(root.view(root.encode(message)))) == FULL
    numbers = loads(root.to_universal(message, enums="numbers", json_names=True))
    assert numbers["color"] == 1 and numbers["colors"] == [1, 7, 0]
    assert numbers["leaf"] == {"longName": "x"} and numbers["byNumber"] == {"-3": {"longName": "y"}}
    assert root.from_universal(dumps(numbers)) == message
    for options in ({"compact": False, "order": "big"}, {"null": True}):
        assert root.from_universal(root.to_universal(message, **options), **options) == message
    as_json = json_format.MessageToDict(message, preserving_proto_field_name=True)
    assert {k: v for k, v in as_json.items() if k not in ("wide", "most", "counts", "boxed", "many")} == {
        k: v for k, v in FULL.items() if k not in ("wide", "most", "counts", "boxed", "many")
    }


def test_what_json_has_no_numbers_for(root: yj.MessageType) -> None:
    for value in (math.inf, -math.inf, math.nan):
        message = root.message_class(d=value, f=value)
        found = loads(root.to_universal(message))
        assert repr(found) == repr({"d": value, "f": value})
        assert repr(root.from_universal(dumps(found)).d) == repr(value)
    large = root.message_class(most=2**64 - 1, many=[2**63], large={"value": 2**64 - 1})
    assert loads(root.to_universal(large)) == {
        "most": str(2**64 - 1),
        "many": [str(2**63)],
        "large": str(2**64 - 1),
    }
    assert root.from_universal(root.to_universal(large)) == large
    assert len(root.to_universal(root.message_class(f=0.1), compact=False)) == 1 + 1 + 1 + 1 + 1 + 4 + 1


@given(wide=st.integers(-(2**63), 2**63 - 1), d=st.floats(allow_nan=False), s=st.text(), raw=st.binary())
def test_any_values_come_back(root: yj.MessageType, wide: int, d: float, s: str, raw: bytes) -> None:
    message = root.message_class(wide=wide, d=d, s=s, raw=raw, leaves=[{"long_name": s}])
    assert root.from_universal(root.to_universal(message)) == message


def test_what_does_not_fit(root: yj.MessageType) -> None:
    for obj, text in (
        ({"nope": 1}, "the document isn't a bridge.Root: "),
        ({"narrow": 2**40}, "the document isn't a bridge.Root: "),
        ({"leaf": {"raw": 5}}, "the document isn't a bridge.Root: "),
        ([1], "the document isn't a bridge.Root: "),
        ("x", "the document isn't a bridge.Root: "),
    ):
        with pytest.raises(yj.DecodeError) as caught:
            root.from_universal(dumps(obj))
        assert str(caught.value).startswith(text)
    with pytest.raises(yj.DecodeError, match='has no field named "nope"'):
        root.from_universal(dumps({"leaf": {"nope": 1}}))
    message = root.from_universal(
        dumps({"leaf": {"nope": 1, "long_name": "x"}, "more": []}), ignore_unknown=True
    )
    assert loads(root.to_universal(message)) == {"leaf": {"long_name": "x"}}
    with pytest.raises(yj.universal.DocumentError):
        root.from_universal(b"\x01")
    with pytest.raises(TypeError, match=r"^a message of bridge\.Root is needed, not of bridge\.Leaf$"):
        root.to_universal(root.message_class().leaf)
    with pytest.raises(ValueError, match=r"^enums is 'both' \('names', 'numbers'\)$"):
        root.to_universal(root.message_class(), enums="both")
    null = root.message_class()
    null.any["k"] = None
    with pytest.raises(yj.EncodeError, match=r"^any\.k: None has no code in the format"):
        root.to_universal(null)
    assert root.from_universal(root.to_universal(null, null=True), null=True) == null


def test_a_file_of_documents_becomes_an_index(
    root: yj.MessageType, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = tmp_path / "bridge.proto"
    schema.write_text(PROTO)
    documents = [FULL, {}, {"s": "third", "wide": 3}]
    data = b"".join(map(dumps, documents))
    (tmp_path / "documents.ubf").write_bytes(data)
    built = str(tmp_path / "built.arrow")
    given = ["build", str(schema), "bridge.Root", str(tmp_path / "documents.ubf"), "-o", built]
    assert main([*given, "--framing", "universal:bridge.Root"]) == 0
    index = yj.open_index(built)
    assert [loads(index.message_type.to_universal(v)) for v in index] == documents
    pool = root.schema.definition.pool
    payloads = DocumentPayloads(tmp_path / "documents.ubf", root.message_class, pool)
    assert len(list(payloads)) == 3 and len(list(payloads.batches(1))) == 3
    (tmp_path / "documents.ubf").write_bytes(data + dumps({"nope": 1}))
    with pytest.raises(
        yj.DecodeError, match=r"documents\.ubf, document 3: the document isn't a bridge\.Root: "
    ):
        list(payloads)
    (tmp_path / "documents.ubf").write_bytes(data)
    capsys.readouterr()
    assert main(["show", str(tmp_path / "documents.ubf"), "--universal"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == documents
    shown = ["show", str(tmp_path / "documents.ubf"), "--universal", "--as", str(schema), "bridge.Root"]
    assert main(shown) == 0
    assert capsys.readouterr().out.endswith('wide: 3\ns: "third"\n')
    assert main([*shown, "--json"]) == 0
    assert '"longName": "x"' in capsys.readouterr().out
    (tmp_path / "documents.ubf").write_bytes(data[:-1])
    assert main(["show", str(tmp_path / "documents.ubf"), "--universal"]) == 1
    capsys.readouterr()
    assert main([*given, "--framing", "universal:bridge.Root"]) == 1
    assert "document 2: " in capsys.readouterr().err


def test_lists_of_any_values(root: yj.MessageType) -> None:
    obj = {"list": [1.0, None, "x", [2.0]], "lists": [[True], []]}
    assert (
        loads(root.to_universal(root.from_universal(dumps(obj, null=True), null=True), null=True), null=True)
        == obj
    )


@pytest.mark.parametrize("levels", [120, 400])
def test_messages_nested_too_deep(root: yj.MessageType, levels: int) -> None:
    obj: dict[str, Any] = {}
    for _ in range(levels):
        obj = {"roots": [obj]}
    with pytest.raises(yj.DecodeError, match=r"^the document isn't a bridge.Root: "):
        root.from_universal(dumps(obj, max_depth=1000), max_depth=1000)
