"""Rows of an index by their keys, beside a random gather from an array of so many numbers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import yaffjit as yj
from benchmarks.timing import Bar, Race

ROWS = 10_000_000
ASKED = 1_000_000
QUICK_ROWS = 200_000
QUICK_ASKED = 20_000
REQUEST = 300
SOURCE = 'syntax = "proto3"; package k; message Row { fixed64 id = 1; string name = 2; }'
NAME_NBYTES = 20  # of a name: "banner-" and 13 digits
ID_AT, NAME_AT, NBYTES = 1, 11, 11 + NAME_NBYTES  # of a message in protobuf's bytes


def races(quick: bool) -> Iterator[Race]:
    rows, asked = (QUICK_ROWS, QUICK_ASKED) if quick else (ROWS, ASKED)
    rng = np.random.default_rng(1)
    ids = rng.permutation(rows).astype(np.int64) * 7919 + 13
    with tempfile.TemporaryDirectory(prefix="yaffjit-benchmark-") as name:
        folder = Path(name)
        (folder / "k.proto").write_text(SOURCE)
        row_type = yj.load_schema(folder / "k.proto")["k.Row"]
        payloads = messages(ids)
        yj.build_index(folder / "x.arrow", row_type, payloads, progress=False)
        del payloads
        wanted = rng.integers(0, rows, asked)
        for key in ("id", "name"):
            yj.build_keys(folder / "x.arrow", key)
            yield from looked_up(yj.open_index_unchecked(folder / "x.arrow"), ids, wanted)


def looked_up(index: yj.Index, ids: NDArray[np.int64], wanted: NDArray[np.int64]) -> Iterator[Race]:
    """By one thread; the array's numbers are the rows, so that both give the same."""
    array = np.arange(len(ids))
    is_text = index.key == "name"
    keys: Any = names(ids[wanted]) if is_text else ids[wanted]
    where = f"{len(wanted):,} random {'text' if is_text else 'integer'} keys of {len(ids):,}"
    yield Race(
        f"rows of {where}",
        len(wanted),
        {"yaffjit": lambda: index.rows(keys, threads=1), "numpy gather": lambda: array[wanted]},
        [Bar("yaffjit", "numpy gather", at_most=5.0 if is_text else 2.0)],
    )
    if is_text:
        return
    request = ids[wanted[:REQUEST]]

    def score(row: Any) -> Any:
        return row.id * 2.0

    feature = yj.feature(score)
    yield Race(
        f"a request: {REQUEST} of {len(ids):,} messages, by key",
        REQUEST,
        {
            "their rows": lambda: index.rows(request),
            "rows, take and map": lambda: index.take(index.rows(request)).map(feature),
        },
        checked=False,
    )


def names(ids: NDArray[np.int64]) -> Any:
    """Names of messages, as an Arrow array."""
    data = name_bytes(ids)
    offsets = np.arange(len(ids) + 1, dtype=np.int64) * NAME_NBYTES
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), len(ids), buffers)


def name_bytes(ids: NDArray[np.int64]) -> NDArray[np.uint8]:
    """uint8, shape (rows, NAME_NBYTES): "banner-" and 13 digits."""
    made = np.empty((len(ids), NAME_NBYTES), np.uint8)
    made[:, :7] = np.frombuffer(b"banner-", np.uint8)
    left = ids.copy()
    for place in range(NAME_NBYTES - 1, 6, -1):
        made[:, place] = left % 10 + ord("0")
        left //= 10
    return made


def messages(ids: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Messages as protobuf bytes, one after the other, and their offsets."""
    made = np.empty((len(ids), NBYTES), np.uint8)
    made[:, 0] = 1 << 3 | 1
    made[:, ID_AT : ID_AT + 8] = ids.astype("<u8").view(np.uint8).reshape(-1, 8)
    made[:, NAME_AT - 2] = 2 << 3 | 2
    made[:, NAME_AT - 1] = NAME_NBYTES
    made[:, NAME_AT:] = name_bytes(ids)
    return made.reshape(-1), np.arange(len(ids) + 1, dtype=np.int64) * NBYTES
