"""Columns of many like objects: filled in one pass over their bytes, without an object for each."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from yaffjit.columns.mapping import Columns
from yaffjit.columns.results import TextColumn
from yaffjit.errors import NumberOverflowError
from yaffjit.forks import renew_in_forks
from yaffjit.universal.codec import byte_view, loads, read_options, read_whole
from yaffjit.universal.codes import DEFAULT_MAX_DEPTH, Order
from yaffjit.universal.compiled import loaded
from yaffjit.universal.plain_read import ReadOptions
from yaffjit.universal.refusals import DocumentError, KindError, kind_of

if TYPE_CHECKING:
    from yaffjit.kernels.universal_fill import Kernels

_ROWS = 1024  # that there is room for at first
_TEXT_NBYTES = 1 << 14
_HEADROOM = 8  # bytes before those of texts, which their check may look at
_BOOL, _INT, _FLOAT, _TEXT = range(4)
_KINDS = {"b": _BOOL, "i": _INT, "u": _INT, "f": _FLOAT}
_WANTED = ("a bool", "an integer", "a number", "text")
_MAX_INT64 = 2**63 - 1


class MaskedTextColumn(TextColumn):
    """A `TextColumn` of which some rows are missing: they are None, and null in Arrow.

    Attributes:
        mask: bool, True in rows that are missing.
    """

    __slots__ = ("mask",)

    def __init__(self, offsets: Any, data: Any, mask: Any) -> None:
        super().__init__(offsets, data, is_text=True)
        self.mask = mask

    def _row(self, row: int) -> Any:
        return None if self.mask[row] else super()._row(row)

    def _part(self, rows: slice) -> TextColumn:
        return MaskedTextColumn(self.offsets[rows.start : rows.stop + 1], self.data, self.mask[rows])

    def to_arrow(self) -> Any:
        """A pyarrow array of large_string, null where a row is missing."""
        import pyarrow as pa

        nulls = pa.array(~self.mask).buffers()[1] if self.mask.any() else None
        buffers = [nulls, pa.py_buffer(self.offsets), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.large_string(), len(self), buffers)


def columns(
    source: Any,
    dtypes: Mapping[str, Any],
    *,
    order: Order = "swapped",
    compact: bool = True,
    null: bool = False,
    max_depth: int = DEFAULT_MAX_DEPTH,
) -> Columns:
    """Columns of like objects: the items of a document that is a collection, or documents of their own.

    Args:
        source: the document, in a buffer; or a list of documents, each an object; or ``(data, offsets)``,
            where document i is ``data[offsets[i]:offsets[i + 1]]``.
        dtypes: by key what its values become: a numpy dtype of bools, integers, float32 or float64, or `str`.
            Keys that aren't named are passed over.
        order, compact, null, max_depth: as for `yaffjit.universal.loads`.

    Returns:
        Columns by key: numpy's masked arrays, a `MaskedTextColumn` for text. What an object lacks, or has as
        null, is masked; ``present(key)`` has the rows that aren't. Of keys that are twice in an object the
        last one counts.

    Raises:
        DocumentError: what's read isn't well-formed, or isn't a collection of objects.
        NumberOverflowError: a number isn't one of its dtype: an integer beyond its range, or that a float
            can't have exactly; a float64 beyond float32. Otherwise float64 is rounded to float32.
        KindError: a TypeError: a value is of another kind than its column.
        TypeError, ValueError: these aren't dtypes, buffers or offsets.
    """
    options, flags = read_options(compact, order, null, False, None, max_depth)
    wanted = [_Wanted(name, dtype) for name, dtype in dtypes.items()]
    documents = _documents(source)
    if documents is None:
        data = byte_view(source)
        reader: _Reader = _Reader(data, options, wanted)
        run = _collection_compiled if _is_compiled(len(data)) else _collection_plain
    else:
        reader = _Reader(documents[0], options, wanted, documents[1])
        run = _documents_compiled if _is_compiled(len(documents[0])) else _documents_plain
    run(reader, flags)
    return reader.result()


class _Wanted:
    """A column that's asked for, and its arrays."""

    def __init__(self, name: str, dtype: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"columns are named by text, not {type(name).__name__}")
        self.name = name
        self.key = name.encode("utf-8", "surrogatepass")
        self.dtype = np.dtype(dtype)
        self.is_text = self.dtype.kind == "U" and not self.dtype.itemsize
        if not self.is_text and (self.dtype.kind not in _KINDS or self.dtype.str[1:] in ("f2", "f16")):
            there_are = "bool, integers, float32, float64, str"
            raise TypeError(f"column {name!r} is asked for as {self.dtype}; there are {there_are}")
        self.dtype = self.dtype.newbyteorder("=")
        self.kind = _TEXT if self.is_text else _KINDS[self.dtype.kind]
        self.least, self.most = 0, 0
        if self.kind == _INT:
            limits = np.iinfo(self.dtype)
            self.least, self.most = int(limits.min), min(int(limits.max), _MAX_INT64)
        width = np.uint8 if self.is_text else self.dtype
        self.values: NDArray[Any] = np.empty(_HEADROOM if self.is_text else 0, width)
        self.missing: NDArray[np.uint8] = np.empty(0, np.uint8)
        self.offsets: NDArray[np.int64] = np.zeros(1, np.int64)

    def grow(self, rows: int, capacity: int) -> None:
        """Make room for as many rows; those that there are stay."""
        missing = np.empty(capacity, np.uint8)
        missing[:rows] = self.missing[:rows]
        missing[rows:] = 1
        self.missing = missing
        if self.is_text:
            offsets = np.empty(capacity + 1, np.int64)
            offsets[: rows + 1] = self.offsets[: rows + 1]
            self.offsets = offsets
        else:
            values = np.empty(capacity, self.dtype)
            values[:rows] = self.values[:rows]
            self.values = values

    def grow_text(self, rows: int, nbytes: int) -> None:
        """Make room for as many bytes of text."""
        used = _HEADROOM + int(self.offsets[rows])
        values = np.empty(_HEADROOM + nbytes, np.uint8)
        values[:used] = self.values[:used]
        self.values = values

    def words(self) -> list[int]:
        """What `yaffjit.kernels.universal_columns` reads."""
        values = _address(self.values) + (_HEADROOM if self.is_text else 0)
        offsets = _address(self.offsets) if self.is_text else 0
        capacity = len(self.values) - _HEADROOM if self.is_text else 0
        name = np.frombuffer(self.key, np.uint8)
        return [
            *(_address(name), len(self.key), self.kind, self.dtype.itemsize, values, _address(self.missing)),
            *(offsets, capacity, self.least, self.most),
        ]

    def result(self, rows: int) -> Any:
        mask = self.missing[:rows].view(np.bool_)
        if self.is_text:
            offsets = self.offsets[: rows + 1]
            data = self.values[_HEADROOM : _HEADROOM + int(offsets[-1])]
            return MaskedTextColumn(offsets, data, mask)
        values = self.values[:rows]
        if not mask.any():
            return np.ma.MaskedArray(values)
        values[mask] = 0
        return np.ma.MaskedArray(values, mask)

    def set(self, row: int, value: Any) -> None:
        """Set a row to a value that fits, or to missing."""
        self.missing[row] = value is None
        if self.is_text:
            raw = np.frombuffer((value or "").encode(), np.uint8)
            begin = int(self.offsets[row])
            end = begin + len(raw)
            if len(self.values) - _HEADROOM < end:
                self.grow_text(row, 2 * end)
            self.values[_HEADROOM + begin : _HEADROOM + end] = raw
            self.offsets[row + 1] = end
        elif value is not None:
            self.values[row] = value

    def refuse(self, value: Any, where: str) -> None:
        """Raise if a value isn't one of the column."""
        kinds = {_BOOL: (bool,), _INT: (int,), _FLOAT: (float, int), _TEXT: (str,)}
        if type(value) not in kinds[self.kind]:
            raise KindError(where, kind_of(value), _WANTED[self.kind])
        text = f"{where}: {{}} doesn't fit: {self.dtype} holds "
        if self.kind == _INT and not self.least <= value <= self.most:
            raise NumberOverflowError(f"{text}{self.least} to {np.iinfo(self.dtype).max}", value)
        if self.kind == _FLOAT and type(value) is int and int(self.dtype.type(value)) != value:
            exact = 2 ** (np.finfo(self.dtype).nmant + 1)
            raise NumberOverflowError(f"{text}all integers only up to {exact}", value)
        if self.kind == _FLOAT and type(value) is float and np.isfinite(value):
            with np.errstate(over="ignore"):
                fits = bool(np.isfinite(self.dtype.type(value)))
            if not fits:
                limit = np.finfo(self.dtype).max
                raise NumberOverflowError(f"{text}-{limit} to {limit}", value)


class _Reader:
    """What is read into which columns."""

    def __init__(
        self,
        data: bytes | memoryview,
        options: ReadOptions,
        wanted: list[_Wanted],
        offsets: NDArray[np.int64] | None = None,
    ) -> None:
        self.data = data
        self.options = options
        self.wanted = wanted
        self.offsets = offsets
        self.rows = 0

    def document(self, row: int) -> bytes | memoryview:
        assert self.offsets is not None
        return self.data[self.offsets[row] : self.offsets[row + 1]]

    def where(self, row: int, name: str) -> str:
        """How errors name a value."""
        return f"row {row}, column {name!r}"

    def fill(self, row: int, record: Any) -> None:
        """Take the values of an object, which is a view, in plain Python."""
        by_name = {one.name: one for one in self.wanted}
        for one in self.wanted:
            one.set(row, None)
        for name, value in record.items():
            if name in by_name:
                if value is not None:
                    by_name[name].refuse(value, self.where(row, name))
                by_name[name].set(row, value)

    def refuse(self, row: int, column: int) -> NoReturn:
        """Raise for the value that a pass stopped at."""
        record = self.view(self.data)[row] if self.offsets is None else self.view(self.document(row))
        one = self.wanted[column]
        held = [value for key, value in record.items() if key == one.name]
        for value in held:
            if value is not None:
                one.refuse(value, self.where(row, one.name))
        raise ValueError(f"{self.where(row, one.name)}: a value didn't fit, and fits now: it has changed")

    def view(self, data: bytes | memoryview) -> Any:
        from yaffjit.universal.views import view

        o = self.options
        return view(data, order=o.order, compact=o.compact, null=o.null, max_depth=o.max_depth)

    def loads(self, row: int) -> Any:
        o = self.options
        try:
            return loads(
                self.document(row), order=o.order, compact=o.compact, null=o.null, max_depth=o.max_depth
            )
        except DocumentError as error:
            raise type(error)(f"row {row}: {error.text}", error.position or 0, error.path) from None

    def refuse_form(self, row: int | None, value: Any) -> NoReturn:
        """Raise for a document that isn't a collection of objects."""
        if row is None:
            raise KindError("the document", kind_of(value), "a collection of objects")
        raise KindError(f"row {row}", kind_of(value), "an object")

    def result(self) -> Columns:
        made = {one.name: one.result(self.rows) for one in self.wanted}
        missing = {one.name: one.missing[: self.rows] for one in self.wanted}
        return Columns(made, self.rows, lambda name: missing[name] == 0)


# ---- in plain Python ----


def _collection_plain(reader: _Reader, flags: int) -> None:
    read_whole(reader.data, reader.options, flags)
    records = reader.view(reader.data)
    if not hasattr(records, "index"):
        reader.refuse_form(None, records)
    _take(reader, list(records))


def _documents_plain(reader: _Reader, flags: int) -> None:
    assert reader.offsets is not None
    rows = range(len(reader.offsets) - 1)
    for row in rows:
        reader.loads(row)
    _take(reader, [reader.view(reader.document(row)) for row in rows])


def _take(reader: _Reader, records: list[Any]) -> None:
    for one in reader.wanted:
        one.grow(0, len(records))
    for row, record in enumerate(records):
        if not hasattr(record, "keys"):
            reader.refuse_form(row, record)
        reader.fill(row, record)
    reader.rows = len(records)


# ---- compiled ----

_kernels: list[Kernels] = []
_lock = threading.Lock()
renew_in_forks(sys.modules[__name__], "_lock", threading.Lock)


def _is_compiled(nbytes: int) -> bool:
    """Whether a compiled pass is to be made; it's loaded then."""
    if loaded.looker_for(nbytes) is None:
        return False
    with _lock:
        if not _kernels:
            from yaffjit.kernels.universal_fill import Kernels

            _kernels.append(Kernels())
    return True


class _Pass:
    """A compiled pass, that stops and goes on with more room."""

    def __init__(self, reader: _Reader, flags: int, capacity: int) -> None:
        self.reader = reader
        self.flags = flags
        self.progress = np.zeros(3, np.int64)
        self.capacity = 0
        self.room(capacity)

    def room(self, rows: int) -> None:
        """Make room for as many rows."""
        for one in self.reader.wanted:
            one.grow(int(self.progress[1]), rows)
        self.capacity = rows
        self.take_words()

    def take_words(self) -> None:
        words = [word for one in self.reader.wanted for word in one.words()]
        self.columns = np.array(words or [0], np.int64)

    def text_room(self, nbytes: int, pos: int) -> None:
        """Make more room for the text of the column that the pass stopped at."""
        row, number = int(self.progress[1]), int(self.progress[2])
        one = self.reader.wanted[number]
        used = int(one.offsets[row])
        likely = used * nbytes // max(pos, 1) if row >= _ROWS else 0
        # A text takes no more than twice its bytes, of which there are no more than are left.
        most = used + 2 * (nbytes - pos)
        one.grow_text(row, min(max(_TEXT_NBYTES, 2 * (len(one.values) - _HEADROOM), likely * 9 // 8), most))
        self.take_words()

    def end(self, ended: int) -> None:
        """What a pass ended with, once there is nothing more to make room for."""
        row, reader = int(self.progress[1]), self.reader
        if ended == 4:
            reader.refuse(row, int(self.progress[2]))
        reader.rows = row


def _collection_compiled(reader: _Reader, flags: int) -> None:
    from yaffjit.universal.alike import layout_of

    data = np.frombuffer(reader.data, np.uint8)
    nbytes = len(data)
    fill = _kernels[0].from_collection
    state = _Pass(reader, flags, _ROWS)
    layout = layout_of(data, flags, reader.wanted)
    words = None if layout is None else layout.words(reader.wanted)
    while True:
        ended = fill(
            *(_address(data), nbytes, flags, _address(state.columns), len(reader.wanted)),
            *(state.capacity, 0 if words is None else _address(words), _address(state.progress)),
        )
        row, pos = int(state.progress[1]), int(state.progress[0]) >> 5
        if ended == 1:
            state.room(row + likely_rows(row, pos, nbytes))
        elif ended == 2:
            state.text_room(nbytes, pos)
        else:
            break
    if ended in (3, 5, 6):
        _refuse_collection(reader, flags, ended, row)
    state.end(ended)


def likely_rows(rows: int, pos: int, nbytes: int) -> int:
    """How many rows more there may be, by those so far; never more than there are bytes."""
    left = nbytes - pos
    return min(max(64, left * rows * 51 // (50 * max(pos, 1)) + 64), left + 1)


def _refuse_collection(reader: _Reader, flags: int, ended: int, row: int) -> NoReturn:
    if ended == 3:
        read_whole(reader.data, reader.options, flags)
    found = reader.view(reader.data)
    reader.refuse_form(*((None, found) if ended == 6 else (row, found[row])))


def _documents_compiled(reader: _Reader, flags: int) -> None:
    assert reader.offsets is not None
    data = np.frombuffer(reader.data, np.uint8)
    rows = len(reader.offsets) - 1
    state = _Pass(reader, flags, rows)
    fill = _kernels[0].from_documents
    while True:
        ended = fill(
            *(_address(data), _address(reader.offsets), rows, flags, _address(state.columns)),
            *(len(reader.wanted), _address(state.progress)),
        )
        row = int(state.progress[1])
        if ended != 2:
            break
        state.text_room(len(data), int(reader.offsets[row]))
    if ended in (3, 5):
        reader.refuse_form(row, reader.loads(row))
    state.end(ended)


def _documents(source: Any) -> tuple[bytes | memoryview, NDArray[np.int64]] | None:
    """Data and offsets of documents of their own; None if the source is one document."""
    if not isinstance(source, list | tuple):
        return None
    if len(source) == 2 and isinstance(source[1], np.ndarray):
        return byte_view(source[0]), _checked(source[1], len(byte_view(source[0])))
    views: Sequence[Any] = [byte_view(one) for one in source]
    offsets = np.zeros(len(views) + 1, np.int64)
    np.cumsum([len(one) for one in views], out=offsets[1:])
    return b"".join(views), offsets


def _checked(offsets: NDArray[Any], nbytes: int) -> NDArray[np.int64]:
    if offsets.ndim != 1 or not len(offsets) or offsets.dtype.kind not in "iu":
        raise ValueError(f"offsets are one more integer than documents, not {offsets.dtype}{offsets.shape}")
    made = np.ascontiguousarray(offsets, np.int64)
    if made is offsets:
        made = made.copy()  # what's checked mustn't change
    falls = np.flatnonzero(made[1:] < made[:-1])
    if len(falls):
        i = int(falls[0])
        raise ValueError(f"offsets fall from {made[i]} to {made[i + 1]} in row {i}")
    if made[0] < 0 or made[-1] > nbytes:
        raise ValueError(f"offsets go from {made[0]} to {made[-1]}, but the data has {nbytes} bytes")
    return made


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
