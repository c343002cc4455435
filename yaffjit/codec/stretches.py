"""Many messages through a kernel that writes: stretches of rows on threads, room that grows, rows left to
Python.

What is transcoded by whichever kernel is a `Job`: it says what the kernel gets, and does a row in Python.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from yaffjit.arrays import array_address
from yaffjit.codec.verify_protobuf_plain import Uncarried
from yaffjit.errors import DecodeError, EncodeError, VerifyError, YaffjitError
from yaffjit.plan.model import MAX_OFFSET, MessagePlan
from yaffjit.pool import run_stretches

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]
# (address of a request of kernels.transcode_state, first row, behind the last row) -> row that isn't done
RowsKernel = Callable[[int, int, int], int]

# Bytes of messages that one call of the kernel does: 10 ms or so.
_STRETCH_NBYTES = 4 * 2**20
_WORK_NBYTES = 2**17
_SHARED = 2**10
COUNTS = 2**11
_SEED = int.from_bytes(os.urandom(8), "little", signed=True)


@dataclass
class Transcoded:
    """Message i is ``data[offsets[i]:offsets[i + 1]]``.

    Attributes:
        data: uint8[nbytes].
        offsets: int64[count + 1].
        uncarried: how often fields were met that YaFF doesn't carry, by full name of the message and field
            number: unknown ones, extensions, deprecated ones and what else the plan has as lost. What lies
            within such a field isn't counted.
        uncounted: how many more there were of too many different ones.
        errors: of rows that have no message, by row, where the caller wanted to have them.
    """

    data: Bytes
    offsets: Offsets
    uncarried: Uncarried = field(default_factory=Counter)
    uncounted: int = 0
    errors: dict[int, DecodeError | EncodeError] = field(default_factory=dict)


class Job(ABC):
    """Messages that are transcoded in one call.

    Args:
        mp: their plan.
        data: bytes or any contiguous buffer that holds them all.
        offsets: int64[count + 1]; message i is ``data[offsets[i]:offsets[i + 1]]``.
        first_row: the row of the first message, for errors.
        keep_errors: rows whose message is bad have no bytes, and their errors are in the result.
    """

    table: NDArray[np.int64]  # of the kernel
    mode: int = 0
    names: tuple[str, ...] = ()  # of messages, by the rows that the kernel counts by
    most_work: int = 2**62  # bytes of the arena, from which on a row is left to Python

    def __init__(self, mp: MessagePlan, data: Any, offsets: Any, first_row: int, keep_errors: bool) -> None:
        self.mp = mp
        self.data = np.frombuffer(data, np.uint8)
        self.offsets = np.ascontiguousarray(offsets, np.int64)
        if self.offsets.ndim != 1 or not self.offsets.size:
            raise ValueError(f"offsets are n + 1 integers for n messages, not of shape {self.offsets.shape}")
        self.first_row = first_row
        self.keep_errors = keep_errors
        self.count = len(self.offsets) - 1
        self.nbytes = max(0, int(self.offsets[-1]) - int(self.offsets[0]))
        self._parts: dict[int, Transcoded] = {}  # by their first row
        self._spare: list[_Space] = []

    @abstractmethod
    def row(self, row: int, counted: Uncarried) -> bytes:
        """One message in Python, and what of it isn't carried."""

    def payload(self, row: int) -> bytes:
        """The bytes of a row, whose offsets are checked."""
        begin, end = int(self.offsets[row]), int(self.offsets[row + 1])
        if not 0 <= begin <= end <= len(self.data):
            raise misplaced(self.mp.full_name, begin, end, len(self.data), self.first_row + row)
        return self.data[begin:end].tobytes()

    def plainly(self) -> Transcoded:
        """All rows in Python."""
        made = Transcoded(np.empty(0, np.uint8), np.zeros(self.count + 1, np.int64))
        buffers = []
        for row in range(self.count):
            buffer = self.row_or_error(row, made)
            buffers.append(buffer)
            made.offsets[row + 1] = made.offsets[row] + len(buffer)
        made.data = np.frombuffer(b"".join(buffers), np.uint8)
        return made

    def row_or_error(self, row: int, made: Transcoded) -> bytes:
        """A row in Python; nothing, and its error in the result, where it's bad and errors are kept."""
        try:
            return self.row(row, made.uncarried)
        except (DecodeError, EncodeError) as error:
            if not self.keep_errors:
                raise
            made.errors[row] = error
            return b""

    def by_kernel(self, kernel: RowsKernel, threads: int | None) -> Transcoded:
        """All rows by the kernel."""
        stretch = max(1, self.count * _STRETCH_NBYTES // (self.nbytes + 1))
        run_stretches(lambda first, last: self._stretch(kernel, first, last), self.count, stretch, threads)
        return self._joined()

    def _stretch(self, kernel: RowsKernel, first: int, last: int) -> None:
        space = self._spare.pop() if self._spare else _Space()
        self._parts[first] = space.run(self, kernel, first, last)
        self._spare.append(space)

    def _joined(self) -> Transcoded:
        parts = [self._parts[first] for first in sorted(self._parts)]
        if len(parts) == 1:
            return parts[0]
        made = Transcoded(
            np.concatenate([part.data for part in parts]) if parts else np.empty(0, np.uint8),
            np.zeros(self.count + 1, np.int64),
        )
        row = 0
        for part in parts:
            made.offsets[row + 1 : row + len(part.offsets)] = part.offsets[1:] + made.offsets[row]
            made.uncarried.update(part.uncarried)
            made.uncounted += part.uncounted
            made.errors.update(part.errors)
            row += len(part.offsets) - 1
        return made


def misplaced(full_name: str, begin: int, end: int, nbytes: int, row: int) -> VerifyError:
    """For offsets of a row that leave the data."""
    text = f"offsets {begin} and {end} aren't a part of the data ({nbytes} bytes)"
    return VerifyError(text, message=full_name, found=end, limit=nbytes, row=row)


class _Space:
    """What the kernel works with, for one thread."""

    def __init__(self) -> None:
        self.work = np.empty(_WORK_NBYTES, np.uint8)
        self.shared = np.zeros(3 * _SHARED, np.int64)
        self.counts = np.zeros(2 * COUNTS, np.int64)
        self.generation = 0

    def run(self, job: Job, kernel: RowsKernel, first: int, last: int) -> Transcoded:
        """The rows ``first`` to ``last - 1``."""
        from yaffjit.kernels import transcode_state as state

        nbytes = max(0, int(job.offsets[last]) - int(job.offsets[first]))
        out = np.empty(min(nbytes, len(job.data)) * 3 // 2 + 4096, np.uint8)
        offsets = np.zeros(last - first + 1, np.int64)
        made = Transcoded(out, offsets)
        self.counts[:] = 0
        request = np.zeros(state.REQUEST_WORDS, np.int64)

        def tell(place: int, value: int) -> None:
            request[place // 8] = value

        def told(place: int) -> int:
            return int(request[place // 8])

        tell(state.TABLE, array_address(job.table))
        tell(state.MODE, job.mode)
        tell(state.DATA, array_address(job.data))
        tell(state.DATA_NBYTES, len(job.data))
        tell(state.OFFSETS, array_address(job.offsets))
        tell(state.OUT_OFFSETS, array_address(offsets) - 8 * first)
        tell(state.SEED, _SEED)
        tell(state.MOST, MAX_OFFSET)
        tell(state.COUNTS, array_address(self.counts))
        tell(state.COUNTS_COUNT, COUNTS)
        tell(state.GENERATION, self.generation)
        row = first
        while True:
            tell(state.OUT, array_address(out))
            tell(state.OUT_NBYTES, len(out))
            tell(state.WORK, array_address(self.work))
            tell(state.WORK_NBYTES, len(self.work))
            tell(state.SHARED, array_address(self.shared))
            tell(state.SHARED_COUNT, len(self.shared) // 3)
            row = kernel(array_address(request), row, last)
            status = told(state.STATUS)
            if status == state.DONE:
                break
            if status == state.NEEDS_OUT:
                out = _grown(out, told(state.OUT_USED), told(state.NEEDED))
            elif status == state.NEEDS_WORK and 2 * len(self.work) <= job.most_work:
                self.work = np.empty(2 * len(self.work), np.uint8)
            elif status == state.NEEDS_SHARED:
                self.shared = np.zeros(3 * told(state.NEEDED), np.int64)
            else:
                buffer = job.row_or_error(row, made)
                if status == state.MALFORMED and row not in made.errors:
                    raise YaffjitError(
                        f"row {job.first_row + row}: {job.mp.full_name}: the compiled transcoder refuses "
                        "what protobuf accepts; this is a bug of yaffjit"
                    )
                used = told(state.OUT_USED)
                if used + len(buffer) > len(out):
                    out = _grown(out, used, len(buffer))
                out[used : used + len(buffer)] = np.frombuffer(buffer, np.uint8)
                tell(state.OUT_USED, used + len(buffer))
                row += 1
                offsets[row - first] = used + len(buffer)
        self.generation = told(state.GENERATION)
        made.data = out[: told(state.OUT_USED)]
        made.uncounted = told(state.COUNTS_LEFT_OUT)
        for key, count in self.counts.reshape(-1, 2)[self.counts[::2] != 0].tolist():
            made.uncarried[job.names[key - 1 >> 32], (key - 1) & 0xFFFFFFFF] += count
        return made


def _grown(out: Bytes, used: int, missing: int) -> Bytes:
    """A longer array with the same first bytes."""
    grown = np.empty(2 * len(out) + missing, np.uint8)
    grown[:used] = out[:used]
    return grown
