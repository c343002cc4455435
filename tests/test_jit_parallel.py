"""Parallel loops of the user's over records: oneofs, constants and well-known types, read by each thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba
import numpy as np

import yaffjit

SCHEMA = yaffjit.load_schema(Path(__file__).parent / "schemas" / "constants.proto")
Event = SCHEMA["constants.Event"]
M = Event.message_class
COUNT = 400
COLUMNS = 9


def content(row: int) -> dict[str, Any]:
    """Of a oneof none, one and the other member; timestamps and wrappers that are there or not."""
    found: dict[str, Any] = {"id": row, "state": (0, 1, -3)[row % 3], "text": "aé"[: row % 3]}
    if row % 4 == 1:
        found["number"] = row
    elif row % 4 == 2:
        found["other"] = {"kind": 7 * (row % 8 == 2)}
    if row % 3:
        found["at"] = {"seconds": 10 * row, "nanos": 123_456_789}
        found["took"] = {"seconds": -row, "nanos": -500_000_000}
        found["count"] = {"value": row - 100}
    return found


def read(v: Any, out: Any, row: Any) -> None:
    kind = v.WhichOneof("pick")
    if kind == "number":
        out[row, 0] = v.number
    elif kind == "other":
        out[row, 0] = -1 - (v.other.kind == M.Inner.FANCY)
    elif kind is None:
        out[row, 0] = -9
    out[row, 1] = v.state == M.ACTIVE
    out[row, 2] = v.state in (M.GONE, v.NONE)
    out[row, 3] = len(M.State.Name(v.state))
    out[row, 4] = M.State.Value("GONE") + v.ID_FIELD_NUMBER
    out[row, 5] = v.at.ToMicroseconds()
    out[row, 6] = v.took.ToMilliseconds()
    out[row, 7] = v.count.value + v.HasField("count")
    out[row, 8] = v.end.ToDatetime() - v.at < v.took.ToTimedelta()


read_jitted = numba.njit(read)


@numba.njit(parallel=True)
def in_parallel(records: Any, out: Any) -> Any:
    named = 0
    for row in numba.prange(len(records)):
        v = records[row]
        read_jitted(v, out, row)
        # Directly in the body, which numba makes a function of its own.
        if v.WhichOneof("pick") == "number" and v.state != M.NONE and v.at.ToSeconds() > 100:
            named += 1
    return named


def test_oneofs_constants_and_well_known_types_in_prange() -> None:
    messages = [M(**content(row)) for row in range(COUNT)]
    expected = np.zeros((COUNT, COLUMNS), np.int64)
    for row, message in enumerate(messages):
        read(message, expected, row)
    named = sum(
        m.WhichOneof("pick") == "number" and m.state != M.NONE and m.at.ToSeconds() > 100 for m in messages
    )
    assert len(np.unique(expected, axis=0)) > COUNT // 2
    assert named > 50
    records = yaffjit.records(Event, [Event.encode(message) for message in messages])
    for _ in range(3):
        found = np.zeros_like(expected)
        assert in_parallel(records, found) == named
        assert found.tolist() == expected.tolist()
