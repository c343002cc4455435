"""What the verifiers say of damaged golden buffers: both the same, and whoever passes can be read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mutants import Seed, cuts, mutants, seeds, walk

from yaffjit.codec.decode import decode_at
from yaffjit.codec.verify import _loaded, verify
from yaffjit.codec.verify_plain import verify_plain
from yaffjit.errors import VerifyError, YaffjitError
from yaffjit.plan import MessagePlan
from yaffjit.view import to_dict, view_class

GROUPS = 16
# Bytes around a message that is read: what depends on them was read outside.
MARGIN = 64
JUNK = (b"\0", b"\xff", b"\x05")


@pytest.fixture(scope="module", autouse=True)
def _kernel() -> None:
    _loaded.load()


def group(number: int) -> tuple[Seed, ...]:
    return seeds()[number::GROUPS]


def verdict(check: Callable[[MessagePlan, bytes], bool], mp: MessagePlan, buf: bytes) -> bool | None:
    """Whether the keys of all maps ascend, None for a buffer that is refused."""
    try:
        return check(mp, buf)
    except VerifyError:
        return None


def outcome(read: Callable[[], Any]) -> str:
    """What a reader gives, in words that are equal where the bytes are (NaN too)."""
    try:
        return repr(read())
    except UnicodeDecodeError as error:
        return f"not UTF-8: {error.reason}"
    except YaffjitError as error:
        return f"{type(error).__name__}: {error.text}"


def readings(mp: MessagePlan, buf: bytes, junk: bytes) -> list[str]:
    """What each reader gives of a message amid junk."""
    data = junk * MARGIN + buf + junk * MARGIN
    at = MARGIN + int.from_bytes(buf[:4], "little")
    view = view_class(mp)(data, at)
    return [
        outcome(lambda: decode_at(mp, data, at).SerializePartialToString(deterministic=True)),
        outcome(lambda: walk(view)),
        outcome(lambda: to_dict(view)),
    ]


def check(mp: MessagePlan, buf: bytes, name: str) -> bool:
    """Whether both verifiers accept a buffer; reads it then."""
    found = verdict(verify, mp, buf)
    assert found is verdict(verify_plain, mp, buf), f"{name}, {mp.full_name}: {buf.hex()}"
    passes = found is not None
    if passes:
        first, *others = [readings(mp, buf, junk) for junk in JUNK]
        for other in others:
            assert first == other, f"{name}, {mp.full_name}: {buf.hex()}"
    return passes


@pytest.mark.parametrize("number", range(GROUPS))
def test_golden_buffers_pass(number: int) -> None:
    for seed in group(number):
        for mp in seed.plans:
            verify(mp, seed.buf)
            verify_plain(mp, seed.buf)


@pytest.mark.parametrize("number", range(GROUPS))
def test_cut_buffers(number: int) -> None:
    for seed in group(number):
        for mp in seed.plans:
            for buf in cuts(seed.buf):
                check(mp, buf, f"{seed.name} cut to {len(buf)} bytes")


@pytest.mark.parametrize("number", range(GROUPS))
def test_damaged_buffers(number: int) -> None:
    passed = refused = 0
    for seed in group(number):
        for mp in seed.plans:
            for buf in mutants(seed):
                if check(mp, buf, seed.name):
                    passed += 1
                else:
                    refused += 1
    assert passed > 50
    assert refused > 50
