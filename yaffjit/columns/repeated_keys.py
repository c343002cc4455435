"""Maps of protobuf bytes may have a key more than once. The last pair counts, the others are dropped here.

Pairs are gathered as they come, since it takes all keys of a map to know. Hardly any map has one twice.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from yaffjit.columns.results import Array
from yaffjit.plan.gathering import Gathering, Leaf, Loop, Scope


def drop_repeated_keys(wanted: Gathering, arrays: list[Array]) -> None:
    """Leave only the last pair of each key in the arrays of slots, some of which are replaced."""
    for loop in _maps(wanted.root):
        assert loop.keys is not None
        offsets = arrays[loop.all_offsets]
        kept = _kept(offsets, loop.keys, arrays)
        if not kept.all():
            arrays[loop.all_offsets] = _sums(kept)[offsets]
            _drop(loop, kept, arrays)


def _maps(scope: Scope) -> Iterator[Loop]:
    for loop in scope.loops:
        if loop.keys is not None:
            yield loop
        yield from _maps(loop.scope)


def _kept(offsets: Array, keys: Leaf, arrays: list[Array]) -> Array:
    """Which pairs are the last ones of their keys in their maps."""
    from yaffjit.kernels.map_keys import MOST_COMPARED, mark_integers, mark_texts

    kept = np.ones(int(offsets[-1]), np.bool_)
    values = arrays[keys.values]
    if keys.what == "text":
        starts = arrays[keys.all_offsets]
        passed_over = mark_texts(offsets, starts, values, kept)
    else:
        numbers = values.astype(np.int64)
        passed_over = mark_integers(offsets, numbers, kept)
    if not passed_over:
        return kept
    for place in np.flatnonzero(np.diff(offsets) > MOST_COMPARED).tolist():
        pairs = range(int(offsets[place]), int(offsets[place + 1]))
        if keys.what == "text":
            last = {values[starts[pair] : starts[pair + 1]].tobytes(): pair for pair in pairs}
            rows = np.fromiter(last.values(), np.int64, len(last))
        else:
            # The first ones from the end.
            rows = pairs.stop - 1 - np.unique(numbers[pairs.start : pairs.stop][::-1], return_index=True)[1]
        kept[pairs.start : pairs.stop] = False
        kept[rows] = True
    return kept


def _drop(loop: Loop, kept: Array, arrays: list[Array]) -> None:
    """Leave only some elements in what a loop stores for each."""
    for leaf in loop.leaves:
        if leaf.what == "text":
            lengths = np.diff(arrays[leaf.all_offsets])
            arrays[leaf.values] = arrays[leaf.values][np.repeat(kept, lengths)]
            arrays[leaf.all_offsets] = _sums(lengths[kept])
        else:
            arrays[leaf.values] = arrays[leaf.values][kept]
    for inner in loop.scope.loops:
        lengths = np.diff(arrays[inner.all_offsets])
        arrays[inner.all_offsets] = _sums(lengths[kept])
        _drop(inner, np.repeat(kept, lengths), arrays)


def _sums(counts: Array) -> Array:
    """How many there are before each, and in all."""
    sums = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=sums[1:])
    sums.flags.writeable = False
    return sums
