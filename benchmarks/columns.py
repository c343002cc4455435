"""Columns of ad banners: five beside other libraries, by rows and by threads; twenty; text and lists."""

from __future__ import annotations

import functools
import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

import yaffjit as yj
from benchmarks.banners import Banners, made
from benchmarks.timing import Amount, Bar, Curve, Race, check_equal

PATHS = ("id", "price", "state", "stats.clicks", "stats.ctr")
DTYPES = (np.uint64, np.float64, np.int32, np.uint64, np.float64)
TWENTY = (
    *PATHS,
    "campaign_id",
    "stats.impressions",
    "geo.lat",
    "geo.lon",
    "daily_limit",
    "account_id",
    "contact",
    "len(tags)",
    "len(weights)",
    "weights[0]",
    "price:float32",
    "state:int8",
    "stats.ctr:float32",
    "geo.lat:float32",
    "geo.lon:float32",
)
TEXTS = ("title", "url")
TEXT_BYTES_A_SECOND = 1e9
MAX_EXTRA_BYTES = 5_000_000
ROWS = 1_000_000
QUICK_ROWS = 100_000

PRUNED = """
syntax = "proto3";
package ads;
message Stats { uint64 clicks = 2; double ctr = 3; }
message Banner { uint64 id = 1; double price = 3; int32 state = 4; Stats stats = 7; }
"""

Arrays = list[NDArray[Any]]


def races(quick: bool) -> Iterator[Race]:
    rows = QUICK_ROWS if quick else ROWS
    data = made(rows)
    ready = empty(rows)
    out = dict(zip(PATHS, ready, strict=True))
    structured = np.empty(rows, [(path, dtype) for path, dtype in zip(PATHS, DTYPES, strict=True)])
    for path, array in data.records.columns(*PATHS).items():
        structured[path] = array

    def into_ready() -> Arrays:
        data.records.columns(*PATHS, out=out)
        return ready

    words = np.frombuffer(data.data[: len(data.data) // 8 * 8], np.uint64)
    contenders = {
        "google.protobuf": lambda: by_protobuf(data),
        "yaffjit, ready arrays": into_ready,
        "yaffjit, fresh arrays": lambda: list(data.records.columns(*PATHS).values()),
        "numpy structured array": lambda: [structured[path].copy() for path in PATHS],
        "Arrow IPC, columns written before": arrow_columns(structured),
    }
    bars = [
        Bar("yaffjit, ready arrays", "google.protobuf", at_least=80.0),
        Bar("yaffjit, fresh arrays", "google.protobuf", at_least=40.0),
    ]
    ptars = ptars_columns(data)
    if ptars is not None:
        contenders["ptars"] = ptars
        bars += [
            Bar("yaffjit, ready arrays", "ptars", at_least=12.0),
            Bar("yaffjit, fresh arrays", "ptars", at_least=6.0),
        ]
    streaming = Race(
        f"reading each byte of {rows:,} banners once: what this machine's memory allows",
        rows,
        {"a jitted sum": lambda: streamed(words)},
    )
    yield streaming
    race = Race(f"five columns of {rows:,} banners", rows, contenders, bars, repetitions=3 if quick else 9)
    check_equal(race)
    race.checked = False  # it is done, and takes seconds
    yield race
    yield from scaling(data, rows)
    yield twenty(data, rows)
    yield texts(data, rows)
    yield lists(data, rows)
    yield compiling(data)


def scaling(data: Banners, rows: int) -> Iterator[Race]:
    """Five columns into ready arrays by numbers of rows on one thread, and by threads."""
    ready = dict(zip(PATHS, empty(rows), strict=True))

    def read(count: int, threads: int) -> int:
        out = {path: array[:count] for path, array in ready.items()}
        data.records[:count].columns(*PATHS, out=out, threads=threads)
        return count

    counts = [count for count in (1_000, 10_000, 100_000, 1_000_000) if count <= rows]
    for count in counts:
        yield Race(
            f"five columns of the first {count:,} banners, one thread",
            count,
            {"yaffjit": functools.partial(read, count, 1)},
            curve=Curve("five columns by banners", "banners", count),
        )
    for threads in range(1, (os.cpu_count() or 1) + 1):
        yield Race(
            f"five columns of {rows:,} banners, threads: {threads}",
            rows,
            {"yaffjit": functools.partial(read, rows, threads)},
            curve=Curve("five columns by threads", "threads", threads),
        )


def arrow_columns(structured: NDArray[Any]) -> Callable[[], Arrays]:
    """A function that reads the columns of an Arrow IPC stream in memory into arrays of their own."""
    import pyarrow as pa

    table = pa.table({path: np.ascontiguousarray(structured[path]) for path in PATHS})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    stream = sink.getvalue()

    def read() -> Arrays:
        found = pa.ipc.open_stream(stream).read_all()
        return [found[path].to_numpy().copy() for path in PATHS]

    return read


def twenty(data: Banners, rows: int) -> Race:
    """Four times as many columns, into arrays that are there."""
    wanted = data.records[:0].columns(*TWENTY)
    out = {path: np.zeros(rows, wanted[path].dtype) for path in TWENTY}
    five = {path: out[path] for path in PATHS}

    def read(paths: tuple[str, ...], out: dict[str, NDArray[Any]]) -> Arrays:
        data.records.columns(*paths, out=out)
        return [out[path] for path in PATHS]

    contenders = {
        "five columns": lambda: read(PATHS, five),
        "twenty columns": lambda: read(TWENTY, out),
    }
    bars = [Bar("twenty columns", "five columns", at_most=3.0)]
    return Race(f"numbers of {rows:,} banners", rows, contenders, bars)


def texts(data: Banners, rows: int) -> Race:
    def read() -> Arrays:
        columns = data.records.columns(*TEXTS)
        return [columns[path].data for path in TEXTS]

    known = read()
    nbytes = sum(array.nbytes for array in known)
    contenders = {"yaffjit": read, "numpy copies of the bytes": lambda: [array.copy() for array in known]}
    bars = [Bar("yaffjit", seconds=nbytes / TEXT_BYTES_A_SECOND)]
    return Race(
        f"two columns of text of {rows:,} banners, {nbytes / rows:.0f} bytes each", rows, contenders, bars
    )


def lists(data: Banners, rows: int) -> Race:
    def read() -> Arrays:
        columns = data.records.columns("weights", "tags")
        return [columns["weights"].values, columns["tags"].values.data, columns["tags"].offsets]

    known = read()
    contenders = {"yaffjit": read, "numpy copies of the arrays": lambda: [array.copy() for array in known]}
    return Race(f"a list of floats and one of texts of {rows:,} banners", rows, contenders)


def compiling(data: Banners) -> Race:
    """Seconds until a new set of columns of no rows is there: what compiling takes."""
    from yaffjit.jit.columns.loops import measure
    from yaffjit.jit.columns.paths import Paths

    def compiled(count: int) -> float:
        paths = Paths(data.message_type.plan, tuple(itertools.islice(itertools.cycle(TWENTY), count)))
        table = np.zeros(len(paths.gathering.slots), np.int64)
        loop = numba.njit(measure.py_func, nogil=True)
        started = time.perf_counter()
        loop(data.records, paths, table, 0, 0)
        return time.perf_counter() - started

    contenders: dict[str, Callable[[], Any]] = {
        f"{count} columns": functools.partial(compiled, count) for count in (5, 20, 100)
    }
    return Race("compiling columns of numbers", 1, contenders, reported=True)


@numba.njit
def streamed(words: NDArray[np.uint64]) -> np.uint64:
    total = np.uint64(0)
    for word in words:
        total += word
    return total


def amounts(quick: bool) -> Iterator[Amount]:
    yield Amount("five columns into ready arrays", "extra memory", extra_bytes(quick), MAX_EXTRA_BYTES)


def extra_bytes(quick: bool) -> int:
    """Bytes of memory that filling ready arrays takes beside them, at its peak."""
    rows = QUICK_ROWS if quick else ROWS
    data = made(rows)
    out = dict(zip(PATHS, empty(rows), strict=True))
    data.records.columns(*PATHS, out=out)
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from now on
    before = resident("VmRSS")
    data.records.columns(*PATHS, out=out)
    return max(0, resident("VmHWM") - before)


def resident(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"/proc/self/status has no {name}")


def empty(rows: int) -> Arrays:
    """Arrays for the five columns whose pages are there already."""
    return [np.zeros(rows, dtype) for dtype in DTYPES]


def by_protobuf(data: Banners) -> Arrays:
    """Parse each banner and read its five fields."""
    parse = data.message_type.message_class.FromString
    lists: list[list[Any]] = [[] for _ in PATHS]
    add_id, add_price, add_state, add_clicks, add_rate = (values.append for values in lists)
    for _ in range(data.repeats):
        for payload in data.payloads:
            banner = parse(payload)
            add_id(banner.id)
            add_price(banner.price)
            add_state(banner.state)
            stats = banner.stats
            add_clicks(stats.clicks)
            add_rate(stats.ctr)
    return [np.array(values, dtype) for values, dtype in zip(lists, DTYPES, strict=True)]


def ptars_columns(data: Banners) -> Any:
    """A function that reads the columns by ptars and a schema of only these fields; None without ptars."""
    try:
        import ptars
    except ImportError:
        return None
    import pyarrow as pa

    with tempfile.TemporaryDirectory(prefix="yaffjit-benchmark-") as folder:
        path = Path(folder) / "pruned.proto"
        path.write_text(PRUNED)
        pruned = yj.load_schema(path)["ads.Banner"].message_class.DESCRIPTOR
    handler = ptars.HandlerPool([pruned.file]).get_for_message(pruned)
    payloads = pa.array(data.payloads * data.repeats, pa.binary())

    def call() -> Arrays:
        batch = handler.array_to_record_batch(payloads)
        stats = batch.column("stats")
        columns = [batch.column(name) for name in ("id", "price", "state")]
        columns += [stats.field("clicks"), stats.field("ctr")]
        return [as_numpy(column) for column in columns]

    return call


def as_numpy(column: Any) -> NDArray[Any]:
    """Zero-copy where nothing is null."""
    return column.to_numpy(zero_copy_only=False) if column.null_count == 0 else filled(column)


def filled(column: Any) -> NDArray[Any]:
    import pyarrow.compute as pc

    return pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
