"""Banners to Arrow: whole messages beside ptars and protarrow, five columns beside `columns`, streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

import yaffjit as yj
from benchmarks.banners import Banners, made
from benchmarks.columns import PATHS
from benchmarks.timing import Bar, Race

ROWS = 1_000_000
QUICK_ROWS = 100_000
SLOW_ROWS = 20_000  # for what makes objects


def races(quick: bool) -> Iterator[Race]:
    rows = QUICK_ROWS if quick else ROWS
    data = made(rows)
    payloads = pa.array(data.payloads * data.repeats, pa.large_binary())
    wire = yj.records(data.message_type, payloads, representation="protobuf")
    yield whole(data, wire, rows)
    yield objects(data, wire, min(SLOW_ROWS, rows))
    for name, recs in (("protobuf bytes", wire), ("YaFF", data.records)):
        yield five(recs, rows, name)
    yield first_batch(data.records, rows)


def whole(data: Banners, wire: Any, rows: int) -> Race:
    """All fields of all messages; each call's tables are gone before the next one's are made."""
    contenders: dict[str, Callable[[], Any]] = {
        "yaffjit": lambda: summary(wire.to_arrow()),
        "yaffjit, one thread": lambda: summary(wire.to_arrow(threads=1)),
        "yaffjit, from YaFF": lambda: summary(data.records.to_arrow()),
    }
    bars = []
    handler = ptars_handler(data.message_type)
    if handler is not None:
        payloads = pa.array(data.payloads * data.repeats, pa.binary())
        contenders["ptars"] = lambda: summary(handler.array_to_record_batch(payloads))
        bars = [Bar("yaffjit", "ptars", at_least=5.0)]
    return Race(
        f"whole banners of protobuf bytes to Arrow, {rows:,} rows", rows, contenders, bars, repetitions=5
    )


def objects(data: Banners, wire: Any, rows: int) -> Race:
    """Beside what goes through protobuf's objects."""
    payloads = data.payloads[:rows]
    few = wire[: len(payloads)]
    message_class = data.message_type.message_class
    contenders: dict[str, Callable[[], Any]] = {"yaffjit": lambda: summary(few.to_arrow())}
    try:
        import protarrow
    except ImportError:
        pass
    else:
        contenders["protarrow"] = lambda: summary(
            protarrow.messages_to_table([message_class.FromString(raw) for raw in payloads], message_class)
        )
    return Race(
        f"whole banners of protobuf bytes to Arrow, {len(payloads):,} rows",
        len(payloads),
        contenders,
        repetitions=3,
    )


def five(recs: Any, rows: int, name: str) -> Race:
    """The same columns as a table and as arrays, one after the other with room that the last one left."""
    contenders = {
        "to_arrow": lambda: len(recs.to_arrow(PATHS)),
        "columns": lambda: recs.columns(*PATHS).rows,
    }
    bars = [Bar("to_arrow", "columns", at_most=1.1)]
    return Race(f"five columns of {rows:,} banners as {name}", rows, contenders, bars)


def first_batch(recs: Any, rows: int) -> Race:
    """What a reader of a stream waits for before its first rows."""
    contenders = {
        "first batch of a stream": lambda: recs.arrow_reader().read_next_batch().num_rows,
        "65,536 rows": lambda: len(recs[:65536].to_arrow()),
    }
    return Race(f"the first of {rows:,} banners, whole", min(rows, 65536), contenders)


def ptars_handler(message_type: Any) -> Any:
    """ptars' own converter of the schema; None without ptars."""
    try:
        import ptars
    except ImportError:
        return None
    descriptor = message_type.message_class.DESCRIPTOR
    return ptars.HandlerPool([descriptor.file]).get_for_message(descriptor)


def summary(table: Any) -> list[Any]:
    """What tables have alike, whatever types they have chosen."""
    last = table.slice(table.num_rows - 1)
    return [table.num_rows, *(last.column(name)[0].as_py() for name in ("id", "price", "title", "tags"))]
