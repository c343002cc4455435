"""Feature functions give equal results on protobuf messages, on views, and on views in jitted code.

Over real data, and over random messages in both layouts; where protobuf's message makes a function raise,
the others raise an exception of the same class. And every CPython gives the same results: their digests are
in tests/golden/features.json, which `YAFFJIT_WRITE_GOLDEN=1 pytest -n 0 tests/test_features.py` writes.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import os
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

import numba
import pytest
from features import (
    ads,
    gtfs,
    items,
    osm,
    otlp,
    pprof,
    ranking,
    records,
    sentencepiece,
    text,
    tf,
    trees,
    users,
)
from features.fixed import fixed_messages
from features.messages import messages
from features.schema import SCHEMA
from hypothesis import given, settings
from hypothesis import strategies as st
from mapping_results import check_map
from vectors import TESTS

import yaffjit as yj
from yaffjit import demo

RANDOM = (ranking, items, text, users, trees)
# Where the records of each corpus are, and where their schema.
CORPORA = {
    osm: ("osm-ways.delim", "osm_way.proto"),
    pprof: ("pprof-samples.delim", "pprof_sample.proto"),
    tf: ("tf-examples.delim", "tf_example.proto"),
    sentencepiece: ("sentencepiece-pieces.delim", "sentencepiece_piece.proto"),
    otlp: ("otlp-spans.delim", "opentelemetry.proto.trace.v1.trace_pb2"),
    gtfs: ("gtfs-stop-updates-nyct.delim", "google.transit.gtfs_realtime_pb2"),
}
ROWS = 500  # of each corpus, evenly spread
BANNERS = 500
EXAMPLES = 20
FIXED = 40  # messages
GOLDEN = TESTS / "golden" / "features.json"

Feature = Callable[[Any], Any]


def features(*modules: Any) -> list[Any]:
    """The functions of modules, as pytest's parameters."""
    return [
        pytest.param(module, function, id=f"{module.__name__.rpartition('.')[2]}.{name}")
        for module in modules
        for name, function in vars(module).items()
        if inspect.isfunction(function) and function.__module__ == module.__name__
    ]


def plain(value: Any) -> Any:
    """A result in Python's own types: jitted code returns typed dicts, and int where Python has a bool."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, Mapping):
        return {plain(key): plain(held) for key, held in value.items()}
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    return value


def outcome(function: Feature, argument: Any) -> Any:
    """What a call gives: its result, or the class of its exception."""
    try:
        return plain(function(argument))
    except (ArithmeticError, LookupError, ValueError, TypeError) as error:
        return next(cls for cls in type(error).__mro__ if cls.__module__ == "builtins")


def check(function: Feature, jitted: Feature, message: Any, view: Any) -> Any:
    """What all three give."""
    expected = outcome(function, message)
    assert outcome(function, view) == expected
    found = outcome(jitted, view)
    assert found == expected
    return found


def check_golden(function: Feature, results: list[Any]) -> None:
    """Whether results are those of every other CPython, to the last bit."""
    if "hash" in function.__code__.co_names:
        return  # of text: each process has its own
    name = f"{function.__module__}.{function.__qualname__}"
    digest = hashlib.sha256("\n".join(map(repr, results)).encode()).hexdigest()[:16]
    known = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    if os.environ.get("YAFFJIT_WRITE_GOLDEN"):
        GOLDEN.write_text(json.dumps({**known, name: digest}, indent=1, sort_keys=True) + "\n")
    else:
        assert digest == known.get(name), results


def mapped(function: Feature) -> bool:
    """Whether `map` is tried too: it compiles as long again, so of one function in three, always the same."""
    always = os.environ.get("YAFFJIT_HYPOTHESIS") == "long"
    return always or zlib.crc32(f"{function.__module__}.{function.__name__}".encode()) % 3 == 1


@pytest.mark.slow
@pytest.mark.parametrize(("module", "function"), features(*RANDOM))
def test_random_messages(module: Any, function: Feature) -> None:
    message_type = SCHEMA[module.MESSAGE]
    jitted = numba.njit((message_type.numba_type,))(function)

    @settings(max_examples=EXAMPLES)
    @given(messages(message_type.message_class))
    def equal(message: Any) -> None:
        for layout in ("flat", "sparse"):
            buf = message_type.encode(message, layout)
            copy = message_type.message_class()
            copy.CopyFrom(message)  # a map's look-up inserts the key
            check(function, jitted, copy, message_type.view(buf))

    equal()
    results = []
    for message in fixed_messages(message_type.message_class, FIXED):
        view = message_type.view(message_type.encode(message, "flat"))
        results.append(check(function, jitted, message, view))
    check_golden(function, results)
    assert len(jitted.signatures) == 1


@pytest.mark.parametrize(("module", "function"), features(records))
def test_random_records(module: Any, function: Feature) -> None:
    message_type = SCHEMA[module.MESSAGE]
    jitted = numba.njit((message_type.scattered_records_type,))(function)

    @settings(max_examples=EXAMPLES)
    @given(st.lists(messages(message_type.message_class, depth=1), max_size=6))
    def equal(rows: list[Any]) -> None:
        payloads = [message_type.encode(row, ("flat", "sparse")[i % 2]) for i, row in enumerate(rows)]
        check(function, jitted, rows, yj.records(message_type, payloads))

    equal()
    assert len(jitted.signatures) == 1


@cache
def corpus(folder: Any, name: str, source: str, full_name: str) -> tuple[yj.MessageType, list[bytes], Any]:
    """A corpus: the protobuf bytes of some rows, and records of the same."""
    schema = yj.load_schema(folder / source if source.endswith(".proto") else import_module(source))
    message_type = schema[full_name]
    payloads = list(yj.read_delimited(folder / name))
    payloads = payloads[:: max(1, len(payloads) // ROWS)]
    layouts = ("flat", "sparse")
    encoded = [
        message_type.encode(message_type.message_class.FromString(payload), layouts[row % 2])
        for row, payload in enumerate(payloads)
    ]
    return message_type, payloads, yj.records(message_type, encoded)


@pytest.mark.slow
@pytest.mark.parametrize(("module", "function"), features(*CORPORA))
def test_corpora(module: Any, function: Feature, corpora: Any) -> None:
    message_type, payloads, rows = corpus(corpora, *CORPORA[module], module.MESSAGE)
    jitted = numba.njit(function)
    results = []
    for payload, view in zip(payloads, rows, strict=True):
        message = message_type.message_class.FromString(payload)
        results.append(check(function, jitted, message, view))
    check_golden(function, results)
    if mapped(function):
        check_map(function, jitted, rows)
    assert len(jitted.signatures) == 1


@cache
def banners() -> tuple[list[Any], Any]:
    banner = yj.load_schema(demo.SCHEMA_FILE)["ads.Banner"]
    made = list(demo.banners(banner.message_class, BANNERS))
    return made, yj.records(banner, [banner.encode(message) for message in made])


@pytest.mark.parametrize(("module", "function"), features(ads))
def test_banners(module: Any, function: Feature) -> None:
    jitted = numba.njit(function)
    check_golden(function, [check(function, jitted, *both) for both in zip(*banners(), strict=True)])
    if mapped(function):
        check_map(function, jitted, banners()[1])
    assert len(jitted.signatures) == 1
