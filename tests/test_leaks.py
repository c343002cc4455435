"""What passes between Python and jitted code leaves nothing; `python -m tests.leak_campaign` is the whole."""

from __future__ import annotations

import ctypes
import mmap
from pathlib import Path
from typing import Any

import leak_campaign
import pytest
from leak_campaign import Leak, Work
from numba.core.runtime import _nrt_python

pytestmark = pytest.mark.slow

CALLS = 500_000  # of 10,000,000


def test_calls(tmp_path: Path) -> None:
    assert leak_campaign.run(CALLS, tmp_path) >= CALLS


def touched() -> None:
    """Memory that nobody counts but the system."""
    ctypes.memset(libc.mmap(None, 32_768, mmap.PROT_READ | mmap.PROT_WRITE, PRIVATE, -1, 0), 1, 32_768)


libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long
PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
kept: list[Any] = []
counted = object()


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda: kept.append(1e9 + len(kept)), "blocks"),
        (lambda: kept.append([]), "objects"),
        (lambda: kept.append(counted), "references to 0 (object)"),
        (lambda: _nrt_python.meminfo_new(1, counted), "references to 0 (object)"),
        (lambda: _nrt_python.meminfo_new(1, None), "records of numba"),
        (touched, "resident bytes"),
    ],
)
def test_leaks_are_found(call: Any, what: str) -> None:
    _nrt_python.memsys_enable_stats()
    with pytest.raises(Leak) as caught:
        leak_campaign.check(Work("work", call), [counted], 100)
    kept.clear()
    assert str(caught.value).startswith("work: after 100 calls ")
    assert f" {what} (" in str(caught.value)


def test_works_that_raise_nothing_are_noticed() -> None:
    with pytest.raises(AssertionError, match=r"^work: 100 of 100 calls raised nothing$"):
        leak_campaign.repeat(Work("work", list, ValueError), 100)
