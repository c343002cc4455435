"""Damages protobuf bytes and compares what jitted code reads of them with google.protobuf.

The whole campaign::

    python -m tests.wire_jit_campaign [--messages 1000000] [--seed N]
"""

from __future__ import annotations

import argparse
import contextlib
import random
import secrets
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numba
from google.protobuf.message import DecodeError as ProtobufError

import yaffjit as yj

TESTS = Path(__file__).resolve().parent
if str(TESTS) not in sys.path:  # as in pytest
    sys.path.insert(0, str(TESTS))

from wire_messages import Maker  # noqa: E402
from wire_readers import READERS, message_type, same  # noqa: E402

BATCH = 50  # messages of one type at a time
GONE = "gone"  # a member of a oneof that views don't have, so none of theirs is set


def of_row(read: Any) -> Any:
    """A jitted reader of a message, of records and a row."""

    @numba.njit
    def read_row(records, row):  # type: ignore[no-untyped-def]
        return read(records[row])

    return read_row


def wanted(read: Any, message: Any) -> Any:
    def carried(value: Any) -> Any:
        return tuple(map(carried, value)) if isinstance(value, tuple) else None if value == GONE else value

    return carried(read(message))


def run(messages: int, seed: int) -> Counter[str]:
    """Compares so many messages; what they came to."""
    chance = random.Random(seed)
    maker = Maker(chance)
    readers = {name: [(plain, of_row(read)) for plain, read in found] for name, found in READERS.items()}
    told: Counter[str] = Counter()
    while told["messages"] < messages:
        for name, found in readers.items():
            typ = message_type(name)
            made = [maker.message(typ.message_class.DESCRIPTOR) for _ in range(BATCH // 2)]
            made += [maker.damaged(chance.choice(made)) for _ in range(BATCH - len(made))]
            told["messages"] += len(made)
            records = yj.records(typ, made, representation="protobuf")
            for row, payload in enumerate(made):
                for plain, read_row in found:
                    told[compared(typ, payload, plain, partial(read_row, records, row))] += 1
    return told


def compared(typ: yj.MessageType, payload: bytes, plain: Any, read: Any) -> str:
    """What a message came to: equal, refused by both, or what is wrong wasn't met."""
    message: Any = None
    with contextlib.suppress(ProtobufError):
        message = typ.message_class.FromString(payload)
    try:
        found = read()
    except yj.DecodeError as error:
        assert message is None, f"{error}: {payload.hex()}"
        return "refused"
    if message is None:
        return "not met"
    assert same(found, wanted(plain, message)), (found, wanted(plain, message), payload.hex())
    return "equal"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    started = time.monotonic()
    told = run(args.messages, args.seed)
    print(f"{args.messages} messages in {time.monotonic() - started:.0f} s: {dict(told)}")


if __name__ == "__main__":
    main()
