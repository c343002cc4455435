"""Feature functions give equal results on protobuf's own bytes: on their views, and on these in jitted code.

The same functions over the same data as in `test_features`, each compiled for the other representation. That
takes a second a function, so a part of them is left to `YAFFJIT_HYPOTHESIS=long`.
"""

from __future__ import annotations

import os
import zlib
from importlib import import_module
from typing import Any

import numba
import pytest
from features import ads, records
from features.fixed import fixed_messages
from features.schema import SCHEMA
from test_features import CORPORA, RANDOM, Feature, check, features

import yaffjit as yj
from yaffjit import demo

ROWS = 60  # of each corpus, evenly spread
BANNERS = 60
FIXED = 40  # messages
ONE_IN = 1 if os.environ.get("YAFFJIT_HYPOTHESIS") == "long" else 10


def some(*modules: Any) -> list[Any]:
    """`features`, but by chance that is always the same."""
    return [param for param in features(*modules) if zlib.crc32(param.id.encode()) % ONE_IN == 0]


def check_rows(function: Feature, jitted: Feature, message_type: Any, payloads: list[bytes]) -> None:
    rows = yj.records(message_type, payloads, representation="protobuf")
    for payload, view in zip(payloads, rows, strict=True):
        check(function, jitted, message_type.message_class.FromString(payload), view)


@pytest.mark.slow
@pytest.mark.parametrize(("module", "function"), some(*RANDOM))
def test_random_messages(module: Any, function: Feature) -> None:
    message_type = SCHEMA[module.MESSAGE]
    jitted = numba.njit(function)
    made = fixed_messages(message_type.message_class, FIXED)
    check_rows(function, jitted, message_type, [message.SerializeToString() for message in made])
    assert len(jitted.signatures) == 1


@pytest.mark.parametrize(("module", "function"), some(records))
def test_random_records(module: Any, function: Feature) -> None:
    message_type = SCHEMA[module.MESSAGE]
    jitted = numba.njit(function)
    made = list(fixed_messages(message_type.message_class, FIXED))
    for begin in range(0, FIXED, 5):
        rows = made[begin : begin + begin % 4]
        payloads = [row.SerializeToString() for row in rows]
        check(function, jitted, rows, yj.records(message_type, payloads, representation="protobuf"))


@pytest.mark.slow
@pytest.mark.parametrize(("module", "function"), some(*CORPORA))
def test_corpora(module: Any, function: Feature, corpora: Any) -> None:
    name, source = CORPORA[module]
    schema = yj.load_schema(corpora / source if source.endswith(".proto") else import_module(source))
    payloads = list(yj.read_delimited(corpora / name))
    payloads = payloads[:: max(1, len(payloads) // ROWS)]
    check_rows(function, numba.njit(function), schema[module.MESSAGE], payloads)


@pytest.mark.parametrize(("module", "function"), some(ads))
def test_banners(module: Any, function: Feature) -> None:
    banner = yj.load_schema(demo.SCHEMA_FILE)["ads.Banner"]
    made = demo.banners(banner.message_class, BANNERS)
    payloads = [message.SerializeToString() for message in made]
    check_rows(function, numba.njit(function), banner, payloads)
