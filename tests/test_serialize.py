"""YaFF bytes to protobuf bytes: what protobuf serializes of the decoded message, maps by ascending key."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import messages, schemas
from vectors import TESTS, load_vectors
from walk import wire
from wire_checks import joined
from wire_messages import Maker, expected

import yaffjit as yj
from yaffjit.codec import serialize, stretches
from yaffjit.codec.serialize import serialize_many
from yaffjit.codec.work import Work

SCHEMAS = TESTS / "schemas"


@cache
def golden(slice: str | None) -> yj.Schema:
    return yj.load_schema(sorted((SCHEMAS / "golden").glob("*.proto")), slice=slice)


@cache
def wire3() -> yj.Schema:
    return yj.load_schema(SCHEMAS / "wire3.proto")


def reaches_map(descriptor: Descriptor, seen: set[str]) -> bool:
    if descriptor.full_name in seen:
        return False
    seen.add(descriptor.full_name)
    children = [field.message_type for field in descriptor.fields if field.message_type is not None]
    return any(child.GetOptions().map_entry or reaches_map(child, seen) for child in children)


def check(message_type: yj.MessageType, buffers: list[bytes]) -> None:
    assert serialize.work.load() is not None
    made = serialize_many(message_type.plan, *joined(buffers), threads=1)
    has_map = reaches_map(message_type.message_class.DESCRIPTOR, set())
    for buffer, begin, end in zip(buffers, made.offsets[:-1], made.offsets[1:], strict=True):
        found = made.data[begin:end].tobytes()
        message = message_type.decode(buffer)
        if has_map:
            assert wire(message_type.message_class.FromString(found)) == wire(message), buffer.hex()
            assert len(found) == len(type(message).SerializePartialToString(message))
        else:
            wanted = type(message).SerializePartialToString(message, deterministic=True)
            assert found.hex() == wanted.hex(), f"{message_type.full_name}: {buffer.hex()}"


def test_golden_vectors() -> None:
    """All that the C++ library wrote, under other schemas too."""
    for record in load_vectors():
        if "error" not in record:
            check(golden(record.get("slice"))[record["message"]], [record["yaff"]])
            for reader in record.get("readers", ()):
                check(golden(reader.get("reader_slice"))[reader["reader_message"]], [record["yaff"]])


@settings(max_examples=max(20, settings().max_examples // 4))
@given(st.data())
def test_random_schemas(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    root = data.draw(st.sampled_from(schema.roots))
    message_type = yj.load_schema(schema.descriptor_set.SerializeToString())[root]
    maker = Maker(random.Random(data.draw(st.integers(0, 2**32))))
    payloads = [data.draw(messages(schema.message_class(root))).SerializePartialToString()]
    payloads += [maker.message(schema.descriptor(root)) for _ in range(6)]
    for layout in ("flat", "sparse"):
        buffers = [expected(message_type, payload, layout) for payload in payloads]
        check(message_type, [buffer for buffer in buffers if isinstance(buffer, bytes)])


def test_all_kinds() -> None:
    maker = Maker(random.Random(3))
    for name in ("wire.proto", "wire3.proto", "codec_editions.proto"):
        for message_type in yj.load_schema(SCHEMAS / name).messages.values():
            payloads = [maker.message(message_type.message_class.DESCRIPTOR) for _ in range(80)]
            for layout in ("flat", "sparse"):
                buffers = [expected(message_type, payload, layout) for payload in payloads]
                check(message_type, [buffer for buffer in buffers if isinstance(buffer, bytes)])


def test_maps_ascend() -> None:
    message_type = wire3()["wire3.Everything"]
    message = message_type.message_class()
    for key in ("b", "", "a", "aa", "a\0"):
        message.names[key] = key
    for number in (5, -1, 0):
        message.bares[number].number = number
    buffer = message_type.encode(message)
    assert serialize.work.load() is not None
    data = serialize_many(message_type.plan, *joined([buffer])).data.tobytes()
    found = message_type.message_class.FromString(data)
    assert found == message
    keys = [b"", b"a", b"a\0", b"aa", b"b"]
    places = [data.index(b"\x6a" + bytes([2 * len(key) + 4, 10, len(key)]) + key + b"\x12") for key in keys]
    assert places == sorted(places)


def test_room_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "_WORK_NBYTES", 64)
    message_type = wire3()["wire3.Everything"]
    message = message_type.message_class(texts=["x" * 50] * 500, numbers=range(1000), raw=b"y" * 9000)
    check(message_type, [message_type.encode({}), message_type.encode(message), message_type.encode({})])


def test_plain_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small work is done without a kernel."""
    monkeypatch.setattr(serialize, "work", Work(serialize._load, lambda: False))
    message_type = wire3()["wire3.Bare"]
    message = message_type.message_class(number=5, text="x")
    made = serialize_many(message_type.plan, *joined([message_type.encode(message)]))
    assert serialize.work.loaded is None
    assert made.data.tobytes() == message.SerializeToString()


def test_more_than_protobuf_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of a YaFF buffer may be shared, so that it is a larger protobuf message."""
    from yaffjit.codec import decode

    message_type = wire3()["wire3.Everything"]
    message: Any = message_type.message_class(texts=["x" * 1000] * 100)
    buffer = message_type.encode(message)
    assert len(buffer) < 2000
    assert serialize.work.load() is not None
    for module in (decode, serialize):
        monkeypatch.setattr(module, "MAX_NBYTES", 50_000)
    monkeypatch.setattr(decode, "UNMEASURED_NBYTES", 10_000)
    monkeypatch.setattr(serialize._ToProtobuf, "most_work", 100_000)
    monkeypatch.setattr(stretches, "_WORK_NBYTES", 64)
    with pytest.raises(yj.DecodeError) as error:
        serialize_many(message_type.plan, *joined([buffer]), first_row=7)
    sentence = "row 7: wire3.Everything: 100300 bytes as a protobuf message (at most 50000)"
    assert str(error.value) == sentence
    made = serialize_many(message_type.plan, *joined([buffer]), keep_errors=True)
    assert str(made.errors[0]).startswith("row 0: ")
