"""How rows become views: one reader a representation, over where messages lie."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from yaffjit.errors import VerifyError
from yaffjit.rows.chunks import Chunks
from yaffjit.rows.places import Places

if TYPE_CHECKING:
    from yaffjit.plan.model import MessagePlan
    from yaffjit.view.buffers import Data

REPRESENTATIONS = ("yaff", "protobuf")

_read_u32 = struct.Struct("<I").unpack_from


class Reader(Protocol):
    """Makes views of rows, which count from where the messages' store begins."""

    def view(self, row: int) -> Any:
        """The view of a row, the default instance of a null row."""

    def views(self, start: int, count: int) -> Iterator[Any]:
        """The views of rows in order."""


def reader(mp: MessagePlan, store: Chunks | Places, representation: str, first: int) -> Reader:
    """The reader of one representation; ``first`` is the store's row that errors count from."""
    return YaffReader(mp, store) if representation == "yaff" else ProtobufReader(mp, store, first)


class YaffReader:
    """Rows that were verified, or are trusted: each begins with the offset of its message."""

    __slots__ = ("_make", "_mp", "_owner", "_store")

    def __init__(self, mp: MessagePlan, store: Chunks | Places) -> None:
        from yaffjit.view import view_class

        self._mp = mp
        self._store = store
        self._make: Any = view_class(mp)
        self._owner = store.memory.view_owner

    def view(self, row: int) -> Any:
        found = self._store.start(row)
        if found is None:
            return self._make._default_()
        data, at = found
        try:
            return self._make(data, at + _read_u32(data, at)[0], self._owner)
        except struct.error:
            raise self._too_short(data, at) from None

    def views(self, start: int, count: int) -> Iterator[Any]:
        make, owner, store = self._make, self._owner, self._store
        short = struct.error  # one that is half-consumed ends with the interpreter, when globals are gone
        try:
            if isinstance(store, Places):
                for found in store.starts(start, count):
                    if found is None:
                        yield make._default_()
                    else:
                        data, at = found
                        yield make(data, at + _read_u32(data, at)[0], owner)
            else:
                for data, base, offsets in store.starts(start, count):
                    for offset in offsets:
                        at = base + offset
                        yield make(data, at + _read_u32(data, at)[0], owner)
        except short:
            raise self._too_short(data, at) from None

    def _too_short(self, data: Data, at: int) -> VerifyError:
        """For data that was never verified: a message begins beyond its end."""
        return VerifyError(
            f"the data of {len(data)} bytes ends before the message", at, message=self._mp.full_name
        )


class ProtobufReader:
    """Rows of protobuf bytes, which are checked as far as they are read; errors name the row."""

    __slots__ = ("_first", "_make", "_owner", "_store")

    def __init__(self, mp: MessagePlan, store: Chunks | Places, first: int) -> None:
        from yaffjit.view import wire_view_class

        self._first = first
        self._store = store
        self._make: Any = wire_view_class(mp.plan, mp.full_name)
        self._owner = store.memory.view_owner

    def view(self, row: int) -> Any:
        found = self._store.span(row)
        if found is None:
            return self._make._default_()
        return self._make(*found, self._owner, row - self._first)

    def views(self, start: int, count: int) -> Iterator[Any]:
        make, owner = self._make, self._owner
        for row, found in enumerate(self._store.spans(start, count), start - self._first):
            yield make._default_() if found is None else make(*found, owner, row)
