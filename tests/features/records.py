"""Features over many messages: functions of a list of messages, or of records."""

from __future__ import annotations

from typing import Any

MESSAGE = "features.Item"


def most_expensive(items: Any) -> Any:
    best = items[0]
    for item in items:
        if item.fixed_price > best.fixed_price:
            best = item
    return best.id, best.title


def items_by_condition(items: Any) -> Any:
    counts: dict[int, int] = {}
    for item in items:
        counts[item.condition] = counts.get(item.condition, 0) + 1
    return counts


def longest_title(items: Any) -> Any:
    longest = ""
    for item in items:
        if len(item.title) > len(longest):
            longest = item.title
    return longest


def duplicates(items: Any) -> Any:
    """How many items have a title that one before them had."""
    seen = set()
    again = 0
    for item in items:
        if item.title in seen:
            again += 1
        seen.add(item.title)
    return again


def tag_index(items: Any) -> Any:
    """Of each tag: how many items have it."""
    counts: dict[str, int] = {}
    for item in items:
        for tag in item.tags:
            counts[tag] = counts.get(tag, 0) + 1
    return counts


def highest_id(items: Any) -> Any:
    highest = 0
    row_of_highest = -1
    for row, item in enumerate(items):
        if item.id > highest:
            highest = item.id
            row_of_highest = row
    return highest, row_of_highest


def neighbours(items: Any) -> Any:
    same = 0
    for a, b in zip(items, items[1:]):  # noqa: B905, RUF007
        same += a.condition == b.condition and a.title == b.title
    return same
