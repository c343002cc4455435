"""Work on threads whose results are taken in the order in which it was given."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

G = TypeVar("G")
R = TypeVar("R")


class _Task(Generic[G, R]):
    def __init__(self, given: G | None) -> None:
        self.given = given
        self.result: R | None = None
        self.error: BaseException | None = None
        self.done = threading.Event()


class Ordered(Generic[G, R]):
    """Calls ``work`` on threads, as a context manager; at its end no thread is left.

    The threads start with the second thing that waits, so that one alone costs nothing.

    Args:
        work: releases the GIL in what takes time. What hasn't begun at the end of the block is dropped.
        threads: how many; of one there's none, and `take` works itself.
    """

    def __init__(self, work: Callable[[G], R], threads: int) -> None:
        self._work = work
        self._threads = threads if threads > 1 else 0
        self._tasks: deque[_Task[G, R]] = deque()  # whose results weren't taken
        self._waiting: deque[_Task[G, R]] = deque()  # that haven't begun
        self._changed = threading.Condition()
        self._ended = False
        self._workers: list[threading.Thread] = []

    def __enter__(self) -> Ordered[G, R]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._ended = True
            self._waiting.clear()
            self._changed.notify_all()
        for worker in self._workers:
            worker.join()

    def __len__(self) -> int:
        """How many results there are to take, done or not."""
        return len(self._tasks)

    def put(self, given: G) -> None:
        """Have some work done."""
        task = _Task[G, R](given)
        self._tasks.append(task)
        with self._changed:
            self._waiting.append(task)
            self._changed.notify()
        if len(self._tasks) > 1 and len(self._workers) < self._threads:
            worker = threading.Thread(target=self._worker, name=f"yaffjit-build-{len(self._workers)}")
            worker.start()
            self._workers.append(worker)

    def give(self, result: R) -> None:
        """In place of work, a result."""
        task = _Task[G, R](None)
        task.result = result
        task.done.set()
        self._tasks.append(task)

    def take(self) -> R:
        """The result of what was given first, once it's there; raises what the work raised."""
        task = self._tasks.popleft()
        with self._changed:
            mine = bool(self._waiting) and self._waiting[0] is task
            if mine:
                self._waiting.popleft()
        if mine:  # no thread has come to it
            return self._work(task.given)  # type: ignore[arg-type]
        task.done.wait()
        if task.error is not None:
            raise task.error
        return task.result  # type: ignore[return-value]

    def _worker(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._ended:
                    self._changed.wait()
                if self._ended:
                    return
                task = self._waiting.popleft()
            try:
                task.result = self._work(task.given)  # type: ignore[arg-type]
            except BaseException as error:
                task.error = error
            task.done.set()
