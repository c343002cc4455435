"""Readers of the other files that messages come in: TFRecord, lengths of four bytes, one message a file."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator

import numpy as np

from yaffjit.build.framed import Framed
from yaffjit.build.frames import PrefixFraming, TFRecordFraming
from yaffjit.build.payloads import MAX_NBYTES, READ_NBYTES, Batch, Payloads
from yaffjit.build.streams import PathOrFile, Source, Stream
from yaffjit.errors import DecodeError


def read_tfrecord(source: PathOrFile, *, compression: str | None = "auto") -> Payloads:
    """The records of a TFRecord file, whose checksums (masked CRC-32C) are checked.

    Args, Returns: as `read_delimited`.

    Raises:
        DecodeError: while it's read: a checksum is wrong, or the file ends inside a record; names the record,
            from 0, its byte position, and both numbers.
    """
    return Framed(Source(source, compression), TFRecordFraming())


def read_length_prefixed(
    source: PathOrFile,
    order: str = "little",
    *,
    compression: str | None = "auto",
    check_framing: bool = True,
) -> Payloads:
    """The messages of a file in which each follows its length, a number of four bytes.

    Args:
        order: the order of those bytes, "little" or "big".

    The rest is as in `read_delimited`.
    """
    if order not in ("little", "big"):
        raise ValueError(f'order must be "little" or "big", not {order!r}')
    return Framed(Source(source, compression), PrefixFraming(order), check_framing)


def read_files(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], *, compression: str | None = "auto"
) -> Payloads:
    """Files of one message each.

    Args:
        paths: a pattern, as "messages/**/*.pb", whose files are taken in the order of their names; or paths,
            taken as they come.
        compression: of each, as in `read_delimited`.

    Raises:
        FileNotFoundError: no file matches the pattern.
        DecodeError: while it's read: a file has more than 2^31 - 1 bytes, or can't be unpacked.
    """
    if isinstance(paths, (str, bytes, os.PathLike)):
        pattern = os.fsdecode(paths)
        found = sorted(path for path in glob.iglob(pattern, recursive=True) if os.path.isfile(path))
        if not found:
            raise FileNotFoundError(f"no file matches {pattern!r}")
        return _Files(pattern, found, compression)
    listed = [os.fsdecode(path) for path in paths]
    return _Files(listed[0] if len(listed) == 1 else f"{len(listed)} files", listed, compression)


class _Files(Payloads):
    """One message a file."""

    def __init__(self, name: str, paths: list[str], compression: str | None) -> None:
        self.name = name
        self._paths = paths
        self._compression = compression

    def _batches(self, nbytes: int, whole: bool) -> Iterator[Batch]:
        held: list[bytes] = []
        total = first = 0
        error: DecodeError | None = None
        for path in self._paths:
            message = b""
            try:
                with Source(path, self._compression).opened() as stream:
                    message = _content(stream)
            except DecodeError as found:
                error = found
            if held and (total + len(message) > nbytes or not whole or error is not None):
                yield self._batch(held, first)
                first += len(held)
                held, total = [], 0
            if error is not None:
                raise error
            held.append(message)
            total += len(message)
        if held:
            yield self._batch(held, first)

    def _batch(self, held: list[bytes], first: int) -> Batch:
        offsets = np.zeros(len(held) + 1, np.int64)
        np.cumsum(list(map(len, held)), out=offsets[1:])
        data = held[0] if len(held) == 1 else b"".join(held)
        return Batch(data, offsets, np.zeros(len(held), np.int64), first, lambda i, position: self._paths[i])


def _content(stream: Stream) -> bytes:
    pieces: list[bytes] = []
    piece = memoryview(bytearray(READ_NBYTES))
    while True:
        count = stream.readinto(piece)
        if not count:
            return b"".join(pieces)
        pieces.append(bytes(piece[:count]))
        if stream.position > MAX_NBYTES:
            raise DecodeError(
                f"{stream.name}: one message has more than {stream.position} bytes, "
                f"but protobuf's limit is {MAX_NBYTES}"
            )
