"""Which pairs of maps don't count, because their key comes again behind them."""

from __future__ import annotations

from yaffjit.kernels.cached import cached

# Pairs of one map that are compared with each other.
MOST_COMPARED = 64


def _mark_integers(offsets, keys, kept):  # type: ignore[no-untyped-def]
    """Stores False in ``kept`` for each pair whose key comes again in its map.

    Args:
        offsets: int64, one more than maps: where each one's pairs begin.
        keys: int64, of all pairs.
        kept: bool, of all pairs, True at first.

    Returns:
        How many maps were passed over, because they have more than `MOST_COMPARED` pairs.

    Requires: offsets ascend, within the pairs.
    Source: `yaffjit.columns.repeated_keys`.
    """
    passed_over = 0
    for i in range(len(offsets) - 1):
        begin, end = offsets[i], offsets[i + 1]
        if end - begin > MOST_COMPARED:
            passed_over += 1
            continue
        for pair in range(begin, end - 1):
            for other in range(pair + 1, end):
                if keys[pair] == keys[other]:
                    kept[pair] = False
                    break
    return passed_over


def _mark_texts(offsets, starts, data, kept):  # type: ignore[no-untyped-def]
    """As `_mark_integers`, of keys ``data[starts[i]:starts[i + 1]]``; data is uint8."""
    passed_over = 0
    for i in range(len(offsets) - 1):
        begin, end = offsets[i], offsets[i + 1]
        if end - begin > MOST_COMPARED:
            passed_over += 1
            continue
        for pair in range(begin, end - 1):
            first, nbytes = starts[pair], starts[pair + 1] - starts[pair]
            for other in range(pair + 1, end):
                if starts[other + 1] - starts[other] != nbytes:
                    continue
                same = 0
                while same < nbytes and data[first + same] == data[starts[other] + same]:
                    same += 1
                if same == nbytes:
                    kept[pair] = False
                    break
    return passed_over


mark_integers = cached(_mark_integers, nogil=True)
mark_texts = cached(_mark_texts, nogil=True)
