"""How files of messages are framed, written plainly, and how readers are asked: what their tests share."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

import yaffjit as yj
from yaffjit.build.payloads import Payloads
from yaffjit.build.streams import PathOrFile
from yaffjit.errors import DecodeError


def crc32c(data: bytes) -> int:
    """CRC-32C bit by bit (RFC 3720, B.4)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def tfrecord(message: bytes) -> bytes:
    length = struct.pack("<Q", len(message))
    return length + struct.pack("<I", masked(length)) + message + struct.pack("<I", masked(message))


class Case(NamedTuple):
    title: str
    call: str
    framed: Callable[[bytes], bytes]
    read: Callable[[PathOrFile], Payloads]


CASES = (
    Case("varint-delimited", "read_delimited(path)", lambda m: varint(len(m)) + m, yj.read_delimited),
    Case(
        "4-byte little-endian prefixes",
        'read_length_prefixed(path, order="little")',
        lambda m: struct.pack("<I", len(m)) + m,
        yj.read_length_prefixed,
    ),
    Case(
        "4-byte big-endian prefixes",
        'read_length_prefixed(path, order="big")',
        lambda m: struct.pack(">I", len(m)) + m,
        lambda source: yj.read_length_prefixed(source, "big"),
    ),
    Case("TFRecord", "read_tfrecord(path)", tfrecord, yj.read_tfrecord),
)


def unframed(case: Case, data: bytes) -> tuple[list[bytes], int]:
    """The messages of a file, and the position of the record that isn't one; -1 if all are."""
    messages = []
    at = 0
    while at < len(data):
        if case.title == "varint-delimited":
            ends = [i for i in range(at, min(at + 10, len(data))) if data[i] < 0x80]
            if not ends:
                return messages, at
            body = ends[0] + 1
            nbytes = sum((data[i] & 0x7F) << 7 * (i - at) for i in range(at, body))
        else:
            width = 8 if case.title == "TFRecord" else 4
            body = at + width + (4 if case.title == "TFRecord" else 0)
            nbytes = int.from_bytes(data[at : at + width], "big" if "big" in case.title else "little")
        message = data[body : body + nbytes]
        after = body + nbytes + (4 if case.title == "TFRecord" else 0)
        wrong = case.title == "TFRecord" and data[at:after] != tfrecord(message)
        if body > len(data) or after > len(data) or wrong:
            return messages, at
        messages.append(message)
        at = after
    return messages, -1


def by_batches(payloads: Payloads, nbytes: int) -> Iterator[bytes]:
    """Messages out of batches, whose arrays are checked."""
    count = 0
    for batch in payloads.batches(nbytes):
        data, offsets, first_position = batch
        assert offsets.dtype == np.int64 and offsets[0] == 0 and offsets[-1] == len(data)
        assert memoryview(data).readonly
        assert (batch.first_number, len(batch.positions)) == (count, len(offsets) - 1)
        assert first_position == batch.positions[0]
        assert len(data) <= max(nbytes, 200) or len(offsets) == 2
        count += len(batch.positions)
        for begin, end in pairwise(offsets.tolist()):
            yield bytes(data[begin:end])


def until_error(messages: Iterator[bytes]) -> tuple[list[bytes], str]:
    """What comes before an error, and its sentence, or ""."""
    found = []
    try:
        for message in messages:
            found.append(message)
    except DecodeError as error:
        return found, str(error)
    return found, ""
