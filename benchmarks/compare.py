"""Two reports beside each other: which ratios moved further than either's repetitions spread."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LOW, HIGH = 10, 90  # percentiles between which a spread lies


def moved(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """The bars whose measure moved.

    One has moved where either median lies outside of the other's spread: what nine of ten repetitions
    reach on both sides. What has no repetitions, as memory, moves by more than 5 %.

    Args:
        old, new: what ``--json`` writes.

    Returns:
        Race and bar, the old measure, the new one, and "slower" or "faster" (for memory and sizes "more" or
        "less"), in the order of the new report.
    """
    before = {(race["name"], bar["name"], bar["base"]): (race, bar) for race, bar in bars(old)}
    found = []
    for race, bar in bars(new):
        name = (race["name"], bar["name"], bar["base"])
        if name not in before:
            continue
        old_race, old_bar = before[name]
        first, second = measures(old_race, old_bar), measures(race, bar)
        if is_within(first, second) and is_within(second, first):
            continue
        grew = bool(np.median(second) > np.median(first))
        words = ("slower", "faster") if race["seconds"] else ("more", "less")
        if "faster" in bar["limit"]:
            grew = not grew
        beside = f" / {bar['base']}" if bar["base"] else ""
        verdict = words[0] if grew else words[1]
        found.append((f"{race['name']}: {bar['name']}{beside}", old_bar["shown"], bar["shown"], verdict))
    return found


def left_out(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """The races that only one of the reports has."""
    names = [{race["name"] for race in report["races"]} for report in (old, new)]
    return sorted(names[0] ^ names[1])


def bars(report: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [(race, bar) for race in report["races"] for bar in race["bars"]]


def measures(race: dict[str, Any], bar: dict[str, Any]) -> NDArray[np.float64]:
    """What a bar measures, a number a repetition."""
    seconds = race["seconds"]
    if not seconds:
        return np.array([bar["measured"]]) * (0.95, 1.0, 1.05)
    own = np.array(seconds[bar["name"]])
    if not bar["base"]:
        return own
    base = np.array(seconds[bar["base"]])
    if "s more" in bar["limit"]:
        return own - base
    return base / own if "faster" in bar["limit"] else own / base


def is_within(measures: NDArray[np.float64], others: NDArray[np.float64]) -> bool:
    """Whether the median lies in the others' spread."""
    low, high = np.percentile(others, [LOW, HIGH])
    return bool(low <= np.median(measures) <= high)
