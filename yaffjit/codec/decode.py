"""YaFF bytes into protobuf messages.

A buffer is turned into protobuf wire bytes and parsed by protobuf at once. So protobuf's own parser decides
what an unknown number of a closed enum is, which of two members of a oneof stays, and what text is valid.
"""

from __future__ import annotations

from typing import Any

from yaffjit.codec.locate import Buffer, read_u32
from yaffjit.codec.measure import protobuf_nbytes
from yaffjit.codec.verify import verify
from yaffjit.codec.wire import TooLong, message_reader
from yaffjit.errors import DecodeError
from yaffjit.plan.model import MessagePlan

# What protobuf parses.
MAX_NBYTES = 2**31 - 1
# Longer messages are measured before they are built: parts of a buffer may be shared, so that a small buffer
# is a huge message.
UNMEASURED_NBYTES = 4 * 2**20


def decode(mp: MessagePlan, buf: Any) -> Any:
    """The protobuf message of a YaFF buffer (bytes or whatever exports them), of the schema's own class.

    Raises VerifyError where the buffer isn't well-formed, DecodeError where protobuf refuses what it holds:
    text that isn't UTF-8, or more than 2 GiB - 1.
    """
    data = buf if type(buf) is bytes else memoryview(buf).tobytes()
    verify(mp, data)
    return decode_at(mp, data, read_u32(data, 0)[0])


def decode_at(mp: MessagePlan, data: Buffer, at: int) -> Any:
    """The protobuf message at byte ``at`` of a buffer that is trusted."""
    message = decode_within(mp, data, at, UNMEASURED_NBYTES)
    if message is None:
        nbytes = protobuf_nbytes(mp, data, at)
        if nbytes > MAX_NBYTES:
            raise DecodeError(f"{mp.full_name}: {nbytes} bytes as a protobuf message (at most {MAX_NBYTES})")
        message = decode_within(mp, data, at, MAX_NBYTES)
    return message


def decode_within(mp: MessagePlan, data: Buffer, at: int, most: int) -> Any:
    """As `decode_at`; None, before much more memory is used, if the message takes over ``most`` bytes."""
    from google.protobuf.message import DecodeError as ProtobufError

    reader = message_reader(mp)
    try:
        return reader.message_class.FromString(reader.wire(data, at, most))
    except TooLong:
        return None
    except ProtobufError as error:
        raise DecodeError(f"{mp.full_name}: {error}") from None
