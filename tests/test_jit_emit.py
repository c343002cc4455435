"""The emitted getters read every field of every vector of the C++ library, as protobuf reads it."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from native_reader import NativeReader
from vectors import golden_bytes, load_vectors, vector_name

import yaffjit
from yaffjit.plan.model import MessagePlan

GOLDEN = Path(__file__).parent / "schemas" / "golden"
SCHEMAS = sorted({record["schema"] for record in load_vectors()})


@cache
def schema(file: str, slice: str | None) -> yaffjit.Schema:
    return yaffjit.load_schema(GOLDEN / file, slice=slice)


def readings(record: dict[str, Any]) -> Iterator[tuple[MessagePlan, bytes]]:
    """Each schema that reads a vector's bytes, and what protobuf message it must see."""
    plan = schema(record["schema"], record.get("slice"))[record["message"]].plan
    expected = record["proto"]
    if not record["roundtrip"]:
        expected = bytes.fromhex(record["ours"]["read_hex"])
    yield plan, expected
    for reader in record.get("readers", ()):
        other = schema(reader["reader_schema"], reader.get("reader_slice"))[reader["reader_message"]].plan
        seen = golden_bytes(reader, "proto")
        assert seen is not None
        yield other, seen


def check(reader: NativeReader, mp: MessagePlan, data: bytes, expected: bytes) -> list[str]:
    message = mp.plan.schema.message_class(mp.full_name).FromString(expected)
    buffer = ctypes.create_string_buffer(data, len(data))
    root = struct.unpack_from("<I", data)[0]
    return reader.differences(mp, ctypes.addressof(buffer) + root, message)


@pytest.mark.parametrize("file", SCHEMAS)
def test_every_field_of_every_vector_reads_as_in_protobuf(file: str) -> None:
    records = [record for record in load_vectors() if record["schema"] == file and "error" not in record]
    assert records
    reader = NativeReader([mp for record in records for mp, _ in readings(record)])
    failures = {}
    for record in records:
        for mp, expected in readings(record):
            found = check(reader, mp, record["yaff"], expected)
            if found:
                failures[vector_name(record), mp.full_name] = found
    assert not failures


def test_walk_tells_what_differs() -> None:
    mp = schema("scalars.proto", None)["golden.scalars.Two"].plan
    record = next(r for r in load_vectors() if r["message"] == "golden.scalars.Two" and r["proto"])
    reader = NativeReader([mp])
    assert check(reader, mp, record["yaff"], record["proto"]) == []
    assert check(reader, mp, record["yaff"], b"") != []
