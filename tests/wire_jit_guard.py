"""Jitted code reads protobuf bytes between unmapped pages; run as a process of its own.

Who reads a byte outside of the message crashes.
"""

from __future__ import annotations

import ctypes
import random
from functools import partial
from typing import Any

import numba
import numpy as np
from guard import Guard
from wire_jit_campaign import compared, of_row
from wire_messages import Maker
from wire_readers import READERS, message_type

import yaffjit as yj

LONGEST = 2**14


def of_array(typ: yj.MessageType, read: Any) -> Any:
    """A jitted reader of a message, of an array: bytes that may change."""

    @numba.njit
    def read_array(data):  # type: ignore[no-untyped-def]
        return read(typ.view_protobuf(data))

    return read_array


def main(messages: int = 3000) -> None:
    chance = random.Random(5)
    maker = Maker(chance)
    guard = Guard(LONGEST)
    done = 0
    readers = [
        (message_type(name), plain, of_row(read), of_array(message_type(name), read))
        for name, found in READERS.items()
        for plain, read in found
    ]
    while done < messages:
        for typ, plain, read_row, read_array in readers:
            made = [maker.message(typ.message_class.DESCRIPTOR) for _ in range(10)]
            made += [maker.damaged(chance.choice(made)) for _ in range(10)]
            for payload in made:
                if not 0 < len(payload) <= LONGEST:
                    continue
                done += 1
                for address in (guard.at_begin(payload), guard.at_end(payload)):
                    data = np.frombuffer((ctypes.c_uint8 * len(payload)).from_address(address), np.uint8)
                    compared(typ, payload, plain, partial(read_array, data))
                    place = data, np.array([0, len(data)])
                    records = yj.records_unchecked(typ, place, representation="protobuf")
                    compared(typ, payload, plain, partial(read_row, records, 0))
    print(f"{done} messages")


if __name__ == "__main__":
    main()
