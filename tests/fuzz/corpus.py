"""Right inputs of each target, to be damaged: what a fuzzer begins with, and what the tests run over."""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
for folder in (str(TESTS), str(TESTS.parent)):  # as in pytest
    if folder not in sys.path:
        sys.path.insert(0, folder)

from framings import CASES  # noqa: E402
from mutants import _damage as damage  # noqa: E402
from universal_mutants import documents  # noqa: E402
from wire_messages import Maker  # noqa: E402

import yaffjit as yj  # noqa: E402
from fuzz.targets import message_type, wire_types, yaff_types  # noqa: E402
from yaffjit.codec.encode import LAYOUTS  # noqa: E402

MESSAGES = 8  # of a type


@cache
def inputs(target: str) -> tuple[bytes, ...]:
    """Right inputs of a target, the same ones each time."""
    if target.startswith("universal"):
        return tuple(documents()[::6])
    if target in ("view", "transcode_back"):
        return tuple(_yaff())
    if target in ("view_protobuf", "verify_protobuf", "transcode"):
        return tuple(payload for one in wire_types() for payload in _payloads(one))
    if target == "load_schema":
        return tuple(one.schema.definition.descriptor_set for one in wire_types())
    with tempfile.TemporaryDirectory() as folder:
        return tuple(_files(target, Path(folder)))


def mutants(target: str, count: int, seed: int) -> Iterator[bytes]:
    """Damaged inputs of a target, and now and then a right one."""
    chance = random.Random(f"{target} {seed}")
    for number in range(count):
        data = bytearray(chance.choice(inputs(target)))
        for _ in range(number % 5):
            if len(data) > 4:
                damage(data, chance)
        yield bytes(data)


def _payloads(one: yj.MessageType) -> list[bytes]:
    maker = Maker(random.Random(one.full_name))
    return [maker.message(one.message_class.DESCRIPTOR) for _ in range(MESSAGES)]


def _yaff() -> Iterator[bytes]:
    for one in yaff_types():
        for payload in _payloads(one):
            try:
                one.verify_protobuf(payload)
                message = one.message_class.FromString(payload)
                for layout in LAYOUTS:
                    yield one.encode(message, layout=layout)
            except yj.YaffjitError:
                continue


def _files(target: str, folder: Path) -> Iterator[bytes]:
    one = message_type("verify.proto", "verify.Banner")
    messages = [{"id": row, "tags": ["a", "b" * row], "attrs": {"k": row}} for row in range(5)]
    path = folder / "file.arrow"
    if target == "open_index":
        for options in ({}, {"compression": "zstd"}, {"representation": "protobuf"}):
            yj.build_index(path, one, messages, **options)
            yield path.read_bytes()
        return
    payloads = [one.message_class(id=row, tags=["a"] * row).SerializeToString() for row in range(5)]
    if target == "streams":
        for case in CASES:
            yield b"".join(map(case.framed, payloads))
        return
    assert target == "tables", target
    import pyarrow as pa
    from pyarrow import ipc, parquet

    table = pa.table({"payload": pa.array(payloads, pa.binary())})
    parquet.write_table(table, path)
    yield path.read_bytes()
    with ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, 2)
    yield path.read_bytes()
