"""All vectors of the C++ library through the public face: encode, decode, verify, views, other schemas."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from google.protobuf.message import Message
from vectors import TESTS, load_vectors, vector_name
from walk import check_view, wire

import yaffjit as yj

VECTORS = load_vectors()
WRITTEN = [record for record in VECTORS if "error" not in record]
EVOLVED = [record for record in WRITTEN if "readers" in record]


@cache
def golden_schema(slice: str | None) -> yj.Schema:
    return yj.load_schema(sorted((TESTS / "schemas" / "golden").glob("*.proto")), slice=slice)


def message_type(record: dict[str, Any]) -> yj.MessageType:
    return golden_schema(record.get("slice"))[record["message"]]


def readers(record: dict[str, Any]) -> list[tuple[yj.MessageType, Message]]:
    """Each other schema under which the record is read, with the message that it must see."""
    found = []
    for reader in record["readers"]:
        type = golden_schema(reader.get("reader_slice"))[reader["reader_message"]]
        found.append((type, type.message_class.FromString(bytes.fromhex(reader["proto_hex"]))))
    return found


def seen(record: dict[str, Any]) -> Message:
    """What reading the C++ library's bytes must give."""
    data = record["proto"] if record["roundtrip"] else bytes.fromhex(record["ours"]["read_hex"])
    return message_type(record).message_class.FromString(data)


def brought_back(record: dict[str, Any]) -> Message:
    """What reading our own bytes must give."""
    ours = record.get("ours")
    data = record["proto"] if not ours or ours["kept"] else bytes.fromhex(ours["back_hex"])
    return message_type(record).message_class.FromString(data)


def our_bytes(record: dict[str, Any]) -> bytes:
    return record["yaff"] if record["roundtrip"] else bytes.fromhex(record["ours"]["yaff_hex"])


@pytest.mark.parametrize("record", WRITTEN, ids=vector_name)
def test_encode(record: dict[str, Any]) -> None:
    type = message_type(record)
    message = type.message_class.FromString(record["proto"])
    assert type.encode(message, layout=record["layout"]).hex() == our_bytes(record).hex()
    if record.get("layout_independent"):
        assert type.encode(message, layout="sparse").hex() == our_bytes(record).hex()


@pytest.mark.parametrize("record", WRITTEN, ids=vector_name)
def test_decode(record: dict[str, Any]) -> None:
    type = message_type(record)
    assert wire(type.decode(record["yaff"])) == wire(seen(record))
    assert wire(type.decode(our_bytes(record))) == wire(brought_back(record))


@pytest.mark.parametrize("record", EVOLVED, ids=vector_name)
def test_decode_under_another_schema(record: dict[str, Any]) -> None:
    for type, message in readers(record):
        assert wire(type.decode(record["yaff"])) == wire(message), type.full_name


@pytest.mark.parametrize("record", WRITTEN, ids=vector_name)
def test_verify(record: dict[str, Any]) -> None:
    type = message_type(record)
    type.verify(record["yaff"])
    type.verify(our_bytes(record))
    for other, _ in readers(record) if "readers" in record else ():
        other.verify(record["yaff"])


@pytest.mark.parametrize("record", WRITTEN, ids=vector_name)
def test_view(record: dict[str, Any]) -> None:
    type = message_type(record)
    for buffer, message in ((record["yaff"], seen(record)), (our_bytes(record), brought_back(record))):
        view = type.view(buffer)
        check_view(view, message)
        assert wire(view.to_message()) == wire(type.decode(buffer))


@pytest.mark.parametrize("record", EVOLVED, ids=vector_name)
def test_view_under_another_schema(record: dict[str, Any]) -> None:
    for type, message in readers(record):
        view = type.view(record["yaff"])
        check_view(view, message)
        assert wire(view.to_message()) == wire(message), type.full_name


@pytest.mark.parametrize("record", [record for record in VECTORS if "error" in record], ids=vector_name)
def test_refused(record: dict[str, Any]) -> None:
    type = message_type(record)
    message = type.message_class.FromString(record["proto"])
    with pytest.raises(yj.SchemaError) as error:
        type.encode(message, layout=record["layout"])
    assert str(error.value) == (
        "YaFF can't hold golden.slices.Whole: field hidden and field everywhere have the same id 6"
    )


def test_size_of_a_removed_field_is_needed() -> None:
    """Unsized flat data under a schema that has lost an earlier field can't be read."""
    schema = golden_schema(None)
    buffer = schema["golden.evo1.PinFlat"].encode({"a": 1, "c": "c"})
    reader = schema["golden.evo2.DenseOptLate"]
    with pytest.raises(yj.DecodeError):
        reader.decode(buffer)
    with pytest.raises(yj.VerifyError):
        reader.view(buffer)


def test_first_of_equal_keys_counts() -> None:
    """A list that became a map may have a key twice."""
    schema = golden_schema(None)
    pairs = [{"key": "a", "value": 1}, {"key": "b", "value": 2}, {"key": "a", "value": 3}]
    buffer = schema["golden.evo2.MapSide"].encode({"m": pairs})
    reader = schema["golden.evo1.MapSide"]
    assert dict(reader.decode(buffer).m) == {"a": 1, "b": 2}
    assert reader.view(buffer).m["a"] == 1
    assert wire(reader.view(buffer).to_message()) == wire(reader.decode(buffer))
    check_view(reader.view(buffer), reader.decode(buffer))
