"""Protobuf bytes to YaFF bytes, beside google.protobuf that parses each into a new message."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

import yaffjit as yj
from benchmarks import banners
from benchmarks.timing import Bar, Race
from yaffjit.codec import transcode
from yaffjit.codec.tiers import Code

ROWS = 20_000
LAYOUTS = ("flat", "sparse", "auto")
BITS = (7, 20, 40, 63)  # of the tree's numbers
# What a tier may take, times `FromString`.
BANNER_LIMITS = {"emitted": 1.0, "table": 2.5}
TREE_LIMITS = {"emitted": 0.6}


def trees(rows: int) -> tuple[Any, list[bytes]]:
    """The hierarchy of nine numbers each: the message type, and messages of it."""
    message_type = yj.load_schema(Path(__file__).with_name("tree.proto"))["tree.Root"]
    chance = random.Random(1)
    payloads = []
    for _ in range(rows):
        root = message_type.message_class()
        for message in (root, root.mid, root.mid.leaf):
            for name in "abcdefghi":
                setattr(message, name, chance.getrandbits(chance.choice(BITS)))
        payloads.append(root.SerializeToString())
    return message_type, payloads


Job = tuple[Any, bytes, Any]  # plan, data, offsets


def transcoded(job: Job, layout: str, tier: str) -> Any:
    return transcode.transcode_many(*job, layout, threads=1, tier=tier).data


class Parsing:
    """Calls `FromString` for each message, and gives what parsing and `encode` come to, made once."""

    def __init__(self, job: Job, layout: str, message_class: Any, payloads: list[bytes]) -> None:
        self.job = job
        self.layout = layout
        self.message_class = message_class
        self.payloads = payloads

    @cached_property
    def encoded(self) -> Any:
        return transcoded(self.job, self.layout, "plain")

    def __call__(self) -> Any:
        for payload in self.payloads:
            self.message_class.FromString(payload)
        return self.encoded


def race(what: str, message_type: Any, payloads: list[bytes], layout: str, limits: dict[str, float]) -> Race:
    """Both compiled tiers beside protobuf's parser, which makes less: no YaFF."""
    job = message_type.plan, b"".join(payloads), np.cumsum([0, *map(len, payloads)])
    return Race(
        f"transcoding {what}, {layout}",
        len(payloads),
        {
            "emitted": partial(transcoded, job, layout, "emitted"),
            "table": partial(transcoded, job, layout, "table"),
            "FromString": Parsing(job, layout, message_type.message_class, payloads),
        },
        [Bar(tier, "FromString", at_most=limit) for tier, limit in limits.items()]
        if layout == "flat"
        else [],
    )


def compile_seconds(message_type: Any, layout: str) -> Race:
    """The code of a message type, made anew each time."""
    job = transcode._ToYaff(message_type.plan, b"", np.zeros(1, np.int64), layout, 0, False)
    return Race(
        f"making the code that transcodes {message_type.full_name}, {layout}",
        1,
        {"emitted": lambda: Code(job.wire, job.mode).make(wait=True)},
        unit="ms",
        checked=False,
        repetitions=5,
    )


def races(quick: bool) -> Iterator[Race]:
    rows = ROWS // 10 if quick else ROWS
    made = banners.made(rows)
    tree, payloads = trees(rows)
    for layout in LAYOUTS:
        yield race("banners", made.message_type, made.payloads, layout, BANNER_LIMITS)
        yield race("trees of nine numbers each", tree, payloads, layout, TREE_LIMITS)
    for message_type in (made.message_type, tree):
        for layout in ("flat", "auto"):
            yield compile_seconds(message_type, layout)
