"""Features of an item in a shop: its price, numbers and flags."""

from __future__ import annotations

import math
from typing import Any

from features.schema import Item

MESSAGE = "features.Item"

PROMOTED = 1
FRAGILE = 4
BOUNDS = (0.0, 1.0, 10.0, 100.0, 1000.0)
PARTNERS = (2**53 + 1, 2**60 + 1, 2**63 + 5)
HOME = 7


def price(item: Any) -> Any:
    """Dispatch on a oneof."""
    kind = item.WhichOneof("price")
    if kind == "fixed_price":
        return item.fixed_price
    if kind == "range":
        return (item.range.low + item.range.high) / 2
    return 0.0 if kind == "free" else -1.0


def price_kind(item: Any) -> Any:
    kind = item.WhichOneof("price")
    return kind if kind else "unknown"


def has_price(item: Any) -> Any:
    return item.HasField("price"), item.WhichOneof("price") is not None, item.HasField("range")


def log_price(item: Any) -> Any:
    return math.log1p(item.fixed_price) if 0.0 <= item.fixed_price < 1e9 else 0.0


def price_bucket(item: Any) -> Any:
    bucket = 0
    for bound in BOUNDS:
        if item.fixed_price >= bound:
            bucket += 1
    return bucket


def stock_or_default(item: Any) -> Any:
    return item.stock if item.HasField("stock") else 10


def rating_or_mean(item: Any) -> Any:
    return item.rating.value if item.HasField("rating") else 3.5


def brand_or_unknown(item: Any) -> Any:
    if not item.HasField("brand"):
        return "unknown"
    return item.brand.value


def condition_weight(item: Any) -> Any:
    if item.condition == Item.NEW:
        return 1.0
    if item.condition == Item.Condition.Value("USED"):
        return 0.5
    return 0.0 if item.condition == Item.Condition.BROKEN else 0.1


def flag_features(item: Any) -> Any:
    set_bits = 0
    flags = item.flags
    while flags:
        flags &= flags - 1
        set_bits += 1
    return set_bits, bool(item.flags & PROMOTED), item.flags & FRAGILE != 0, item.flags >> 3 & 7


def is_partner(item: Any) -> Any:
    return item.id in PARTNERS, item.id == 2**53 + 1, item.id > 2**60, item.id in {2**63 + 5, 2**63}


def id_buckets(item: Any) -> Any:
    return item.id % 1024, item.id // 2**32, item.id >> 60, item.id ^ 0xFFFF


def home_price(item: Any) -> Any:
    money = item.prices[HOME]
    return money.units + money.nanos / 1e9


def is_sold_at_home(item: Any) -> Any:
    return HOME in item.prices, 2**63 + 5 in item.prices, len(item.prices)


def currencies(item: Any) -> Any:
    euro = 0
    for region in item.prices:
        if item.prices[region].currency == "EUR":
            euro += 1
    return euro


def highest_price(item: Any) -> Any:
    highest = 0
    where = 0
    for region, money in item.prices.items():
        if money.units > highest or (money.units == highest and region > where):
            highest = money.units
            where = region
    return highest, where


def attribute_defaults(item: Any) -> Any:
    return item.attributes.get("ctr", 0.01), item.attributes.get("price"), item.attributes["weight"]


def largest_attribute(item: Any) -> Any:
    """Of equal values, the one whose name comes first: maps have no order of their own."""
    name = ""
    largest = -math.inf
    for key, value in item.attributes.items():
        if value > largest or (value == largest and key < name):
            name = key
            largest = value
    return name, largest


def attribute_range(item: Any) -> Any:
    if not item.attributes:
        return 0.0
    return max(item.attributes.values()) - min(item.attributes.values())


def price_now(item: Any) -> Any:
    """Prices are stored as differences."""
    now = 0
    lowest = 0
    for change in item.price_changes:
        now += change
        lowest = min(lowest, now)
    return now, lowest, now - lowest


def change_statistics(item: Any) -> Any:
    changes = item.price_changes
    if len(changes) < 2:
        return 0.0, 0.0
    mean = sum(changes) / len(changes)
    square = 0.0
    for change in changes:
        square += (change - mean) ** 2
    return mean, math.sqrt(square / (len(changes) - 1))


def biggest_change(item: Any) -> Any:
    return max(item.price_changes, default=0), min(item.price_changes, default=0), sum(item.price_changes)


def went_down_last(item: Any) -> Any:
    """Raises IndexError for an item without changes."""
    return item.price_changes[-1] < 0, 0 in item.price_changes
