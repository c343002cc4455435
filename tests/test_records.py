"""Records: what they are made of, how they are indexed, and what is refused."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pytest
from vectors import TESTS

import yaffjit as yj
from yaffjit.rows import CHUNK_ROWS, Records, records, records_unchecked

ROWS = 100
OFFSETS_MUST_BE = "offsets must be a one-dimensional array of n + 1 integers for n messages"


@pytest.fixture(scope="module")
def row_type() -> yj.MessageType:
    return yj.load_schema(TESTS / "schemas" / "columns.proto")["columns.Row"]


@pytest.fixture(scope="module")
def plan(row_type: yj.MessageType) -> Any:
    return row_type.plan


@pytest.fixture(scope="module")
def payloads(row_type: yj.MessageType) -> list[bytes]:
    return [row_type.encode({"id": row, "name": "n" * (row % 5)}) for row in range(ROWS)]


@pytest.fixture(scope="module")
def arrays(payloads: list[bytes]) -> tuple[bytes, np.ndarray[Any, Any]]:
    return b"".join(payloads), np.cumsum([0, *map(len, payloads)])


def ids(recs: Records) -> list[int]:
    return [view.id for view in recs]


@numba.njit
def checked_sum(recs: Any) -> Any:
    total = 0
    for row in range(len(recs)):
        total += row * recs[row].first
    return total


def test_public_names(row_type: yj.MessageType, payloads: list[bytes]) -> None:
    for _ in range(2):  # importing our modules mustn't hide the functions
        assert ids(yj.records(row_type, payloads)) == list(range(ROWS))
        assert ids(yj.records_unchecked(row_type, payloads)) == list(range(ROWS))


@pytest.mark.parametrize("form", [list, tuple, iter])
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_payloads_of_many_sorts(plan: Any, payloads: list[bytes], form: Any, kind: Any) -> None:
    recs = records(plan, form([kind(payload) for payload in payloads]))
    assert len(recs) == ROWS
    assert ids(recs) == list(range(ROWS))
    assert [recs.payload(row) for row in range(ROWS)] == payloads
    assert recs.nbytes == sum(map(len, payloads))


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint16, np.uint64])
def test_data_and_offsets(plan: Any, arrays: Any, dtype: Any) -> None:
    data, offsets = arrays
    assert ids(records(plan, (data, offsets.astype(dtype)))) == list(range(ROWS))
    assert ids(records(plan, (data, offsets.tolist()))) == list(range(ROWS))


def test_offsets_may_leave_out_both_ends(plan: Any, payloads: list[bytes], arrays: Any) -> None:
    data, offsets = arrays
    recs = records(plan, (b"xyz" + data + b"xyz", offsets[2:-2] + 3))
    assert ids(recs) == list(range(2, ROWS - 2))
    assert recs.payload(0) == payloads[2]


def test_read_only_buffers_are_not_copied(plan: Any, arrays: Any, tmp_path: Path) -> None:
    data, offsets = arrays
    path = tmp_path / "data"
    path.write_bytes(data)
    with open(path, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    memory = np.memmap(path, np.uint8, "r")
    array = np.frombuffer(data, np.uint8)
    for buffer in (mapped, memory, array, memoryview(data), pa.py_buffer(data)):
        recs = records(plan, (buffer, offsets))
        assert ids(recs) == list(range(ROWS))
        assert recs._owner.address == np.frombuffer(buffer, np.uint8).ctypes.data
        assert recs[3]._data_ is recs[4]._data_
    assert records(plan, (data, offsets))[0]._data_ is data


def read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array.flags.writeable = False
    return array


# What each gives somebody can write to, although most of them say that they are read-only.
COULD_CHANGE: dict[str, Any] = {
    "bytearray": bytearray,
    "read-only memoryview": lambda data: memoryview(bytearray(data)).toreadonly(),
    "its slice": lambda data: memoryview(bytearray(data)).toreadonly()[:],
    "array": lambda data: np.frombuffer(data, np.uint8).copy(),
    "array whose flag can be set back": lambda data: read_only(np.frombuffer(data, np.uint8).copy()),
    "read-only view of an array": lambda data: read_only(np.frombuffer(data, np.uint8).copy().view()),
    "slice of a read-only view": lambda data: read_only(np.frombuffer(data, np.uint8).copy()[:])[:],
    "array over a read-only memoryview": lambda data: np.frombuffer(
        memoryview(bytearray(data)).toreadonly(), np.uint8
    ),
    "read-only array over a bytearray": lambda data: read_only(np.frombuffer(bytearray(data), np.uint8)),
    "Arrow buffer over a bytearray": lambda data: pa.py_buffer(bytearray(data)),
    "slice of it": lambda data: pa.py_buffer(bytearray(data)).slice(0),
    "array over it": lambda data: np.frombuffer(pa.py_buffer(bytearray(data)), np.uint8),
    "memoryview of it": lambda data: memoryview(pa.py_buffer(bytearray(data))),
}


@pytest.mark.parametrize("form", list(COULD_CHANGE))
def test_what_could_change_is_refused(plan: Any, arrays: Any, form: str) -> None:
    data, offsets = arrays
    buffer = COULD_CHANGE[form](data)
    with pytest.raises(ValueError) as caught:
        records(plan, (buffer, offsets))
    assert str(caught.value) == (
        "the data is writable, so it could change after it was verified: pass copy=True, "
        "or use records_unchecked if it is trusted and stays as it is"
    )
    assert ids(records(plan, (buffer, offsets), copy=True)) == list(range(ROWS))
    assert ids(records_unchecked(plan, (buffer, offsets))) == list(range(ROWS))


def test_a_copy_stays_and_unchecked_data_is_shared(plan: Any, arrays: Any) -> None:
    data, offsets = arrays
    array = np.frombuffer(data, np.uint8).copy()
    copied = records(plan, (array, offsets), copy=True)
    shared = records_unchecked(plan, (array, offsets))
    array[:] = 255
    assert ids(copied) == list(range(ROWS))
    assert shared.payload(0) == b"\xff" * offsets[1]


OFFSETS_THAT_COULD_CHANGE: dict[str, Any] = {
    "array": lambda mine: mine,
    "read-only view": lambda mine: read_only(mine.view()),
    "read-only slice of a view": lambda mine: read_only(mine[:])[:],
    "flag that can be set back": lambda mine: mine,
    "memoryview": lambda mine: memoryview(mine).toreadonly(),
    "array over a memoryview": lambda mine: np.frombuffer(memoryview(mine).toreadonly(), np.int64),
    "array over an Arrow buffer": lambda mine: np.frombuffer(pa.py_buffer(mine), np.int64),
}


@pytest.mark.parametrize("form", list(OFFSETS_THAT_COULD_CHANGE))
def test_offsets_that_could_change_are_copied(plan: Any, arrays: Any, form: str) -> None:
    data, offsets = arrays
    for make in (records, records_unchecked):
        mine = offsets.copy()
        if form == "flag that can be set back":
            read_only(mine)
        recs = make(plan, (data, OFFSETS_THAT_COULD_CHANGE[form](mine)))
        mine.flags.writeable = True
        mine[:] = 2**40
        assert ids(recs) == list(range(ROWS))
        assert checked_sum(recs) == 0


def test_offsets_that_cannot_change_are_shared(plan: Any, arrays: Any) -> None:
    data, offsets = arrays
    shared = np.frombuffer(offsets.tobytes(), np.int64)
    recs = records(plan, (data, shared))
    assert recs._chunks.chunks[0].offsets.ctypes.data == shared.ctypes.data
    column = pa.array([b"\4\0\0\0\0\0"] * 3, pa.large_binary())
    recs = records_unchecked(plan, column)
    assert recs._chunks.chunks[0].offsets.ctypes.data == column.buffers()[1].address


@pytest.mark.parametrize(
    "dtype", [np.dtype("<i8"), np.dtype(">u4"), np.dtype("S2"), np.dtype([("a", "u1"), ("b", "<u2")])]
)
def test_data_of_any_element_type(plan: Any, payloads: list[bytes], dtype: Any) -> None:
    joined = b"".join(payloads)
    data = joined + bytes(-len(joined) % 48)
    array = np.frombuffer(data, dtype)
    offsets = np.cumsum([0, *map(len, payloads)])
    assert ids(records(plan, (array, offsets))) == list(range(ROWS))
    assert ids(records(plan, (array, offsets), copy=True)) == list(range(ROWS))
    with pytest.raises(ValueError, match=r"^the data is writable"):
        records(plan, (array.copy(), offsets))
    assert ids(records(plan, (array.reshape(2, -1), offsets))) == list(range(ROWS))


@pytest.mark.parametrize(
    "kind",
    [bytes, bytearray, memoryview, pa.py_buffer, lambda payload: np.frombuffer(payload, np.uint8)],
)
def test_two_payloads_are_not_data_and_offsets(plan: Any, payloads: list[bytes], kind: Any) -> None:
    for make in (records, records_unchecked):
        assert ids(make(plan, (kind(payloads[0]), kind(payloads[7])))) == [0, 7]
    assert ids(records(plan, (payloads[0], kind(payloads[7])))) == [0, 7]


def test_arrow_columns(plan: Any, payloads: list[bytes]) -> None:
    for kind in (pa.binary(), pa.large_binary()):
        column = pa.array(payloads, kind)
        assert ids(records(plan, column)) == list(range(ROWS))
        assert ids(records(plan, column[10:20])) == list(range(10, 20))
        assert ids(records(plan, pa.chunked_array([column[:30], column[30:]]))) == list(range(ROWS))
        assert len(records(plan, column[:0])) == 0
    with pytest.raises(ValueError) as caught:
        records(plan, pa.array([payloads[0], None], pa.binary()))
    assert str(caught.value) == "the Arrow column has 1 null rows, which aren't supported"
    with pytest.raises(TypeError) as type_error:
        records(plan, pa.array(["text"]))
    assert str(type_error.value) == "an Arrow column of messages must be binary or large_binary, not string"


@pytest.mark.parametrize(
    ("payloads", "error", "sentence"),
    [
        ([b"", "x"], TypeError, "row 1: a message must be bytes, not str"),
        ([3], TypeError, "row 0: a message must be bytes, not int"),
        (
            b"abc",
            TypeError,
            "payloads must be an iterable of bytes, one a message, or (data, offsets), not one bytes",
        ),
        (
            np.zeros(3, np.uint8),
            TypeError,
            "payloads must be an iterable of bytes, one a message, or (data, offsets), not one ndarray",
        ),
        (
            5,
            TypeError,
            "payloads must be an iterable of bytes, one a message, or (data, offsets), not one int",
        ),
        ([memoryview(b"abcd")[::2]], ValueError, "row 0: the message isn't contiguous"),
        ((b"abc", [[0], [1, 2]]), ValueError, f"{OFFSETS_MUST_BE}, not list"),
        ((b"abc", None), ValueError, f"{OFFSETS_MUST_BE}, not object of shape ()"),
        ((b"abc", "abc"), ValueError, f"{OFFSETS_MUST_BE}, not <U3 of shape ()"),
        ((b"abc", [0, 2**70]), ValueError, f"{OFFSETS_MUST_BE}, not object of shape (2,)"),
        ((b"abc", [False, True]), ValueError, f"{OFFSETS_MUST_BE}, not bool of shape (2,)"),
        (
            (np.zeros(3, "M8[s]"), [0, 1]),
            TypeError,
            "(data, offsets): data must be a buffer of bytes, not ndarray",
        ),
        ((3, [0, 1]), TypeError, "(data, offsets): data must be a buffer of bytes, not int"),
        (
            (np.frombuffer(b"abcd", np.uint8)[::2], [0, 1]),
            ValueError,
            "(data, offsets): data must be contiguous",
        ),
        (
            (b"abc", [0.5, 1]),
            ValueError,
            "offsets must be a one-dimensional array of n + 1 integers for n messages, "
            "not float64 of shape (2,)",
        ),
        (
            (b"abc", np.zeros((2, 2), int)),
            ValueError,
            "offsets must be a one-dimensional array of n + 1 integers for n messages, "
            "not int64 of shape (2, 2)",
        ),
        (
            (b"abc", np.zeros(0, np.int32)),
            ValueError,
            "offsets must be a one-dimensional array of n + 1 integers for n messages, "
            "not int32 of shape (0,)",
        ),
        ((b"abc", [-1, 2]), ValueError, "the first offset is -1: offsets count from 0"),
        ((b"abc", [0, 2, 1]), ValueError, "row 1: the message ends at 1, before its start at 2"),
        ((b"abc", [0, 4]), ValueError, "the last offset is 4, but the data has 3 bytes"),
        (
            (b"abc", np.array([0, 2**63], np.uint64)),
            ValueError,
            "offset 9223372036854775808 is past the end of the data, which has 3 bytes",
        ),
    ],
)
def test_payloads_that_make_no_sense(plan: Any, payloads: Any, error: Any, sentence: str) -> None:
    for make in (records, records_unchecked):
        with pytest.raises(error) as caught:
            make(plan, payloads)
        assert str(caught.value) == sentence


def test_other_representations_are_refused(plan: Any) -> None:
    for make in (records, records_unchecked):
        with pytest.raises(ValueError) as caught:
            make(plan, [], representation="protobuf")
        assert str(caught.value) == "representation 'protobuf' isn't supported; supported: 'yaff'"


def test_messages_are_verified(plan: Any, payloads: list[bytes]) -> None:
    bad = [*payloads[:70], payloads[70][:-3], *payloads[71:]]
    with pytest.raises(yj.VerifyError) as caught:
        records(plan, bad)
    assert caught.value.row == 70
    assert str(caught.value).startswith("row 70: columns.Row")
    unchecked = records(plan, bad, verify=False)
    assert len(records_unchecked(plan, bad)) == ROWS
    unchecked[:70].verify()
    with pytest.raises(yj.VerifyError) as caught:
        unchecked[60:].verify()
    assert caught.value.row == 10


def test_unchecked_bytes_still_fail_by_our_error(plan: Any) -> None:
    recs = records_unchecked(plan, [b"\xff\xff\xff\x7f"])
    for read in (lambda: recs[0], lambda: list(recs)):
        with pytest.raises(yj.VerifyError) as caught:
            read()
        assert str(caught.value) == "columns.Row: the data of 4 bytes ends before the message at byte 0"


def test_rows(plan: Any, payloads: list[bytes]) -> None:
    recs = records(plan, payloads)
    assert recs[0].id == 0
    assert recs[-1].id == ROWS - 1
    assert recs[np.int32(5)].id == 5
    assert recs[7].name == "nn"
    assert recs.payload(-2) == payloads[-2]
    assert [view.id for view in reversed(recs)] == list(range(ROWS))[::-1]
    for row in (ROWS, -ROWS - 1):
        with pytest.raises(IndexError) as caught:
            recs[row]
        assert str(caught.value) == f"row {row} is out of range: there are 100 rows"
        with pytest.raises(IndexError):
            recs.payload(row)
    for key in ("id", 1.5, None, np.ones(3, bool)):
        with pytest.raises(TypeError) as type_error:
            recs[key]
        assert str(type_error.value) == (
            f"records are indexed by row numbers and slices, not by {type(key).__name__}"
        )


def test_slices_are_those_of_lists(plan: Any, payloads: list[bytes]) -> None:
    recs = records(plan, payloads)
    numbers = list(range(ROWS))
    for key in (
        *(slice(None), slice(3, 9), slice(-4, None), slice(50, 3), slice(90, 200), slice(0, 0)),
        *(slice(None, None, 2), slice(None, None, -1), slice(80, 10, -7), slice(10, 80, -7)),
    ):
        part = recs[key]
        assert isinstance(part, Records)
        assert ids(part) == numbers[key]
        assert [part.payload(row) for row in range(len(part))] == payloads[key]
        assert part.nbytes == sum(map(len, payloads[key]))
    assert ids(recs[20:60][10:20][-3:]) == [37, 38, 39]
    assert recs[20:60]._owner is recs._owner
    assert recs[20:60][0]._data_ is recs[0]._data_
    with pytest.raises(IndexError):
        recs[20:60][40]


def test_head(plan: Any, payloads: list[bytes]) -> None:
    recs = records(plan, payloads)
    assert ids(recs.head()) == [0, 1, 2, 3, 4]
    assert ids(recs.head(2)) == [0, 1]
    assert len(recs[:3].head()) == 3


def test_no_messages(plan: Any) -> None:
    for payloads in ([], iter(()), (b"", [0]), (bytearray(), [0]), pa.array([], pa.binary())):
        recs = records(plan, payloads, copy=True)
        assert len(recs) == 0
        assert not list(recs)
        assert recs.nbytes == 0
        assert repr(recs) == "<Records of columns.Row: 0 rows, 0 bytes>"
        recs.verify()
        with pytest.raises(IndexError):
            recs[0]
    assert not records(plan, [])


def test_repr(plan: Any, payloads: list[bytes]) -> None:
    recs = records(plan, payloads * 20)
    assert repr(recs) == f"<Records of columns.Row: 2,000 rows, {recs.nbytes:,} bytes>"
    assert recs.plan is plan


@pytest.mark.parametrize("count", [CHUNK_ROWS - 1, CHUNK_ROWS, CHUNK_ROWS + 1, 2 * CHUNK_ROWS + 3])
def test_chunk_boundaries(plan: Any, row_type: yj.MessageType, count: int) -> None:
    encoded = [row_type.encode({"first": first}) for first in range(1, 8)]
    recs = records(plan, [encoded[row % 7] for row in range(count)])
    firsts = np.arange(count) % 7 + 1
    assert len(recs) == count
    for row in (0, count - 1, *range(CHUNK_ROWS - 2, min(CHUNK_ROWS + 2, count))):
        assert recs[row].first == firsts[row]
        assert recs.payload(row) == encoded[row % 7]
    assert recs.nbytes == sum(len(encoded[row % 7]) for row in range(count))
    assert checked_sum(recs) == (np.arange(count) * firsts).sum()
    tail = recs[CHUNK_ROWS - 3 :]
    assert ids_first(tail) == firsts[CHUNK_ROWS - 3 :].tolist()
    assert checked_sum(tail) == (np.arange(len(tail)) * firsts[CHUNK_ROWS - 3 :]).sum()


def ids_first(recs: Records) -> list[int]:
    return [view.first for view in recs]


def test_views_outlive_their_records(plan: Any, payloads: list[bytes]) -> None:
    view = records(plan, list(payloads))[9]
    assert view.id == 9
    assert view.name == "nnnn"


def test_bad_row_in_jitted_code(plan: Any, payloads: list[bytes]) -> None:
    @numba.njit
    def one(recs: Any, row: int) -> Any:
        return recs[row].first

    recs = records(plan, payloads)
    assert one(recs, -1) == 0
    with pytest.raises(IndexError) as caught:
        one(recs[:7], 7)
    assert str(caught.value) == "row 7 is out of range: there are 7 rows"
