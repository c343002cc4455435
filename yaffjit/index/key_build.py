"""Makes key tables: of a part just written, or of an index that has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from yaffjit.errors import IndexFileError
from yaffjit.index.atomic import replaced_file
from yaffjit.index.key_field import NO_TEXT, KeyField
from yaffjit.index.key_spec import KeySpec
from yaffjit.index.key_table import (
    BUCKET_WORDS,
    MOST_ROWS,
    TableHead,
    buckets_for,
    slots_checksum,
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
    head, slots = made_table(path, part, records, field, spec, first_row)
    with replaced_file(path) as file:
        return write_table(path, file, head, slots)


def made_table(
    path: str, part: Part, records: Records, field: KeyField, spec: KeySpec, first_row: int
) -> tuple[TableHead, NDArray[np.int64]]:
    """A part's table, in memory: 27 bytes a row."""
    if part.rows >= MOST_ROWS:
        raise IndexFileError(
            f"{path} can't be written: {part.path} has {part.rows:,} rows, but keys are for less than "
            f"{MOST_ROWS:,}: build a directory, with part_rows="
        )
    checksum = part.headers_checksum()
    words = BUCKET_WORDS * buckets_for(part.rows)
    memory = np.empty(8 * words + 64, np.uint8)
    start = -memory.ctypes.data % 64
    slots = memory[start : start + 8 * words].view(np.int64)
    first_seed = int(checksum, 16) % 2**63
    row = None
    for seed in range(first_seed, first_seed + SEEDS):
        slots.fill(-1)
        row = _filled(slots, seed % 2**63, part, records, field, spec, first_row)
        if row is None:
            keys = int(np.count_nonzero(slots[1::2] != -1))
            head = TableHead(spec, field.kind, seed % 2**63, checksum, part.rows, keys, slots_checksum(slots))
            return head, slots
    assert row is not None
    raise IndexFileError(
        f"{path} can't be written: no place is left for the key of row {first_row + row:,}, "
        f"{field.text_of(records, row)!r:.100}: too many keys have one hash"
    )


def _filled(
    slots: NDArray[np.int64],
    seed: int,
    part: Part,
    records: Records,
    field: KeyField,
    spec: KeySpec,
    first_row: int,
) -> int | None:
    """Put all keys into a table; a row that found no place, or None."""
    from yaffjit.kernels.keys import CROWDED, REPEATED, insert_integers, insert_texts

    insert: Callable[..., tuple[int, int, int]] = insert_texts if field.is_text else insert_integers
    words = np.array(
        [slots.ctypes.data, len(slots) // BUCKET_WORDS, seed, 0, part.rows, part.address(), part.nbytes],
        np.int64,
    )
    for begin in range(0, part.rows, _STRETCH):
        values, present = field.read(records[begin : begin + _STRETCH])
        if field.is_text:
            values = np.where(values == NO_TEXT, 0, values - part.address())
        ended, row, again = insert(words.ctypes.data, values, present, begin, spec.rule)
        if ended == REPEATED:
            raise _repeated(field, field.text_of(records, again), first_row + row, first_row + again)
        if ended == CROWDED:
            return row
    return None


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
