"""Features of OpenStreetMap's ways."""

from __future__ import annotations

from typing import Any

MESSAGE = "osm.Way"


def node_ids(way: Any) -> Any:
    """References are stored as differences."""
    node = 0
    lowest = highest = 0
    for i, difference in enumerate(way.refs):
        node += difference
        lowest = node if i == 0 else min(lowest, node)
        highest = node if i == 0 else max(highest, node)
    return lowest, highest


def is_closed(way: Any) -> Any:
    return len(way.refs) > 1 and sum(way.refs[1:]) == 0


def tag_pairs(way: Any) -> Any:
    total = 0
    for key, value in zip(way.keys, way.vals):  # noqa: B905
        total += key * 31 + value
    return total % 65536, len(way.keys) == len(way.vals)


def value_of_key(way: Any) -> Any:
    """Raises IndexError for a way without tags."""
    first = way.keys[0]
    for i in range(len(way.keys)):
        if way.keys[i] == first + 1:
            return way.vals[i]
    return way.vals[0]


def version(way: Any) -> Any:
    """The default is -1."""
    return way.info.version, way.HasField("info") and way.info.HasField("version"), way.info.uid % 10


def age(way: Any) -> Any:
    return (1_700_000_000 - way.info.timestamp) // 86_400 if way.info.timestamp > 0 else -1


def longest_jump(way: Any) -> Any:
    longest = 0
    for difference in way.refs[1:]:
        longest = max(longest, abs(difference))
    return longest, max(way.refs, default=0)
