"""Neither the verifier nor a reader of what it accepts touches a byte outside: it would crash in `guard`."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

GUARD = Path(__file__).parent / "guard.py"


def run(mode: str) -> subprocess.CompletedProcess[str]:
    paths = f"import sys; sys.path[:0] = {[str(GUARD.parents[1]), str(GUARD.parent)]!r}"
    code = f"{paths}; import guard; guard.main({mode!r})"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("mode", ["before", "behind"])
def test_guard_pages_crash(mode: str) -> None:
    assert run(mode).returncode == -signal.SIGSEGV


@pytest.mark.parametrize("mode", ["kernel", pytest.param("jit", marks=pytest.mark.slow)])
def test_nothing_outside_is_read(mode: str) -> None:
    process = run(mode)
    assert process.returncode == 0, process.stderr[-2000:]
    assert " buffers" in process.stdout
