"""Messages as readers give them: one by one as bytes, or many in one buffer with their offsets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

BATCH_NBYTES = 8 << 20
MAX_NBYTES = 2**31 - 1  # of a message, by protobuf
# Of what `__iter__` reads ahead.
READ_NBYTES = 1 << 20


class Batch(tuple[Any, NDArray[np.int64], int]):
    """Some messages that follow each other: ``data, offsets, first_position = batch``.

    Message i is ``data[offsets[i]:offsets[i + 1]]``; ``data`` is bytes or a read-only memoryview, that nobody
    writes to, and ``offsets`` int64[n + 1]. ``first_position`` is where the first message's record starts in
    the file (in the unpacked data of a compressed one, a row number in a column).

    Attributes:
        first_number: number of the first record in the file, from 0.
        positions: int64[n], as ``first_position``, of each.
    """

    first_number: int
    positions: NDArray[np.int64]
    _where: Callable[[int, int], str]

    def __new__(
        cls,
        data: Any,
        offsets: NDArray[np.int64],
        positions: NDArray[np.int64],
        first_number: int,
        where: Callable[[int, int], str],
    ) -> Batch:
        batch = super().__new__(cls, (data, offsets, int(positions[0])))
        batch.first_number = first_number
        batch.positions = positions
        batch._where = where
        return batch

    def where(self, i: int) -> str:
        """How errors name message i: its file, its number there and its position."""
        return self._where(self.first_number + i, int(self.positions[i]))


class Payloads(ABC):
    """Messages of a file: iterable as ``bytes``, one a message, any number of times if it has a path.

    What a file object gives is read once, from where it stands; it isn't closed.

    Attributes:
        name: the file, for errors.
        nbytes: bytes of the file, if positions of records count in them; None otherwise.
    """

    name: str
    nbytes: int | None = None

    def __iter__(self) -> Iterator[bytes]:
        for data, offsets, _ in self._batches(READ_NBYTES, whole=False):
            block = bytes(data)
            begin = 0
            for end in offsets[1:].tolist():
                yield block[begin:end]
                begin = end

    def batches(self, nbytes: int = BATCH_NBYTES) -> Iterator[Batch]:
        """The messages in buffers of about that many bytes, more if one message has more.

        Memory: a batch is as large as ``nbytes`` or its one message, and nothing else is held.

        Raises:
            DecodeError: the file isn't what the reader is for, or is damaged; names the record and the byte
                position. The messages before it have been handed out.
        """
        if nbytes < 1:
            raise ValueError(f"a batch has at least 1 byte, not {nbytes}")
        return self._batches(nbytes, whole=True)

    @abstractmethod
    def _batches(self, nbytes: int, whole: bool) -> Iterator[Batch]:
        """``whole``: whether full batches are waited for, where a file gives its bytes little by little."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.name}>"
