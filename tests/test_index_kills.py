"""Writers of indexes that are killed; `python -m tests.kill_campaign` is the whole campaign."""

from __future__ import annotations

from pathlib import Path

import kill_campaign
import pytest

pytestmark = pytest.mark.slow

SEED = 20_241
KILLS = 16


def test_kills_at_random_moments(tmp_path: Path) -> None:
    killed = kill_campaign.run(KILLS, SEED, tmp_path)
    assert sum(killed.values()) <= KILLS


@pytest.mark.parametrize("operation", kill_campaign.OPERATIONS)
def test_kills_at_steps(tmp_path: Path, operation: str) -> None:
    assert kill_campaign.steps_of(operation, tmp_path, first=len(operation) % 9, stride=9) >= 20
