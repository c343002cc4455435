"""Records: what they are made of, how they are indexed, and what is refused."""

from __future__ import annotations

import io
import mmap
import re
import struct
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pandas as pd
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
def one_view(recs: Any, row: int) -> Any:
    return recs[row]


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


class Bytes(bytes):
    """A class of bytes objects that isn't bytes itself."""


@pytest.mark.parametrize("form", [list, tuple, iter])
@pytest.mark.parametrize("kind", [bytes, memoryview, Bytes, pa.py_buffer])
def test_payloads_of_many_sorts(plan: Any, payloads: list[bytes], form: Any, kind: Any) -> None:
    recs = records(plan, form([kind(payload) for payload in payloads]))
    assert len(recs) == ROWS
    assert ids(recs) == list(range(ROWS))
    assert [recs.payload(row) for row in range(ROWS)] == payloads
    assert recs.nbytes == sum(map(len, payloads))


def test_listed_messages_that_could_change_are_refused(plan: Any, payloads: list[bytes]) -> None:
    mine: list[Any] = [*payloads[:7], bytearray(payloads[7]), *payloads[8:]]
    with pytest.raises(ValueError) as caught:
        records(plan, mine)
    assert str(caught.value) == (
        "row 7: the message is writable, so it could change after it was verified: pass copy=True, "
        "or use records_unchecked if it is trusted and stays as it is"
    )
    copied, shared = records(plan, mine, copy=True), records_unchecked(plan, mine)
    with pytest.raises(BufferError):
        mine[7].append(1)
    mine[7][:] = bytes(len(mine[7]))
    assert copied.payload(7) == payloads[7]
    assert shared.payload(7) == mine[7]
    # Bytes are where they were.
    assert copied[3]._data_ is shared[3]._data_ is payloads[3]


def test_a_million_listed_messages(plan: Any, payloads: list[bytes]) -> None:
    """So many are found by a compiled loop; here few enough that it takes no time."""
    many: list[Any] = payloads * 60
    many[4321] = Bytes(many[4321])
    many[5432] = None
    recs = records(plan, many)
    assert ids(recs[4300:4400]) == list(range(ROWS))
    assert recs.payload(5431) == many[5431]
    assert (recs.payload(5432), recs.valid.sum()) == (None, len(many) - 1)
    assert records(plan, payloads * 60).payload(5432) == payloads[32]
    with pytest.raises(TypeError) as caught:
        records(plan, [*many, 3])
    assert str(caught.value) == "row 6000: a message must be bytes, not int"


def test_buffers_that_overlap(plan: Any, payloads: list[bytes], arrays: Any) -> None:
    """Views that come out of jitted code are of bytes that hold their whole message."""
    data, offsets = arrays
    shown = memoryview(data)
    starts = offsets[:-1].tolist()
    # Each message with a part of its neighbours, twice, and once all of them together.
    spans = [(start, min(len(data), start + 60)) for start in starts]
    overlapping = [shown[start:stop] for start, stop in spans]
    for extra in ([], overlapping, [shown]):
        recs = records(plan, [*overlapping, *extra])
        assert ids(recs[:ROWS]) == list(range(ROWS))
        for row in (0, 5, ROWS - 1):
            found = one_view(recs, row)
            assert (found.id, found.name) == (row, "n" * (row % 5))
    assert bytes(one_view(records(plan, overlapping[:2]), 1)._data_) == data[: spans[1][1]]


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
    assert recs._store.chunks[0].offsets.ctypes.data == shared.ctypes.data
    column = pa.array([b"\4\0\0\0\0\0"] * 3, pa.large_binary())
    recs = records_unchecked(plan, column)
    assert recs._store.chunks[0].offsets.ctypes.data == column.buffers()[1].address


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
    "kind", [bytes, memoryview, pa.py_buffer, lambda payload: np.frombuffer(payload, np.uint8)]
)
def test_two_payloads_are_not_data_and_offsets(plan: Any, payloads: list[bytes], kind: Any) -> None:
    for make in (records, records_unchecked):
        assert ids(make(plan, (kind(payloads[0]), kind(payloads[7])))) == [0, 7]
    assert ids(records(plan, (payloads[0], kind(payloads[7])))) == [0, 7]


ARROW_KINDS = {
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "binary_view": pa.binary_view(),
    "dictionary": pa.dictionary(pa.int8(), pa.binary()),
}


def as_arrow(payloads: list[Any], kind: str) -> Any:
    column = pa.array(payloads, pa.binary() if kind == "dictionary" else ARROW_KINDS[kind])
    return column.dictionary_encode() if kind == "dictionary" else column


@pytest.mark.parametrize("kind", list(ARROW_KINDS))
def test_arrow_columns(plan: Any, payloads: list[bytes], kind: str) -> None:
    column = as_arrow(payloads, kind)
    for copy in (False, True):
        assert ids(records(plan, column, copy=copy)) == list(range(ROWS))
        assert ids(records(plan, column[10:20], copy=copy)) == list(range(10, 20))
    assert ids(records(plan, pa.chunked_array([column[:30], column[:0], column[30:]]))) == list(range(ROWS))
    assert len(records(plan, column[:0])) == len(records(plan, pa.chunked_array([], column.type))) == 0
    nulls = as_arrow([None, *payloads[:9], None, None, payloads[50], None], kind)
    for column in (nulls, nulls[1:], pa.chunked_array([nulls[:5], nulls[:0], nulls[5:]])):
        recs = records(plan, column)
        expected = column.to_pylist()
        assert [recs.payload(row) for row in range(len(recs))] == expected
        assert recs.valid.tolist() == [payload is not None for payload in expected]
        assert not recs.valid.flags.writeable
        assert checked_sum(recs) == sum(row * view.first for row, view in enumerate(recs) if recs.valid[row])
        assert not recs[-1].ListFields()
    assert repr(records(plan, nulls)).endswith(" bytes, 4 null rows>")
    assert len(records(plan, as_arrow([None, None], kind))) == 2
    assert records(plan, as_arrow(payloads, kind)).valid.tolist() == [True] * ROWS


@pytest.mark.parametrize("kind", ["binary", "large_binary", "binary_view"])
def test_arrow_buffers_of_any_size(plan: Any, payloads: list[bytes], kind: str) -> None:
    """Other libraries pad them."""
    column = as_arrow(payloads[:5], kind)
    first, second, *more = column.buffers()
    padded = pa.py_buffer(second.to_pybytes() + bytes(3))
    made = pa.Array.from_buffers(column.type, 5, [first, padded, *more])
    assert ids(records(plan, made)) == [0, 1, 2, 3, 4]
    assert ids(records(plan, made[1:4])) == [1, 2, 3]


def test_arrow_columns_of_fixed_size(plan: Any, row_type: yj.MessageType) -> None:
    payloads = [row_type.encode({"first": row}) for row in range(1, 6)]
    (nbytes,) = set(map(len, payloads))
    column = pa.array([*payloads, None], pa.binary(nbytes))
    assert ids_first(records(plan, column[:5])) == [1, 2, 3, 4, 5]
    assert ids_first(records(plan, column[3:])) == [4, 5, 0]
    assert ids_first(records(plan, pa.chunked_array([column[1:2], column[:1]]))) == [2, 1]
    assert len(records_unchecked(plan, pa.array([b"", b""], pa.binary(0)))) == 2


class Row(pa.ExtensionType):
    def __init__(self) -> None:
        super().__init__(pa.large_binary(), "tests.row")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


class Capsule:
    """A column of another library, which hands it out by Arrow's C interface only."""

    def __init__(self, column: Any) -> None:
        self._column = column


class OfArray(Capsule):
    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self._column.__arrow_c_array__(requested_schema)


class OfStream(Capsule):
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._column.__arrow_c_stream__(requested_schema)


def test_arrow_columns_of_others(plan: Any, payloads: list[bytes]) -> None:
    column = pa.array([None, *payloads], pa.large_binary())
    extension = pa.ExtensionArray.from_storage(Row(), column)
    for found in (
        extension,
        pa.chunked_array([extension[:5], extension[5:]]),
        OfArray(column),
        OfArray(extension),
        OfStream(pa.chunked_array([column])),
    ):
        recs = records(plan, found)
        assert ids(recs[1:]) == list(range(ROWS))
        assert recs.payload(0) is None
    for dtype in (object, pd.ArrowDtype(pa.binary())):
        assert ids(records(plan, pd.Series(payloads, dtype=dtype))) == list(range(ROWS))


def test_the_column_of_an_index(plan: Any, row_type: yj.MessageType, tmp_path: Path) -> None:
    path = tmp_path / "rows.arrow"
    yj.build_index(path, row_type, [{"id": row} for row in range(ROWS)])
    with pa.memory_map(str(path)) as file:
        column = pa.ipc.open_file(file).read_all()["message"]
        recs = records(plan, column)
        assert ids(recs) == list(range(ROWS))
        assert recs._owner.address == column.chunk(0).buffers()[2].address


@pytest.mark.parametrize(
    ("column", "found"),
    [
        (pa.array(["text"]), "string"),
        (pa.array([1.5]), "double"),
        (pa.array(["text"]).dictionary_encode(), "dictionary<values=string, indices=int32, ordered=0>"),
        (pa.array([[b"a"]], pa.list_(pa.binary())), "list<item: binary>"),
        (pa.table({"a": [b"a"]}), "struct<a: binary>"),
        (pa.chunked_array([], pa.int8()), "int8"),
    ],
)
def test_arrow_columns_of_other_types(plan: Any, column: Any, found: str) -> None:
    with pytest.raises(TypeError) as caught:
        records(plan, column)
    assert str(caught.value) == (
        "an Arrow column of messages must be binary, large_binary, binary_view or fixed_size_binary, "
        f"not {found}"
    )


def made_of(kind: Any, rows: int, *buffers: Any) -> Any:
    """An array of whose rows Arrow hasn't looked at each."""
    return pa.Array.from_buffers(kind, rows, [None, *(pa.py_buffer(bytes(buffer)) for buffer in buffers)])


def views(*rows: tuple[int, int, int]) -> bytes:
    """Rows of binary_view: bytes, and where they lie: buffer and offset."""
    return b"".join(struct.pack("<i4xii", nbytes, number, offset) for nbytes, number, offset in rows)


BROKEN = {
    "the offsets fall": (
        made_of(pa.binary(), 3, np.array([0, 2, 1, 3], np.int32), b"abcd"),
        "row 1: the message ends at 1, before its start at 2",
    ),
    "one leaves the data": (
        made_of(pa.large_binary(), 2, np.array([0, 9, 4], np.int64), b"abcd"),
        "row 1: the message ends at 4, before its start at 9",
    ),
    "another buffer": (
        made_of(pa.binary_view(), 2, views((20, 0, 0), (20, 1, 0)), bytes(40)),
        "row 1 has 20 bytes in buffer 1 of 1",
    ),
    "a negative buffer": (
        made_of(pa.binary_view(), 1, views((20, -1, 0)), bytes(40)),
        "row 0 has 20 bytes in buffer -1 of 1",
    ),
    "no bytes at all": (
        made_of(pa.binary_view(), 1, views((-5, 0, 0)), bytes(40)),
        "row 0 has -5 bytes in buffer 0 of 1",
    ),
    "beyond the buffer": (
        made_of(pa.binary_view(), 2, views((20, 0, 0), (20, 0, 21)), bytes(40)),
        "row 1 is bytes 21 to 41 of a buffer of 40 bytes",
    ),
    "before the buffer": (
        made_of(pa.binary_view(), 1, views((20, 0, -8)), bytes(40)),
        "row 0 is bytes -8 to 12 of a buffer of 40 bytes",
    ),
}


@pytest.mark.parametrize("fault", list(BROKEN))
def test_arrow_columns_that_are_broken(plan: Any, fault: str) -> None:
    column, sentence = BROKEN[fault]
    for make in (records, records_unchecked):
        with pytest.raises(ValueError) as caught:
            make(plan, column)
        assert str(caught.value) == sentence
    with pytest.raises(ValueError) as caught:
        records_unchecked(plan, pa.chunked_array([pa.array([b"a"] * 7, column.type), column]))
    rows = [int(number) for number in re.findall(r"^row (\d)", sentence)]
    assert [int(number) for number in re.findall(r"^row (\d)", str(caught.value))] == [
        row + 7 for row in rows
    ]


def test_rows_of_dictionaries_that_have_no_value(plan: Any, payloads: list[bytes]) -> None:
    values = pa.array([payloads[3], None], pa.binary())
    column = pa.DictionaryArray.from_arrays(pa.array([1, 0, None], pa.int32()), values)
    assert [records(plan, column).payload(row) for row in range(3)] == [None, payloads[3], None]
    for numbers in ([0, 2], [0, -1]):
        column = pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), values, safe=False)
        with pytest.raises(ValueError) as caught:
            records(plan, column)
        assert str(caught.value) == f"row 1 is value {numbers[1]} of the dictionary, which has 2 values"


def test_arrays_of_fixed_size_bytes(plan: Any, row_type: yj.MessageType, payloads: list[bytes]) -> None:
    same = [row_type.encode({"first": first}) for first in (2**30, 5)]
    void = np.frombuffer(b"".join(same), f"V{len(same[0])}")
    assert ids_first(records(plan, void)) == [2**30, 5]
    assert ids_first(records(plan, void[::-1])) == [5, 2**30]
    assert ids_first(records(plan, np.array(same, object))) == [2**30, 5]
    with pytest.raises(ValueError, match=r"^the data is writable"):
        records(plan, void.copy())
    assert ids_first(records(plan, void.copy(), copy=True)) == [2**30, 5]
    # Only where no zero can have been dropped or added.
    whole = np.array([payload + b"." for payload in same])
    assert [records_unchecked(plan, whole[::-1]).payload(row) for row in (0, 1)] == whole[::-1].tolist()
    for make in (records, records_unchecked):
        with pytest.raises(ValueError) as caught:
            make(plan, np.array([b"ab.", b"a"]))
        assert str(caught.value) == (
            "row 1 of the array of |S3 ends in a zero byte, which may be the message's own or fill it up: "
            'pass a list of bytes, or, if each has 3 bytes, array.view("V3")'
        )
        assert len(make(plan, np.zeros(0, "S3"))) == len(make(plan, np.zeros(0, "V3"))) == 0
    assert len(records_unchecked(plan, np.zeros(2, "V0"))) == 2


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
        (
            {b"abc": 1},
            TypeError,
            "payloads must be an iterable of bytes, one a message, or (data, offsets), not one dict",
        ),
        *(
            (
                file,
                TypeError,
                "payloads must be an iterable of bytes, one a message, or (data, offsets), not one "
                f"{type(file).__name__}: yj.read_delimited and the other readers give the messages of a file",
            )
            for file in ("rows.pb", Path("rows.pb"), io.BytesIO(b"lines\nof a file"))
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
            make(plan, [], representation="wire")
        assert str(caught.value) == "representation 'wire' isn't supported; supported: 'yaff', 'protobuf'"


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
    assert recs[20:60][3]._data_ is recs[23]._data_ is payloads[23]
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
