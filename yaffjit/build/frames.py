"""How records follow each other in a file: one step from a record to the next, for each framing.

These are the specification; `kernels.frames` does the same steps for whole blocks of well-formed records.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod

from yaffjit.build.payloads import MAX_NBYTES

VARINT_NBYTES = 10
Data = memoryview | bytes

_TFRECORD_HEADER = struct.Struct("<QI")
_UINT32 = struct.Struct("<I")


class Short(Exception):
    """A record goes on behind the bytes that are there.

    Args:
        needs: bytes that it has in all, 0 if its header isn't there whole.
        header: bytes of its header.
        claim: what it says of itself, for errors.
    """

    def __init__(self, needs: int = 0, header: int = 0, claim: str = "") -> None:
        self.needs = needs
        self.header = header
        self.claim = claim


class Fault(Exception):
    """A record can't be.

    Args:
        text: what is wrong, to go on after what it is and where.
        what: what it is, "" for the next record.
    """

    def __init__(self, text: str, what: str = "") -> None:
        super().__init__(text)
        self.what = what


class Framing(ABC):
    """How records follow each other, from the first one on.

    Attributes:
        title: as in "not ...", for errors.
        call: how such a file is read.
        unit: what a record is called in errors; its number follows.
        kernel: number of the framing in `kernels.frames`, None if that hasn't got it.
        tells_itself: whether bytes of another framing are never taken for this one.
    """

    title: str
    call: str
    unit = "record {}"
    kernel: int | None = None
    tells_itself = False

    @abstractmethod
    def step(self, data: Data, at: int, end: int) -> tuple[int, int, int]:
        """The record at an index: where its message begins, how many bytes that has, where the next one is.

        A negative number of bytes: there is no message in it. Only then the next one may be behind the end.

        Raises:
            Short: ``data[at:end]`` isn't the whole record.
            Fault: it can't be one.
        """

    def fresh(self) -> Framing:
        """For another reading of the file."""
        return self

    def block_at(self, base: int) -> None:  # noqa: B027 (most don't care)
        """From now on, index 0 is that position in the file."""

    def window(self, end: int) -> tuple[int, int]:
        """For the kernel: the tag of a record, and the index where the last one must have ended."""
        return 0, end

    def ends_at(self, at: int) -> None:  # noqa: B027 (most may end anywhere)
        """Raises Fault if the file can't end at an index."""


def varint(data: Data, at: int, end: int, what: str = "length") -> tuple[int, int]:
    """The varint at an index, which may have any value of 70 bits, and the index behind it."""
    value = 0
    for count in range(VARINT_NBYTES):
        if at + count >= end:
            raise Short
        byte = data[at + count]
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return value, at + count + 1
    raise Fault(f"has a {what} of more than {VARINT_NBYTES} bytes")


def bounded(at: int, body: int, nbytes: int, end: int, behind: int = 0) -> tuple[int, int, int]:
    """What a step gives for a message of so many bytes, with ``behind`` more of its record after it."""
    claim = f"claims {nbytes} bytes"
    if nbytes > MAX_NBYTES:
        raise Fault(f"{claim}, but protobuf's limit is {MAX_NBYTES}")
    if nbytes + behind > end - body:
        raise Short(body - at + nbytes + behind, body - at, claim)
    return body, nbytes, body + nbytes + behind


class VarintFraming(Framing):
    """A varint length, then that many bytes."""

    title = "varint-delimited"
    call = "read_delimited(path)"
    kernel = 0

    def step(self, data: Data, at: int, end: int) -> tuple[int, int, int]:
        nbytes, body = varint(data, at, end)
        return bounded(at, body, nbytes, end)


class PrefixFraming(Framing):
    """A length of four bytes, then that many bytes."""

    def __init__(self, order: str) -> None:
        self.title = f"4-byte {order}-endian prefixes"
        self.call = f'read_length_prefixed(path, order="{order}")'
        self.kernel = {"little": 1, "big": 2}[order]
        self._big = order == "big"

    def step(self, data: Data, at: int, end: int) -> tuple[int, int, int]:
        body = at + 4
        if body > end:
            raise Short
        return bounded(at, body, int.from_bytes(data[at:body], "big" if self._big else "little"), end)


class TFRecordFraming(Framing):
    """A length of eight bytes, its masked CRC-32C, that many bytes, and theirs."""

    title = "TFRecord"
    call = "read_tfrecord(path)"
    tells_itself = True

    def __init__(self) -> None:
        from google_crc32c import value

        self._crc = value

    def step(self, data: Data, at: int, end: int) -> tuple[int, int, int]:
        body = at + 12
        if body > end:
            raise Short
        nbytes, stored = _TFRECORD_HEADER.unpack_from(data, at)
        self._check("length", data[at : at + 8], stored)
        found = bounded(at, body, nbytes, end, 4)
        self._check("data", data[body : body + nbytes], *_UINT32.unpack_from(data, body + nbytes))
        return found

    def _check(self, what: str, data: Data, stored: int) -> None:
        crc = self._crc(bytes(data))
        masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
        if masked != stored:
            raise Fault(f"has the checksum 0x{stored:08x} for its {what}, which has 0x{masked:08x}")


def byte_count(count: int) -> str:
    return f"{count} byte{'s' if count != 1 else ''}"


def framings() -> tuple[Framing, ...]:
    """All that files are tried with."""
    return TFRecordFraming(), PrefixFraming("little"), PrefixFraming("big"), VarintFraming()
