"""`store_row`: all paths of a row at once, with the fields' own dtypes, over vectors and over older data."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jit_kinds
import numba
import numpy as np
import pytest
from numba.core.errors import TypingError
from vectors import golden_bytes, load_vectors

import yaffjit
from yaffjit.errors import SchemaError
from yaffjit.jit.paths import Paths, resolve, store_row
from yaffjit.jit.records import message_at
from yaffjit.plan.model import MessagePlan

GOLDEN = Path(__file__).parent / "schemas" / "golden"


@numba.njit
def store_all(records, paths, outs):
    for row in range(len(records)):
        store_row(message_at(records, row), paths, outs, row)


def read(
    message_type: Any, payloads: list[bytes], values: list[str], presences: list[str]
) -> list[list[Any]]:
    """Per path the list of a column's values, by the jitted loop."""
    paths = Paths(message_type.plan, tuple(values), tuple(presences))
    outs = tuple(np.empty(len(payloads), dtype) for dtype in paths.dtypes)
    store_all(yaffjit.records(message_type, payloads), paths, outs)
    return [out.tolist() for out in outs]


def walk(message: Any, path: str) -> Any:
    *outer, name = path.split(".")
    for step in outer:
        message = getattr(message, step)
    return message, name


def is_set(message: Any, mp: MessagePlan, path: str) -> bool:
    """Whether all messages on a path are set, and the field too if it has presence."""
    for _, f in resolve(mp, path):
        if f.explicit and not message.HasField(f.name):
            return False
        message = getattr(message, f.name)
    return True


def scalar_paths(mp: MessagePlan, depth: int = 2) -> Iterator[str]:
    """Paths of the scalars of a message and of its messages, down to a depth."""
    for f in mp.fields:
        if f.is_scalar:
            yield f.name
        elif f.kind == "message" and not f.repeated and depth:
            for path in scalar_paths(mp.child(f), depth - 1):
                yield f"{f.name}.{path}"


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


def check(message_type: Any, payloads: list[bytes], messages: list[Any]) -> None:
    mp = message_type.plan
    values = list(scalar_paths(mp))
    presences = values + [f.name for f in mp.fields if f.explicit and not f.is_scalar]
    columns = read(message_type, payloads, values, presences)
    for path, column in zip(values, columns, strict=False):
        expected = [getattr(*walk(message, path)) for message in messages]
        assert repr(column) == repr(expected), path
    for path, column in zip(presences, columns[len(values) :], strict=True):
        assert column == [is_set(message, mp, path) for message in messages], path


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
    dtypes = Paths(mp, names, ("child",)).dtypes
    assert [np.dtype(dtype).name for dtype in dtypes] == [
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


def test_arrays_that_do_not_fit() -> None:
    message_type = jit_kinds.message_type("dynamic")
    records = yaffjit.records(message_type, [message_type.encode({})])
    paths = Paths(message_type.plan, ("plain_int32",), ("child",))
    present = np.empty(1, np.bool_)
    read_only = np.empty(1, np.int32)
    read_only.flags.writeable = False
    for outs, sentence in (
        ((present,), "store_row takes 2 arrays, one a path, not 1"),
        ((np.empty(1), present), "path plain_int32: array(float64, 1d, C) isn't a writable array of int32"),
        (
            (read_only, present),
            "path plain_int32: readonly array(int32, 1d, C) isn't a writable array of int32",
        ),
    ):
        with pytest.raises(TypingError) as caught:
            store_all(records, paths, outs)
        assert sentence in str(caught.value)


def test_paths_of_another_message() -> None:
    message_type = jit_kinds.message_type("dynamic")
    records = yaffjit.records(message_type, [message_type.encode({})])
    with pytest.raises(TypingError) as caught:
        store_all(
            records, Paths(jit_kinds.message_type("flat").plan, ("plain_int32",)), (np.empty(1, np.int32),)
        )
    assert "the paths are of kinds.Flat, the message is of kinds.Dynamic" in str(caught.value)


def test_presence_of_an_unknown_path() -> None:
    with pytest.raises(SchemaError) as caught:
        Paths(jit_kinds.message_type("flat").plan, presences=("child.childd",))
    assert str(caught.value) == (
        "path 'child.childd' of kinds.Flat: kinds.Flat has no field 'childd' (did you mean 'child'?)"
    )


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("text", ": a column holds one number, bool or enum a row, but field text is text"),
        ("raw", ": a column holds one number, bool or enum a row, but field raw is bytes"),
        ("child", " is a message: name a field of kinds.Flat"),
        ("many", ": a column holds one number, bool or enum a row, but field many is repeated"),
    ],
)
def test_values_are_numbers(path: str, what: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Paths(jit_kinds.message_type("flat").plan, (path,))
    assert str(caught.value) == f"path {path!r} of kinds.Flat{what}"
