"""Numbers that stand for names, as codes: enums, and which member of a oneof is set."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from yaffjit.columns.results import Array, DictionaryColumn, TextColumn


def categories(numbers: Array, names: Mapping[int, str], none: int | None = None) -> DictionaryColumn:
    """Codes and names of numbers.

    Args:
        numbers: int32, of shape (n,).
        names: all known numbers; their order is that of the values. A number without a name is its own, in
            digits; those follow, in ascending order.
        none: the number that stands for nothing; its code is -1.
    """
    known = np.fromiter(names, np.int32, len(names))
    order = np.argsort(known)
    ordered = known[order]
    at = np.minimum(np.searchsorted(ordered, numbers), len(known) - 1)
    is_known = ordered[at] == numbers
    codes = order[at].astype(np.int32)
    texts = list(names.values())
    if none is not None:
        codes[numbers == none] = -1
        is_known |= numbers == none
    if not is_known.all():
        others, which = np.unique(numbers[~is_known], return_inverse=True)
        codes[~is_known] = len(texts) + which
        texts += map(str, others.tolist())
    return DictionaryColumn(codes, text_column(texts))


def text_column(texts: list[str]) -> TextColumn:
    """A column of given texts."""
    encoded = [text.encode() for text in texts]
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(raw) for raw in encoded], out=offsets[1:])
    return TextColumn(offsets, np.frombuffer(b"".join(encoded), np.uint8), True)
