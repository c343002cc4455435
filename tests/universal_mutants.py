"""Damaged documents; run as a process of its own they lie between pages that can't be read.

python tests/universal_mutants.py before|behind     reads one byte outside: must crash
python tests/universal_mutants.py read [COUNT]      the compiled reader over damaged documents
python tests/universal_mutants.py look [COUNT]      and what looks up and fills columns
"""

from __future__ import annotations

import ctypes
import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from yaffjit.universal.codec import dumps

COUNT = 200_000
SEED = 7


def documents() -> list[bytes]:
    rng = random.Random(3)

    def value(depth: int) -> Any:
        kind = rng.randrange(9 if depth < 4 else 6)
        if kind == 0:
            return rng.random() < 0.5
        if kind == 1:
            return rng.randrange(-(2 ** rng.choice([7, 15, 31, 63])), 2 ** rng.choice([7, 15, 31, 63]))
        if kind == 2:
            return rng.random()
        if kind == 3:
            return rng.choice([None, np.float32(1.5), ""])
        if kind < 6:
            return rng.choice(["a", "\xe9", "\u0439", "\U0001f600"]) * rng.randrange(12)
        if kind == 6:
            return [value(depth + 1) for _ in range(rng.randrange(5))]
        return {f"k{rng.randrange(9)}": value(depth + 1) for _ in range(rng.randrange(5))}

    made = []
    for compact in (True, False):
        for strings in ("utf8", "latin1", "utf16"):
            for _ in range(20):
                obj = [value(1), value(1)]
                made.append(dumps(obj, compact=compact, strings=strings, width="smallest", null=True))
    return made


def mutants(count: int, seed: int) -> Iterator[bytes]:
    rng = random.Random(seed)
    seeds = documents()
    pick, below = rng.choice, rng.randrange
    for _ in range(count):
        data = bytearray(pick(seeds))
        for _ in range(below(1, 4)):
            at = below(len(data) + 1)
            kind = below(6)
            if kind < 3 and at < len(data):
                data[at] = below(256) if kind else data[at] ^ 1 << below(8)
            elif kind == 3:
                data[at:at] = bytes([below(256)])
            elif kind == 4:
                del data[at : at + below(1, 9)]
            else:
                del data[at:]
        yield bytes(data)


def look(room: Any, count: int) -> tuple[int, int]:
    """Look up in damaged documents and fill columns: how many gave something, how many were refused."""
    from yaffjit import universal
    from yaffjit.errors import YaffjitError
    from yaffjit.universal.compiled import loaded

    loaded.load()
    for _ in range(600):  # then all is compiled
        universal.view(b"\x21")
    assert loaded.looker is not None
    dtypes = {"k1": "i2", "k2": "f4", "k3": str, "k4": "?", "k5": "u4"}
    paths = ["[0].k1", "[1][0]", "[-1].k3", "[0].k2[1].k0"]
    shown = np.frombuffer((ctypes.c_uint8 * room.nbytes).from_address(room.begin), np.uint8).data
    rng = random.Random(SEED)
    alike = [
        dumps([{"k1": i, "k2": 0.5, "k4": True} | text for i in range(4)], compact=compact)
        for compact in (True, False)
        for text in ({}, {"k3": "some text", "k5": 2})
    ]
    values = refused = 0
    for i, data in enumerate(mutants(count, SEED)):
        if i % 4 == 0:
            damaged = bytearray(alike[i // 4 % 4])
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
            data = bytes(damaged[: rng.randrange(len(damaged) // 2, len(damaged) + 1)])
        begin = room.nbytes - len(data)
        shown[begin:] = data
        options: dict[str, Any] = {"compact": i % 3 > 0, "null": i % 5 > 0}
        for step in (*paths, "columns", "documents", "walk"):
            try:
                if step == "columns":
                    universal.columns(shown[begin:], dtypes, **options)
                elif step == "documents":
                    middle = len(data) // 2
                    universal.columns((shown[begin:], np.array([0, middle, len(data)])), dtypes, **options)
                else:
                    found = universal.view(shown[begin:], **options)
                    if isinstance(found, universal.ObjectView | universal.CollectionView):
                        list(found) if step == "walk" else found.get(step)
                values += 1
            except YaffjitError:
                refused += 1
    return values, refused


def main(what: str, count: int) -> None:
    from guard import Guard

    from yaffjit.errors import DecodeError
    from yaffjit.universal.codec import read_options
    from yaffjit.universal.compiled import Codec

    room = Guard(1 << 16)
    if what == "before":
        ctypes.string_at(room.begin - 1, 1)
    if what == "behind":
        ctypes.string_at(room.begin + room.nbytes, 1)
    if what == "look":
        print(*look(room, count))
        return
    read = Codec().read
    options = [
        read_options(compact, order, null, strict, None, 512)[1] | whole
        for compact in (True, True, False)
        for order in ("swapped", "big")
        for null in (True, False)
        for strict in (True, False)
        for whole in (0, 32)
    ]
    values = refused = 0
    view = np.frombuffer((ctypes.c_uint8 * room.nbytes).from_address(room.begin), np.uint8).data
    for i, data in enumerate(mutants(count, SEED)):
        begin = room.nbytes - len(data)
        view[begin:] = data
        try:
            read(view[begin:], 0, options[i % len(options)], 10**6)
            values += 1
        except DecodeError:
            refused += 1
    print(values, refused)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else COUNT)
