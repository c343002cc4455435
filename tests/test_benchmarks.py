"""The benchmarks: bars mean what they say, unequal results stop a race, and every suite runs."""

from __future__ import annotations

import ctypes
import gc
import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import __main__ as program
from benchmarks import (
    access,
    arrow,
    banners,
    build,
    builder,
    columns,
    compare,
    fields,
    getters,
    items,
    keys,
    native,
    report,
    timing,
    trust,
    universal,
    wire,
)
from benchmarks.reasons import REASONS
from benchmarks.timing import Amount, Bar, Curve, Race, Result, check_equal, duration, run

pytestmark = pytest.mark.slow


HAS_COMPILER = shutil.which("cc") is not None  # without one test_suite_runs tests the error
SECONDS = {"ours": [1.0, 2.0, 6.0], "theirs": [2.0, 8.0, 3.0]}


@pytest.fixture(scope="module", autouse=True)
def _little_to_collect() -> Iterator[None]:
    """Races collect garbage before they time; what the tests before these have compiled isn't looked at."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize(
    ("bar", "measured", "holds", "text"),
    [
        (Bar("ours", "theirs", at_most=0.5), 0.5, True, ("at most 0.5x", "0.50x")),
        (Bar("ours", "theirs", at_most=0.4), 0.5, False, ("at most 0.4x", "0.50x")),
        (Bar("ours", "theirs", at_least=2.0), 2.0, True, ("at least 2x faster", "2.0x faster")),
        (Bar("ours", "theirs", at_least=3.0), 2.0, False, ("at least 3x faster", "2.0x faster")),
        (Bar("ours", "theirs", seconds_more=0.1), -1.0, True, ("at most 0.1 s more", "-1.000 s more")),
        (Bar("theirs", "ours", seconds_more=0.1), 1.0, False, ("at most 0.1 s more", "1.000 s more")),
        (Bar("ours", seconds=2.0), 2.0, True, ("at most 2 s", "2 s")),
        (Bar("ours", seconds=8e-7), 2.0, False, ("at most 0.8 us", "2 s")),
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


def without_sizes(name: str) -> str:
    """A race's name without the numbers that are others here."""
    return re.sub(r"\bN(\.N)? [KM]?B\b", "N bytes", report.without_numbers(name))


@pytest.mark.parametrize(
    "suite",
    [
        "getters",
        "columns",
        "arrow",
        "views",
        "repeated",
        "items",
        "calls",
        "access",
        "build",
        "keys",
        "universal",
        "sizes",
        "fields",
        "wire",
        "builder",
        "trust",
    ],
)
def test_suite_runs(
    suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(getters, "HOT_ROWS", 50)
    monkeypatch.setattr(getters, "QUICK_ROWS", 100)
    monkeypatch.setattr(columns, "QUICK_ROWS", 300)
    monkeypatch.setattr(arrow, "QUICK_ROWS", 300)
    monkeypatch.setattr(banners, "DISTINCT", 100)
    monkeypatch.setattr(fields, "QUICK_ROWS", 20)
    monkeypatch.setattr(items, "ROWS", 100)
    monkeypatch.setattr(items, "TEXTS", 100)
    monkeypatch.setattr(items, "LOOKUPS", 100)
    monkeypatch.setattr(items, "MANY", 40)
    monkeypatch.setattr(build, "QUICK_ROWS", 100)
    monkeypatch.setattr(keys, "QUICK_ROWS", 1_000)
    monkeypatch.setattr(keys, "QUICK_ASKED", 500)
    monkeypatch.setattr(access, "QUICK_NBYTES", 100_000)
    monkeypatch.setattr(access, "QUICK_VISITS", 100)
    monkeypatch.setattr(access, "DISTINCT", 100)
    monkeypatch.setattr(access, "HOT_ROWS", 50)
    monkeypatch.setattr(access, "LISTED", 6_000)
    monkeypatch.setattr(access, "QUICK_MANY", 20_000)
    monkeypatch.setattr(access, "REPETITIONS", 2)
    monkeypatch.setattr(timing, "SAMPLE_SECONDS", 1e-5)
    monkeypatch.setattr(wire, "QUICK_ROWS", 300)
    monkeypatch.setattr(wire, "SHAPES", {"0.5 KB": (3, 4)})
    monkeypatch.setattr(builder, "ROWS", 2_000)
    monkeypatch.setattr(universal, "QUICK_PAIRS", 100)
    monkeypatch.setattr(universal, "QUICK_RECORDS", 20)
    monkeypatch.setattr(trust, "ROWS", 300)
    monkeypatch.setattr(trust, "QUICK_BATCHES", 1)
    file = tmp_path / "report.json"
    monkeypatch.setattr(
        sys, "argv", ["benchmarks", "--quick", "--seconds", "0.02", "--only", suite, "--json", str(file)]
    )
    if shutil.which("cc") is None:
        with pytest.raises(SystemExit, match="a C compiler is needed"):
            program.main()
        return
    program.main()  # bars are checked by hand, never by a timed test
    printed = capsys.readouterr().out
    written = json.loads(file.read_text())
    assert written["environment"]["numba"] in printed
    assert all(race["name"] in printed for race in written["races"])
    assert any(race["bars"] for race in written["races"])
    kept = [race for race in json.loads(report.KEPT.read_text())["races"] if race["suite"] == suite]
    assert {without_sizes(race["name"]) for race in kept} <= {
        without_sizes(race["name"]) for race in written["races"]
    }

    monkeypatch.setattr(sys, "argv", ["benchmarks", "--from", str(file)])
    program.main()
    assert printed.endswith(capsys.readouterr().out)


def test_a_race_whose_calls_report_their_seconds() -> None:
    times = iter([3.0, 1.0, 2.0])
    result = run(Race("r", 1, {"a": lambda: next(times)}, reported=True, repetitions=3), repetitions=9)
    assert result.seconds == {"a": [3.0, 1.0, 2.0]}


@pytest.mark.parametrize(
    ("seconds", "text"), [(4.25e-9, "4.25 ns"), (4e-7, "0.4 us"), (0.0153, "15.3 ms"), (1.5, "1.5 s")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


# ---- the tables of the pages ----

MEASURED = {
    "quick": False,
    "environment": {"cpu": "a CPU", "compiler": "gcc -O3", "python": "3.13.0", "numba": "0.68"},
    "races": [
        {
            "name": "the hash of a text",
            "objects": 10,
            "seconds": {"yaffjit": [2e-8, 3e-8], "C": [1e-8, 2e-8]},
            "bars": [
                {"name": "yaffjit", "base": "C", "limit": "at most 3x", "shown": "1.75x", "holds": True}
            ],
        },
        {
            "name": "another race of 20 rows",
            "objects": 1,
            "seconds": {"yaffjit": [1.0]},
            "bars": [
                {"name": "yaffjit", "base": "", "limit": "at most 2 s", "shown": "1 s", "holds": True},
                {"name": "yaffjit", "base": "", "limit": "at most 0.5 s", "shown": "1 s", "holds": False},
            ],
        },
    ],
}
HEAD = """\
a CPU; gcc -O3; python 3.13.0, numba 0.68.

| what | yaffjit | time | beside | time | bar | measured | met |
|---|---|--:|---|--:|---|--:|---|
| the hash of a text | yaffjit | 2 ns | C | 1 ns | at most 3x | 1.75x | yes |
"""
MET = "| another race of 20 rows | yaffjit | 1 s |  |  | at most 2 s | 1 s | yes |\n"
MISSED = "| another race of 20 rows | yaffjit | 1 s |  |  | at most 0.5 s | 1 s | **no** |\n"


def test_tables_have_each_bar_and_the_readme_what_was_missed(tmp_path: Path) -> None:
    assert report.table(MEASURED) == HEAD + MET + MISSED
    assert report.table(MEASURED, of_readme=True) == HEAD + MISSED
    quick = report.table({**MEASURED, "quick": True}).splitlines()[0]
    assert quick == "a CPU; gcc -O3; python 3.13.0, numba 0.68. A quick run: fewer rows and repetitions."
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.START}old\n{report.END}after\n")
    for _ in range(2):
        report.write(MEASURED, [(page, True)])
        assert page.read_text() == f"before\n{report.START}\n{HEAD}{MISSED}\n{report.END}after\n"
    report.write(MEASURED, [(page, False)])
    why = "* another race of 20 rows: yaffjit, at most 0.5 s, measured 1 s. The reason hasn't been found.\n"
    missed = f"## What is missed, and why\n\n{why}\n"
    assert page.read_text() == f"before\n{report.START}\n{HEAD}{MET}{MISSED}\n{missed}{report.END}after\n"
    page.write_text("nothing")
    with pytest.raises(SystemExit, match="has no lines <!-- measured --> and <!-- /measured -->"):
        report.write(MEASURED, [(page, True)])


def test_pages_show_what_was_measured() -> None:
    kept = json.loads(report.KEPT.read_text())
    assert not kept["quick"]
    assert {race["suite"] for race in kept["races"]} <= set(program.ALL)
    for page, of_readme in program.PAGES:
        section = page.read_text().partition(report.START)[2].partition(report.END)[0]
        assert section == report.shown(kept, of_readme)
    names = {report.without_numbers(race["name"]) for race in kept["races"]}
    assert set(report.README_RACES) <= names
    shown = {bar["shown"] for race in kept["races"] for bar in race["bars"]}
    prose = re.sub(r"^\|.*$", "", program.PAGES[0][0].read_text(), flags=re.MULTILINE)
    assert {f"{ratio}x" for ratio in re.findall(r"\b(\d+\.\d+)x\b", prose)} <= shown


def test_each_missed_bar_has_its_reason() -> None:
    kept = json.loads(report.KEPT.read_text())
    keys = {
        (report.without_numbers(race["name"]), bar["name"], bar["base"]): bar["holds"]
        for race in kept["races"]
        for bar in race["bars"]
    }
    assert {key for key, holds in keys.items() if not holds} <= set(REASONS) <= set(keys)
    text = report.why(kept)
    assert "hasn't been found" not in text
    assert text.count("\n* ") + 1 == sum(not bar["holds"] for race in kept["races"] for bar in race["bars"])


# ---- the C program ----


def test_c_finds_what_protobuf_finds(tmp_path: Path) -> None:
    if not HAS_COMPILER:
        return
    reader = native.Reader(tmp_path)
    for pairs in (1, items.FEW, 33, 100):
        made = items.with_maps(30, pairs, lookups=20)
        for function in (items.id_in_each, items.name_in_each):
            in_c = reader.items(function.__name__, made.data, made.offsets, 30)
            assert in_c() == function.py_func(made.messages) > 0.0
        assert reader.items("names_in_one", made.data, made.offsets)() == items.names_in_one.py_func(
            made.messages
        )
        keys = np.array([*made.messages[0].by_id, -1, 1])
        in_c = reader.items(
            "ids_in_one", made.data, made.offsets, ctypes.c_void_p(keys.ctypes.data), len(keys)
        )
        assert in_c() == items.ids_in_one.py_func(made.messages, keys.tolist())
    made = items.with_text(50)
    assert (
        reader.items("count_violins", made.data, made.offsets, 50)()
        == items.count_violins.py_func(made.messages)
        > 0
    )
    many = items.Items([{"names": list(items.KINDS) * 3}])
    assert reader.items("count_violin_names", many.data, many.offsets)() == 3
    hashes = reader.items("hash_titles", made.data, made.offsets, 50, native.hash_function())
    assert hashes() == items.hash_titles.py_func(made.messages)


# ---- two reports, and the page ----


def a_report(**seconds: list[float]) -> dict[str, Any]:
    race = Race("r", 1, {}, [Bar("ours", "theirs", at_most=2.0), Bar("theirs", "ours", at_least=1.0)])
    race.curve = Curve("by fields", "fields", len(seconds["ours"]))
    environment = {"cpu": "a CPU", "compiler": "gcc", "load": "0.1, 0.2"}
    races = [program.as_json(Result(race, seconds)), program.amount_json(Amount("m", "size", 10, 9))]
    return {"quick": False, "environment": environment, "races": [{"suite": "s", **race} for race in races]}


def test_comparing_reports() -> None:
    old = a_report(ours=[1.0, 1.1, 1.2], theirs=[1.0, 1.0, 1.0])
    slower = a_report(ours=[2.0, 2.1, 2.2], theirs=[1.0, 1.0, 1.0])
    assert compare.moved(old, old) == []
    assert compare.moved(old, a_report(ours=[1.05, 1.15, 1.3], theirs=[1.0, 1.0, 1.0])) == []
    assert compare.moved(old, slower) == [
        ("r: ours / theirs", "1.10x", "2.10x", "slower"),
        ("r: theirs / ours", "1.1x faster", "2.1x faster", "faster"),
    ]
    other = a_report(ours=[1.0, 1.1, 1.2], theirs=[1.0, 1.0, 1.0])
    other["races"][1]["bars"][0] |= {"measured": 20, "shown": "20 bytes"}
    assert compare.moved(old, other) == [("m: size", "10 bytes", "20 bytes", "more")]
    del other["races"][1]
    assert compare.left_out(old, other) == ["m"]


def test_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    source, target = tmp_path / "r.json", tmp_path / "r.html"
    source.write_text(json.dumps(a_report(ours=[1.0, 1.1], theirs=[1.0, 1.0])))
    arguments = ["--from", str(source), "--html", str(target), "--compare", str(source)]
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    assert program.main() == 1  # a bar is missed
    assert "nothing moved beyond the spread" in capsys.readouterr().out
    text = target.read_text()
    assert text.count("<svg") == 2  # the race and its curve
    assert "<figcaption>by fields</figcaption>" in text
    assert "<td class='missed'>no: The reason hasn&#x27;t been found.</td>" in text
    assert "src=" not in text  # it needs no other file
