"""Our functions in numba's disk cache: one that is full, damaged or absent costs time, and nothing else."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import pytest
from cache_copy import copy_kernels
from vectors import TESTS

from yaffjit.kernels.cached import cached
from yaffjit.kernels.verify import Kernel

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "truncated": lambda data: data[: len(data) // 2],
    "without its last byte": lambda data: data[:-1],
    "garbage": lambda data: b"\x7f" * len(data),
    "text": lambda data: b"version https://example.org\n",
}


def doubled(number: int) -> int:
    return 2 * number


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: Any) -> Path:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def small_files() -> Iterator[None]:
    """Stands in for a full disk: writing a file beyond the limit fails in the same way."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def hits_and_misses() -> tuple[int, int]:
    """Of a new dispatcher, which knows nothing but what is in the cache."""
    dispatcher = cached(doubled)
    assert dispatcher(21) == 42
    return sum(dispatcher.stats.cache_hits.values()), sum(dispatcher.stats.cache_misses.values())


def files(folder: Path, suffix: str) -> list[Path]:
    return sorted(folder.rglob(f"*{suffix}"))


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("damage", list(DAMAGES))
def test_a_damaged_cache_heals(folder: Path, suffix: str, damage: str) -> None:
    assert hits_and_misses() == (0, 1)
    assert hits_and_misses() == (1, 0)
    (file,) = files(folder, suffix)
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    assert hits_and_misses() == (0, 1)
    assert hits_and_misses() == (1, 0)


def test_a_full_disk(folder: Path, small_files: None) -> None:
    assert hits_and_misses() == (0, 1)
    assert files(folder, ".nbc") == []


def test_a_full_disk_and_a_damaged_cache(folder: Path, request: pytest.FixtureRequest) -> None:
    assert hits_and_misses() == (0, 1)
    for file in [*files(folder, ".nbi"), *files(folder, ".nbc")]:
        file.write_bytes(b"\x7f")
    request.getfixturevalue("small_files")
    assert hits_and_misses() == (0, 1)


def test_a_cache_that_is_a_folder_of_folders(folder: Path) -> None:
    assert hits_and_misses() == (0, 1)
    for file in [*files(folder, ".nbi"), *files(folder, ".nbc")]:
        file.unlink()
        file.mkdir()
    assert hits_and_misses() == (0, 1)


def test_no_folder(monkeypatch: Any) -> None:
    def nowhere(*args: Any) -> Any:
        raise RuntimeError("no locator available")

    monkeypatch.setattr("yaffjit.kernels.cached._LenientCache", nowhere)
    assert hits_and_misses() == (0, 1)
    assert hits_and_misses() == (0, 1)


READING = f"""
import resource, sys
import yaffjit as yj
from yaffjit.codec.verify import _loaded
message_type = yj.load_schema({str(TESTS / "schemas" / "columns.proto")!r})["columns.Row"]
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
_loaded.load()
columns = yj.records(message_type, [message_type.encode({{"id": 3, "first": 0}})]).columns("id")
assert columns["id"].tolist() == [3]
assert columns.present("first").tolist() == [True]
"""


@pytest.mark.slow
def test_reading_survives_all_of_these(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(TESTS.parent), "NUMBA_CACHE_DIR": str(tmp_path)}

    def read(limit: int) -> None:
        command = [sys.executable, "-c", READING, str(limit)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")

    # Compiled where all tests find it, and copied.
    Kernel()
    copy_kernels(tmp_path)
    read(1 << 30)
    assert len(files(tmp_path, ".nbc")) >= 3
    for file in [*files(tmp_path, ".nbi"), *files(tmp_path, ".nbc")]:
        file.write_bytes(file.read_bytes()[:-1])
    read(2000)
