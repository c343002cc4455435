"""Damaged protobuf bytes against google.protobuf, in acceptance and result.

The whole campaign is `python -m tests.wire_campaign`; this is a twentieth of it.
"""

from __future__ import annotations

import os

from wire_campaign import run

MESSAGES = int(os.environ.get("YAFFJIT_WIRE_MESSAGES", "50000"))
SEED = int(os.environ.get("YAFFJIT_SEED", "1"))


def test_damaged_messages() -> None:
    told = run(MESSAGES, SEED)
    # Enough of each, so that nothing is compared with nothing.
    assert told["written"] > MESSAGES // 4
    assert told["DecodeError"] > MESSAGES // 4
    assert told["EncodeError"] > 0
