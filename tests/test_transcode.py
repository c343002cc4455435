"""Protobuf bytes to YaFF bytes: what `encode` gives of the parsed message; and what is refused, in words."""

from __future__ import annotations

import random
import struct
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import messages, schemas
from vectors import TESTS, load_vectors
from wire_checks import by_kernel, check_acceptance, check_transcoding, check_uncarried, joined, outcomes
from wire_messages import Maker, expected, varint

import yaffjit as yj
from yaffjit.codec import stretches, transcode, verify_protobuf
from yaffjit.codec.encode import LAYOUTS
from yaffjit.codec.transcode import transcode_many
from yaffjit.codec.verify_protobuf import verify_protobuf_many
from yaffjit.codec.work import KEPT_SECONDS, Work

SCHEMAS = TESTS / "schemas"


@cache
def wire() -> yj.Schema:
    return yj.load_schema(SCHEMAS / "wire.proto")


@cache
def wire3() -> yj.Schema:
    return yj.load_schema(SCHEMAS / "wire3.proto")


@cache
def golden(slice: str | None) -> yj.Schema:
    return yj.load_schema(sorted((SCHEMAS / "golden").glob("*.proto")), slice=slice)


@pytest.fixture
def plain_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    """No kernel, whatever ran before."""
    monkeypatch.setattr(transcode, "work", Work(transcode._load, lambda: False))
    monkeypatch.setattr(verify_protobuf, "work", Work(verify_protobuf._load, lambda: False))


def tag(number: int, wire_type: int) -> bytes:
    return varint(number << 3 | wire_type)


def counted(number: int, data: bytes) -> bytes:
    return tag(number, 2) + varint(len(data)) + data


# --- the same bytes as encode ---


def test_golden_vectors() -> None:
    by_type: dict[tuple[str | None, str], list[bytes]] = {}
    for record in load_vectors():
        if "error" not in record:
            by_type.setdefault((record.get("slice"), record["message"]), []).append(record["proto"])
    for (slice, name), payloads in by_type.items():
        told = check_transcoding(golden(slice)[name], payloads)
        assert told["written"] == len(LAYOUTS) * len(payloads), name
        check_uncarried(golden(slice)[name], payloads)


@settings(max_examples=max(20, settings().max_examples // 3))
@given(st.data())
def test_random_schemas(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    loaded = yj.load_schema(schema.descriptor_set.SerializeToString())
    root = data.draw(st.sampled_from(schema.roots))
    maker = Maker(random.Random(data.draw(st.integers(0, 2**32))))
    payloads = [data.draw(messages(schema.message_class(root))).SerializePartialToString() for _ in range(2)]
    payloads += [maker.message(schema.descriptor(root)) for _ in range(8)]
    payloads += [maker.damaged(payload) for payload in payloads]
    check_transcoding(loaded[root], payloads)
    check_acceptance(loaded[root], payloads)
    check_uncarried(loaded[root], payloads)


@pytest.mark.parametrize("schema", [wire, wire3])
def test_all_kinds(schema: Any) -> None:
    """Types with every kind of field, as no serializer writes them."""
    maker = Maker(random.Random(7))
    for name, message_type in schema().messages.items():
        payloads = [maker.message(message_type.message_class.DESCRIPTOR) for _ in range(150)]
        told = check_transcoding(message_type, payloads)
        assert told["written"] > len(payloads), name
        assert check_acceptance(message_type, payloads) > len(payloads) // 4
        check_uncarried(message_type, payloads)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_plain_tier(plain_tier: None, layout: str) -> None:
    """Small work is done without a kernel, and comes to the same."""
    maker = Maker(random.Random(8))
    message_type = wire()["wire.Everything"]
    payloads = [maker.message(message_type.message_class.DESCRIPTOR) for _ in range(60)]
    made = transcode_many(message_type.plan, *joined(payloads), layout, keep_errors=True)
    assert transcode.work.loaded is None
    assert outcomes(made) == [expected(message_type, payload, layout) for payload in payloads]
    assert made.uncarried == by_kernel_counts(message_type, payloads)


def by_kernel_counts(message_type: yj.MessageType, payloads: list[bytes]) -> Any:
    loaded = transcode.work
    transcode.work = Work(transcode._load, lambda: True)
    try:
        transcode.work.load()
        return by_kernel(message_type, payloads, "flat").uncarried
    finally:
        transcode.work = loaded


def test_kernel_is_loaded_when_it_pays(plain_tier: None, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Work(transcode._load, lambda: False)
    assert waiting.kernel(KEPT_SECONDS * 2) is None  # it would have to be compiled
    kept = Work(transcode._load, lambda: True)
    assert kept.kernel(KEPT_SECONDS / 2) is None
    assert kept.kernel(KEPT_SECONDS) is not None


# --- where there's little room ---


def test_rows_that_need_more_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thing that may be too small grows, and the row is done again."""
    monkeypatch.setattr(stretches, "_WORK_NBYTES", 64)
    monkeypatch.setattr(stretches, "_SHARED", 8)
    message_type = wire3()["wire3.Everything"]
    message = message_type.message_class(texts=[str(i) for i in range(3000)], raw=b"x" * 50000)
    message.names.update({str(i): str(i) for i in range(500)})
    payloads = [b"", message.SerializeToString(), b"", *[tag(1, 0) + b"\x05"] * 3]
    check_transcoding(message_type, payloads)


def test_output_grows() -> None:
    """Some bytes of protobuf are many of YaFF: a slot for each field below the highest."""
    message_type = wire3()["wire3.Everything"]
    payloads = [counted(22, counted(22, counted(22, b""))) * 2000]
    check_transcoding(message_type, payloads, ("flat", "sparse"))


def test_many_threads() -> None:
    message_type = wire3()["wire3.Bare"]
    payloads = [
        message_type.message_class(number=i, text="t" * (i % 50)).SerializeToString() for i in range(300)
    ]
    wanted = by_kernel(message_type, payloads, "auto")
    stretch = stretches._STRETCH_NBYTES
    try:
        stretches._STRETCH_NBYTES = 64
        made = transcode_many(message_type.plan, *joined(payloads), "auto", threads=3)
    finally:
        stretches._STRETCH_NBYTES = stretch
    assert np.array_equal(made.data, wanted.data)
    assert np.array_equal(made.offsets, wanted.offsets)


def test_buffers_over_the_limit_are_left_to_encode(monkeypatch: pytest.MonkeyPatch) -> None:
    message_type = wire3()["wire3.Bare"]
    payload = message_type.message_class(text="x" * 100).SerializeToString()
    monkeypatch.setattr(stretches, "MAX_OFFSET", 50)
    assert outcomes(by_kernel(message_type, [payload], "flat")) == [expected(message_type, payload, "flat")]


def test_no_rows() -> None:
    made = by_kernel(wire3()["wire3.Bare"], [], "flat")
    assert (len(made.data), made.offsets.tolist(), made.errors) == (0, [0], {})


# --- rules of the wire ---


def test_rules_of_the_wire() -> None:
    """What other readers got wrong, one by one."""
    child = lambda data: counted(17, data)  # noqa: E731
    entry = lambda *parts: counted(26, b"".join(parts))  # noqa: E731
    payloads = [
        child(tag(1, 0) + b"\x03") + child(tag(3, 0) + b"\x04"),  # merged
        counted(30, tag(1, 0) + b"\x03") + counted(30, tag(3, 0) + b"\x04"),  # merged in a oneof
        counted(30, tag(1, 0) + b"\x03") + counted(31, b"x") + counted(30, tag(3, 0) + b"\x04"),  # cleared
        counted(31, b"x") + tag(32, 0) + b"\x63",  # an unknown number doesn't switch the oneof
        counted(31, b"x") + tag(33, 0) + b"\x01",  # a deprecated member does
        entry(tag(1, 0) + b"\x01", counted(2, tag(1, 0) + b"\x03"), counted(2, tag(3, 0) + b"\x04")),
        entry(tag(1, 0) + b"\x01", counted(2, tag(1, 0) + b"\x03"))
        + entry(tag(1, 0) + b"\x01", counted(2, b"")),
        entry() + entry(counted(2, b""), tag(1, 0) + b"\x07", tag(1, 0) + b"\x08"),
        entry(tag(1, 0) + b"\x01", tag(9, 0) + b"\x01"),  # a pair with something unknown is unknown
        counted(25, counted(1, b"k") + tag(2, 0) + b"\x63" + tag(2, 0) + b"\x01"),
        counted(25, counted(1, b"\xff")),  # a key that isn't text
        counted(20, b"\x01\x63\x00") + tag(20, 0) + b"\x63" + tag(20, 0) + b"\x01",
        counted(18, b"\x01\x02") + tag(18, 0) + b"\x03" + counted(18, b""),
        tag(14, 0) + varint(2**32 + 1),  # 32 bits count
        tag(13, 0) + varint(2**32) + tag(2, 0) + varint(2**63 + 1),
        tag(11, 5) + struct.pack("<f", -1.5) + tag(12, 1) + struct.pack("<d", -0.0),
        tag(11, 5) + bytes.fromhex("0100807f"),  # a signalling NaN
        counted(34, tag(1, 5) + struct.pack("<f", 0.333333)),  # which a fixed message can't hold
        tag(77, 3) + tag(1, 0) + b"\x01" + tag(78, 3) + tag(78, 4) + tag(77, 4),
        tag(77, 3) + tag(78, 4),
        tag(77, 4),
        counted(100, tag(1, 0) + b"\x01")
        + counted(101, b"\xff")
        + counted(102, b"\x01")
        + tag(200000, 0)
        + b"\x05",
        counted(100, b"\x08"),  # an extension is checked too
        counted(36, b"\x08"),  # and what YaFF doesn't carry
        b"\x88\x80\x80\x80\x00\x05",
        b"\x88\x80\x80\x80\x80\x00\x05",
        b"\x88\x80\x80\x80\x10\x05",
        tag(6, 0) + b"\xff" * 9 + b"\x7f",
        tag(6, 0) + b"\xff" * 10 + b"\x00",
        b"\x00\x00",
        tag(77, 3) + b"\x00\x00" + tag(77, 4),
        tag(16, 2) + b"\x81\x80\x80\x80\x80\x00x",
        tag(16, 2) + b"\x81\x80\x80\x80\x08x",
    ]
    message_type = wire()["wire.Everything"]
    check_transcoding(message_type, payloads)
    check_acceptance(message_type, payloads)
    check_uncarried(message_type, payloads)
    check_acceptance(wire()["wire.Empty"], [b"\x00\x00", b"\x04", b"\x03\x04", b"\x01" + bytes(8)])


def nested(depth: int, number: int, inner: bytes = b"") -> bytes:
    for _ in range(depth):
        inner = counted(number, inner)
    return inner


def test_depth() -> None:
    message_type = wire()["wire.Everything"]
    groups = lambda count: tag(77, 3) * count + tag(77, 4) * count  # noqa: E731
    payloads = [
        *[nested(depth, number) for depth in (99, 100, 101, 200) for number in (17, 24, 26, 30, 36, 100)],
        *[groups(count) for count in (99, 100, 101)],
        *[nested(50, 17, groups(count)) for count in (49, 50, 51)],
        nested(100, 17, tag(1, 0) + b"\x01"),
    ]
    told = check_transcoding(message_type, payloads, ("flat", "sparse"))
    assert told["written"] and told["DecodeError"]
    check_acceptance(message_type, payloads)


def test_delimited_messages() -> None:
    maker = Maker(random.Random(9))
    schema = yj.load_schema(SCHEMAS / "codec_editions.proto")
    for message_type in schema.messages.values():
        payloads = [maker.message(message_type.message_class.DESCRIPTOR) for _ in range(40)]
        check_transcoding(message_type, payloads)
        check_acceptance(message_type, payloads + [maker.damaged(payload) for payload in payloads])


def test_messages_that_yaff_cannot_hold(tmp_path: Any) -> None:
    """The check alone goes by what is declared: groups, and MessageSet's own format."""
    source = tmp_path / "held.proto"
    source.write_text(
        'syntax = "proto2"; package held; message Set { option message_set_wire_format = true;'
        " extensions 4 to max; } message Item { extend Set { optional Item item = 1000; }"
        " optional int32 number = 1; optional Set set = 2;"
        " optional group Group = 3 { optional int32 x = 1; } }"
    )
    item = yj.load_schema(source)["held.Item"]
    maker = Maker(random.Random(10))
    payloads = [maker.message(item.message_class.DESCRIPTOR) for _ in range(100)]
    in_set = lambda data: counted(2, tag(1, 3) + tag(2, 0) + varint(1000) + counted(3, data) + tag(1, 4))  # noqa: E731
    payloads += [in_set(tag(1, 0) + b"\x05"), in_set(tag(1, 0))]
    for payload in payloads:
        accepted = True
        try:
            item.message_class.FromString(payload)
        except Exception:
            accepted = False
        if accepted:
            item.verify_protobuf(payload)
        else:
            with pytest.raises(yj.DecodeError):
                item.verify_protobuf(payload)


# --- words ---

ROOT = "wire.Everything"
CUT = "a varint doesn't end within the 0 bytes that are left"
REFUSED = [
    (b"\x08", f"{ROOT}, field i32: {CUT} at byte 1"),
    (b"\x00\x00", f"{ROOT}: field number 0 (at least 1) at byte 0"),
    (b"\x0e", f"{ROOT}, field i32: wire type 6 (at most 5) at byte 0"),
    (tag(6, 0) + b"\xff" * 11, f"{ROOT}, field u64: a varint has over 10 bytes at byte 1"),
    (b"\xff\xff\xff\xff\x7f", f"{ROOT}: tag 34359738367 (at most 4294967295) at byte 0"),
    (
        counted(17, tag(15, 2) + b"\x05ab"),
        f"{ROOT}, field child.text: a size of 5 bytes, but 2 are left at byte 4",
    ),
    (
        counted(24, b"") + counted(24, counted(35, tag(1, 5) + b"abc")),
        f"{ROOT}, field children[1].fixeds[0].real: a value of 4 bytes, but 3 are left at byte 10",
    ),
    (
        counted(21, b"abc"),
        f"{ROOT}, field reals[0]: 3 bytes of packed values that take 4 each at byte 2",
    ),
    (tag(99, 3) + tag(98, 4), f"{ROOT}, field #99: end of group 98 within group 99 at byte 2"),
    (tag(98, 4), f"{ROOT}: end of group 98 without its beginning at byte 0"),
    (tag(99, 3), f"{ROOT}, field #99: group 99 has no end at byte 0"),
    (counted(100, b"\x08"), f"{ROOT}, field [wire.more].i32: {CUT} at byte 4"),
]


@pytest.mark.parametrize(("payload", "sentence"), REFUSED)
def test_sentences(payload: bytes, sentence: str) -> None:
    message_type = wire()["wire.Everything"]
    with pytest.raises(yj.DecodeError) as error:
        message_type.verify_protobuf(payload)
    assert str(error.value) == sentence
    made = by_kernel(message_type, [b"", payload, b""], "flat")
    assert [*map(str, made.errors.values())] == [f"row 1: {sentence}"]
    with pytest.raises(yj.DecodeError) as error:
        transcode_many(message_type.plan, *joined([b"", payload]), first_row=40)
    assert str(error.value) == f"row 41: {sentence}"
    with pytest.raises(yj.DecodeError) as error:
        verify_protobuf_many(
            message_type.schema._plan, "wire.Everything", *joined([b"", payload]), first_row=40
        )
    assert str(error.value) == f"row 41: {sentence}"


def test_text_that_is_not_utf8() -> None:
    message_type = wire3()["wire3.Everything"]
    with pytest.raises(yj.VerifyError) as error:
        message_type.verify_protobuf(counted(13, counted(1, b"key") + counted(2, b"ab\xff")))
    sentence = "wire3.Everything, field names[0].value: text isn't UTF-8 from byte 0xff on at byte 11"
    assert str(error.value) == sentence
    assert (error.value.position, error.value.path, error.value.found) == (11, "names[0].value", 255)


def test_too_deep() -> None:
    with pytest.raises(yj.VerifyError, match=r"messages nested 101 deep \(at most 100\) at byte \d+$"):
        wire()["wire.Everything"].verify_protobuf(nested(101, 17))


def test_values_that_yaff_cannot_hold() -> None:
    message_type = wire()["wire.Everything"]
    payload = counted(34, tag(1, 5) + struct.pack("<f", 0.333333))
    made = by_kernel(message_type, [b"", payload], "flat")
    reads = "would read as absent in a fixed message, which is the default 0.3333333432674408"
    value = struct.unpack("<f", struct.pack("<f", 0.333333))[0]
    assert [*map(str, made.errors.values())] == [
        f"row 1: wire.Everything, field fixed.real: {value!r} {reads}"
    ]
    assert isinstance(made.errors[1], yj.EncodeError)


def test_offsets_outside_the_data() -> None:
    message_type = wire3()["wire3.Bare"]
    by_kernel(message_type, [], "flat")
    for offsets in ([0, 5], [-1, 1], [2, 1]):
        with pytest.raises(
            yj.DecodeError, match=r"^row 0: wire3.Bare: offsets -?\d and \d aren't a part of the data"
        ):
            transcode_many(message_type.plan, b"\x08\x01", np.array(offsets))


def test_unknown_layout() -> None:
    with pytest.raises(
        ValueError, match=r"^layout must be one of 'flat', 'sparse', 'auto', 'smallest', not 'x'$"
    ):
        transcode_many(wire3()["wire3.Bare"].plan, b"", np.zeros(1, np.int64), "x")


def test_too_many_numbers_to_count() -> None:
    """Counts take bounded memory whatever the bytes say."""
    message_type = wire3()["wire3.Bare"]
    payload = b"".join(tag(number, 0) + b"\x01" for number in range(100, 5000))
    made = by_kernel(message_type, [payload], "flat")
    assert len(made.uncarried) == stretches.COUNTS // 2
    assert made.uncarried.total() + made.uncounted == 4900


# --- the public face ---


def banners(count: int) -> list[bytes]:
    message_class = wire3()["wire3.Bare"].message_class
    return [message_class(number=i, text=f"text {i % 7}").SerializeToString() for i in range(count)]


def test_there_and_back() -> None:
    message_type = wire3()["wire3.Bare"]
    payloads = banners(50)
    for layout in LAYOUTS:
        records = message_type.transcode(payloads, layout=layout)
        assert [records.payload(row) for row in range(50)] == [
            expected(message_type, payload, layout) for payload in payloads
        ]
        records.verify()
        assert [view.number for view in records] == list(range(50))
        assert list(message_type.transcode(records, representation="protobuf")) == payloads


def test_what_holds_messages() -> None:
    message_type = wire3()["wire3.Bare"]
    payloads = banners(20)
    wanted = message_type.transcode(payloads)
    held = {
        "tuple": tuple(payloads),
        "generator": (payload for payload in payloads),
        "arrays": joined(payloads),
        "writable": (bytearray(b"".join(payloads)), joined(payloads)[1]),
        "arrow": pa.array(payloads, pa.binary()),
        "chunked": pa.chunked_array([payloads[:7], payloads[7:]], pa.large_binary()),
    }
    for name, given_payloads in held.items():
        made = message_type.transcode(given_payloads)
        assert [made.payload(row) for row in range(20)] == [wanted.payload(row) for row in range(20)], name


def test_null_rows() -> None:
    message_type = wire3()["wire3.Bare"]
    first, second = banners(2)
    records = message_type.transcode(pa.array([None, first, None, second]))
    assert records.valid.tolist() == [False, True, False, True]
    assert records[3].number == 1
    back = message_type.transcode(records, representation="protobuf")
    assert list(back) == [None, first, None, second]
    again = yj.records(message_type, back, representation="protobuf")
    assert again.valid.tolist() == [False, True, False, True]
    assert (again.payload(1), again[3].number, again.payload(2)) == (first, 1, None)
    assert [row.number for row in message_type.transcode(back)] == [row.number for row in records]
    assert back.to_arrow().to_pylist() == [None, first, None, second]
    with pytest.raises(yj.DecodeError, match=r"^row 2: wire3\.Bare, field number: a varint"):
        message_type.transcode(pa.array([None, first, b"\x08"]))


def test_payloads() -> None:
    message_type = wire3()["wire3.Bare"]
    payloads = banners(3)
    made = message_type.transcode(message_type.transcode(payloads), representation="protobuf")
    assert (len(made), made[-1], made.to_arrow().to_pylist()) == (3, payloads[2], payloads)
    assert made.data[made.offsets[1] : made.offsets[2]].tobytes() == payloads[1]
    assert not made.data.flags.writeable
    assert repr(made) == f"<ProtobufPayloads: 3 messages, {len(made.data)} bytes>"
    with pytest.raises(IndexError):
        made[3]


def test_refused_arguments() -> None:
    bare, thin = wire3()["wire3.Bare"], wire3()["wire3.Thin"]
    records = bare.transcode(banners(2))
    cases: list[tuple[Any, str, str]] = [
        (records, "yaff", "these records are YaFF already; representation='protobuf' makes protobuf of them"),
        (records, "x", "representation must be 'yaff' or 'protobuf', not 'x'"),
        (banners(1), "protobuf", "protobuf is made of records, not of list"),
        (thin.transcode([b""]), "protobuf", "records of wire3.Bare are needed, not of wire3.Thin"),
    ]
    for given_messages, representation, sentence in cases:
        with pytest.raises((TypeError, ValueError)) as error:
            bare.transcode(given_messages, representation=representation)
        assert str(error.value) == sentence
