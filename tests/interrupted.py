"""What `test_mapping_errors` interrupts: long work in a process of its own, which says how it ended."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from features.schema import SCHEMA

import yaffjit as yj

Event = SCHEMA["features.Event"]
ROWS = 300_000
CHEAP = 2_000


def slow(event: Any) -> Any:
    """Some milliseconds after the first rows, which are fast."""
    total = 0.0
    if event.item_id > 2000:
        for i in range(2_000_000):
            total += i % 7
    return total


def main() -> None:
    payloads = [Event.encode({"item_id": number}) for number in (1, 9999)]
    numbers = np.where(np.arange(ROWS) < CHEAP, 0, 1)
    events = yj.records(Event, payloads).take(numbers)
    events[:CHEAP].map(slow)
    events[:CHEAP].columns("item_id")
    path = Path(sys.argv[2]) / "events.arrow"
    yj.build_index(path, Event, [Event.message_class(item_id=9).SerializeToString()] * 50_000)
    again: dict[str, Callable[[], object]] = {
        "map": lambda: events.map(slow),
        "columns": lambda: events.columns("item_id", "weight"),
        "verify": events.verify,
        "transcode": lambda: Event.transcode(events, representation="protobuf"),
        "open_index": lambda: yj.open_index(path),
    }
    print("ready", flush=True)
    try:
        while True:
            again[sys.argv[1]]()
    except KeyboardInterrupt:
        end = time.monotonic()
        left = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
        print(end, left, flush=True)


if __name__ == "__main__":
    main()
