"""Features of a ranking request: what its candidates are like, beside each other and for the user."""

from __future__ import annotations

import math
from typing import Any

MESSAGE = "features.Request"

MAX_BID = 5.0
UNRANKED = 1000


def best_candidate(request: Any) -> Any:
    """Argmax of the score over what isn't blocked."""
    best_id = 0
    best_score = -math.inf
    for candidate in request.candidates:
        if not candidate.blocked and candidate.score > best_score:
            best_id = candidate.id
            best_score = candidate.score
    return best_id, best_score


def best_title(request: Any) -> Any:
    """The best candidate itself is kept, and read afterwards."""
    best = None
    for candidate in request.candidates:
        if best is None or candidate.bid > best.bid:
            best = candidate
    if best is None:
        return "nobody"
    return best.item.title


def mean_bid_by_score(request: Any) -> Any:
    total = 0.0
    weights = 0.0
    for candidate in request.candidates:
        total += candidate.bid * candidate.score
        weights += candidate.score
    return total / weights if weights != 0.0 else 0.0


def score_entropy(request: Any) -> Any:
    total = 0.0
    for candidate in request.candidates:
        if 0.0 < candidate.score < 1e6:
            total += candidate.score
    entropy = 0.0
    for candidate in request.candidates:
        if 0.0 < candidate.score < 1e6:
            share = candidate.score / total
            if share > 0.0:
                entropy -= share * math.log(share)
    return entropy


def discounted_gain(request: Any) -> Any:
    gain = 0.0
    for place, candidate in enumerate(request.candidates):
        gain += candidate.score / math.log2(place + 2)
    return gain


def first_two_dot(request: Any) -> Any:
    """Raises IndexError where there are fewer than two candidates."""
    dot = 0.0
    for a, b in zip(request.candidates[0].embedding, request.candidates[1].embedding):  # noqa: B905
        dot += a * b
    return dot


def embedding_norms(request: Any) -> Any:
    longest = 0.0
    for candidate in request.candidates:
        norm = 0.0
        for x in candidate.embedding:
            norm += x * x
        longest = max(longest, math.sqrt(norm))
    return longest


def top_gap(request: Any) -> Any:
    first = second = 0.0
    for candidate in request.candidates:
        if candidate.score > first:
            first, second = candidate.score, first
        elif candidate.score > second:
            second = candidate.score
    return first - second


def largest_source(request: Any) -> Any:
    counts: dict[str, int] = {}
    for candidate in request.candidates:
        counts[candidate.source] = counts.get(candidate.source, 0) + 1
    largest = 0
    for source in counts:
        largest = max(largest, counts[source])
    return len(counts), largest, counts.get("ads", 0)


def seen_before(request: Any) -> Any:
    seen = 0
    for candidate in request.candidates:
        if candidate.id in request.user.seen:
            seen += 1
    return seen


def highest_id(request: Any) -> Any:
    """A running maximum of ids, which are any 64 bits."""
    highest = 0
    for candidate in request.candidates:
        if candidate.id > highest:
            highest = candidate.id
    return highest


def mean_rank(request: Any) -> Any:
    """Raises ZeroDivisionError where there are no candidates."""
    total = 0
    for candidate in request.candidates:
        total += candidate.rank if candidate.HasField("rank") else UNRANKED
    return total / len(request.candidates)


def clipped_bids(request: Any) -> Any:
    return sum([min(max(candidate.bid, 0.0), MAX_BID) for candidate in request.candidates])


def last_three(request: Any) -> Any:
    total = 0.0
    for candidate in request.candidates[-3:]:
        total += candidate.score
    return total, len(request.candidates[:-3])


def last_open(request: Any) -> Any:
    for candidate in reversed(request.candidates):
        if not candidate.blocked:
            return candidate.id
    return 0


def weighted_by_source(request: Any) -> Any:
    """A missing source has the default weight: a factor of 0, no bias."""
    total = 0.0
    for candidate in request.candidates:
        weight = request.weights[candidate.source]
        total += candidate.score * weight.factor
        if weight.HasField("bias"):
            total += weight.bias
    return total


def known_sources(request: Any) -> Any:
    known = 0
    for candidate in request.candidates:
        known += candidate.source in request.weights
    return known, len(request.weights)


def query_in_titles(request: Any) -> Any:
    if not request.query:
        return 0
    matches = 0
    for candidate in request.candidates:
        if request.query in candidate.item.title:
            matches += 1
    return matches


def hour_of_day(request: Any) -> Any:
    return request.at.seconds // 3600 % 24, request.at.seconds // 86400 % 7


def grid_span(request: Any) -> Any:
    return max(request.grid, default=0.0) - min(request.grid, default=0.0)


def grid_mean(request: Any) -> Any:
    if not request.grid:
        return 0.0
    return sum(request.grid) / len(request.grid)


def grid_steps(request: Any) -> Any:
    rising = 0
    for a, b in zip(request.grid, request.grid[1:]):  # noqa: B905
        rising += a < b
    return rising, request.grid == sorted(request.grid)


def same_embeddings(request: Any) -> Any:
    same = 0
    for i in range(1, len(request.candidates)):
        same += request.candidates[i].embedding == request.candidates[i - 1].embedding
    return same
