"""What transcodes a job: Python, the kernel for all schemas, or code of the schema's own.

The more work there is, the more of it is saved by what first takes time to make. Work is counted over all
calls, so that many small ones come to it too; and nobody waits for what others are making.
"""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING, Protocol

from yaffjit.codec.work import Work
from yaffjit.forks import renew_in_forks
from yaffjit.plan.model import MessagePlan
from yaffjit.plan.wire_tables import WireTable

if TYPE_CHECKING:
    from yaffjit.codec.emitted.engine import MachineCode
    from yaffjit.codec.stretches import RowsKernel
    from yaffjit.kernels.transcode import Kernel

TIERS = ("auto", "table", "emitted", "plain")

# What one message and one byte of it take in Python, and what they take the kernel.
# Source: `python -m benchmarks --only transcode`; plain Python by hand.
MESSAGE_SECONDS = 20e-6
BYTE_SECONDS = 60e-9
_KERNEL_MESSAGE_SECONDS = 0.3e-6
_KERNEL_BYTE_SECONDS = 2.5e-9
# The share of the kernel's time that emitted code saves.
_SAVED = 0.55
# What emitting and compiling takes: at least, and for each field of all messages, in one form.
# Source: processor time of ads.Banner (21 fields: 0.39 s), tree.Root (29: 0.25 s), a test schema (44: 1 s).
_CODE_SECONDS = 0.1
_FIELD_SECONDS = 0.017
# Rows that emitted code leaves one after the other are given to the kernel by twice as many each time.
_MOST_ROWS = 256


class Transcoding(Protocol):
    """What a job is known by here."""

    mp: MessagePlan
    wire: WireTable
    mode: int
    count: int
    nbytes: int


def rows_kernel(job: Transcoding, kernels: Work[Kernel], tier: str = "auto") -> RowsKernel | None:
    """What does the job, None for Python.

    Args:
        tier: "table" and "emitted" load or make what they are called by however long it takes; with "auto"
            what costs least does it.

    Raises:
        ValueError: another tier.
    """
    if tier not in TIERS:
        raise ValueError(f"tier must be one of {', '.join(map(repr, TIERS))}, not {tier!r}")
    if tier == "plain" or not job.wire.complete:
        return None
    if tier == "table":
        kernel = kernels.load()
        return kernel.run if kernel else None
    code = _code_of(job.mp, job.wire, job.mode)
    if tier == "emitted":
        kernels.load()
        made = code.make(wait=True)
        return None if made is None else Rows(made, job, kernels).run
    plain = _seconds(job, MESSAGE_SECONDS, BYTE_SECONDS)
    by_kernel = _seconds(job, _KERNEL_MESSAGE_SECONDS, _KERNEL_BYTE_SECONDS)
    made = code.repaid(_SAVED * by_kernel if kernels.loaded else plain)
    if made is not None:
        return Rows(made, job, kernels).run
    kernel = kernels.kernel(plain)
    return kernel.run if kernel else None


def code_ahead(mp: MessagePlan, wire: WireTable, mode: int, nbytes: int) -> threading.Thread | None:
    """Starts making the code for so many bytes of messages that are to come, if they will repay it.

    Returns:
        The thread that makes it, to be joined by the caller; None if there's none.
    """
    if not wire.complete:
        return None
    code = _code_of(mp, wire, mode)
    if code.loaded is not None or _SAVED * _KERNEL_BYTE_SECONDS * nbytes < compile_seconds(wire, mode):
        return None
    thread = threading.Thread(target=code.make, args=(False,), name="yaffjit-code")
    thread.start()
    return thread


def _seconds(job: Transcoding, message: float, byte: float) -> float:
    return job.count * message + job.nbytes * byte


class Code:
    """Emitted code of a message type for one layout once it's made, and what it would have saved so far."""

    def __init__(self, wire: WireTable, mode: int) -> None:
        self.loaded: MachineCode | None = None
        self._wire = wire
        self._mode = mode
        self._saved = 0.0
        self._lock = threading.Lock()
        renew_in_forks(self, "_lock", threading.Lock)
        self._costs: float | None = None

    def repaid(self, saved: float) -> MachineCode | None:
        """The code if it's there or worth making for what it saves of a job, in seconds."""
        if self.loaded is None:
            self._saved += saved
            if self._saved > _CODE_SECONDS:
                if self._costs is None:
                    self._costs = compile_seconds(self._wire, self._mode)
                if self._saved > self._costs:
                    return self.make(wait=False)
        return self.loaded

    def make(self, wait: bool) -> MachineCode | None:
        """The code; None if it can't be, or if another thread is making it and we don't wait."""
        if not self._lock.acquire(blocking=wait):
            return None
        try:
            if self.loaded is None:
                from yaffjit.codec.emitted.engine import MachineCode
                from yaffjit.codec.emitted.records import messages_of
                from yaffjit.codec.emitted.rows import can_write, module_of

                messages = messages_of(self._wire)
                if can_write(messages):
                    self.loaded = MachineCode(module_of(messages, self._mode))
            return self.loaded
        finally:
            self._lock.release()


def compile_seconds(wire: WireTable, mode: int) -> float:
    """About what it takes to make the code of a message type; of two forms if sizes are compared."""
    from yaffjit.codec.emitted.records import messages_of

    fields = sum(len(message.wire) for message in messages_of(wire))
    return _CODE_SECONDS + _FIELD_SECONDS * fields * (1 if mode < 2 else 2)


def _code_of(mp: MessagePlan, wire: WireTable, mode: int) -> Code:
    """One for each plan, message type and layout."""
    memo = mp.plan.memo
    key = ("transcoding code", mp.full_name, mode)
    code = memo.get(key)
    if code is None:
        code = memo.setdefault(key, Code(wire, mode))
    assert isinstance(code, Code)
    return code


class Rows:
    """Emitted code for the rows of a job; those that it leaves are done by the kernel if that's worth it.

    The code lives as long as this, and it as long as its method.
    """

    def __init__(self, code: MachineCode, job: Transcoding, kernels: Work[Kernel]) -> None:
        self._code = code
        self._kernels = kernels
        self._row_seconds = MESSAGE_SECONDS + BYTE_SECONDS * job.nbytes / max(1, job.count)

    def run(self, request: int, first: int, last: int) -> int:
        """As the kernel's ``run``: the row that isn't done, else ``last``."""
        from yaffjit.codec.emitted.rows import NOT_MINE
        from yaffjit.kernels import transcode_state as state

        status = ctypes.c_int64.from_address(request + state.STATUS)
        rows, reached = 1, -1
        while True:
            row: int = self._code.rows(request, first, last)
            if status.value != NOT_MINE:
                return row
            kernel = self._kernels.kernel(self._row_seconds)
            if kernel is None:
                return row
            rows = min(2 * rows, _MOST_ROWS) if row == reached else 1
            reached = min(row + rows, last)
            first = kernel.run(request, row, reached)
            if first < reached or first == last:
                return first
