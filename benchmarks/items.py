"""Text and maps in jitted code, beside the same algorithms in C and the same functions on messages."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

import yaffjit as yj
from benchmarks.native import Reader, hash_function
from benchmarks.timing import Bar, Race

ROWS = 2000
TEXTS = 100_000  # a branch predictor learns the order of 10,000
LOOKUPS = 2000
PAIRS = 1000  # of the one map that all look-ups are made in
FEW, MANY = 8, 200  # pairs of each of many maps
KINDS = ("violin", "guitar", "cymbal", "piano", "trumpet")


@numba.njit
def ids_in_one(items: Any, keys: Any) -> Any:
    total = 0.0
    item = items[0]
    for key in keys:
        total += item.by_id.get(key, 0.0)
    return total


@numba.njit
def names_in_one(items: Any) -> Any:
    total = 0.0
    item = items[0]
    for name in item.names:
        total += item.by_name.get(name, 0.0)
    return total


@numba.njit
def id_in_each(items: Any) -> Any:
    total = 0.0
    for item in items:
        total += item.by_id.get(item.wanted_id, 0.0)
    return total


@numba.njit
def name_in_each(items: Any) -> Any:
    total = 0.0
    for item in items:
        total += item.by_name.get(item.wanted_name, 0.0)
    return total


@numba.njit
def count_violins(items: Any) -> Any:
    found = 0
    for item in items:
        if item.kind == "violin":
            found += 1
    return found


@numba.njit
def count_violin_names(items: Any) -> Any:
    found = 0
    for name in items[0].names:
        if name == "violin":
            found += 1
    return found


@numba.njit
def hash_titles(items: Any) -> Any:
    mixed = 0
    for item in items:
        mixed ^= hash(item.title)
    return mixed


class Items:
    """Messages in three forms: google.protobuf's, records, and the arrays that C takes."""

    def __init__(self, contents: list[dict[str, Any]]) -> None:
        Item = yj.load_schema(Path(__file__).with_name("items.proto"))["items.Item"]
        payloads = [Item.encode(content) for content in contents]
        self.messages = [Item.decode(payload) for payload in payloads]
        self.data: NDArray[np.uint8] = np.frombuffer(b"".join(payloads), np.uint8)
        self.offsets = np.concatenate(
            ([0], np.cumsum([len(payload) for payload in payloads], dtype=np.int64))
        )
        self.records = yj.records(Item, (self.data, self.offsets))


def with_maps(rows: int, pairs: int, lookups: int = 0) -> Items:
    """Items whose maps have so many pairs; half of the keys that are looked for are there."""
    rng = np.random.default_rng(3)
    contents = []
    for _ in range(rows):
        ids = rng.choice(1 << 40, 2 * pairs).tolist()
        values = rng.random(pairs).tolist()
        contents.append(
            {
                "by_id": dict(zip(ids[:pairs], values, strict=True)),
                "by_name": {name_of(key): value for key, value in zip(ids[:pairs], values, strict=True)},
                "wanted_id": ids[int(rng.integers(2 * pairs))],
                "wanted_name": name_of(ids[int(rng.integers(2 * pairs))]),
                "names": [name_of(ids[place]) for place in rng.integers(2 * pairs, size=lookups)],
            }
        )
    return Items(contents)


def name_of(key: int) -> str:
    return f"key-{key:x}"


def with_text(rows: int) -> Items:
    rng = np.random.default_rng(4)
    return Items(
        [
            {"kind": KINDS[int(kind)], "title": f"{KINDS[int(kind)]} {number:x}, as good as new"}
            for kind, number in zip(
                rng.integers(len(KINDS), size=rows), rng.integers(1 << 50, size=rows), strict=True
            )
        ]
    )


def races(quick: bool) -> Iterator[Race]:
    """As many objects if ``quick``: with fewer, the calls themselves would count."""
    with tempfile.TemporaryDirectory(prefix="yaffjit-benchmark-") as folder:
        reader = Reader(Path(folder))
        yield from lookups(reader, LOOKUPS)
        for pairs in (FEW, MANY):
            items = with_maps(ROWS if pairs == FEW else ROWS // 10, pairs)
            for what, function in (("integer", id_in_each), ("text", name_in_each)):
                name = f"a look-up by {what} key in each of many maps of {pairs} pairs"
                yield beside_c(reader, items, name, function, 1.2)
        texts = with_text(TEXTS)
        yield beside_c(reader, texts, "comparing a text with a literal", count_violins, 1.3)
        many = Items(
            [{"names": [KINDS[int(kind)] for kind in np.random.default_rng(4).integers(5, size=TEXTS)]}]
        )
        yield Race(
            "comparing each of a repeated text with a literal",
            TEXTS,
            {
                "yaffjit": partial(count_violin_names, many.records),
                "C": reader.items("count_violin_names", many.data, many.offsets),
                "google.protobuf, parsed": partial(count_violin_names.py_func, many.messages),
            },
            [Bar("yaffjit", "C", at_most=1.3)],
        )
        yield beside_c(reader, texts, "the hash of a text", hash_titles, 1.3, hash_function())


def beside_c(reader: Reader, items: Items, name: str, function: Any, limit: float, *more: Any) -> Race:
    """A function over all items, and the one of the same name in C."""
    count = len(items.messages)
    return Race(
        name,
        count,
        {
            "yaffjit": partial(function, items.records),
            "C": reader.items(function.__name__, items.data, items.offsets, count, *more),
            "google.protobuf, parsed": partial(function.py_func, items.messages),
        },
        [Bar("yaffjit", "C", at_most=limit)],
    )


def lookups(reader: Reader, count: int) -> Iterator[Race]:
    items = with_maps(1, PAIRS, count)
    bars = [Bar("yaffjit", "C", at_most=1.2)]
    present = list(items.messages[0].by_id)
    rng = np.random.default_rng(6)
    keys = np.array(
        [present[place % PAIRS] + place // PAIRS for place in rng.integers(2 * PAIRS, size=count)]
    )
    yield Race(
        f"a look-up by integer key in one map of {PAIRS:,} pairs",
        count,
        {
            "yaffjit": partial(ids_in_one, items.records, keys),
            "C": reader.items(
                "ids_in_one", items.data, items.offsets, ctypes.c_void_p(keys.ctypes.data), count
            ),
            "google.protobuf, parsed": partial(ids_in_one.py_func, items.messages, keys.tolist()),
        },
        bars,
    )
    yield Race(
        f"a look-up by text key in one map of {PAIRS:,} pairs",
        count,
        {
            "yaffjit": partial(names_in_one, items.records),
            "C": reader.items("names_in_one", items.data, items.offsets),
            "google.protobuf, parsed": partial(names_in_one.py_func, items.messages),
        },
        bars,
    )
