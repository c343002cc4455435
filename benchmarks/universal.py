"""Universal documents beside MessagePack, JSON and Python's own: a large map, and many small records."""

from __future__ import annotations

import json
import marshal
import pickle
import random
import statistics
import string
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

from benchmarks.timing import Amount, Bar, Race, run
from yaffjit.render import text_table
from yaffjit.universal import columns, dumps, encode_columns, loads, view

PAIRS = 1_000_000
QUICK_PAIRS = 100_000
RECORDS = 100_000
QUICK_RECORDS = 10_000
PEER = "msgspec's MessagePack"
BSON = "bson (pymongo)"

# The modules that are raced where they are installed, and how their functions are called.
PEERS = (
    (PEER, "msgspec.msgpack", "encode", "decode"),
    ("msgspec's JSON", "msgspec.json", "encode", "decode"),
    ("ormsgpack", "ormsgpack", "packb", "unpackb"),
    ("msgpack", "msgpack", "packb", "unpackb"),
    ("orjson", "orjson", "dumps", "loads"),
    ("cbor2", "cbor2", "dumps", "loads"),
    (BSON, "bson", "encode", "decode"),
)
Codec = tuple[Callable[[Any], Any], Callable[[Any], Any]]


def races(quick: bool) -> Iterator[Race]:
    objects = {
        f"a map of {len(pairs(quick)):,} pairs": (pairs(quick), 1.1, 0.85),
        f"{len(records(quick)):,} small records": (records(quick), 1.2, 1.2),
    }
    for name, (obj, at_most_writing, at_most_reading) in objects.items():
        writers: dict[str, Callable[[], Any]] = {}
        readers: dict[str, Callable[[], Any]] = {}
        for codec, (write, read) in codecs().items():
            writers[codec] = partial(write, obj)
            readers[codec] = partial(read, write(obj))
        beside = PEER in writers
        yield Race(
            f"writing {name}",
            len(obj),
            writers,
            [Bar("yaffjit", PEER, at_most=at_most_writing)] if beside else [],
            checked=False,  # each writes another format
        )
        yield Race(
            f"reading {name}",
            len(obj),
            readers,
            [Bar("yaffjit", PEER, at_most=at_most_reading)] if beside else [],
        )

    yield from _columns(quick)
    yield _get()
    yield _get_jitted()


def _columns(quick: bool) -> Iterator[Race]:
    """Writing and reading columns; the time is of a byte of the document."""
    rows = QUICK_RECORDS if quick else PAIRS
    rng = np.random.default_rng(3)
    numbers: dict[str, Any] = {
        "id": np.arange(rows),
        "ts": np.arange(rows) * 10**7 + 2**40,
        "value": rng.random(rows),
        "temp": rng.random(rows),
        "ok": rng.random(rows) < 0.5,
    }
    texts = {**numbers, "name": pa.array([f"user {i}" for i in range(rows)], pa.large_string())}
    for what, given, seconds in (("numbers", numbers, 0.5e-9), ("numbers and text", texts, 1e-9)):
        data = encode_columns(given)
        dtypes = {name: getattr(column, "dtype", str) for name, column in given.items()}
        bars = [Bar("yaffjit", seconds=seconds * len(data))]  # of a call
        title = f"columns of {what}, {rows:,} objects, a byte"
        yield Race(
            f"writing {title}", len(data), {"yaffjit": partial(encode_columns, given)}, bars, unit="ns a byte"
        )
        reading: dict[str, Callable[[], Any]] = {"yaffjit": partial(_read, data, dtypes)}
        yield Race(f"reading {title}", len(data), reading, bars, unit="ns a byte")


def _read(data: bytes, dtypes: dict[str, Any]) -> int:
    return columns(data, dtypes).rows


LOOK_UPS = 10_000


def _get() -> Race:
    found = view(dumps(document()))

    def yaffjit() -> int:
        return sum(found.get("a.b[3].c") for _ in range(LOOK_UPS))

    def decoded() -> int:
        data = dumps(document())
        return sum(loads(data)["a"]["b"][3]["c"] for _ in range(LOOK_UPS))

    bars = [Bar("yaffjit get", seconds=200e-9 * LOOK_UPS)]
    contenders: dict[str, Callable[[], Any]] = {"yaffjit get": yaffjit, "yaffjit loads": decoded}
    return Race("a.b[3].c of a document of 200 bytes", LOOK_UPS, contenders, bars)


def _get_jitted() -> Race:
    found = view(dumps(document()))

    @njit
    def total(v, count):  # type: ignore[no-untyped-def]
        total = 0
        for _ in range(count):
            total += v.get_int("a.b[3].c", 0)
        return total

    contenders: dict[str, Callable[[], Any]] = {"yaffjit get_int": partial(total, found, LOOK_UPS)}
    bars = [Bar("yaffjit get_int", seconds=120e-9 * LOOK_UPS)]
    return Race("a.b[3].c of a document of 200 bytes, jitted", LOOK_UPS, contenders, bars)


def document() -> dict[str, Any]:
    """An object of some 200 bytes."""
    return {
        "id": 7,
        "name": "some name",
        "tags": ["a", "b", "ccc"],
        "x": {"y": 1.5, "zz": [1, 2, 3, 4, 5]},
        "pad": "x" * 64,
        "a": {"b": [{"c": 1}, {"c": 2}, {"c": 3}, {"c": 99, "d": "e"}], "q": True},
    }


@cache
def codecs() -> dict[str, Codec]:
    """What writes an object and what reads it again, by name."""
    found: dict[str, Codec] = {"yaffjit": (dumps, loads)}
    for name, module, write, read in PEERS:
        try:
            peer = import_module(module)
        except ImportError:
            continue
        found[name] = getattr(peer, write), getattr(peer, read)
    if BSON in found:  # its documents are dicts
        encode, decode = found[BSON]
        found[BSON] = lambda obj: encode({"": obj}), lambda data: decode(data)[""]
    found["json"] = json.dumps, json.loads
    found["pickle"] = pickle.dumps, pickle.loads
    found["marshal"] = marshal.dumps, marshal.loads
    return found


def amounts(quick: bool) -> Iterator[Amount]:
    """All codecs in one table, printed, and the bar on our size."""
    rows = [
        (name, *(text for obj in (pairs(quick), records(quick)) for text in _measured(obj, codec)))
        for name, codec in codecs().items()
    ]
    one = ("bytes", "writing", "reading")
    heads = ("", *(f"map: {what}" for what in one), *(f"records: {what}" for what in one))
    print(f"\n{text_table(heads, rows, right=heads[1:])}\nns a pair or record, garbage collector off")
    missing = [name for name, *_ in PEERS if name not in codecs()]
    print(f"not installed: {', '.join(missing) or 'none'}", flush=True)
    found = sizes(quick)
    print(f"yaffjit, width='smallest': {found['smallest']:,} bytes", flush=True)
    if PEER in codecs():
        yield Amount("the size of a map of pairs", "size", found["yaffjit"], found[PEER])


def _measured(obj: Any, codec: Codec) -> tuple[str, str, str]:
    """Bytes, and nanoseconds of writing and of reading an item."""
    write, read = codec
    data = write(obj)
    works: dict[str, Callable[[], Any]] = {"write": partial(write, obj), "read": partial(read, data)}
    seconds = run(Race("", len(obj), works, checked=False), 5, 3.0).seconds
    shown = {name: f"{statistics.median(one) / len(obj) * 1e9:.0f}" for name, one in seconds.items()}
    return f"{len(data):,}", shown["write"], shown["read"]


def sizes(quick: bool) -> dict[str, int]:
    """Bytes of the map, by codec."""
    found = {name: len(write(pairs(quick))) for name, (write, _) in codecs().items()}
    return {**found, "smallest": len(dumps(pairs(quick), width="smallest"))}


@cache
def pairs(quick: bool) -> dict[str, Any]:
    """The published object: keys of 15 to 20 random characters; a bool, an int32 or a double each."""
    rng = random.Random(1)
    letters = string.ascii_letters + string.digits
    values: tuple[Callable[[], Any], ...] = (
        lambda: rng.random() < 0.5,
        lambda: rng.randrange(-(2**31), 2**31),
        rng.random,
    )
    count = QUICK_PAIRS if quick else PAIRS
    return {"".join(rng.choices(letters, k=rng.randint(15, 20))): rng.choice(values)() for _ in range(count)}


@cache
def records(quick: bool) -> list[dict[str, Any]]:
    """Records of six fields."""
    rng = random.Random(2)
    return [
        {
            "id": i,
            "name": f"user {i}",
            "score": rng.random(),
            "active": bool(i & 1),
            "tags": ["a", f"tag {i % 10}"],
            "time": 1_700_000_000 + i,
        }
        for i in range(QUICK_RECORDS if quick else RECORDS)
    ]
