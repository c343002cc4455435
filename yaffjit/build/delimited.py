"""Length-delimited protobuf files: a varint length, then that many bytes, again and again."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from yaffjit.build.framed import Framed
from yaffjit.build.frames import VarintFraming
from yaffjit.build.payloads import Payloads
from yaffjit.build.streams import PathOrFile, Source

if TYPE_CHECKING:
    from google.protobuf.message import Message as ProtobufMessage

    from yaffjit.view import View


def read_delimited(
    source: PathOrFile, *, compression: str | None = "auto", check_framing: bool = True
) -> Payloads:
    """The messages of a length-delimited file, in order: each after its length, as a varint.

    Args:
        source: a path, or a binary file that is read from where it stands and isn't closed.
        compression: "gzip", "zstd", None, or "auto": what the first bytes say.
        check_framing: refuse a file whose first message isn't one of protobuf's if another framing fits it.

    Returns:
        `Payloads`: iterable as ``bytes``, one a message. Memory is bounded by the largest message plus 1 MiB.

    Raises:
        OSError: the file can't be opened; at once, not at the first message.
        TypeError: the source is neither, or a file opened as text.
        DecodeError: while it's read: the file ends inside a record, or isn't length-delimited. It names
            the record, from 0, and the byte position, counted from where reading began.
    """
    return Framed(Source(source, compression), VarintFraming(), check_framing)


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
        from yaffjit.view.required import check_required

        check_required(message)
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
