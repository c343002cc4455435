"""The faults that readers of such formats are known for, one test each; tests elsewhere are named.

Each name here is a fault, so that whoever looks for one finds where it's tested.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from verify_buffers import banner, chain, flat, flat_root, plan, root, slots, sparse_root, text, u16, u32

import yaffjit as yj
from yaffjit.codec.verify import _loaded, _request, verify, verify_many, verify_places
from yaffjit.codec.verify_plain import verify_plain

TESTS = Path(__file__).parent
ELSEWHERE = {
    "shared subtrees that blow up the work": (
        "test_verify_work.py::test_shared_subtrees_are_read_only_so_often"
    ),
    "arrays of arrays of the same elements": "test_verify_work.py::test_arrays_of_arrays_end_soon",
    "texts that overlap": "test_verify_work.py::test_texts_that_overlap_are_read_only_so_often",
    "small buffers that are huge messages": (
        "test_sharing.py::test_messages_over_2_gib_are_refused_before_they_are_built"
    ),
    "strings whose terminator is missing, lengths of 2**32 - 1": "test_verify.py::test_broken_rule",
    "verifiers that themselves read outside": "test_verify_guard.py::test_nothing_outside_is_read",
    "readers that leave what was verified": ("test_trust_campaign.py::test_what_verify_accepts_can_be_read"),
    "parsers of protobuf that read or write outside": "test_wire_fuzz.py::test_nothing_outside_is_touched",
    "a library's own search that crashes": (
        "test_trust_required.py::test_a_map_of_scalars_beside_what_is_missing_crashes_nobody"
    ),
}


@pytest.mark.parametrize("fault", ELSEWHERE)
def test_faults_that_are_tested_elsewhere(fault: str) -> None:
    file, _, function = ELSEWHERE[fault].partition("::")
    assert f"\ndef {function}(" in (TESTS / file).read_text()


def refusal(name: str, buf: bytes) -> str:
    """What both verifiers say of a buffer that isn't well-formed."""
    _loaded.load()
    assert _loaded.kernel is not None
    assert not _loaded.kernel.check_one(buf, _request(plan(name), True).address)
    sentences = []
    for check in (verify, verify_plain):
        with pytest.raises(yj.VerifyError) as caught:
            check(plan(name), buf)
        sentences.append(str(caught.value))
    assert sentences[0] == sentences[1]
    return sentences[0]


@pytest.mark.parametrize("back", [1, 2, 4, 6, 2**31 - 1])
def test_cycles_and_self_reference(back: int) -> None:
    """Offsets lead forward: one that would lead back, over the end of 32 bits, is too large."""
    buf = flat_root(u32(2**32 - back), u32(0))
    assert f"field left: offset of {2**32 - back} (at most 2147483647)" in refusal("Tree", buf)
    kids = u32(1) + u32(2**32 - back)
    assert "field kids[0]: offset of" in refusal("Tree", flat_root(*slots(0, 0, 0, 0, 22), then=kids))
    # And 0, itself: absent in a slot of a flat message, wrong elsewhere.
    verify(plan("Tree"), flat_root(u32(0), u32(0)))
    assert "kids[0]: offset of 0" in refusal("Tree", flat_root(*slots(0, 0, 0, 0, 22), then=u32(1) + u32(0)))
    assert "field b: offset of 0" in refusal("Packed", sparse_root({2: u32(0)}))


@pytest.mark.parametrize("outer", [1, 50, 99])
def test_a_depth_counter_that_restarts_in_nested_parts(outer: int) -> None:
    """Levels by one field and levels by an array's elements count together."""

    def nested(levels: int) -> bytes:
        """Trees by ``left`` down to ``outer``, then by ``kids``."""
        made = u16(0x8000)
        for level in range(levels, 0, -1):
            # What lies below a message has its metadata before it.
            below = b"" if level == levels else (b"\x02" if level < outer else b"\xaa\x02")
            if level <= outer:
                made = u16(0x800A) + u32(6 + len(below)) + below + made
            else:
                header = flat(*slots(0, 0, 0, 0, 22))[1]
                made = header + u32(1) + u32(4 + len(below)) + below + made
        first = b"\x02" if outer else b"\xaa\x02"
        return root(first, made)

    def fits(levels: int) -> bytes:
        buf = nested(levels)
        view = yj_view(buf)
        for _ in range(outer):
            view = view.left
        for _ in range(levels - outer):
            view = view.kids[0]
        return buf

    deepest = fits(100)
    verify(plan("Tree"), deepest)
    assert "message at depth 101 (at most 100)" in refusal("Tree", fits(101))
    assert "message at depth 101 (at most 100)" in refusal("Tree", chain(101))


def yj_view(buf: bytes) -> Any:
    from yaffjit.view import view_unchecked

    return view_unchecked(plan("Tree"), buf)


@pytest.mark.parametrize(
    ("count", "field"), [(2**29, "weights"), (2**30, "tags"), (2**29, "points"), (2**32 - 1, "flags")]
)
def test_lengths_that_overflow_32_bits(count: int, field: str) -> None:
    """Counts whose bytes are 0, or few, in 32 bits."""
    sentence = refusal("Banner", banner(u32(count) + bytes(64), **{field: 0}))
    assert f"field {field}: array of {count} elements of" in sentence
    assert "runs past the end of the buffer" in sentence


@pytest.mark.parametrize("nbytes", [2**32 - 5, 2**32 - 4, 2**31 - 1, 2**31])
def test_lengths_of_text_that_overflow_32_bits(nbytes: int) -> None:
    """With its 4 bytes and its terminator a text would end at byte 0."""
    sentence = refusal("Geo", flat_root(u32(6), then=u32(nbytes) + b"Oslo\0" + bytes(80)))
    assert f"text of {nbytes} bytes runs past the end" in sentence


def test_zero_size_elements_with_a_huge_count(tmp_path: Path) -> None:
    """YaFF's elements have at least a byte; messages without any can't be elements."""
    source = tmp_path / "zero.proto"
    source.write_text(
        'syntax = "proto3"; import "yaff/proto/options.proto";'
        "message Zero { option (yaff.proto.message) = {layout: LAYOUT_FIXED}; }"
        "message Many { repeated Zero zeros = 1; }"
    )
    schema = yj.load_schema(source)
    assert "Many" in schema.unsupported
    with pytest.raises(yj.SchemaError, match="YaFF can't hold Many"):
        schema["Many"].verify(flat_root(u32(6), then=u32(2**32 - 1)))
    # Protobuf's empty messages take two bytes each.
    many = schema["Many"].view_protobuf(b"\x0a\x00" * 1000)
    assert len(many.zeros) == 1000


def test_checks_keyed_on_address_without_length() -> None:
    """The same bytes, once whole and once less: each is judged by itself, whatever was accepted before."""
    mp = plan("Geo")
    buf = flat_root(u32(6), then=text(b"Oslo" * 100))
    held = np.frombuffer(buf, np.uint8)
    address = held.ctypes.data
    for short in (1, 5, len(buf) - 4):
        places = np.array([[address, len(buf)], [address, len(buf) - short], [address, len(buf)]], np.int64)
        for _ in range(2):
            verify_many(mp, buf, [0, len(buf)])
            with pytest.raises(yj.VerifyError, match=r"^row 1: "):
                verify_places(mp, places)
            with pytest.raises(yj.VerifyError, match=r"^row 0: "):
                verify_many(mp, buf, [0, len(buf) - short])
            with pytest.raises(yj.VerifyError):
                verify(mp, memoryview(buf)[:-short])
    # Long texts are read once: by where they are, and how long, which stands there.
    twice = banner(u32(2) + u32(8) + u32(9) + text(b"\1\0\0\0" * 100), tags=0)
    with pytest.raises(yj.VerifyError):
        verify(plan("Banner"), twice)


def test_error_texts_that_touch_the_broken_data() -> None:
    """A sentence has numbers, not the text; it holds no buffer, and is made when the error is."""
    secret = b"secret" * 20_000
    for buf in (
        flat_root(u32(6), then=text(secret + b"\xff")),
        flat_root(u32(6), then=u32(len(secret)) + secret),
        flat_root(u32(6), then=u32(2**32 - 1) + secret),
    ):
        with pytest.raises(yj.VerifyError) as caught:
            verify(plan("Geo"), buf)
        error = caught.value
        assert "secret" not in str(error) + repr(error)
        assert len(str(error)) < 200
        assert not any(isinstance(held, (bytes, memoryview)) for held in [*vars(error).values(), *error.args])
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_claims_in_nested_headers_that_together_exceed_the_input() -> None:
    """A part ends where the one around it does, not where the input does."""
    inner = b"\x0a\x09" + b"city"  # says 9 bytes, of which 4 are in the message around it
    message_type = yj.load_schema(TESTS / "schemas" / "verify.proto")["verify.Banner"]
    data = b"\x12" + bytes([len(inner)]) + inner + b"\x08\x01" * 10
    sentence = "verify.Banner, field geo.city: a size of 9 bytes, but 4 are left at byte 3"
    with pytest.raises(yj.VerifyError) as caught:
        message_type.verify_protobuf(data)
    assert str(caught.value) == sentence
    view = message_type.view_protobuf(data)
    with pytest.raises(yj.VerifyError) as met:
        view.geo.city  # noqa: B018
    assert str(met.value) == sentence
    with pytest.raises(yj.DecodeError):
        message_type.transcode([data])
    # In YaFF parts may overlap, and then what all of them claim is limited.
    tags = (
        u32(64) + b"".join(u32(4 * 64 + 8 * i) for i in range(64)) + (u32(4096) + u32(0)) * 64 + bytes(4096)
    )
    assert "texts overlap" in refusal("Banner", banner(tags, tags=0))
