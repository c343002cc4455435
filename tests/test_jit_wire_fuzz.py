"""Damaged protobuf bytes in jitted code against google.protobuf.

The whole campaign is `python -m tests.wire_jit_campaign`; this is a twentieth of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

MESSAGES = int(os.environ.get("YAFFJIT_WIRE_MESSAGES", "50000"))
SEED = int(os.environ.get("YAFFJIT_SEED", "1"))


def test_values_equal_protobufs_and_nothing_outside_is_read() -> None:
    """In one process of its own, in which readers are compiled once: one that reads outside crashes it."""
    folder = Path(__file__).parent
    code = (
        f"import sys; sys.path[:0] = {[str(folder.parent), str(folder)]!r}\n"
        "import json, wire_jit_campaign, wire_jit_guard\n"
        f"print(json.dumps(wire_jit_campaign.run({MESSAGES}, {SEED})))\n"
        "wire_jit_guard.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == 0, done.stderr[-2000:]
    equal, guarded = done.stdout.splitlines()
    told = json.loads(equal)
    # Enough of each, so that nothing is compared with nothing.
    assert told["equal"] > MESSAGES // 2
    assert told["refused"] > MESSAGES // 10
    assert guarded.endswith(" messages")
