"""Documents of the universal tagged format: published and hand-written bytes, options, what is refused."""

from __future__ import annotations

import io
import pickle
import struct
from collections import OrderedDict, namedtuple
from enum import IntEnum
from typing import Any

import numpy as np
import pytest

import yaffjit as yj
from yaffjit import universal
from yaffjit.universal import codec as public
from yaffjit.universal import compiled, dumps, loads, validate

pytestmark = pytest.mark.slow

Pair = namedtuple("Pair", "x y")


class Color(IntEnum):
    RED = 7


class Name(str):
    pass


@pytest.fixture(scope="module")
def codec() -> compiled.Codec:
    return compiled.Codec()


@pytest.fixture(autouse=True, params=["plain", "compiled"])
def way(request: Any, codec: compiled.Codec, monkeypatch: pytest.MonkeyPatch) -> str:
    """By which code documents are written and read."""
    loaded = compiled.Loaded()
    loaded.codec = codec if request.param == "compiled" else None
    loaded._can_load = False
    monkeypatch.setattr(public, "loaded", loaded)
    return str(request.param)


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


def test_options_that_there_are_not() -> None:
    with pytest.raises(ValueError, match=r"^order is 'native' \('swapped', 'little', 'big'\)$"):
        dumps(1, order="native")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^width is 8 \('java', 'smallest'\)$"):
        dumps(1, width=8)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^strings is 'ascii' \('utf8', 'latin1', 'utf16'\)$"):
        dumps(1, strings="ascii")  # type: ignore[arg-type]
    for max_depth in (0, 1001):
        with pytest.raises(ValueError, match=rf"^max_depth is {max_depth} \(1 to 1000\)$"):
            loads(b"\x05", max_depth=max_depth)
    with pytest.raises(ValueError, match=r"^max_items is -1 \(0 to \d+, or None\)$"):
        loads(b"\x05", max_items=-1)


def test_default_takes_what_has_no_code() -> None:
    assert loads(dumps({None: {1: b"x"}}, default=str)) == {"None": {"1": "b'x'"}}
    assert loads(dumps([2**64, "\ud800", {1}], default=repr)) == [str(2**64), "'\\ud800'", "{1}"]
    assert loads(dumps([b"ab"], default=list)) == [[97, 98]]
    assert loads(dumps([None], null=True, default=str), null=True) == [None]
    with pytest.raises(ZeroDivisionError):
        dumps([1, b""], default=lambda value: 1 / 0)


# ---- what can't be read ----

CUT_OFF, BAD = universal.TruncatedError, universal.DocumentError


@pytest.mark.parametrize(
    ("document", "options", "kind", "text"),
    [
        ("", {}, CUT_OFF, "the data of 0 bytes ends where a code is expected at byte 0"),
        ("13", {}, CUT_OFF, "[0]: the data of 1 bytes ends where a code is expected at byte 1"),
        ("d1 01 61", {}, CUT_OFF, "a: the data of 3 bytes ends where a code is expected at byte 3"),
        ("09 01 02", {}, CUT_OFF, "a payload of 4 bytes (code 9) begins, 2 are left at byte 1"),
        ("c3", {}, CUT_OFF, "[0]: a payload of 8 bytes (code 12) begins, 0 are left at byte 1"),
        ("53 0d", {}, CUT_OFF, "[1]: the data of 2 bytes ends within the length of a text at byte 2"),
        ("0d 05 61", {}, CUT_OFF, "a text of 5 bytes begins, 1 are left at byte 2"),
        (
            "0d ff ff ff ff ff ff ff ff 7f",
            {},
            CUT_OFF,
            "a text of 9223372036854775807 bytes begins, 0 are left at byte 10",
        ),
        ("0d" + "80" * 9 + "01", {}, BAD, "the length of a text has more than 9 bytes at byte 10"),
        ("0d 02 c3 28", {}, BAD, "a text of 2 bytes isn't UTF-8 (code 13) at byte 2"),
        ("0f 01 61", {}, BAD, "a text of 1 bytes isn't UTF-16 (code 15) at byte 2"),
        ("0f 02 00 d8", {}, BAD, "a text of 2 bytes isn't UTF-16 (code 15) at byte 2"),
        ("10", {"compact": False}, BAD, "code 16 (at most 15) at byte 0"),
        ("00", {}, BAD, "code 0 (null is read with null=True) at byte 0"),
        ("03", {}, BAD, "[0]: code 0 (null is read with null=True) at byte 0"),
        ("02", {}, BAD, "code 2 ends what never began at byte 0"),
        ("23", {}, BAD, "[0]: code 2 ends what code 3 begins at byte 0"),
        ("41", {}, BAD, "code 4 where a key (13 to 15) or the end of the object (2) is expected at byte 0"),
        ("d1 01 61 02", {}, BAD, "a: code 2 ends what code 1 begins at byte 3"),
        ("65", {}, BAD, "code 6 follows the end of the document at byte 0"),
        ("05 05", {}, BAD, "1 bytes follow the end of the document at byte 1"),
        ("33 44", {"max_depth": 1}, BAD, "[0]: nesting is deeper than 1 (max_depth) at byte 0"),
        ("33 34 34 44", {"max_items": 3}, BAD, "[2]: there are more than 3 values (max_items) at byte 2"),
        (
            "33 34 44",
            {"compact": False},
            BAD,
            "code 51 (at most 15) at byte 0; with compact=True it can be read",
        ),
        (
            "03 05 04",
            {},
            BAD,
            "[0]: code 0 (null is read with null=True) at byte 0; with compact=False it can be read",
        ),
    ],
)
def test_what_cannot_be_read(document: str, options: dict[str, Any], kind: type, text: str) -> None:
    data = bytes.fromhex(document)
    for buf in (data, bytearray(data), memoryview(data), np.frombuffer(data, np.uint8)):
        with pytest.raises(yj.DecodeError) as caught:
            loads(buf, **options)
        assert type(caught.value) is kind
        assert str(caught.value) == text
        with pytest.raises(yj.DecodeError):
            validate(buf, **options)


def test_the_last_of_duplicate_keys_counts_and_validate_refuses_them() -> None:
    data = bytes.fromhex("d1 01 61 d5 01 61 26")
    assert loads(data) == {"a": False}
    with pytest.raises(universal.DocumentError) as caught:
        validate(data)
    assert str(caught.value) == "a: the object that ends has this key twice at byte 6"
    assert caught.value.path == "a"


def test_padded_lengths_are_read_and_validate_refuses_them() -> None:
    for padded, nbytes in (("0d 82 00 61 62", 2), ("0d 82 80 80 00 61 62", 4)):
        data = bytes.fromhex(padded)
        assert loads(data) == "ab"
        with pytest.raises(universal.DocumentError) as caught:
            validate(data)
        wrong = f"the length of a text takes {nbytes} bytes where 1 would do at byte {nbytes}"
        assert str(caught.value) == wrong


def test_errors_can_be_pickled() -> None:
    with pytest.raises(universal.TruncatedError) as caught:
        loads(b"\x13")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.path, again.position) == (str(caught.value), "[0]", 1)


def test_buffers_that_are_not_contiguous() -> None:
    with pytest.raises(ValueError, match="isn't contiguous"):
        loads(memoryview(b"\x05\x05\x05")[::2])
    with pytest.raises(TypeError):
        loads("text")
    assert loads(memoryview(np.array([0x05], np.int8))) is True


# ---- files and streams ----


class Dripping(io.RawIOBase):
    """Gives a few bytes at a time."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, size: int = -1) -> bytes:
        given, self._data = self._data[:7], self._data[7:]
        return given


OBJECTS = [[{"Value": 1234}], True, {"a": "x" * 300}, [], {"b": [1.5, {}]}, "end"]


@pytest.mark.parametrize("compact", [True, False])
def test_streams_of_documents(compact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.BytesIO()
    for obj in OBJECTS:
        universal.dump(obj, file, compact=compact)
    data = file.getvalue()
    assert data == b"".join(dumps(obj, compact=compact) for obj in OBJECTS)
    assert list(universal.load_each(io.BytesIO(data), compact=compact)) == OBJECTS
    assert list(universal.load_each(Dripping(data), compact=compact)) == OBJECTS  # type: ignore[arg-type]
    monkeypatch.setattr(public, "_CHUNK_NBYTES", 5)
    assert list(universal.load_each(io.BytesIO(data), compact=compact)) == OBJECTS
    assert list(universal.load_each(io.BytesIO(b""))) == []
    cut = universal.load_each(io.BytesIO(data[:-1]), compact=compact)
    assert [next(cut) for _ in OBJECTS[1:]] == OBJECTS[:-1]
    with pytest.raises(universal.TruncatedError) as caught:
        next(cut)
    assert str(caught.value) == f"a text of 3 bytes begins, 2 are left at byte {len(data) - 3}"
    bad = universal.load_each(io.BytesIO(dumps(True) + b"\x02"))
    assert next(bad) is True
    with pytest.raises(universal.DocumentError, match=r"^code 2 ends what never began at byte 1$"):
        next(bad)


def test_files() -> None:
    file = io.BytesIO()
    universal.dump({"a": None}, file, null=True)
    file.seek(0)
    assert universal.load(file, null=True) == {"a": None}
    with pytest.raises(universal.DocumentError, match=r"^13 bytes follow the end of the document at byte 1$"):
        universal.load(io.BytesIO(dumps(True) + dumps(OBJECTS[0])))


# ---- when the compiled code is loaded ----


def test_small_work_waits_for_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    monkeypatch.setattr(compiled, "Codec", lambda: made.append(1) or object())
    for work in (
        lambda one: [one.for_bytes(1) for _ in range(compiled.PLAIN_DOCUMENTS)],
        lambda one: one.for_bytes(compiled.PLAIN_BYTES),
        lambda one: [one.for_object([1]) for _ in range(compiled.PLAIN_DOCUMENTS)],
    ):
        loaded = compiled.Loaded()
        work(loaded)
        assert loaded.codec is None and not made
        assert loaded.for_bytes(1) is not None and made.pop()
    assert compiled.Loaded().for_object([0] * compiled.PLAIN_BYTES) is not None and made.pop()


def test_interpreters_that_cannot_run_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yaffjit.kernels.objects.missing_symbols", lambda: ["PyDict_Next"])
    loaded = compiled.Loaded()
    monkeypatch.setattr(public, "loaded", loaded)
    obj = {"a": list(range(compiled.PLAIN_BYTES))}
    assert loads(dumps(obj)) == obj
    assert loaded.for_bytes(compiled.PLAIN_BYTES * 2) is None
    with pytest.raises(yj.YaffjitError, match=r"^this interpreter lacks PyDict_Next$"):
        compiled.Codec()
