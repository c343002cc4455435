"""The records of the C++ library's output that lie beside the tests."""

from __future__ import annotations

import base64
import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent


@cache
def load_vectors() -> tuple[dict[str, Any], ...]:
    """All records, with ``yaff`` and ``proto`` as bytes."""
    records = []
    with (TESTS / "golden" / "vectors.jsonl").open() as lines:
        for line in lines:
            record = json.loads(line)
            for name in ("yaff", "proto"):
                record[name] = golden_bytes(record, name)
            records.append(record)
    return tuple(records)


def golden_bytes(record: dict[str, Any], name: str) -> bytes | None:
    if f"{name}_gz_b64" in record:
        return gzip.decompress(base64.b64decode(record[f"{name}_gz_b64"]))
    return bytes.fromhex(record[f"{name}_hex"]) if f"{name}_hex" in record else None


def vector_name(record: dict[str, Any]) -> str:
    parts = [record["message"].removeprefix("golden."), record["name"], record["layout"], record.get("slice")]
    return "-".join(part for part in parts if part)
