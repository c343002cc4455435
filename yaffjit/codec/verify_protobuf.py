"""Whether protobuf accepts bytes as messages of a schema: its own parser or the kernel decides.

What is wrong is said by `yaffjit.codec.verify_protobuf_plain`. The messages needn't be ones that YaFF can
hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from yaffjit.arrays import array_address
from yaffjit.codec.stretches import misplaced
from yaffjit.codec.verify_protobuf_plain import MAX_SIZE, check_plain
from yaffjit.codec.work import Work
from yaffjit.errors import DecodeError, VerifyError, YaffjitError
from yaffjit.plan import Plan
from yaffjit.plan.wire_tables import WireTable, wire_table

if TYPE_CHECKING:
    from yaffjit.kernels.transcode import ScanKernel

# What protobuf's parser takes for a message and for a byte of it.
_MESSAGE_SECONDS = 1e-6
_BYTE_SECONDS = 2e-9
# Bytes that one call of the kernel checks, so that Ctrl-C works.
_CALL_NBYTES = 16 * 2**20


def verify_protobuf(plan: Plan, full_name: str, data: Any) -> None:
    """Check that protobuf accepts a message of that type.

    Args:
        plan: the schema that has it.
        data: bytes or any contiguous buffer.

    Raises:
        VerifyError: names the message, the field path, the byte position and the two numbers compared.
    """
    shown = memoryview(data)
    if shown.nbytes > MAX_SIZE:  # of which protobuf's own parsers differ
        check_plain(plan, full_name, shown.cast("B"))
    _parse(plan, full_name, shown.tobytes(), None)


def verify_protobuf_many(plan: Plan, full_name: str, data: Any, offsets: Any, first_row: int = 0) -> None:
    """`verify_protobuf` for many messages at once; other threads run meanwhile.

    Args:
        plan: the schema that has their type.
        data: bytes or any contiguous buffer that holds them all.
        offsets: int64[count + 1]; message i is ``data[offsets[i]:offsets[i + 1]]``.
        first_row: the row of the first message, for errors.

    Raises:
        VerifyError: of the first row that is bad; positions are within the row.
    """
    held = np.frombuffer(data, np.uint8)
    array = np.ascontiguousarray(offsets, np.int64)
    count = len(array) - 1
    nbytes = max(0, int(array[-1]) - int(array[0]))
    table = wire_table(plan, full_name)
    kernel = work.kernel(count * _MESSAGE_SECONDS + nbytes * _BYTE_SECONDS)
    accepted = 0
    if kernel is not None and table.complete:
        accepted = _accepted(kernel, table, held, array)
    for row in range(accepted, count):
        begin, end = int(array[row]), int(array[row + 1])
        if not 0 <= begin <= end <= len(held):
            raise misplaced(full_name, begin, end, len(held), first_row + row)
        _parse(plan, full_name, held[begin:end].tobytes(), first_row + row)
        if kernel is not None and table.complete:
            raise YaffjitError(
                f"{full_name}: the compiled check refuses a message of row {first_row + row} that protobuf "
                "accepts; this is a bug of yaffjit"
            )


def faults_of_many(
    plan: Plan, full_name: str, data: Any, offsets: Any, first_row: int = 0
) -> dict[int, VerifyError]:
    """What is wrong with those of many messages that protobuf doesn't accept, by their number from 0.

    Args: as `verify_protobuf_many`; errors count rows from ``first_row``.
    """
    found: dict[int, VerifyError] = {}
    array = np.ascontiguousarray(offsets, np.int64)
    row, count = 0, len(array) - 1
    while row < count:
        try:
            verify_protobuf_many(plan, full_name, data, array[row:], first_row + row)
            break
        except VerifyError as error:
            assert error.row is not None
            row = error.row - first_row
            found[row] = error
            row += 1
    return found


def _accepted(kernel: ScanKernel, table: WireTable, data: NDArray[Any], offsets: NDArray[Any]) -> int:
    """How many rows are accepted before the first one that isn't."""
    count = len(offsets) - 1
    step = max(1, count * _CALL_NBYTES // (len(data) + 1))
    words, held, places = (array_address(array) for array in (table.words, data, offsets))
    for row in range(0, count, step):
        last = min(row + step, count)
        done: int = kernel.scan_rows(words, held, len(data), places, row, last)
        if done < last:
            return done
    return count


def refused(plan: Plan, full_name: str, payload: bytes, cause: Exception, row: int | None) -> DecodeError:
    """What to raise for a message that protobuf doesn't accept: ``cause`` is what it says itself."""
    try:
        check_plain(plan, full_name, payload)
    except VerifyError as error:
        error.row = row
        return error
    return VerifyError(str(cause), message=full_name, row=row)


def _parse(plan: Plan, full_name: str, payload: bytes, row: int | None) -> None:
    from google.protobuf.message import DecodeError as ProtobufError

    try:
        plan.schema.message_class(full_name).FromString(payload)
    except ProtobufError as error:
        raise refused(plan, full_name, payload, error, row) from None


def _load() -> ScanKernel:
    from yaffjit.kernels.transcode import ScanKernel

    return ScanKernel()


def _is_kept() -> bool:
    from yaffjit.kernels.transcode import ScanKernel

    return ScanKernel.is_kept()


work: Work[ScanKernel] = Work(_load, _is_kept)
