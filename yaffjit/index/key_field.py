"""The field that an index is looked up by, read from many messages."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from yaffjit.arrays import array_address
from yaffjit.errors import SchemaError
from yaffjit.index.key_table import KINDS, TEXT_KINDS
from yaffjit.plan import MessagePlan
from yaffjit.plan.paths import parse_path
from yaffjit.pool import run_stretches
from yaffjit.rows import Records

_STRETCH = 1 << 16


class KeyField:
    """An integer or text field by its path, as "id" or "geo.city".

    Args:
        mp: the type of the messages.
        path: names of message fields, and of the field, with dots.

    Raises:
        SchemaError: it isn't such a path.
        TypeError: it isn't text.
    """

    def __init__(self, mp: MessagePlan, path: str) -> None:
        if not isinstance(path, str):
            raise TypeError(f'key must be the path of a field, as "id", not {type(path).__name__}')
        self.mp = mp
        self.path = path
        steps = parse_path(mp, path)
        f = steps[-1].f
        self.kind = f.kind
        if any(step.index is not None or step.f.repeated or step.f.is_map for step in steps):
            raise SchemaError(f"{path!r} can't be a key of {mp.full_name}: a key is one value a message")
        if not any(f.kind in kinds for kinds in KINDS):
            raise SchemaError(
                f"{path!r} can't be a key of {mp.full_name}: keys are integers, text or bytes, not {f.kind}"
            )
        self._copied = np.empty(0, np.uint8)
        # What must be there for a message to have a key.
        self._needed = path if f.explicit else ".".join(step.f.name for step in steps[:-1])

    @property
    def is_text(self) -> bool:
        return self.kind in TEXT_KINDS

    def read(self, records: Records) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Keys of rows, and which rows have one; a key of text is the address where it stands, 0
        for the empty one that isn't stored. It's there until keys are read again.

        Integers of 64 bits without a sign are int64 of the same bits.
        """
        from yaffjit.columns.read import present

        values = self._addresses(records) if self.is_text else self._integers(records)
        there: NDArray[np.bool_] = np.array(records.valid)
        if self._needed:
            there &= present(records, self._needed)
        return values, there

    def text_of(self, records: Records, row: int) -> Any:
        """The key of one row, for errors."""
        value: Any = records[row]
        for name in self.path.split("."):
            value = getattr(value, name)
        return value

    def _integers(self, records: Records) -> NDArray[np.int64]:
        column: Any = records.columns(self.path)[self.path]
        return np.ascontiguousarray(column.astype(np.uint64 if column.dtype.kind == "u" else np.int64)).view(
            np.int64
        )

    def _addresses(self, records: Records) -> NDArray[np.int64]:
        if records.representation != "yaff":
            return self._addresses_of_copies(records)
        from yaffjit.columns.read import paths_of
        from yaffjit.jit.columns.positions import find_addresses

        paths = paths_of(records, (self.path,))
        addresses = np.empty(len(records), np.int64)

        def work(begin: int, end: int) -> None:
            records._check()
            find_addresses(records, paths, addresses, begin, end)

        run_stretches(work, len(records), _STRETCH)
        return addresses

    def _addresses_of_copies(self, records: Records) -> NDArray[np.int64]:
        """Of texts that don't stand anywhere in the form that YaFF has, with their length before them."""
        column: Any = records.columns(self.path)[self.path]
        lengths = np.diff(column.offsets).astype("<u4")
        starts = column.offsets[:-1] + 4 * np.arange(len(lengths))
        heads = (starts[:, np.newaxis] + np.arange(4)).ravel()
        self._copied = np.empty(len(column.data) + len(heads), np.uint8)
        is_text = np.ones(len(self._copied), np.bool_)
        is_text[heads] = False
        self._copied[heads] = lengths.view(np.uint8)
        self._copied[is_text] = column.data
        addresses: NDArray[np.int64] = starts + array_address(self._copied)
        return addresses


def texts_at(addresses: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """A copy of texts where `KeyField.read` found them, and the offsets of each in it."""
    from yaffjit.kernels.keys import copy_texts, text_lengths

    offsets = np.zeros(len(addresses) + 1, np.int64)
    text_lengths(addresses, offsets)
    np.cumsum(offsets, out=offsets)
    data = np.empty(int(offsets[-1]), np.uint8)
    copy_texts(addresses, offsets, data)
    return data, offsets


def texts_nbytes(addresses: NDArray[np.int64]) -> int:
    """Bytes of texts where `KeyField.read` found them, with 4 for the length of each."""
    from yaffjit.kernels.keys import text_lengths

    offsets = np.zeros(len(addresses) + 1, np.int64)
    text_lengths(addresses, offsets)
    return int(offsets.sum()) + 4 * len(addresses)
