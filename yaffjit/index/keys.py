"""Looks rows up by key: the tables of all parts of an opened index."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from yaffjit.arrays import array_address
from yaffjit.errors import IndexFileError
from yaffjit.index.key_field import KeyField, texts_at
from yaffjit.index.key_queries import Integers, Texts, key_arrays, shown_key
from yaffjit.index.key_spec import KeySpec
from yaffjit.index.key_table import BUCKET_WORDS, KeyTable
from yaffjit.index.part import Part
from yaffjit.pool import run_stretches
from yaffjit.rows import Records

MISSING = ("absent", "raise")
KEYS_SUFFIX = ".keys.arrow"
NEW_KEYS_SUFFIX = ".keys.new.arrow"
FILE_SUFFIX = ".arrow"
_STRETCH = 1 << 17
_SHOWN_KEYS = 5


class Keys:
    """The key tables of an index.

    Args:
        tables: of each part, in the order of the parts.
        parts: the files.
        first_rows: the row of each part's first message.

    Attributes:
        spec: what they are of.
        kind: of the field.
        address: of the set that kernels look up in, as long as this object lives.

    Raises:
        IndexFileError: a table isn't of its part, or not of the same key as the others.
    """

    def __init__(self, tables: Sequence[KeyTable], parts: Sequence[Part], first_rows: Sequence[int]) -> None:
        head = tables[0].head
        self.spec = head.spec
        self.kind = head.kind
        self.tables = tuple(tables)
        self._parts = tuple(parts)
        self._content_checked = False
        for table, part in zip(tables, parts, strict=True):
            check_of_part(table, part)
            if (table.head.spec, table.head.kind) != (head.spec, head.kind):
                raise IndexFileError(
                    f"{table.path} has keys {_described(table)}, "
                    f"but {tables[0].path} has {_described(tables[0])}"
                )
        self._order = list(range(len(tables)))
        if self.spec.duplicates == "last":
            self._order.reverse()
        words = [len(tables), head.number, first_rows[-1] + parts[-1].rows]
        for number in self._order:
            words += part_words(tables[number], parts[number], first_rows[number])
        self._set = np.array(words, np.int64)

    @property
    def address(self) -> int:
        return array_address(self._set)

    def find(self, keys: Integers | Texts, threads: int | None = None) -> NDArray[np.int64]:
        """Rows of keys as `key_arrays` makes them, -1 where none has it.

        Raises:
            IndexFileError: a table leads out of its part.
        """
        from yaffjit.kernels.keys import find_integers, find_texts

        rows = np.empty(len(keys), np.int64)
        address = self.address

        def work(begin: int, end: int) -> None:
            self.check_sizes()
            if isinstance(keys, Integers):
                find_integers(address, keys.values, rows, begin, end)
            else:
                find_texts(address, keys.data, keys.offsets, rows, begin, end)

        run_stretches(work, len(keys), _STRETCH, threads)
        if keys.impossible is not None:
            rows[keys.impossible] = -1
        if len(rows) and int(rows.min()) < -1:
            table = self.tables[self._order[-2 - int(rows.min())]]
            raise IndexFileError(f"{table.path} is damaged: a key leads to what isn't in its part")
        return rows

    def rows(self, keys: Any, missing: str = "absent", threads: int | None = None) -> Any:
        """See `Index.rows`."""
        if missing not in MISSING:
            known = ", ".join(map(repr, MISSING))
            raise ValueError(f"missing={missing!r} isn't supported; supported: {known}")
        given, single = key_arrays(keys, self.kind, self.spec.path)
        rows = self.find(given, threads)
        if missing == "raise":
            absent = np.flatnonzero(rows < 0)
            if len(absent):
                shown = ", ".join(shown_key(given, int(i)) for i in absent[:_SHOWN_KEYS])
                more = ", ..." if len(absent) > _SHOWN_KEYS else ""
                raise KeyError(
                    f"{len(absent):,} of {len(rows):,} keys aren't in the index ({self.spec.path}): "
                    f"{shown}{more}"
                )
        return int(rows[0]) if single else rows

    def check_sizes(self) -> None:
        """Raises IndexFileError if a file was cut or grew since it was mapped."""
        for table in self.tables:
            table.check_size()

    def check_contents(self) -> None:
        """Check the tables' checksums and that their rows are in range, once. Raises IndexFileError."""
        from yaffjit.kernels.keys import PART_WORDS, SET_WORDS, count_keys

        if self._content_checked:
            return
        for place, number in enumerate(self._order):
            table = self.tables[number]
            table.check_content()
            address = self.address + 8 * (SET_WORDS + PART_WORDS * place)
            is_text = self.kind in ("string", "bytes")
            found = count_keys(address, is_text, 0, len(table.slots) // BUCKET_WORDS)
            if found != table.head.keys:
                fault = "a row out of range" if found < 0 else f"{found:,} keys"
                raise IndexFileError(
                    f"{table.path} is damaged: it has {fault}, but says {table.head.keys:,} keys of "
                    f"{table.head.rows:,} rows"
                )
        self._content_checked = True

    def verify(self, records: Records, field: KeyField, first_rows: Sequence[int]) -> None:
        """Compare the tables with the messages: each says the rows that they say, and no more.

        Requires: the messages are well-formed.

        Raises:
            IndexFileError: names the table and what is wrong.
        """
        self.check_contents()
        for table, part, first in zip(self.tables, self._parts, first_rows, strict=True):
            own = Keys([table], [part], [0])
            own._compare(records[first : first + part.rows], field, table)

    def _compare(self, records: Records, field: KeyField, table: KeyTable) -> None:
        kept = 0
        for begin in range(0, len(records), _STRETCH):
            stretch = records[begin : begin + _STRETCH]
            values, present = field.read(stretch)
            rows = np.arange(begin, begin + len(stretch))[present]
            found = self.find(keys_of(field, values[present]))
            kept += int(np.count_nonzero(found == rows))
            others = np.flatnonzero(found != rows)
            wrong = found[others] < 0
            if self.spec.duplicates == "error":
                wrong[:] = True
            else:
                later = found[others] > rows[others]
                wrong |= later if self.spec.duplicates == "first" else ~later
            if len(others) and not wrong.any():
                wrong = ~_same(field, values[present][others], records.take(found[others]))
            if wrong.any():
                row = int(rows[others[np.flatnonzero(wrong)[0]]])
                at = int(found[others[np.flatnonzero(wrong)[0]]])
                key = field.text_of(records, row)
                raise IndexFileError(
                    f"{table.path} is damaged: key {key!r} of row {row:,} of its part leads to row {at:,}"
                )
        if kept != table.head.keys:
            raise IndexFileError(
                f"{table.path} is damaged: it has {table.head.keys:,} keys, but its part has {kept:,}"
            )


def _same(field: KeyField, values: NDArray[np.int64], records: Records) -> NDArray[np.bool_]:
    others, present = field.read(records)
    same = others == values
    if field.is_text:
        pairs = zip(_text_list(values), _text_list(others), strict=True)
        same = np.array([one == other for one, other in pairs], np.bool_)
    made: NDArray[np.bool_] = np.logical_and(same, present)
    return made


def _text_list(addresses: NDArray[np.int64]) -> list[bytes]:
    data, offsets = texts_at(addresses)
    raw = data.tobytes()
    return [raw[begin:end] for begin, end in itertools.pairwise(offsets)]


def keys_of(field: KeyField, values: NDArray[np.int64]) -> Integers | Texts:
    """What `KeyField.read` gave, as keys to look up."""
    if field.is_text:
        return Texts(*texts_at(values), None)
    return Integers(np.ascontiguousarray(values), None)


def part_words(table: KeyTable, part: Part, first_row: int) -> list[int]:
    """A part of a set, as `yaffjit.kernels.keys` has it."""
    head = table.head
    slots = table.slots
    return [
        *(array_address(slots), len(slots) // BUCKET_WORDS, head.seed),
        *(first_row, part.rows, array_address(table.texts), len(table.texts)),
    ]


def check_of_part(table: KeyTable, part: Part) -> None:
    """Raises IndexFileError if a table isn't of a part."""
    checksum = part.headers_checksum()
    if (table.head.part, table.head.rows) != (checksum, part.rows):
        raise IndexFileError(
            f"{table.path} is of another file: it says {table.head.rows:,} rows with checksum "
            f"{table.head.part}, but {part.path} has {part.rows:,} with {checksum}"
        )


def _described(table: KeyTable) -> str:
    spec = table.head.spec
    return f"{spec.path!r} ({table.head.kind}, duplicates={spec.duplicates!r})"


def keys_path(path: str) -> str:
    """Where the key table of an index file lies."""
    return os.path.realpath(path).removesuffix(FILE_SUFFIX) + KEYS_SUFFIX


def new_keys_path(path: str) -> str:
    """Where it lies while its index file is being replaced."""
    return os.path.realpath(path).removesuffix(FILE_SUFFIX) + NEW_KEYS_SUFFIX


def open_beside(path: str, part: Part) -> Keys | IndexFileError | None:
    """The keys of an index that is one file; why they can't be used; None if it has none.

    A table that has no name of its own yet counts only if it's of this file: else a killed writer left it.
    """
    fault: IndexFileError | None = None
    for _ in range(2):  # the file may get its own name between the two
        for name in (keys_path(path), new_keys_path(path)):
            if not os.path.lexists(name):
                continue
            try:
                return Keys([KeyTable(name)], [part], [0])
            except IndexFileError as error:
                if name == keys_path(path):
                    fault = fault or error
    return fault


def open_listed(
    path: str, spec: KeySpec, names: Sequence[str], parts: Sequence[Part], first_rows: Sequence[int]
) -> Keys | IndexFileError:
    """The keys that a manifest names, or why they can't be used."""
    tables = []
    for name in names:
        file = os.path.join(path, name)
        if not os.path.lexists(file):
            return IndexFileError(f"{file} is missing: its manifest says that it has the keys {spec.path!r}")
        try:
            tables.append(KeyTable(file))
            if tables[-1].head.spec != spec:
                raise IndexFileError(
                    f"{file} has keys {_described(tables[-1])}, but its manifest says {spec.path!r} "
                    f"(duplicates={spec.duplicates!r})"
                )
        except IndexFileError as error:
            return error
    try:
        return Keys(tables, parts, first_rows)
    except IndexFileError as error:
        return error
