"""The loops under columns over bytes of others: the C++ library's vectors, data of other schema versions."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import columns_spec
import jit_kinds
import numba
import numpy as np
import pytest
from google.protobuf.message import Message
from numba.core.errors import TypingError
from vectors import golden_bytes, load_vectors

import yaffjit
from yaffjit.columns.gather import gathered
from yaffjit.errors import SchemaError
from yaffjit.jit.columns.paths import Paths
from yaffjit.jit.columns.rows import measure_row
from yaffjit.jit.records import message_at
from yaffjit.plan.columns import presence_path
from yaffjit.plan.model import MessagePlan

GOLDEN = Path(__file__).parent / "schemas" / "golden"
MOST_PATHS = 10  # of one message: they are compiled


@cache
def golden(file: str, full_name: str) -> yaffjit.MessageType:
    return yaffjit.load_schema(GOLDEN / file)[full_name]


SELECTION = [
    "golden.defaults2.Bare",
    "golden.defaults2.PresetFixed",
    "golden.edge.FloatsMixed",
    "golden.extra3.Banner",
    "golden.gaps.SparseIds",
    "golden.hier.Root",
    "golden.layouts.FixOuter",
    "golden.layouts.SpOpt",
    "golden.oneofs.Choice",
    "golden.scalars.Mixed",
]


@pytest.mark.parametrize("full_name", SELECTION)
def test_vectors(full_name: str) -> None:
    records = [
        r for r in load_vectors() if r["message"] == full_name and r.get("slice") is None and "ours" not in r
    ]
    records = [r for r in records if "error" not in r]
    message_type = golden(records[0]["schema"], full_name)
    messages = [message_type.message_class.FromString(r["proto"]) for r in records]
    check(message_type, [r["yaff"] for r in records], messages)


def check(message_type: Any, payloads: list[bytes], messages: list[Message]) -> None:
    """All scalars and some other paths, and the presence of some, in one pass."""
    mp = message_type.plan
    every = list(columns_spec.all_paths(mp, 2))
    draw = random.Random(5)
    scalars = [f.name for f in mp.fields if f.is_scalar][:MOST_PATHS]
    others = [path for path in every if path not in scalars]
    values = scalars + draw.sample(others, min(len(others), MOST_PATHS - len(scalars)))
    columns_spec.check(yaffjit.records(message_type, payloads).columns(*values), messages, values)
    presences = [f.name for f in mp.fields][:MOST_PATHS]
    paths = Paths(mp, (), tuple(presences))
    arrays = gathered(yaffjit.records(message_type, payloads), paths, {})
    for path, found in zip(presences, paths.gathering.presences, strict=True):
        expected = [columns_spec.present(message, path) for message in messages]
        assert arrays[found.leaf.values].tolist() == expected, path


def older_readers() -> dict[tuple[str, str], list[tuple[bytes, bytes]]]:
    """Vectors by the other schema that reads them: bytes of the writer, protobuf bytes that it must see."""
    found: dict[tuple[str, str], list[tuple[bytes, bytes]]] = {}
    for record in load_vectors():
        for reader in record.get("readers", ()):
            if "reader_slice" not in reader:
                seen = golden_bytes(reader, "proto")
                assert seen is not None
                key = reader["reader_schema"], reader["reader_message"]
                found.setdefault(key, []).append((record["yaff"], seen))
    return found


READERS = ["golden.evo2.Dense", "golden.evo2.DenseOpt", "golden.evo2.DenseOptLate", "golden.evo1.OneSide"]


@pytest.mark.parametrize("full_name", READERS)
def test_data_of_another_version_of_the_schema(full_name: str) -> None:
    (file,) = {file for file, name in older_readers() if name == full_name}
    pairs = older_readers()[file, full_name]
    assert len(pairs) > 1
    message_type = golden(file, full_name)
    messages = [message_type.message_class.FromString(seen) for _, seen in pairs]
    check(message_type, [data for data, _ in pairs], messages)


def test_columns_keep_the_fields_own_dtypes() -> None:
    mp = jit_kinds.message_type("dynamic").plan
    names = tuple(f"plain_{kind.lower()}" for kind in jit_kinds.KINDS)
    paths = Paths(mp, names, ("child",))
    assert paths.gathering.is_fixed
    assert [slot.dtype for slot in paths.gathering.slots] == [
        "float64",
        "float32",
        "int32",
        "int64",
        "uint32",
        "uint64",
        "int32",
        "int64",
        "uint32",
        "uint64",
        "int32",
        "int64",
        "bool",
        "int32",
        "bool",
    ]


def test_what_two_paths_share_is_stored_once(paths_plan: MessagePlan) -> None:
    gathering = Paths(
        paths_plan, ("items.name", "items.name:dictionary", "items.price", "len(items)")
    ).gathering
    slots = [(slot.dtype, slot.count_of, slot.more, slot.second) for slot in gathering.slots]
    assert slots == [
        ("int64", -1, 1, False),  # where each row's items begin
        ("int64", -1, 1, False),  # where each row's bytes of names begin
        ("int64", 0, 1, True),  # where each name begins
        ("uint8", 1, 0, True),
        ("float64", 0, 0, True),
        ("int64", -1, 0, False),
    ]
    assert gathering.columns[0].leaf is gathering.columns[1].leaf
    assert gathering.columns[0].loops == gathering.columns[2].loops


@pytest.fixture(scope="module")
def paths_plan() -> MessagePlan:
    return yaffjit.load_schema(Path(__file__).parent / "schemas" / "paths.proto")["paths.All"].plan


@numba.njit
def measure_all(records, paths, address):
    for row in range(len(records)):
        measure_row(message_at(records, row), paths, address, row)


def test_paths_of_another_message() -> None:
    message_type = jit_kinds.message_type("dynamic")
    records = yaffjit.records(message_type, [message_type.encode({})])
    with pytest.raises(TypingError) as caught:
        measure_all(records, Paths(jit_kinds.message_type("flat").plan, ("plain_int32",)), 0)
    assert "the paths are of kinds.Flat, the message is of kinds.Dynamic" in str(caught.value)
    with pytest.raises(TypingError) as caught:
        measure_all(records, np.int64(5), 0)
    assert "measure_row takes a message view, paths, the address of a table and a row" in str(caught.value)


def test_presence_of_an_unknown_path() -> None:
    with pytest.raises(SchemaError) as caught:
        Paths(jit_kinds.message_type("flat").plan, presences=("child.childd",))
    assert str(caught.value) == (
        "path 'child.childd' of kinds.Flat: kinds.Flat has no field 'childd' (did you mean 'child'?)"
    )


def test_presence_is_for_one_value_a_row(paths_plan: MessagePlan) -> None:
    assert presence_path(paths_plan, "items[0].tags").loops == ()
    for path, instead in (
        ("items.tags", "an element of field items, as items[0]"),
        ("by_id.name", "a key of field by_id, as by_id[5]"),
        ("items.part", "an element of field items, as items[0]"),
    ):
        with pytest.raises(SchemaError) as caught:
            Paths(paths_plan, presences=(path,))
        assert str(caught.value) == (
            f"path {path!r} of paths.All: presence is for one value a row: name {instead}"
        )
