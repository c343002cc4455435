"""Has what is written go to the disk meanwhile, so that little is left for the last fsync."""

from __future__ import annotations

import os
import threading
from types import TracebackType

STEP_NBYTES = 32 << 20  # from one fdatasync to the next
MOST_NBYTES = 128 << 20  # that are written and not on disk; then the writer waits


class Flusher:
    """Flushes a file on a thread of its own, which starts with enough to do; a context manager.

    Without it Ctrl-C would wait for an fsync of gigabytes, which nothing interrupts.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._written = self._flushed = 0
        self._changed = threading.Condition()
        self._error: OSError | None = None
        self._ended = False
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Flusher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
        if kind is None:
            self._raise()

    def wrote(self, nbytes: int) -> None:
        """So many bytes are in the file now; waits where too many of them aren't on disk.

        Raises:
            OSError: they can't be put there. The kernel says so once only, so the file is lost.
        """
        with self._changed:
            self._written = nbytes
            if self._written - self._flushed < STEP_NBYTES:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="yaffjit-flush")
                self._thread.start()
            self._changed.notify_all()
            while self._error is None and self._written - self._flushed > MOST_NBYTES:
                self._changed.wait()
        self._raise()

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._ended and self._written - self._flushed < STEP_NBYTES:
                    self._changed.wait()
                if self._ended:
                    return
                written = self._written
            try:
                os.fdatasync(self._fd)
            except OSError as error:
                with self._changed:
                    self._error = error
                    self._changed.notify_all()
                return
            with self._changed:
                self._flushed = written
                self._changed.notify_all()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error
