"""Protobuf bytes to YaFF bytes, many messages at once, the same bytes that parsing and `encode` give.

Little work is done by just these two, so that nobody waits for a kernel to be compiled; the kernel does the
rest, and leaves to them the rows of which `encode` has something to say.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from yaffjit.codec.encode import LAYOUTS as ENCODED_LAYOUTS
from yaffjit.codec.encode import encode
from yaffjit.codec.verify_protobuf import refused, row_of
from yaffjit.codec.verify_protobuf_plain import Uncarried, check_plain
from yaffjit.codec.work import Work
from yaffjit.errors import DecodeError, EncodeError, YaffjitError
from yaffjit.plan.model import MAX_OFFSET, MessagePlan
from yaffjit.plan.wire_tables import WireTable, transcode_table
from yaffjit.pool import run_stretches

if TYPE_CHECKING:
    from yaffjit.kernels.transcode import Kernel

LAYOUTS = (*ENCODED_LAYOUTS, "smallest")

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]

# What one message and one byte of it take in Python.
_MESSAGE_SECONDS = 20e-6
_BYTE_SECONDS = 60e-9
# Bytes of messages that one call of the kernel does: 10 ms or so.
_STRETCH_NBYTES = 4 * 2**20
_WORK_NBYTES = 2**17
_SHARED = 2**10
_COUNTS = 2**11
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


def transcode_many(
    mp: MessagePlan,
    data: Any,
    offsets: Any,
    layout: str = "flat",
    threads: int | None = None,
    first_row: int = 0,
    keep_errors: bool = False,
) -> Transcoded:
    """The YaFF buffers of many protobuf messages.

    Args:
        mp: the plan of the messages.
        data: bytes or any contiguous buffer that holds them all.
        offsets: int64[count + 1]; message i is ``data[offsets[i]:offsets[i + 1]]``.
        layout: the form of dynamic messages: "flat"; "sparse"; "auto": sparse where that saves over a tenth
            of that message's buffer; "smallest": sparse where that is smaller.
        threads: how many work at the same time, None for one a core.
        first_row: the row of the first message, for errors.
        keep_errors: rows whose message is bad have no bytes, and their errors are in the result.

    Raises:
        DecodeError: of the first row that protobuf doesn't accept: names the row, the message, the field
            path, the byte position in the message and the two numbers compared.
        EncodeError: of the first row with a value that YaFF can't hold.
        ValueError: another layout, or the offsets don't fit the data.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be one of {', '.join(map(repr, LAYOUTS))}, not {layout!r}")
    job = _Job(mp, data, offsets, layout, first_row, keep_errors)
    kernel = _work.kernel(job.count * _MESSAGE_SECONDS + job.nbytes * _BYTE_SECONDS)
    if kernel is None or not job.table.complete:
        return job.plainly()
    stretch = max(1, job.count * _STRETCH_NBYTES // (job.nbytes + 1))
    run_stretches(lambda first, last: job.stretch(kernel, first, last), job.count, stretch, threads)
    return job.joined()


def encode_as(mp: MessagePlan, message: Any, layout: str) -> bytes:
    """As `encode`, for all of our layouts."""
    if layout != "smallest":
        return encode(mp, message, layout)
    flat = encode(mp, message, "flat")
    sparse = encode(mp, message, "sparse")
    return sparse if len(sparse) < len(flat) else flat


class _Job:
    """Messages that are transcoded in one call."""

    def __init__(
        self, mp: MessagePlan, data: Any, offsets: Any, layout: str, first_row: int, keep_errors: bool
    ) -> None:
        self.mp = mp
        self.data = np.frombuffer(data, np.uint8)
        self.offsets = np.ascontiguousarray(offsets, np.int64)
        if self.offsets.ndim != 1 or not self.offsets.size:
            raise ValueError(f"offsets are n + 1 integers for n messages, not of shape {self.offsets.shape}")
        self.layout = layout
        self.first_row = first_row
        self.keep_errors = keep_errors
        self.table: WireTable = transcode_table(mp)
        self.count = len(self.offsets) - 1
        self.nbytes = max(0, int(self.offsets[-1]) - int(self.offsets[0]))
        self.parts: dict[int, Transcoded] = {}  # by their first row
        self.spare: list[_Space] = []

    def row(self, row: int, counted: Uncarried) -> bytes:
        """One message in Python, and what of it isn't carried."""
        payload = row_of(self.mp.full_name, self.data, self.offsets, row, self.first_row)
        try:
            message = _message_class(self.mp).FromString(payload)
        except _protobuf_error() as error:
            raise refused(self.mp.plan, self.mp.full_name, payload, error, self.first_row + row) from None
        try:
            made = encode_as(self.mp, message, self.layout)
        except EncodeError as error:
            raise EncodeError(f"row {self.first_row + row}: {error}") from None
        if self.table.complete:
            counted.update(check_plain(self.mp.plan, self.mp.full_name, payload, self.mp))
        return made

    def plainly(self) -> Transcoded:
        """All rows in Python."""
        made = Transcoded(np.empty(0, np.uint8), np.zeros(self.count + 1, np.int64))
        buffers = []
        for row in range(self.count):
            buffer = b""
            try:
                buffer = self.row(row, made.uncarried)
            except (DecodeError, EncodeError) as error:
                if not self.keep_errors:
                    raise
                made.errors[row] = error
            buffers.append(buffer)
            made.offsets[row + 1] = made.offsets[row] + len(buffer)
        made.data = np.frombuffer(b"".join(buffers), np.uint8)
        return made

    def stretch(self, kernel: Kernel, first: int, last: int) -> None:
        """The rows ``first`` to ``last - 1`` by the kernel."""
        space = self.spare.pop() if self.spare else _Space()
        self.parts[first] = space.run(self, kernel, first, last)
        self.spare.append(space)

    def joined(self) -> Transcoded:
        """What all stretches made."""
        parts = [self.parts[first] for first in sorted(self.parts)]
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


class _Space:
    """What the kernel works with, for one thread."""

    def __init__(self) -> None:
        self.work = np.empty(_WORK_NBYTES, np.uint8)
        self.shared = np.zeros(3 * _SHARED, np.int64)
        self.counts = np.zeros(2 * _COUNTS, np.int64)
        self.generation = 0

    def run(self, job: _Job, kernel: Kernel, first: int, last: int) -> Transcoded:
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

        tell(state.TABLE, _address(job.table.words))
        tell(state.MODE, LAYOUTS.index(job.layout))
        tell(state.DATA, _address(job.data))
        tell(state.DATA_NBYTES, len(job.data))
        tell(state.OFFSETS, _address(job.offsets))
        tell(state.OUT_OFFSETS, _address(offsets) - 8 * first)
        tell(state.SEED, _SEED)
        tell(state.MOST, MAX_OFFSET)
        tell(state.COUNTS, _address(self.counts))
        tell(state.COUNTS_COUNT, _COUNTS)
        tell(state.GENERATION, self.generation)
        row = first
        while True:
            tell(state.OUT, _address(out))
            tell(state.OUT_NBYTES, len(out))
            tell(state.WORK, _address(self.work))
            tell(state.WORK_NBYTES, len(self.work))
            tell(state.SHARED, _address(self.shared))
            tell(state.SHARED_COUNT, len(self.shared) // 3)
            row = kernel.transcode_rows(_address(request), row, last)
            status = told(state.STATUS)
            if status == state.DONE:
                break
            if status == state.NEEDS_OUT:
                out = _grown(out, told(state.OUT_USED), told(state.NEEDED))
            elif status == state.NEEDS_WORK:
                self.work = np.empty(2 * len(self.work), np.uint8)
            elif status == state.NEEDS_SHARED:
                self.shared = np.zeros(3 * told(state.NEEDED), np.int64)
            else:
                buffer = b""
                try:
                    buffer = self._left(job, row, status == state.MALFORMED, made)
                except (DecodeError, EncodeError) as error:
                    if not job.keep_errors:
                        raise
                    made.errors[row] = error
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
            made.uncarried[job.table.names[key - 1 >> 32], (key - 1) & 0xFFFFFFFF] += count
        return made

    def _left(self, job: _Job, row: int, malformed: bool, made: Transcoded) -> bytes:
        """A row that the kernel leaves to us."""
        buffer = job.row(row, made.uncarried)
        if malformed:
            raise YaffjitError(
                f"{job.mp.full_name}: the compiled transcoder refuses a message of row {job.first_row + row} "
                "that protobuf accepts; this is a bug of yaffjit"
            )
        return buffer


def _grown(out: Bytes, used: int, missing: int) -> Bytes:
    """A longer array with the same first bytes."""
    grown = np.empty(2 * len(out) + missing, np.uint8)
    grown[:used] = out[:used]
    return grown


def _load() -> Kernel:
    from yaffjit.kernels.transcode import Kernel

    return Kernel()


def _is_kept() -> bool:
    from yaffjit.kernels.transcode import Kernel

    return Kernel.is_kept()


_work: Work[Kernel] = Work(_load, _is_kept)


def _message_class(mp: MessagePlan) -> Any:
    return mp.plan.schema.message_class(mp.full_name)


def _protobuf_error() -> type[Exception]:
    from google.protobuf.message import DecodeError as ProtobufError

    found: type[Exception] = ProtobufError
    return found


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
