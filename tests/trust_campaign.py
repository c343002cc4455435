"""Whether a buffer that `verify` accepts can make any reader of ours leave it: millions of damaged buffers.

Each lies between two pages that can't be read, in processes of their own; one that crashes is said with the
number of its mutant, and read again alone. The whole campaign::

    python tests/trust_campaign.py [--mutants 5000000] [--seed N] [--jobs 2]
    python tests/trust_campaign.py --seed N --replay NUMBER
"""

from __future__ import annotations

import argparse
import ctypes
import json
import mmap
import os
import random
import secrets
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent
for folder in (str(TESTS), str(TESTS.parent)):  # as in pytest
    if folder not in sys.path:
        sys.path.insert(0, folder)

import numpy as np  # noqa: E402
from trust_arena import Arena  # noqa: E402
from trust_mutator import mutants  # noqa: E402
from trust_readers import Readers  # noqa: E402
from trust_seeds import Family, makers  # noqa: E402

import yaffjit as yj  # noqa: E402
from yaffjit.codec.verify import _loaded, _request, verify  # noqa: E402
from yaffjit.codec.verify_plain import verify_plain  # noqa: E402
from yaffjit.rows.records import Records  # noqa: E402

BLOCK = 1000  # mutants of one type at a time
WORDED = 40  # of so many mutants one is verified by the plain verifier too, which finds the words
ALONE = 50  # of so many messages one is read by itself in the regular form
FEW = 1_000_000  # a campaign of fewer mutants takes fewer types
MUTANTS = 5_000_000
NUMBER, STAGE = 0, 1
CRASH = int(os.environ.get("YAFFJIT_TRUST_CRASH", "-1"))  # the mutant at which a test has it crash
STAGES = ("verifying", "reading in Python", "reading all in compiled code")


class Progress:
    """Where a process is, in a file that its parent reads when it has crashed."""

    def __init__(self, path: str) -> None:
        with open(path, "r+b") as file:
            self._words = memoryview(mmap.mmap(file.fileno(), 16)).cast("q")

    def tell(self, number: int, stage: int) -> None:
        self._words[NUMBER], self._words[STAGE] = number, stage
        if number == CRASH:
            ctypes.string_at(1)


def told_by(path: str) -> tuple[int, int]:
    return struct.unpack("<2q", Path(path).read_bytes())


class Worker:
    """Reads blocks of mutants; each block is of one type.

    Args:
        seed: of the campaign.
        few: whether it takes few types.
        types: only those whose names have this in them.
    """

    def __init__(self, seed: int, few: bool, progress: Progress, types: str = "") -> None:
        _loaded.load()
        assert _loaded.kernel is not None
        self.kernel = _loaded.kernel
        self.seed, self.few, self.progress = seed, few, progress
        self.makers = [made for made in makers(seed, few) if types in made[0]]
        self.told: Counter[str] = Counter()
        self._made: dict[int, tuple[Family, Readers, Arena] | None] = {}
        self._two = Arena(2, 1 << 20)

    def family(self, block: int) -> tuple[Family, Readers, Arena] | None:
        number = block % len(self.makers)
        if number not in self._made:
            family = self.makers[number][1]()
            self._made[number] = family and (
                family,
                Readers(family.mp, self.few),
                Arena(BLOCK, family.capacity),
            )
        return self._made[number]

    def mutants(self, block: int) -> list[bytes]:
        found = self.family(block)
        chance = random.Random(f"{self.seed} {block}")
        return [] if found is None else list(mutants(found[0].mutators, chance, BLOCK))

    def run(self, block: int, single: int | None = None) -> None:
        """All mutants of a block, or one of them."""
        found = self.family(block)
        if found is None:
            self.told["types without buffers"] += 1
            return
        family, readers, arena = found
        made = self.mutants(block)
        first = block * BLOCK
        chosen = range(BLOCK) if single is None else range(single, single + 1)
        table = arena.placed(made, 0)
        accepted, ascending = [], []
        request = _request(family.mp, True).address
        for i in chosen:
            self.progress.tell(first + i, 0)
            done, ascends = self.kernel.check_rows(request, 0, 0, table.ctypes.data, i, i + 1)
            if i % WORDED == 0 or single is not None:
                self.check_words(family, made[i], done > i)
            if done > i:
                accepted.append(i)
                ascending.append(bool(ascends))
        self.told["mutants"] += len(chosen)
        self.told["accepted"] += len(accepted)
        whole = []
        recs = arena.records(family.mp, table[accepted])
        for row, i in enumerate(accepted):
            self.progress.tell(first + i, 1)
            try:
                if readers.read(recs[row], made[i]):
                    whole.append(row)
                if i % ALONE == 0:
                    alone = arena.one_by_one(family.mp, table[i])
                    readers.serialize_one(alone, table[i])
            except Exception as error:
                raise AssertionError(self.describe(first + i, family, made[i], error)) from error
        self.progress.tell(first + (single or 0), 2)
        try:
            self.read_all(family, readers, arena, made, [accepted[row] for row in whole], ascending)
        except Exception as error:
            if single is not None:
                i = single
                raise AssertionError(self.describe(first + i, family, made[i], error)) from error
            for row in whole:
                self.run(block, accepted[row])
            raise AssertionError(f"block {block} of {family.name}: {error}") from error

    def read_all(
        self,
        family: Family,
        readers: Readers,
        arena: Arena,
        made: list[bytes],
        rows: list[int],
        ascending: list[bool],
    ) -> None:
        """What's compiled reads the messages in both places, and behind one another."""
        mp = family.mp
        messages = [made[i] for i in rows]
        first = arena.records(mp, arena.placed(messages, 0))
        views = list(first)
        data, offsets = b"".join(messages), np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(message) for message in messages], out=offsets[1:])
        if len(data) > self._two.room:
            self._two = Arena(2, len(data))
        place = self._two.placed([data], 0)[0]
        regular = Records(mp, self._bytes_at(place), offsets)
        readers.read_all([first], regular, views)
        # Once more where each begins at the other end, and maps are searched by halving if that may be.
        second = arena.records(mp, arena.placed(messages, 1), all(ascending) and bool(rows))
        readers.read_all([second], Records(mp, self._bytes_at(self._two.placed([data], 1)[0]), offsets), [])

    def _bytes_at(self, place: np.ndarray) -> memoryview:
        begin = int(place[0]) - self._two.first(0) + (self._two.first(0) - self._two._begin)
        return self._two.data[begin : begin + int(place[1])]

    def check_words(self, family: Family, buf: bytes, accepted: bool) -> None:
        """Both verifiers say the same, and errors say where."""
        for check in (verify, verify_plain):
            try:
                check(family.mp, buf)
                found = True
            except yj.VerifyError as error:
                found = False
                assert str(error).startswith(family.mp.full_name)
            assert found == accepted or check is verify, f"{family.name}: {buf.hex()}"

    def describe(self, number: int, family: Family, buf: bytes, error: Exception) -> str:
        return f"seed {self.seed}, mutant {number}, {family.name}: {error}\n{buf.hex()}"


def work(args: argparse.Namespace) -> None:
    """What a process of the campaign does."""
    worker = Worker(args.seed, args.few, Progress(args.progress), args.types)
    if args.replay is not None:
        block, i = divmod(args.replay, BLOCK)
        family = worker.family(block)
        assert family is not None
        print(f"{family[0].name}: {worker.mutants(block)[i].hex()}", flush=True)
        for one in range(i, BLOCK if args.rest else i + 1):
            worker.run(block, one)
    else:
        for block in blocks(args, len(worker.makers)):
            worker.run(block)
    for found in worker._made.values():
        if found is not None:
            worker.told += found[1].told
    print(json.dumps(worker.told))


def blocks(args: argparse.Namespace, families: int) -> Iterator[int]:
    """Those of one of the processes: all blocks of a type are in one."""
    for block in range(args.mutants // BLOCK):
        if block % families % args.jobs == args.job:
            yield block


def start(
    args: argparse.Namespace, folder: str, job: int, replay: int | None = None, rest: bool = False
) -> Any:
    progress = Path(folder) / f"progress {job}"
    progress.write_bytes(bytes(16))
    options = ["--mutants", args.mutants, "--seed", args.seed, "--jobs", args.jobs, "--job", job]
    options += ["--progress", progress, "--types", args.types, *(["--few"] if args.few else [])]
    options += [] if replay is None else ["--replay", replay, *(["--rest"] if rest else [])]
    command = [sys.executable, "-X", "faulthandler", __file__, *map(str, options)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def campaign(args: argparse.Namespace) -> Counter[str]:
    """Run all processes; what they found. SystemExit where one crashed or failed, and how to see it again."""
    told: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        running = [start(args, folder, job) for job in range(args.jobs)]
        try:
            for job, process in enumerate(running):
                out, errors = process.communicate()
                if process.returncode == 0:
                    told += Counter(json.loads(out.splitlines()[-1]))
                    continue
                number, stage = told_by(str(Path(folder) / f"progress {job}"))
                print(f"{errors[-6000:]}\nexit {process.returncode} {STAGES[stage]}", file=sys.stderr)
                print(f"seed {args.seed}, mutant {number}: python {__file__} --seed {args.seed}", end="")
                chosen = f" --types '{args.types}'" if args.types else ""
                print(f"{' --few' if args.few else ''}{chosen} --replay {number}", flush=True)
                if process.returncode < 0:
                    replay(args, folder, number, stage)
                raise SystemExit(1)
        finally:
            for process in running:
                process.kill()
    return told


def replay(args: argparse.Namespace, folder: str, number: int, stage: int) -> None:
    """Read a mutant alone; where many were read at once, each of them alone until one crashes."""
    process = start(args, folder, 0, number, rest=stage == 2)
    try:
        out, _ = process.communicate(timeout=600)
    finally:
        process.kill()
    number, _ = told_by(str(Path(folder) / "progress 0"))
    if process.returncode:
        print(f"mutant {number} alone: exit {process.returncode}\n{out}")
    else:
        print("alone, none crashes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mutants", type=int, default=MUTANTS)
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    parser.add_argument("--jobs", type=int, default=2, help="processes at the same time")
    parser.add_argument("--few", action="store_true", help="few types, as CI has them")
    parser.add_argument("--types", default="", help="only types whose names have this in them")
    parser.add_argument("--replay", type=int, help="the number of one mutant")
    parser.add_argument("--rest", action="store_true", help="and of each mutant after it in its block")
    parser.add_argument("--job", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--progress", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.few = args.few or (args.mutants < FEW and args.replay is None and not args.types)
    if args.progress:
        work(args)
        return
    print(f"seed {args.seed}", flush=True)
    if args.replay is not None:
        with tempfile.TemporaryDirectory() as folder:
            process = start(args, folder, 0, args.replay)
            print(*process.communicate(), f"exit {process.returncode}", sep="\n")
        return
    started = time.monotonic()
    told = campaign(args)
    print(f"{told.pop('mutants')} mutants in {time.monotonic() - started:.0f} s: {dict(told)}")


if __name__ == "__main__":
    main()
