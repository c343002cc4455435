"""One index in many threads and processes: nobody waits for another, and all read the same."""

from __future__ import annotations

import ctypes
import multiprocessing
import queue
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import yaffjit as yj
from yaffjit import universal

SOURCE = (
    'syntax = "proto3"; package r; message Row { int64 id = 1; string name = 2; repeated int64 many = 3; }'
)
ROWS = 2000
THREADS = 16
BY_FORK, BY_SPAWN = 5, 3

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")]

usleep = ctypes.CDLL(None).usleep
usleep.argtypes = (ctypes.c_uint32,)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("readers")
    (folder / "r.proto").write_text(SOURCE)
    row_type = yj.load_schema(folder / "r.proto")["r.Row"]
    rows = ({"id": row, "name": f"n{row}"} for row in range(ROWS))
    yj.build_index(folder / "rows", row_type, rows, part_rows=700, key="id")
    return folder / "rows"


@numba.njit(nogil=True)
def sit(recs: Any, done: Any, most: int) -> Any:
    """In a loop over rows, until it's told, or a minute is over; how many turns it took."""
    turns = total = 0
    while done[0] == 0 and turns < most:
        total += recs[turn_of(turns, len(recs))].id
        usleep(1000)
        turns += 1
    return turns, total


@numba.njit
def turn_of(turn: int, rows: int) -> int:
    return turn % rows


@numba.njit
def sum_ids(recs: Any) -> Any:
    total = 0
    for view in recs:
        total += view.id
    return total


def doubled(row: Any) -> Any:
    return row.id * 2


def read(index: Any, number: int) -> list[Any]:
    """In all ways."""
    part = index[number : number + 100]
    return [
        index[number].id,
        [view.id for view in part][-1],
        int(part.columns("id")["id"].sum()),
        sum_ids(part),
        int(part.map(doubled)[0]),
        index.take([number, 0])[1].name,
        index.rows(number),
    ]


def expected(number: int) -> list[Any]:
    total = sum(range(number, number + 100))
    return [number, number + 99, total, total, 2 * number, "n0", number]


@pytest.mark.parametrize("verify", ["open", "batch"])
def test_threads_while_one_sits_in_a_long_kernel(path: Path, verify: str) -> None:
    index = yj.open_index(path, verify=verify)
    assert read(index, 0) == expected(0)  # compiled
    done, turns = np.zeros(1, np.int64), []
    sit(index, np.ones(1, np.int64), 0)
    sitting = threading.Thread(target=lambda: turns.append(sit(index, done, 60_000)[0]))
    sitting.start()
    found: dict[int, list[Any]] = {}

    def work(number: int) -> None:
        for turn in range(3):
            found[number] = read(index, number)
            assert turn < 3

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, THREADS + 1)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert sitting.is_alive() and not any(thread.is_alive() for thread in threads)
    finally:
        done[0] = 1
        sitting.join()
    assert found == {number: expected(number) for number in range(1, THREADS + 1)}
    assert 0 < turns[0] < 60_000


class Dataset:
    """As torch's map-style datasets are."""

    def __init__(self, index: Any, favourite: Any) -> None:
        self.index = index
        self.favourite = favourite  # a view

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, row: int) -> tuple[int, str, int]:
        view = self.index[row]
        return view.id, view.name, self.favourite.id


def worker(dataset: Dataset, asked: Any, answers: Any) -> None:
    """As a worker of torch's DataLoader: batches of rows come, what they hold goes."""
    while (batch := asked.get(timeout=60)) is not None:
        answers.put((batch[0], [dataset[row] for row in batch], sum_ids(dataset.index[:10])))


def test_workers_of_a_data_loader(path: Path) -> None:
    """Eight processes at once, by fork after use and by spawn."""
    index = yj.open_index(path)
    dataset = Dataset(index, index[5])
    assert dataset[7] == (7, "n7", 5) and sum_ids(index[:10]) == 45
    batches = [list(range(begin, begin + 50)) for begin in range(0, ROWS, 50)]
    ways = {"fork": BY_FORK, "spawn": BY_SPAWN}
    processes: list[Any] = []
    lanes = []
    try:
        for way, count in ways.items():
            context = multiprocessing.get_context(way)
            asked, answers = context.Queue(), context.Queue()
            lanes.append(answers)
            for batch in [*batches, *[None] * count]:
                asked.put(batch)
            workers = [
                context.Process(target=worker, args=(dataset, asked, answers), daemon=True)
                for _ in range(count)
            ]
            for process in workers:
                process.start()
            processes += workers
        for answers in lanes:
            seen: dict[int, Any] = {}
            while len(seen) < len(batches):
                first, rows, total = answers.get(timeout=120)
                seen[first] = rows
                assert total == 45
            assert [row for first in sorted(seen) for row in seen[first]] == [
                (row, f"n{row}", 5) for row in range(ROWS)
            ]
        for process in processes:
            process.join(60)
        assert [process.exitcode for process in processes] == [0] * (BY_FORK + BY_SPAWN)
        with pytest.raises(queue.Empty):
            lanes[0].get_nowait()
    finally:
        for process in processes:
            process.kill()


@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_torch(path: Path, way: str) -> None:
    data = pytest.importorskip("torch.utils.data")
    index = yj.open_index(path)
    loader = data.DataLoader(
        Dataset(index, index[5]), batch_size=100, num_workers=2, multiprocessing_context=way, timeout=120
    )
    rows = [(int(number), name) for ids, names, _ in loader for number, name in zip(ids, names, strict=True)]
    assert rows == [(row, f"n{row}") for row in range(ROWS)]


# ---- the GIL ----


def kernels(path: Path) -> dict[str, Callable[[], object]]:
    """What takes a while, all of it in one thread."""
    row_type = yj.open_index(path).message_type
    long = {"id": 1, "name": "x" * 100, "many": list(range(200_000))}
    buf, wire = row_type.encode(long), row_type.message_class(**long).SerializeToString()
    recs = yj.records(row_type, [buf] * 60)
    wires = [wire] * 30
    yj.build_index(path.parent / "long.arrow", row_type, wires)
    small = row_type.message_class(id=7, name="seven").SerializeToString()
    many = small * 300_000, np.arange(300_001) * len(small)
    yj.build_index(path.parent / "many.arrow", row_type, many)
    documents = universal.encode_columns({"a": np.arange(1_000_000), "b": np.arange(1_000_000) * 0.5})

    def total(row: Any) -> Any:
        found = 0
        for number in row.many:
            found += number % 7
        return found

    return {
        "verify": yj.open_index_unchecked(path.parent / "many.arrow")[1:].verify,
        "columns": lambda: recs.columns("many", threads=1),
        "map": lambda: recs.map(total, threads=1),
        "transcode": lambda: row_type.transcode(wires, threads=1),
        "build": lambda: yj.build_index(path.parent / "built.arrow", row_type, many, threads=1),
        "checksums": lambda: yj.open_index(path.parent / "long.arrow"),
        "keys": lambda: yj.build_keys(path.parent / "many.arrow", "id", duplicates="first"),
        "universal.columns": lambda: universal.columns(documents, {"a": "int64", "b": "float64"}),
    }


def test_the_gil_is_released(path: Path) -> None:
    """Nobody is made to give it: who holds it while it computes, lets no other thread go on."""
    before = sys.getswitchinterval()
    works = kernels(path)
    ticks, ended = [0], threading.Event()

    def tick() -> None:
        while not ended.is_set():
            ticks[0] += 1
            time.sleep(0.0005)

    for work in works.values():
        work()  # compiled
    ticking = threading.Thread(target=tick)
    ticking.start()
    shares: dict[str, float] = dict.fromkeys(works, 0.0)
    sys.setswitchinterval(60)
    try:
        for name, work in works.items():
            for _ in range(8):
                begin, counted = time.perf_counter(), ticks[0]
                work()
                milliseconds = 1000 * (time.perf_counter() - begin)
                shares[name] = max(shares[name], (ticks[0] - counted) / milliseconds)
                if shares[name] > 0.1:
                    break
        begin, counted = time.perf_counter(), ticks[0]
        while time.perf_counter() < begin + 0.1:
            pass
        held = ticks[0] - counted
    finally:
        sys.setswitchinterval(before)
        ended.set()
        ticking.join()
    assert held <= 2  # Python itself does hold it
    assert min(shares.values()) > 0.1, shares
