"""Damaged protobuf bytes against google.protobuf, in acceptance and result.

The whole campaign is `python -m tests.wire_campaign`; this is a twentieth of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from wire_campaign import run

pytestmark = pytest.mark.slow

MESSAGES = int(os.environ.get("YAFFJIT_WIRE_MESSAGES", "50000"))
SEED = int(os.environ.get("YAFFJIT_SEED", "1"))


def test_damaged_messages() -> None:
    told = run(MESSAGES, SEED)
    # Enough of each, so that nothing is compared with nothing.
    assert told["written"] > MESSAGES // 4
    assert told["DecodeError"] > MESSAGES // 4
    assert told["EncodeError"] > 0


def test_nothing_outside_is_touched() -> None:
    """Messages, arena and output lie before pages that can't be read."""
    folder = Path(__file__).parent
    paths = f"import sys; sys.path[:0] = {[str(folder.parent), str(folder)]!r}"
    code = f"{paths}; import wire_guard; wire_guard.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert " guarded arrays" in done.stdout
