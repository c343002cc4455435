"""Repeated fields and maps of protobuf's own bytes in jitted code, against google.protobuf.

Bytes as no serializer writes them: packed, unpacked and mixed values, padded varints, unknown fields between,
keys several times, numbers that a closed enum lacks, and damaged ones.
"""

from __future__ import annotations

import os
import random
from functools import cache
from typing import Any

import numba
import numpy as np
import pytest
from google.protobuf.message import DecodeError as ProtobufError
from jit_wire_containers import READERS, schema
from wire_messages import Maker

from yaffjit.errors import DecodeError

pytestmark = pytest.mark.slow

MESSAGES = int(os.environ.get("YAFFJIT_WIRE_MESSAGES", "1500"))
SEED = int(os.environ.get("YAFFJIT_SEED", "1"))


@cache
def reader(name: str) -> Any:
    """What the jitted function gives for bytes, looked at by nobody before."""
    message_type, jitted = schema()[name], READERS[name][1]

    @numba.njit
    def read(data: Any) -> Any:
        return jitted(message_type.view_protobuf(data))

    return lambda data: read(np.frombuffer(data, np.uint8))


def plain(value: Any) -> str:
    """A result by its repr, in which NaN equals NaN, and 0.0 isn't -0.0."""
    return repr(value)


@pytest.mark.parametrize("name", READERS)
def test_random_bytes(name: str) -> None:
    message_type = schema()[name]
    function, read = READERS[name][0], reader(name)
    chance = random.Random(SEED)
    maker = Maker(chance)
    told = {"equal": 0, "refused": 0, "lazy": 0, "not text": 0}
    for _ in range(MESSAGES):
        data = maker.message(message_type.message_class.DESCRIPTOR)
        if data and chance.random() < 0.2:
            at = chance.randrange(len(data))
            data = data[:at] + chance.choice((b"", bytes([chance.randrange(256)]) + data[at + 1 :]))
        try:
            message = message_type.message_class.FromString(data)
        except ProtobufError:
            try:
                read(data)
                told["lazy"] += 1
            except (DecodeError, UnicodeDecodeError):
                told["refused"] += 1
            continue
        try:
            found = plain(read(data))
            expected = plain(function(message))
        except UnicodeDecodeError:  # of proto2, where protobuf gives bytes
            told["not text"] += 1
            continue
        assert found == expected, data.hex()
        told["equal"] += 1
    assert told["equal"] > MESSAGES // 2
    assert told["refused"] > MESSAGES // 50


def test_errors() -> None:
    read = {name: reader(name) for name in READERS}
    cut = b"\x08" + b"\x07" + b"\x1a\x03\x01\x02\x80"  # of field 3, int32: a packed run
    cases = {
        cut: "held.Numbers, field int32[0]: a varint doesn't end within the 1 bytes that are left at byte 6",
        b"\x18\x01\x1a\x0d\x01" + b"\xff" * 11 + b"\x01": (
            "held.Numbers, field int32[1]: a varint has over 10 bytes at byte 5"
        ),
        b"\x4a\x03abc": "held.Numbers, field fixed32[0]: 3 bytes of packed values that take 4 each at byte 1",
    }
    for data, text in cases.items():
        with pytest.raises(DecodeError) as caught:
            read["held.Numbers"](data)
        assert str(caught.value) == text
    with pytest.raises(DecodeError, match=r"^held\.Leaf, field n: a varint doesn't end"):
        read["held.Others"](b"\x1a\x02\x08\x80")
    with pytest.raises(DecodeError, match=r"^held\.Maps\.OfInt32Entry, field key: a varint doesn't end"):
        read["held.Maps"](b"\x0a\x02\x08\x80")
    with pytest.raises(UnicodeDecodeError):
        read["held.Others"](b"\xa2\x01\x03\x12\x01\xff")


def test_what_comes_out() -> None:
    message_type = schema()["held.Others"]
    message = message_type.message_class(texts=["a", "b", "c"], leaves=[{"n": 1}, {"s": "x"}])
    message.one.SetInParent()

    @numba.njit
    def parts(m: Any, cut: Any) -> Any:
        texts = m.texts
        if cut:
            texts = texts[1:]
        return m.texts, texts, m.leaves, m.leaves[1:], m.one.more

    view = message_type.view_protobuf(message.SerializeToString())
    for cut in (False, True):
        whole, shared, leaves, last, none = parts(view, cut)
        assert whole == message.texts
        assert type(whole) is type(view.texts)
        assert shared == message.texts[cut:]
        assert type(shared) is list
        assert [leaf.n for leaf in leaves] == [1, 7]
        assert [leaf.s for leaf in last] == ["x"]
        assert list(none) == []


def test_an_index_that_is_not_there() -> None:
    message_type = schema()["held.Others"]

    @numba.njit
    def third(m: Any) -> Any:
        return m.texts[2]

    view = message_type.view_protobuf(message_type.message_class(texts=["a"]).SerializeToString())
    with pytest.raises(IndexError, match=r"^list index out of range: texts\[2\] of 1 element$"):
        third(view)


def test_arrays() -> None:
    message_type = schema()["held.Numbers"]

    @numba.njit
    def arrays(m: Any) -> Any:
        return np.asarray(m.double), np.asarray(m.int32), np.asarray(m.float)

    made = message_type.message_class(double=[1.5, -0.0], int32=[-1, 7], float=[2.5])
    unpacked = made.SerializeToString()
    packed = b"\x0a\x10" + np.array(made.double).tobytes() + b"\x1a\x0b" + b"\xff" * 9 + b"\x01\x07"
    for data in (unpacked, packed):
        view = message_type.view_protobuf(data)
        doubles, integers, _ = arrays(view)
        assert doubles.dtype == np.float64
        assert integers.dtype == np.int32
        assert doubles.tobytes() == np.array(made.double).tobytes()
        assert integers.tolist() == [-1, 7]
        # One packed run of fixed values is the bytes themselves.
        start = np.frombuffer(data, np.uint8).__array_interface__["data"][0]
        within = start <= doubles.__array_interface__["data"][0] < start + len(data)
        assert within == (data is packed)
        assert np.asarray(view.double).tobytes() == doubles.tobytes()


def test_many_pairs_of_few_keys() -> None:
    message_type = schema()["held.Maps"]
    message_class = message_type.message_class
    chance = random.Random(3)
    parts = [message_class(of_int32={chance.randrange(40): float(i)}) for i in range(500)]
    data = b"".join(part.SerializeToString() for part in parts)

    @numba.njit
    def pairs(m: Any) -> Any:
        return len(m.of_int32), {key: value for key, value in m.of_int32.items()}

    view = message_type.view_protobuf(data)
    expected = dict(message_class.FromString(data).of_int32)
    count, found = pairs(view)
    assert count == len(expected)
    assert dict(found) == expected
    assert list(view.of_int32) == list(found)


def test_views_of_arrays_that_change() -> None:
    """Of an array that jitted code holds all that is read counts the array."""
    message_type = schema()["held.Others"]

    @numba.njit
    def read(data: Any) -> Any:
        kept = []
        for i in range(3):
            copy = data.copy()
            copy[2] = 97 + i
            kept.append(message_type.view_protobuf(copy).texts[:])
        return kept[0][0], kept[2][0], message_type.view_protobuf(data.copy()).leaves

    data = message_type.message_class(texts=["a", "b"], leaves=[{"n": 4}]).SerializeToString()
    first, last, leaves = read(np.frombuffer(data, np.uint8))
    assert (first, last) == ("a", "c")
    assert [leaf.n for leaf in leaves] == [4]
