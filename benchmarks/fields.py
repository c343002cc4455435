"""Adding up all fields of small and wide messages, in every representation and in other libraries."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

import yaffjit as yj
from benchmarks.timing import Bar, Curve, Race

FIELDS = (10, 100)
ROWS = 2_000
QUICK_ROWS = 200
LAYOUTS = ("flat", "sparse", "fixed")


def races(quick: bool) -> Iterator[Race]:
    rows = QUICK_ROWS if quick else ROWS
    with tempfile.TemporaryDirectory(prefix="yaffjit-benchmark-") as name:
        for fields in FIELDS:
            yield race(Path(name), fields, rows)


def race(folder: Path, fields: int, rows: int) -> Race:
    names = [f"f{number}" for number in range(1, fields + 1)]
    values = np.random.default_rng(fields).integers(1, 1 << 40, (rows, fields), np.uint64)
    plain_sum = summing(folder, names)
    jitted_sum = numba.njit(plain_sum)
    structured = values.view([(name, np.uint64) for name in names]).reshape(rows)
    contenders: dict[str, Callable[[], Any]] = {}
    raw: list[bytes] = []
    for layout in LAYOUTS:
        row_type = message_type(folder, names, layout)
        raw = [
            row_type.message_class(**dict(zip(names, row, strict=True))).SerializeToString()
            for row in values.tolist()
        ]
        stored = row_type.transcode(raw, layout="flat" if layout == "fixed" else layout)
        contenders[f"yaffjit, {layout}"] = partial(jitted_sum, stored)
    contenders["yaffjit, protobuf's bytes"] = partial(
        jitted_sum, yj.records(row_type, raw, representation="protobuf")
    )
    contenders["numpy structured array in numba"] = partial(jitted_sum, structured)
    parsed = list(map(row_type.message_class.FromString, raw))
    contenders["google.protobuf, parsed"] = partial(plain_sum, parsed)
    contenders["google.protobuf, with parsing"] = lambda: plain_sum(
        map(row_type.message_class.FromString, raw)
    )
    for peer in (awkward, flat_buffers, capnp):
        try:
            contenders |= peer(folder, names, values, plain_sum, jitted_sum)
        except ImportError as missing:
            print(f"{missing.name} isn't installed: left out (pip install '.[bench]')", flush=True)
    return Race(
        f"adding up {fields} uint64 fields of {rows:,} messages in cache",
        rows,
        contenders,
        [Bar("yaffjit, fixed", "numpy structured array in numba", at_most=2.0)],
        curve=Curve("time to add up all fields of a message", "uint64 fields", fields),
    )


def summing(folder: Path, names: list[str]) -> Callable[[Any], int]:
    """A plain function that adds up these fields of rows, modulo 2**64 where it's jitted."""
    terms = " + ".join(f"row.{name}" for name in names)
    path = folder / f"sum{len(names)}.py"
    lines = ("def add_up(rows):", "    total = 0", "    for row in rows:", f"        total += {terms}")
    path.write_text("\n".join([*lines, "    return total\n"]))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    add_up: Callable[[Any], int] = module.add_up
    return add_up


def message_type(folder: Path, names: list[str], layout: str) -> yj.MessageType:
    package = f"fields{len(names)}{layout}"
    fixed = "  option (yaff.proto.message) = {layout: LAYOUT_FIXED};\n" if layout == "fixed" else ""
    lines = "\n".join(f"  uint64 {name} = {number};" for number, name in enumerate(names, 1))
    path = folder / f"{package}.proto"
    path.write_text(
        f'syntax = "proto3";\npackage {package};\nimport "yaff/proto/options.proto";\n'
        f"message Row {{\n{fixed}{lines}\n}}\n"
    )
    return yj.load_schema(path)[f"{package}.Row"]


Peer = dict[str, Callable[[], Any]]


def awkward(folder: Path, names: list[str], values: NDArray[np.uint64], plain: Any, jitted: Any) -> Peer:
    """Columns in memory, read as records."""
    import awkward as ak

    array = ak.zip({name: np.ascontiguousarray(values[:, i]) for i, name in enumerate(names)})
    return {"Awkward Array in numba": partial(jitted, array)}


def flat_buffers(folder: Path, names: list[str], values: NDArray[np.uint64], plain: Any, jitted: Any) -> Peer:
    """By the calls that the accessors make which flatc generates for Python."""
    import flatbuffers
    from flatbuffers.number_types import Uint64Flags
    from flatbuffers.table import Table

    buffers = []
    for row in values.tolist():
        builder = flatbuffers.Builder(1024)
        builder.StartObject(len(names))
        for slot, value in enumerate(row):
            builder.PrependUint64Slot(slot, value, 0)
        builder.Finish(builder.EndObject())
        buffers.append(bytes(builder.Output()))

    def add_up() -> int:
        total = 0
        for buffer in buffers:
            table = Table(buffer, int.from_bytes(buffer[:4], "little"))
            for slot in range(len(names)):
                offset = table.Offset(4 + 2 * slot)
                total += table.Get(Uint64Flags, offset + table.Pos) if offset else 0
        return total

    return {"FlatBuffers": add_up}


def capnp(folder: Path, names: list[str], values: NDArray[np.uint64], plain: Any, jitted: Any) -> Peer:
    import capnp as library

    lines = "\n".join(f"  {name} @{number} :UInt64;" for number, name in enumerate(names))
    path = folder / f"fields{len(names)}.capnp"
    path.write_text(f"@{0xBF5147CBBECF4000 + len(names):#x};\nstruct Row {{\n{lines}\n}}\n")
    row_type = library.load(str(path)).Row
    buffers = [
        row_type.new_message(**dict(zip(names, row, strict=True))).to_bytes() for row in values.tolist()
    ]

    def add_up() -> int:
        total = 0
        for buffer in buffers:
            with row_type.from_bytes(buffer) as row:
                total += plain([row])
        return total

    return {"Cap'n Proto": add_up}
