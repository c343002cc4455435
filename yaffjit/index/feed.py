"""Messages of any origin, one after the other, as the bytes that an index stores.

The caller's thread reads them, and has others encode protobuf bytes meanwhile, a unit at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Thread
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from yaffjit.build.unknown import UnknownFields
from yaffjit.codec import transcode
from yaffjit.errors import DecodeError, EncodeError, VerifyError
from yaffjit.index.encoders import Made, class_of, encoder
from yaffjit.index.ordered import Ordered
from yaffjit.index.sources import Offsets, Sizes, Source, Unit, Valid
from yaffjit.plan import MessagePlan
from yaffjit.pool import checked_threads
from yaffjit.progress import Bar

ON_ERROR = ("raise", "skip", "null")
SHOWN_ERRORS = 10

MEMORY = 512 << 20
# What the process has besides: Python, the libraries, and the batches of the writer.
OTHER_MEMORY = 352 << 20
UNIT_NBYTES = (4 << 20) - 1  # so that the transcoder does a unit in one piece
LEAST_UNIT_NBYTES = 256 << 10
PLAIN_UNIT_NBYTES = 1 << 19  # in Python, so that Ctrl-C needn't wait long
MADE = 2  # bytes that a unit may become, of each that it may have
UNITS_AHEAD = 3  # for each thread


@dataclass
class Piece:
    """Messages as they are stored.

    Attributes:
        data, offsets: message i is ``data[offsets[i]:offsets[i + 1]]``.
        valid: which rows aren't null; None if none is.
        position: in the input file, behind them; None if nobody knows.
    """

    data: NDArray[np.uint8]
    offsets: Offsets
    valid: Valid | None = None
    position: int | None = None

    @property
    def rows(self) -> int:
        return len(self.offsets) - 1

    def part(self, first: int, last: int) -> Piece:
        valid = None if self.valid is None else self.valid[first:last]
        return Piece(self.data, self.offsets[first : last + 1], valid, self.position)


class Feed:
    """Messages to be stored, as many at a time as are asked for; a context manager, which ends its threads.

    Args:
        source: where they come from.
        layout: of dynamic messages.
        threads: how many transcode, None for one a core.
        memory: bytes that the process may take, about.
        on_error: what becomes of messages that can't be stored: "raise", "skip" or "null".
        representation: of what is stored.

    Attributes:
        rows: messages that were handed out.
        read, read_nbytes: messages that were read, and bytes of those that came as bytes.
        nulls: rows that were handed out as null.
        skipped: numbers of the messages that were left out.
        bad: how many messages couldn't be stored, and errors of the first ones in ``errors``.
        uncarried: occurrences of fields that YaFF doesn't carry, by full name of the message and number.
        message, on_error, representation: as given; the full name of the message type.
    """

    def __init__(
        self,
        mp: MessagePlan,
        source: Source,
        layout: str,
        threads: int | None = None,
        memory: int = MEMORY,
        on_error: str = "raise",
        representation: str = "yaff",
    ) -> None:
        self.rows = self.read = self.read_nbytes = self.nulls = self.bad = 0
        self.skipped: list[int] = []
        self.errors: list[str] = []
        self.uncarried: Counter[tuple[str, int]] = Counter()
        self.uncounted = 0
        self.source = source
        self._mp = mp
        self.message = mp.full_name
        self.on_error = on_error
        self.representation = representation
        self._counted = UnknownFields(class_of(mp), _lost_names(mp))
        self._encoder = encoder(mp, representation, layout, self._counted)
        threads = checked_threads(threads)
        self._ahead = UNITS_AHEAD * threads if threads > 1 else 1
        unit = max(0, memory - OTHER_MEMORY) // ((1 + MADE) * (self._ahead + 1))
        unit = max(LEAST_UNIT_NBYTES, min(UNIT_NBYTES, unit))
        self._sizes = Sizes(unit, MADE * unit)
        self._units = source.units(self._sizes)
        self._pool: Ordered[Unit, Made] = Ordered(self._encoder.many, threads)
        self._rest: Piece | None = None
        self._ended = False
        self._error: Exception | None = None  # of reading, which comes after the messages before it
        self._position = 0
        self._making: Thread | None = None  # code that makes it faster

    def __enter__(self) -> Feed:
        # Of a large file it's known at once what is worth its loading.
        self._making = self._encoder.prepare(self.source.nbytes or 0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._error = None
        try:
            self._pool.__exit__(kind, error, trace)
        finally:
            if self._making is not None:
                self._making.join()

    def more(self) -> bool:
        """Whether there is a further row."""
        while self._rest is None or not self._rest.rows:
            piece = self._next()
            if piece is None:
                return False
            self._rest = piece
        return True

    def take(self, count: int | None, bar: Bar) -> Iterator[Piece]:
        """The next messages; all if ``count`` is None.

        Raises:
            EncodeError, DecodeError: a message can't be stored; names it.
        """
        while (count is None or count > 0) and self.more():
            piece = self._rest
            assert piece is not None
            rows = piece.rows if count is None else min(count, piece.rows)
            self._rest = piece.part(rows, piece.rows) if rows < piece.rows else None
            piece = piece.part(0, rows)
            if count is not None:
                count -= rows
            self._count(piece)
            yield piece
            self._show(piece, bar)

    def dropped(self) -> tuple[dict[str, int], dict[str, int]]:
        """Occurrences of fields that aren't carried, by ``"full.name of message #field number"``.

        Returns:
            Unknown fields and extensions; and declared fields, which YaFF doesn't carry.
        """
        counts = Counter({f"{name} #{number}": count for (name, number), count in self.uncarried.items()})
        counts.update(self._counted.counts)
        lost = _lost_numbers(self._mp, [key.rpartition(" #")[0] for key in counts])
        ordered = sorted(counts.items(), key=_place)
        unknown = {key: count for key, count in ordered if key not in lost}
        return unknown, {key: count for key, count in ordered if key in lost}

    def layouts(self) -> dict[str, int]:
        """How many rows have which layout at their root."""
        return self._encoder.layouts(self.rows)

    def _next(self) -> Piece | None:
        while not self._ended and len(self._pool) < self._ahead:
            self._sizes.limit = PLAIN_UNIT_NBYTES if transcode.work.loaded is None else UNIT_NBYTES
            try:
                unit = next(self._units, None)
                if unit is None:
                    self._ended = True
                elif unit.items is None:
                    self._pool.put(unit)
                else:
                    self._pool.give(self._encoded(unit, unit.items))
            except Exception as error:
                self._error, self._ended = error, True
        if len(self._pool):
            return self._finished(self._pool.take())
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None
        return None

    def _encoded(self, unit: Unit, items: list[Any]) -> Made:
        """Python objects as they are stored."""
        offsets = np.zeros(unit.rows + 1, np.int64)
        buffers: list[bytes] = []
        errors: dict[int, DecodeError | EncodeError] = {}
        for i, item in enumerate(items):
            payload = b""
            try:
                payload = self._encoder.one(item)
            except (EncodeError, DecodeError) as error:
                errors[i] = error
                if self.on_error == "raise":
                    break
            buffers.append(payload)
            offsets[i + 1] = offsets[i] + len(payload)
        return Made(unit, np.frombuffer(b"".join(buffers), np.uint8), offsets, errors)

    def _finished(self, made: Made) -> Piece:
        """A unit in its turn: what was counted, and what becomes of bad messages."""
        unit = made.unit
        if made.errors:
            self._note(made)
        self.uncarried.update(made.uncarried)
        self.uncounted += made.uncounted
        nbytes = int(unit.offsets[-1] - unit.offsets[0])
        self._sizes.learn(unit.rows, nbytes, len(made.data) + made.offsets.nbytes)
        self.read += unit.rows
        self.read_nbytes += nbytes
        piece = Piece(made.data, made.offsets, unit.valid, unit.position)
        if not made.errors:
            return piece
        rows = np.array(sorted(made.errors), np.int64)
        return self._without(piece, rows) if self.on_error == "skip" else self._with_nulls(piece, rows)

    def _note(self, made: Made) -> None:
        for i in sorted(made.errors):
            error = self._named(made.unit, i, made.errors[i])
            if self.on_error == "raise":
                raise error from made.errors[i]
            self.bad += 1
            if len(self.errors) < SHOWN_ERRORS:
                self.errors.append(str(error))
            if self.on_error == "skip":
                self.skipped.append(made.unit.number + i)

    def _named(self, unit: Unit, i: int, error: DecodeError | EncodeError) -> DecodeError | EncodeError:
        """An error that says where its message is from."""
        row = f"row {unit.number + i}: "
        text = str(error).removeprefix(row)
        kind = EncodeError if isinstance(error, EncodeError) else DecodeError
        if unit.where is not None:
            return kind(f"{unit.where(i)}: {text}")
        if isinstance(error, VerifyError) and error.row is not None:
            return error
        return kind(row + text)

    def _without(self, piece: Piece, rows: Offsets) -> Piece:
        offsets = np.delete(piece.offsets, rows + 1)  # they have no bytes
        valid = None if piece.valid is None else np.delete(piece.valid, rows)
        return Piece(piece.data, offsets, valid, piece.position)

    def _with_nulls(self, piece: Piece, rows: Offsets) -> Piece:
        """The default instance in place of each, which isn't valid."""
        default = np.frombuffer(self._encoder.default(), np.uint8)
        lengths = np.diff(piece.offsets)
        lengths[rows] = len(default)
        pieces = np.split(piece.data, piece.offsets[rows])
        data = np.concatenate([pieces[0], *(part for after in pieces[1:] for part in (default, after))])
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        valid = np.ones(len(lengths), np.bool_) if piece.valid is None else piece.valid.copy()
        valid[rows] = False
        return Piece(data, offsets, valid, piece.position)

    def _count(self, piece: Piece) -> None:
        self.rows += piece.rows
        if piece.valid is not None:
            self.nulls += piece.rows - int(np.count_nonzero(piece.valid))
        self._encoder.count(piece.data, piece.offsets)

    def _show(self, piece: Piece, bar: Bar) -> None:
        if self.source.nbytes is None:
            bar.update(piece.rows)
        elif piece.position is not None and piece.position > self._position:
            bar.update(piece.position - self._position)
            self._position = piece.position


def _place(item: tuple[str, int]) -> tuple[str, int]:
    message, _, number = item[0].rpartition(" #")
    return message, int(number)


def _lost_names(mp: MessagePlan) -> dict[str, frozenset[str]]:
    """Declared fields that YaFF doesn't carry, of all messages within one, by its full name."""
    found: dict[str, frozenset[str]] = {}
    waiting = [mp]
    while waiting:
        plan = waiting.pop()
        if plan.full_name in found:
            continue
        found[plan.full_name] = frozenset(name for name, _ in plan.lost)
        waiting += [plan.child(f) for f in plan.fields if f.message]
    return {name: lost for name, lost in found.items() if lost}


def _lost_numbers(mp: MessagePlan, names: list[str]) -> frozenset[str]:
    """Those of some messages, as ``"full.name of message #field number"``."""
    lost = _lost_names(mp)
    found = []
    for name in set(names) & set(lost):
        fields = mp.plan.schema.message_class(name).DESCRIPTOR.fields_by_name
        found += [f"{name} #{fields[field].number}" for field in lost[name]]
    return frozenset(found)
