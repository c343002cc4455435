"""Makes key tables: of a part just written, or of an index that has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from yaffjit.arrays import array_address
from yaffjit.errors import IndexFileError
from yaffjit.index.atomic import replaced_file
from yaffjit.index.key_field import KeyField, texts_nbytes
from yaffjit.index.key_spec import KeySpec
from yaffjit.index.key_table import (
    BUCKET_WORDS,
    MOST_ROWS,
    TableHead,
    buckets_for,
    content_checksum,
    write_table,
)
from yaffjit.index.keys import Keys, keys_of
from yaffjit.index.part import Part
from yaffjit.rows import Records

SEEDS = 8  # which are tried before keys are said to be too alike
_STRETCH = 1 << 18


def write_keys(
    path: str,
    part: Part,
    records: Records,
    field: KeyField,
    spec: KeySpec,
    first_row: int = 0,
    earlier: Keys | None = None,
) -> int:
    """Write the table of a part; returns its bytes.

    Args:
        path: of the table.
        records: the part's messages.
        first_row: of the part in its index, for errors.
        earlier: the keys of the parts before it, which it mustn't have again by the rule "error".

    Raises:
        IndexFileError: a key comes again, which is named with both its rows; or it can't be written.
    """
    if earlier is not None and spec.duplicates == "error":
        _check_new(path, records, field, first_row, earlier)
    head, slots, texts = made_table(path, part, records, field, spec, first_row)
    with replaced_file(path) as file:
        return write_table(path, file, head, slots, texts)


def made_table(
    path: str, part: Part, records: Records, field: KeyField, spec: KeySpec, first_row: int
) -> tuple[TableHead, NDArray[np.int64], NDArray[np.uint8]]:
    """A part's table, in memory: 32 bytes a row, and its texts."""
    if part.rows >= MOST_ROWS:
        raise IndexFileError(
            f"{path} can't be written: {part.path} has {part.rows:,} rows, but keys are for less than "
            f"{MOST_ROWS:,}: build a directory, with part_rows="
        )
    checksum = part.headers_checksum()
    words = BUCKET_WORDS * buckets_for(part.rows)
    memory = np.empty(8 * words + 64, np.uint8)
    start = -array_address(memory) % 64
    slots = memory[start : start + 8 * words].view(np.int64)
    first_seed = int(checksum, 16) % 2**63
    row = None
    for seed in range(first_seed, first_seed + SEEDS):
        slots.fill(-1)
        filling = _Filling(slots, seed % 2**63, part.rows, field, spec)
        row = filling.add(records, first_row)
        if row is None:
            texts = filling.texts
            checksums = checksum, part.rows, filling.keys, content_checksum(slots, texts)
            return TableHead(spec, field.kind, seed % 2**63, *checksums), slots, texts
    assert row is not None
    raise IndexFileError(
        f"{path} can't be written: no place is left for the key of row {first_row + row:,}, "
        f"{field.text_of(records, row)!r:.100}: too many keys have one hash"
    )


class _Filling:
    """A table that keys are put into.

    Attributes:
        keys: how many it has.
    """

    def __init__(
        self, slots: NDArray[np.int64], seed: int, rows: int, field: KeyField, spec: KeySpec
    ) -> None:
        self._field = field
        self._spec = spec
        self._texts = np.empty(0, np.uint8)
        self.keys = 0
        # As a part of a set has them.
        self._words = np.array(
            [array_address(slots), len(slots) // BUCKET_WORDS, seed, 0, rows, 0, 0], np.int64
        )

    @property
    def texts(self) -> NDArray[np.uint8]:
        """Those of all keys."""
        return self._texts[: self._words[-1]]

    def add(self, records: Records, first_row: int) -> int | None:
        """Put the keys of all records in; a row that found no place, or None.

        Raises:
            IndexFileError: a key comes again; names its rows, counted from ``first_row``.
        """
        from yaffjit.kernels.keys import CROWDED, REPEATED, insert_integers, insert_texts

        insert: Callable[..., tuple[int, int, int]] = insert_texts if self._field.is_text else insert_integers
        for begin in range(0, len(records), _STRETCH):
            values, present = self._field.read(records[begin : begin + _STRETCH])
            if self._field.is_text:
                self._make_room(values[present])
            ended, row, again = insert(array_address(self._words), values, present, begin, self._spec.rule)
            if ended == REPEATED:
                key = self._field.text_of(records, again)
                raise _repeated(self._field, key, first_row + row, first_row + again)
            if ended == CROWDED:
                return row
            self.keys += row
        return None

    def _make_room(self, addresses: NDArray[np.int64]) -> None:
        """Have the texts at some addresses fit behind those that are there."""
        needed = int(self._words[-1]) + texts_nbytes(addresses)
        if needed > len(self._texts):
            grown = np.empty(max(needed, len(self._texts) * 3 // 2), np.uint8)
            grown[: self._words[-1]] = self.texts
            self._texts = grown
        self._words[-2] = array_address(self._texts)


def _check_new(path: str, records: Records, field: KeyField, first_row: int, earlier: Keys) -> None:
    for begin in range(0, len(records), _STRETCH):
        values, present = field.read(records[begin : begin + _STRETCH])
        found = earlier.find(keys_of(field, values[present]))
        again = np.flatnonzero(found >= 0)
        if len(again):
            row = begin + int(np.flatnonzero(present)[again[0]])
            raise _repeated(field, field.text_of(records, row), int(found[again[0]]), first_row + row)


def _repeated(field: KeyField, key: Any, row: int, again: int) -> IndexFileError:
    return IndexFileError(
        f"rows {row:,} and {again:,} have the same key: {field.path} is {key!r:.100} in both; "
        'duplicates="first" or "last" says which one counts'
    )
