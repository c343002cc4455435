"""Features of TensorFlow's examples: taxi rides, each a map from names to lists of values."""

from __future__ import annotations

import math
from typing import Any

MESSAGE = "tf.Example"

NAMES = ("company", "dropoff_census_tract", "fare", "trip_seconds", "pickup_census_tract")


def fare_per_mile(example: Any) -> Any:
    fare = example.features.feature["fare"].float_list.value
    miles = example.features.feature["trip_miles"].float_list.value
    if len(fare) == 0 or len(miles) == 0 or miles[0] == 0.0:
        return 0.0
    return fare[0] / miles[0]


def missing(example: Any) -> Any:
    count = 0
    for name in NAMES:
        if name not in example.features.feature or not example.features.feature[name].WhichOneof("kind"):
            count += 1
    return count


def kinds(example: Any) -> Any:
    floats = integers = texts = 0
    for name in example.features.feature:
        kind = example.features.feature[name].WhichOneof("kind")
        if kind == "float_list":
            floats += 1
        elif kind == "int64_list":
            integers += 1
        elif kind == "bytes_list":
            texts += 1
    return floats, integers, texts


def payment(example: Any) -> Any:
    """Raises IndexError where it's missing."""
    payment = example.features.feature["payment_type"].bytes_list.value[0]
    if payment == b"Cash":
        return 0
    return 1 if payment.startswith(b"Credit") else len(payment)


def distance(example: Any) -> Any:
    feature = example.features.feature
    start = feature["pickup_latitude"].float_list.value
    end = feature["dropoff_latitude"].float_list.value
    if not start or not end:
        return -1.0
    return math.fabs(start[0] - end[0])


def hour_bucket(example: Any) -> Any:
    hours = example.features.feature["trip_start_hour"].int64_list.value
    return max(hours, default=-1) // 6, 12 in hours


def longest_name(example: Any) -> Any:
    longest = 0
    values = 0
    for name, feature in example.features.feature.items():
        longest = max(longest, len(name))
        values += len(feature.float_list.value) + len(feature.int64_list.value)
    return longest, values
