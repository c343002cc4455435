"""A part of the campaign of `trust_campaign`, whose whole is one command, and that it finds what it's for.

The twentieth part of it, 250,000 mutants, takes more than CI has: what is compiled for each of seven types
takes half of the time, so fewer mutants are taken here. To take them all::

    YAFFJIT_TRUST_MUTANTS=250000 pytest tests/test_trust_campaign.py
"""

from __future__ import annotations

import argparse
import os
import random
from typing import Any

import pytest
import trust_campaign
from mutants import seeds
from trust_mutator import OFFSET, Mutator, sites
from verify_buffers import banner, plan, text, u32

import yaffjit as yj
from yaffjit.codec.verify_plain import verify_plain

MUTANTS = int(os.environ.get("YAFFJIT_TRUST_MUTANTS", "30000"))
SEED = int(os.environ.get("YAFFJIT_SEED", "1"))


@pytest.mark.slow
def test_what_verify_accepts_can_be_read() -> None:
    args = argparse.Namespace(mutants=MUTANTS, seed=SEED, jobs=1, few=True, types="")
    told = trust_campaign.campaign(args)
    assert told["mutants"] == MUTANTS // 1000 * 1000
    assert told["accepted"] > MUTANTS // 10
    assert told["read"] > MUTANTS // 10


@pytest.mark.slow
def test_a_crash_is_told_with_its_mutant(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    """The process that does it kills itself while it reads a certain mutant."""
    monkeypatch.setenv("YAFFJIT_TRUST_CRASH", "3")
    args = argparse.Namespace(mutants=1000, seed=SEED, jobs=1, few=True, types="")
    with pytest.raises(SystemExit):
        trust_campaign.campaign(args)
    said = capfd.readouterr()
    assert f"seed {SEED}, mutant 3: python " in said.out
    assert "mutant 3 alone: exit -11" in said.out
    assert "exit -11 verifying" in said.err


def test_numbers_of_a_buffer_are_found() -> None:
    """Of a banner with two tags: its root offset, header and slots, the array's count and what it holds."""
    tags = u32(2) + u32(8) + u32(14) + text(b"a") + text(b"bc")
    buf = banner(tags, tags=0)
    verify_plain(plan("Banner"), buf)
    found, targets = sites(plan("Banner"), buf)
    end = len(buf) - len(tags)
    array = {site.pos: site for site in found if site.pos >= end}
    assert [array[end + at].what for at in (4, 8)] == [OFFSET, OFFSET]
    assert {end, end + 12, end + 18} <= set(targets)
    assert {0, 5} <= {site.pos for site in found}


def test_mutants_are_accepted_and_refused_by_many_rules() -> None:
    accepted = 0
    sentences = set()
    chance = random.Random(1)
    for seed in seeds()[::9]:
        if len(seed.buf) > 1000:
            continue
        mutator = Mutator(seed.plans[0], seed.buf)
        for _ in range(30):
            buf = mutator.make(chance)
            try:
                verify_plain(seed.plans[0], buf)
                accepted += 1
            except yj.VerifyError as error:
                sentences.add("".join(c for c in error.text if not c.isdigit())[:14])
    assert accepted > 200
    assert len(sentences) > 15, sentences
