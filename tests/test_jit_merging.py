"""LLVM merges equal reads: a chain of messages is followed once, whatever is stored in between."""

from __future__ import annotations

import re
from typing import Any

import jit_kinds
import numba
import numpy as np
import pytest


def loads(function: Any, *args: Any) -> int:
    """Loads from a message's bytes in the optimised code of a jitted function."""
    jitted = numba.njit(function)
    jitted(*args)
    (text,) = jitted.inspect_llvm().values()
    assert "call" in text
    return len(re.findall(r"!invariant\.load", text))


def once(m: Any, out: Any) -> None:
    out[0] = m.child.child.maybe_double


def repeated(m: Any, out: Any) -> None:
    out[0] = m.child.child.maybe_double
    out[1] = m.child.child.maybe_double * 2
    grandchild = m.child.child
    out[2] = grandchild.maybe_double + m.child.child.maybe_double


def two_fields(m: Any, out: Any) -> None:
    out[0] = m.child.child.maybe_double
    out[1] = m.child.child.plain_float


def presence_between(m: Any, out: Any) -> None:
    if m.HasField("child"):
        out[0] = 1
    if m.HasField("child"):
        out[1] = 1


def presence_once(m: Any, out: Any) -> None:
    if m.HasField("child"):
        out[0] = 1
        out[1] = 1


@pytest.mark.parametrize("layout", jit_kinds.LAYOUTS)
def test_a_chain_is_followed_once_across_stores(layout: str) -> None:
    message_type = jit_kinds.message_type(layout)
    view = message_type.view(message_type.encode({"child": {"child": {"maybe_double": 0.5}}}))
    out = np.zeros(3)
    first = loads(once, view, out)
    assert first > 0
    assert loads(repeated, view, out) == first
    assert loads(two_fields, view, out) < 2 * first
    assert loads(presence_between, view, out) == loads(presence_once, view, out)


def test_reads_are_unaligned_loads_without_calls() -> None:
    """The code of a plain read has no call but numba's own, and never assumes an alignment."""
    message_type = jit_kinds.message_type("dynamic")
    view = message_type.view(message_type.encode({}))
    read = numba.njit(lambda m: m.child.plain_int64 + m.plain_int32)
    read(view)
    (text,) = read.inspect_llvm().values()
    body = next(part for part in text.split("define ")[1:] if "lambda" in part.split("(")[0])
    body = body[: body.index("\n}")]
    assert " call " not in body
    marked = [line for line in body.splitlines() if "!invariant.load" in line]
    assert marked
    assert all(", align 1, !invariant.load" in line for line in marked)


def test_only_fields_that_are_used_are_emitted() -> None:
    message_type = jit_kinds.message_type("dynamic")
    view = message_type.view(message_type.encode({}))
    read = numba.njit(lambda m: m.plain_int32)
    read(view)
    (text,) = read.inspect_llvm().values()
    assert len(re.findall("yaffjit", text)) < 20
    assert not re.findall(r"@yaffjit\.(scalar|present|reference)", text)
