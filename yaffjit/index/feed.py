"""Messages of any origin, one after the other, as the bytes that an index stores."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any

from yaffjit.build.unknown import UnknownFields
from yaffjit.codec.encode import encode, own_message
from yaffjit.errors import DecodeError, EncodeError
from yaffjit.plan import MessagePlan
from yaffjit.progress import Bar

logger = logging.getLogger("yaffjit")

PROGRESS_ROWS = 256


class Feed:
    """Messages to be encoded, as many at a time as are asked for.

    Attributes:
        rows: how many were encoded.
        total: how many there are, None if nobody knows.
        unknown: what they had that isn't carried.

    Raises:
        TypeError: what is given isn't an iterable of messages.
    """

    def __init__(self, mp: MessagePlan, messages: Iterable[Any], layout: str) -> None:
        if not isinstance(messages, Iterable) or isinstance(
            messages, (str, bytes, bytearray, memoryview, dict)
        ):
            raise TypeError(f"messages must be an iterable of messages, not one {type(messages).__name__}")
        self.rows = 0
        self.total = len(messages) if isinstance(messages, Sized) else None
        self.unknown = UnknownFields(mp.plan.schema.message_class(mp.full_name))
        self._mp = mp
        self._layout = layout
        self._messages = iter(messages)

    def more(self) -> bool:
        """Whether there is a further message."""
        for message in self._messages:
            self._messages = itertools.chain((message,), self._messages)
            return True
        return False

    def take(self, count: int | None, bar: Bar) -> Iterator[bytes]:
        """The next messages, encoded; all if ``count`` is None.

        Raises:
            EncodeError, DecodeError: a message can't be written or read; names the row.
        """
        mp, layout = self._mp, self._layout
        own = _reader(mp, self.unknown)
        for item in itertools.islice(self._messages, count):
            try:
                payload = encode(mp, own(item), layout)
            except EncodeError as error:
                raise EncodeError(f"row {self.rows}: {error}") from error
            except DecodeError as error:
                raise DecodeError(f"row {self.rows}: {error}") from error
            yield payload
            self.rows += 1
            if self.rows % PROGRESS_ROWS == 0:
                bar.update(PROGRESS_ROWS)

    def say_unknown(self, path: str) -> None:
        """Log what wasn't carried, if anything."""
        unknown = self.unknown
        if not unknown.total:
            return
        fields = ", ".join(f"{name} ({count:,})" for name, count in unknown.sorted())
        doubt = f"every message has unknown fields: is {self._mp.full_name} the right type? "
        logger.warning(
            "%s: %s%s unknown fields or extensions in %s of %s messages aren't carried: %s",
            *(path, doubt if unknown.rows == self.rows else ""),
            *(f"{unknown.total:,}", f"{unknown.rows:,}", f"{self.rows:,}", fields),
        )


def _reader(mp: MessagePlan, unknown: UnknownFields) -> Callable[[Any], Any]:
    """Turns what people have into what `encode` takes, and counts what is lost."""
    from google.protobuf.message import DecodeError as ProtobufError
    from google.protobuf.message import Message

    from yaffjit.view import View

    message_class = mp.plan.schema.message_class(mp.full_name)

    def read(item: Any) -> Any:
        if isinstance(item, (bytes, bytearray, memoryview)):
            try:
                item = message_class.FromString(bytes(item))
            except ProtobufError as error:
                raise DecodeError(f"not the protobuf bytes of {mp.full_name}: {error}") from error
        elif isinstance(item, dict):
            return item
        elif isinstance(item, View):
            item = View.to_message(item)
        if isinstance(item, Message):
            if type(item) is not message_class:
                item = own_message(mp, message_class, item)
            unknown.count(item)
        return item

    return read
