"""The progress bar: where it shows, and that short work and other places stay quiet."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from yaffjit import progress
from yaffjit.progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, monkeypatch: Any, option: bool | None) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar("verify x.arrow", 10, "rows", option) as bar:
        bar.update(4)
        bar.update(6)
    return stream.getvalue()


@pytest.mark.parametrize("option", [None, False])
def test_no_bar_away_from_a_terminal(monkeypatch: Any, option: bool | None) -> None:
    assert shown(io.StringIO(), monkeypatch, option) == ""


def test_no_bar_for_short_work(monkeypatch: Any) -> None:
    assert shown(Terminal(), monkeypatch, None) == ""


def test_a_bar_on_a_terminal_for_long_work(monkeypatch: Any) -> None:
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
    assert "verify x.arrow" in shown(Terminal(), monkeypatch, None)
    assert shown(Terminal(), monkeypatch, False) == ""


def test_a_bar_if_it_is_asked_for(monkeypatch: Any) -> None:
    assert "verify x.arrow" in shown(io.StringIO(), monkeypatch, True)
