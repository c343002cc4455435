"""Builders in jitted code: what they write and refuse, and that they give back their memory."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba import njit
from numba.core.runtime import _nrt_python, rtsys

import yaffjit as yj
from yaffjit.errors import CompileError

PROTO = """
edition = "2023";
package jb;
option features.field_presence = IMPLICIT;
enum Level { LOW = 0; HIGH = 5; }
enum Closed { option features.enum_type = CLOSED; NONE = 0; ONE = 1; MINUS = -1; }
message Part {
  int32 x = 1 [features.field_presence = EXPLICIT];
  string text = 2;
  repeated Part parts = 3;
  Part next = 4;
}
message Root {
  int32 int32 = 1; int64 int64 = 2; uint32 uint32 = 3; uint64 uint64 = 4;
  sint32 sint32 = 5; sint64 sint64 = 6;
  fixed32 fixed32 = 7; fixed64 fixed64 = 8; sfixed32 sfixed32 = 9; sfixed64 sfixed64 = 10;
  float float = 11; double double = 12; bool bool = 13; string string = 14; bytes bytes = 15;
  Level level = 16;
  Closed closed = 17 [features.field_presence = EXPLICIT];
  Part part = 18;
  Part group = 19 [features.message_encoding = DELIMITED];
  repeated Part parts = 20;
  repeated Part groups = 21 [features.message_encoding = DELIMITED];
  repeated sint64 packed = 22;
  repeated sint64 plain = 23 [features.repeated_field_encoding = EXPANDED];
  repeated float floats = 24;
  repeated string texts = 25;
  map<string, double> attrs = 26;
  map<sint32, string> names = 27;
  map<uint64, Part> by_id = 28;
  map<bool, bytes> flags = 29;
  oneof choice { string a = 30; Part b = 31; Part c = 32; int32 d = 33; }
  int64 far = 300;
}
"""
_folder = Path(__file__).parent


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("jit_builder") / "jb.proto"
    path.write_text(PROTO)
    return yj.load_schema(path)["jb.Root"]


def same(root: Any, function: Any, *args: Any) -> bytes:
    """The bytes that a function gives, jitted and in Python, which are those of protobuf's own message."""
    jitted = bytes(njit(function)(root, *args))
    plain = bytes(function(root, *args))
    assert jitted.hex() == plain.hex()
    return jitted


def test_all_kinds_in_any_order(root: Any) -> None:
    def build(T, n, x, text, raw, numbers):  # type: ignore[no-untyped-def]
        b = T.builder()
        b.far = n
        b.d = 1
        b.flags[True] = raw
        b.flags[False] = b""
        b.by_id[9].x = 3
        b.by_id[2].text = text
        b.by_id[9].text = "again"
        b.names[-1] = text
        b.names[3] = "three"
        b.names[-7] = "é"
        b.attrs["z"] = x
        b.attrs[text] = 1
        b.attrs["z"] = 2.0
        b.texts.append(text)
        b.texts.extend(("a", "b"))
        b.floats.extend(numbers)
        b.plain.append(-n)
        b.plain.append(n)
        for i in range(20):
            b.packed.append(-i * 1000)
        g = b.groups.add()
        g.x = 0
        b.groups.add().next.next.x = n
        first = b.parts.add()
        second = b.parts.add()
        second.x = 2
        first.text = "first"
        b.group.text = text
        b.part.next.text = text
        b.part.x = -1
        b.closed = 0
        b.level = "HIGH"
        b.bytes = raw
        b.string = text
        b.bool = True
        b.double = n
        b.float = x
        b.sfixed64 = -n
        b.sfixed32 = -n
        b.fixed64 = n
        b.fixed32 = n
        b.sint64 = -n
        b.sint32 = -n
        b.uint64 = n
        b.uint32 = n
        b.int64 = -n
        b.int32 = -n
        b.c.x = 5
        b.b.x = 6
        return b.finish()

    numbers = np.array([1.5, -2.0, 1e30])
    written = same(root, build, 300, 0.1, "Zürich 𝄞", b"\x00\xff", numbers)
    message = root.message_class.FromString(written)
    assert message.SerializeToString(deterministic=True) == written
    assert (message.WhichOneof("choice"), message.b.x, message.by_id[9].x) == ("b", 6, 3)


def test_zeros_and_what_was_unset(root: Any) -> None:
    def build(T):  # type: ignore[no-untyped-def]
        b = T.builder(None)
        b.int32 = 0
        b.double = -0.0
        b.string = ""
        b.closed = 0
        b.part.SetInParent()
        b.group.x = 1
        b.ClearField("group")
        b.packed.append(1)
        b.ClearField("packed")
        b.attrs["k"] = 1.0
        b.ClearField("attrs")
        b.b.x = 1
        old = b.b
        b.a = "text"
        b.b.text = "new"
        old.x = 3
        b.parts.add()
        return b.finish()

    def read(T):  # type: ignore[no-untyped-def]
        b = T.builder(None)
        before = b.sint32, b.string, b.double, b.HasField("closed"), len(b.texts), b.HasField("part")
        b.sint32, b.string, b.double, b.closed, b.sfixed32, b.float = -3, "é", 0.5, -1, -2, 0.1
        b.texts.append("a")
        b.attrs["k"] = 1.0
        b.part.x = 1
        after = b.sint32, b.string, b.double, b.HasField("closed"), len(b.texts), b.HasField("part")
        return before, after, (b.closed, b.sfixed32, b.float, b.uint64, "k" in b.attrs, "l" in b.attrs)

    same(root, build)
    assert njit(read)(root) == read(root)


def test_many_pairs(root: Any) -> None:
    def build(T, keys, texts):  # type: ignore[no-untyped-def]
        b = T.builder()
        for i in range(len(keys)):
            b.names[keys[i]] = texts[i % len(texts)]
            b.by_id[i * 7919 % 1000].x = i
            b.attrs[texts[i * 31 % len(texts)]] = i
        return b.finish()

    chance = np.random.default_rng(1)
    keys = chance.integers(-(2**31), 2**31, 2000)
    texts = tuple("".join(map(chr, chance.integers(32, 0x3000, 6))) for _ in range(97))
    written = same(root, build, keys, texts)
    assert len(root.message_class.FromString(written).names) == len(set(keys.tolist()))


def test_a_long_message(root: Any) -> None:
    def build(T, rows, text):  # type: ignore[no-untyped-def]
        b = T.builder()
        for i in range(rows):
            part = b.parts.add()
            part.x = i
            part.text = text
            b.packed.append(i)
        b.string = text
        return b.finish()

    assert len(same(root, build, 20_000, "a text of some length, é")) > 600_000


def test_reused_in_a_loop_and_read_back(root: Any) -> None:
    @njit
    def total(T, buffer, rows):  # type: ignore[no-untyped-def]
        b = T.builder(buffer)
        growing = T.builder()
        found = 0
        for i in range(rows):
            for each in (b, growing):
                each.clear()
                each.sint64 = -i
                each.part.next.x = i * 2
                each.texts.append("some text")
                if i % 3 == 0:
                    each.texts.append("é")
            for data in (b.finish(), growing.finish()):
                view = T.view_protobuf(data)
                found += view.sint64 + view.part.next.x + len(view.texts)
        return found

    expected = 2 * sum(-i + 2 * i + 1 + (i % 3 == 0) for i in range(500))
    assert total(root, np.zeros(100, np.uint8), 500) == expected


def test_a_buffer_at_each_length(root: Any) -> None:
    @njit
    def build(T, buffer):  # type: ignore[no-untyped-def]
        b = T.builder(buffer=buffer)
        b.string = "text"
        b.part.x = 300
        return b.finish()

    whole = bytes(build(root, np.zeros(100, np.uint8)))
    for nbytes in range(len(whole) + 3):
        around = np.full(nbytes + 16, 7, np.uint8)
        buffer = around[8 : 8 + nbytes]
        if nbytes < len(whole):
            with pytest.raises(yj.BufferTooSmallError) as caught:
                build(root, buffer)
            text = f"jb.Root: {len(whole)} bytes are needed, but the buffer has {nbytes}"
            assert str(caught.value) == text
            assert (around == 7).all()
            continue
        written = build(root, buffer)
        assert bytes(written) == whole and np.shares_memory(written, buffer)
        assert (around[:8] == 7).all() and (around[8 + len(whole) :] == 7).all()


def test_too_deep(root: Any) -> None:
    @njit
    def build(T, depth):  # type: ignore[no-untyped-def]
        b = T.builder()
        part = b.part
        for _ in range(depth - 1):
            part = part.next
        part.x = 1
        return b.finish()

    message = root.message_class.FromString(bytes(build(root, 100)))
    assert message.HasField("part")
    with pytest.raises(yj.EncodeError) as caught:
        build(root, 101)
    assert str(caught.value) == "jb.Root: messages nested deeper than 100"


@njit
def _set_int32(T, value):  # type: ignore[no-untyped-def]
    b = T.builder()
    b.int32 = value
    return b.finish()


@njit
def _set_uint64(T, value):  # type: ignore[no-untyped-def]
    b = T.builder()
    b.uint64 = value
    return b.finish()


@njit
def _set_closed(T, value):  # type: ignore[no-untyped-def]
    b = T.builder()
    b.closed = value
    return b.finish()


@njit
def _set_string(T, value):  # type: ignore[no-untyped-def]
    b = T.builder()
    b.string = value
    return b.finish()


@pytest.mark.parametrize(
    "function, value, text",
    [
        (_set_int32, 2**31, "Value out of range: 2147483648"),
        (_set_int32, -(2**31) - 1, "Value out of range: -2147483649"),
        (_set_int32, np.uint64(2**63), "Value out of range: 9223372036854775808"),
        (_set_uint64, -1, "Value out of range: -1"),
        (_set_closed, 7, "invalid enumerator 7"),
        (_set_string, b"a\xff", "'utf-8' codec can't decode byte 0xff in position 1: invalid start byte"),
        (
            _set_string,
            "ab\ud800",
            "'utf-8' codec can't encode character '\\ud800' in position 2: surrogates not allowed",
        ),
    ],
)
def test_values_out_of_range(root: Any, function: Any, value: Any, text: str) -> None:
    with pytest.raises(ValueError) as caught:
        function(root, value)
    assert str(caught.value) == text
    assert bytes(_set_uint64(root, np.uint64(2**64 - 1))) == b"\x20" + b"\xff" * 9 + b"\x01"


REFUSED = {
    "b.ids = 1": "a builder of jb.Root has no field 'ids'",
    "b.int32 = 1.0": "Field jb.Root.int32 takes an integer, not float64",
    "b.int32 = True": "Field jb.Root.int32: Expected an int, got a boolean.",
    "b.string = 1": "Field jb.Root.string takes text, not int64",
    "b.bytes = 'a'": "Field jb.Root.bytes takes bytes, not str",
    "b.double = 'a'": "Field jb.Root.double takes a number, not str",
    "b.bool = 1.5": "Field jb.Root.bool takes a bool, not float64",
    "b.level = 'HIGHER'": "unknown enum label \"HIGHER\" (did you mean 'HIGH'?)",
    "b.part = b.part": "Assignment not allowed to message field jb.Root.part: set the fields in it",
    "b.packed = 1": "Assignment not allowed to repeated field jb.Root.packed: append to it",
    "b.packed.append('a')": "Field jb.Root.packed takes an integer, not str",
    "b.packed.add()": "repeated field jb.Root.packed of a builder has no 'add'",
    "b.HasField('int32')": "Field jb.Root.int32 does not have presence.",
    "T.builder(1)": "builder() takes a writable contiguous array of uint8, not int64",
}


@pytest.mark.parametrize("code", REFUSED)
def test_refused_when_compiled(root: Any, code: str) -> None:
    names: dict[str, Any] = {}
    exec(f"def f(T):\n    b = T.builder()\n    {code}\n", names)
    with pytest.raises(CompileError) as caught:
        njit(names["f"])(root)
    assert caught.value.text.startswith(REFUSED[code])


# ---- memory ----


@pytest.fixture
def counted() -> Iterator[None]:
    """All that numba allocates is given back."""
    before_enabled = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    gc.collect()
    before = rtsys.get_allocation_stats()
    yield
    gc.collect()
    after = rtsys.get_allocation_stats()
    if not before_enabled:
        _nrt_python.memsys_disable_stats()
    assert after.alloc > before.alloc
    assert after.alloc - before.alloc == after.free - before.free
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free


def test_memory_is_given_back(root: Any, counted: None) -> None:
    @njit
    def fill(b, rows):  # type: ignore[no-untyped-def]
        for i in range(rows):
            b.parts.add().text = "é"
            b.names[i] = "x"
        return b.part

    @njit
    def build(T, buffer, rows):  # type: ignore[no-untyped-def]
        total = 0
        for i in range(5):
            b = T.builder(buffer)
            fill(b, rows).x = i
            total += len(b.finish())
            c = T.builder() if i else b
            c.int32 = 1
            total += len(c.finish())
        return total

    assert build(root, np.zeros(1 << 20, np.uint8), 2000) > 0


@njit
def _leaking(T, buffer):  # type: ignore[no-untyped-def]
    return T.builder(buffer)


def test_builders_stay_inside(root: Any) -> None:
    with pytest.raises(TypeError) as caught:
        _leaking(root, np.zeros(5, np.uint8))
    assert str(caught.value) == "builders don't come out of jitted code: return what finish() gives"


def test_a_result_outlives_the_builder(root: Any) -> None:
    @njit
    def build(T, rows):  # type: ignore[no-untyped-def]
        found = []
        b = T.builder()
        for i in range(rows):
            b.clear()
            b.int32 = i + 1
            found.append(b.finish())
        return found

    assert [bytes(data) for data in build(root, 100)] == [bytes([8, i + 1]) for i in range(100)]


def test_parts_of_a_cleared_builder_are_refused(root: Any) -> None:
    @njit
    def build(T, how):  # type: ignore[no-untyped-def]
        b = T.builder()
        part, texts, names = b.part, b.texts, b.names
        part.x = 1
        b.clear()
        if how == 0:
            part.x = 2
        elif how == 1:
            texts.append("a")
        elif how == 2:
            names[1] = "a"
        elif how == 3:
            part.next.x = 3
        b.int32 = 1
        return b.finish()

    text = "this part of a builder was got before the builder was cleared: get it from the builder again"
    for how in range(4):
        with pytest.raises(yj.EncodeError) as caught:
            build(root, how)
        assert str(caught.value) == text
    assert bytes(build(root, 4)) == b"\x08\x01"


def test_a_text_that_was_read_outlives_what_it_was_read_from(root: Any, counted: None) -> None:
    @njit
    def build(T):  # type: ignore[no-untyped-def]
        b = T.builder()
        b.string = "first"
        first = b.string
        b.clear()
        unset = b.string
        b.string = "other"
        return str(first), str(unset), str(b.string)

    assert build(root) == build.py_func(root) == ("first", "", "other")


def test_containers_are_refused(root: Any) -> None:
    def keep(T):  # type: ignore[no-untyped-def]
        kept = numba.typed.List()
        kept.append(T.builder())
        return len(kept)

    with pytest.raises(yj.EscapeError, match=r"^a builder of jb\.Root can't be stored in a typed List"):
        njit(keep)(root)
