"""Index files: opening 2 GB, checked and not, from a cold page cache; building them."""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

import yaffjit as yj
from benchmarks.banners import Banners, made
from benchmarks.timing import Amount, Bar, Race
from yaffjit.index.batches import BatchWriter
from yaffjit.index.checks import check_batch
from yaffjit.index.metadata import BATCH_ROWS, described

ROWS = BATCH_ROWS  # of a batch, which the files have again and again
BATCHES = 100  # 2 GB
QUICK_BATCHES = 10
BUILT_ROWS = 50_000
QUICK_BUILT_ROWS = 5_000
PARTS = 8
# What opening unchecked may take, of time and of the page cache.
OPEN_SECONDS = 0.020
OPEN_SECONDS_A_BATCH = 0.0001
RESIDENT_BYTES = 1_000_000
RESIDENT_BYTES_A_BATCH = 8_000
CHECK_BYTES_A_SECOND = 3e9


def races(quick: bool) -> Iterator[Race]:
    data = made(ROWS)
    batches = QUICK_BATCHES if quick else BATCHES
    with tempfile.TemporaryDirectory(prefix="yaffjit-benchmark-") as name:
        folder = Path(name)
        file = folder / "banners.arrow"
        write(file, data, batches)
        directory = folder / "banners"
        write_parts(directory, data, batches)
        yield from opening(file, directory, batches)
        yield from checking(file)
        yield from building(folder, data, QUICK_BUILT_ROWS if quick else BUILT_ROWS)


def opening(file: Path, directory: Path, batches: int) -> Iterator[Race]:
    """Without anything of the files in the page cache; each call returns its own seconds."""
    once = yj.open_index_unchecked(file)  # what has to be imported and compiled
    del once
    limit = OPEN_SECONDS + OPEN_SECONDS_A_BATCH * batches
    nbytes = os.path.getsize(file)
    for path, what in ((file, "one file"), (directory, f"a directory of {PARTS} parts")):
        yield Race(
            f"opening {nbytes / 1e9:.1f} GB unchecked, {what}, from a cold page cache",
            1,
            {"yaffjit": lambda path=path: cold_seconds(path)},  # type: ignore[misc]
            [Bar("yaffjit", seconds=limit)],
            unit="ms",
            repetitions=9,
            reported=True,
        )


def checking(file: Path) -> Iterator[Race]:
    """On one core, of what is in the page cache."""
    index = yj.open_index_unchecked(file)
    part = index._files.parts[0]
    mp = index.plan
    nbytes = part.nbytes

    def check() -> int:
        for number in range(len(part.batches)):
            check_batch(part, number, mp, 0, lambda rows: None)
        return len(index)

    def hashed() -> int:
        xxhash.xxh3_64(part.data).intdigest()
        return len(index)

    check()
    yield Race(
        f"checking an index of {nbytes / 1e9:.1f} GB by one thread",
        len(index),
        {"yaffjit": check, "XXH3-64 of all bytes alone": hashed},
        [Bar("yaffjit", seconds=nbytes / CHECK_BYTES_A_SECOND)],
        repetitions=5,
    )


def building(folder: Path, data: Banners, rows: int) -> Iterator[Race]:
    message_type = data.message_type
    payloads = (data.payloads * (rows // len(data.payloads) + 1))[:rows]
    messages = [message_type.message_class.FromString(payload) for payload in payloads]
    contenders: dict[str, Callable[[], Any]] = {
        "of protobuf bytes": lambda: yj.build_index(folder / "x.arrow", message_type, payloads).rows,
        "of messages": lambda: yj.build_index(folder / "x.arrow", message_type, messages).rows,
        "of messages, a directory of 8 parts": lambda: (
            yj.build_index(folder / "x", message_type, messages, part_rows=rows // PARTS).rows
        ),
    }
    yield Race(f"building an index of {rows:,} banners", rows, contenders, repetitions=3)


def write(path: Path, data: Banners, batches: int) -> None:
    """An index of the same batch again and again, without encoding it again."""
    payloads = [data.records.payload(row) for row in range(data.rows)]
    offsets = np.cumsum([0, *map(len, payloads)])
    block = b"".join(payloads)
    text = described(data.message_type.plan, "yaff")
    with open(path, "wb") as file, BatchWriter(str(path), file, text, {}) as writer:
        for _ in range(batches):
            writer.add(block, offsets)
        writer.close()
        os.fsync(file.fileno())


def write_parts(directory: Path, data: Banners, batches: int) -> None:
    file = directory.with_name("part.arrow")
    for part in range(PARTS):
        write(file, data, batches * (part + 1) // PARTS - batches * part // PARTS)
        yj.adopt_index(directory, file)


def cold_seconds(path: Path) -> float:
    forget(path)
    start = time.perf_counter()
    index = yj.open_index_unchecked(path)
    seconds = time.perf_counter() - start
    del index
    return seconds


def amounts(quick: bool) -> Iterator[Amount]:
    yield Amount("opening an index file unchecked", "loaded", *resident_bytes(quick))


def resident_bytes(quick: bool) -> tuple[int, int]:
    """Bytes of the page cache that opening unchecked fills, and how many it may."""
    batches = QUICK_BATCHES if quick else BATCHES
    with tempfile.TemporaryDirectory(prefix="yaffjit-benchmark-") as name:
        path = Path(name) / "banners.arrow"
        write(path, made(ROWS), batches)
        found = []
        for _ in range(3):
            forget(path)
            index = yj.open_index_unchecked(path)
            found.append(resident(path))
            del index
    return statistics.median_high(found), RESIDENT_BYTES + RESIDENT_BYTES_A_BATCH * batches


def forget(path: Path) -> None:
    """Have nothing of some files in the page cache, which takes that nobody maps them."""
    gc.collect()
    for file in files(path):
        fd = os.open(file, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)
    found = resident(path)
    if found:
        raise AssertionError(f"{found:,} bytes of {path} can't be dropped from the page cache")


def resident(path: Path) -> int:
    """Bytes of files that are in the page cache."""
    found = 0
    libc = ctypes.CDLL(None, use_errno=True)
    for file in files(path):
        with open(file, "rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
            pages = -(-len(mapped) // mmap.PAGESIZE)
            states = (ctypes.c_ubyte * pages)()
            first = ctypes.c_char.from_buffer(mapped)
            failed = libc.mincore(
                ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(len(mapped)), states
            )
            del first
        if failed:
            raise OSError(ctypes.get_errno(), "mincore")
        found += int((np.frombuffer(bytes(states), np.uint8) & 1).sum()) * mmap.PAGESIZE
    return found


def files(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(path.iterdir())
