"""Length-delimited protobuf files: a varint length, then that many bytes, again and again."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any, cast

from yaffjit.errors import DecodeError

if TYPE_CHECKING:
    from google.protobuf.message import Message as ProtobufMessage

    from yaffjit.view import View

READ_BYTES = 1 << 20
MAX_MESSAGE = 2**31 - 1  # protobuf's own limit
VARINT_BYTES = 10


def read_delimited(source: str | os.PathLike[str] | IO[bytes]) -> Iterator[bytes]:
    """The messages of a length-delimited file, one ``bytes`` each, in order.

    Args:
        source: a path (gunzipped if it ends in ``.gz``), or a binary file that is read from where it stands
            and isn't closed.

    Memory is bounded by the largest message plus 1 MiB.

    Raises:
        OSError: the file can't be opened; at once, not at the first message.
        TypeError: the source is neither, or a file opened as text.
        DecodeError: the file ends inside a message or a length is impossible. It names the byte position,
            counted from where reading began, and the bytes wanted and found.
    """
    if isinstance(source, io.TextIOBase):
        raise TypeError("the file is opened as text: messages are bytes, so open it with mode 'rb'")
    if hasattr(source, "read"):
        name = str(getattr(source, "name", "delimited file"))
        return _messages(cast(IO[bytes], source), name, False)
    if not isinstance(source, (str, bytes, os.PathLike)):
        raise TypeError(f"messages are read from a path or a binary file, not from {type(source).__name__}")
    path = os.fsdecode(source)
    if path.endswith(".gz"):
        return _messages(cast(IO[bytes], gzip.open(path, "rb")), path, True)
    return _messages(open(path, "rb"), path, True)


def _messages(file: IO[bytes], name: str, close: bool) -> Iterator[bytes]:
    pending = b""  # bytes read and not yet handed out
    at = 0  # in pending
    start = 0  # position of pending[0] in the file
    try:
        while True:
            while len(pending) - at < VARINT_BYTES:
                piece = _read(file, name, READ_BYTES)
                if not piece:
                    break
                start, pending, at = start + at, pending[at:] + piece, 0
            if at == len(pending):
                return
            nbytes, body = _length(pending, at, start, name)
            missing = body + nbytes - len(pending)
            if missing <= 0:
                yield pending[body : body + nbytes]
                at = body + nbytes
                continue
            # Read piece by piece: the claimed length alone must not allocate anything.
            pieces = [pending[body:]]
            while missing > 0:
                piece = _read(file, name, min(missing, READ_BYTES))
                if not piece:
                    raise DecodeError(
                        f"{name}: the message at byte {start + at} has {nbytes} bytes, "
                        f"but the file ends after {nbytes - missing} of them"
                    )
                pieces.append(piece)
                missing -= len(piece)
            start, pending, at = start + body + nbytes, b"", 0
            yield b"".join(pieces)
    finally:
        if close:
            file.close()


def _length(pending: bytes, at: int, start: int, name: str) -> tuple[int, int]:
    """The varint at ``pending[at]`` and the index of the byte after it."""
    value = 0
    for count in range(VARINT_BYTES):
        if at + count >= len(pending):
            raise DecodeError(
                f"{name}: the file ends inside the length at byte {start + at}, after {count} of its bytes"
            )
        byte = pending[at + count]
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            if value > MAX_MESSAGE:
                raise DecodeError(
                    f"{name}: the message at byte {start + at} has {value} bytes, "
                    f"but protobuf's limit is {MAX_MESSAGE}: is this a length-delimited file?"
                )
            return value, at + count + 1
    raise DecodeError(
        f"{name}: the length at byte {start + at} is longer than {VARINT_BYTES} bytes: "
        "is this a length-delimited file?"
    )


def _read(file: IO[bytes], name: str, nbytes: int) -> bytes:
    try:
        piece = file.read(nbytes)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DecodeError(f"{name}: {error}") from error
    if not isinstance(piece, bytes):
        # None: it doesn't wait for its bytes. That must not pass for its end.
        raise TypeError(f"{name}: read() must give bytes, not {type(piece).__name__}")
    return piece


def write_delimited(path: str | os.PathLike[str], messages: Iterable[bytes | ProtobufMessage | View]) -> int:
    """Writes protobuf bytes, protobuf messages or views as a length-delimited file; returns how many.

    Raises:
        OSError: the file can't be written.
        TypeError: names the message that is neither.
    """
    count = 0
    with open(path, "wb") as file:
        for message in messages:
            payload = _payload(message, count)
            file.write(_varint(len(payload)))
            file.write(payload)
            count += 1
    return count


def _payload(message: Any, count: int) -> bytes:
    if isinstance(message, (bytes, bytearray, memoryview)):
        return bytes(message)
    from google.protobuf.message import Message

    from yaffjit.view import View

    payload: bytes
    # By the class: a field may have the name of the method.
    if isinstance(message, View):
        payload = View.SerializeToString(message)
    elif isinstance(message, Message):
        payload = type(message).SerializeToString(message)
    else:
        found = type(message).__name__
        raise TypeError(f"message {count}: it must be bytes, a protobuf message or a view, not {found}")
    return payload


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
