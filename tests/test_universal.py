"""Documents of the universal tagged format: published and hand-written bytes, options, what is refused."""

from __future__ import annotations

import struct
from collections import OrderedDict, namedtuple
from enum import IntEnum
from typing import Any

import numpy as np
import pytest

import yaffjit as yj
from yaffjit.universal import dumps, loads, validate

Pair = namedtuple("Pair", "x y")


class Color(IntEnum):
    RED = 7


class Name(str):
    pass


# Each document by hand: object, options, bytes in plain mode, bytes in compact mode.
DOCUMENTS: list[tuple[Any, dict[str, Any], str, str]] = [
    # the example of the paper
    (
        [{"Value": 1234}],
        {},
        "03 01 0d 05 56 61 6c 75 65 09 04 d2 00 00 02 04",
        "13 9d 05 56 61 6c 75 65 04 d2 00 00 42",
    ),
    ([], {}, "03 04", "43"),
    ({}, {}, "01 02", "21"),
    (True, {}, "05", "05"),
    (False, {}, "06", "06"),
    ([True, False], {}, "03 05 06 04", "53 46"),
    ("", {}, "0d 00", "0d 00"),
    ("hé", {}, "0d 03 68 c3 a9", "0d 03 68 c3 a9"),
    ("x" * 128, {}, "0d 80 01" + "78" * 128, "0d 80 01" + "78" * 128),
    (0x01020304, {}, "09 03 04 01 02", "09 03 04 01 02"),
    (-1, {}, "09 ff ff ff ff", "09 ff ff ff ff"),
    (2**31, {}, "0a 00 00 80 00 00 00 00 00", "0a 00 00 80 00 00 00 00 00"),
    (0x0102030405060708, {}, "0a 07 08 05 06 03 04 01 02", "0a 07 08 05 06 03 04 01 02"),
    (0x0102030405060708, {"order": "little"}, "0a 08 07 06 05 04 03 02 01", "0a 08 07 06 05 04 03 02 01"),
    (0x0102030405060708, {"order": "big"}, "0a 01 02 03 04 05 06 07 08", "0a 01 02 03 04 05 06 07 08"),
    (1234, {"width": "smallest"}, "08 04 d2", "08 04 d2"),
    (1234, {"width": "smallest", "order": "little"}, "08 d2 04", "08 d2 04"),
    (-128, {"width": "smallest"}, "07 80", "07 80"),
    (128, {"width": "smallest"}, "08 00 80", "08 00 80"),
    (-32769, {"width": "smallest"}, "09 7f ff ff ff", "09 7f ff ff ff"),
    (1.5, {}, "0c 00 00 00 00 00 00 3f f8", "0c 00 00 00 00 00 00 3f f8"),
    (1.5, {"order": "big"}, "0c 3f f8 00 00 00 00 00 00", "0c 3f f8 00 00 00 00 00 00"),
    (None, {"null": True}, "00", "00"),
    ([None], {"null": True}, "03 00 04", "03 04"),
    ({"a": None, "b": 1.0}, {"null": True}, "", "d1 01 61 d0 01 62 2c 00 00 00 00 00 00 3f f0"),
    ("hé", {"strings": "latin1"}, "0e 02 68 e9", "0e 02 68 e9"),
    ("й", {"strings": "latin1"}, "0f 02 39 04", "0f 02 39 04"),
    ("h", {"strings": "utf16"}, "0f 02 68 00", "0f 02 68 00"),
    ("😀", {"strings": "utf16"}, "0f 04 3d d8 00 de", "0f 04 3d d8 00 de"),
    (np.int8(-2), {}, "07 fe", "07 fe"),
    (np.float32(1.5), {}, "0b 00 00 3f c0", "0b 00 00 3f c0"),
]


@pytest.mark.parametrize("number", range(len(DOCUMENTS)))
def test_bytes_of_a_document(number: int) -> None:
    obj, options, plain, compact = DOCUMENTS[number]
    reading = {name: options[name] for name in ("order", "null") if name in options}
    for mode, text in ((False, plain), (True, compact)):
        if text:
            expected = bytes.fromhex(text)
            assert dumps(obj, compact=mode, **options) == expected
            assert loads(expected, compact=mode, **reading) == obj
            validate(expected, compact=mode, **reading)


@pytest.mark.parametrize(
    ("obj", "same"),
    [
        ((1, (2,)), [1, [2]]),
        (Pair(1, "a"), [1, "a"]),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        ([Color.RED, Name("n"), np.str_("s"), np.float64(1.5)], [7, "n", "s", 1.5]),
        ([np.bool_(True), np.array(True), np.array(["a", "b"])], [True, True, ["a", "b"]]),
        (np.array([1, "a", None], object), [1, "a", "None"]),
        (np.array([[True, False]]), [[True, False]]),
        (np.ma.masked_array([1, 2], [False, True]), [1, "None"]),
    ],
)
def test_objects_that_are_written_as_plain_ones(obj: Any, same: Any) -> None:
    for compact in (True, False):
        assert dumps(obj, compact=compact, default=str) == dumps(same, compact=compact)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("dtype", "code", "form"),
    [
        ("i1", 7, "b"),
        ("u1", 8, "h"),
        ("i2", 8, "h"),
        ("u2", 9, "i"),
        ("i4", 9, "i"),
        ("u4", 10, "q"),
        ("i8", 10, "q"),
        ("u8", 10, "q"),
        ("f2", 11, "f"),
        ("f4", 11, "f"),
        ("f8", 12, "d"),
    ],
)
def test_numpy_numbers_keep_their_width(order: str, dtype: str, code: int, form: str) -> None:
    array = np.array([1, 0, 7, 100, -3 if dtype[0] != "u" else 3], order + dtype)
    expected = (
        b"\x03" + b"".join(bytes([code]) + struct.pack("<" + form, x) for x in array.tolist()) + b"\x04"
    )
    assert dumps(array, compact=False, order="little") == expected
    assert dumps(array[::-1][::-1], compact=False, order="little", width="smallest") == expected
    assert dumps([*array], compact=False, order="little") == expected
    assert loads(dumps({"a": np.array([array, array])})) == {"a": [array.tolist()] * 2}
    assert loads(dumps(array)) == array.tolist()
    assert loads(dumps(array[:0])) == []


# ---- what has no code ----

HOLDS_ITSELF: list[Any] = []
HOLDS_ITSELF.append({"again": HOLDS_ITSELF})


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        (None, "None has no code in the format (null=True writes it as an extension)"),
        (
            {"a": [1, {"b": None}]},
            "a[1].b: None has no code in the format (null=True writes it as an extension)",
        ),
        ([b"x"], "[0]: a value of type bytes has no code in the format"),
        ({"a b": [{1}]}, "['a b'][0]: a value of type set has no code in the format"),
        ([0, 2**63], "[1]: the integer needs 65 bits, but there are 64"),
        ([[], -(2**63) - 1], "[1]: the integer needs 65 bits, but there are 64"),
        ([10**5000], "[0]: the integer needs 16611 bits, but there are 64"),
        ({"a": {1: 2}}, "a: a key is of type int, but keys are text"),
        ({"a": {b"": 2}}, "a: a key is of type bytes, but keys are text"),
        ({"a": {"b": "x\ud800"}}, "a.b: the text has a lone surrogate, at character 1 of 2"),
        ({"a": {"\udfff": 1}}, "a: the text has a lone surrogate, at character 0 of 1"),
        (np.uint64(2**63), "the integer needs 65 bits, but there are 64"),
        ([np.array([1, 2**63], np.uint64)], "[0][1]: the integer needs 65 bits, but there are 64"),
        (np.array([1j]), "a value of type ndarray has no code in the format"),
        (np.datetime64("2020-01-01"), "a value of type datetime64 has no code in the format"),
        (
            HOLDS_ITSELF,
            "[0].again[0].again[0].again[0].again ... [0].again[0].again[0].again[0].again: "
            "nesting is deeper than 512 (max_depth), or a container holds itself",
        ),
    ],
)
def test_what_has_no_code(obj: Any, text: str) -> None:
    for options in ({}, {"compact": False, "strings": "latin1"}, {"strings": "utf16", "width": "smallest"}):
        with pytest.raises(yj.EncodeError) as caught:
            dumps(obj, **options)
        assert str(caught.value) == text
