"""Finding rows: in any order over more memory than caches hold, through the table of chunks, by address."""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

import yaffjit as yj
from benchmarks.banners import made
from benchmarks.getters import sum_leaf, tree
from benchmarks.native import Reader
from benchmarks.timing import Bar, Race

SPREAD_NBYTES = 520_000_000  # far more than any cache
QUICK_NBYTES = 20_000_000
DISTINCT = 20_000  # messages that are made one by one; more memory repeats them
VISITS = 1_000_000  # rows of one call, each somewhere else
QUICK_VISITS = 20_000
CHUNK_ROWS = 8_192
HOT_ROWS = 3_500
LISTED = 1_000_000
FEW, MANY = 1_000, 10_000_000
QUICK_MANY = 200_000
REPETITIONS = 15

Spread = tuple[Any, NDArray[np.uint8], NDArray[np.int64]]


@numba.njit
def sum_leaf_by_row(roots: Any, rows: NDArray[np.int64]) -> Any:
    total = 0
    for i in range(len(rows)):
        root = roots[rows[i]]
        total += (
            root.mid.leaf.a
            + root.mid.leaf.b
            + root.mid.leaf.c
            + root.mid.leaf.d
            + root.mid.leaf.e
            + root.mid.leaf.f
            + root.mid.leaf.g
            + root.mid.leaf.h
            + root.mid.leaf.i
        )
    return total


@numba.njit
def sum_banners(banners: Any) -> float:
    total = 0.0
    for banner in banners:
        stats = banner.stats
        total += banner.price + stats.ctr + float(banner.id + stats.clicks + banner.state)
    return total


@numba.njit
def sum_first(roots: Any) -> Any:
    total = 0
    for root in roots:
        total += root.a
    return total


@numba.njit
def sum_first_by_row(roots: Any, rows: NDArray[np.int64]) -> Any:
    total = 0
    for i in range(len(rows)):
        total += roots[rows[i]].a
    return total


def spread(message_type: Any, payloads: list[bytes], nbytes: int) -> Spread:
    """Records over at least so many bytes, and their data and offsets."""
    whole = b"".join(payloads)
    repeats = -(-nbytes // len(whole))
    data = np.frombuffer(whole * repeats, np.uint8)
    lengths = np.tile(np.array([len(payload) for payload in payloads], np.int64), repeats)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    return yj.records_unchecked(message_type, (data, offsets)), data, offsets


def races(quick: bool) -> Iterator[Race]:
    with tempfile.TemporaryDirectory(prefix="yaffjit-benchmark-") as folder:
        reader = Reader(Path(folder))
        nbytes = QUICK_NBYTES if quick else SPREAD_NBYTES
        visits = QUICK_VISITS if quick else VISITS
        yield from of_trees(reader, nbytes, visits)
        yield from of_banners(reader, nbytes, visits)
        yield from of_chunks(reader)
    yield of_lists()
    yield from of_counts(QUICK_MANY if quick else MANY)


def of_trees(reader: Reader, nbytes: int, visits: int) -> Iterator[Race]:
    source, *_ = tree(DISTINCT, "flat")
    payloads = [source.payload(row) for row in range(len(source))]
    recs, data, offsets = spread(yj_type(source), payloads, nbytes)
    rows = np.random.default_rng(1).integers(0, len(recs), visits)
    in_c = reader.rows("sum_of_rows", data, offsets, rows)
    size = f"{data.nbytes / 1e6:,.0f} MB"
    yield Race(
        f"nine fields of flat trees anywhere in {size}",
        visits,
        {"yaffjit, for root in recs.take(rows)": partial(sum_leaf, recs.take(rows)), "C, rows[i]": in_c},
        [Bar("yaffjit, for root in recs.take(rows)", "C, rows[i]", at_most=0.6)],
        repetitions=REPETITIONS,
    )
    yield Race(
        f"nine fields of flat trees anywhere in {size}, recs[i]",
        visits,
        {"yaffjit, recs[i]": partial(sum_leaf_by_row, recs, rows), "C, rows[i]": in_c},
        [Bar("yaffjit, recs[i]", "C, rows[i]", at_most=1.0)],
        repetitions=REPETITIONS,
    )


def of_banners(reader: Reader, nbytes: int, visits: int) -> Iterator[Race]:
    banners = made(DISTINCT)
    recs, data, offsets = spread(banners.message_type, banners.encoded, nbytes)
    rows = np.random.default_rng(1).integers(0, len(recs), visits)
    yield Race(
        f"five fields of banners anywhere in {data.nbytes / 1e6:,.0f} MB",
        visits,
        {
            "yaffjit, for banner in recs.take(rows)": partial(sum_banners, recs.take(rows)),
            "C, rows[i]": reader.rows("sum_of_banners", data, offsets, rows),
        },
        [Bar("yaffjit, for banner in recs.take(rows)", "C, rows[i]", at_most=0.8)],
        repetitions=REPETITIONS,
    )


def of_chunks(reader: Reader) -> Iterator[Race]:
    """What finding a row costs more than in C, which has one array of offsets and no table."""
    recs, data, offsets, *_ = tree(HOT_ROWS, "flat")
    rows = np.random.default_rng(1).integers(0, HOT_ROWS, HOT_ROWS)
    for how, ours, in_c in (
        ("in a loop over them", partial(sum_first, recs), reader.sum("sum_first", data, offsets)),
        (
            "by recs[i]",
            partial(sum_first_by_row, recs, rows),
            reader.rows("sum_first_of_rows", data, offsets, rows),
        ),
    ):
        assert ours() == in_c()
        yield Race(
            f"finding {HOT_ROWS:,} rows in cache {how}",
            1,
            {"yaffjit, beyond C": partial(more, ours, in_c, HOT_ROWS)},
            [Bar("yaffjit, beyond C", seconds=1.5e-9)],
            reported=True,
            repetitions=REPETITIONS,
        )


def more(work: Callable[[], Any], other: Callable[[], Any], count: int) -> float:
    """Seconds that one function takes more than another, for each of ``count``."""
    return (fastest(work) - fastest(other)) / count


def fastest(work: Callable[[], Any], calls: int = 20) -> float:
    """The least seconds of a call."""
    least = float("inf")
    for _ in range(calls):
        start = time.perf_counter()
        work()
        least = min(least, time.perf_counter() - start)
    return least


def of_lists() -> Race:
    banners = made(DISTINCT)
    # Objects of their own, as they come out of a file or a queue.
    payloads = [bytes(bytearray(banners.encoded[row % DISTINCT])) for row in range(LISTED)]

    def seconds() -> float:
        start = time.perf_counter()
        recs = yj.records_unchecked(banners.message_type, payloads)
        taken = time.perf_counter() - start
        assert len(recs) == LISTED
        return taken

    return Race(
        f"records of a list of {LISTED:,} bytes objects, not verified",
        1,
        {"yaffjit": seconds},
        [Bar("yaffjit", seconds=0.08)],
        reported=True,
        repetitions=REPETITIONS,
    )


def of_counts(count: int) -> Iterator[Race]:
    """Each record costs the same, however many there are.

    Chunks and rows repeat few small messages, so that it isn't the caches that tell.
    """
    Leaf = yj.load_schema(Path(__file__).with_name("tree.proto"))["tree.Leaf"]
    payloads = [Leaf.encode({"a": row}) for row in range(1, FEW + 1)]
    few = joined(Leaf, payloads)
    chunk = joined(Leaf, (payloads * -(-CHUNK_ROWS // FEW))[:CHUNK_ROWS])
    rows = np.arange(count) % FEW
    for how, less, more in (
        ("in chunks", few, yj.concat([chunk] * -(-count // CHUNK_ROWS))[:count]),
        ("taken", few.take(rows[:FEW]), few.take(rows)),
    ):
        assert (few._store.scattered, more._store.scattered) == (False, how == "taken")
        contenders = {f"{len(recs):,} records": recs for recs in (less, more)}
        yield Race(
            f"the first field of each of {FEW:,} and of {count:,} records {how}",
            1,
            {name: partial(each, partial(sum_first, recs), len(recs)) for name, recs in contenders.items()},
            [Bar(f"{count:,} records", f"{FEW:,} records", at_most=2.0)],
            reported=True,
            repetitions=REPETITIONS,
        )


def joined(message_type: Any, payloads: list[bytes]) -> Any:
    """Records of messages in one buffer."""
    offsets = np.cumsum([0, *map(len, payloads)])
    return yj.records(message_type, (b"".join(payloads), offsets))


def each(work: Callable[[], Any], count: int) -> float:
    """The least seconds of a call for each of ``count``."""
    gc.collect()
    return fastest(work, max(1, min(20, LISTED // count))) / count


def yj_type(recs: Any) -> Any:
    """The message type of records."""
    return yj.load_schema(Path(__file__).with_name("tree.proto"))["tree.Root"]
