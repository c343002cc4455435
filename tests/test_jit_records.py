"""Records in jitted code: length, rows, slices, loops of all sorts; as in the interpreter."""

from __future__ import annotations

from typing import Any

import jit_kinds
import numba
import numpy as np
import pytest

import yaffjit
from yaffjit.errors import CompileError, RowError

COUNT = 11


def make_records(count: int = COUNT, layout: str = "dynamic") -> Any:
    message_type = jit_kinds.message_type(layout)
    payloads = [
        message_type.encode(
            {"plain_int32": row, "child": {"maybe_double": row / 4}} if row % 3 else {"plain_int32": row},
            "sparse" if row % 2 else "flat",
        )
        for row in range(count)
    ]
    return yaffjit.records(message_type, payloads)


def total(records: Any) -> Any:
    found = 0.0
    present = 0
    for m in records:
        found += m.plain_int32 + m.child.maybe_double
        present += m.HasField("child")
    return found, present


def by_row(records: Any) -> Any:
    found = 0.0
    for row in range(len(records)):
        found += records[row].child.maybe_double * (records[-1 - row].plain_int32 + 1)
    return found


def enumerated(records: Any) -> Any:
    found = 0
    for row, m in enumerate(records):
        found += row * m.plain_int32
    for a, b in zip(records, records[1:]):  # noqa: B905, RUF007
        found += a.plain_int32 * b.plain_int32
    return found


def truth(records: Any) -> Any:
    return len(records), bool(records), not records, bool(records[:0])


@pytest.mark.parametrize("function", [total, by_row, enumerated, truth])
@pytest.mark.parametrize("layout", ["dynamic", "fixed"])
def test_loops(function: Any, layout: str) -> None:
    jitted = numba.njit(function)
    records = make_records(layout=layout)
    assert jitted(records) == function(records)
    assert jitted(records[2:7]) == function(records[2:7])
    assert len(jitted.signatures) == 1


def test_rows_past_the_first_chunk() -> None:
    message_type = jit_kinds.message_type("fixed")
    payloads = [message_type.encode({"plain_int32": row}) for row in range(3)]
    count = 3 * 50_000
    buffer = b"".join(payloads) * 50_000
    size = len(payloads[0])
    offsets = np.arange(count + 1, dtype=np.int64) * size
    records = yaffjit.records(message_type, (buffer, offsets))
    read = numba.njit(lambda records, row: records[row].plain_int32)
    for row in (0, 65_535, 65_536, 131_071, 131_072, count - 1, -1):
        assert read(records, row) == row % 3
    later = records[65_530:131_080]
    assert [read(later, row) for row in (0, 6, 7, -1)] == [65_530 % 3, 65_536 % 3, 65_537 % 3, 131_079 % 3]
    assert numba.njit(total)(later)[0] == sum(row % 3 for row in range(65_530, 131_080))


@pytest.mark.parametrize("row", [COUNT, -COUNT - 1, 2**40])
def test_a_row_that_is_not_there(row: int) -> None:
    records = make_records()
    read = numba.njit(lambda records, row: records[row].plain_int32)
    with pytest.raises(IndexError) as caught:
        read(records, row)
    assert type(caught.value) is RowError
    assert str(caught.value) == f"row {row} is out of range: there are {COUNT} rows"
    with pytest.raises(IndexError) as plain:
        read.py_func(records, row)
    assert str(plain.value) == str(caught.value)
    assert read(records, 0) == 0


def test_a_row_error_can_be_caught_in_jitted_code() -> None:
    @numba.njit
    def read(records, row):
        try:
            return records[row].plain_int32
        except Exception:
            return -1

    assert read(make_records(), 4) == 4
    assert read(make_records(), 44) == -1


SLICES = [(0, 5), (3, 3), (5, 2), (-4, -1), (2, 99), (-99, 4), (99, 120)]


def test_slices() -> None:
    records = make_records()

    @numba.njit
    def rows(records, start, stop):
        part = records[start:stop]
        return len(part), [m.plain_int32 for m in part[:2]], [m.plain_int32 for m in part[-2:]]

    @numba.njit
    def ends(records, at):
        return len(records[at:]), len(records[:at]), len(records[:]), records[at:][1:][0].plain_int32

    for start, stop in SLICES:
        assert rows(records, start, stop) == rows.py_func(records, start, stop)
    for at in (0, 4, -3):
        assert ends(records, at) == ends.py_func(records, at)


@numba.njit(parallel=True)
def in_parallel(records, out):
    for row in numba.prange(len(records)):
        m = records[row]
        out[row] = m.plain_int32 + m.child.maybe_double
    return out.sum()


def test_prange() -> None:
    records = make_records(3000)
    out = np.empty(len(records))
    assert in_parallel(records, out) == total(records)[0]
    assert out[7] == 7 + 7 / 4


def test_records_pass_between_jitted_functions() -> None:
    @numba.njit
    def first(records):
        return records[0]

    @numba.njit
    def rest(records):
        return records[1:]

    @numba.njit
    def both(records):
        return first(rest(records)).plain_int32, len(rest(rest(records)))

    assert both(make_records()) == (1, COUNT - 2)


def test_rows_come_out_as_views_of_the_records() -> None:
    fourth = numba.njit(lambda records: records[3])
    listed = make_records()
    payloads = [listed.payload(row) for row in range(COUNT)]
    offsets = np.cumsum([0, *map(len, payloads)])
    records = yaffjit.records(jit_kinds.message_type("dynamic"), (b"".join(payloads), offsets))
    view = fourth(records)
    assert view == records[3]
    assert view._owner_ is records._owner
    # Of many buffers, a view holds its own alone.
    view = fourth(listed)
    assert view == listed[3]
    assert view._data_ is listed[3]._data_
    assert view._owner_ is None
    assert numba.njit(lambda view: view.plain_int32)(view) == 3


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (lambda records: records[::2], "slices of records have no step in jitted code"),
        (lambda records: records["a"], "records are indexed by row numbers and slices, not by str"),
        (lambda records: records[0].nope, "kinds.Dynamic has no field 'nope'"),
    ],
)
def test_what_records_refuse(function: Any, sentence: str) -> None:
    with pytest.raises(CompileError) as caught:
        numba.njit(function)(make_records())
    assert sentence in str(caught.value)


def test_records_do_not_come_out() -> None:
    with pytest.raises(TypeError) as caught:
        numba.njit(lambda records: records[1:])(make_records())
    assert str(caught.value) == (
        "records don't come out of jitted code: return row numbers, and slice them outside"
    )
