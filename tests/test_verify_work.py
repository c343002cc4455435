"""How much the verifier reads: UTF-8, shared texts and subtrees, and limits that no honest buffer meets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mutants import seeds
from verify_buffers import (
    banner,
    doubling,
    flat,
    flat_root,
    plan,
    root,
    shared_texts,
    slots,
    text,
    u16,
    u32,
)

import yaffjit
from yaffjit.codec import verify_plain as plain
from yaffjit.codec.verify import _loaded, _request, verify
from yaffjit.codec.verify_plain import verify_plain
from yaffjit.errors import VerifyError
from yaffjit.plan import MessagePlan, tables

ZERO = u32(0)


@pytest.fixture(scope="module", autouse=True)
def kernel() -> Any:
    _loaded.load()
    return _loaded.kernel


# UTF-8

UTF8_ENDS = [
    b"\x80",
    b"\xbf",
    b"\xc0\x80",
    b"\xc1\xbf",
    b"\xc2",
    b"\xc2\x7f",
    b"\xc2\xc0",
    b"\xe0\x9f\x80",
    b"\xe0\xa0",
    b"\xe1\x80\x7f",
    b"\xed\xa0\x80",
    b"\xed\xbf\xbf",
    b"\xf0\x8f\x80\x80",
    b"\xf0\x90\x80",
    b"\xf4\x90\x80\x80",
    b"\xf5\x80\x80\x80",
    b"\xff",
    b"\xef\xbf\xc0",
    b"\xf1\x80\x80\xc0",
    b"\xc2\x80",
    b"\xdf\xbf",
    b"\xe0\xa0\x80",
    b"\xed\x9f\xbf",
    b"\xee\x80\x80",
    b"\xef\xbf\xbf",
    b"\xf0\x90\x80\x80",
    b"\xf4\x8f\xbf\xbf",
    b"\x7f",
    b"\0",
]


@pytest.mark.parametrize("before", [0, 1, 3, 7, 8, 9, 15])
@pytest.mark.parametrize("behind", [0, 1, 5, 8, 17])
def test_utf8_is_pythons(kernel: Any, before: int, behind: int) -> None:
    mp = plan("Geo")
    request = _request(mp, True).address
    for sequence in UTF8_ENDS:
        value = b"a" * before + sequence + b"z" * behind
        try:
            value.decode()
        except UnicodeDecodeError:
            valid = False
        else:
            valid = True
        buf = flat_root(u32(6), then=text(value))
        assert bool(kernel.check_one(buf, request)) == valid, value
        if not valid:
            with pytest.raises(VerifyError, match="text isn't UTF-8"):
                verify(mp, buf)
            verify(mp, buf, utf8=False)


def test_every_pair_of_bytes_is_utf8_as_in_python(kernel: Any) -> None:
    request = _request(plan("Geo"), True).address
    for first in range(256):
        for second in range(256):
            value = bytes([first, second])
            valid = value.decode(errors="replace").encode() == value
            assert bool(kernel.check_one(flat_root(u32(6), then=text(value)), request)) == valid, value


@pytest.mark.parametrize("utf8", [True, False])
def test_texts_wherever_they_end(kernel: Any, utf8: bool) -> None:
    """Short texts are looked at 64 bytes at a time, from their begin or up to the end of the buffer."""
    mp = plan("Geo")
    request = _request(mp, utf8).address
    for length in (0, 1, 7, 8, 31, 32, 61, 62, 63, 64, 65, 66, 128, 200):
        for behind in (0, 1, 2, 30, 31, 58, 59, 60, 61, 62, 63, 64, 65, 130):
            # 0xFF around the text isn't its own; the first byte behind it ends it.
            buf = bytearray(flat_root(u32(8), then=b"\xff\xff" + text(b"a" * length) + b"\xff" * behind))
            first = len(buf) - behind - 1 - length
            assert kernel.check_one(bytes(buf), request), (length, behind)
            for at in {0, length // 2, length - 1} - {-1}:
                wrong = buf[:]
                if length:
                    wrong[first + at] = 0xFF
                assert bool(kernel.check_one(bytes(wrong), request)) == (not utf8 or not length), (length, at)
            for change in (-1, 1, 64, 2**31):
                wrong = buf[:]
                wrong[first - 4 : first] = u32(max(length + change, 0))
                expected = True
                try:
                    verify_plain(mp, bytes(wrong), utf8)
                except VerifyError:
                    expected = False
                assert bool(kernel.check_one(bytes(wrong), request)) == expected, (length, behind, change)


# Work


def test_shared_subtrees_are_read_only_so_often(kernel: Any) -> None:
    mp = plan("Tree")
    buf = doubling(50)
    limit = 8 * len(buf)
    for check in (verify, verify_plain):
        with pytest.raises(VerifyError) as caught:
            check(mp, buf)
        sentence = str(caught.value)
        assert (
            f": parts are shared too often: {limit + 1} steps to read it all (at most {limit}) at byte "
            in sentence
        )
    assert not kernel.check_one(buf, _request(mp, True).address)


def test_one_step_less_is_enough(kernel: Any) -> None:
    """The limit is exact, and the same for both verifiers."""
    mp = plan("Tree")
    request = _request(mp, True).address
    for paths in range(1, 200):
        for filler in (0, 1, 2, 3):
            # An array of offsets that all lead to one chain of trees.
            trees = b"\x02" + u16(0x800A) + u32(7) + b"\x02" + u16(0x800A) + u32(6) + u16(0x8000)
            kids = u32(paths) + b"".join([u32(4 * paths + 1)] * paths)
            buf = flat_root(*slots(0, 0, 0, 0, 22), then=kids + trees + bytes(filler))
            steps = 1 + 1 + 3 * paths
            accepted = steps <= 8 * len(buf)
            assert bool(kernel.check_one(buf, request)) == accepted
            if accepted:
                verify_plain(mp, buf)
            else:
                with pytest.raises(VerifyError, match="parts are shared too often"):
                    verify_plain(mp, buf)


def test_arrays_of_arrays_end_soon(kernel: Any) -> None:
    """Eight levels of arrays whose 64 elements are all the next array's message: 2**48 messages."""
    count = 64
    made = u16(0x8000)
    for _ in range(8):
        # The root's own size bits are those of all: ids 1 to 5, of 4 bytes.
        kids = u32(count) + u32(4 * count + 2) * count
        made = flat(*slots(0, 0, 0, 0, 22))[1] + kids + flat(*slots(0, 0, 0, 0, 22))[0] + made
    buf = root(flat(*slots(0, 0, 0, 0, 22))[0], made)
    with pytest.raises(VerifyError, match="parts are shared too often"):
        verify(plan("Tree"), buf)


def test_wide_messages_cost_more_steps() -> None:
    assert [plain.step_cost(count) for count in (0, 15, 16, 160, 512, 8190)] == [1, 1, 2, 11, 33, 33]
    assert [plain.step_cost(count) for count in range(600)] == [
        tables.step_cost(count) for count in range(600)
    ]


def steps_of(mp: MessagePlan, buf: bytes) -> int:
    check = plain._Check(mp, buf, True)
    check.root()
    return check.steps


def test_honest_buffers_take_few_steps(kernel: Any) -> None:
    for seed in seeds():
        for mp in seed.plans:
            assert steps_of(mp, seed.buf) <= len(seed.buf), seed.name


def test_small_messages_of_a_wide_type(kernel: Any, tmp_path: Path) -> None:
    """The most steps a byte that a writer can make necessary: one flag in each, of 600."""
    fields = "".join(f"bool f{id} = {id};" for id in range(1, 601))
    source = f'syntax = "proto3"; message Wide {{ {fields} }} message Many {{ repeated Wide all = 1; }}'
    (tmp_path / "wide.proto").write_text(source)
    many = yaffjit.load_schema(tmp_path / "wide.proto")["Many"]
    buf = many.encode({"all": [{"f600": True}] * 2000}, layout="sparse")
    assert 1.5 < steps_of(many.plan, buf) / len(buf) <= 3
    assert kernel.check_one(buf, _request(many.plan, True).address)


def test_long_texts_may_be_shared(kernel: Any) -> None:
    """More than the kernel reads without a memo: 20,000 tags of 5,000 bytes, in 85 KB."""
    mp = plan("Banner")
    for buf in (shared_texts(5000, 20000), shared_texts(300, 2000, 50), shared_texts(256, 700, 3)):
        assert not kernel.check_one(buf, _request(mp, True).address)
        assert kernel.check_one(buf, _request(mp, False).address)
        verify_plain(mp, buf)
        verify(mp, buf)
        verify(mp, memoryview(buf))


def test_short_texts_may_be_shared(kernel: Any) -> None:
    buf = shared_texts(255, 20000)
    assert kernel.check_one(buf, _request(plan("Banner"), True).address)
    verify_plain(plan("Banner"), buf)


def test_texts_that_overlap_are_read_only_so_often(kernel: Any) -> None:
    """2,000 texts of 4,096 bytes, of which each begins 8 bytes behind the one before."""
    mp = plan("Banner")
    count = 2000
    tags = u32(count) + b"".join(u32(4 * count + 8 * i) for i in range(count))
    buf = banner(tags + (u32(4096) + ZERO) * count + bytes(4096), tags=0)
    limit = 8 * len(buf)
    with pytest.raises(VerifyError) as caught:
        verify(mp, buf)
    assert f": texts overlap: they have {caught.value.found} bytes (at most {limit}) at byte " in str(
        caught.value
    )
    assert caught.value.path.startswith("tags[")
    assert not kernel.check_one(buf, _request(mp, True).address)
    verify(mp, buf, utf8=False)
