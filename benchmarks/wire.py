"""Protobuf bytes as they are, in jitted loops, beside wire.c and protobuf's parser."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

import yaffjit as yj
from benchmarks.banners import made
from benchmarks.columns import PATHS, by_protobuf, ptars_columns
from benchmarks.native import Wire
from benchmarks.timing import Bar, Race

SCHEMA_FILE = Path(__file__).with_name("campaign.proto")
# Operations, hackers of each: 0.5 KB, 20 KB, 2 MB and, at length, 100 MB.
SHAPES = {"0.5 KB": (3, 4), "20 KB": (20, 28), "2 MB": (200, 280), "100 MB": (2000, 1400)}
NBYTES = 400_000  # of all messages of a race, at least one: in cache, where they are small
ROWS = 1_000_000
QUICK_ROWS = 100_000


@numba.njit
def five(records, ids, prices, states, clicks, ctrs):  # type: ignore[no-untyped-def]
    for row, banner in enumerate(records):
        ids[row] = banner.id
        prices[row] = banner.price
        states[row] = banner.state
        clicks[row] = banner.stats.clicks
        ctrs[row] = banner.stats.ctr


five_beside = numba.njit(nogil=True)(five.py_func)


@numba.njit
def shallow(records):  # type: ignore[no-untyped-def]
    total = 0
    for campaign in records:
        total += np.int64(campaign.id) + len(campaign.operations) + len(campaign.tags)
    return total


@numba.njit
def counts(records):  # type: ignore[no-untyped-def]
    total = 0
    for campaign in records:
        for operation in campaign.operations:
            total += 1 + len(operation.crew)
    return total


@numba.njit
def deep(records):  # type: ignore[no-untyped-def]
    total = 0
    for campaign in records:
        for operation in campaign.operations:
            for hacker in operation.crew:
                total += len(hacker.handle)
    return total


def races(quick: bool) -> Iterator[Race]:
    with tempfile.TemporaryDirectory(prefix="yaffjit-benchmark-") as name:
        native = Wire(Path(name))
        yield banners(native, QUICK_ROWS if quick else ROWS)
        yield two_threads(native, QUICK_ROWS if quick else ROWS)
        for size, (operations, crew) in SHAPES.items():
            if not (quick and size in ("2 MB", "100 MB")):
                yield from campaigns(native, size, operations, crew)


def empty(rows: int) -> list[NDArray[Any]]:
    return [np.empty(rows, kind) for kind in (np.uint64, np.float64, np.int64, np.uint64, np.float64)]


def banners(native: Wire, rows: int) -> Race:
    data = made(rows)
    records = yj.records(data.message_type, data.payloads * data.repeats, representation="protobuf")
    joined, offsets = joined_of(data.payloads, data.repeats)
    regular = yj.records(data.message_type, (joined, offsets), representation="protobuf")
    out, out_of_c = empty(rows), empty(rows)
    by_hand = native.banners(joined, offsets, out_of_c)

    def loop(held: Any) -> list[NDArray[Any]]:
        five(held, *out)
        return out

    ready = {
        path: np.empty(rows, kind)
        for path, kind in zip(PATHS, (np.uint64, np.float64, np.int32, np.uint64, np.float64), strict=True)
    }

    def by_columns() -> list[NDArray[Any]]:
        regular.columns(*PATHS, out=ready, threads=1)
        return list(ready.values())

    contenders: dict[str, Callable[[], Any]] = {
        "C by hand": by_hand,
        "yaffjit, jitted loop": partial(loop, regular),
        "yaffjit, columns": by_columns,
        "yaffjit, jitted loop over bytes objects": partial(loop, records),
        "google.protobuf": partial(by_protobuf, data),
    }
    bars = [
        Bar("yaffjit, jitted loop", "C by hand", at_most=1.15),
        Bar("yaffjit, columns", "C by hand", at_most=1.15),
        Bar("yaffjit, jitted loop", "google.protobuf", at_least=18.0),
    ]
    by_ptars = ptars_columns(data)
    if by_ptars is not None:
        contenders["ptars"] = by_ptars
        bars.append(Bar("yaffjit, columns", "ptars", at_least=3.0))
    return Race(f"five features of {rows:,} banners of protobuf bytes", rows, contenders, bars)


def two_threads(native: Wire, rows: int) -> Race:
    """The same features by one thread and by two, which take half of the rows each."""
    data = made(rows)
    joined, offsets = joined_of(data.payloads, data.repeats)
    records = yj.records(data.message_type, (joined, offsets), representation="protobuf")
    out, out_of_c = empty(rows), empty(rows)
    ready = dict(zip(PATHS, empty(rows), strict=True))
    ready["state"] = np.empty(rows, np.int32)
    parts = [slice(0, rows // 2), slice(rows // 2, rows)]
    whole_by_hand = native.banners(joined, offsets, out_of_c)
    halves_by_hand = [
        native.banners(joined, offsets[part.start : part.stop + 1], [array[part] for array in out_of_c])
        for part in parts
    ]
    halves = [(records[part], *(array[part] for array in out)) for part in parts]
    pool = ThreadPoolExecutor(2)

    def both(calls: list[Callable[[], Any]], found: list[NDArray[Any]]) -> list[NDArray[Any]]:
        for done in [pool.submit(call) for call in calls]:
            done.result()
        return found

    def loop() -> list[NDArray[Any]]:
        five_beside(records, *out)
        return out

    def columns(threads: int) -> list[NDArray[Any]]:
        records.columns(*PATHS, out=ready, threads=threads)
        return list(ready.values())

    return Race(
        f"five features of {rows:,} banners of protobuf bytes, by threads",
        rows,
        {
            "C by hand, one thread": whole_by_hand,
            "C by hand, two threads": partial(both, halves_by_hand, out_of_c),
            "yaffjit, jitted loop, one thread": loop,
            "yaffjit, jitted loop, two threads": partial(
                both, [partial(five_beside, *half) for half in halves], out
            ),
            "yaffjit, columns, one thread": partial(columns, 1),
            "yaffjit, columns, two threads": partial(columns, 2),
        },
        [
            Bar(f"yaffjit, {what}, two threads", f"yaffjit, {what}, one thread", at_least=1.7)
            for what in ("jitted loop", "columns")
        ],
    )


def campaigns(native: Wire, size: str, operations: int, crew: int) -> Iterator[Race]:
    Campaign = yj.load_schema(SCHEMA_FILE)["wire.Campaign"]
    payload = campaign(Campaign.message_class, operations, crew, random.Random(1))
    others = [
        campaign(Campaign.message_class, operations, crew, random.Random(seed)) for seed in range(2, 12)
    ]
    payloads = [payload, *others] if len(payload) < 10**6 else [payload]
    data, offsets = joined_of(payloads, max(1, NBYTES // sum(map(len, payloads))))
    rows = len(offsets) - 1
    records = yj.records(Campaign, (data, offsets), representation="protobuf")
    parse = Campaign.message_class.FromString
    raw = [data[offsets[row] : offsets[row + 1]] for row in range(rows)]
    plain: dict[str, Callable[[Any], int]] = {
        "shallow": lambda m: m.id + len(m.operations) + len(m.tags),
        "counts": lambda m: sum(1 + len(operation.crew) for operation in m.operations),
        "deep": lambda m: sum(len(h.handle) for operation in m.operations for h in operation.crew),
    }
    for name, jitted in (("shallow", shallow), ("counts", counts), ("deep", deep)):
        # Races of their own: after protobuf's parser caches are cold.
        yield Race(
            f"{name} of campaigns of {size}",
            rows,
            {"C by hand": native.campaigns(name, data, offsets), "yaffjit": partial(jitted, records)},
            [] if name == "counts" else [Bar("yaffjit", "C by hand", at_most=1.3)],
        )
        yield Race(
            f"{name} of campaigns of {size}, beside parsing",
            rows,
            {
                "yaffjit": partial(jitted, records),
                "google.protobuf": lambda read=plain[name]: sum(map(read, map(parse, raw))),  # type: ignore[misc]
            },
            []
            if name != "shallow"
            else [Bar("yaffjit", "google.protobuf", at_least=10.0 if size == "0.5 KB" else 100.0)],
        )


def joined_of(payloads: list[bytes], repeats: int) -> tuple[bytes, NDArray[np.int64]]:
    lengths = np.tile(np.array([len(payload) for payload in payloads], np.int64), repeats)
    return b"".join(payloads) * repeats, np.concatenate(([0], np.cumsum(lengths)))


def campaign(message_class: Any, operations: int, crew: int, chance: random.Random) -> bytes:
    """A message of names, keys and numbers as an application has them."""
    message = message_class(
        id=chance.getrandbits(40),
        name=f"campaign {chance.randrange(10**6)}",
        started=chance.getrandbits(40),
        tags=["red", "blue", "green"],
    )
    for _ in range(operations):
        operation = message.operations.add(
            id=chance.getrandbits(30),
            name=f"operation {chance.randrange(1000)}",
            budget=chance.random(),
            done=chance.random() < 0.5,
        )
        for _ in range(crew):
            operation.crew.add(
                handle="h" * chance.randrange(4, 14),
                key=chance.randbytes(8),
                active=chance.random() < 0.7,
                skill=chance.random(),
                rank=chance.random(),
            )
    made: bytes = message.SerializeToString()
    return made
