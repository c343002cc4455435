"""Features of an item's texts."""

from __future__ import annotations

from typing import Any

MESSAGE = "features.Item"

BUCKETS = 1024


def title_bucket(item: Any) -> Any:
    return hash(item.title) % BUCKETS


def title_polynomial(item: Any) -> Any:
    """The hash that others compute too, unlike Python's own."""
    h = 7
    for c in item.title:
        h = (h * 31 + ord(c)) % (1 << 32)
    return h % BUCKETS


def tag_buckets(item: Any) -> Any:
    total = 0
    for place, tag in enumerate(item.tags):
        total += hash(tag) % BUCKETS * (place + 1)
    return total


def digits(item: Any) -> Any:
    count = 0
    for c in item.title:
        if c.isdigit():
            count += 1
    return count, len(item.title)


def upper_share(item: Any) -> Any:
    upper = 0
    for c in item.title:
        upper += c.isupper()
    return upper / len(item.title) if item.title else 0.0


def domain(item: Any) -> Any:
    url = item.url
    start = url.find("://")
    if start >= 0:
        url = url[start + 3 :]
    end = url.find("/")
    return url[:end] if end >= 0 else url


def last_part(item: Any) -> Any:
    parts = item.url.split("/")
    return parts[-1]


def is_secure(item: Any) -> Any:
    return item.url.startswith("https://"), item.url.endswith(".html"), item.url == "", "?" in item.url


def campaign(item: Any) -> Any:
    at = item.url.find("utm_source=")
    if at < 0:
        return "none"
    value = item.url[at + len("utm_source=") :]
    end = value.find("&")
    return value[:end] if end >= 0 else value


def words(item: Any) -> Any:
    return len(item.title.split())


def clean_title(item: Any) -> Any:
    return item.title.strip().lower().replace("-", " ")


def path_depth(item: Any) -> Any:
    return item.url.count("/"), len(item.url.split("/"))


def trigrams(item: Any) -> Any:
    found = set()
    title = item.title
    for i in range(len(title) - 2):
        found.add(title[i : i + 3])
    return len(found)


def commonest_pair(item: Any) -> Any:
    """How often the commonest pair of characters occurs."""
    counts: dict[str, int] = {}
    most = 0
    for i in range(len(item.title) - 1):
        pair = item.title[i : i + 2]
        counts[pair] = counts.get(pair, 0) + 1
        most = max(most, counts[pair])
    return most


def letter_counts(item: Any) -> Any:
    counts: dict[str, int] = {}
    for c in item.title:
        counts[c] = counts.get(c, 0) + 1
    return counts


def longest_tag(item: Any) -> Any:
    longest = ""
    for tag in item.tags:
        if len(tag) > len(longest):
            longest = tag
    return longest


def first_tag(item: Any) -> Any:
    """By the alphabet."""
    first = "~"
    for tag in item.tags:
        if tag < first:
            first = tag
    return first


def tags_in_title(item: Any) -> Any:
    found = 0
    for tag in item.tags:
        if tag and tag in item.title:
            found += 1
    return found


def has_tags(item: Any) -> Any:
    return "sale" in item.tags, "new" in item.tags, len(item.tags) > 0 and item.tags[0] == item.title


def joined_tags(item: Any) -> Any:
    return ",".join(item.tags)


def tag_attributes(item: Any) -> Any:
    """Attributes are found by names that are put together."""
    total = 0.0
    for tag in item.tags:
        total = max(total, item.attributes.get(f"{tag}_ctr", 0.0))
    return total


def labels(item: Any) -> Any:
    return f"{item.title}/{item.stock}", "item:" + item.title, str(item.flags)


def order(item: Any) -> Any:
    return item.title == item.url, item.title < item.url, item.title >= item.url, item.title != "sale"


def title_key(item: Any) -> Any:
    title = item.title
    return title[:3], title[-1:], title[::2] if len(title) > 4 else title


def last_character(item: Any) -> Any:
    """Raises IndexError for an item without a title."""
    return ord(item.title[-1])


def image_prefix(item: Any) -> Any:
    image = item.image_hash
    if len(image) < 2:
        return 0
    return image[0] * 256 + image[1]


def image_checks(item: Any) -> Any:
    ones = 0
    for byte in item.image_hash:
        ones += byte & 1
    return ones, item.image_hash == b"\x00\xff", item.image_hash[:1] == b"\x00", not item.image_hash


def thumbnails(item: Any) -> Any:
    total = 0
    for thumbnail in item.thumbnails:
        total += len(thumbnail)
    return total, item.image_hash in item.thumbnails
