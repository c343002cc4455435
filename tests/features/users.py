"""Features of a user: events in time, and what is known of them."""

from __future__ import annotations

import math
from typing import Any

from features.schema import Action

MESSAGE = "features.User"

NOW = 1_700_000_000
DAY = 86_400
SESSION_GAP = 1800


def since_last_event(user: Any) -> Any:
    """Seconds; a year where there was none."""
    if not user.events:
        return 365.0 * DAY
    last = user.events[-1].at
    return NOW - (last.seconds + last.nanos / 1e9)


def last_event_milliseconds(user: Any) -> Any:
    """Raises IndexError for a user without events."""
    return user.events[-1].at.ToMilliseconds(), user.events[-1].dwell.ToMilliseconds()


def account_age(user: Any) -> Any:
    if not user.HasField("registered"):
        return -1
    return (NOW - user.registered.ToSeconds()) // DAY


def registered_at(user: Any) -> Any:
    return user.registered.ToMicroseconds(), user.registered.ToNanoseconds() % 1000


def actions(user: Any) -> Any:
    counts: dict[int, int] = {}
    for event in user.events:
        counts[event.action] = counts.get(event.action, 0) + 1
    return counts


def funnel(user: Any) -> Any:
    views = clicks = buys = 0
    for event in user.events:
        if event.action == Action.ACTION_VIEW:
            views += 1
        elif event.action == Action.ACTION_CLICK:
            clicks += 1
        elif event.action == Action.ACTION_BUY:
            buys += 1
    return clicks / max(views, 1), buys / max(clicks, 1)


def refunds(user: Any) -> Any:
    return Action.ACTION_REFUND in user.recent_actions, user.recent_actions[:2] == [1, 2]


def mean_dwell(user: Any) -> Any:
    total = 0.0
    count = 0
    for event in user.events:
        if event.HasField("dwell"):
            total += event.dwell.seconds + event.dwell.nanos / 1e9
            count += 1
    return total / count if count else 0.0


def sessions(user: Any) -> Any:
    count = 0
    before = 0
    for event in user.events:
        if count == 0 or event.at.seconds - before > SESSION_GAP:
            count += 1
        before = event.at.seconds
    return count


def recent_events(user: Any) -> Any:
    return len([event for event in user.events if event.at.seconds > NOW - 30 * DAY])


def decayed_weight(user: Any) -> Any:
    """Weights halve each week; an event without one counts as 1."""
    total = 0.0
    for event in user.events:
        age = (NOW - event.at.seconds) / (7.0 * DAY)
        if 0.0 <= age < 500.0:
            weight = event.weight if event.HasField("weight") else 1.0
            total += weight * math.exp(-0.6931471805599453 * age)
    return total


def distinct_items(user: Any) -> Any:
    items = set()
    for event in user.events:
        items.add(event.item_id)
    return len(items), 2**63 + 5 in items


def clicks(user: Any) -> Any:
    by_category = user.clicks_by_category
    return by_category[3], by_category.get(-1, 7), by_category.get(0), 5 in by_category


def favourite_category(user: Any) -> Any:
    best = -1
    most = 0
    for category, count in user.clicks_by_category.items():
        if count > most or (count == most and category < best):
            best = category
            most = count
    return best, most


def click_share(user: Any) -> Any:
    total = sum(user.clicks_by_category.values())
    return user.clicks_by_category[3] / total if total else 0.0


def on_front_page(user: Any) -> Any:
    """A map of messages: a missing page reads as an event of no time."""
    front = user.last_by_page["/"]
    return front.at.seconds, front.context["from"], "/cart" in user.last_by_page


def referrers(user: Any) -> Any:
    searches = 0
    for event in user.events:
        if event.context.get("from", "direct") == "search":
            searches += 1
    return searches


def language_or_default(user: Any) -> Any:
    return user.language if user.HasField("language") else "en"


def consent(user: Any) -> Any:
    return user.HasField("consent"), user.consent.value, user.age.value >= 18


def name_key(user: Any) -> Any:
    return f"user:{user.id}", f"{user.name}!"


def id_features(user: Any) -> Any:
    return user.id % 97, user.id & 0xFF, user.id == 2**60 + 1, hash(user.id)


def seen_features(user: Any) -> Any:
    return sum([item % 1000 for item in user.seen]), max(user.seen, default=0), 2**53 + 1 in user.seen


def last_seen(user: Any) -> Any:
    if len(user.seen) == 0:
        return 0
    return user.seen[-1]


def opened_share(user: Any) -> Any:
    """Raises ZeroDivisionError where nothing was sent."""
    return sum(user.opened) / len(user.opened)


def longest_streak(user: Any) -> Any:
    longest = streak = 0
    for opened in user.opened:
        streak = streak + 1 if opened else 0
        longest = max(longest, streak)
    return longest


def answers(user: Any) -> Any:
    known = len(user.answers)  # before a look-up, which adds the key to a protobuf message
    return known, user.answers[True], user.answers.get(False, 9)


def busiest_pair(user: Any) -> Any:
    """Which event came most often after which."""
    counts: dict[tuple[int, int], int] = {}
    most = 0
    for a, b in zip(user.recent_actions, user.recent_actions[1:]):  # noqa: B905
        counts[(a, b)] = counts.get((a, b), 0) + 1
        most = max(most, counts[(a, b)])
    return most
