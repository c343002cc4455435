"""Records of protobuf bytes: of any origin, selected, put together, pickled, checked, transcoded."""

from __future__ import annotations

import mmap
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from vectors import TESTS

import yaffjit as yj
from yaffjit.rows import Records

ROWS = 100
BAD = b"\x08"  # a tag without its varint


@pytest.fixture(scope="module")
def row_type() -> yj.MessageType:
    return yj.load_schema(TESTS / "schemas" / "columns.proto")["columns.Row"]


@pytest.fixture(scope="module")
def payloads(row_type: yj.MessageType) -> list[bytes]:
    make = row_type.message_class
    return [make(id=row, name="n" * (row % 5)).SerializeToString() for row in range(ROWS)]


@pytest.fixture(scope="module")
def arrays(payloads: list[bytes]) -> tuple[bytes, np.ndarray[Any, Any]]:
    return b"".join(payloads), np.cumsum([0, *map(len, payloads)])


def wire(row_type: yj.MessageType, payloads: Any, copy: bool = False) -> Records:
    return yj.records(row_type, payloads, representation="protobuf", copy=copy)


def held(recs: Records) -> list[bytes | None]:
    return [recs.payload(row) for row in range(len(recs))]


def test_origins(row_type: yj.MessageType, payloads: list[bytes], arrays: Any, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(arrays[0])
    with open(tmp_path / "data", "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    parts = pa.chunked_array([pa.array(payloads[:40], pa.binary()), pa.array(payloads[40:], pa.binary())])
    origins = [
        payloads,
        tuple(payloads),
        iter(payloads),
        [memoryview(payload) for payload in payloads],
        arrays,
        (mapped, arrays[1]),
        pa.array(payloads, pa.binary()),
        pa.array(payloads, pa.large_binary()),
        pa.array(payloads, pa.binary_view()),
        pa.array(payloads, pa.binary()).dictionary_encode(),
        parts,
        pa.concat_arrays([pa.array([b"x"], pa.binary()), pa.array(payloads, pa.binary())])[1:],
    ]
    for origin in origins:
        recs = wire(row_type, origin)
        assert recs.representation == "protobuf"
        assert held(recs) == payloads
        assert recs.nbytes == len(arrays[0])
        assert recs.valid.all()
        recs.verify()
    with pytest.raises(ValueError, match=r"^the data is writable, so it could change"):
        wire(row_type, (bytearray(arrays[0]), arrays[1]))
    assert held(wire(row_type, (bytearray(arrays[0]), arrays[1]), copy=True)) == payloads


def test_null_and_empty_rows(row_type: yj.MessageType, payloads: list[bytes]) -> None:
    given = [payloads[3], None, b"", payloads[5], None]
    for origin in (given, pa.array(given, pa.binary()), pa.array(given, pa.binary_view())):
        recs = wire(row_type, origin)
        assert held(recs) == given
        assert recs.valid.tolist() == [True, False, True, True, False]
        assert repr(recs) == (f"<Records of columns.Row: 5 rows, {recs.nbytes} bytes, 2 null rows, protobuf>")
        recs.verify()
        assert held(recs[::-1]) == given[::-1]
        assert held(recs[1:3]) == given[1:3]
        made = row_type.transcode(recs)
        assert made.valid.tolist() == recs.valid.tolist()
        assert [view.id for view in made] == [3, 0, 0, 5, 0]


def test_selections_share_the_bytes(row_type: yj.MessageType, payloads: list[bytes], arrays: Any) -> None:
    rows = np.arange(ROWS)
    for origin in (payloads, arrays):
        recs = wire(row_type, origin)
        mask = rows % 7 == 3
        selections = {
            recs[10:20]: payloads[10:20],
            recs[90:5:-6]: payloads[90:5:-6],
            recs[mask]: [payloads[row] for row in rows[mask]],
            recs.take([5, -1, 5]): [payloads[5], payloads[-1], payloads[5]],
            recs.head(3): payloads[:3],
            recs.tail(2): payloads[-2:],
            recs[3:9] + recs[90:]: payloads[3:9] + payloads[90:],
            yj.concat([recs[::2], recs, recs[:0]]): payloads[::2] + payloads,
        }
        for made, expected in selections.items():
            assert made.representation == "protobuf"
            assert held(made) == expected
            again = pickle.loads(pickle.dumps(made))
            assert again.representation == "protobuf"
            assert held(again) == expected
        assert sorted(held(recs.sample(ROWS, seed=1))) == sorted(payloads)  # type: ignore[type-var]
        assert [held(part) for part in recs.batches(40)] == [payloads[:40], payloads[40:80], payloads[80:]]


def test_what_is_refused(row_type: yj.MessageType, payloads: list[bytes]) -> None:
    recs, yaff = wire(row_type, payloads), row_type.transcode(payloads)
    other = row_type.schema["columns.Kinds"]
    cases: list[tuple[Any, str]] = [
        (
            lambda: recs + yaff,
            "records of columns.Row encoded as 'protobuf' and as 'yaff' can't be one: "
            "transcode some of them first",
        ),
        (
            lambda: row_type.transcode(recs, representation="protobuf"),
            "these records are protobuf already; representation='yaff' makes YaFF of them",
        ),
        (lambda: other.transcode(recs), "records of columns.Kinds are needed, not of columns.Row"),
    ]
    for refused, sentence in cases:
        with pytest.raises((ValueError, TypeError)) as caught:
            refused()
        assert str(caught.value) == sentence


def test_verify_names_the_row(row_type: yj.MessageType, payloads: list[bytes]) -> None:
    given = [*payloads[:70], BAD, *payloads[71:]]
    offsets = np.cumsum([0, *map(len, given)])
    for origin in (given, (b"".join(given), offsets)):
        recs = wire(row_type, origin)  # nothing is read of them yet
        for part, row in ((recs, 70), (recs[20:], 50), (recs.take([3, 70]), 1)):
            with pytest.raises(yj.VerifyError) as caught:
                part.verify()
            assert caught.value.row == row
            assert str(caught.value) == (
                f"row {row}: columns.Row, field kinds: a varint doesn't end within the 0 bytes that are left "
                "at byte 1"
            )
        recs[:70].verify()


def test_transcode_and_back(row_type: yj.MessageType, payloads: list[bytes], arrays: Any) -> None:
    for origin in (payloads, arrays):
        recs = wire(row_type, origin)
        for part, expected in ((recs, payloads), (recs[10:60], payloads[10:60])):
            made = row_type.transcode(part)
            assert made.representation == "yaff"
            assert list(row_type.transcode(made, representation="protobuf")) == expected
