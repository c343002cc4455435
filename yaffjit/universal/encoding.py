"""A collection of like objects from columns, without an object for each."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from yaffjit.columns.results import TextColumn
from yaffjit.errors import EncodeError
from yaffjit.forks import renew_in_forks
from yaffjit.universal.codec import dumps, one_of, write_options
from yaffjit.universal.codes import (
    DEFAULT_MAX_DEPTH,
    PAYLOAD_NBYTES,
    TRUE,
    UTF8,
    Order,
    Strings,
)
from yaffjit.universal.compiled import loaded
from yaffjit.universal.lower import FORMS
from yaffjit.universal.plain_write import WriteOptions

if TYPE_CHECKING:
    from yaffjit.kernels.universal_encode import Kernels

_KEPT = 1 << 20  # a flag
_BLOCK = 512  # objects whose places there is room for
_HUGE_NBYTES = 1 << 22
_MAX_INT64 = 2**63 - 1
_kernels: list[Kernels] = []
_lock = threading.Lock()
renew_in_forks(sys.modules[__name__], "_lock", threading.Lock)


def encode_columns(
    columns: Any,
    *,
    compact: bool = True,
    width: Literal["java", "smallest"] | None = None,
    order: Order = "swapped",
    strings: Strings = "utf8",
    null: bool = False,
) -> bytes:
    """Write columns as a collection of objects, one a row; the bytes are those of `dumps` of these dicts.

    Args:
        columns: by key numpy arrays of bools, integers or floats, masked ones too, or of text; Arrow arrays
            of these, a `TextColumn`; or an Arrow table or record batch. All of one length.
        compact, order, strings: as for `yaffjit.universal.dumps`.
        width: None: numbers keep the width of their column, as numpy's scalars do, and unsigned integers take
            the next wider one; "java", "smallest": integers as `dumps` writes Python's.
        null: write what is missing as null; else an object hasn't that key.

    Raises:
        EncodeError: an integer is above 2**63 - 1; names the row and the column.
        ValueError: columns are of different lengths.
        TypeError: a column is of something else.
    """
    if width is not None:
        one_of("width", width, ("java", "smallest"))
    options, flags = write_options(compact, width or "java", order, strings, null, DEFAULT_MAX_DEPTH)
    given = [_Given(name, column) for name, column in _items(columns)]
    rows = given[0].rows if given else 0
    for one in given:
        if one.rows != rows:
            raise ValueError(
                f"column {one.name!r} has {one.rows} rows, but column {given[0].name!r} has {rows}"
            )
    if not _is_compiled(sum(one.nbytes for one in given)):
        return _plain(given, rows, options, width is None)
    kept = width is None or not any(7 <= one.code <= 10 for one in given)
    flags |= _KEPT if kept else 0
    if kept and rows and all(_is_like(one, options) for one in given):
        return _alike(given, rows, options, flags)
    words = np.array([word for one in given for word in one.words(options)] or [0], np.int64)
    nbytes = _kernels[0].measure(rows, flags, _address(words), len(given))
    made, address = _new_bytes(nbytes)
    written = _kernels[0].encode(address, rows, flags, _address(words), len(given))
    assert written == nbytes
    return made


def _items(columns: Any) -> list[tuple[str, Any]]:
    if isinstance(columns, Mapping):
        return list(columns.items())
    if hasattr(columns, "column_names"):  # of pyarrow
        names = list(columns.column_names)
        if len(set(names)) < len(names):
            raise ValueError("the table has two columns of one name")
        return [(name, columns.column(i)) for i, name in enumerate(names)]
    raise TypeError(f"columns are a mapping or an Arrow table, not {type(columns).__name__}")


class _Given:
    """A column that's written.

    Attributes:
        values: little-endian numbers as wide as their code; of text UTF-8.
        offsets: of text.
        mask: a byte a row, 1 where it's missing; None if none is.
    """

    def __init__(self, name: Any, column: Any) -> None:
        if not isinstance(name, str):
            raise EncodeError(f"a key is of type {type(name).__name__}, but keys are text")
        self.name = name
        self.mask: NDArray[np.uint8] | None = None
        self.offsets: NDArray[np.int64] = np.zeros(0, np.int64)
        if hasattr(column, "__arrow_c_array__") or hasattr(column, "__arrow_c_stream__"):
            column = self._of_arrow(column)
        elif isinstance(column, TextColumn):
            column = self._of_arrow(column.to_arrow())
        if isinstance(column, np.ma.MaskedArray):
            mask = np.ma.getmaskarray(column)
            self.mask = np.ascontiguousarray(mask).view(np.uint8) if mask.any() else None
            column = column.data
        array = np.asarray(column) if self.offsets.size == 0 else column
        self.rows = len(self.offsets) - 1 if self.offsets.size else len(array) if array.ndim else -1
        if self.offsets.size:
            self.values: NDArray[Any] = array
            self.code = UTF8
        elif array.ndim == 1 and array.dtype.kind in "UO":
            self._of_objects(array)
        else:
            self._of_numbers(array)
        self.key = name.encode() if not _has_surrogates(name) else b""
        if _has_surrogates(name):
            raise EncodeError(f"column {name!r}: the key has a lone surrogate")

    @property
    def nbytes(self) -> int:
        return int(self.values.nbytes) + self.rows * len(self.key)

    def _of_arrow(self, column: Any) -> Any:
        """Numbers of an Arrow array; of text the bytes, and its offsets are taken."""
        import pyarrow as pa

        array = column if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column)
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if isinstance(array, pa.ChunkedArray):  # of no chunks
            array = pa.array([], array.type)
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if array.null_count:
            mask = array.is_null().to_numpy(zero_copy_only=False)
            self.mask = mask.view(np.uint8)
        typ = array.type
        if pa.types.is_null(typ):
            return np.zeros(len(array), np.int8)
        if pa.types.is_string(typ) or pa.types.is_large_string(typ) or pa.types.is_string_view(typ):
            array = array.cast(pa.large_string())
            _, offsets, data = array.buffers()
            empty = np.zeros(array.offset + len(array) + 1, np.int64)
            all_offsets = empty if offsets is None else np.frombuffer(offsets, np.int64)
            self.offsets = all_offsets[array.offset : array.offset + len(array) + 1]
            return np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        if not (pa.types.is_boolean(typ) or pa.types.is_integer(typ) or pa.types.is_floating(typ)):
            raise TypeError(f"column {self.name!r} is of Arrow's {typ}; there are bools, numbers and text")
        return array.fill_null(False if pa.types.is_boolean(typ) else 0).to_numpy(zero_copy_only=False)

    def _of_objects(self, array: NDArray[Any]) -> None:
        """Text as Python's objects or numpy's; None is missing."""
        import pyarrow as pa

        items = array.tolist()
        masked = self.mask
        if masked is not None:
            items = [None if masked[i] else item for i, item in enumerate(items)]
        for row, item in enumerate(items):
            if item is not None and not isinstance(item, str):
                raise TypeError(f"column {self.name!r}, row {row}: text is needed, not {type(item).__name__}")
            if item is not None and _has_surrogates(item):
                raise EncodeError(f"column {self.name!r}, row {row}: the text has a lone surrogate")
        self.values = self._of_arrow(pa.array(items, pa.large_string()))
        self.code = UTF8

    def _of_numbers(self, array: NDArray[Any]) -> None:
        form = FORMS.get(array.dtype.str[1:]) if array.ndim == 1 else None
        if form is None:
            what = f"{array.dtype} of shape {array.shape}"
            raise TypeError(
                f"column {self.name!r} is {what}; there are bools, numbers and text, in one dimension"
            )
        if array.dtype.kind == "u" and array.dtype.itemsize == 8:
            large = array > _MAX_INT64
            if self.mask is not None:
                large &= self.mask == 0
            if large.any():
                row = int(np.flatnonzero(large)[0])
                text = "the integer needs 65 bits, but there are 64"
                raise EncodeError(f"column {self.name!r}, row {row}: {text}")
        dtype, self.code = form
        self.values = np.ascontiguousarray(array, dtype)

    def written_key(self, strings: Strings) -> bytes:
        """The code and the bytes of the key, with their length, in plain mode."""
        return dumps(self.name, compact=False, strings=strings)

    def words(self, options: WriteOptions) -> list[int]:
        """What `yaffjit.kernels.universal_encode` reads."""
        self._key = np.frombuffer(self.written_key(options.strings), np.uint8)
        return [
            *(_address(self._key) + 1, len(self._key) - 1, self.code, _address(self.values)),
            *(
                0 if self.mask is None else _address(self.mask),
                0 if self.code != UTF8 else _address(self.offsets),
            ),
            *(int(self._key[0]), int(self.values.nbytes)),
        ]

    def objects(self, kept: bool) -> list[Any]:
        """What `dumps` is to write in each row, None where it's missing."""
        if self.code == UTF8:
            raw = self.values.tobytes()
            ends = self.offsets.tolist()
            items: list[Any] = [raw[a:b].decode() for a, b in itertools.pairwise(ends)]
        else:
            items = list(self.values) if kept or self.code > 10 else self.values.tolist()
        return (
            items if self.mask is None else [None if m else x for m, x in zip(self.mask, items, strict=True)]
        )


def _plain(given: list[_Given], rows: int, options: WriteOptions, kept: bool) -> bytes:
    objects = {one.name: one.objects(kept) for one in given}
    records = [
        {name: items[row] for name, items in objects.items() if items[row] is not None or options.null}
        for row in range(rows)
    ]
    return dumps(
        records,
        compact=options.compact,
        width=options.width,
        order=options.order,
        strings=options.strings,
        null=options.null,
    )


class _Layout:
    """What all objects have that have the same keys, with values of fixed width or short texts.

    Attributes:
        segments: what lies between two texts; the last byte is the length of the text behind it.
        texts: the columns of the texts behind the segments but the last.
        fields: of each column of fixed width the segment, where its value is in that, and the column; of a
            bool the byte with its code.
    """

    def __init__(self, given: list[_Given], options: WriteOptions) -> None:
        compact = options.compact
        self.segments: list[bytes] = []
        self.texts: list[int] = []
        self.fields: list[tuple[int, int, int]] = []
        segment = bytearray() if compact else bytearray([1])
        for number, one in enumerate(given):
            key = one.written_key(options.strings)
            begin = len(segment)
            segment += bytes([key[0] | one.code << 4]) + key[1:] if compact else key + bytes([one.code])
            if one.code == UTF8:
                self.segments.append(bytes([*segment, 0]))
                self.texts.append(number)
                segment = bytearray()
                continue
            coded = begin if compact else len(segment) - 1
            self.fields.append((len(self.texts), coded if one.code == TRUE else len(segment), number))
            segment += bytes(PAYLOAD_NBYTES.get(one.code, 0))
        segment.append(0x12 if compact else 2)
        self.segments.append(bytes(segment))


def _alike(given: list[_Given], rows: int, options: WriteOptions, flags: int) -> bytes:
    """The collection where all objects have the same keys, with values of fixed width or short texts."""
    layout = _Layout(given, options)
    stride = sum(map(len, layout.segments))
    nbytes = rows * stride + sum(int(given[i].offsets[-1] - given[i].offsets[0]) for i in layout.texts)
    made, address = _new_bytes(nbytes + (1 if options.compact else 2))
    words = np.array([word for one in given for word in one.words(options)] or [0], np.int64)
    found = [np.frombuffer(one, np.uint8) for one in layout.segments]
    fields = np.array(layout.fields or [(0, 0, 0)], np.int64)
    if layout.texts:
        texts = [*layout.texts, -1]
        segments = np.array([(_address(a), len(a), i) for a, i in zip(found, texts, strict=True)], np.int64)
        places = np.empty((_BLOCK, len(found)), np.int64)
        _kernels[0].encode_like(
            *(address + 1, nbytes, rows, _address(segments), len(found), _address(fields)),
            *(len(layout.fields), flags, _address(words), _address(places)),
        )
    else:
        at = np.array([place for _, place, _ in layout.fields] or [0], np.int64)
        _kernels[0].encode_alike(
            *(address + 1, rows, stride, _address(found[0]), _address(at), flags, _address(words), len(given))
        )
    ctypes.memset(address, 0x13 if options.compact else 3, 1)
    ctypes.memset(address + len(made) - 1, 0x42 if options.compact else 4, 1)
    return made


def _is_like(one: _Given, options: WriteOptions) -> bool:
    """Whether all rows of a column have a value of one width, or short texts that are written as they are."""
    if one.mask is not None:
        return False
    if one.code != UTF8:
        return True
    is_kept = options.strings == "utf8"
    return is_kept and bool(_kernels[0].longest_text(_address(one.offsets), one.rows) < 128)


def _new_bytes(nbytes: int) -> tuple[bytes, int]:
    """Bytes that nobody else has, which are still to be written, and their address."""
    make = ctypes.pythonapi.PyBytes_FromStringAndSize
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t)
    made: bytes = make(None, nbytes)
    address = _address(np.frombuffer(made, np.uint8))
    if nbytes >= _HUGE_NBYTES and hasattr(mmap, "MADV_HUGEPAGE"):
        # As numpy does: to get memory in small pages takes longer than to fill it.
        begin = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
        advise = ctypes.CDLL(None).madvise
        advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        advise(begin, address + nbytes - begin, mmap.MADV_HUGEPAGE)
    return made, address


def _is_compiled(nbytes: int) -> bool:
    """Whether compiled code is to write; it's loaded then."""
    if loaded.for_bytes(nbytes) is None:
        return False
    with _lock:
        if not _kernels:
            from yaffjit.kernels.universal_encode import Kernels

            _kernels.append(Kernels())
    return True


def _has_surrogates(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
