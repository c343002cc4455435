"""`MessageType.update_protobuf`: some fields changed, the rest of the bytes as they were."""

from __future__ import annotations

import random
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import given, note, settings
from hypothesis import strategies as st
from strategies import RandomSchema, messages, schemas

import yaffjit as yj
from yaffjit.codec.update import parts_of

PROTO = """
syntax = "proto2";
package u;
message Leaf { optional int32 x = 1; optional int32 y = 2; repeated int32 list = 3; optional Leaf next = 4; }
enum Level { LOW = 0; HIGH = 5; }
message Root {
  optional int64 id = 1;
  optional string name = 2;
  optional Leaf leaf = 3;
  repeated int32 values = 4 [packed = true];
  map<string, double> attrs = 5;
  oneof choice { Leaf left = 6; Leaf right = 7; int32 number = 8; Level level = 9; }
  optional group Part = 10 { optional int32 z = 1; optional int32 w = 2; }
  optional Level status = 11;
  repeated Leaf leaves = 12;
}
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> yj.MessageType:
    path = tmp_path_factory.mktemp("update") / "u.proto"
    path.write_text(PROTO)
    return yj.load_schema(path)["u.Root"]


def made(root: yj.MessageType, **fields: Any) -> bytes:
    data: bytes = root.message_class(**fields).SerializeToString(deterministic=True)
    return data


UNKNOWN = b"\xfa\x01\x02hi"  # field 31


def test_the_rest_stays_as_it_was(root: yj.MessageType) -> None:
    leaves = made(root, leaves=[{"x": 1}, {"y": 2}])
    odd = b"\x08\x85\x80\x00"  # id = 5, by a varint of three bytes
    data = leaves + UNKNOWN + odd + made(root, name="a") + UNKNOWN
    assert (
        root.update_protobuf(data, {"name": "bb"}) == leaves + UNKNOWN + odd + made(root, name="bb") + UNKNOWN
    )
    assert root.update_protobuf(data, {"id": 6}) == leaves + UNKNOWN + made(root, id=6, name="a") + UNKNOWN
    assert root.update_protobuf(data, {"name": None}) == leaves + UNKNOWN + odd + UNKNOWN
    assert root.update_protobuf(data, {"leaves": None}) == UNKNOWN + odd + made(root, name="a") + UNKNOWN
    assert root.update_protobuf(data, {}) == data


def test_new_fields_come_by_their_number(root: yj.MessageType) -> None:
    data = made(root, id=1, values=[1, 2])
    assert root.update_protobuf(data, {"name": "x"}) == made(root, id=1, name="x", values=[1, 2])
    changes = {"status": 5, "attrs": {"b": 1.0, "a": 2.0}, "name": "x"}
    assert root.update_protobuf(data, changes) == made(root, id=1, values=[1, 2], **changes)
    assert root.update_protobuf(b"", {"id": 7}) == made(root, id=7)


def test_within_messages(root: yj.MessageType) -> None:
    data = made(root, leaf={"x": 1, "y": 2}) + UNKNOWN
    assert root.update_protobuf(data, {"leaf.x": 3}) == made(root, leaf={"x": 3, "y": 2}) + UNKNOWN
    assert root.update_protobuf(data, {"leaf.x": None}) == made(root, leaf={"y": 2}) + UNKNOWN
    assert root.update_protobuf(data, {"leaf": {"list": [4]}}) == made(root, leaf={"list": [4]}) + UNKNOWN
    assert root.update_protobuf(b"", {"leaf.next.x": None}) == b""
    deep = root.update_protobuf(b"", {"leaf.next.x": 1, "leaf.next.y": 2, "leaf.y": 3})
    assert deep == made(root, leaf={"y": 3, "next": {"x": 1, "y": 2}})
    split = made(root, leaf={"x": 1}) + made(root, id=1) + made(root, leaf={"y": 2})
    assert root.update_protobuf(split, {"leaf.list": [5]}) == (
        made(root, leaf={"x": 1, "y": 2, "list": [5]}) + made(root, id=1)
    )
    group = made(root, part={"z": 1, "w": 2})
    assert root.update_protobuf(group, {"part.w": 3}) == made(root, part={"z": 1, "w": 3})


def test_what_a_oneof_overruled_stays_away(root: yj.MessageType) -> None:
    data = made(root, left={"x": 1}) + made(root, right={"x": 2}) + made(root, left={"y": 3})
    assert root.update_protobuf(data, {"left": None}) == b""
    assert root.update_protobuf(data, {"right": None}) == made(root, left={"y": 3})
    assert root.update_protobuf(data, {"left.list": [7]}) == made(root, left={"y": 3, "list": [7]})
    assert root.update_protobuf(data, {"number": 4}) == made(root, number=4)
    assert root.update_protobuf(data, {"right.x": None}) == made(root, left={"y": 3})


def test_a_number_that_a_closed_enum_has_not_is_unknown(root: yj.MessageType) -> None:
    strange = b"\x58\x63"  # status = 99
    assert root.update_protobuf(strange, {"status": "HIGH"}) == strange + made(root, status=5)
    assert root.update_protobuf(strange, {"status": None}) == strange
    in_oneof = b"\x48\x63"  # level = 99
    data = in_oneof + made(root, number=1)
    assert root.update_protobuf(data, {"left.x": 2}) == made(root, left={"x": 2}) + in_oneof
    assert root.update_protobuf(data, {"number": None}) == in_oneof


def test_views(root: yj.MessageType) -> None:
    leaf = root.schema["u.Leaf"]
    view = leaf.view(leaf.encode({"x": 1, "list": [1, 2]}))
    assert leaf.update_protobuf(view, {"x": 2}) == made(leaf, x=2, list=[1, 2])
    assert root.update_protobuf(bytearray(made(root, id=3)), {"id": 4}) == made(root, id=4)
    data = b"".join(
        [made(root, leaf={"x": 1}), UNKNOWN, made(root, leaf={"y": 2}), made(root, left={"x": 5})]
    )
    whole = root.view_protobuf(data)
    assert root.update_protobuf(whole, {"id": 4}) == made(root, id=4) + data
    assert leaf.update_protobuf(whole.left, {"y": 6}) == made(leaf, x=5, y=6)
    assert leaf.update_protobuf(whole.leaf, {"x": 2}) == made(leaf, x=2, y=2)  # of two parts
    assert leaf.update_protobuf(whole.right, {"x": 2}) == made(leaf, x=2)  # absent
    records = yj.records(leaf, [b"", made(leaf, x=1) + UNKNOWN], representation="protobuf")
    assert leaf.update_protobuf(records[1], {"y": 2}) == made(leaf, x=1, y=2) + UNKNOWN
    assert leaf.update_protobuf(yj.records(leaf, [leaf.encode({"x": 1})])[0], {"y": 2}) == made(
        leaf, x=1, y=2
    )


@pytest.mark.parametrize(
    "changes, error, text",
    [
        ({"ids": 1}, yj.EncodeError, "u.Root, field ids: u.Root has no such field (did you mean 'id'?)"),
        ({"leaf.z": 1}, yj.EncodeError, "u.Root, field leaf.z: u.Leaf has no such field"),
        ({"id": "x"}, yj.EncodeError, "u.Root, field id: 'x' is not an integer"),
        (
            {"leaf.x": 2**31},
            yj.EncodeError,
            "u.Root, field leaf.x: 2147483648 is out of range for int32 (-2147483648 to 2147483647)",
        ),
        (
            {"leaves.x": 1},
            yj.EncodeError,
            "u.Root, field leaves: isn't a single message, so nothing within it is changed",
        ),
        ({"leaf": {}, "leaf.x": 1}, yj.EncodeError, "u.Root: 'leaf.x' and a part of it are both given"),
        ({"leaf.x": 1, "leaf": {}}, yj.EncodeError, "u.Root: 'leaf' and a part of it are both given"),
        (
            {"left": {}, "number": 1},
            yj.EncodeError,
            "u.Root: 'left' and 'number' are both given, but only one field of oneof 'choice' can be set",
        ),
        ({5: 1}, TypeError, "changes have paths of fields as keys, not int"),
    ],
)
def test_refused(root: yj.MessageType, changes: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        root.update_protobuf(made(root, id=1), changes)
    assert str(caught.value) == text


def test_bytes_that_are_no_message(root: yj.MessageType) -> None:
    with pytest.raises(yj.DecodeError) as caught:
        root.update_protobuf(b"\x1a\x05\x08", {"id": 1})
    assert str(caught.value) == "u.Root, field leaf: a size of 5 bytes, but 1 are left at byte 1"
    other = root.schema["u.Leaf"].view(root.schema["u.Leaf"].encode({}))
    with pytest.raises(yj.EncodeError) as refused:
        root.update_protobuf(other, {"id": 1})
    assert str(refused.value) == "u.Root expected, but the view is of u.Leaf"


# ---- against protobuf ----


def changed(
    data: st.DataObject, message: Message, other: Message, prefix: str, changes: dict[str, Any]
) -> None:
    """Draw changes of a message, to values of another, and make them in it."""
    for field in message.DESCRIPTOR.fields:
        choice = data.draw(st.integers(0, 5))
        oneof = field.containing_oneof
        if oneof is not None and any(f"{prefix}{member.name}" in changes for member in oneof.fields):
            continue
        single = field.message_type is not None and not field.is_repeated
        if choice == 1:
            changes[prefix + field.name] = None
            message.ClearField(field.name)
        elif choice == 2 and (
            other.HasField(field.name) if field.has_presence else getattr(other, field.name)
        ):
            changes[prefix + field.name] = value_of(other, field)
            message.ClearField(field.name)
            alone = type(other)()
            alone.CopyFrom(other)
            for another in other.DESCRIPTOR.fields:
                if another is not field:
                    alone.ClearField(another.name)
            alone.DiscardUnknownFields()
            message.MergeFrom(alone)
        elif choice == 3 and single and message.HasField(field.name) and other.HasField(field.name):
            of_other = getattr(other, field.name)
            changed(data, getattr(message, field.name), of_other, f"{prefix}{field.name}.", changes)


def value_of(message: Message, field: Any) -> Any:
    held = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return dict(held.items())
    return list(held) if field.is_repeated else held


def shuffled(data: bytes, seed: int) -> bytes:
    """A message whose fields come in another order."""
    parts = [data[part.begin : part.end] for part in parts_of(data)]
    random.Random(seed).shuffle(parts)
    return b"".join(parts)


@pytest.mark.slow
@settings(max_examples=settings().max_examples // 3)
@given(st.data())
def test_random_messages(data: st.DataObject) -> None:
    schema: RandomSchema = data.draw(schemas())
    loaded = yj.load_schema(schema.descriptor_set.SerializeToString())
    name = max(schema.roots, key=lambda name: len(schema.descriptor(name).fields))
    made_by = loaded[name].message_class
    for _ in range(3):
        first, second, other = (
            data.draw(messages(schema.message_class(name))).SerializePartialToString() for _ in range(3)
        )
        payload = shuffled(first + second, data.draw(st.integers(0, 9)))
        message, values = made_by.FromString(payload), made_by.FromString(other)
        changes: dict[str, Any] = {}
        changed(data, message, values, "", changes)
        note(f"{payload!r} {changes!r}")
        found = loaded[name].update_protobuf(payload, changes)
        expected = message.SerializePartialToString(deterministic=True)
        assert made_by.FromString(found).SerializePartialToString(deterministic=True) == expected


def test_parts_are_whole(root: yj.MessageType) -> None:
    data = made(root, id=1, name="n", leaf={"x": 1}, values=[1, 2], attrs={"k": 1.0}, part={"z": 2}, status=5)
    parts = [data[part.begin : part.end] for part in parts_of(data)]
    assert b"".join(parts) == data and len(parts) == 7
