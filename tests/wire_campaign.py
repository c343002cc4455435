"""Damages protobuf bytes and compares what yaffjit makes of them with google.protobuf and `encode`.

The whole campaign::

    python -m tests.wire_campaign [--messages 1000000] [--seed N] [--tier emitted]
"""

from __future__ import annotations

import argparse
import random
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import yaffjit as yj

TESTS = Path(__file__).resolve().parent
if str(TESTS) not in sys.path:  # as in pytest
    sys.path.insert(0, str(TESTS))

from vectors import load_vectors  # noqa: E402
from wire_checks import check_acceptance, check_transcoding  # noqa: E402
from wire_messages import Maker  # noqa: E402

from yaffjit.codec.encode import LAYOUTS  # noqa: E402

BATCH = 50  # messages of one type at a time
SCHEMAS = ("wire.proto", "wire3.proto", "codec_editions.proto")
OWN_OFTEN = 10  # how often a type of ours is taken for each type of the golden schemas


def message_types(own: bool = False) -> list[tuple[yj.MessageType, list[bytes]]]:
    """Types of the golden schemas, unless only our ``own``, and of ours, and messages to begin with."""
    folder = TESTS / "schemas"
    golden = yj.load_schema(sorted((folder / "golden").glob("*.proto")))
    seeds: dict[str, list[bytes]] = {}
    for record in load_vectors():
        if "slice" not in record and len(record["proto"]) < 4096:
            seeds.setdefault(record["message"], []).append(record["proto"])
    found = []
    for schema in (*([] if own else [golden]), *(yj.load_schema(folder / name) for name in SCHEMAS)):
        often = 1 if schema is golden else OWN_OFTEN
        for name, message_type in schema.messages.items():
            if name not in schema.unsupported:
                found += [(message_type, seeds.get(name, []))] * often
    return found


def batches(chance: random.Random, own: bool = False) -> Iterator[tuple[yj.MessageType, list[bytes]]]:
    """Messages of one type after the other, without end."""
    maker = Maker(chance)
    types = message_types(own)
    while True:
        for message_type, seeds in chance.sample(types, len(types)):
            made = [maker.message(message_type.message_class.DESCRIPTOR) for _ in range(BATCH // 4)]
            made += [maker.damaged(chance.choice(seeds or made)) for _ in range(BATCH // 4)]
            made += [maker.damaged(chance.choice(made)) for _ in range(BATCH - len(made))]
            yield message_type, made


def run(messages: int, seed: int, tier: str = "table", own: bool = False) -> Counter[str]:
    """Compares so many messages by a tier of the transcoder; what they came to."""
    chance = random.Random(seed)
    told: Counter[str] = Counter()
    done = 0
    for message_type, payloads in batches(chance, own):
        told += check_transcoding(message_type, payloads, (chance.choice(LAYOUTS),), tier)
        told["accepted"] += check_acceptance(message_type, payloads)
        done += len(payloads)
        if done >= messages:
            return told
    raise AssertionError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    parser.add_argument("--tier", choices=("table", "emitted"), default="table")
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    started = time.monotonic()
    told = run(args.messages, args.seed, args.tier)
    print(f"{args.messages} messages in {time.monotonic() - started:.0f} s: {dict(told)}")


if __name__ == "__main__":
    main()
