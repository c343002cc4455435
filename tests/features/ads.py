"""Features of the banners of `yaffjit demo`."""

from __future__ import annotations

from typing import Any

MESSAGE = "ads.Banner"

ACTIVE = 1


def expected_revenue(banner: Any) -> Any:
    if banner.state != ACTIVE or not banner.HasField("stats"):
        return 0.0
    return banner.price * banner.stats.ctr * (1.0 if banner.geo.lat > 0.0 else 0.5)


def smoothed_ctr(banner: Any) -> Any:
    return (banner.stats.clicks + 1) / (banner.stats.impressions + 100)


def words_of_title(banner: Any) -> Any:
    total = 0
    for word in banner.title.lower().split(" "):
        total += hash(word) % 1024
    return total


def stock_in_title(banner: Any) -> Any:
    """The number before "in stock"."""
    end = banner.title.find(" in stock")
    stock = 0
    scale = 1
    while end > 0 and banner.title[end - 1].isdigit():
        end -= 1
        stock += (ord(banner.title[end]) - ord("0")) * scale
        scale *= 10
    return stock


def shop(banner: Any) -> Any:
    return banner.url.replace("https://", "").split("/")[0]


def weighted_weights(banner: Any) -> Any:
    total = 0.0
    for place, weight in enumerate(banner.weights):
        total += weight / (place + 1)
    return total, max(banner.weights, default=0.0), len(banner.weights)


def contact(banner: Any) -> Any:
    kind = banner.WhichOneof("contact")
    if kind is None:
        return 0
    if kind == "phone":
        return len(banner.phone)
    return banner.email.find("@") if kind == "email" else banner.account_id % 100


def limit(banner: Any) -> Any:
    return banner.daily_limit if banner.HasField("daily_limit") else -1, banner.language or "en"


def place(banner: Any) -> Any:
    return banner.geo.city, round(banner.geo.lat) // 10, banner.geo.city in ("Oslo", "São Paulo")


def tag_set(banner: Any) -> Any:
    tags = set()
    for tag in banner.tags:
        tags.add(tag)
    return len(tags), "sale" in banner.tags, banner.tags[0] < "kids"


def id_parts(banner: Any) -> Any:
    return banner.id % 1000, banner.id >> 40, banner.id == banner.campaign_id, banner.campaign_id % 7
