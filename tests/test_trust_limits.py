"""The limits that docs/limits.md names, at their edges; files with holes stand for what is large."""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path
from typing import Any

import pytest
from vectors import TESTS
from verify_buffers import flat_root, plan, root, u16, u32

import yaffjit as yj
from yaffjit.codec.verify import verify
from yaffjit.codec.verify_plain import verify_plain

GIB = 2**30
OFFSET = 2**31 - 1  # the largest


@pytest.fixture(scope="module")
def schema() -> yj.Schema:
    return yj.load_schema(TESTS / "schemas" / "verify.proto")


def with_hole(path: Path, begin: bytes, size: int, end: bytes = b"") -> mmap.mmap:
    """A read-only map of a file of that size that takes no room on disk between ``begin`` and ``end``."""
    with open(path, "wb") as file:
        file.write(begin)
        file.seek(size - len(end))
        file.write(end)
        file.truncate(size)
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)


def test_offsets_reach_2_gib(tmp_path: Path, schema: yj.Schema) -> None:
    """A text 2 GiB - 1 behind its message can be read; an offset that's larger can't be."""
    # The message is at byte 5, so its text is at 5 + 2**31 - 1.
    begin = flat_root(u32(OFFSET))
    held = with_hole(tmp_path / "x", begin, 5 + OFFSET + 9, u32(4) + b"Oslo\0")
    verify_plain(plan("Geo"), memoryview(held))
    assert schema["verify.Geo"].view(held).city == "Oslo"
    held.close()
    beyond = flat_root(u32(OFFSET + 1))
    sentence = "verify.Geo, field city: offset of 2147483648 (at most 2147483647) at byte 7"
    for check in (verify, verify_plain):
        with pytest.raises(yj.VerifyError) as caught:
            check(plan("Geo"), beyond)
        assert str(caught.value) == sentence


def test_a_claimed_length_of_2_gib_is_refused_by_each_reader(schema: yj.Schema) -> None:
    geo = schema["verify.Geo"]
    for nbytes in (2**31 - 1, 2**31, 2**32 - 1):
        claims = flat_root(u32(6), then=u32(nbytes) + b"Oslo\0")
        for read in (geo.view, geo.decode, geo.verify, lambda buf: yj.records(geo, [buf])):
            with pytest.raises(yj.VerifyError, match=f"text of {nbytes} bytes runs past the end"):
                read(claims)
        size = bytes([*[nbytes >> shift & 127 | 128 for shift in (0, 7, 14, 21)], nbytes >> 28])
        data = b"\x0a" + size + b"Oslo"
        for read in (geo.view_protobuf, geo.verify_protobuf, lambda data: geo.transcode([data])):
            with pytest.raises(yj.DecodeError) as caught:
                read(data)
            limit = 2**31 - 1
            said = "but 4 are left" if nbytes <= limit else f"(at most {limit})"
            assert f"a size of {nbytes} bytes" in str(caught.value)
            assert said in str(caught.value)


def test_a_protobuf_message_of_2_gib(tmp_path: Path, schema: yj.Schema) -> None:
    """It is refused before it's copied or parsed; one byte less isn't looked at here."""
    nbytes = 2**31
    held = with_hole(tmp_path / "x", b"\x12\xfa\xff\xff\xff\x07", nbytes)  # raw, of 2**31 - 6 bytes
    with pytest.raises(yj.VerifyError) as caught:
        schema["verify.Geo"].verify_protobuf(held)
    assert str(caught.value) == "verify.Geo: 2147483648 bytes (at most 2147483647) at byte 0"


def test_8190_ids(tmp_path: Path) -> None:
    """Id 8190 comes and goes in each layout that can have it, 8191 is refused."""
    source = tmp_path / "ids.proto"
    source.write_text(
        'syntax = "proto3"; message Last { int32 one = 1; int64 last = 8190; string text = 8189; }'
        "message Beyond { int32 one = 1; int64 last = 8191; }"
    )
    loaded = yj.load_schema(source)
    last = loaded["Last"]
    content = {"one": 5, "last": -(2**63), "text": "a"}
    for layout in ("flat", "sparse"):
        view = last.view(last.encode(content, layout=layout))
        assert (view.one, view.last, view.text) == (5, -(2**63), "a")
        assert yj.to_dict(last.decode(last.encode(content, layout=layout))) == content
    message = last.message_class(**content).SerializeToString()
    assert last.transcode([message])[0].last == -(2**63)
    with pytest.raises(yj.SchemaError) as caught:
        loaded["Beyond"].encode({"last": 1})
    assert str(caught.value) == "YaFF can't hold Beyond: field last has id 8191, the highest is 8190"
    # A header says at most id 8190: the bits are no more.
    assert (0x7FFF >> 2) - 1 == 8190


def nested(depth: int) -> bytes:
    """Protobuf bytes of a Tree with so many in one another by ``left``."""
    made = b""
    for _ in range(depth):
        size, prefix = len(made), bytearray(b"\x0a")
        while size > 127:
            prefix.append(size & 127 | 128)
            size >>= 7
        made = bytes([*prefix, size]) + made
    return made


def chained(depth: int) -> bytes:
    from verify_buffers import chain

    return chain(depth)


def test_depth_100(schema: yj.Schema) -> None:
    """100 is read by each reader, 101 by none."""
    tree: Any = schema["verify.Tree"]

    def deepest(view: Any) -> int:
        depth = 0
        while view.HasField("left"):
            view, depth = view.left, depth + 1
        return depth

    buf, data = chained(100), nested(100)
    message = tree.message_class.FromString(data)
    for view in (tree.view(buf), tree.view_protobuf(data), tree.decode(buf), tree.transcode([data])[0]):
        assert deepest(view) == 100
    tree.verify_protobuf(data)
    assert tree.encode(message) == tree.transcode([data]).payload(0)
    assert tree.transcode(yj.records(tree, [buf]), representation="protobuf")[0] == data
    assert tree.view(buf) == message
    assert yj.to_dict(tree.view(buf)) == yj.to_dict(message)
    assert str(tree.view(buf)).count("left") == 100
    buf, data = chained(101), nested(101)
    for read in (tree.view, tree.decode, tree.verify, lambda buf: yj.records(tree, [buf])):
        with pytest.raises(yj.VerifyError, match=r"message at depth 101 \(at most 100\)"):
            read(buf)
    for read in (tree.verify_protobuf, lambda data: tree.transcode([data])):
        with pytest.raises(yj.DecodeError, match=r"messages nested 101 deep \(at most 100\)"):
            read(data)
    with pytest.raises(yj.DecodeError, match=r"messages nested 101 deep \(at most 100\)"):
        deepest(tree.view_protobuf(data))
    deep: Any = {}
    for _ in range(101):
        deep = {"left": deep}
    with pytest.raises(yj.EncodeError, match="messages nested deeper than 100"):
        tree.encode(deep)


def test_claimed_rows(schema: yj.Schema) -> None:
    """Offsets that say more than there is, and arrays of 2**31 rows that aren't there."""
    geo = schema["verify.Geo"]
    buf = root(b"", u16(0x8000))
    for last in (2**31, 2**32, 2**63 - 1):
        with pytest.raises((ValueError, yj.VerifyError)):
            yj.records(geo, (buf, [0, len(buf), last]))
    import pyarrow as pa

    rows = 2**31
    for kind in (pa.binary(), pa.large_binary(), pa.binary(len(buf))):
        buffers = [None, pa.py_buffer(bytes(16)), pa.py_buffer(buf)]
        if pa.types.is_fixed_size_binary(kind):
            buffers.pop(1)
        with pytest.raises(ValueError):  # Arrow itself looks at that
            yj.records(geo, pa.Array.from_buffers(kind, rows, buffers))


@pytest.mark.slow
def test_an_index_of_over_4_gib(tmp_path: Path, schema: yj.Schema) -> None:
    """A file whose second batch lies 5 GiB behind the first, with a hole between them."""
    geo = schema["verify.Geo"]
    small = tmp_path / "small.arrow"
    rows = 65_536 + 7
    yj.build_index(small, geo, ({"city": str(row)} for row in range(rows)))
    moved = tmp_path / "large.arrow"
    move_last_batch(small, moved, 5 * GIB)
    assert os.path.getsize(moved) > 5 * GIB
    for index in (yj.open_index(moved), yj.open_index_unchecked(moved)):
        assert len(index) == rows
        assert index[rows - 1].city == str(rows - 1)
        assert index[0].city == "0"
        assert index[65_530:].columns("city")["city"][-1] == str(rows - 1)
        assert index.take([rows - 1, 3])[0].city == str(rows - 1)


def move_last_batch(source: Path, target: Path, distance: int) -> None:
    """Copy an Arrow file, with its last batch so many bytes further behind."""
    data = source.read_bytes()
    length = struct.unpack_from("<i", data, len(data) - 10)[0]
    footer_at = len(data) - 10 - length
    footer = bytearray(data[footer_at : len(data) - 10])
    # A block of the footer: where its message begins, bytes of its metadata (padded to 8), of its body.
    blocks = []
    for at in range(0, len(footer) - 24, 4):
        begin, metadata, body = struct.unpack_from("<qi4xq", footer, at)
        inside = 0 < begin < footer_at and 0 < metadata < 2**20 and begin + metadata + body <= footer_at
        if inside and data[begin : begin + 4] == b"\xff\xff\xff\xff":
            blocks.append((begin, at))
    begin, at = max(blocks)
    struct.pack_into("<q", footer, at, begin + distance)
    with open(target, "wb") as file:
        file.write(data[:begin])
        file.seek(begin + distance)
        file.write(data[begin:footer_at] + footer + data[len(data) - 10 :])
