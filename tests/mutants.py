"""Buffers of the golden vectors, cut and damaged: seeds for tests of what malformed bytes do."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from vectors import TESTS, load_vectors, vector_name

import yaffjit
from yaffjit.plan import MessagePlan

SCHEMAS = TESTS / "schemas" / "golden"
# Mutants of each vector. A long campaign:
# YAFFJIT_MUTANTS=1000 YAFFJIT_SEED=2 pytest tests/test_verify_mutants.py tests/test_verify_guard.py
COUNT = int(os.environ.get("YAFFJIT_MUTANTS", "40"))
SEED = os.environ.get("YAFFJIT_SEED", "1")
_LARGE = 4096  # bytes of a vector from which on only a part of its cuts is tried

# The numbers at which readers and checks go wrong.
_EDGES = (
    0,
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0xFFFF,
    2**31 - 1,
    2**31,
    2**32 - 4,
    2**32 - 1,
)


@dataclass(frozen=True)
class Seed:
    """A golden buffer and the message types that read it: its own, and that of each other schema."""

    name: str
    plans: tuple[MessagePlan, ...]
    buf: bytes


@cache
def _schema(file: str, slice: str | None) -> yaffjit.Schema:
    return yaffjit.load_schema(SCHEMAS / file, include=[SCHEMAS], slice=slice)


@cache
def seeds() -> tuple[Seed, ...]:
    made = []
    for record in load_vectors():
        if record["yaff"] is not None:
            readers = [
                _schema(reader["reader_schema"], reader.get("reader_slice"))[reader["reader_message"]].plan
                for reader in record.get("readers", ())
            ]
            own = _schema(record["schema"], record.get("slice"))[record["message"]].plan
            made.append(Seed(vector_name(record), (own, *readers), record["yaff"]))
    return tuple(made)


def cuts(buf: bytes) -> Iterator[bytes]:
    """All prefixes of a buffer, of a large one some hundred."""
    step = 1 if len(buf) < _LARGE else len(buf) // 100
    for nbytes in range(0, len(buf), step):
        yield buf[:nbytes]


def mutants(seed: Seed, count: int = COUNT) -> Iterator[bytes]:
    """Damaged copies of a buffer; the same ones each time."""
    chance = random.Random(f"{SEED} {seed.name}")
    for _ in range(count if len(seed.buf) < _LARGE else count // 10):
        data = bytearray(seed.buf)
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            _damage(data, chance)
        yield bytes(data)


def _damage(data: bytearray, chance: random.Random) -> None:
    # Most of what can go wrong lies near the root.
    limit = len(data) if chance.random() < 0.5 else min(len(data), 64)
    pos = chance.randrange(limit)
    how = chance.randrange(7)
    if how == 0:
        data[pos] ^= 1 << chance.randrange(8)
    elif how == 1:
        data[pos] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    elif how in (2, 3):
        width = chance.choice((2, 4))
        numbers = (*_EDGES, len(data), len(data) - pos, chance.randrange(len(data) + 8))
        data[pos : pos + width] = (chance.choice(numbers) % 256**width).to_bytes(width, "little")
    elif how == 4:
        other = chance.randrange(len(data))
        data[pos : pos + 4] = data[other : other + 4]
    elif how == 5:
        del data[-chance.randrange(1, 9) :]
        data += b"" if len(data) > 3 else bytes(4)
    else:
        del data[pos]
        data.insert(chance.randrange(len(data) + 1), chance.randrange(256))


def walk(view: Any) -> list[Any]:
    """All that the public reading API of a view gives, absent messages apart."""
    told: list[Any] = []
    descriptor = view.DESCRIPTOR
    for field in descriptor.fields:
        read: Any
        try:
            read = getattr(view, field.name)
        except AttributeError:
            continue  # a field that YaFF doesn't carry
        if field.has_presence and field.message_type is not None:
            read = walk(read) if view.HasField(field.name) else None
        elif field.message_type is not None and field.message_type.GetOptions().map_entry:
            of_messages = field.message_type.fields_by_name["value"].message_type is not None
            read = [(key, walk(value) if of_messages else value) for key, value in read.items()]
        elif field.is_repeated:
            read = [walk(element) for element in read] if field.message_type is not None else list(read)
        told.append((field.name, field.has_presence and view.HasField(field.name), read))
    told += [(oneof.name, view.WhichOneof(oneof.name)) for oneof in descriptor.oneofs]
    return told
