"""Views of one banner in plain Python, beside google.protobuf's messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from benchmarks.banners import made
from benchmarks.timing import Bar, Race

ROWS = 2000


def races(quick: bool) -> Iterator[Race]:
    data = made(ROWS)
    Banner = data.message_type
    parse = Banner.message_class.FromString
    yield Race(
        "a banner from its bytes, and one scalar",
        ROWS,
        {
            "google.protobuf": lambda: [parse(payload).price for payload in data.payloads],
            "yaffjit view_unchecked": lambda: [Banner.view_unchecked(buf).price for buf in data.encoded],
            "yaffjit view": lambda: [Banner.view(buf).price for buf in data.encoded],
        },
        [
            Bar("yaffjit view_unchecked", "google.protobuf", at_most=1.0),
            Bar("yaffjit view", "google.protobuf", at_most=2.5),
        ],
    )
    messages = [parse(payload) for payload in data.payloads]
    views = [Banner.view_unchecked(buf) for buf in data.encoded]
    reads: list[tuple[str, float, Callable[[Any], Any]]] = [
        ("a scalar (price)", 4.0, read_price),
        ("a scalar (id)", 4.0, read_id),
        ("an enum (state)", 4.0, read_state),
        ("a text (title)", 10.0, read_title),
        ("a field of a nested message (stats.ctr)", 10.0, read_ctr),
    ]
    for what, limit, read in reads:
        yield Race(
            f"reading {what}, ten times a banner",
            ROWS * 10,
            {
                "google.protobuf": partial(read, messages),
                "yaffjit": partial(read, views),
            },
            [Bar("yaffjit", "google.protobuf", at_most=limit)],
            unit="ns a read",
        )


def read_price(items: list[Any]) -> Any:
    for item in items:
        item.price, item.price, item.price, item.price, item.price  # noqa: B018
        item.price, item.price, item.price, item.price, item.price  # noqa: B018
    return [item.price for item in items[:100]]


def read_id(items: list[Any]) -> Any:
    for item in items:
        item.id, item.id, item.id, item.id, item.id  # noqa: B018
        item.id, item.id, item.id, item.id, item.id  # noqa: B018
    return [item.id for item in items[:100]]


def read_state(items: list[Any]) -> Any:
    for item in items:
        item.state, item.state, item.state, item.state, item.state  # noqa: B018
        item.state, item.state, item.state, item.state, item.state  # noqa: B018
    return [item.state for item in items[:100]]


def read_title(items: list[Any]) -> Any:
    for item in items:
        item.title, item.title, item.title, item.title, item.title  # noqa: B018
        item.title, item.title, item.title, item.title, item.title  # noqa: B018
    return [item.title for item in items[:100]]


def read_ctr(items: list[Any]) -> Any:
    for item in items:
        item.stats.ctr, item.stats.ctr, item.stats.ctr, item.stats.ctr, item.stats.ctr  # noqa: B018
        item.stats.ctr, item.stats.ctr, item.stats.ctr, item.stats.ctr, item.stats.ctr  # noqa: B018
    return [item.stats.ctr for item in items[:100]]
