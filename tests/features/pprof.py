"""Features of samples of a profile."""

from __future__ import annotations

from typing import Any

MESSAGE = "pprof.Sample"


def depth_and_leaf(sample: Any) -> Any:
    return len(sample.location_id), sample.location_id[0] if sample.location_id else 0


def is_recursive(sample: Any) -> Any:
    counts: dict[int, int] = {}
    most = 0
    for location in sample.location_id:
        counts[location] = counts.get(location, 0) + 1
        most = max(most, counts[location])
    return most > 1, len(counts)


def stack_hash(sample: Any) -> Any:
    h = 17
    for location in sample.location_id[:16]:
        h = (h * 31 + location) % 1_000_003
    return h


def cost(sample: Any) -> Any:
    return sample.value[-1], sum(sample.value), sample.value[0] / max(sample.value[1], 1)


def labels(sample: Any) -> Any:
    total = 0
    for label in sample.label:
        total += label.num if label.num else label.str
    return total, len(sample.label)


def goes_through(sample: Any) -> Any:
    return 17 in sample.location_id, max(sample.location_id, default=0) > 1000
