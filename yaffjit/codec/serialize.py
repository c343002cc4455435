"""YaFF bytes to protobuf bytes, many messages at once: what protobuf serializes of the decoded message.

As in `yaffjit.codec.transcode` little work is done in Python, and so are rows that the kernel leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from yaffjit.codec.decode import MAX_NBYTES, decode_at
from yaffjit.codec.locate import read_u32
from yaffjit.codec.stretches import Job, Transcoded
from yaffjit.codec.verify_protobuf_plain import Uncarried
from yaffjit.codec.work import Work
from yaffjit.errors import DecodeError
from yaffjit.plan.model import MessagePlan
from yaffjit.plan.serialize_tables import serialize_table

if TYPE_CHECKING:
    from yaffjit.kernels.serialize import Kernel

# What one message and one byte of it take in Python.
_MESSAGE_SECONDS = 20e-6
_BYTE_SECONDS = 60e-9


def serialize_many(
    mp: MessagePlan,
    data: Any,
    offsets: Any,
    threads: int | None = None,
    first_row: int = 0,
    keep_errors: bool = False,
) -> Transcoded:
    """The protobuf bytes of many YaFF messages.

    They are what protobuf serializes of the decoded message: fields by number, packed where the schema says
    so, without implicit defaults; but maps by ascending key, where protobuf's order isn't specified.

    Args:
        mp: the plan of the messages.
        data: bytes or any contiguous buffer that holds them all.
        offsets: int64[count + 1]; message i is ``data[offsets[i]:offsets[i + 1]]``.
        threads: how many work at the same time, None for one a core.
        first_row: the row of the first message, for errors.
        keep_errors: rows that protobuf can't hold have no bytes, and their errors are in the result.

    Raises:
        DecodeError: a message takes more than 2 GiB - 1.

    Requires: the messages are well-formed, their text too.
    """
    job = _ToProtobuf(mp, data, offsets, first_row, keep_errors)
    kernel = work.kernel(job.count * _MESSAGE_SECONDS + job.nbytes * _BYTE_SECONDS)
    return job.plainly() if kernel is None else job.by_kernel(kernel.run, threads)


class _ToProtobuf(Job):
    """YaFF messages that become protobuf's."""

    most_work = 2 * MAX_NBYTES

    def __init__(self, mp: MessagePlan, data: Any, offsets: Any, first_row: int, keep_errors: bool) -> None:
        super().__init__(mp, data, offsets, first_row, keep_errors)
        self.table = serialize_table(mp)

    def row(self, row: int, counted: Uncarried) -> bytes:
        payload = self.payload(row)
        try:
            message = decode_at(self.mp, payload, read_u32(payload, 0)[0])
        except DecodeError as error:
            raise DecodeError(f"row {self.first_row + row}: {error}") from None
        made: bytes = type(message).SerializePartialToString(message, deterministic=True)
        return made


def _load() -> Kernel:
    from yaffjit.kernels.serialize import Kernel

    return Kernel()


def _is_kept() -> bool:
    from yaffjit.kernels.serialize import Kernel

    return Kernel.is_kept()


work: Work[Kernel] = Work(_load, _is_kept)
