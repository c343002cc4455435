"""What trust costs: verifying a banner and an index, checksums, and columns of what was verified."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

import yaffjit as yj
from benchmarks.banners import Banners, made
from benchmarks.files import write
from benchmarks.timing import Bar, Race
from yaffjit.arrays import array_address
from yaffjit.codec.verify import MALFORMED, _loaded, _request, verify_many

ROWS = 65_536  # of a batch, which the index has again and again
BATCHES = 20  # 400 MB
QUICK_BATCHES = 2
ONE_NBYTES = 300  # of the banner that is verified by itself, about
ONE_SECONDS = 100e-9
MANY_TIMES = 1_000
VERIFIED_BYTES_A_SECOND = 3e9
HASHED_BYTES_A_SECOND = 5e9
PATHS = ("id", "price", "stats.ctr", "title", "tags")


def races(quick: bool) -> Iterator[Race]:
    data = made(ROWS)
    yield verifying_one(data)
    with tempfile.TemporaryDirectory(prefix="yaffjit-benchmark-") as name:
        path = Path(name) / "banners.arrow"
        write(path, data, QUICK_BATCHES if quick else BATCHES)
        yield from of_index(path)


def verifying_one(data: Banners) -> Race:
    """One banner of the usual size many times: in machine code alone, and by calls from Python."""
    mp = data.message_type.plan
    one = min(data.encoded, key=lambda buf: abs(len(buf) - ONE_NBYTES))
    _loaded.load()
    kernel = _loaded.kernel
    assert kernel is not None
    request = _request(mp, True).address
    places = np.empty((MANY_TIMES, 2), np.int64)
    places[:] = array_address(np.frombuffer(one, np.uint8)), len(one)
    check_rows, check_one = kernel.check_rows, kernel.check_one

    def by_rows() -> int:
        done: int = check_rows(request, 0, 0, array_address(places), 0, MANY_TIMES)[0]
        return done

    def by_calls() -> int:
        return sum(check_one(one, request) != MALFORMED for _ in range(MANY_TIMES))

    return Race(
        f"verifying a banner of {len(one)} bytes",
        MANY_TIMES,
        {"yaffjit": by_rows, "yaffjit, a call from Python each": by_calls},
        [Bar("yaffjit", seconds=ONE_SECONDS * MANY_TIMES)],
    )


def of_index(path: Path) -> Iterator[Race]:
    """Of what is in the page cache, by one thread."""
    trusted: Any = yj.open_index_unchecked(path)
    part = trusted._files.parts[0]
    mp = trusted.plan
    batches = range(len(part.batches))
    blocks = []
    for number in batches:
        position, nbytes, offsets = part.messages(number)
        blocks.append((part.data[position : position + nbytes], offsets))
    nbytes = sum(len(block) for block, _ in blocks)

    def verified() -> int:
        for block, offsets in blocks:
            verify_many(mp, block, offsets)
        return len(trusted)

    def hashed() -> int:
        for block, _ in blocks:
            xxhash.xxh3_64(block).intdigest()
        return len(trusted)

    verified()
    yield Race(
        f"verifying the messages of an index of {nbytes / 1e6:.0f} MB by one thread",
        len(trusted),
        {"yaffjit": verified},
        [Bar("yaffjit", seconds=nbytes / VERIFIED_BYTES_A_SECOND)],
        repetitions=9,
    )
    yield Race(
        f"checksumming the messages of an index of {nbytes / 1e6:.0f} MB by one thread",
        len(trusted),
        {"XXH3-64": hashed},
        [Bar("XXH3-64", seconds=nbytes / HASHED_BYTES_A_SECOND)],
        repetitions=9,
    )
    checked = yj.open_index(path, progress=False)
    paths = [name for name in PATHS if name.partition(".")[0] in mp.by_name]

    def columns_of(index: Any) -> list[Any]:
        found = index.columns(*paths, threads=1)
        return [found["id"], found["price"]]

    yield Race(
        f"columns of an index of {nbytes / 1e6:.0f} MB after verification",
        len(trusted),
        {"verified": lambda: columns_of(checked), "unchecked": lambda: columns_of(trusted)},
        [Bar("verified", "unchecked", at_most=1.05)],
        repetitions=15,
    )
