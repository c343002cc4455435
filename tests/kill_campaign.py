"""Kills writers of indexes at random moments, and at each of their steps: the old or the new is found.

Each writer is a fork of this process, so that it has nothing to import. The whole campaign::

    python -m tests.kill_campaign [--kills 200] [--seed N]
"""

from __future__ import annotations

import argparse
import os
import random
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaffjit as yj
from yaffjit.index.manifest import read_manifest

SOURCE = 'syntax = "proto3"; package k; message Row { int64 id = 1; string name = 2; }'
# What a writer does to files, before and after each of which it may be killed.
STEPS = ("open", "fsync", "replace", "link", "unlink", "mkdir", "pwrite", "ftruncate", "close", "rmdir")
OPERATIONS = ("file", "keyless", "build", "append", "adopt", "keys")
KEYS = ("id", "name")
MOST_PARTS = 10  # then the directory begins anew, so that to look at it stays quick
FEW_PARTS = 2  # likewise where a writer's steps are counted, of which each part that is there adds some


class Campaign:
    """One folder with an index file and a directory, and what is in them.

    Attributes:
        killed: how many writers were killed before they were done, by operation.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        source = folder / "k.proto"
        source.write_text(SOURCE)
        self.message_type = yj.load_schema(source)["k.Row"]
        self.file, self.directory, self.more = folder / "x.arrow", folder / "rows", folder / "more.arrow"
        self.next_id = 0
        self.killed = dict.fromkeys(OPERATIONS, 0)
        yj.build_index(self.file, self.message_type, self._rows(self._ids(3)), key="name")
        yj.build_index(self.directory, self.message_type, self._rows(self._ids(3)), part_rows=2, key="name")
        # All that is compiled for it, is compiled here and not by each child.
        yj.append_index(self.directory, self._rows(self._ids(1)))
        yj.build_keys(self.directory, "id")
        yj.append_index(self.directory, self._rows(self._ids(1)))
        self._seconds = {operation: self._usual_seconds(operation) for operation in OPERATIONS}

    def at_random(self, operation: str, rng: random.Random) -> None:
        """Kill a writer at a random moment; the longer it takes, the later that may be."""
        work, outcomes = self._prepared(operation)
        seconds = rng.uniform(0, 1.2 * self._seconds[operation])
        child = os.fork()
        if child == 0:
            _run(work)
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        self._ended(operation, child, outcomes)

    def at_step(self, operation: str, step: int) -> bool:
        """Kill a writer at one of its steps; False if it was done before."""
        self._renew(FEW_PARTS)
        work, outcomes = self._prepared(operation)
        child = os.fork()
        if child == 0:
            _kill_at(step)
            _run(work)
        return self._ended(operation, child, outcomes)

    def check_cleaned(self) -> None:
        """What killed writers left is gone once another one has written."""
        work, outcomes = self._prepared("append")
        work()
        assert self._found() in outcomes[1:]
        work, outcomes = self._prepared("file")
        work()
        assert self._found() in outcomes[1:]
        parts = [part.path for part in yj.open_index(self.directory).parts]
        entries = read_manifest(str(self.directory)).parts
        tables = [f"{self.directory}/{entry.keys}" for entry in entries]
        found = sorted(str(path) for path in self.directory.iterdir())
        named = [f"{self.directory}/.lock", f"{self.directory}/manifest.json", *parts, *tables]
        assert found == sorted(named), found
        left = [path.name for path in (*self.folder.glob(".*"), *self.folder.glob("*.new.*"))]
        assert left == [], left

    def _renew(self, parts: int) -> None:
        """Begin the directory anew if it has more parts."""
        if len(read_manifest(str(self.directory)).parts) > parts:
            rows = self._rows(self._ids(3))
            key = yj.open_index_unchecked(self.directory).key
            yj.build_index(self.directory, self.message_type, rows, part_rows=2, key=key)

    def _ids(self, count: int) -> list[int]:
        self.next_id += count
        return list(range(self.next_id - count, self.next_id))

    def _rows(self, ids: list[int]) -> Iterator[dict[str, Any]]:
        return ({"id": number, "name": f"{number:2000}"} for number in ids)

    def _prepared(self, operation: str) -> tuple[Callable[[], object], tuple[Any, ...]]:
        """What a writer does, and what may be found: as before, and as after."""
        self._renew(MOST_PARTS)
        if operation == "keyless":
            yj.build_index(self.file, self.message_type, self._rows(self._ids(3)), key="name")
        before = self._found()
        in_file, file_key, in_directory, in_more, key = before
        ids = self._ids(5)
        if operation in ("file", "keyless"):
            new_key = None if operation == "keyless" else "name"
            work: Any = lambda: yj.build_index(self.file, self.message_type, self._rows(ids), key=new_key)  # noqa: E731
            return work, (before, (ids, new_key, in_directory, in_more, key))
        if operation == "build":
            options = {"part_rows": 2, "key": key}
            work = lambda: yj.build_index(self.directory, self.message_type, self._rows(ids), **options)  # noqa: E731
            return work, (before, (in_file, file_key, ids, in_more, key))
        if operation == "keys":
            other = KEYS[KEYS.index(key) - 1]
            work = lambda: yj.build_keys(self.directory, other)  # noqa: E731
            return work, (before, (in_file, file_key, in_directory, in_more, other))
        if operation == "append":
            work = lambda: yj.append_index(self.directory, self._rows(ids), part_rows=3)  # noqa: E731
            return work, (before, (in_file, file_key, in_directory + ids, in_more, key))
        yj.build_index(self.more, self.message_type, self._rows(ids))
        work = lambda: yj.adopt_index(self.directory, self.more)  # noqa: E731
        # In the end its old name goes, when it is in the directory already.
        grown = in_directory + ids
        outcomes = ((in_directory, ids), (grown, []), (grown, ids))
        return work, tuple((in_file, file_key, *outcome, key) for outcome in outcomes)

    def _found(self) -> tuple[list[int], str | None, list[int], list[int], str]:
        """The file's messages and key, those of the directory and the file to adopt, the directory's key."""
        paths = (self.file, self.directory, self.more)
        found = [_ids_in(path) if path.exists() else [] for path in paths]
        keys = [yj.open_index_unchecked(path).key for path in paths[:2]]
        return found[0], keys[0], found[1], found[2], keys[1] or ""

    def _usual_seconds(self, operation: str) -> float:
        """How long a writer takes that isn't killed."""
        work, outcomes = self._prepared(operation)
        begin = time.perf_counter()
        child = os.fork()
        if child == 0:
            _run(work)
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        seconds = time.perf_counter() - begin
        assert not self._ended(operation, child, outcomes)
        return seconds

    def _ended(self, operation: str, child: int, outcomes: tuple[Any, ...]) -> bool:
        _, status = os.waitpid(child, 0)
        was_killed = os.WIFSIGNALED(status)
        assert was_killed or os.WEXITSTATUS(status) == 0, f"{operation} failed, which wasn't killed"
        found = self._found()
        assert found in (outcomes if was_killed else outcomes[1:]), f"{operation}: {found} of {outcomes}"
        self.more.unlink(missing_ok=True)
        self.killed[operation] += was_killed
        return was_killed


def _ids_in(path: Path) -> list[int]:
    """The messages of an index, each of which is found by its key if there are keys."""
    index = yj.open_index(path)
    ids = [view.id for view in index]
    if index.key is not None:
        keys = ids if index.key == "id" else [f"{number:2000}" for number in ids]
        assert index.rows(keys).tolist() == list(range(len(ids)))
    return ids


def _run(work: Callable[[], object]) -> None:
    """In the child: work, and end without whatever the parent does at its end."""
    try:
        work()
    except BaseException as error:
        os.write(2, f"{error!r}\n".encode())
        os._exit(1)
    os._exit(0)


def _kill_at(step: int) -> None:
    """In the child: have it killed before or after something that it does to files."""
    left = step

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            nonlocal left
            for moment in range(2):
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1
                if moment == 0:
                    result = real(*args, **options)
            return result

        return call

    for name in STEPS:
        setattr(os, name, counted(getattr(os, name)))


def run(kills: int, seed: int, folder: Path) -> dict[str, int]:
    """Kill so many writers at random moments; returns how many were still at work, by operation."""
    rng = random.Random(seed)
    campaign = Campaign(folder)
    for number in range(kills):
        campaign.at_random(OPERATIONS[number % len(OPERATIONS)], rng)
        if number % 20 == 19:
            campaign.check_cleaned()
    campaign.check_cleaned()
    return campaign.killed


def steps_of(operation: str, folder: Path, first: int = 0, stride: int = 1) -> int:
    """Kill a writer at each of its steps, or at every so many; returns how many there are."""
    campaign = Campaign(folder)
    step = first
    while campaign.at_step(operation, step):
        step += stride
    campaign.check_cleaned()
    return step


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kill_campaign", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="at random moments (default: 200)")
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    parsed = parser.parse_args()
    print(f"seed {parsed.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="yaffjit-kills-") as name:
        folder = Path(name) / "random"
        folder.mkdir()
        killed = run(parsed.kills, parsed.seed, folder)
        told = ", ".join(f"{operation} {count}" for operation, count in killed.items())
        print(f"{parsed.kills} writers at random moments, of which killed before they were done: {told}")
        for operation in OPERATIONS:
            folder = Path(name) / operation
            folder.mkdir()
            print(f"{operation}: killed at each of {steps_of(operation, folder)} steps")
    print("each left the old or the new, whole")
    return 0


if __name__ == "__main__":
    sys.exit(main())
