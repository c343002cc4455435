"""A report as one HTML page that needs nothing else: a plot a race, and curves over sizes and counts."""

from __future__ import annotations

import html
import io
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.compare import HIGH, LOW
from benchmarks.timing import duration

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100%; font-size: 13px; margin: 1rem 0 }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid #ddd; vertical-align: top }
td.missed { color: #b3261e }
figure { margin: 1.5rem 0 } figcaption { font-size: 13px; color: #555 } svg { max-width: 100%; height: auto }
"""
OWN, OTHER = "#2457a6", "#b9bec7"


def page(measured: dict[str, Any]) -> str:
    """The page.

    Args:
        measured: what ``--json`` writes.

    Raises:
        SystemExit: matplotlib isn't installed.
    """
    environment = measured["environment"]
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>yaffjit: speed</title>",
        f"<style>{STYLE}</style><h1>yaffjit: speed</h1>",
        f"<p>{html.escape(report.machine(environment))} Load when it began and ended: "
        f"{html.escape(environment.get('load', 'not noted'))}.</p>",
        f"<p>Dots are medians, lines reach from the {LOW}th to the {HIGH}th percentile of the repetitions. "
        "A ratio is the median of the ratios within the repetitions.</p>",
    ]
    suites = dict.fromkeys(race["suite"] for race in measured["races"])
    for suite in suites:
        races = [race for race in measured["races"] if race["suite"] == suite]
        parts.append(f"<h2 id='{suite}'>{suite}</h2>")
        parts.append(bar_table(races))
        parts.extend(curves(races))
        parts.extend(figure(race["name"], times(race)) for race in races if race["seconds"])
    return "\n".join(parts) + "\n</html>\n"


def bar_table(races: list[dict[str, Any]]) -> str:
    """The bars of some races."""
    rows = [(race, bar) for race in races for bar in race["bars"]]
    if not rows:
        return ""
    head = "".join(f"<th>{name}</th>" for name in report.COLUMNS)
    lines = []
    for race, bar in rows:
        *cells, met = (html.escape(cell.replace("**", "")) for cell in report.row(race, bar))
        why = html.escape(report.reason(race, bar))
        last = f"<td class='missed'>{met}: {why}</td>" if met == "no" else f"<td>{met}</td>"
        lines.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}{last}</tr>")
    return f"<table><tr>{head}</tr>{''.join(lines)}</table>"


def figure(caption: str, svg: str) -> str:
    return f"<figure>{svg}<figcaption>{html.escape(caption)}</figcaption></figure>"


def times(race: dict[str, Any]) -> str:
    """A race's contenders, a line each, as SVG."""
    names = list(race["seconds"])[::-1]
    plot, axes = canvas(0.5 + 0.3 * len(names))
    for y, name in enumerate(names):
        spent = np.array(race["seconds"][name]) / race["objects"]
        low, middle, high = np.percentile(spent, [LOW, 50, HIGH])
        color = OWN if name.startswith("yaffjit") else OTHER
        axes.barh(y, middle, color=color, height=0.6)
        axes.plot([low, high], [y, y], color="black", linewidth=1)
        axes.annotate(f" {duration(middle)}", (max(high, middle), y), va="center", fontsize=8, color="#333")
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.margins(x=0.18)
    axes.set_xlabel("seconds an object" if race["objects"] > 1 else "seconds", fontsize=8)
    return as_svg(plot)


def curves(races: list[dict[str, Any]]) -> Iterator[str]:
    """A figure for each set of races that differ in one number, as a count of fields."""
    for name in dict.fromkeys(race["curve"]["figure"] for race in races if race.get("curve")):
        points = [race for race in races if race.get("curve") and race["curve"]["figure"] == name]
        plot, axes = canvas(3.2)
        values = points[0]["curve"]["values"] or points[0]["seconds"]
        for contender in values:
            line = [
                (race["curve"]["x"], value_of(race, contender))
                for race in points
                if contender in (race["curve"]["values"] or race["seconds"])
            ]
            own = contender.startswith("yaffjit")
            axes.plot(*zip(*line, strict=True), marker="o", label=contender, linewidth=2.2 if own else 1.2)
        axes.set_xlabel(points[0]["curve"]["axis"], fontsize=8)
        axes.set_ylabel(points[0]["curve"]["unit"], fontsize=8)
        xs = [race["curve"]["x"] for race in points]
        if min(xs) > 0 and max(xs) >= 50 * min(xs):
            axes.set_xscale("log")
        axes.set_yscale("log")
        axes.legend(fontsize=8, frameon=False)
        yield figure(name, as_svg(plot))


def value_of(race: dict[str, Any], contender: str) -> float:
    """What a race says of a contender in a curve: a value of its own, or the median time of an object."""
    given = race["curve"]["values"]
    if given:
        return float(given[contender])
    return float(np.median(race["seconds"][contender])) / race["objects"]


def canvas(height: float) -> tuple[Any, Any]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SystemExit("benchmarks: --html needs matplotlib; pip install '.[bench]'") from None
    plot = Figure(figsize=(8.5, height), layout="constrained")
    axes = plot.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    return plot, axes


def as_svg(plot: Any) -> str:
    file = io.StringIO()
    plot.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue().partition("?>")[2].partition(">")[2].strip()
