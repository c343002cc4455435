"""Several processes that write one index file with keys at once, and readers meanwhile: nothing mixes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import yaffjit as yj
from yaffjit.index import key_writer
from yaffjit.index.keys import open_beside

SOURCE = 'syntax = "proto3"; package k; message Row { int64 id = 1; string name = 2; }'
ROUNDS = 12

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture(scope="module")
def row_type(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("schema") / "k.proto"
    path.write_text(SOURCE)
    return yj.load_schema(path)["k.Row"]


def build(path: Path, row_type: Any, first: int, count: int = 20, key: str | None = "id") -> None:
    rows = [{"id": number, "name": f"{number}"} for number in range(first, first + count)]
    yj.build_index(path, row_type, rows, key=key)


def check(path: Path) -> list[int]:
    """The first id of an index that holds together, and how many rows there are."""
    index = yj.open_index(path)
    ids = [view.id for view in index]
    assert ids == list(range(ids[0], ids[0] + len(ids)))
    if index.key is not None:
        assert index.rows(ids if index.key == "id" else [f"{number}" for number in ids]).tolist() == list(
            range(len(ids))
        )
    return [ids[0], len(ids)]


def child(work: Callable[[], object]) -> int:
    pid = os.fork()
    if not pid:  # no assertion may leave this process by pytest's way
        status = 1
        try:
            signal.alarm(60)
            work()
            status = 0
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
        finally:
            os._exit(status)
    return pid


def ended(pids: list[int]) -> list[int]:
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


def test_processes_that_build_one_file(row_type: Any, tmp_path: Path) -> None:
    """With keys of one field, of another and with none; and one that makes keys for what is there."""
    path = tmp_path / "x.arrow"
    build(path, row_type, 0)
    build(path, row_type, 0, key="name")

    def builds(number: int, key: str | None) -> None:
        for turn in range(ROUNDS):
            build(path, row_type, 1000 * number + turn, 10 + number, key)

    def keys() -> None:
        for turn in range(ROUNDS):
            yj.build_keys(path, ("id", "name")[turn % 2])

    def reads() -> None:
        for _ in range(2 * ROUNDS):
            first, count = check(path)
            assert count == 20 or count == 10 + first // 1000

    works = [lambda: builds(1, "id"), lambda: builds(2, "name"), lambda: builds(3, None), keys, reads]
    assert ended([child(work) for work in works]) == [0] * 5
    check(path)
    assert {name.name for name in tmp_path.iterdir()} <= {"x.arrow", "x.keys.arrow"}


def test_keys_of_the_file_that_got_its_name_last(
    row_type: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread builds the same file as soon as this one has made its keys: it waits."""
    path = tmp_path / "x.arrow"
    real = key_writer.write_keys
    others: list[threading.Thread] = []

    def then_another(*args: Any, **options: Any) -> int:
        made = real(*args, **options)
        if not others:
            others.append(threading.Thread(target=build, args=(path, row_type, 500)))
            others[0].start()
            others[0].join(0.3)
            assert others[0].is_alive()
        return made

    monkeypatch.setattr(key_writer, "write_keys", then_another)
    build(path, row_type, 3)
    others[0].join()
    assert check(path) == [500, 20]


def test_a_file_that_is_replaced_while_its_keys_are_opened(
    row_type: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.arrow"
    for key, other in (("id", "name"), ("id", None)):
        build(path, row_type, 3, key=key)
        calls = []

        def late(*args: Any, calls: Any = calls, other: Any = other) -> Any:
            calls.append(args)
            if len(calls) == 1:
                build(path, row_type, 500, key=other)
            return open_beside(*args)

        monkeypatch.setattr("yaffjit.index.opened.open_beside", late)
        assert check(path) == [500, 20]
        assert len(calls) == 2
        monkeypatch.undo()


def test_keys_that_a_killed_writer_left_without_their_name(row_type: Any, tmp_path: Path) -> None:
    """They are kept if they are those of the file, even if the next writer is killed too."""
    path, table, made = (tmp_path / name for name in ("x.arrow", "x.keys.arrow", "x.keys.new.arrow"))
    build(path, row_type, 0)
    old = table.read_bytes()
    build(path, row_type, 100)
    table.rename(made)
    table.write_bytes(old)  # the file had got its name, and its keys had not
    assert check(path) == [100, 20]

    def killed() -> None:
        key_writer.write_keys = lambda *args: os.kill(os.getpid(), signal.SIGKILL)
        build(path, row_type, 200)

    assert ended([child(killed)]) == [-signal.SIGKILL]
    assert check(path) == [100, 20]
    assert yj.open_index(path).key == "id"
    # Of a file that never got its name: they don't count.
    content = table.read_bytes()
    build(path, row_type, 300, key=None)
    made.write_bytes(content)
    assert check(path) == [300, 20]
    assert yj.open_index(path).key is None
    build(path, row_type, 400, key=None)
    assert [found.name for found in tmp_path.iterdir()] == ["x.arrow"]


def test_a_build_without_keys_that_fails_leaves_those_there_were(
    row_type: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.arrow"
    build(path, row_type, 7)
    real = os.replace

    def refused(source: Any, target: Any) -> None:
        if str(target) == str(path):
            raise OSError(30, "Read-only file system")
        real(source, target)

    monkeypatch.setattr(os, "replace", refused)
    with pytest.raises(yj.IndexFileError, match=r"x\.arrow can't be written: Read-only file system$"):
        build(path, row_type, 9, key=None)
    assert check(path) == [7, 20]
    assert sorted(found.name for found in tmp_path.iterdir()) == ["x.arrow", "x.keys.arrow"]


def test_processes_that_append_at_once(row_type: Any, tmp_path: Path) -> None:
    """Each part is there whole, once; who comes while another one writes is told so, and tries again."""
    path = tmp_path / "rows"
    yj.build_index(path, row_type, [{"id": 0}], key="id")

    def appends(number: int) -> None:
        done = 0
        while done < 6:
            try:
                first = 1000 * number + 10 * done
                yj.append_index(path, [{"id": row} for row in range(first, first + 10)])
                done += 1
            except yj.IndexFileError as error:
                assert str(error).endswith(" is writing to it"), error

    assert ended([child(lambda number=number: appends(number)) for number in (1, 2, 3)]) == [0] * 3
    index = yj.open_index(path)
    ids = [view.id for view in index]
    assert sorted(ids) == sorted([0, *(1000 * number + row for number in (1, 2, 3) for row in range(60))])
    assert all(ids[at] + 9 == ids[at + 9] for at in range(1, len(ids), 10))
    assert index.rows(ids).tolist() == list(range(len(ids)))
    assert len(index.parts) == 19
