"""Columns whose rows aren't of one width: text, lists, maps, and codes for values that come again.

Each is a few numpy arrays, in the form that Arrow has. None of them compares or computes: take the arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from yaffjit.errors import RowError
from yaffjit.tables import arrow_of

Array: TypeAlias = npt.NDArray[Any]
Column: TypeAlias = "Array | TextColumn | ListColumn | DictionaryColumn | MapColumn"

SHOWN_ITEMS = 5
_SINGLE = (str, bytes, dict)


class _Rows(Sequence[Any]):
    """A sequence whose rows are made when they are asked for."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def _row(self, row: int) -> Any:
        raise NotImplementedError

    def _part(self, rows: slice) -> Any:
        raise NotImplementedError

    @overload
    def __getitem__(self, key: int) -> Any: ...
    @overload
    def __getitem__(self, key: slice) -> Any: ...
    def __getitem__(self, key: Any) -> Any:
        """``column[i]`` is one row; ``column[a:b]`` is a column that shares the arrays."""
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step != 1:
                raise ValueError("columns of text, lists and maps are sliced with step 1 only")
            return self._part(slice(start, max(start, stop)))
        try:
            row = range(len(self))[key]
        except IndexError:
            raise RowError(key, len(self)) from None
        except TypeError:
            what = type(key).__name__
            raise TypeError(
                f"columns of text, lists and maps are indexed by row numbers and slices, not by {what}"
            ) from None
        return self._row(row)

    def __iter__(self) -> Iterator[Any]:
        return (self._row(row) for row in range(len(self)))

    def _objects(self) -> Array:
        """All rows as objects."""
        made = np.empty(len(self), object)
        made[:] = list(self)
        return made

    def __eq__(self, other: object) -> bool:
        raise TypeError(f"a {type(self).__name__} doesn't compare: compare its arrays, or to_numpy()")

    @property
    def kind(self) -> str:
        """What a row is, as it is printed: "text", "list of int64"."""
        raise NotImplementedError

    def __repr__(self) -> str:
        shown = [shown_value(self[row]) for row in range(min(len(self), SHOWN_ITEMS))]
        if len(self) > SHOWN_ITEMS:
            shown.append("...")
        return f"<{type(self).__name__} of {len(self):,} rows, {self.kind}: [{', '.join(shown)}]>"


class _OfOffsets(_Rows):
    """Row i is what lies at ``offsets[i]:offsets[i + 1]``."""

    __slots__ = ("offsets",)

    def __init__(self, offsets: Array) -> None:
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def _of(self, rows: slice) -> Array:
        """The offsets of some rows."""
        return self.offsets[rows.start : rows.stop + 1]


class _Several(_OfOffsets):
    """Several values a row."""

    __slots__ = ()

    @property
    def lengths(self) -> Array:
        """How many elements or pairs each row has, int64."""
        return np.diff(self.offsets)


class TextColumn(_OfOffsets):
    """Text or bytes: ``data[offsets[i]:offsets[i + 1]]`` are the bytes of row i.

    ``column[i]`` is a str, or bytes. UnicodeDecodeError where the bytes of a text aren't UTF-8.

    Attributes:
        offsets: int64, one more than rows; the first one isn't 0 in a slice.
        data: uint8, the bytes of all rows behind one another.
        is_text: rows are str, otherwise bytes.
    """

    __slots__ = ("data", "is_text")

    def __init__(self, offsets: Array, data: Array, is_text: bool) -> None:
        super().__init__(offsets)
        self.data = data
        self.is_text = is_text

    @property
    def kind(self) -> str:
        return "text" if self.is_text else "bytes"

    def _row(self, row: int) -> str | bytes:
        raw = self.data[self.offsets[row] : self.offsets[row + 1]].tobytes()
        return raw.decode() if self.is_text else raw

    def _part(self, rows: slice) -> TextColumn:
        return TextColumn(self._of(rows), self.data, self.is_text)

    def to_numpy(self) -> Array:
        """An array of str or bytes objects, of shape (rows,) and dtype object."""
        return self._objects()

    def to_arrow(self) -> Any:
        """A pyarrow array of large_string or large_binary that shares the memory.

        Raises:
            UnicodeDecodeError: a text isn't UTF-8, which Arrow's strings must be.
        """
        import pyarrow as pa

        if self.is_text:
            self._check_utf8()
        return self._shared(pa.large_string() if self.is_text else pa.large_binary())

    def to_arrow_binary(self) -> Any:
        """As `to_arrow`, of large_binary, whatever the bytes are."""
        import pyarrow as pa

        return self._shared(pa.large_binary())

    def _shared(self, dtype: Any) -> Any:
        import pyarrow as pa

        buffers = [None, pa.py_buffer(self.offsets), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(dtype, len(self), buffers)

    def _check_utf8(self) -> None:
        begin, end = int(self.offsets[0]), int(self.offsets[-1])
        data = self.data[begin:end]
        if not data.size or int(data.max()) < 0x80:
            return
        starts = self.offsets[:-1][self.offsets[:-1] < self.offsets[1:]]
        try:
            data.tobytes().decode()
            whole = not bool(((self.data[starts] & 0xC0) == 0x80).any())
        except UnicodeDecodeError:
            whole = False
        if not whole:  # some row isn't UTF-8 by itself: raise by it
            for row in range(len(self)):
                self._row(row)

    def dictionary(self) -> DictionaryColumn:
        """The distinct values in order of their first rows, and their codes."""
        encoded = self.to_arrow_binary().dictionary_encode()
        values = encoded.dictionary
        _, offsets, data = values.buffers()
        made = TextColumn(
            np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1],
            np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8),
            self.is_text,
        )
        return DictionaryColumn(encoded.indices.to_numpy(), made)


class ListColumn(_Several):
    """Lists: the elements of row i are ``values[offsets[i]:offsets[i + 1]]``.

    ``column[i]`` is what the values are: a numpy array, text, lists.

    Attributes:
        offsets: int64, one more than rows; the first one isn't 0 in a slice.
        values: the elements of all rows behind one another.
    """

    __slots__ = ("values",)

    def __init__(self, offsets: Array, values: Column) -> None:
        super().__init__(offsets)
        self.values = values

    @property
    def kind(self) -> str:
        return f"list of {kind_of(self.values)}"

    def _row(self, row: int) -> Any:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    def _part(self, rows: slice) -> ListColumn:
        return ListColumn(self._of(rows), self.values)

    def to_numpy(self) -> Array:
        """An array of each row's own array, of shape (rows,) and dtype object."""
        made = np.empty(len(self), object)
        for row, values in enumerate(self):
            made[row] = values if isinstance(values, np.ndarray) else values.to_numpy()
        return made

    def to_arrow(self) -> Any:
        """A pyarrow array of large_list; numbers and text share their memory."""
        import pyarrow as pa

        return pa.LargeListArray.from_arrays(pa.array(self.offsets), arrow_of(self.values))


class MapColumn(_Several):
    """Maps: the pairs of row i are those at ``offsets[i]:offsets[i + 1]`` of keys and values.

    ``column[i]`` is a dict.

    Attributes:
        offsets: int64, one more than rows; the first one isn't 0 in a slice.
        keys, values: of all rows behind one another. A key comes once a row.
    """

    __slots__ = ("keys", "values")

    def __init__(self, offsets: Array, keys: Column, values: Column) -> None:
        super().__init__(offsets)
        self.keys = keys
        self.values = values

    @property
    def kind(self) -> str:
        return f"map of {kind_of(self.keys)} to {kind_of(self.values)}"

    def _row(self, row: int) -> dict[Any, Any]:
        pairs = slice(self.offsets[row], self.offsets[row + 1])
        return dict(zip(plain(self.keys[pairs]), plain(self.values[pairs]), strict=True))

    def _part(self, rows: slice) -> MapColumn:
        return MapColumn(self._of(rows), self.keys, self.values)

    def to_numpy(self) -> Array:
        """An array of dicts, of shape (rows,) and dtype object."""
        return self._objects()

    def to_arrow(self) -> Any:
        """A pyarrow array of maps; numbers and text share their memory, the offsets become int32.

        Raises:
            ValueError: there are more than 2**31 - 1 pairs, which Arrow's maps can't have.
        """
        import pyarrow as pa

        if self.offsets[-1] > 2**31 - 1:
            raise ValueError(
                f"a map column of {self.offsets[-1]} pairs is too large for Arrow, which allows {2**31 - 1}: "
                "convert fewer rows at a time"
            )
        offsets = pa.array(self.offsets.astype(np.int32))
        return pa.MapArray.from_arrays(offsets, arrow_of(self.keys), arrow_of(self.values))


class DictionaryColumn(_Rows):
    """Values that come again, by their number: row i is ``values[codes[i]]``, None where the code is -1.

    Attributes:
        codes: int32, one a row.
        values: the distinct values: a `TextColumn`.
    """

    __slots__ = ("codes", "values")

    def __init__(self, codes: Array, values: TextColumn) -> None:
        self.codes = codes
        self.values = values

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def kind(self) -> str:
        return f"dictionary of {len(self.values):,} values"

    def _row(self, row: int) -> str | bytes | None:
        code = int(self.codes[row])
        return None if code < 0 else self.values._row(code)

    def _part(self, rows: slice) -> DictionaryColumn:
        return DictionaryColumn(self.codes[rows], self.values)

    def to_numpy(self) -> Array:
        """An array of the values themselves (str, bytes, None), of shape (rows,) and dtype object."""
        known = np.empty(len(self.values) + 1, object)
        known[:-1] = list(self.values)
        known[-1] = None
        made: Array = known[self.codes]
        return made

    def to_arrow(self) -> Any:
        """A pyarrow array of dictionary<int32, large_string or large_binary>; -1 becomes null."""
        import pyarrow as pa

        missing = self.codes < 0
        codes = pa.array(self.codes, mask=missing if missing.any() else None)
        return pa.DictionaryArray.from_arrays(codes, self.values.to_arrow())

    def to_pandas(self) -> Any:
        """A pandas Categorical with all values as its categories."""
        import pandas as pd

        return pd.Categorical.from_codes(self.codes, pd.Index(self.values.to_numpy(), dtype=object))


def kind_of(column: Column) -> str:
    """What a row is: a dtype, "text", "list of text"."""
    return str(column.dtype) if isinstance(column, np.ndarray) else column.kind


def plain(column: Column) -> list[Any]:
    """Python's own values of all rows; times stay numpy's."""
    if isinstance(column, np.ndarray):
        return list(column) if column.dtype.kind in "mM" else column.tolist()
    return [plain(row) if hasattr(row, "__len__") and not isinstance(row, _SINGLE) else row for row in column]


def shown_value(value: Any) -> str:
    """One row as it is printed."""
    if value is np.ma.masked:
        return "--"
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    if isinstance(value, (str, bytes)):
        text = repr(value)
        return text if len(text) <= 40 else f"{text[:36]}...{text[-1]}"
    if isinstance(value, dict):
        pairs = list(value.items())
        items = [f"{shown_value(key)}: {shown_value(held)}" for key, held in pairs[:SHOWN_ITEMS]]
        return f"{{{', '.join([*items, *(['...'] if len(pairs) > SHOWN_ITEMS else [])])}}}"
    if isinstance(value, (list, np.ndarray, _Rows)):
        items = [shown_value(value[i]) for i in range(min(len(value), SHOWN_ITEMS))]
        return f"[{', '.join([*items, *(['...'] if len(value) > SHOWN_ITEMS else [])])}]"
    return str(value)
