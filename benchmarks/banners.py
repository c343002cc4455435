"""The demo's ad banners as protobuf messages, protobuf bytes and YaFF records."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import yaffjit as yj
from yaffjit.demo import SCHEMA_FILE, banners

DISTINCT = 100_000  # made one by one; more rows repeat them


@dataclass(frozen=True)
class Banners:
    """``rows`` banners in three forms; ``payloads`` and ``messages`` of the distinct ones only."""

    message_type: Any
    rows: int
    messages: list[Any]
    payloads: list[bytes]
    encoded: list[bytes]
    data: NDArray[np.uint8]
    records: Any

    @property
    def repeats(self) -> int:
        return self.rows // len(self.payloads)


@cache
def made(rows: int) -> Banners:
    """``rows`` banners, which is at most `DISTINCT` or a multiple of it."""
    Banner = yj.load_schema(SCHEMA_FILE)["ads.Banner"]
    distinct = min(rows, DISTINCT)
    messages = list(banners(Banner.message_class, distinct))
    encoded = [Banner.encode(message) for message in messages]
    data = np.frombuffer(b"".join(encoded) * (rows // distinct), np.uint8)
    lengths = np.tile(np.array([len(buf) for buf in encoded], np.int64), rows // distinct)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    return Banners(
        message_type=Banner,
        rows=rows,
        messages=messages,
        payloads=[message.SerializeToString() for message in messages],
        encoded=encoded,
        data=data,
        records=yj.records_unchecked(Banner, (data, offsets)),
    )
