"""Machine code on disk that isn't what was written, or of another function: it's never run."""

from __future__ import annotations

import os
import pickle
import signal
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jit_kinds
import numba
import pytest

from yaffjit.kernels import cache_files
from yaffjit.kernels.cache_files import DamagedCache, SealedFile, sealed, unsealed
from yaffjit.kernels.cached import cached

Made = Callable[[], Any]
CONTENT = {"plain_int32": 5, "text": "four"}


def doubled(number: Any) -> Any:
    return number + number


def of_view(m: Any) -> Any:
    return m.plain_int32, len(m.text)


def view(layout: str = "dynamic") -> Any:
    message_type = jit_kinds.message_type(layout)
    return message_type.view(message_type.encode(CONTENT))


# Of ours and of a user's: what makes a dispatcher that knows nothing but what is in the cache, two arguments
# of different types, and the result of each.
KINDS: dict[str, tuple[Made, tuple[Any, Any], tuple[Any, Any]]] = {
    "ours": (lambda: cached(doubled), (21, 0.75), (42, 1.5)),
    "users": (
        lambda: numba.njit(cache=True)(of_view),
        (view(), view("flat")),
        ((5, 4), (5, 4)),
    ),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


def called(kind: str, *which: int) -> tuple[int, int]:
    """Hits and misses of a new dispatcher, once its results are right."""
    make, arguments, results = KINDS[kind]
    dispatcher = make()
    for number in which or (0,):
        assert dispatcher(arguments[number]) == results[number]
    return sum(dispatcher.stats.cache_hits.values()), sum(dispatcher.stats.cache_misses.values())


def file(folder: Path, suffix: str) -> Path:
    (found,) = folder.rglob(f"*{suffix}")
    return found


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_flipped_bits(folder: Path, kind: str, suffix: str) -> None:
    """One in each byte is noticed before anything is unpickled; then the cache heals."""
    assert called(kind) == (0, 1)
    path = file(folder, suffix)
    content = path.read_bytes()
    assert unsealed(content) == content[: -len(cache_files.MARK) - cache_files.DIGEST_NBYTES]
    step = max(1, len(content) // 3000)
    for place in range(0, len(content), step):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        with pytest.raises(DamagedCache):
            unsealed(bytes(damaged))
    for place in (len(content) // 3, len(content) - 1):
        damaged = bytearray(path.read_bytes())
        damaged[place] ^= 16
        path.write_bytes(damaged)
        assert called(kind) == (0, 1)
        assert called(kind) == (1, 0)


@pytest.mark.parametrize("content", [b"", b"x" * 31, b"x" * 32, b"x" * 33, pickle.dumps("0.0.0")])
def test_what_was_never_sealed(content: bytes) -> None:
    with pytest.raises(DamagedCache, match=f"^a file of {len(content)} bytes isn't what was written$"):
        unsealed(content)
    assert unsealed(sealed(content)) == content


@pytest.mark.parametrize("kind", list(KINDS))
def test_two_that_take_one_name(folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes read the index before either has written it, so both call their file the first."""
    with monkeypatch.context() as patched:
        patched.setattr(SealedFile, "_load_index", lambda self: {})
        assert called(kind, 0) == (0, 1)
        assert called(kind, 1) == (0, 1)
    file(folder, ".nbc")  # there's one, of what came last
    assert called(kind, 1) == (1, 0)
    (index,) = folder.rglob("*.nbi")
    ours = index.read_bytes()
    # The other way round: the index is of the first, and the code of the second.
    with monkeypatch.context() as patched:
        patched.setattr(SealedFile, "_load_index", lambda self: {})
        patched.setattr(SealedFile, "_save_data", lambda *args: None)
        assert called(kind, 0) == (0, 1)
    assert index.read_bytes() != ours
    assert called(kind, 0) == (0, 1)
    assert called(kind, 0, 1) == (1, 1)
    assert called(kind, 0, 1) == (2, 0)


@pytest.mark.parametrize("kind", list(KINDS))
def test_killed_between_the_index_and_the_code(
    folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that the index names is of an older source, which the key doesn't tell."""
    assert called(kind) == (0, 1)
    make = KINDS[kind][0]
    real = make()._cache._impl.locator.__class__.get_source_stamp
    monkeypatch.setattr(
        make()._cache._impl.locator.__class__, "get_source_stamp", lambda self: ("later", real(self))
    )
    with monkeypatch.context() as patched:
        patched.setattr(SealedFile, "_save_data", lambda *args: None)
        assert called(kind) == (0, 1)
    assert called(kind) == (0, 1)
    assert called(kind) == (1, 0)


def test_recompiled_functions_are_not_found_again(folder: Path) -> None:
    make, (argument, _), _ = KINDS["users"]
    dispatcher = make()
    dispatcher(argument)
    assert called("users") == (1, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dispatcher.recompile()
    assert sum(dispatcher.stats.cache_hits.values()) == 0
    assert called("users") == (1, 0)


def test_numbas_own_entries_of_a_function_stay(folder: Path) -> None:
    """Whatever becomes of those with values of ours."""

    def calls() -> tuple[Any, int]:
        dispatcher = numba.njit(cache=True)(doubled)
        assert dispatcher(2) == 4
        return dispatcher, sum(dispatcher.stats.cache_hits.values())

    assert calls()[1] == 0
    assert called("users") == (0, 1)
    for found in folder.rglob("*.yaffjit.*"):
        found.write_bytes(b"")
    assert called("users") == (0, 1)
    assert calls()[1] == 1


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("kind", list(KINDS))
def test_processes_that_compile_at_once(folder: Path, kind: str) -> None:
    """Each has right results, and so has who comes after them."""
    for _ in range(2):
        start, go = os.pipe()
        children = []
        for number in range(4):
            child = os.fork()
            if not child:  # no assertion may leave this process by pytest's way
                status = 1
                try:
                    signal.alarm(60)
                    os.close(go)
                    os.read(start, 1)
                    called(kind, number % 2, 1 - number % 2)
                    status = 0
                finally:
                    os._exit(status)
            children.append(child)
        os.close(start)
        os.close(go)
        assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
        hits, misses = called(kind, 0, 1)
        assert hits + misses == 2
        assert called(kind, 0, 1) == (2, 0)
        for found in folder.rglob("*.nbc"):
            found.unlink()
