"""Sums and stores of nine fields at the end of a chain, beside the same algorithm in C."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

import yaffjit as yj
from benchmarks.native import Reader
from benchmarks.timing import Bar, Race

FIELDS = "abcdefghi"
HOT_ROWS = 4000  # a megabyte: within a core's second cache
COLD_ROWS = 200_000
QUICK_ROWS = 20_000


@numba.njit
def sum_leaf(roots: Any) -> Any:
    total = 0
    for root in roots:
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
def store_leaf(roots: Any, out: NDArray[np.uint64]) -> NDArray[np.uint64]:
    for row in range(len(roots)):
        root = roots[row]
        out[row, 0] = root.mid.leaf.a
        out[row, 1] = root.mid.leaf.b
        out[row, 2] = root.mid.leaf.c
        out[row, 3] = root.mid.leaf.d
        out[row, 4] = root.mid.leaf.e
        out[row, 5] = root.mid.leaf.f
        out[row, 6] = root.mid.leaf.g
        out[row, 7] = root.mid.leaf.h
        out[row, 8] = root.mid.leaf.i
    return out


@numba.njit
def sum_structured(roots: Any) -> Any:
    total = np.uint64(0)
    for row in range(len(roots)):
        leaf = roots[row].mid.leaf
        total += leaf.a + leaf.b + leaf.c + leaf.d + leaf.e + leaf.f + leaf.g + leaf.h + leaf.i
    return total


def structured_type(depth: int = 3) -> np.dtype[Any]:
    """The tree as a packed numpy record: no presence, no layouts, every message in place."""
    numbers: list[Any] = [(name, np.uint64) for name in FIELDS]
    if depth > 1:
        numbers.append(("mid" if depth == 3 else "leaf", structured_type(depth - 1)))
    return np.dtype(numbers)


def tree(rows: int, layout: str) -> tuple[Any, NDArray[np.uint8], NDArray[np.int64], NDArray[Any], Any]:
    """Records of ``rows`` trees, bytes and offsets, a structured array, and records of protobuf bytes."""
    Root = yj.load_schema(Path(__file__).with_name("tree.proto"))["tree.Root"]
    values = np.random.default_rng(1).integers(1, 1 << 40, (rows, 3, len(FIELDS)), np.uint64)
    payloads, raw = [], []
    for root, mid, leaf in values.tolist():
        message = dict(zip(FIELDS, root, strict=True), mid=dict(zip(FIELDS, mid, strict=True)))
        message["mid"]["leaf"] = dict(zip(FIELDS, leaf, strict=True))
        payloads.append(Root.encode(Root.message_class(**message), layout=layout))
        raw.append(Root.message_class(**message).SerializeToString())
    data = np.frombuffer(b"".join(payloads), np.uint8)
    offsets = np.concatenate(([0], np.cumsum([len(payload) for payload in payloads], dtype=np.int64)))
    structured = values.reshape(rows, -1).view(structured_type()).reshape(rows)
    unread = yj.records(Root, raw, representation="protobuf")
    return yj.records(Root, (data, offsets)), data, offsets, structured, unread


def races(quick: bool) -> Iterator[Race]:
    with tempfile.TemporaryDirectory(prefix="yaffjit-benchmark-") as folder:
        reader = Reader(Path(folder))
        for layout in ("flat", "sparse"):
            for heat, rows in (("in cache", HOT_ROWS), ("in memory", QUICK_ROWS if quick else COLD_ROWS)):
                recs, data, offsets, structured, unread = tree(rows, layout)
                where = f"{layout}, {rows:,} messages {heat}"
                yield Race(
                    f"sum of root.mid.leaf, {where}",
                    rows,
                    {
                        "yaffjit": partial(sum_leaf, recs),
                        "C": reader.sum("sum_chain", data, offsets),
                        "C, leaf hoisted": reader.sum("sum_hoisted", data, offsets),
                        "numpy structured array": partial(sum_structured, structured),
                        "yaffjit, protobuf's bytes": partial(sum_leaf, unread),
                    },
                    [Bar("yaffjit", "C", at_most=1.2)],
                )
                out = np.empty((rows, len(FIELDS)), np.uint64)
                yield Race(
                    f"store after each read of root.mid.leaf, {where}",
                    rows,
                    {
                        "yaffjit": partial(store_leaf, recs, out),
                        "C": reader.store("store_chain", data, offsets),
                        "C, leaf hoisted": reader.store("store_hoisted", data, offsets),
                    },
                    [Bar("yaffjit", "C", at_most=0.7)],
                )
