"""Protobuf bytes to YaFF bytes, many messages at once, the same bytes that parsing and `encode` give.

Little work is done by just these two, so that nobody waits for a kernel to be compiled; the kernel does the
rest, and leaves to them the rows of which `encode` has something to say.
"""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING, Any

from yaffjit.codec.encode import LAYOUTS, encode
from yaffjit.codec.stretches import Job, Transcoded
from yaffjit.codec.tiers import BYTE_SECONDS, code_ahead, rows_kernel
from yaffjit.codec.verify_protobuf import refused
from yaffjit.codec.verify_protobuf_plain import Uncarried, check_plain
from yaffjit.codec.work import Work
from yaffjit.errors import EncodeError
from yaffjit.plan.model import MessagePlan
from yaffjit.plan.wire_tables import transcode_table

if TYPE_CHECKING:
    from yaffjit.kernels.transcode import Kernel


def transcode_many(
    mp: MessagePlan,
    data: Any,
    offsets: Any,
    layout: str = "flat",
    threads: int | None = None,
    first_row: int = 0,
    keep_errors: bool = False,
    tier: str = "auto",
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
        tier: what does it, for tests; see `yaffjit.codec.tiers.rows_kernel`.

    Raises:
        DecodeError: of the first row that protobuf doesn't accept: names the row, the message, the field
            path, the byte position in the message and the two numbers compared.
        EncodeError: of the first row with a value that YaFF can't hold.
        ValueError: another layout.

    Requires: nobody writes to the data meanwhile.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be one of {', '.join(map(repr, LAYOUTS))}, not {layout!r}")
    job = _ToYaff(mp, data, offsets, layout, first_row, keep_errors)
    kernel = rows_kernel(job, work, tier)
    return job.plainly() if kernel is None else job.by_kernel(kernel, threads)


def prepare(mp: MessagePlan, layout: str, nbytes: int) -> Thread | None:
    """Have what transcodes so many bytes of messages there when they come, as far as that pays.

    The kernel is loaded; code is made on a thread.

    Returns:
        The thread, to be joined by the caller; None if there's none.
    """
    work.kernel(nbytes * BYTE_SECONDS)
    return code_ahead(mp, transcode_table(mp), LAYOUTS.index(layout), nbytes)


class _ToYaff(Job):
    """Protobuf messages that become YaFF's."""

    def __init__(
        self, mp: MessagePlan, data: Any, offsets: Any, layout: str, first_row: int, keep_errors: bool
    ) -> None:
        super().__init__(mp, data, offsets, first_row, keep_errors)
        self.wire = transcode_table(mp)
        self.table = self.wire.words
        self.names = self.wire.names
        self.layout = layout
        self.mode = LAYOUTS.index(layout)

    def row(self, row: int, counted: Uncarried) -> bytes:
        plan, name = self.mp.plan, self.mp.full_name
        payload = self.payload(row)
        try:
            message = _message_class(self.mp).FromString(payload)
        except _protobuf_error() as error:
            raise refused(plan, name, payload, error, self.first_row + row) from None
        try:
            made = encode(self.mp, message, self.layout)
        except EncodeError as error:
            raise EncodeError(f"row {self.first_row + row}: {error}") from None
        if self.wire.complete:
            counted.update(check_plain(plan, name, payload, self.mp))
        return made


def _load() -> Kernel:
    from yaffjit.kernels.transcode import Kernel

    return Kernel()


def _is_kept() -> bool:
    from yaffjit.kernels.transcode import Kernel

    return Kernel.is_kept()


work: Work[Kernel] = Work(_load, _is_kept)


def _message_class(mp: MessagePlan) -> Any:
    return mp.plan.schema.message_class(mp.full_name)


def _protobuf_error() -> type[Exception]:
    from google.protobuf.message import DecodeError as ProtobufError

    found: type[Exception] = ProtobufError
    return found
