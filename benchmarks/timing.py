"""Races: several ways to the same result, checked equal, then timed in turn within one process."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SAMPLE_SECONDS = 0.003  # a sample repeats a call until it lasts this long
RACE_SECONDS = 15.0  # fewer repetitions where all of them would take longer
LEAST_REPETITIONS = 3


@dataclass(frozen=True)
class Bar:
    """What a contender may take beside another one, or by itself.

    One of four: ``at_most`` times as long, ``at_least`` times faster, ``seconds_more`` at most;
    or ``seconds`` at most, without another one.
    """

    name: str
    base: str = ""
    at_most: float | None = None
    at_least: float | None = None
    seconds_more: float | None = None
    seconds: float | None = None

    def measured(self, seconds: Mapping[str, list[float]]) -> float:
        """The median over repetitions of the ratio, or difference, in a repetition; or of the seconds."""
        if self.seconds is not None:
            return statistics.median(seconds[self.name])
        pairs = list(zip(seconds[self.name], seconds[self.base], strict=True))
        if self.seconds_more is not None:
            return statistics.median(own - other for own, other in pairs)
        if self.at_least is not None:
            return statistics.median(other / own for own, other in pairs)
        return statistics.median(own / other for own, other in pairs)

    def holds(self, measured: float) -> bool:
        if self.at_least is not None:
            return measured >= self.at_least
        limits = [limit for limit in (self.at_most, self.seconds_more, self.seconds) if limit is not None]
        return all(measured <= limit for limit in limits)

    def show(self, measured: float) -> tuple[str, str]:
        """The bar and what was measured, as text."""
        if self.seconds is not None:
            return f"at most {duration(self.seconds)}", duration(measured)
        if self.seconds_more is not None:
            return f"at most {self.seconds_more:g} s more", f"{measured:.3f} s more"
        if self.at_least is not None:
            return f"at least {self.at_least:g}x faster", f"{measured:.1f}x faster"
        return f"at most {self.at_most:g}x", f"{measured:.2f}x"


@dataclass(frozen=True)
class Curve:
    """A race as one point of a curve over some count or size.

    Attributes:
        figure: the name of the curves.
        axis: what ``x`` counts.
        values: what is drawn instead of times, by contender.
        unit: of what is drawn.
    """

    figure: str
    axis: str
    x: float
    unit: str = "seconds an object"
    values: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Amount:
    """A bar on bytes, of memory or of a file."""

    race: str
    name: str
    nbytes: float
    limit: float  # in bytes
    curve: Curve | None = None

    def show(self) -> tuple[str, str]:
        """The bar and what was measured, as text."""
        return f"at most {size(self.limit)}", size(self.nbytes)


@dataclass
class Race:
    """``contenders`` by name; each call does the same work over ``count`` objects and returns its result."""

    name: str
    count: int
    contenders: dict[str, Callable[[], Any]]
    bars: list[Bar] = field(default_factory=list)
    unit: str = "ns an object"
    checked: bool = True  # False where the results aren't comparable, as compile times
    repetitions: int | None = None
    reported: bool = False  # each call returns the seconds that count, and is made once a repetition
    curve: Curve | None = None


@dataclass(frozen=True)
class Result:
    """``seconds`` of one call, by contender, one number a repetition."""

    race: Race
    seconds: dict[str, list[float]]


def run(race: Race, repetitions: int, race_seconds: float = RACE_SECONDS) -> Result:
    """Check that all contenders agree, then time them in turn, in alternating order."""
    if race.reported:
        times = range(race.repetitions or LEAST_REPETITIONS)
        return Result(race, {name: [work() for _ in times] for name, work in race.contenders.items()})
    if race.checked:
        check_equal(race)
    calls = {}
    once = 0.0  # seconds of one repetition
    for name, work in race.contenders.items():
        call_seconds = _sample(work, 1)
        calls[name] = max(1, round(SAMPLE_SECONDS / max(call_seconds, 1e-9)))
        once += call_seconds * calls[name]
    affordable = max(LEAST_REPETITIONS, int(race_seconds / once))
    seconds: dict[str, list[float]] = {name: [] for name in race.contenders}
    names = list(race.contenders)
    gc.collect()
    gc.disable()
    try:
        for _ in range(min(race.repetitions or repetitions, affordable)):
            for name in names:
                seconds[name].append(_sample(race.contenders[name], calls[name]))
            names.reverse()
    finally:
        gc.enable()
    return Result(race, seconds)


def check_equal(race: Race) -> None:
    """Raise AssertionError where a contender's result isn't the first one's."""
    results = {name: work() for name, work in race.contenders.items()}
    (first, expected), *others = results.items()
    for name, result in others:
        if not same(result, expected):
            raise AssertionError(f"{race.name}: {name!r} and {first!r} disagree")


def same(result: Any, expected: Any) -> bool:
    if isinstance(result, (tuple, list)) and isinstance(expected, (tuple, list)):
        return len(result) == len(expected) and all(map(same, result, expected))
    return bool(np.array_equal(np.asarray(result), np.asarray(expected)))


def duration(seconds: float) -> str:
    """Seconds as text in the unit that fits: ns, us, ms or s."""
    for unit, scale in (("ns", 1e9), ("us", 1e6), ("ms", 1e3)):
        if seconds * scale < 100.0:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds:.3g} s"


def size(nbytes: float) -> str:
    """A number of bytes as text in the unit that fits, exact below 100,000,000."""
    return f"{nbytes:,.0f} bytes" if nbytes < 1e8 else f"{nbytes / 1e6:,.0f} MB"


def _sample(work: Callable[[], Any], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        work()
    return (time.perf_counter() - start) / calls
