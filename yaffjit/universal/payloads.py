"""A file of universal documents as protobuf messages, as what builds an index takes them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from yaffjit.build.payloads import Batch, Payloads
from yaffjit.errors import DecodeError
from yaffjit.universal.bridge import from_object
from yaffjit.universal.codec import load_each


class DocumentPayloads(Payloads):
    """The messages of a file of documents, each by protobuf's JSON mapping.

    Args:
        path: of the file, which has documents one after the other.
        message_class: of the messages.
        pool: of the types of ``Any``.
        ignore_unknown: pass over keys that aren't fields.
        options: of `yaffjit.universal.load_each`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        message_class: Callable[[], Any],
        pool: Any,
        ignore_unknown: bool = False,
        **options: Any,
    ) -> None:
        self.name = os.fsdecode(path)
        self._message_class = message_class
        self._pool = pool
        self._ignore_unknown = ignore_unknown
        self._options = options

    def _batches(self, nbytes: int, whole: bool) -> Iterator[Batch]:
        held: list[bytes] = []
        total = first = 0
        error: DecodeError | None = None
        with open(self.name, "rb") as file:
            documents = load_each(file, **self._options)
            while error is None:
                message = b""
                try:
                    value = next(documents)
                    made = self._message_class()
                    from_object(self._pool, made, value, self._ignore_unknown)
                    message = type(made).SerializePartialToString(made)
                except StopIteration:
                    break
                except DecodeError as found:
                    error = DecodeError(f"{self._where(first + len(held))}: {found}")
                    break
                if held and total + len(message) > nbytes:
                    yield self._batch(held, first)
                    first += len(held)
                    held, total = [], 0
                held.append(message)
                total += len(message)
        if held:
            yield self._batch(held, first)
        if error is not None:
            raise error

    def _where(self, number: int, position: int = 0) -> str:
        return f"{self.name}, document {number}"

    def _batch(self, held: list[bytes], first: int) -> Batch:
        offsets = np.zeros(len(held) + 1, np.int64)
        np.cumsum(list(map(len, held)), out=offsets[1:])
        positions = np.arange(first, first + len(held), dtype=np.int64)
        return Batch(b"".join(held), offsets, positions, first, self._where)
