"""The benchmarks: bars mean what they say, unequal results stop a race, and every suite runs."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import __main__ as program
from benchmarks import banners, columns, getters
from benchmarks.timing import Bar, Race, check_equal, run

SECONDS = {"ours": [1.0, 2.0, 6.0], "theirs": [2.0, 8.0, 3.0]}


@pytest.mark.parametrize(
    ("bar", "measured", "holds", "text"),
    [
        (Bar("ours", "theirs", at_most=0.5), 0.5, True, ("at most 0.5x", "0.50x")),
        (Bar("ours", "theirs", at_most=0.4), 0.5, False, ("at most 0.4x", "0.50x")),
        (Bar("ours", "theirs", at_least=2.0), 2.0, True, ("at least 2x faster", "2.0x faster")),
        (Bar("ours", "theirs", at_least=3.0), 2.0, False, ("at least 3x faster", "2.0x faster")),
        (Bar("ours", "theirs", seconds_more=0.1), -1.0, True, ("at most 0.1 s more", "-1.000 s more")),
        (Bar("theirs", "ours", seconds_more=0.1), 1.0, False, ("at most 0.1 s more", "1.000 s more")),
    ],
)
def test_bars_compare_within_a_repetition(
    bar: Bar, measured: float, holds: bool, text: tuple[str, str]
) -> None:
    assert bar.measured(SECONDS) == measured
    assert bar.holds(measured) is holds
    assert bar.show(measured) == text


def test_race_times_each_contender_in_turn() -> None:
    calls: list[str] = []

    def work(name: str) -> int:
        calls.append(name)
        return 5

    race = Race("r", 1, {"a": lambda: work("a"), "b": lambda: work("b")}, repetitions=2)
    result = run(race, repetitions=9)
    assert [len(seconds) for seconds in result.seconds.values()] == [2, 2]
    assert calls[:4] == ["a", "b", "a", "b"]  # once to compare results, once to see how long it takes


def test_unequal_results_stop_a_race() -> None:
    race = Race("r", 1, {"a": lambda: [np.arange(3), 1], "b": lambda: [np.arange(3), 2]})
    with pytest.raises(AssertionError, match=r"^r: 'b' and 'a' disagree$"):
        check_equal(race)


@pytest.mark.parametrize("suite", ["getters", "columns", "views", "repeated"])
def test_suite_runs(
    suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(getters, "HOT_ROWS", 50)
    monkeypatch.setattr(getters, "QUICK_ROWS", 100)
    monkeypatch.setattr(columns, "QUICK_ROWS", 300)
    monkeypatch.setattr(banners, "DISTINCT", 100)
    report = tmp_path / "report.json"
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--quick", "--only", suite, "--json", str(report)])
    if shutil.which("cc") is None:
        with pytest.raises(SystemExit, match="a C compiler is needed"):
            program.main()
        return
    program.main()  # bars are checked by hand, never by a timed test
    printed = capsys.readouterr().out
    written = json.loads(report.read_text())
    assert written["environment"]["numba"] in printed
    assert all(race["name"] in printed for race in written["races"])
    assert any(race["bars"] for race in written["races"])
