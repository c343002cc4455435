"""Damaged protobuf bytes in jitted code against google.protobuf.

The whole campaign is `python -m tests.wire_jit_campaign`; this is a twentieth of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from wire_jit_campaign import run

pytestmark = pytest.mark.slow

MESSAGES = int(os.environ.get("YAFFJIT_WIRE_MESSAGES", "50000"))
SEED = int(os.environ.get("YAFFJIT_SEED", "1"))


def test_values_equal_protobufs() -> None:
    told = run(MESSAGES, SEED)
    # Enough of each, so that nothing is compared with nothing.
    assert told["equal"] > MESSAGES // 2
    assert told["refused"] > MESSAGES // 10


def test_nothing_outside_is_read() -> None:
    folder = Path(__file__).parent
    paths = f"import sys; sys.path[:0] = {[str(folder.parent), str(folder)]!r}"
    code = f"{paths}; import wire_jit_guard; wire_jit_guard.main()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert " messages" in done.stdout
