"""How the verifier is called: kinds of buffers, many rows, first calls without numba, numba's disk cache."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from verify_buffers import GOOD_GEO as GOOD
from verify_buffers import flat_root, plan, shared_texts, text, u32

from yaffjit.codec.verify import _loaded, verify, verify_many, verify_places
from yaffjit.errors import VerifyError, YaffjitError

ROOT = Path(__file__).resolve().parents[1]
BAD = GOOD[:-1]
NOT_UTF8 = flat_root(u32(6), then=text(b"Osl\xff"))
SENTENCE = (
    "verify.Geo, field city: terminator of 1 byte runs past the end of the buffer (19 bytes) at byte 19"
)


@pytest.fixture(params=["plain", "kernel"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of verifying."""
    _loaded.load()
    if request.param == "plain":
        monkeypatch.setattr(_loaded, "kernel", None)
        monkeypatch.setattr(_loaded, "check_one", None)
        monkeypatch.setattr(_loaded, "load", lambda: None)
    return str(request.param)


def joined(*rows: bytes) -> tuple[bytes, np.ndarray[Any, Any]]:
    return b"".join(rows), np.cumsum([0, *map(len, rows)])


def as_mmap(data: bytes, folder: Path) -> mmap.mmap:
    path = folder / f"{len(list(folder.iterdir()))}"
    path.write_bytes(data)
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


KINDS = {
    "bytes": lambda data, folder: data,
    "bytearray": lambda data, folder: bytearray(data),
    "memoryview": lambda data, folder: memoryview(data),
    "slice of a memoryview": lambda data, folder: memoryview(b"xx" + data + b"x")[2:-1],
    "mmap": as_mmap,
    "numpy": lambda data, folder: np.frombuffer(data, np.uint8),
    "numpy of int8": lambda data, folder: np.frombuffer(data, np.int8),
    "numpy in two dimensions": lambda data, folder: np.frombuffer(data, np.uint8).reshape(1, -1),
    "pyarrow": lambda data, folder: pa.py_buffer(data),
}


@pytest.mark.parametrize("size", [0, 100_000])
@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_buffers(kind: str, size: int, path: str, tmp_path: Path) -> None:
    mp = plan("Geo")
    buf = KINDS[kind](GOOD + bytes(size), tmp_path)
    verify(mp, buf)
    bad = flat_root(u32(2**20), then=bytes(size))
    with pytest.raises(VerifyError, match="field city: length of 4 bytes runs past the end of the buffer"):
        verify(mp, KINDS[kind](bad, tmp_path))
    verify_many(mp, buf, [0, len(GOOD)])
    if size:
        verify_many(mp, buf, [0, len(GOOD + bytes(size))])


def test_what_is_no_buffer(path: str) -> None:
    mp = plan("Geo")
    with pytest.raises(TypeError, match="a bytes-like object is required, not 'str'"):
        verify(mp, "text")
    with pytest.raises(ValueError, match=r"^the buffer isn't contiguous: shape \(10,\), strides \(2,\)$"):
        verify(mp, memoryview(GOOD)[::2])
    with pytest.raises(ValueError, match="isn't contiguous"):
        verify_many(mp, np.zeros((4, 4), np.uint8).T, [0, 4])


def test_empty_buffers(path: str) -> None:
    for empty in (b"", bytearray(), memoryview(b""), np.empty(0, np.uint8), np.empty((0, 3), np.uint8)):
        with pytest.raises(
            VerifyError, match=r"root offset of 4 bytes runs past the end of the buffer \(0 bytes\)"
        ):
            verify(plan("Geo"), empty)
        verify_many(plan("Geo"), empty, [0])


def test_utf8_is_an_option(path: str) -> None:
    mp = plan("Geo")
    data, offsets = joined(GOOD, NOT_UTF8)
    verify(mp, NOT_UTF8, utf8=False)
    verify_many(mp, data, offsets, utf8=False)
    with pytest.raises(VerifyError, match="text isn't UTF-8: byte 0xff at byte 18"):
        verify(mp, NOT_UTF8)
    with pytest.raises(
        VerifyError, match=r"^row 1: verify.Geo, field city: text isn't UTF-8: byte 0xff at byte 18$"
    ):
        verify_many(mp, data, offsets)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint64])
def test_rows(path: str, dtype: Any) -> None:
    mp = plan("Geo")
    data, offsets = joined(*[GOOD] * 50)
    verify_many(mp, data, offsets.astype(dtype))
    verify_many(mp, data, list(offsets))
    verify_many(mp, data, offsets[20:40])
    verify_many(mp, data, offsets[:1])
    data, offsets = joined(*[GOOD] * 30, BAD, GOOD, BAD)
    with pytest.raises(VerifyError) as caught:
        verify_many(mp, data, offsets.astype(dtype), first_row=1000)
    assert str(caught.value) == f"row 1030: {SENTENCE}"
    assert caught.value.row == 1030
    verify_many(mp, data, offsets[:31])


def test_offsets_are_checked(path: str) -> None:
    mp = plan("Geo")
    size = len(GOOD)
    for offsets, sentence in (
        ([-1, size], "row 0: verify.Geo: offset -1 (at least 0)"),
        ([0, size, size - 1], f"row 1: verify.Geo: offsets go from {size} down to {size - 1}"),
        (
            [0, size, 3 * size],
            f"row 1: verify.Geo: offset {3 * size} is past the end of the data ({2 * size} bytes)",
        ),
        ([0, 2**62], f"row 0: verify.Geo: offset {2**62} is past the end of the data ({2 * size} bytes)"),
        (
            [2**62, 2**62 + 4],
            f"row 0: verify.Geo: offset {2**62 + 4} is past the end of the data ({2 * size} bytes)",
        ),
        (
            [0, size, size + 3],
            "row 1: verify.Geo: root offset of 4 bytes runs past the end of the buffer (3 bytes) at byte 0",
        ),
        (
            [0, 0],
            "row 0: verify.Geo: root offset of 4 bytes runs past the end of the buffer (0 bytes) at byte 0",
        ),
    ):
        with pytest.raises(VerifyError) as caught:
            verify_many(mp, GOOD + GOOD, offsets)
        assert str(caught.value) == sentence
    for wrong in ([], [[0, size]], [0.0, 20.0], np.array(7)):
        with pytest.raises(ValueError, match=r"^offsets are integers in one dimension, not "):
            verify_many(mp, GOOD, wrong)


def test_progress_counts_all_rows(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yaffjit.codec.verify._CALL_ROWS", 30)
    data, offsets = joined(*[GOOD] * 100)
    told: list[int] = []
    verify_many(plan("Geo"), data, offsets, progress=told.append)
    assert sum(told) == 100
    if path == "kernel":
        assert told == [30, 30, 30, 10]


def test_rows_that_share_long_texts(path: str) -> None:
    """The kernel alone refuses them; the rows around them are checked as well."""
    mp = plan("Banner")
    shared = shared_texts(300, 2000)
    told: list[int] = []
    data, offsets = joined(shared, shared, shared)
    verify_many(mp, data, offsets, progress=told.append)
    assert sum(told) == 3
    data, offsets = joined(shared, shared, shared[:-1])
    with pytest.raises(VerifyError, match=r"^row 2: verify.Banner, field tags\[0\]: terminator"):
        verify_many(mp, data, offsets)


def test_messages_that_lie_anywhere(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As rows of one buffer, but rows without a message are passed over."""
    monkeypatch.setattr("yaffjit.codec.verify._CALL_ROWS", 30)
    mp = plan("Geo")
    held = [np.frombuffer(buf, np.uint8) for buf in (GOOD, b"", BAD, NOT_UTF8, GOOD + b"behind it")]
    good, empty, bad, not_utf8, longer = ([array.ctypes.data, array.size] for array in held)
    null = [0, 0]

    def places(*rows: list[int]) -> np.ndarray[Any, Any]:
        return np.array(rows, np.int64).reshape(len(rows), 2)

    told: list[int] = []
    verify_places(mp, places(*[good, null, longer, null] * 10), progress=told.append)
    assert sum(told) == 40
    verify_places(mp, places())
    verify_places(mp, places(*[null] * 3))
    verify_places(mp, places(good, not_utf8), utf8=False)
    for row, sentence in (
        (bad, SENTENCE),
        (not_utf8, "verify.Geo, field city: text isn't UTF-8: byte 0xff at byte 18"),
        (empty, "verify.Geo: root offset of 4 bytes runs past the end of the buffer (0 bytes) at byte 0"),
    ):
        rows = places(*[good] * 40, null, row, good, bad)
        with pytest.raises(VerifyError) as caught:
            verify_places(mp, rows, first_row=1000)
        assert str(caught.value) == f"row 1041: {sentence}"
        assert caught.value.row == 1041


def test_disagreement_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing:
        def check_one(self, buf: bytes, request: int) -> bool:
            return False

    monkeypatch.setattr(_loaded, "kernel", Refusing())
    monkeypatch.setattr(_loaded, "check_one", Refusing().check_one)
    with pytest.raises(YaffjitError) as caught:
        verify(plan("Geo"), GOOD)
    assert str(caught.value) == (
        "verify.Geo: the compiled verifier refuses a buffer of 20 bytes "
        "in which the plain one finds nothing wrong; this is a bug of yaffjit"
    )


# Processes of their own


def python(code: str, **environment: str) -> str:
    """What a new process prints."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    process = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.strip()


FIRST_CALLS = """
import sys
from verify_buffers import GOOD_GEO, plan
from yaffjit.codec import verify as module
from yaffjit.errors import VerifyError
mp = plan("Geo")
for _ in range(module.PLAIN_MESSAGES - 2):
    module.verify(mp, GOOD_GEO)
try:
    module.verify(mp, GOOD_GEO[:-1])
except VerifyError as error:
    print(error)
module.verify_many(mp, GOOD_GEO, [0, len(GOOD_GEO)])
print("numba" in sys.modules)
module.verify(mp, GOOD_GEO)
print("numba" in sys.modules, module._loaded.kernel is not None)
"""


def test_small_first_calls_do_without_numba() -> None:
    assert python(FIRST_CALLS).splitlines() == [SENTENCE, "False", "True True"]


def test_much_data_loads_the_kernel() -> None:
    code = """
from verify_buffers import GOOD_GEO, plan
from yaffjit.codec import verify as module
module.verify(plan("Geo"), GOOD_GEO + bytes(module.PLAIN_BYTES))
print(module._loaded.kernel is not None)
"""
    assert python(code) == "True"


def test_without_jit_the_plain_verifier_goes_on() -> None:
    code = """
from verify_buffers import GOOD_GEO, plan
from yaffjit.codec import verify as module
module._loaded.load()
print(module._loaded.kernel)
for _ in range(300):
    module.verify(plan("Geo"), GOOD_GEO)
"""
    assert python(code, NUMBA_DISABLE_JIT="1") == "None"


def test_no_folder_for_the_cache() -> None:
    """numba refuses to cache a function whose source it has no place beside; it's compiled all the same."""
    from numba import int64, njit

    from yaffjit.kernels.verify import _compiled

    names: dict[str, Any] = {}
    exec("def double(x): return 2 * x", names)
    with pytest.raises(RuntimeError, match="no locator available"):
        njit(int64(int64), cache=True)(names["double"])
    assert _compiled(names["double"], int64(int64), nogil=False)(21) == 42
