"""Transcodes protobuf bytes between unmapped pages, and into such memory; run as a process of its own.

Who reads or writes a byte outside of the message, of the arena or of the output crashes.
"""

from __future__ import annotations

import ctypes
import random
from types import SimpleNamespace
from typing import Any

import numpy as np
from guard import Guard
from wire_campaign import batches
from wire_checks import load_kernels, outcomes

from yaffjit.codec import serialize, stretches
from yaffjit.codec.encode import LAYOUTS
from yaffjit.codec.serialize import serialize_many
from yaffjit.codec.transcode import transcode_many
from yaffjit.codec.verify_protobuf import verify_protobuf_many
from yaffjit.errors import DecodeError

MESSAGES = 4000
LONGEST = 2**14
IN_TURN = 4  # arrays of one size


class GuardedMemory:
    """Stands in for ``np.empty``: arrays that end where a page can't be read, of each size some in turn."""

    def __init__(self) -> None:
        self.made: dict[int, list[Guard]] = {}
        self.calls = 0

    def empty(self, count: int, dtype: Any) -> np.ndarray:
        nbytes = count * np.dtype(dtype).itemsize
        guards = self.made.setdefault(nbytes, [])
        guards.append(guards.pop(0) if len(guards) == IN_TURN else Guard(nbytes))
        self.calls += 1
        return view_of(guards[-1], nbytes).view(dtype)


def view_of(guard: Guard, nbytes: int) -> np.ndarray:
    """The last bytes before the page that can't be read."""
    address = guard.begin + guard.nbytes - nbytes
    return np.frombuffer((ctypes.c_uint8 * nbytes).from_address(address), np.uint8)


def main(tier: str = "table", own: bool = False) -> None:
    """Goes through messages of all schemas or only our ``own``, by a tier of the transcoder."""
    load_kernels()
    assert serialize.work.load() is not None
    memory = GuardedMemory()
    stretches.np = SimpleNamespace(**{**vars(np), "empty": memory.empty})  # type: ignore[attr-defined]
    stretches._WORK_NBYTES = 1024
    chance = random.Random(4)
    guard = Guard(2 * LONGEST)  # both copies at once
    done = written = 0
    for message_type, payloads in batches(chance, own):
        for payload in payloads:
            if not 0 < len(payload) <= LONGEST:
                continue
            done += 1
            layout = chance.choice(LAYOUTS)
            offsets = np.array([0, len(payload)])
            found = []
            for address in (guard.at_begin(payload), guard.at_end(payload)):
                data = np.frombuffer((ctypes.c_uint8 * len(payload)).from_address(address), np.uint8)
                made = transcode_many(
                    *(message_type.plan, data, offsets, layout), threads=1, keep_errors=True, tier=tier
                )
                found += outcomes(made)
                try:
                    verify_protobuf_many(message_type.schema._plan, message_type.full_name, data, offsets)
                except DecodeError:
                    assert made.errors
            assert found[0] == found[1], payload.hex()
            if isinstance(found[0], bytes) and len(found[0]) <= LONGEST:
                written += 1
                back = []
                for address in (guard.at_begin(found[0]), guard.at_end(found[0])):
                    data = np.frombuffer((ctypes.c_uint8 * len(found[0])).from_address(address), np.uint8)
                    sizes = np.array([0, len(found[0])])
                    back.append(serialize_many(message_type.plan, data, sizes, threads=1).data.tobytes())
                assert back[0] == back[1], found[0].hex()
        if done >= MESSAGES:
            break
    print(f"{done} messages, {written} written, {memory.calls} guarded arrays")


if __name__ == "__main__":
    main()
