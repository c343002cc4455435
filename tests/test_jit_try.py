"""``try`` in jitted code: an error of ours ends its statement, and variables stay as they were."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

import yaffjit as yj

PROTO = """
syntax = "proto3";
package tried;
message Inner { int64 a = 1; }
message Outer {
  string name = 1;
  repeated int32 numbers = 2;
  repeated string texts = 3;
  repeated Inner inners = 4;
  map<int32, int64> counts = 5;
}
"""
FAR = 10**9


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> yj.Records:
    path = tmp_path_factory.mktemp("tried") / "tried.proto"
    path.write_text(PROTO)
    outer = yj.load_schema(path)["tried.Outer"]
    message = {
        "name": "x",
        "numbers": [1, 2],
        "texts": ["abc", "de"],
        "inners": [{"a": 7}],
        "counts": {1: 2},
    }
    return yj.records(outer, [outer.encode(message)] * 3)


def kept_text(recs, k):  # type: ignore[no-untyped-def]
    text = recs[0].name
    try:  # noqa: SIM105  (numba takes no suppress)
        text = recs[0].texts[k]
    except Exception:
        pass
    return str(text)


def counted(recs, k):  # type: ignore[no-untyped-def]
    total = 0
    for i in range(k, k + 4):
        try:
            total += recs[0].numbers[i]
        except Exception:
            total += 100
    return total


def kept_row(recs, k):  # type: ignore[no-untyped-def]
    found = recs[0]
    try:  # noqa: SIM105
        found = recs[k]
    except Exception:
        pass
    return len(found.inners)


def through_absent(recs, k):  # type: ignore[no-untyped-def]
    value = -1
    try:
        value = recs[0].inners[k].a
    except Exception:
        value -= 1
    return value


def stores_nothing(recs, k):  # type: ignore[no-untyped-def]
    out = np.zeros(3, np.int64)
    try:
        out[1] = recs[0].numbers[k]
        out[2] = 1
    except Exception:
        out[0] = 1
    return out


def key_out_of_range(recs, k):  # type: ignore[no-untyped-def]
    found = 5
    try:
        found = recs[0].counts[k * 1000]
    except Exception:
        found += 1
    return found


FUNCTIONS = [kept_text, counted, kept_row, through_absent, stores_nothing, key_out_of_range]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_what_is_tried_gives_what_python_gives(records: yj.Records, function: Callable[..., Any]) -> None:
    jitted = numba.njit(function)
    for k in (0, 5, FAR, -FAR):
        assert np.array_equal(jitted(records, k), function(records, k)), k


def test_two_tries_behind_one_another_are_numbas_own_matter() -> None:
    """docs/limits.md: on CPython 3.13 the second one doesn't catch what a called function raises."""

    @numba.njit
    def get(values: Any, i: int) -> Any:
        if i >= len(values):
            raise IndexError("no such value")
        return values[i]

    @numba.njit
    def caught(values: Any, i: int) -> int:
        count = 0
        try:
            get(values, i)
        except Exception:
            count += 1
        try:
            get(values, i)
        except Exception:
            count += 1
        return count

    values = np.arange(2)
    assert caught(values, 1) == 0
    if sys.version_info < (3, 13):
        assert caught(values, 2) == 2
    else:  # if this fails, numba has been mended: take the line out of docs/limits.md
        with pytest.raises(IndexError, match="no such value"):
            caught(values, 2)
