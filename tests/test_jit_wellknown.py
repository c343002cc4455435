"""Timestamps, durations and wrappers in jitted code: protobuf's helpers, their rounding and their checks."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import yaffjit
from yaffjit.errors import CompileTypeError

Event = yaffjit.load_schema(Path(__file__).parent / "schemas" / "constants.proto")["constants.Event"]
M = Event.message_class

FIRST = -62135596800  # of year 1
LAST = 253402300799  # of year 9999
TIMESTAMPS = [
    {},
    {"seconds": 1, "nanos": 999_999_999},
    {"seconds": 1_700_000_000, "nanos": 123_456_789},
    {"seconds": -1, "nanos": 1},
    {"seconds": -1, "nanos": 999_999_001},
    {"seconds": FIRST},
    {"seconds": LAST, "nanos": 999_999_999},
]
BAD_TIMESTAMPS = [
    {"seconds": FIRST - 1},
    {"seconds": LAST + 1},
    {"seconds": 2**63 - 1},
    {"seconds": -(2**63)},
    {"nanos": -1},
    {"nanos": 10**9},
    {"seconds": LAST + 1, "nanos": -1},
]
DURATIONS = [
    {},
    {"seconds": 3, "nanos": 1_999},
    {"seconds": -3, "nanos": -1_999},
    {"seconds": -3, "nanos": -999_999_999},
    {"seconds": 3, "nanos": -1},  # signs that protobuf doesn't check here
    {"nanos": 2**31 - 1},
    {"nanos": -(2**31)},
    {"seconds": 315_576_000_000, "nanos": 5},
]


def plain(result: Any) -> Any:
    """Python's value of one that jitted code gives: numpy's dates are compared as datetime's."""
    if isinstance(result, (np.datetime64, np.timedelta64)):
        assert np.datetime_data(result)[0] == "us"
        return result.item()
    return tuple(map(plain, result)) if isinstance(result, tuple) else result


def outcome(function: Callable[[Any], Any], argument: Any) -> Any:
    """What a function gives, or the class and text of what it raises."""
    try:
        return plain(function(argument))
    except ValueError as error:
        return ValueError, str(error)


def assert_equal(function: Callable[[Any], Any], contents: list[dict[str, Any]]) -> list[Any]:
    """The function gives or raises the same of protobuf's message, our view and in jitted code."""
    jitted = numba.njit(function)
    results = []
    for content in contents:
        expected = outcome(function, M(**content))
        for layout in ("flat", "sparse"):
            view = Event.view(Event.encode(content, layout))
            assert outcome(function, view) == expected
            assert outcome(jitted, view) == expected
        results.append(expected)
    return results


@pytest.mark.parametrize(
    "function",
    [
        lambda v: v.at.ToDatetime(),
        lambda v: (v.at.ToMicroseconds(), v.at.ToMilliseconds(), v.at.ToSeconds()),
    ],
)
def test_timestamps(function: Callable[[Any], Any]) -> None:
    assert_equal(function, [{}, *({"at": content} for content in TIMESTAMPS)])
    results = assert_equal(function, [{"at": content} for content in BAD_TIMESTAMPS])
    assert all(result[0] is ValueError for result in results)
    assert results[0][1] == (
        "Timestamp is not valid: Seconds -62135596801 must be in range [-62135596800, 253402300799]."
    )
    assert results[4][1] == "Timestamp is not valid: Nanos -1 must be in a range [0, 999999]."


def test_durations() -> None:
    def function(v: Any) -> Any:
        return (
            v.took.ToTimedelta(),
            v.took.ToMicroseconds(),
            v.took.ToMilliseconds(),
            v.took.ToSeconds(),
        )

    assert_equal(function, [{}, *({"took": content} for content in DURATIONS)])


@pytest.mark.parametrize("field", ["at", "took"])
def test_nanoseconds_in_64_bits(field: str) -> None:
    function: Callable[[Any], Any] = {
        "at": lambda v: v.at.ToNanoseconds(),
        "took": lambda v: v.took.ToNanoseconds(),
    }[field]
    limits = [
        {"seconds": 9223372036, "nanos": 854775807},
        {"seconds": -9223372037, "nanos": 145224192},
    ]
    assert assert_equal(function, [{field: content} for content in limits]) == [2**63 - 1, -(2**63)]
    jitted = numba.njit(function)
    for content in [
        {"seconds": 9223372036, "nanos": 854775808},
        {"seconds": -9223372037, "nanos": 145224191},
        {"seconds": LAST},
    ]:
        with pytest.raises(OverflowError) as caught:
            jitted(Event.view(Event.encode({field: content})))
        text = f"{content['seconds']} seconds are too many for the unit asked for, in 64 bits"
        assert str(caught.value) == text


def test_long_durations_overflow() -> None:
    jitted = numba.njit(lambda v: v.took.ToTimedelta())
    longest = 2**63 // 10**6
    for seconds in (longest, -longest):
        assert jitted(Event.view(Event.encode({"took": {"seconds": seconds}}))).astype(int) == seconds * 10**6
    for seconds in (longest + 1, -longest - 1, 2**63 - 1, -(2**63)):
        with pytest.raises(OverflowError):
            jitted(Event.view(Event.encode({"took": {"seconds": seconds}})))
        if abs(seconds) > longest + 1:  # a timedelta reaches further than a timedelta64
            with pytest.raises(OverflowError):
                M(took={"seconds": seconds}).took.ToTimedelta()


def test_sums_and_differences() -> None:
    def function(v: Any) -> Any:
        return (
            v.end - v.at,
            v.at + v.took,
            v.took + v.at,
            v.at - v.took,
            v.took + v.left.ToTimedelta(),
            v.left.ToTimedelta() - v.took,
            v.end.ToDatetime() - v.at,
            v.at - v.end.ToDatetime(),
            v.at.ToDatetime() < v.end.ToDatetime(),
            v.end.ToDatetime() - v.at.ToDatetime() > v.took.ToTimedelta(),
            v.end.ToDatetime() == v.at.ToDatetime(),
        )

    contents = [
        {},
        {"at": TIMESTAMPS[2], "end": TIMESTAMPS[1], "took": DURATIONS[1], "left": DURATIONS[2]},
        {"at": TIMESTAMPS[4], "end": TIMESTAMPS[2], "took": DURATIONS[3], "left": DURATIONS[1]},
    ]
    results = assert_equal(function, contents)
    assert results[1][0] == datetime.timedelta(microseconds=1_999_999 - 1_700_000_000_123_456)


def test_time_since_the_last_event() -> None:
    contents = [{"at": content} for content in TIMESTAMPS[:5]]
    records = yaffjit.records(Event, [Event.encode(content) for content in contents])

    def gaps(events: Any, now: Any) -> Any:
        last = events[0].at.ToDatetime()
        for v in events:
            last = max(last, v.at.ToDatetime())
        return last, now - last

    now = np.datetime64("2024-01-01T00:00:00", "us")
    last, gap = numba.njit(gaps)(records, now)
    assert (last.item(), gap.item()) == gaps([M(**content) for content in contents], now.item())


def test_wrappers() -> None:
    def function(v: Any) -> Any:
        return (
            v.count.value,
            v.HasField("count"),
            v.big.value,
            v.ratio.value,
            v.flag.value,
            v.HasField("flag"),
            v.name.value == "née",
        )

    assert_equal(
        function,
        [
            {},
            {"count": {"value": -(2**63)}, "big": {"value": 2**64 - 1}, "ratio": {"value": 0.1}},
            {"count": {}, "flag": {"value": True}, "name": {"value": "née"}},
        ],
    )


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (lambda v: v.at.ToDatetime(None), "ToDatetime() takes no time zone in jitted code"),
        (lambda v: v.took.ToSeconds(1), "ToSeconds() takes no argument"),
        (
            lambda v: v.at.ToJsonString(),
            "ToJsonString() of google.protobuf.Timestamp isn't available in jitted code: call it outside",
        ),
        (
            lambda v: v.mask.ToJsonString(),
            "ToJsonString() of google.protobuf.FieldMask isn't available in jitted code: call it outside",
        ),
        (
            lambda v: v.extra.keys(),
            "keys() of google.protobuf.Struct isn't available in jitted code: call it outside",
        ),
        (
            lambda v: v.extra["a"],
            "google.protobuf.Struct has no items in jitted code: read a field by its name",
        ),
        (lambda v: v.at - 3, "- isn't for messages: use fields of google.protobuf.Timestamp"),
        (lambda v: v.at + v.end, "+ isn't for messages: use fields of google.protobuf.Timestamp"),
        (
            lambda v: v.at < v.end,
            "messages aren't compared in jitted code: compare fields of google.protobuf.Timestamp",
        ),
    ],
)
def test_what_isnt_there_is_a_compile_error(function: Any, sentence: str) -> None:
    with pytest.raises(CompileTypeError) as caught:
        numba.njit(function)(Event.view(Event.encode({})))
    assert str(caught.value).splitlines()[0] == f"{sentence}."
