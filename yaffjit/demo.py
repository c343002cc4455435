"""`yaffjit demo`: the whole path on made-up ad banners, and what it costs beside plain protobuf.

Three ways to score every banner run on the same data, and must agree to the last bit.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
import numpy as np

import yaffjit as yj
from yaffjit.errors import YaffjitError
from yaffjit.progress import progress_bar
from yaffjit.render import text_table

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from numpy.typing import NDArray

SCHEMA_FILE = Path(__file__).with_name("demo_ads.proto")
SEED = 72
BLOCK_ROWS = 8192  # drawn at once; each block has a seed of its own, so fewer rows are a prefix of more
REPEATS = 3

ACTIVE = 1

_NOUNS = (
    "bicycle",
    "garden chair",
    "espresso machine",
    "winter coat",
    "violin",
    "tent",
    "desk lamp",
    "notebook",
)
_OFFERS = ("Free delivery on every", "Only this week: a new", "Down 20 percent:", "Try before you buy:")
_SHOPS = ("north-outlet", "greenfield", "atelier-blue", "old-harbour")
_CITIES = ("Lisbon", "Oslo", "Kraków", "Nairobi", "Lima", "São Paulo", "Kyoto", "Leeds")
_TAGS = ("sale", "new", "outdoor", "home", "music", "kids", "limited", "eco")
_LANGUAGES = ("en", "pt", "pl", "ja")


def score(banner: Any) -> float:
    """Expected revenue of a banner: one plain function for messages, views and jitted code."""
    if banner.state != ACTIVE or not banner.HasField("stats"):
        return 0.0
    reach = 1.0 if banner.geo.lat > 0.0 else 0.5
    return banner.price * banner.stats.ctr * reach


jitted_score = numba.njit(score)


@numba.njit
def jitted_scores(banners: Any, scores: NDArray[np.float64]) -> None:
    """`score` of each banner into ``scores``, a float64 array with one element a row."""
    for row in range(len(banners)):
        scores[row] = jitted_score(banners[row])


def banners(message_class: Any, count: int, seed: int = SEED) -> Iterator[Message]:
    """``count`` banners of the demo's schema as protobuf messages; the same ones for the same seed."""
    for block, start in enumerate(range(0, count, BLOCK_ROWS)):
        draw = np.random.default_rng((seed, block))
        ids = (draw.integers(1 << 40, 1 << 63, BLOCK_ROWS)).tolist()
        prices = np.round(draw.gamma(2.0, 0.4, BLOCK_ROWS), 4).tolist()
        impressions = draw.integers(1000, 1 << 28, BLOCK_ROWS).tolist()
        rates = draw.beta(2.0, 60.0, BLOCK_ROWS).tolist()
        places = draw.uniform(-90.0, 90.0, (BLOCK_ROWS, 2)).tolist()
        weights = draw.random((BLOCK_ROWS, 8), dtype=np.float32).tolist()
        picks = draw.integers(0, 1 << 16, (BLOCK_ROWS, 4)).tolist()
        for row in range(min(BLOCK_ROWS, count - start)):
            pick, tags, flags, member = picks[row]
            noun, shop = _NOUNS[pick % 8], _SHOPS[pick // 8 % 4]
            fields: dict[str, Any] = {
                "id": ids[row],
                "campaign_id": ids[row] % 5003,
                "price": prices[row],
                "state": (ACTIVE, ACTIVE, ACTIVE, 2, 3)[pick % 5],
                "title": f"{_OFFERS[pick // 32 % 4]} {noun}, {pick % 900 + 99} in stock",
                "url": f"https://{shop}.example/{noun.replace(' ', '-')}/{ids[row]:x}",
                "tags": [_TAGS[(tags >> shift) % 8] for shift in range(0, 3 * (1 + tags % 3), 3)],
                "weights": weights[row][: 4 + pick % 5],
            }
            if flags % 16:
                clicks = int(impressions[row] * rates[row])
                fields["stats"] = {
                    "impressions": impressions[row],
                    "clicks": clicks,
                    "ctr": clicks / impressions[row],
                }
            if flags % 8:
                lat, lon = places[row]
                fields["geo"] = {"lat": lat, "lon": 2.0 * lon, "city": _CITIES[flags % 7]}
            if flags & 16:
                fields["daily_limit"] = flags
            if flags & 32:
                fields["language"] = _LANGUAGES[flags % 4]
            if member % 4 == 1:
                fields["phone"] = f"+351 21 {member:07d}"
            elif member % 4 == 2:
                fields["email"] = f"ads@{shop}.example"
            elif member % 4 == 3:
                fields["account_id"] = member
            yield message_class(**fields)


def run(rows: int = 200_000, keep: str | None = None) -> None:
    """Build, index, open and score banners, printing each step; the files stay in the folder ``keep``."""
    if keep is not None:
        folder = Path(keep)
        folder.mkdir(parents=True, exist_ok=True)
        _run(rows, folder)
        print(f"\nThe files are in {folder}; try: yaffjit show {folder / 'banners.arrow'} 0")
        return
    with tempfile.TemporaryDirectory(prefix="yaffjit-demo-") as temporary:
        _run(rows, Path(temporary))


def _run(rows: int, folder: Path) -> None:
    schema_path, messages_path, index_path = (
        folder / n for n in ("ads.proto", "banners.pb", "banners.arrow")
    )
    schema_path.write_bytes(SCHEMA_FILE.read_bytes())
    print(f"{rows:,} ad banners, made up from a fixed seed\n")

    Banner = yj.load_schema(schema_path)["ads.Banner"]
    _, seconds = _timed(lambda: _write_banners(messages_path, Banner.message_class, rows))
    _step('Banner = yj.load_schema("ads.proto")["ads.Banner"]', _size(messages_path), seconds)
    messages = yj.read_delimited(messages_path)
    _, seconds = _timed(lambda: yj.build_index(index_path, Banner, messages))
    _step(
        'yj.build_index("banners.arrow", Banner, yj.read_delimited("banners.pb"))', _size(index_path), seconds
    )
    index, seconds = _timed(lambda: yj.open_index(index_path))
    _step('index = yj.open_index("banners.arrow")', "memory-mapped, all bytes verified", seconds)
    first = index[0]
    print(f"  index[0].title          {first.title!r}")
    print(f"  index[0].stats.ctr      {first.stats.ctr!r}")
    print(f"  score(index[0])         {score(first)!r}\n")
    _compare(rows, Banner.message_class, list(yj.read_delimited(messages_path)), index)


def _write_banners(path: Path, message_class: Any, rows: int) -> None:
    with progress_bar("make banners", rows, "rows") as bar:

        def counted() -> Iterator[Message]:
            for message in banners(message_class, rows):
                yield message
                bar.update(1)

        yj.write_delimited(path, counted())


def _compare(rows: int, message_class: Any, payloads: list[bytes], index: Any) -> None:
    """Score all banners in three ways, check that they agree, and print the times."""
    out = np.empty(rows)
    _, compile_seconds = _timed(lambda: jitted_scores(index[:1], out))

    def by_protobuf() -> NDArray[np.float64]:
        return np.array([score(message_class.FromString(payload)) for payload in payloads])

    def by_columns() -> NDArray[np.float64]:
        cols = index.columns("state", "price", "stats.ctr", "geo.lat")
        reach = np.where(cols["geo.lat"] > 0.0, 1.0, 0.5)
        return np.where(cols["state"] == ACTIVE, cols["price"] * cols["stats.ctr"] * reach, 0.0)

    def by_jitted_loop() -> NDArray[np.float64]:
        jitted_scores(index, out)
        return out

    ways: list[tuple[str, Callable[[], NDArray[np.float64]]]] = [
        ("protobuf: parse, score()", by_protobuf),
        ("index.columns(...), numpy", by_columns),
        ("jitted loop over score()", by_jitted_loop),
    ]
    expected = by_protobuf()
    lines = []
    base = 0.0
    for name, way in ways:
        if not np.array_equal(way(), expected):
            raise YaffjitError(f"demo: {name!r} disagrees with protobuf")
        seconds = min(_timed(way)[1] for _ in range(REPEATS))
        base = base or seconds
        lines.append(
            (name, f"{seconds * 1e3:,.2f} ms", f"{seconds / rows * 1e9:,.0f} ns", f"{base / seconds:,.0f}x")
        )
    print(
        f"score() of {rows:,} banners; all three agree. "
        f"Best of {REPEATS}; compiling took {compile_seconds:.2f} s.\n"
    )
    print(text_table(("", "time", "a banner", "speed"), lines, right=("time", "a banner", "speed")))


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def _size(path: Path) -> str:
    return f"{path.name}, {path.stat().st_size / 1e6:,.1f} MB"


def _step(code: str, what: str, seconds: float) -> None:
    print(f">>> {code}\n  {what}, {seconds:.2f} s\n")
