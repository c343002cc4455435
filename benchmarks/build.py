"""Building an index from a delimited file, beside a loop that reads as much and writes as much.

The whole bar, of 10,000,000 banners, with what the process takes in memory::

    python -m benchmarks.build --rows 10000000
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaffjit as yj
from benchmarks.banners import made
from benchmarks.timing import Amount, Bar, Race, run
from yaffjit.demo import SCHEMA_FILE

ROWS = 1_000_000
QUICK_ROWS = 50_000
WHOLE_ROWS = 10_000_000
MEMORY = 512 << 20
BLOCK_NBYTES = 1 << 20
NAME = "a banner of a delimited file into an index"


def races(quick: bool) -> Iterator[Race]:
    with tempfile.TemporaryDirectory(prefix="yaffjit-benchmark-") as name:
        yield race(Path(name), QUICK_ROWS if quick else ROWS)


def race(folder: Path, rows: int) -> Race:
    source = delimited(folder, rows)
    message_type = yj.load_schema(SCHEMA_FILE)["ads.Banner"]
    index, copy = folder / "banners.arrow", folder / "copy"

    def build() -> int:
        return yj.build_index(index, message_type, yj.read_delimited(source), memory=MEMORY).nbytes

    build()  # what is loaded and compiled once
    nbytes = build()
    return Race(
        f"{NAME}, {rows:,} of them",
        rows,
        {"yaffjit": build, "read and write as many bytes": lambda: copied(source, copy, nbytes)},
        [Bar("yaffjit", "read and write as many bytes", at_most=1.7)],
        repetitions=3,
    )


def delimited(folder: Path, rows: int) -> Path:
    """A file of so many banners, which come again and again."""
    payloads = made(min(rows, QUICK_ROWS)).payloads
    first, path = folder / "first.pb", folder / "banners.pb"
    yj.write_delimited(first, payloads)
    block = first.read_bytes()
    with open(path, "wb") as file:
        for _ in range(rows // len(payloads)):
            file.write(block)
    return path


def copied(source: Path, output: Path, nbytes: int) -> int:
    """Read a file, write so many bytes of it meanwhile, and have them on disk."""
    ratio = nbytes / os.path.getsize(source)
    done = 0
    with open(source, "rb", buffering=0) as file, open(output, "wb", buffering=0) as out:
        while block := file.read(BLOCK_NBYTES):
            wanted = min(nbytes, int(file.tell() * ratio) + 1)
            while done < wanted:
                done += out.write(block[: wanted - done])
        os.fsync(out.fileno())
    return done


def amounts(quick: bool) -> Iterator[Amount]:
    yield Amount(NAME, "memory of the process", peak_bytes(quick), MEMORY)


def peak_bytes(quick: bool) -> int:
    """What the command takes in memory, at most."""
    with tempfile.TemporaryDirectory(prefix="yaffjit-benchmark-") as name:
        return peak_bytes_of(delimited(Path(name), QUICK_ROWS if quick else ROWS))


def peak_bytes_of(source: Path) -> int:
    output = source.with_name("peak.arrow")
    command = ("build", SCHEMA_FILE, "ads.Banner", source, "-o", output, "--memory", str(MEMORY))
    # A process of its own, so that the largest of its children is the command.
    measuring = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=sys.stderr);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", measuring, sys.executable, "-m", "yaffjit", *map(str, command)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return int(done.stdout) * 1024


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.build", description=__doc__)
    parser.add_argument("--rows", type=int, default=WHOLE_ROWS)
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="yaffjit-benchmark-") as name:
        result = run(race(Path(name), parsed.rows), 3)
        for contender, seconds in result.seconds.items():
            print(f"{contender}: {', '.join(f'{second:.2f} s' for second in seconds)}")
        (bar,) = result.race.bars
        limit, measured = bar.show(bar.measured(result.seconds))
        print(f"{limit}, measured {measured}")
        nbytes = peak_bytes_of(Path(name) / "banners.pb")
        print(f"at most {MEMORY / 1e6:.0f} MB of memory, measured {nbytes / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
