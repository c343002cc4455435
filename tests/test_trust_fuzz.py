"""Each fuzz target over damaged inputs, without a fuzzer: so that targets keep working."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fuzz import corpus, run, targets

import yaffjit as yj

COUNT = 40
SEED = 2


@pytest.mark.parametrize("name", targets.TARGETS)
def test_target(name: str) -> None:
    held = list(corpus.mutants(name, COUNT, SEED))
    assert len(set(held)) > COUNT // 2
    for data in [b"", b"\0", *held]:
        try:
            targets.TARGETS[name](data)
        except Exception as error:
            raise AssertionError(f"{name}: {data.hex()}") from error


def test_targets_let_other_errors_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(data: bytes) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(yj, "load_schema", broken)
    with pytest.raises(ZeroDivisionError):
        targets.TARGETS["load_schema"](b"")


def test_without_atheris_it_says_how_to_get_it() -> None:
    code = (
        "import sys; sys.modules['atheris'] = None; sys.argv = ['run.py', 'view']; "
        f"sys.path.insert(0, {str(Path(__file__).parent)!r}); from fuzz import run; "
        "sys.exit(run.main(sys.argv))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr.strip()) == (2, run.HOW)
