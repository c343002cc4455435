"""Elements of a field of a large message, as protobuf finds them when it parses the message whole."""

from __future__ import annotations

import io
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from framings import by_batches, until_error
from google.protobuf.message import DecodeError as ProtobufError
from hypothesis import given, settings
from hypothesis import strategies as st

import yaffjit as yj
from yaffjit.errors import SchemaError

PROTO = """
syntax = "proto3";
package envelopes;
message Item {
  int64 id = 1;
  string name = 2;
  repeated Item items = 3;
}
message Page {
  repeated Item items = 5;
  Page next = 2;
  bytes pad = 3;
  int32 count = 4;
}
message Envelope {
  repeated Item items = 1;
  Page page = 2;
  repeated Page pages = 300;
  fixed32 version = 4;
  repeated bytes raw = 5;
  double weight = 6;
  map<string, Item> by_name = 7;
  oneof pick { Item one = 8; Page two = 9; }
  optional Page perhaps = 10;
  repeated int64 numbers = 11;
  Item item = 12;
}
"""
# A group of field 100 with another in it, a varint and text of the same numbers as fields: all are unknown.
UNKNOWN = b"\xa3\x06\x0a\x02\x08\x01\xab\x06\x08\x07\xac\x06\xa4\x06"
PATHS = ("items", "page.items", "pages.items", "page.next.items", "pages.next.items", "perhaps.items", "raw")
SIZES = st.sampled_from([1, 5, 64, 8 << 20])


@pytest.fixture(scope="module")
def Envelope(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("envelopes") / "envelopes.proto"
    path.write_text(PROTO)
    return yj.load_schema(path)["envelopes.Envelope"]


ITEMS: Any = st.lists(
    st.fixed_dictionaries({}, optional={"id": st.integers(-5, 300), "name": st.text(max_size=4)}), max_size=4
)
PAGES: Any = st.fixed_dictionaries(
    {}, optional={"items": ITEMS, "pad": st.binary(max_size=200), "count": st.integers(0, 5)}
)
DEEP_PAGES = st.builds(lambda page, inner: {**page, **({"next": inner} if inner else {})}, PAGES, PAGES)
ENVELOPES = st.fixed_dictionaries(
    {},
    optional={
        "items": ITEMS,
        "page": DEEP_PAGES,
        "pages": st.lists(DEEP_PAGES, max_size=3),
        "perhaps": PAGES,
        "version": st.integers(0, 9),
        "raw": st.lists(st.binary(max_size=5), max_size=3),
        "weight": st.floats(0, 1),
        "numbers": st.lists(st.integers(0, 300), max_size=5),
    },
)


@st.composite
def envelope_bytes(draw: Any, message_class: Any) -> bytes:
    """Bytes of several messages after each other, which are one; between them, what isn't in the schema."""
    parts = draw(st.lists(ENVELOPES, max_size=3))
    return b"".join(
        message_class(**part).SerializeToString() + (UNKNOWN if draw(st.booleans()) else b"")
        for part in parts
    )


def expected(envelope: Any, path: str) -> list[Any]:
    held = [envelope]
    for name in path.split("."):
        values = [getattr(message, name) for message in held]
        fields = [message.DESCRIPTOR.fields_by_name[name] for message in held]
        held = [
            v
            for value, field in zip(values, fields, strict=True)
            for v in (value if field.is_repeated else [value])
        ]
    return held


def element(message_type: Any, path: str, payload: bytes) -> Any:
    if path == "raw":
        return payload
    return message_type.schema["envelopes.Item"].message_class.FromString(payload)


@pytest.mark.parametrize("path", PATHS)
def test_elements_are_those_of_the_parsed_message(split_by: str, Envelope: Any, path: str) -> None:
    @settings(max_examples=60)
    @given(envelope_bytes(Envelope.message_class), SIZES)
    def equal(data: bytes, nbytes: int) -> None:
        elements = expected(Envelope.message_class.FromString(data), path)
        reader = yj.read_field(io.BytesIO(data), Envelope, path)
        assert [element(Envelope, path, payload) for payload in reader] == elements
        assert list(reader) == []  # a file object is read once
        found = by_batches(yj.read_field(io.BytesIO(data), Envelope, path), nbytes)
        assert [element(Envelope, path, payload) for payload in found] == elements

    equal()


@pytest.mark.parametrize("path", ["items", "page.next.items", "pages.items"])
def test_mutated_files(split_by: str, Envelope: Any, path: str) -> None:
    @settings(max_examples=100)
    @given(envelope_bytes(Envelope.message_class).filter(bool), SIZES, st.data())
    def agrees(data: bytes, nbytes: int, draw: Any) -> None:
        if draw.draw(st.booleans()):
            data = data[: draw.draw(st.integers(0, len(data)))]
        else:
            bit = draw.draw(st.integers(0, 8 * len(data) - 1))
            changed = bytearray(data)
            changed[bit >> 3] ^= 1 << (bit & 7)
            data = bytes(changed)
        readings = (
            iter(yj.read_field(io.BytesIO(data), Envelope, path)),
            by_batches(yj.read_field(io.BytesIO(data), Envelope, path), nbytes),
        )
        first, second = map(until_error, readings)
        assert first == second
        found, said = first
        try:
            envelope = Envelope.message_class.FromString(data)
        except ProtobufError:
            return
        # What is no part of the elements' message isn't looked at, so that only this way round holds.
        assert not said
        assert [element(Envelope, path, payload) for payload in found] == expected(envelope, path)

    agrees()


@pytest.mark.parametrize(
    ("path", "data", "sentence"),
    [
        (
            "items",
            b"\x0a\x02\x08\x01\x0a\x05\x08",
            "stream: element 1 of items at byte 4 claims 5 bytes, but 1 are left",
        ),
        (
            "items",
            b"\x0a\x00\x0a",
            "stream: element 1 of items at byte 2 is cut: the file ends after 1 byte of its length",
        ),
        ("items", b"\x2a\x7f\x08", "stream: the file ends 126 bytes before the end of a field that it has"),
        ("items", b"\x0f", "stream: field 1 at byte 0 has wire type 7, and there are 0 to 5"),
        ("items", b"\x00", "stream: a field at byte 0 has the number 0, and numbers are 1 to 536870911"),
        ("items", b"\x0c", "stream: field 1 at byte 0 ends a group, but none is open"),
        ("items", b"\x0b\x14", "stream: field 2 at byte 1 ends a group, but group 1 is open"),
        ("items", b"\x0b", "stream: the end of the file at byte 1 is inside of group 1"),
        ("items", b"\x0b" * 101, "stream: field 1 at byte 100 is a group inside of 100 others"),
        (
            "page.items",
            b"\x12\x02\x2a\x05",
            "stream: field 5 at byte 2 claims 5 bytes, but 0 are left of its message",
        ),
        ("page.items", b"\x12\x01\x20\x01", "stream: field 4 at byte 2 goes 1 byte beyond its message"),
        (
            "page.items",
            b"\x12\x05\x20\x01",
            "stream: the end of the file at byte 4 is 3 bytes before that of a message in it",
        ),
        ("page.items", b"\x12\x01\x0b\x0c", "stream: the message before at byte 3 ends inside of group 1"),
        (
            "items",
            b"\x0a\xff\xff\xff\xff\x0f",
            "stream: field 1 at byte 0 claims 4294967295 bytes, but protobuf's limit is 2147483647",
        ),
        ("items", b"\x80" * 11, "stream: element 0 of items at byte 0 has a tag of more than 10 bytes"),
    ],
)
def test_what_is_wrong_with_a_file(
    split_by: str, Envelope: Any, path: str, data: bytes, sentence: str
) -> None:
    assert until_error(iter(yj.read_field(io.BytesIO(data), Envelope, path)))[1] == sentence
    assert until_error(iter(yj.read_field(io.BytesIO(data), Envelope, path)))[1] == sentence


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("item", "envelopes.Envelope.item isn't repeated"),
        ("itms", "envelopes.Envelope has no field 'itms' (did you mean 'items', 'item'?)"),
        ("page.itms", "envelopes.Page has no field 'itms' (did you mean 'items'?)"),
        ("numbers", "envelopes.Envelope.numbers isn't a field of messages or bytes"),
        ("raw.items", "envelopes.Envelope.raw isn't a field of messages"),
        ("by_name", "envelopes.Envelope.by_name is a map: its pairs aren't messages of their own"),
        (
            "two.items",
            "envelopes.Envelope.two is in the oneof 'pick', "
            "of which a later member takes back an earlier one",
        ),
    ],
)
def test_fields_that_have_no_elements(Envelope: Any, path: str, sentence: str) -> None:
    with pytest.raises(SchemaError) as caught:
        yj.read_field(io.BytesIO(b""), Envelope, path)
    assert str(caught.value) == sentence


def test_types_of_envelopes(Envelope: Any, tmp_path: Path) -> None:
    message = Envelope.message_class(items=[{"id": 3}])
    (tmp_path / "x").write_bytes(message.SerializeToString())
    for envelope_type in (Envelope, Envelope.message_class, Envelope.message_class.DESCRIPTOR):
        reader = yj.read_field(tmp_path / "x", envelope_type, "items")
        assert list(reader) == list(reader) == [message.items[0].SerializeToString()]
    with pytest.raises(TypeError) as caught:
        yj.read_field(io.BytesIO(b""), Envelope, 5)  # type: ignore[arg-type]
    assert str(caught.value) == 'field must be a path, as "page.entities", not int'
    with pytest.raises(TypeError) as caught:
        yj.read_field(tmp_path / "x", "envelopes.Envelope", "items")
    assert str(caught.value) == (
        "envelope_type must be a MessageType, a message class or a descriptor, not str"
    )


def test_large_fields_are_passed_over_in_bounded_memory(split_by: str, Envelope: Any, tmp_path: Path) -> None:
    message = Envelope.message_class(
        items=[{"id": row} for row in range(1000)],
        page={"pad": bytes(40 << 20)},
        pages=[{"items": [{"id": 7}]}],
    )
    (tmp_path / "x").write_bytes(message.SerializeToString())
    tracemalloc.start()
    counts = [len(list(yj.read_field(tmp_path / "x", Envelope, path))) for path in ("items", "pages.items")]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert counts == [1000, 1]
    assert peak < 8 << 20
