"""Many messages of one type that lie in one buffer: a sequence of views that nothing is copied for."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from yaffjit.errors import RowError, VerifyError
from yaffjit.plan.model import MessagePlan
from yaffjit.rows.chunks import Chunks
from yaffjit.rows.payloads import Buffers, frozen, joined

if TYPE_CHECKING:
    from yaffjit.columns import Columns
    from yaffjit.view import View

REPRESENTATIONS = ("yaff",)

_read_u32 = struct.Struct("<I").unpack_from


def records(
    mp: MessagePlan, payloads: Any, representation: str = "yaff", copy: bool = False, verify: bool = True
) -> Records:
    """Messages that are already encoded, as records.

    Args:
        mp: their type.
        payloads: an iterable of bytes, one a message, which are joined into one buffer; or
            ``(data, offsets)``, where message i is ``data[offsets[i]:offsets[i + 1]]`` and nothing is copied:
            data any contiguous buffer, offsets n + 1 integers; or a binary or large_binary Arrow array
            without nulls.
        representation: how the messages are encoded: "yaff".
        copy: copy ``data`` first. Needed where anybody could write to its memory, even if through another
            object, because what was verified mustn't change. Offsets are copied wherever they could change.
        verify: check that no reader can leave the data; False is for data that was verified before.

    Raises:
        VerifyError: names the row, the message, the field path, the byte position and the numbers compared.
        ValueError: ``data`` is writable, the offsets don't fit it, or the representation is unknown.
    """
    _check_representation(representation)
    made = Records._of(mp, joined(payloads), copy)
    if verify:
        made.verify()
    return made


def records_unchecked(mp: MessagePlan, payloads: Any, representation: str = "yaff") -> Records:
    """As `records`, but trusts the messages, and takes writable data as it is.

    Requires: each message is well-formed, and neither data nor offsets change while the records, their views
    or a jitted function that reads them live.
    """
    _check_representation(representation)
    return Records._of(mp, joined(payloads), copy=None)


def _check_representation(representation: str) -> None:
    if representation not in REPRESENTATIONS:
        known = ", ".join(map(repr, REPRESENTATIONS))
        raise ValueError(f"representation {representation!r} isn't supported; supported: {known}")


class Records:
    """A sequence of messages of one type; rows are views, made when they are asked for.

    Slices with step 1 share everything; other steps copy their messages. Records pass into jitted functions.

    Args:
        mp: the type of the messages.
        data: bytes or a read-only buffer.
        offsets: n + 1 integers; message i is ``data[offsets[i]:offsets[i + 1]]``.

    Requires: the messages are well-formed (`records` checks it), and data doesn't change.
    """

    # _view_class, and what numba reads (_numba_type_, _chunk_table_address, _owner), are set when they are
    # first asked for.
    __slots__ = (
        "__weakref__",
        "_chunk_table_address",
        "_chunks",
        "_count",
        "_numba_type_",
        "_owner",
        "_plan",
        "_start",
        "_view_class",
    )

    _plan: MessagePlan
    _chunks: Chunks
    _start: int
    _count: int

    def __init__(self, mp: MessagePlan, data: Any, offsets: Any) -> None:
        chunks = Chunks.of_array(mp.plan, data, offsets)
        self._set(mp, chunks, 0, chunks.rows)

    @classmethod
    def _of(cls, mp: MessagePlan, buffers: Buffers, copy: bool | None = False) -> Records:
        """Records of buffers; ``copy`` None takes data that could change as it is."""
        data = buffers.data if copy is None else frozen(buffers, copy)
        chunks = Chunks.of_array(mp.plan, data, buffers.offsets, buffers.given)
        made = Records.__new__(Records)
        made._set(mp, chunks, 0, chunks.rows)
        return made

    def _set(self, mp: MessagePlan, chunks: Chunks, start: int, count: int) -> None:
        self._plan = mp
        self._chunks = chunks
        self._start = start
        self._count = count

    def _shared(self, start: int, count: int) -> Records:
        """Rows of these records that share their chunks."""
        made = Records.__new__(Records)
        made._set(self._plan, self._chunks, self._start + start, count)
        return made

    def __getattr__(self, name: str) -> Any:
        make = _AT_FIRST_USE.get(name)
        if make is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        value = make(self)
        setattr(self, name, value)
        return value

    @property
    def plan(self) -> MessagePlan:
        """The type of the messages, laid out."""
        return self._plan

    @property
    def nbytes(self) -> int:
        """Bytes of all messages together."""
        return self._chunks.nbytes(self._start, self._count)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, key: int) -> View: ...
    @overload
    def __getitem__(self, key: slice) -> Records: ...
    def __getitem__(self, key: Any) -> Any:
        """``recs[i]`` is a view, ``recs[a:b]`` records."""
        if isinstance(key, slice):
            start, stop, step = key.indices(self._count)
            if step == 1:
                return self._shared(start, max(0, stop - start))
            self._chunks.check()
            return Records._of(self._plan, joined(map(self.payload, range(start, stop, step))))
        at = self._chunks.start(self._chunk_row(key))
        data = self._chunks.data
        try:
            return self._view_class(data, at + _read_u32(data, at)[0], self._owner)
        except struct.error:
            raise _too_short(self, at) from None

    def __iter__(self) -> Iterator[View]:
        self._chunks.check()
        view, data, owner = self._view_class, self._chunks.data, self._owner
        try:
            for base, offsets in self._chunks.starts(self._start, self._count):
                for offset in offsets:
                    at = base + offset
                    yield view(data, at + _read_u32(data, at)[0], owner)
        except struct.error:
            raise _too_short(self, at) from None

    def __reversed__(self) -> Iterator[View]:
        return (self[row] for row in range(self._count - 1, -1, -1))

    def payload(self, row: int) -> bytes:
        """The encoded bytes of one message (a copy)."""
        start, stop = self._chunks.span(self._chunk_row(row))
        return bytes(self._chunks.data[start:stop])

    def head(self, n: int = 5) -> Records:
        """The first n rows, sharing everything."""
        return self[:n]

    def columns(self, *paths: str, out: Mapping[str, np.ndarray[Any, Any]] | None = None) -> Columns:
        """Fields of all rows as numpy arrays, read in one pass.

        Args:
            paths: scalar or enum fields, through nested messages with dots: ``"id", "stats.ctr"``.
            out: arrays to fill, by path: C-contiguous, of shape ``(len(self),)`` and the field's own dtype.
                Those left out are made.

        Returns:
            `Columns`: ``cols["stats.ctr"]`` is an array of the field's own dtype (enums: int32); a field that
            is absent reads as its default; ``cols.present("stats.ctr")`` tells.

        Raises:
            SchemaError: a path isn't a column.
            ValueError: an array of ``out`` doesn't fit.
        """
        from yaffjit.columns import columns

        return columns(self, paths, out)

    def verify(self, progress: bool | None = None) -> None:
        """Check that no reader can leave the data, whatever it reads. Raises VerifyError with its row."""
        from yaffjit.codec.verify import verify_many
        from yaffjit.progress import progress_bar

        with progress_bar(f"verify {self._plan.full_name}", self._count, "rows", progress) as bar:
            for row, data, offsets in self._chunks.stretches(self._start, self._count):
                first = row - self._start
                self._chunks.check()
                verify_many(self._plan, data, offsets, progress=bar.update, first_row=first)

    def _chunk_row(self, row: Any) -> int:
        """The row counted from the first chunk, of a row of ours, which may be negative."""
        try:
            index = operator.index(row)
        except TypeError:
            raise TypeError(
                f"records are indexed by row numbers and slices, not by {type(row).__name__}"
            ) from None
        if index < 0:
            index += self._count
        if not 0 <= index < self._count:
            raise RowError(operator.index(row), self._count)
        return self._start + index

    def __copy__(self) -> Records:
        return self

    def __deepcopy__(self, memo: Any) -> Records:
        return self

    def __reduce__(self) -> Any:
        """Pickles hold the bytes of these rows alone, and the schema."""
        return Records, (self._plan, *self._chunks.copied(self._start, self._count))

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} of {self._plan.full_name}: {self._count:,} rows, {self.nbytes:,} bytes>"
        )


def _numba_type(recs: Records) -> Any:
    from yaffjit.jit import records_type

    return records_type(recs._plan)


def _view_class(recs: Records) -> Any:
    from yaffjit.view import view_class

    return view_class(recs._plan)


def _too_short(recs: Records, at: int) -> VerifyError:
    """For data that was never verified: a message begins beyond its end."""
    nbytes = len(recs._chunks.data)
    return VerifyError(
        f"the data of {nbytes} bytes ends before the message", at, message=recs._plan.full_name
    )


_AT_FIRST_USE: Mapping[str, Callable[[Records], Any]] = {
    "_view_class": _view_class,
    "_numba_type_": _numba_type,
    "_chunk_table_address": lambda recs: recs._chunks.table_address,
    "_owner": lambda recs: recs._chunks.owner,
}
