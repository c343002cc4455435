"""Plain functions that read protobuf messages: the same over google's messages, views, and in jitted code."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numba

import yaffjit as yj

SCHEMAS = Path(__file__).parent / "schemas"


def read_leaf(m: Any) -> Any:
    """Requires: a ``wire_jit.Leaf``."""
    return (
        (m.a, m.b, m.shade, len(m.many), sum(m.many)),
        (m.HasField("a"), m.HasField("b"), m.HasField("next"), m.HasField("shade")),
    )


jitted_leaf = numba.njit(read_leaf)


def read_all(m: Any) -> Any:
    """Requires: a ``wire_jit.All``."""
    numbers = (
        m.f_double,
        m.f_float,
        m.f_int64,
        m.f_uint64,
        m.f_int32,
        m.f_fixed64,
        m.f_fixed32,
        m.f_bool,
        m.f_uint32,
        m.f_sfixed32,
        m.f_sfixed64,
        m.f_sint32,
        m.f_sint64,
        m.f_enum,
        len(m.f_bytes),
        m.number,
        m.closed,
        m.far,
        len(m.many),
        len(m.doubles),
    )
    presence = (
        m.HasField("f_double"),
        m.HasField("f_enum"),
        m.HasField("f_string"),
        m.HasField("leaf"),
        m.HasField("number"),
        m.HasField("message"),
        m.HasField("text"),
        m.HasField("closed"),
        m.HasField("far"),
    )
    return numbers, presence, m.WhichOneof("pick")


def read_leaves(m: Any) -> Any:
    """Requires: a ``wire_jit.All`` or ``wire_jit.Wide``."""
    return read_leaf(m.leaf), read_leaf(m.leaf.next), read_leaf(m.leaf.next.next), read_leaf(m.message)


def read_wide(m: Any) -> Any:
    """Requires: a ``wire_jit.Wide``."""
    few = (m.w1, m.w7, m.w33, m.w200, m.HasField("w200"), m.number)
    return few, m.HasField("number"), m.WhichOneof("pick"), m.HasField("pick")


def read_plain(m: Any) -> Any:
    """Requires: a ``wire_jit3.Plain``."""
    numbers = (
        m.f_double,
        m.f_float,
        m.f_int64,
        m.f_uint64,
        m.f_int32,
        m.f_fixed64,
        m.f_fixed32,
        m.f_bool,
        m.f_uint32,
        m.f_sfixed32,
        m.f_sfixed64,
        m.f_sint32,
        m.f_sint64,
        m.f_enum,
        m.maybe,
        m.open,
    )
    child = (m.child.f_int32, m.child.f_bool, m.child.child.f_double, m.child.HasField("child"))
    other = (m.other.f_uint64, m.other.open, m.other.WhichOneof("pick"), m.HasField("other"))
    return numbers, child, other, (m.HasField("maybe"), m.WhichOneof("pick"))


def _jitted(function: Any, **others: Any) -> Any:
    """A function compiled with what it calls compiled too."""
    code = type(function)(function.__code__, {**function.__globals__, **others})
    return numba.njit(code)


_leaves = read_leaves, _jitted(read_leaves, read_leaf=jitted_leaf)
# Plain functions and their compiled forms, by the message that they read.
READERS = {
    "wire_jit.All": ((read_all, numba.njit(read_all)), _leaves),
    "wire_jit.Wide": ((read_wide, numba.njit(read_wide)), _leaves),
    "wire_jit3.Plain": ((read_plain, numba.njit(read_plain)),),
}


@functools.cache
def message_type(full_name: str) -> yj.MessageType:
    file = "wire_jit3.proto" if full_name.startswith("wire_jit3") else "wire_jit.proto"
    return yj.load_schema(SCHEMAS / file)[full_name]


def same(found: Any, wanted: Any) -> bool:
    """Whether two results are equal, in type and bits: NaN equals NaN, and 0.0 isn't -0.0."""
    if isinstance(wanted, tuple):
        return isinstance(found, tuple) and all(map(same, found, wanted)) and len(found) == len(wanted)
    if isinstance(wanted, float):
        return isinstance(found, float) and repr(found) == repr(wanted)
    return bool(found == wanted) and isinstance(found, bool) == isinstance(wanted, bool)
