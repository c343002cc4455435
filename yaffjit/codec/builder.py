"""A protobuf message that is built field by field and written as bytes, in plain Python.

google.protobuf's own message holds the fields, so all that it refuses is refused in its words, and the bytes
are those of its deterministic serialization. Jitted code has the same builder (`yaffjit.jit.build`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from yaffjit.errors import BufferTooSmallError, EncodeError

if TYPE_CHECKING:
    from yaffjit.schema.model import SchemaDef

__all__ = ["Builder", "written"]


class Builder:
    """Fields are set and read as those of a protobuf message; ``finish()`` writes them.

    Args:
        schema: what has the message.
        full_name: its type.
        buffer: a writable contiguous buffer of bytes that ``finish()`` writes into, from its beginning; None
            for an array of its own each time.
    """

    __slots__ = ("_buffer_", "_message_")
    _buffer_: NDArray[np.uint8] | None
    _message_: Any

    def __init__(self, schema: SchemaDef, full_name: str, buffer: Any = None) -> None:
        object.__setattr__(self, "_message_", schema.message_class(full_name)())
        object.__setattr__(self, "_buffer_", None if buffer is None else _array(full_name, buffer))

    def finish(self) -> NDArray[np.uint8]:
        """Write the message: fields by ascending number, maps by ascending key.

        Required fields of proto2 may be missing.

        Returns:
            uint8[n]: the beginning of the buffer, or a new array. What was built stays as it is.

        Raises:
            BufferTooSmallError: with the bytes that are needed; the buffer is as it was.
            EncodeError: protobuf can't write the message, because it's nested too deep or too long.
        """
        data = written(self._message_)
        buffer = self._buffer_
        if buffer is None:
            return np.frombuffer(bytearray(data), np.uint8)
        if len(data) > len(buffer):
            raise BufferTooSmallError(self._message_.DESCRIPTOR.full_name, len(data), len(buffer))
        buffer[: len(data)] = np.frombuffer(data, np.uint8)
        return buffer[: len(data)]

    def clear(self) -> None:
        """Unset all fields, to build another message. Nested ones that were got before are of no use then."""
        type(self._message_).Clear(self._message_)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._message_, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._message_, name, value)

    def __dir__(self) -> list[str]:
        return ["clear", "finish", *dir(self._message_)]

    def __repr__(self) -> str:
        return f"<builder of {self._message_.DESCRIPTOR.full_name}>"

    def __reduce__(self) -> Any:
        raise TypeError("a builder can't be pickled or copied: take the bytes that finish() gives")


def written(message: Any) -> bytes:
    """The bytes of protobuf's deterministic serialization; by the class, as a field may have its name.

    Raises:
        EncodeError: protobuf can't write the message.
    """
    from google.protobuf.message import EncodeError as UnwritableError

    try:
        data: bytes = type(message).SerializePartialToString(message, deterministic=True)
    except UnwritableError as error:
        raise EncodeError(f"{message.DESCRIPTOR.full_name}: {error}") from None
    return data


def _array(full_name: str, buffer: Any) -> NDArray[np.uint8]:
    """The bytes of a buffer, as an array that writes into it."""
    memory = memoryview(buffer)
    if memory.readonly or not memory.c_contiguous or memory.itemsize != 1:
        raise ValueError(f"a builder of {full_name} takes a buffer of bytes that is writable and contiguous")
    return np.frombuffer(memory.cast("B"), np.uint8) if memory.nbytes else np.zeros(0, np.uint8)
