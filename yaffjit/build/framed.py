"""Files of framed records, block by block: the messages of a block lie together where the block was."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from yaffjit.arrays import array_address
from yaffjit.build.frames import Fault, Framing, Short, VarintFraming, byte_count
from yaffjit.build.payloads import Batch, Payloads
from yaffjit.build.skim import (
    HEAD_NBYTES,
    big_endian_reading,
    is_protobuf,
    other_reading,
    reading_despite_fault,
)
from yaffjit.build.streams import Source, Stream
from yaffjit.errors import DecodeError
from yaffjit.forks import renew_in_forks

# How many messages are split without the kernel, in a process: it takes a second to compile, a tenth to load.
PLAIN_ROWS = 50_000
ROW_NBYTES = 8  # of a block, for each row that it may have
HEADER_NBYTES = 20  # at least as many as any record's

Split = Callable[..., int]


class _Loaded:
    """The kernel once it's loaded, and how many messages were split without it."""

    def __init__(self) -> None:
        self.split: Split | None = None
        self.left = PLAIN_ROWS
        self._lock = threading.Lock()
        renew_in_forks(self, "_lock", threading.Lock)

    def load(self) -> Split | None:
        """The kernel, or None while there is little work."""
        if self.split is None and self.left <= 0:
            with self._lock:
                if self.split is None:
                    from numba import config

                    if config.DISABLE_JIT:
                        self.left = PLAIN_ROWS
                    else:
                        from yaffjit.kernels.frames import split

                        self.split = split
        return self.split


_loaded = _Loaded()


class Framed(Payloads):
    """Messages of a file that says before each how long it is."""

    def __init__(self, source: Source, framing: Framing, check: bool = True) -> None:
        self.name = source.name
        self._source = source
        self._framing = framing
        self._check = check and not framing.tells_itself
        self.nbytes = source.nbytes()

    def _batches(self, nbytes: int, whole: bool) -> Iterator[Batch]:
        with self._source.opened() as stream:
            yield from _Reading(stream, self._framing.fresh(), nbytes, whole, self._check).batches()


class _Block:
    """Some bytes of a file, whose messages are moved to their beginning.

    Attributes:
        view: all of them, ``end`` of which have been read.
        base: position of the first one in the file.
        at: index of the next record.
        rows: messages so far; ``most_rows``: how many there may be.
    """

    def __init__(self, array: NDArray[np.uint8], end: int, base: int) -> None:
        self.view = array.data
        self.end = end
        self.base = base
        self.at = 0
        self.rows = 0
        self.most_rows = len(array) // ROW_NBYTES + 1
        self._array = array
        self._out = 0  # where the next message goes
        self._offsets = np.empty(self.most_rows + 1, np.int64)
        self._offsets[0] = 0
        self._positions = np.empty(self.most_rows, np.int64)

    def take(self, body: int, nbytes: int, after: int) -> None:
        """What `Framing.step` gave for the next record."""
        if nbytes >= 0:
            end = self._out + nbytes
            self.view[self._out : end] = self.view[body : body + nbytes]  # they may overlap
            self._positions[self.rows] = self.base + self.at
            self.rows += 1
            self._offsets[self.rows] = self._out = end
        self.at = after

    def split(self, split: Split, framing: int, tag: int, end: int, rows: int) -> None:
        """As many records as there are until one needs a step of its own."""
        result = np.empty(2, np.int64)
        self.rows = split(
            *(framing, tag, array_address(self._array), self.at, end, self._out, self.rows, rows),
            *(array_address(self._offsets), array_address(self._positions), self.base, array_address(result)),
        )
        self.at, self._out = map(int, result)

    def batch(self, first_number: int, where: Callable[[int, int], str]) -> Batch:
        data = self.view[: self._out].toreadonly()
        offsets, positions = self._offsets[: self.rows + 1], self._positions[: self.rows]
        return Batch(data, offsets, positions, first_number, where)


class _Reading:
    """One reading of a file."""

    def __init__(self, stream: Stream, framing: Framing, nbytes: int, whole: bool, check: bool) -> None:
        self._stream = stream
        self._framing = framing
        self._nbytes = nbytes
        self._whole = whole
        self._number = 0  # of the first record of the block
        self._needs = 0  # bytes that the next record has, 0 if that isn't known
        self._ended = False
        self._damage: DecodeError | None = None  # where packed data goes no further
        self._head = b""  # of the file, to see what it may be
        self._checked = not check  # or the first message was looked at

    def batches(self) -> Iterator[Batch]:
        pending: NDArray[np.uint8] = np.empty(0, np.uint8)
        while True:
            array, end = self._filled(pending)
            block = _Block(array, end, self._stream.position - end)
            error = self._split(block)
            if block.rows:
                yield block.batch(self._number, self._named)
                self._number += block.rows
            if error is None and block.at > end and self._damage is None:
                error = self._skipped(block)
            error = error or self._damage
            if error is None and self._ended and block.at >= end:
                return
            if error is not None:
                raise error
            pending = array[block.at : end]

    def _filled(self, pending: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], int]:
        """A new block that begins with what is left of the one before, and how many bytes are in it."""
        stream = self._stream
        want = max(self._nbytes, self._needs, len(pending) + HEADER_NBYTES)
        least = want if self._whole else max(len(pending) + 1, self._needs)
        if not self._checked and not stream.waits:
            least = max(least, min(want, HEAD_NBYTES))
        if stream.size is None:
            # A length is only a claim: the block grows with what comes, up to twice of that.
            room = min(want, max(self._nbytes, 2 * len(pending)))
        else:
            # One more, so that the end is seen.
            room = min(want, len(pending) + max(0, stream.size - stream.position) + 1)
        array = np.empty(room, np.uint8)
        end = len(pending)
        array[:end] = pending
        while end < least and not self._ended and self._damage is None:
            if end == len(array):
                grown = np.empty(min(want, 2 * end), np.uint8)
                grown[:end] = array
                array = grown
            end += self._read(array.data[end:])
        if len(self._head) < HEAD_NBYTES:
            self._head += array[len(pending) : end].tobytes()[: HEAD_NBYTES - len(self._head)]
        return array, end

    def _read(self, view: memoryview) -> int:
        """Fill the beginning of a buffer; how many bytes, 0 where the file ends or can't be unpacked."""
        try:
            count = self._stream.readinto(view)
        except DecodeError as error:
            self._damage = error  # which comes after the records before it
            return 0
        self._ended = not count
        return count

    def _split(self, block: _Block) -> DecodeError | None:
        """Take the records of a block; the error that comes next, if there is one."""
        framing = self._framing
        framing.block_at(block.base)
        split = None if framing.kernel is None else _loaded.load()
        rows = (
            block.most_rows if split or framing.kernel is None else max(1, min(block.most_rows, _loaded.left))
        )
        self._needs = 0
        try:
            if not self._checked:
                error = self._misread(block)
                if error is not None:
                    return error
            while block.at < block.end and block.rows < rows:
                if split is not None and framing.kernel is not None:
                    tag, end = framing.window(block.end)
                    block.split(split, framing.kernel, tag, end, rows)
                    if block.at == block.end or block.rows == rows:
                        break
                block.take(*framing.step(block.view, block.at, block.end))
            if self._ended and block.at == block.end:
                framing.ends_at(block.at)
        except Short as short:
            return self._short(short, block)
        except Fault as fault:
            return self._error(str(fault), block, fault.what)
        finally:
            if framing.kernel is not None and split is None:
                _loaded.left -= block.rows
        return None

    def _misread(self, block: _Block) -> DecodeError | None:
        """The error that the first message is, if it's none of protobuf's and another framing fits."""
        at, number = block.at, self._number
        try:
            body, nbytes, after = self._framing.step(block.view, at, block.end)
            while not nbytes:
                at, number = after, number + 1
                body, nbytes, after = self._framing.step(block.view, at, block.end)
        except (Short, Fault):
            return None  # which comes again
        self._checked = True
        if len(self._head) < HEAD_NBYTES and not self._complete():
            return None  # too little to tell by
        wrong = nbytes <= HEAD_NBYTES and not is_protobuf(block.view[body : body + nbytes])
        empty = number - self._number
        if wrong:
            other = other_reading(self._head, self._complete(), self._framing)
        elif empty >= 3 and isinstance(self._framing, VarintFraming):
            # Perhaps they only are empty because a length of 4 bytes begins with zeros.
            other = big_endian_reading(self._head, self._complete())
        else:
            return None
        if not other:
            return None
        what = "isn't a protobuf message" if wrong else f"follows {empty} empty ones"
        return self._refused(f"{self._where(number, block.base + at)} {what}", other)

    def _short(self, short: Short, block: _Block) -> DecodeError | None:
        """What to do about a record that goes on behind the block."""
        there = block.end - block.at
        size = self._stream.size
        left = there if size is None else there + max(0, size - self._stream.position)
        if self._ended or (size is not None and short.needs > left):
            if short.needs:
                return self._error(f"{short.claim}, but {left - short.header} are left", block)
            return self._error(f"is cut: the file ends after {byte_count(there)} of its length", block)
        self._needs = short.needs
        return None

    def _skipped(self, block: _Block) -> DecodeError | None:
        """Go to where the next record is, behind the block."""
        missing = block.at - block.end
        found = self._stream.skip(missing)
        if found == missing:
            return None
        text = f"ends {byte_count(missing - found)} before the end of a field that it has"
        return DecodeError(f"{self._stream.name}: the file {text}")

    def _error(self, text: str, block: _Block, what: str = "") -> DecodeError:
        number, position = self._number + block.rows, block.base + block.at
        sentence = f"{self._where(number, position, what)} {text}"
        if position >= HEAD_NBYTES:  # it was the right framing so far
            return self._refused(sentence, "")
        scratch = memoryview(bytearray(HEAD_NBYTES))
        while not self._ended and self._damage is None and len(self._head) < HEAD_NBYTES:
            count = self._read(scratch[len(self._head) :])
            self._head += scratch[len(self._head) :][:count]
        return self._refused(sentence, reading_despite_fault(self._head, self._complete(), self._framing))

    def _refused(self, sentence: str, other: str) -> DecodeError:
        name = f"{self._stream.name}: "
        if not other:
            return DecodeError(name + sentence)
        return DecodeError(f"{name}not {self._framing.title}: {sentence}; {other}")

    def _complete(self) -> bool:
        """Whether the head is the whole file, as far as is known."""
        return self._stream.position == len(self._head) and (
            self._ended or self._stream.size == self._stream.position
        )

    def _where(self, number: int, position: int, what: str = "") -> str:
        unpacked = " of the unpacked data" if self._stream.compression else ""
        return f"{what or self._framing.unit.format(number)} at byte {position}{unpacked}"

    def _named(self, number: int, position: int) -> str:
        return f"{self._stream.name}: {self._where(number, position)}"
