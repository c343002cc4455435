"""The plain-Python specification against all vectors of the C++ library."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import spec
from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from spec.compile import compile_protos, pool_of
from vectors import TESTS, load_vectors, vector_name

VECTORS = load_vectors()
WRITTEN = [record for record in VECTORS if "error" not in record]


@cache
def golden_pool() -> DescriptorPool:
    return pool_of(compile_protos(sorted((TESTS / "schemas" / "golden").glob("*.proto"))))


def descriptor(full_name: str) -> Descriptor:
    return golden_pool().FindMessageTypeByName(full_name)


def parse(full_name: str, data: bytes) -> Message:
    return message_factory.GetMessageClass(descriptor(full_name)).FromString(data)


def wire(message: Message) -> bytes:
    return message.SerializePartialToString(deterministic=True)


def test_the_vectors_are_all_there() -> None:
    assert len(VECTORS) == 645
    assert sum(len(record.get("readers", ())) for record in VECTORS) == 129
    assert sum("ours" in record for record in VECTORS) == 36


@pytest.mark.parametrize("record", WRITTEN, ids=vector_name)
def test_write(record: dict[str, Any]) -> None:
    message = parse(record["message"], record["proto"])
    expected = record["yaff"] if record["roundtrip"] else bytes.fromhex(record["ours"]["yaff_hex"])
    assert spec.write(message, record["layout"], record.get("slice")).hex() == expected.hex()
    if record.get("layout_independent"):
        assert spec.write(message, "sparse", record.get("slice")).hex() == expected.hex()


@pytest.mark.parametrize("record", WRITTEN, ids=vector_name)
def test_read(record: dict[str, Any]) -> None:
    name, slice = record["message"], record.get("slice")
    message = parse(name, record["proto"])
    ours = record.get("ours")
    read = spec.read(descriptor(name), record["yaff"], slice)
    assert wire(read) == wire(parse(name, bytes.fromhex(ours["read_hex"])) if ours else message)

    back = spec.read(descriptor(name), spec.write(message, record["layout"], slice), slice)
    kept = message if not ours or ours["kept"] else parse(name, bytes.fromhex(ours["back_hex"]))
    assert wire(back) == wire(kept)
    assert wire(spec.carried(message, slice)) == wire(kept)


@pytest.mark.parametrize("record", [record for record in WRITTEN if "readers" in record], ids=vector_name)
def test_read_under_another_schema(record: dict[str, Any]) -> None:
    for reader in record["readers"]:
        name = reader["reader_message"]
        read = spec.read(descriptor(name), record["yaff"], reader.get("reader_slice"))
        assert wire(read) == wire(parse(name, bytes.fromhex(reader["proto_hex"])))


@pytest.mark.parametrize("record", [record for record in VECTORS if "error" in record], ids=vector_name)
def test_refused(record: dict[str, Any]) -> None:
    with pytest.raises(spec.SpecError, match="two slots with id 6"):
        spec.write(parse(record["message"], record["proto"]), record["layout"])


def test_size_of_a_removed_field_is_needed() -> None:
    """Unsized flat data under a schema that has lost an earlier field can't be read."""
    pinned = parse("golden.evo1.PinFlat", b"\x08\x01\x1a\x01c")
    with pytest.raises(spec.SpecError, match="no size of id 1"):
        spec.read(descriptor("golden.evo2.DenseOptLate"), spec.write(pinned))
