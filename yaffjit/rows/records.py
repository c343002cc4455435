"""Many messages of one type, wherever they lie: a sequence of views that nothing is copied for."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, overload

import numpy as np
import numpy.typing as npt

from yaffjit.errors import RowError
from yaffjit.markup import Shown
from yaffjit.plan.model import MessagePlan
from yaffjit.plan.pages import PAGE_ROWS
from yaffjit.rows.chunks import Chunks
from yaffjit.rows.joined import joined, settled
from yaffjit.rows.payloads import stored
from yaffjit.rows.places import Places
from yaffjit.rows.readers import REPRESENTATIONS, reader
from yaffjit.rows.select import selected, taken
from yaffjit.rows.tabular import Tabular
from yaffjit.typed import AnyView

if TYPE_CHECKING:
    from yaffjit.columns import Columns

_WHOLE = ": rows are looked up in a whole index, as in index.take(index.rows(keys))"


def records(
    mp: MessagePlan,
    payloads: Any,
    representation: str = "yaff",
    copy: bool = False,
    verify: bool | None = None,
) -> Records:
    """Messages that are already encoded, as records; nothing is copied.

    Args:
        mp: their type.
        payloads: an iterable of bytes, one a message, or None for a null row;
            ``(data, offsets)``, where message i is ``data[offsets[i]:offsets[i + 1]]``: data any contiguous
            buffer, a memory map say, offsets n + 1 integers;
            an Arrow array of binary, large_binary, binary_view or fixed_size_binary, also chunked, sliced,
            dictionary-encoded, with nulls, of pyarrow or of any library with the Arrow PyCapsule interface;
            a numpy array of V bytes, or of S bytes of which none ends in a zero.
        representation: how the messages are encoded: "yaff" or "protobuf".
        copy: copy what could change first: what was verified mustn't change, even if through another object,
            nor what is read twice. Offsets are copied wherever they could change.
        verify: check all messages. None checks those of YaFF, so that no reader can leave the data; False is
            for data that was verified before. Protobuf bytes are checked whenever they are read.

    Raises:
        VerifyError: names the row, the message, the field path, the byte position and the numbers compared.
        ValueError: a buffer is writable, offsets don't fit it, or the representation is unknown.
        TypeError: these aren't payloads.
    """
    _check_representation(representation)
    made = Records._of(mp, stored(mp.plan, payloads, copy), representation)
    if verify or (verify is None and representation == "yaff"):
        made._store.memory.ascending = made._verify()
    return made


def records_unchecked(mp: MessagePlan, payloads: Any, representation: str = "yaff") -> Records:
    """As `records`, but trusts the messages, and takes writable data as it is.

    Requires: each message is well-formed, and neither data nor offsets change while the records, their views
    or a jitted function that reads them live.
    """
    _check_representation(representation)
    return Records._of(mp, stored(mp.plan, payloads, copy=None), representation)


def concat(parts: Iterable[Records]) -> Records:
    """All rows of several records, in order; no message is copied.

    Raises:
        ValueError: there are none, or they aren't of one message type, or not encoded in the same way.
        TypeError: one of them isn't records.
    """
    parts = list(parts)
    for part in parts:
        if not isinstance(part, Records):
            raise TypeError(f"concat takes records, not {type(part).__name__}")
    if not parts:
        raise ValueError("concat takes at least one records, whose message type it has")
    first, representation = parts[0]._plan, parts[0].representation
    for part in parts[1:]:
        other = part._plan
        if other.full_name != first.full_name:
            raise ValueError(f"records of {first.full_name} and of {other.full_name} can't be one")
        if other.fingerprint != first.fingerprint:
            raise ValueError(
                f"records of {first.full_name} by two schemas can't be one: their fingerprints are "
                f"{first.fingerprint} and {other.fingerprint}"
            )
        if part.representation != representation:
            raise ValueError(
                f"records of {first.full_name} encoded as {representation!r} and as {part.representation!r} "
                "can't be one: transcode some of them first"
            )
    return Records._of(first, joined(first.plan, [part._own_store() for part in parts]), representation)


def _check_representation(representation: str) -> None:
    if representation not in REPRESENTATIONS:
        known = ", ".join(map(repr, REPRESENTATIONS))
        raise ValueError(f"representation {representation!r} isn't supported; supported: {known}")


class Records(Tabular, Shown, Generic[AnyView]):
    """A sequence of messages of one type; rows are views, made when they are asked for.

    Slices, selections and concatenations share all messages. Records pass into jitted functions.

    Args:
        mp: the type of the messages.
        data: bytes or a read-only buffer.
        offsets: n + 1 integers; message i is ``data[offsets[i]:offsets[i + 1]]``.

    Attributes:
        representation: how the messages are encoded: "yaff" or "protobuf".

    Requires: the messages are well-formed (`records` checks it), and data doesn't change.
    """

    # What makes views (_reader), and what numba reads (_numba_type_, _table_address, _owner), is set when
    # it's first asked for.
    __slots__ = (
        "__weakref__",
        "_count",
        "_numba_type_",
        "_owner",
        "_plan",
        "_reader",
        "_start",
        "_store",
        "_table_address",
        "representation",
    )

    representation: str

    _plan: MessagePlan
    _store: Chunks | Places
    _start: int
    _count: int

    def __init__(self, mp: MessagePlan, data: Any, offsets: Any) -> None:
        chunks = Chunks.of_array(mp.plan, data, offsets)
        self._set(mp, chunks, 0, chunks.rows)

    @classmethod
    def _of(cls, mp: MessagePlan, store: Chunks | Places, representation: str = "yaff") -> Records:
        """All rows of where messages lie."""
        made = Records.__new__(Records)
        made._set(mp, store, 0, store.rows, representation)
        return made

    def _set(
        self,
        mp: MessagePlan,
        store: Chunks | Places,
        start: int,
        count: int,
        representation: str = "yaff",
    ) -> None:
        self._plan = mp
        self.representation = representation
        self._store = settled(store)
        self._start = start
        self._count = count

    def _shared(self, start: int, count: int) -> Records:
        """Rows of these records that share their places."""
        made = Records.__new__(Records)
        made._set(self._plan, self._store, self._start + start, count, self.representation)
        return made

    def _own_store(self) -> Chunks | Places:
        """Where these rows alone lie."""
        self._check()
        store, start, count = self._store, self._start, self._count
        if (start, count) == (0, store.rows):
            return store
        if isinstance(store, Places):
            return store.taken(slice(start, start + count))
        return Chunks(self._plan.plan, store.parts(start, count), memory=store.memory)

    def _taken(self, rows: npt.NDArray[np.int64]) -> Records:
        """Rows of these records by number, from 0 to their count, in an array that is ours to change."""
        store = self._store
        store.check()
        rows += self._start
        places = store.taken(rows) if isinstance(store, Places) else Places.of_rows(store, rows)
        return Records._of(self._plan, places, self.representation)

    def __getattr__(self, name: str) -> Any:
        make = _AT_FIRST_USE.get(name)
        if make is None:
            hint = _WHOLE if name == "rows" else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")
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
        self._check()
        return self._store.nbytes(self._start, self._count)

    @property
    def valid(self) -> npt.NDArray[np.bool_]:
        """Which rows aren't null: a read-only bool array of shape ``(len(self),)``."""
        if isinstance(self._store, Places) or self._store.has_nulls:
            self._check()
            found = self._store.valid(self._start, self._count)
            found.flags.writeable = False
            return found
        return np.broadcast_to(np.True_, self._count)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, key: int) -> AnyView: ...
    @overload
    def __getitem__(self, key: Any) -> Records[AnyView]: ...
    def __getitem__(self, key: Any) -> Any:
        """A row, or records of some rows, which share their messages.

        Args:
            key: a row number, of which negative ones count from the end, for a view; a slice, a mask (a bool
                array of shape ``(len(self),)``), or an array or list of row numbers for records.

        Raises:
            RowError: a row is out of range.
            IndexError: a mask has another length.
            TypeError: ``key`` is none of these.
        """
        if isinstance(key, slice):
            start, stop, step = key.indices(self._count)
            if step == 1:
                return self._shared(start, max(0, stop - start))
            # A longer step leads out as well, and needn't fit 64 bits.
            step = min(max(step, -self._count - 1), self._count + 1)
            return self._taken(np.arange(start, stop, step))
        try:
            index = operator.index(key)
        except TypeError:
            return self._taken(selected(key, self._count))
        return self._reader.view(self._row(index))

    def __iter__(self) -> Iterator[AnyView]:
        self._store.check()
        yield from self._reader.views(self._start, self._count)

    def __reversed__(self) -> Iterator[AnyView]:
        self._check()
        return (self[row] for row in range(self._count - 1, -1, -1))

    def __add__(self, other: Any) -> Records[AnyView]:
        return concat([self, other]) if isinstance(other, Records) else NotImplemented

    def payload(self, row: int) -> bytes | None:
        """The encoded bytes of one message (a copy); None of a null row."""
        return self._store.payload(self._row(operator.index(row)))

    def take(self, rows: Any) -> Records[AnyView]:
        """Rows in the order given, also more than once; no message is copied.

        Jitted loops over them fetch messages ahead, so that they take rows from anywhere at the speed of
        memory.

        Args:
            rows: an array or sequence of row numbers, of which negative ones count from the end.

        Raises:
            RowError: a row is out of range.
            TypeError: ``rows`` aren't integers.
        """
        return self._taken(taken(rows, self._count))

    def head(self, n: int = 5) -> Records[AnyView]:
        """The first n rows; all but the last -n if n is negative."""
        return self[:n]

    def tail(self, n: int = 5) -> Records[AnyView]:
        """The last n rows; all but the first -n if n is negative."""
        n = operator.index(n)
        return self[max(0, self._count - n) if n >= 0 else -n :]

    def sample(self, n: int, seed: Any = None) -> Records[AnyView]:
        """n rows at random, each at most once, in random order.

        Args:
            seed: what `numpy.random.default_rng` takes, a Generator too.

        Raises:
            ValueError: n is negative, or there aren't so many rows.
        """
        n = operator.index(n)
        if not 0 <= n <= self._count:
            raise ValueError(f"{n} rows can't be sampled of {self._count}")
        return self._taken(np.random.default_rng(seed).choice(self._count, n, replace=False).astype(np.int64))

    def batches(self, rows: int = PAGE_ROWS) -> Iterator[Records]:
        """All rows in order, up to so many at a time. ValueError if that isn't at least 1."""
        rows = operator.index(rows)
        if rows < 1:
            raise ValueError(f"a batch has at least 1 row, not {rows}")
        return (self[row : row + rows] for row in range(0, self._count, rows))

    def columns(
        self,
        *paths: str,
        out: Mapping[str, np.ndarray[Any, Any]] | None = None,
        threads: int | None = None,
        assume_canonical: bool = False,
    ) -> Columns:
        """Fields of all rows as numpy arrays, read in one pass, or two.

        Args:
            paths: ``"id", "stats.ctr", "items.price", 'attrs["size"]', "len(tags)", "stats.*", "id:int32"``:
                the language of docs/columns.md.
            out: arrays to fill, by path, of columns with one number a row: C-contiguous, of shape
                ``(len(self),)`` and the column's dtype. Those left out are made.
            threads: how many read at most; None for all cores.
            assume_canonical: of protobuf bytes: each message has its fields by ascending number, and those
                that aren't repeated once, as protobuf writes them. Then no more of it is read than
                the paths need; where it isn't so, what comes is one of the values that are there, or none.

        Returns:
            `Columns`: ``cols["stats.ctr"]`` is an array of the field's own dtype (enums: int32); a field that
            is absent reads as its default; ``cols.present("stats.ctr")`` tells. Text, lists and maps are
            offsets and values.

        Raises:
            SchemaError: a path isn't a column.
            ValueError: an array of ``out`` doesn't fit.
            VerifyError: protobuf bytes aren't what protobuf accepts; names the row, field path and position.
            OverflowError: a value doesn't fit the dtype that was asked for; names the row and the value.
        """
        from yaffjit.columns import columns

        return columns(self, paths, out, threads, assume_canonical)

    def map(
        self,
        function: Callable[..., Any],
        *,
        threads: int | None = None,
        jit: bool = True,
        args: tuple[Any, ...] = (),
        progress: bool | None = None,
    ) -> Any:
        """``function(view, *args)`` of each row, compiled, as an array; as several if it returns tuples.

        Args:
            function: a plain or jitted function; it returns a number, bool, text, bytes, a date, a tuple of
                these, or a 1-D array of one length (docs/map.md). None means missing; so does a null row.
            threads: how many work at the same time, None for one a core.
            jit: False runs it in Python.
            progress: a bar: None shows it on a terminal if this takes over a second.

        Returns:
            An array of shape ``(len(self),)``: bool, int64, uint64, float64, datetime64, timedelta64 or
            object, of arrays ``(len(self), length)``. Where something may be missing: a masked array, or NaN
            among floats, None among objects.

        Raises:
            CompileError: the function can't be compiled, or returns what has no array.
            Whatever the function raises, in the first row by order; its attribute ``row`` tells which.
        """
        from yaffjit.mapping import map_records

        return map_records(self, function, threads, jit, args, progress)

    def filter(
        self,
        function: Callable[..., Any],
        *,
        threads: int | None = None,
        jit: bool = True,
        args: tuple[Any, ...] = (),
        progress: bool | None = None,
    ) -> Records:
        """The rows of which ``function(view, *args)`` is true; see `map`. TypeError where it isn't that."""
        from yaffjit.mapping import filter_records

        return filter_records(self, function, threads, jit, args, progress)

    def verify(self, progress: bool | None = None) -> None:
        """Check all messages: that no reader can leave those of YaFF, that protobuf accepts those of its own.

        Raises:
            VerifyError: names the row, the message, the field path, the byte position and the two numbers.
        """
        self._verify(progress)

    def _verify(self, progress: bool | None = None) -> bool:
        """As `verify`; whether all maps of YaFF messages ascend."""
        from yaffjit.rows.verified import verify_rows

        return verify_rows(
            *(self._plan, self._store, self._start, self._count, self.representation), progress
        )

    def _check(self) -> None:
        """Called before much is read: raises where the data isn't what it was."""
        self._store.check()

    def _ready(self) -> None:
        """Called before jitted code finds rows by itself: raises where they aren't well-formed."""
        self._store.ready(self._start, self._count)

    def _row(self, index: int) -> int:
        """The row where messages lie, of a row of ours, which may be negative."""
        row = index + self._count if index < 0 else index
        if not 0 <= row < self._count:
            raise RowError(index, self._count)
        return self._start + row

    def __copy__(self) -> Records:
        return self

    def __deepcopy__(self, memo: Any) -> Records:
        return self

    def __reduce__(self) -> Any:
        """Pickles hold the paths of files and rows, the bytes of other rows, and the schema."""
        from yaffjit.rows.pickles import parts_of

        parts, order = parts_of(self._store, self._start, self._count)
        return _again, (self._plan, parts, order, self.representation)

    def _html_(self) -> str:
        from yaffjit.rows.markup import records_html

        return records_html(self)

    def __repr__(self) -> str:
        shown = f"{_counted(self._count, 'row')}, {self.nbytes:,} bytes"
        nulls = self._count - int(np.count_nonzero(self.valid)) if self._store.scattered else 0
        if nulls:
            shown += f", {_counted(nulls, 'null row')}"
        if self.representation != "yaff":
            shown += f", {self.representation}"
        return f"<{type(self).__name__} of {self._plan.full_name}: {shown}>"


def _again(mp: MessagePlan, parts: Any, order: Any, representation: str) -> Records:
    """The records of a pickle."""
    from yaffjit.rows.pickles import store_of

    return Records._of(mp, store_of(mp, parts, order), representation)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _numba_type(recs: Records) -> Any:
    from yaffjit.jit import records_type

    if recs.representation == "yaff":
        return records_type(recs._plan, recs._store.scattered)
    return records_type(recs._plan, recs._store.scattered, representation=recs.representation)


def _table_address(recs: Records) -> int:
    recs._ready()
    return recs._store.table_address


_AT_FIRST_USE: Mapping[str, Callable[[Records], Any]] = {
    "_reader": lambda recs: reader(recs._plan, recs._store, recs.representation, recs._start),
    "_numba_type_": _numba_type,
    "_table_address": _table_address,
    "_owner": lambda recs: recs._store.owner,
}
