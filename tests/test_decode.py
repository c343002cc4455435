"""What decode gives back, and for which bytes it raises what; and where `locate` finds fields."""

from __future__ import annotations

import math
import mmap
import random
import struct
from functools import cache
from typing import Any

import numpy as np
import pytest
from vectors import TESTS, load_vectors, vector_name

import yaffjit
from yaffjit.codec.decode import decode_at
from yaffjit.codec.locate import locate, presence, target

SCHEMAS = TESTS / "schemas"


@cache
def schema(name: str, slice: str | None = None) -> Any:
    return yaffjit.load_schema(SCHEMAS / name, slice=slice)


@pytest.fixture
def codec() -> Any:
    return schema("codec.proto")


@pytest.fixture
def codec2() -> Any:
    return schema("codec2.proto")


def root_at(data: bytes) -> int:
    return int.from_bytes(data[:4], "little")


INT32 = [0, 1, -1, 127, 128, -128, 2**31 - 1, -(2**31)]
INT64 = [*INT32, 2**63 - 1, -(2**63), 2**35]
UINT32 = [0, 1, 127, 128, 2**14, 2**31, 2**32 - 1]
UINT64 = [*UINT32, 2**63, 2**64 - 1]
FLOATS = [0.0, -0.0, 1.5, -math.inf, 2.0**-149]
VALUES: dict[str, list[Any]] = {
    "d": [*FLOATS, 5e-324, 1e308],
    "f": FLOATS,
    "i64": INT64,
    "u64": UINT64,
    "i32": INT32,
    "f64": UINT64,
    "f32": UINT32,
    "b": [True, False],
    "s": ["", "é\0", "x" * 200],
    "raw": [b"", b"\xff\0", b"x" * 20000],
    "u32": UINT32,
    "color": [0, 1, -3, 77, -(2**31)],
    "sf32": INT32,
    "sf64": INT64,
    "s32": INT32,
    "s64": INT64,
}


@pytest.mark.parametrize("layout", ["flat", "sparse"])
@pytest.mark.parametrize("name", VALUES)
def test_each_kind(codec: Any, name: str, layout: str) -> None:
    one, many = codec["codec.All"], codec["codec.Lists"]
    for value in VALUES[name]:
        message = one.message_class(**{name: value})
        assert one.decode(one.encode(message, layout)).SerializeToString() == message.SerializeToString()
    message = many.message_class(**{name: VALUES[name]})
    assert many.decode(many.encode(message, layout)).SerializeToString() == message.SerializeToString()


def test_the_class_is_the_schemas_own(codec: Any) -> None:
    message_type = codec["codec.Leaf"]
    assert type(message_type.decode(message_type.encode({"n": 1}))) is message_type.message_class


def test_buffers_of_all_sorts(codec: Any) -> None:
    message_type = codec["codec.All"]
    data = message_type.encode({"s": "text", "u64": 2**64 - 1, "leaf_one": {"n": 5}})
    message = message_type.decode(data)
    mapped = mmap.mmap(-1, len(data))
    mapped.write(data)
    strided = np.frombuffer(data, np.uint8).repeat(2)[::2]
    for buf in (bytearray(data), memoryview(data), np.frombuffer(data, np.uint8), mapped, strided):
        assert message_type.decode(buf) == message
    assert decode_at(message_type.plan, memoryview(data), root_at(data)) == message
    with pytest.raises(TypeError, match=r"^memoryview: a bytes-like object is required, not 'str'$"):
        message_type.decode("text")


def test_a_message_within_a_buffer(codec: Any) -> None:
    tree = codec["codec.Tree"]
    data = tree.encode({"kid": {"n": 3, "counts": {"a": 1}}})
    kid = target(tree.plan, tree.plan.by_name["kid"])(data, root_at(data))
    assert decode_at(tree.plan, data, kid) == tree.message_class(n=3, counts={"a": 1})


@pytest.mark.parametrize("layout", ["flat", "sparse"])
def test_maps_and_lists_in_memoryviews(codec: Any, layout: str) -> None:
    for name, given in [
        ("codec.Maps", {"counts": {"a": 1}, "colors": {True: 1}, "leaves": {3: {}}, "names": {-1: "x"}}),
        ("codec.Lists", {"b": [True, False], "s": ["a"], "i32": [-1], "leaves": [{}, {"n": 2}]}),
    ]:
        message_type = codec[name]
        data = message_type.encode(given, layout)
        expected = message_type.decode(data)
        assert decode_at(message_type.plan, memoryview(data), root_at(data)) == expected


def test_numbers_that_a_closed_enum_has_not_are_unknown_fields(codec2: Any) -> None:
    open_type, closed = codec2["codec2.Open"], codec2["codec2.Closed"]
    given = open_type.message_class(gear=9, gears=[3, 9, 7], by_id={1: 3, 2: 8}, either=9)
    for layout in ("flat", "sparse"):
        message = closed.decode(open_type.encode(given, layout))
        assert message == closed.message_class.FromString(given.SerializeToString())
        assert not message.HasField("gear")
        assert list(message.gears) == [3, 7]
        assert dict(message.by_id) == {1: 3}
        assert message.WhichOneof("kind") is None


def test_of_two_members_of_a_oneof_the_later_one_stays(codec2: Any) -> None:
    open_type, closed = codec2["codec2.Open"], codec2["codec2.Closed"]
    message = closed.decode(open_type.encode({"either": 3, "or": 0}))
    assert message.WhichOneof("kind") == "or"
    # A number that isn't known sets nothing and clears nothing.
    assert closed.decode(open_type.encode({"either": 4, "or": 1})).WhichOneof("kind") == "or"
    assert closed.decode(open_type.encode({"either": 3})).WhichOneof("kind") == "either"


def test_absent_fields_stay_unset(codec2: Any) -> None:
    closed = codec2["codec2.Closed"]
    for layout in ("flat", "sparse"):
        message = closed.decode(closed.encode({"gears": [3]}, layout))
        assert [descriptor.name for descriptor, _ in message.ListFields()] == ["gears"]
        assert message.gear == 3 and message.text == "anise"
        assert message.inf == math.inf and math.isnan(message.nan)


def test_of_equal_keys_the_first_counts(codec: Any) -> None:
    maps = codec["codec.Maps"]
    data = maps.encode({"counts": {"a": 1, "b": 2, "c": 3}})
    assert dict(maps.decode(data.replace(b"b\0", b"a\0")).counts) == {"a": 1, "c": 3}
    data = maps.encode({"names": {5: "five", 6: "six"}})
    twice = data.replace((6).to_bytes(8, "little"), (5).to_bytes(8, "little"))
    assert dict(maps.decode(twice).names) == {5: "five"}
    data = maps.encode({"colors": {False: 1, True: 2}})
    twice = data.replace(bytes.fromhex("00 01000000 01 02000000"), bytes.fromhex("02 01000000 01 02000000"))
    assert dict(maps.decode(twice).colors) == {True: 1}


def test_any_bool_byte_but_0_is_true(codec: Any) -> None:
    all_kinds, lists = codec["codec.All"], codec["codec.Lists"]
    data = lists.encode({"b": [True, False, True]})
    assert list(lists.decode(data.replace(b"\1\0\1", b"\x80\0\xff")).b) == [True, False, True]
    for layout in ("flat", "sparse"):
        data = all_kinds.encode({"b": True}, layout)
        at = locate(all_kinds.plan, all_kinds.plan.by_name["b"])(data, root_at(data))
        message = all_kinds.decode(data[:at] + b"\x80" + data[at + 1 :])
        assert message.SerializeToString() == b"\x40\x01"


def test_all_bits_of_floats_are_kept(codec: Any) -> None:
    lists = codec["codec.Lists"]
    # Two signaling and two quiet nans with their own bits.
    floats = bytes.fromhex("010080ff aaaaa07f 0100c07f ffffffff")
    doubles = bytes.fromhex("010000000000f0ff 0100000000 00f87f".replace(" ", ""))
    data = lists.encode({"f": [1.0, 2.0, 3.0, 4.0], "d": [1.0, 2.0]})
    data = data.replace(struct.pack("<4f", 1, 2, 3, 4), floats).replace(struct.pack("<2d", 1, 2), doubles)
    message = lists.decode(data)
    assert message.SerializeToString() == b"\x0a\x10" + doubles + b"\x12\x10" + floats


@pytest.mark.parametrize("layout", ["flat", "sparse"])
def test_delimited_message_fields(layout: str) -> None:
    delimited = schema("codec_editions.proto")["codec_editions.Delimited"]
    message = delimited.message_class(one={"n": 1}, many=[{"n": 2}, {}], bare=4)
    assert message.SerializeToString() == bytes.fromhex("0b08010c 1308021413141804".replace(" ", ""))
    assert delimited.decode(delimited.encode(message, layout)) == message


def test_text_that_is_not_utf8(codec: Any) -> None:
    message_type = codec["codec.Leaf"]
    data = message_type.encode({"s": "text"}).replace(b"text", b"te\xfft")
    with pytest.raises(yaffjit.VerifyError, match=r"^codec\.Leaf, field s: .*UTF-8"):
        message_type.decode(data)
    with pytest.raises(yaffjit.DecodeError) as caught:
        decode_at(message_type.plan, data, root_at(data))
    assert type(caught.value) is yaffjit.DecodeError
    assert str(caught.value).startswith("codec.Leaf: Error parsing message")


RICH = {
    "codec.Lists": {
        **{name: values[:4] for name, values in VALUES.items()},
        "raw": [b"x"],
        "leaves": [{}, {"s": "x"}],
    },
    "codec.Tree": {"kid": {"n": 1, "kids": [{"named": {"a": {}, "b": {"n": 3}}}]}, "counts": {"": 0, "z": 1}},
    "codec.All": {"u64": 1, "s": "x", "leaf_one": {"s": "y"}, "color": -3},
}


@pytest.mark.parametrize("layout", ["flat", "sparse"])
@pytest.mark.parametrize("name", RICH)
def test_truncated_buffers(codec: Any, name: str, layout: str) -> None:
    data = codec[name].encode(RICH[name], layout)
    for size in range(len(data)):
        with pytest.raises(yaffjit.VerifyError, match=f"^{name}"):
            codec[name].decode(data[:size])


@pytest.mark.parametrize("layout", ["flat", "sparse"])
@pytest.mark.parametrize("name", RICH)
def test_damaged_buffers_raise_nothing_else(codec: Any, name: str, layout: str) -> None:
    data = codec[name].encode(RICH[name], layout)
    drawn = random.Random(f"{name} {layout}")
    refused = 0
    for _ in range(400):
        damaged = bytearray(data)
        for _ in range(drawn.choice((1, 1, 2, 5))):
            damaged[drawn.randrange(len(data))] = drawn.choice((0, 1, 4, 127, 128, 255, drawn.randrange(256)))
        try:
            codec[name].decode(damaged)
        except yaffjit.DecodeError:
            refused += 1
    assert 20 < refused < 400


READINGS = [
    *((r, r["schema"], r["message"], r.get("slice")) for r in load_vectors() if "error" not in r),
    *(
        (r, reader["reader_schema"], reader["reader_message"], reader.get("reader_slice"))
        for r in load_vectors()
        for reader in r.get("readers", ())
    ),
]


def test_locators_agree_with_decode() -> None:
    """In all vectors, in the root message: what is located and present is what decode sets."""
    found = absent = 0
    for record, file, name, slice in READINGS:
        message_type = schema(f"golden/{file}", slice)[name]
        plan, data = message_type.plan, record["yaff"]
        at = root_at(data)
        message = message_type.decode(data)
        names = {descriptor.name for descriptor, _ in message.ListFields()}
        for f in plan.fields:
            where = vector_name(record), name, f.name
            is_set = f.name in names
            is_present = presence(plan, f)(data, at)
            # Another member of the oneof may be set instead, and a closed enum may not know the number.
            if (f.explicit or f.repeated) and not (f.oneof or f.kind == "enum"):
                assert is_present == is_set, where
            assert is_present or not is_set, where
            pos = target(plan, f)(data, at) if f.out_of_line else locate(plan, f)(data, at)
            if f.out_of_line:
                assert (pos >= 0) == is_present, where
            elif is_set:
                assert pos >= at, where
            if f.kind == "message" and not f.repeated and is_set:
                assert decode_at(plan.child(f), data, pos) == getattr(message, f.name), where
            found += pos >= 0
            absent += pos < 0
    assert found > 1000 and absent > 100


def test_fields_behind_removed_ones_need_sizes() -> None:
    """A pinned flat message carries no sizes, so a reader that has lost one of its fields can't go on."""
    reader = schema("golden/evo_v2.proto")
    holed = next(t for t in reader.messages.values() if any(f.holes for f in t.plan.fields))
    f = next(f for f in holed.plan.fields if f.holes)
    header = 0x8000 | (f.id + 1) << 2
    data = (4).to_bytes(4, "little") + header.to_bytes(2, "little") + bytes(100)
    with pytest.raises(yaffjit.VerifyError) as caught:
        locate(holed.plan, f)(data, 4)
    assert str(caught.value) == (
        f"id {f.holes[0]} was removed, but the message gives no sizes to find what follows at byte 4"
    )
    with pytest.raises(yaffjit.VerifyError, match="gives no sizes"):
        holed.decode(data)
