"""Each rule of the verifier: a buffer that breaks it, what is said then, and buffers that may not fail."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from verify_buffers import (
    banner,
    banner_slots,
    chain,
    doubling,
    flat,
    flat_header,
    flat_root,
    i32,
    metadata,
    plan,
    root,
    slots,
    sparse_root,
    table,
    text,
    u8,
    u16,
    u32,
)

from yaffjit.codec import verify as codec
from yaffjit.codec import verify_plain as plain
from yaffjit.codec.verify import _loaded, _request, verify, verify_many
from yaffjit.codec.verify_plain import verify_plain
from yaffjit.errors import VerifyError

ZERO = u32(0)
LONG = 2**31  # the first offset that is too large


@pytest.fixture(scope="module", autouse=True)
def kernel() -> Any:
    _loaded.load()
    return _loaded.kernel


BAD = {
    "no bytes": ("Banner", b"", "root offset of 4 bytes runs past the end of the buffer (0 bytes) at byte 0"),
    "no root offset": (
        "Banner",
        b"\4\0\0",
        "root offset of 4 bytes runs past the end of the buffer (3 bytes) at byte 0",
    ),
    "root in its offset": ("Banner", u32(3) + u16(0x8000), "offset of 3 (at least 4) at byte 0"),
    "root offset too large": (
        "Banner",
        u32(LONG) + u16(0x8000),
        "offset of 2147483648 (at most 2147483647) at byte 0",
    ),
    "root outside": (
        "Banner",
        u32(6) + u16(0x8000),
        "header of 2 bytes runs past the end of the buffer (6 bytes) at byte 6",
    ),
    "half a header": (
        "Banner",
        u32(4) + b"\0",
        "header of 2 bytes runs past the end of the buffer (5 bytes) at byte 4",
    ),
    "sparse header in a flat message": (
        "Pinned",
        root(b"", u16(0x0003)),
        "header 0x0003 of a flat message is below 0x8000 at byte 4",
    ),
    "flat header in a sparse message": (
        "Packed",
        root(b"", u16(0x8000)),
        "header 0x8000 of a sparse message isn't below 0x8000 at byte 4",
    ),
    "size bits before the buffer": (
        "Banner",
        root(b"", flat(*slots(1))[1]),
        "presence and size bits begin at byte 3 (at least 4): header at byte 4",
    ),
    "presence bits before the buffer": (
        "Banner",
        root(b"\0", flat_header(9, sized=False, explicit=True) + bytes(40)),
        "presence and size bits begin at byte 3 (at least 4): header at byte 5",
    ),
    "presence and size bits before the buffer": (
        "Banner",
        root(b"\0" * 3, flat_header(12, explicit=True) + bytes(45)),
        "presence and size bits begin at byte 2 (at least 4): header at byte 7",
    ),
    "flat message outside": (
        "Banner",
        flat_root(*slots(1, 0, 0))[:-5],
        "flat message of 14 bytes runs past the end of the buffer (14 bytes) at byte 5",
    ),
    "flat message outside, later ids unknown": (
        "Geo",
        flat_root(*slots(0, 0))[:-4],
        "flat message of 10 bytes runs past the end of the buffer (11 bytes) at byte 5",
    ),
    "removed id without sizes": (
        "Removed",
        root(b"", flat_header(3, sized=False) + bytes(12)),
        "id 2 was removed, but header 0x8010 gives no sizes to find id 3 at byte 4",
    ),
    "removed id moves a slot outside": (
        "Removed",
        root(metadata([4, 8, 4]), flat_header(3) + bytes(4 + 8 + 3)),
        "flat message of 18 bytes runs past the end of the buffer (22 bytes) at byte 5",
    ),
    "removed id beside presence bits moves a slot outside": (
        "Removed",
        root(metadata([4, 8, 4], [False] * 3), flat_header(3, explicit=True) + bytes(4 + 8 + 3)),
        "flat message of 18 bytes runs past the end of the buffer (23 bytes) at byte 6",
    ),
    "text behind a removed id": (
        "Removed",
        root(metadata([4, 1, 4]), flat_header(3) + u32(0) + u8(7) + u32(100)),
        "field b: length of 4 bytes runs past the end of the buffer (16 bytes) at byte 105",
    ),
    "no room for the table's offset": (
        "Packed",
        root(b"\0" * 3, u16(0x000B) + u32(1)),
        "table offset begins at byte 3 (at least 4): header at byte 7",
    ),
    "table before the buffer": (
        "Packed",
        root(i32(-4), u16(0x000B) + u32(1)),
        "table begins at byte 3 (at least 4): header at byte 8",
    ),
    "table far before the buffer": (
        "Packed",
        root(i32(-(2**31)), u16(0x000B) + u32(1)),
        "table begins at byte -2147483641 (at least 4): header at byte 8",
    ),
    "wide table before the buffer": (
        "Packed",
        root(bytes(48) + i32(-4), u16(41 << 2 | 3) + bytes(8)),
        "table begins at byte 3 (at least 4): header at byte 56",
    ),
    "table behind the buffer": (
        "Packed",
        root(i32(8), u16(0x000B) + u32(1) + b"\2"),
        "table ends at byte 16, past the end of the buffer (15 bytes): header at byte 8",
    ),
    "value in the header": (
        "Packed",
        root(table({1: 1}) + i32(-4), u16(0x000B) + u32(1)),
        "field a: value is 1 byte behind the start of the header (at least 2) at byte 10",
    ),
    "value outside": (
        "Packed",
        root(table({1: 3}) + i32(-4), u16(0x000B) + u32(1)),
        "field a: value of 4 bytes runs past the end of the buffer (15 bytes) at byte 12",
    ),
    "value by a wide entry outside": (
        "Packed",
        root(table({40: 0x0102}) + i32(-4), u16(41 << 2 | 3) + bytes(8)),
        "field far: value of 8 bytes runs past the end of the buffer (67 bytes) at byte 315",
    ),
    "sparse offset of 0": ("Packed", sparse_root({2: ZERO}), "field b: offset of 0 (at least 1) at byte 12"),
    "sparse offset too large": (
        "Packed",
        sparse_root({2: u32(LONG)}),
        "field b: offset of 2147483648 (at most 2147483647) at byte 12",
    ),
    "flat offset too large": (
        "Geo",
        flat_root(u32(2**32 - 1)),
        "field city: offset of 4294967295 (at most 2147483647) at byte 7",
    ),
    "offset in an array of 0": (
        "Banner",
        banner(u32(2) + u32(8) + ZERO + text(b"a"), tags=0),
        "field tags[1]: offset of 0 (at least 1) at byte 27",
    ),
    "offset in an array too large": (
        "Banner",
        banner(u32(1) + u32(LONG), tags=0),
        "field tags[0]: offset of 2147483648 (at most 2147483647) at byte 23",
    ),
    "message in an array of offsets with offset 0": (
        "Banner",
        banner(u32(1) + ZERO, places=0),
        "field places[0]: offset of 0 (at least 1) at byte 40",
    ),
    "length outside": (
        "Geo",
        flat_root(u32(6), then=b"\0\0\0"),
        "field city: length of 4 bytes runs past the end of the buffer (14 bytes) at byte 11",
    ),
    "text outside": (
        "Geo",
        flat_root(u32(6), then=u32(4096) + b"Oslo\0"),
        "field city: text of 4096 bytes runs past the end of the buffer (20 bytes) at byte 15",
    ),
    "longest text": (
        "Geo",
        flat_root(u32(6), then=u32(2**32 - 1) + b"Oslo\0"),
        "field city: text of 4294967295 bytes runs past the end of the buffer (20 bytes) at byte 15",
    ),
    "terminator outside": (
        "Geo",
        flat_root(u32(6), then=u32(5) + b"Oslo\0"),
        "field city: terminator of 1 byte runs past the end of the buffer (20 bytes) at byte 20",
    ),
    "terminator not 0": (
        "Geo",
        flat_root(u32(6), then=u32(3) + b"Oslo\0"),
        "field city: terminator of a text of 3 bytes is 111 instead of 0 at byte 18",
    ),
    "text isn't UTF-8": (
        "Geo",
        flat_root(u32(6), then=text(b"Os\xfflo")),
        "field city: text isn't UTF-8: byte 0xff at byte 17",
    ),
    "nested text isn't UTF-8": (
        "Banner",
        banner(b"\x02" + flat(u32(6))[1] + text(b"\xc3"), geo=1),
        "field geo.city: text isn't UTF-8: byte 0xc3 at byte 26",
    ),
    "text in an array isn't UTF-8": (
        "Banner",
        banner(u32(1) + u32(4) + text(b"ok\x80"), tags=0),
        "field tags[0]: text isn't UTF-8: byte 0x80 at byte 33",
    ),
    "key isn't UTF-8": (
        "Banner",
        banner(u32(1) + u32(8) + u32(7) + text(b"\xed\xa0\x80"), attrs=0),
        "field attrs[0].key: text isn't UTF-8: byte 0xed at byte 44",
    ),
    "count outside": (
        "Banner",
        banner(b"\1\0\0", weights=0),
        "field weights: count of 4 bytes runs past the end of the buffer (26 bytes) at byte 23",
    ),
    "array outside": (
        "Banner",
        banner(u32(2) + bytes(15), weights=0),
        "field weights: array of 2 elements of 8 bytes runs past the end of the buffer (42 bytes) at byte 23",
    ),
    "array of as many numbers as can be said": (
        "Banner",
        banner(u32(2**32 - 1) + bytes(16), weights=0),
        "field weights: array of 4294967295 elements of 8 bytes "
        "runs past the end of the buffer (43 bytes) at byte 23",
    ),
    "array of bools outside": (
        "Banner",
        banner(u32(3) + bytes(2), flags=0),
        "field flags: array of 3 elements of 1 byte runs past the end of the buffer (60 bytes) at byte 54",
    ),
    "array of offsets outside": (
        "Banner",
        banner(u32(2**32 - 1) + bytes(16), tags=0),
        "field tags: array of 4294967295 elements of 4 bytes "
        "runs past the end of the buffer (39 bytes) at byte 19",
    ),
    "array of fixed messages outside": (
        "Banner",
        banner(u32(2) + bytes(15), points=0),
        "field points: array of 2 elements of 8 bytes runs past the end of the buffer (51 bytes) at byte 32",
    ),
    "array of fixed messages without offsets outside": (
        "Banner",
        banner(u32(2**32 - 1) + bytes(24), bares=0),
        "field bares: array of 4294967295 elements of 12 bytes "
        "runs past the end of the buffer (74 bytes) at byte 46",
    ),
    "text of a fixed element outside": (
        "Banner",
        banner(u32(2) + u32(1) + ZERO + u32(1) + u32(9), points=0),
        "field points[1].name: length of 4 bytes runs past the end of the buffer (52 bytes) at byte 53",
    ),
    "message in an array outside": (
        "Banner",
        banner(u32(2) + u32(8) + u32(10) + u16(0x8000), places=0),
        "field places[1]: header of 2 bytes runs past the end of the buffer (50 bytes) at byte 50",
    ),
    "fixed message outside": (
        "Banner",
        banner(bytes(7), point=0),
        "field point: fixed message of 8 bytes runs past the end of the buffer (57 bytes) at byte 50",
    ),
    "fixed root outside": (
        "Point",
        root(b"", bytes(7)),
        "fixed message of 8 bytes runs past the end of the buffer (11 bytes) at byte 4",
    ),
    "empty fixed message outside": (
        "Banner",
        banner(b"", nothing=1),
        "field nothing: fixed message of 0 bytes runs past the end of the buffer (42 bytes) at byte 43",
    ),
    "too deep": (
        "Tree",
        chain(101),
        f"field {'left.' * 100}left: message at depth 101 (at most 100) at byte 711",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_broken_rule(name: str, kernel: Any) -> None:
    message, buf, sentence = BAD[name]
    mp = plan(message)
    where = f"verify.{message}" + (", " if sentence.startswith("field ") else ": ")
    for check in (verify, verify_plain):
        with pytest.raises(VerifyError) as caught:
            check(mp, buf)
        assert str(caught.value) == where + sentence
    assert not kernel.check_one(buf, _request(mp, True).address)


def test_error_holds_what_it_says() -> None:
    mp = plan("Banner")
    _, buf, _ = BAD["nested text isn't UTF-8"]
    with pytest.raises(VerifyError) as caught:
        verify(mp, buf)
    error = caught.value
    assert (error.message, error.path, error.position, error.found) == ("verify.Banner", "geo.city", 26, 0xC3)
    _, buf, _ = BAD["array outside"]
    with pytest.raises(VerifyError) as caught:
        verify(mp, buf)
    assert (caught.value.found, caught.value.limit, caught.value.row) == (16, 42, None)


@pytest.mark.parametrize(
    ("buf", "is_protobuf"),
    [
        (b"\x08\x05\x12\x06\x1a\x04Oslo", True),
        (b"\x08\x05", True),
        (b"\x08\x05\xf8\x3e\x01", True),  # and a field that the schema hasn't
        (b"\xf8\x3e\x01\xf8\x3e\x01", False),  # nothing else
        (b"", False),
        (b"\xff" * 20, False),
        (u32(100) + u16(0x8000), False),
        (root(b"", u16(0x8000))[:-1], False),
    ],
)
def test_protobuf_bytes_are_recognised(buf: bytes, is_protobuf: bool) -> None:
    mp = plan("Banner")
    sentence = "; these look like protobuf bytes: encode them first"
    with pytest.raises(VerifyError) as bare:
        verify_plain(mp, buf)
    for given in (buf, memoryview(buf), bytearray(buf)):
        with pytest.raises(VerifyError) as caught:
            verify(mp, given)
        assert str(caught.value) == str(bare.value) + (sentence if is_protobuf else "")
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(VerifyError) as of_row:
        verify_many(mp, GOOD["empty flat root"][1] + buf, [0, 6, 6 + len(buf)])
    assert str(of_row.value) == f"row 1: {bare.value}" + (sentence if is_protobuf else "")


GOOD = {
    "empty flat root": ("Banner", root(b"", u16(0x8000))),
    "empty sparse root": ("Banner", root(b"", u16(0x0002))),
    "highest id 0, in other words": ("Banner", root(b"", u16(0x8007))),
    "highest id 0 in a sparse header": ("Packed", root(b"", u16(0x0007))),
    "bytes behind the root": ("Banner", flat_root(u32(1), then=b"rest")),
    "root far behind its offset": ("Banner", u32(40) + bytes(36) + u16(0x8000)),
    "unknown ids": ("Geo", flat_root(*slots(0, 0, 77, 78))),
    "unknown ids cut off": ("Geo", flat_root(*slots(0, 0, 77, 78))[:-8]),
    "unknown ids in a sparse table": (
        "Geo",
        sparse_root({1: u32(6), 9: ZERO}, then=text(b"Oslo")[2:])[:-2] + b"\0\0\0",
    ),
    "sizes of known ids that contradict the plan": (
        "Geo",
        root(metadata([8, 1]), flat_header(2) + bytes(8)),
    ),
    "no sizes": ("Banner", root(b"", flat_header(2, sized=False) + bytes(8))),
    "presence without a value": ("Banner", root(*flat(*slots(0, 0), presence=[True, True]))),
    "implicit value without presence": ("Banner", root(*flat(*slots(5, 0), presence=[False, False]))),
    "bool that is neither 0 nor 1": ("Banner", flat_root(*banner_slots(on=0xFE))),
    "bools in an array that are neither": ("Banner", banner(u32(3) + b"\2\xff\1", flags=0)),
    "arrays of nothing": ("Banner", banner(ZERO, tags=0, weights=0, attrs=0, points=0, places=0, bares=0)),
    "keys that aren't sorted": (
        "Banner",
        banner(u32(2) + u32(16) + ZERO + u32(14) + ZERO + text(b"b") + text(b"a"), attrs=0),
    ),
    "one key twice": ("Banner", banner(u32(2) + u32(16) + ZERO + u32(8) + ZERO + text(b"b"), attrs=0)),
    "key that's absent": ("Banner", banner(u32(1) + bytes(8), attrs=0)),
    "empty fixed message at the end": ("Banner", banner(b"", nothing=0)),
    "bytes needn't be UTF-8": ("Geo", flat_root(ZERO, u32(10), then=text(b"\xff"))),
    "one text for many": ("Banner", banner(u32(3) + u32(12) * 3 + text(b"x"), tags=0)),
    "one message for two": ("Tree", doubling(3)),
    "as deep as can be": ("Tree", chain(100)),
    "all planes of Unicode": (
        "Geo",
        flat_root(u32(6), then=text("a\u00e9\ud7ff\ue000\uffff\U0001f600\U0010ffff".encode() * 3)),
    ),
    "removed id that the data hasn't got": ("Removed", root(metadata([4, 0, 4]), flat_header(3) + bytes(8))),
    "removed id without sizes where nothing lies behind it": (
        "Removed",
        root(b"", flat_header(2, sized=False) + bytes(4)),
    ),
    "removed id in an empty message": ("Removed", root(b"", u16(0x8000))),
    "table that another message has": ("Packed", root(i32(7), u16(0x000B) + u32(9) + table({1: 2}))),
}


@pytest.mark.parametrize("name", GOOD)
def test_nothing_wrong(name: str, kernel: Any) -> None:
    message, buf = GOOD[name]
    verify_plain(plan(message), buf)
    assert kernel.check_one(buf, _request(plan(message), True).address)
    verify(plan(message), buf)


def test_limits_of_both_verifiers_are_equal() -> None:
    from yaffjit.kernels import verify_text, verify_walk

    for compiled, names in (
        (verify_walk, ("MAX_DEPTH", "STEPS_PER_BYTE")),
        (verify_text, ("LONG_TEXT", "TEXT_BYTES_PER_BYTE")),
    ):
        for name in names:
            assert getattr(plain, name) == getattr(compiled, name)
    for name in ("MALFORMED", "WELL_FORMED", "ASCENDING"):
        assert getattr(codec, name) == getattr(verify_walk, name)
