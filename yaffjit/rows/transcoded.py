"""Records of protobuf bytes, and protobuf bytes of records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from yaffjit.codec.encode import encode
from yaffjit.codec.serialize import serialize_many
from yaffjit.codec.transcode import transcode_many
from yaffjit.plan.model import MessagePlan
from yaffjit.rows.chunks import Chunks
from yaffjit.rows.joined import joined
from yaffjit.rows.payloads import stored
from yaffjit.rows.places import Places
from yaffjit.rows.records import Records

if TYPE_CHECKING:
    import pyarrow

# Scattered messages are copied together by so many at a time.
_BLOCK_ROWS = 65536


class ProtobufPayloads:
    """Protobuf messages as they are encoded: message i is ``data[offsets[i]:offsets[i + 1]]``.

    Has Arrow's PyCapsule interface, so that `yaffjit.records` and Arrow take it without a copy.

    Attributes:
        data: uint8[nbytes], read-only.
        offsets: int64[count + 1], read-only.
        valid: bool[count], false where a row has no message; None if all have one.
    """

    __slots__ = ("data", "offsets", "valid")

    def __init__(
        self,
        data: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.int64],
        valid: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        for array in (data, offsets):
            array.setflags(write=False)
        self.data = data
        self.offsets = offsets
        self.valid = valid

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> bytes | None:
        """The bytes of a message, None of a row without one."""
        row = range(len(self))[row]
        if self.valid is not None and not self.valid[row]:
            return None
        return self.data[self.offsets[row] : self.offsets[row + 1]].tobytes()

    def __iter__(self) -> Iterator[bytes | None]:
        return (self[row] for row in range(len(self)))

    def to_arrow(self) -> pyarrow.LargeBinaryArray:
        """As an Arrow array, which shares the bytes."""
        import pyarrow

        mask = None
        if self.valid is not None:
            mask = pyarrow.py_buffer(np.packbits(self.valid, bitorder="little"))
        buffers = [mask, pyarrow.py_buffer(self.offsets), pyarrow.py_buffer(self.data)]
        return pyarrow.Array.from_buffers(pyarrow.large_binary(), len(self), buffers)

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self.to_arrow().__arrow_c_array__(requested_schema)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self):,} messages, {len(self.data):,} bytes>"


class _Part(NamedTuple):
    """Messages in one buffer, the first of which is row ``row``, and which are null rows if any may be."""

    row: int
    data: Any
    offsets: npt.NDArray[np.int64]
    valid: npt.NDArray[np.bool_] | None


def transcode(mp: MessagePlan, messages: Any, layout: str, representation: str, threads: int | None) -> Any:
    """Protobuf messages as records, or records as protobuf messages, as ``representation`` says."""
    if representation == "yaff":
        if isinstance(messages, Records):
            if messages.representation == "yaff":
                raise TypeError(
                    "these records are YaFF already; representation='protobuf' makes protobuf of them"
                )
            _check_same_type(mp, messages)
        return yaff_records(mp, messages, layout, threads)
    if representation != "protobuf":
        raise ValueError(f"representation must be 'yaff' or 'protobuf', not {representation!r}")
    if not isinstance(messages, Records):
        raise TypeError(f"protobuf is made of records, not of {type(messages).__name__}")
    _check_same_type(mp, messages)
    if messages.representation == "protobuf":
        raise TypeError("these records are protobuf already; representation='yaff' makes YaFF of them")
    return protobuf_payloads(messages, threads)


def _check_same_type(mp: MessagePlan, messages: Records) -> None:
    if messages.plan.fingerprint != mp.fingerprint:
        found = messages.plan.full_name
        also = " by another schema" if found == mp.full_name else ""
        raise ValueError(f"records of {mp.full_name} are needed, not of {found}{also}")


def yaff_records(mp: MessagePlan, payloads: Any, layout: str = "flat", threads: int | None = None) -> Records:
    """Protobuf messages as records of YaFF's; see `yaffjit.codec.transcode.transcode_many`.

    ``payloads``: what `yaffjit.records` takes, or records of protobuf bytes.
    """
    if isinstance(payloads, Records):
        store = payloads._store
        store.check()
        parts = _parts(store, payloads._start, len(payloads), b"")
    elif isinstance(payloads, (list, tuple)) and all(type(payload) is bytes for payload in payloads):
        parts = iter((_joined_part(0, payloads, None),))
    else:
        store = stored(mp.plan, payloads, copy=True)
        parts = _parts(store, 0, store.rows, b"")
    made: list[Chunks | Places] = []
    for part in parts:
        done = transcode_many(mp, part.data, part.offsets, layout, threads, part.row)
        chunks = Chunks.of_array(mp.plan, _read_only(done.data), _read_only(done.offsets), given=False)
        chunks.memory.ascending = True
        made.append(chunks)
        if part.valid is not None:
            made[-1] = Places.of_chunks(chunks, 0, chunks.rows).masked(part.valid)
    if not made:
        made.append(Chunks.of_array(mp.plan, b"", np.zeros(1, np.int64)))
    return Records._of(mp, joined(mp.plan, made))


def protobuf_payloads(records: Records, threads: int | None = None) -> ProtobufPayloads:
    """Records as protobuf messages; see `yaffjit.codec.serialize.serialize_many`."""
    mp, store, start, count = records.plan, records._store, records._start, records._count
    store.check()
    filler = b"" if isinstance(store, Chunks) else encode(mp, {})
    parts = list(_parts(store, start, count, filler))
    done = [serialize_many(mp, part.data, part.offsets, threads, part.row) for part in parts]
    offsets = np.zeros(count + 1, np.int64)
    for part, made in zip(parts, done, strict=True):
        rows = slice(part.row + 1, part.row + len(made.offsets))
        offsets[rows] = made.offsets[1:] + offsets[part.row]
    data = [made.data for made in done]
    valid = None if isinstance(store, Chunks) and not store.has_nulls else store.valid(start, count)
    return ProtobufPayloads(
        data[0] if len(data) == 1 else np.concatenate([np.empty(0, np.uint8), *data]),
        offsets,
        None if valid is None or valid.all() else valid,
    )


def _parts(store: Chunks | Places, start: int, count: int, filler: bytes) -> Iterator[_Part]:
    """Rows of a store, counted from ``start``, in buffers; null rows hold ``filler``."""
    if isinstance(store, Chunks):
        for row, data, offsets in store.stretches(start, count):
            valid = store.valid(row, len(offsets) - 1) if store.has_nulls else None
            yield _Part(row - start, data, offsets, valid)
        return
    for first in range(start, start + count, _BLOCK_ROWS):
        rows = range(first, min(first + _BLOCK_ROWS, start + count))
        payloads = [store.payload(row) for row in rows]
        held = [filler if payload is None else payload for payload in payloads]
        yield _joined_part(first - start, held, store.valid(first, len(rows)))


def _joined_part(row: int, payloads: Sequence[bytes], valid: npt.NDArray[np.bool_] | None) -> _Part:
    offsets = np.zeros(len(payloads) + 1, np.int64)
    np.cumsum([len(payload) for payload in payloads], out=offsets[1:])
    return _Part(row, b"".join(payloads), offsets, valid)


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.setflags(write=False)
    return array
