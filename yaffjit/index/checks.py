"""Checks a batch: its checksum, Arrow's own rules, the structure of each message; its bytes are read once."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from yaffjit.errors import IndexFileError, VerifyError
from yaffjit.index.metadata import (
    BATCH_KEY,
    CHECKSUM_KEY,
    LAST_KEY,
    MESSAGE_COLUMN,
    started_checksum,
)
from yaffjit.index.part import Part
from yaffjit.plan import MessagePlan

# Bytes of messages that are verified and then hashed, while the processor has them in its cache.
PIECE_NBYTES = 1 << 20


class Checked(NamedTuple):
    """What was found out about the messages of a batch."""

    ascending: bool  # the keys of all maps
    wrong: VerifyError | None  # with the first message that isn't well-formed


def check_batch(
    part: Part, number: int, mp: MessagePlan, first_row: int, progress: Callable[[int], object]
) -> bool:
    """Check one batch of a part.

    Args:
        part: the file.
        number: of the batch in it.
        mp: the type to check the messages by.
        first_row: the row of the batch's first message within the index, for errors.
        progress: called with numbers of further messages that are done.

    Returns:
        Whether the keys of all maps ascend.

    Raises:
        IndexFileError: names the file, the batch, its rows and what is wrong.
    """
    part.check_size()
    rows = part.batches[number].rows
    where = f"batch {number} (rows {first_row:,} to {first_row + rows - 1:,})" if rows else f"batch {number}"
    batch, metadata = part.batch(number, where)
    said = dict(metadata or {})
    last = number == len(part.batches) - 1
    misplaced = _misplaced(part, number, batch)
    faults = dict(_arrow_faults(batch))
    digest = started_checksum(part.text, number, last, rows)
    checked = Checked(True, None)
    for name, column in zip(part.names, batch.columns, strict=True):
        in_place = name == MESSAGE_COLUMN and not misplaced and name not in faults
        for place, buffer in enumerate((name.encode(), *column.buffers())):
            digest.update(struct.pack("<q", 0 if buffer is None else len(buffer)))
            if in_place and place == 3 and rows:
                checked = _check_messages(part, number, mp, first_row, digest, progress)
            elif buffer is not None:
                digest.update(buffer)
    found = str(digest.hexdigest())
    written = said.get(CHECKSUM_KEY, b"none").decode("ascii", "replace")
    if found != written:
        reason = ""
        if said.get(BATCH_KEY) != str(number).encode():
            reason = f" (it was written as batch {said.get(BATCH_KEY, b'?').decode('ascii', 'replace')})"
        elif said.get(LAST_KEY) == b"0" and last:
            reason = " (it wasn't the last one when it was written)"
        raise IndexFileError(
            f"{part.path}: {where}: its checksum is {found}, but {written} was written{reason}"
        )
    for name, fault in faults.items():
        raise IndexFileError(f"{part.path}: {where}: column {name!r}: {fault}") from fault
    if misplaced:
        raise IndexFileError(f"{part.path}: {where}: its header is damaged: {misplaced}")
    if checked.wrong is not None:
        raise IndexFileError(f"{part.path}: {where}: {checked.wrong}") from checked.wrong
    return checked.ascending


def _arrow_faults(batch: Any) -> Any:
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            yield name, error


def _misplaced(part: Part, number: int, batch: Any) -> str:
    """Where pyarrow and `Part.messages` don't read the same bytes; they must, for what is checked is used."""
    header = part.batches[number]
    if batch.num_rows != header.rows:
        return f"pyarrow reads {batch.num_rows:,} rows in it, but {header.rows:,} stand there"
    if not header.rows:
        return ""
    column = batch.column(0)
    if column.null_count != header.nulls:
        return f"it has {column.null_count:,} null messages, but {header.nulls:,} stand there"
    for buffer, (position, nbytes) in zip(column.buffers(), header.buffers, strict=True):
        if buffer is None and nbytes == 0:
            continue
        expected = part.address() + header.body + position
        if buffer is None or (buffer.address, buffer.size) != (expected, nbytes):
            return "pyarrow reads its messages from another place"
    return ""


def _check_messages(
    part: Part,
    number: int,
    mp: MessagePlan,
    first_row: int,
    digest: Any,
    progress: Callable[[int], object],
) -> Checked:
    """Hash the data of a batch whose offsets are known to be good, and verify its messages on the way."""
    from yaffjit.codec.verify import verify_many
    from yaffjit.codec.verify_protobuf import verify_protobuf_many

    is_yaff = part.description.representation == "yaff"
    position, nbytes, offsets = part.messages(number)
    data = part.data[position : position + nbytes]
    wrong: VerifyError | None = None
    ascending = is_yaff
    hashed = row = 0
    for stop in _pieces(offsets):
        end = int(offsets[stop])
        if wrong is None:
            begin = int(offsets[row])
            own = offsets[row : stop + 1] - begin
            try:
                if is_yaff:
                    ascending &= verify_many(mp, data[begin:end], own, first_row=first_row + row)
                else:
                    verify_protobuf_many(mp.plan, mp.full_name, data[begin:end], own, first_row + row)
            except VerifyError as error:
                wrong = error
        # In this order, because verifying has them loaded ahead of itself, and hashing doesn't.
        digest.update(data[hashed:end])
        progress(stop - row)
        hashed, row = end, stop
    digest.update(data[hashed:])
    return Checked(ascending, wrong)


def _pieces(offsets: NDArray[np.int64]) -> list[int]:
    """Rows at which pieces of about `PIECE_NBYTES` end, the last row's end included."""
    rows = len(offsets) - 1
    marks = np.arange(offsets[0] + PIECE_NBYTES, offsets[-1], PIECE_NBYTES)
    stops = np.unique(np.searchsorted(offsets, marks))
    return [stop for stop in stops.tolist() if 0 < stop < rows] + [rows]
