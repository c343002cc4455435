"""Banners written by a jitted builder, beside google.protobuf that serializes ready messages."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit

from benchmarks import banners
from benchmarks.timing import Bar, Race

ROWS = 20_000
BUFFER_NBYTES = 4096


@njit
def fill(b, banner):  # type: ignore[no-untyped-def]
    """Set all that a banner has."""
    b.id = banner.id
    b.campaign_id = banner.campaign_id
    b.price = banner.price
    b.state = banner.state
    b.title = banner.title
    b.url = banner.url
    if banner.HasField("stats"):
        b.stats.SetInParent()
        b.stats.impressions = banner.stats.impressions
        b.stats.clicks = banner.stats.clicks
        b.stats.ctr = banner.stats.ctr
    if banner.HasField("geo"):
        b.geo.SetInParent()
        b.geo.lat = banner.geo.lat
        b.geo.lon = banner.geo.lon
        b.geo.city = banner.geo.city
    b.tags.extend(banner.tags)
    b.weights.extend(banner.weights)
    if banner.HasField("daily_limit"):
        b.daily_limit = banner.daily_limit
    if banner.HasField("language"):
        b.language = banner.language
    if banner.HasField("phone"):
        b.phone = banner.phone
    if banner.HasField("email"):
        b.email = banner.email
    if banner.HasField("account_id"):
        b.account_id = banner.account_id


@njit
def written(message_type, records, buffer, out):  # type: ignore[no-untyped-def]
    """Write each record into the buffer; ``out`` takes the sums of bytes."""
    b = message_type.builder(buffer)
    for row in range(len(records)):
        b.clear()
        fill(b, records[row])
        data = b.finish()
        out[row] = len(data)
    return out


class Writing:
    """Writes all banners; what it gives are their sizes."""

    def __init__(self, made: Any) -> None:
        self.made = made
        self.buffer = np.zeros(BUFFER_NBYTES, np.uint8)
        self.out = np.zeros(made.rows, np.int64)

    def __call__(self) -> Any:
        return written(self.made.message_type, self.made.records, self.buffer, self.out)


class Serializing:
    """Calls `SerializeToString` of each ready message; the sizes are made once."""

    def __init__(self, made: Any) -> None:
        parse = made.message_type.message_class.FromString
        self.messages = list(map(parse, made.payloads * made.repeats))

    @cached_property
    def sizes(self) -> Any:
        return np.array([len(message.SerializeToString()) for message in self.messages], np.int64)

    def __call__(self) -> Any:
        for message in self.messages:
            message.SerializeToString()
        return self.sizes


def races(quick: bool) -> Iterator[Race]:
    made = banners.made(ROWS // 10 if quick else ROWS)
    yield Race(
        "writing banners field by field",
        made.rows,
        {"builder in @njit": Writing(made), "SerializeToString": Serializing(made)},
        [Bar("builder in @njit", "SerializeToString", at_most=1.0)],
    )
