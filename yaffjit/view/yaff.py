"""Views of YaFF bytes: a header says where the slots of the fields lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from yaffjit.codec.locate import FLAT, read_i32, read_u16, read_u32
from yaffjit.view.base import View, plan_of

if TYPE_CHECKING:
    from yaffjit.view.buffers import Data
    from yaffjit.view.owner import Owner

# Sparse messages without a meta table have a header up to this.
_EMPTY_SPARSE = 3


class YaffView(View):
    """A message in a YaFF buffer.

    Attributes of an instance, for the other layers:
        _pos_: absolute position of the message in ``_data_`` (of its header; of its start if it's fixed).
        _head_: the header; that of a full flat message if the message is fixed.
        _meta_: end of the meta table, absolute; only if the message is sparse and not empty.
    """

    __slots__ = ("_head_", "_meta_", "_pos_")
    _representation_ = "yaff"

    def __init__(self, data: Data, pos: int, owner: Owner | None = None) -> None:
        self._data_ = data
        self._pos_ = pos
        self._owner_ = owner
        head: int = read_u16(data, pos)[0]
        self._head_ = head
        if head < FLAT and head > _EMPTY_SPARSE:
            self._meta_: int = pos + read_i32(data, pos - 4)[0]

    @classmethod
    def _default_(cls) -> View:
        known = cls._default_view_
        if known is None:
            mp = plan_of(cls)
            empty = {"fixed": bytes(mp.limit + 4), "sparse": b"\x02\x00"}.get(mp.layout, b"\x00\x80")
            known = cls._default_view_ = cls(empty, 0)
        return known

    def _any_pos_(self) -> tuple[int, bool]:
        return self._pos_, False

    def _is_whole_(self, begin: int, end: int) -> bool:
        return begin + int(read_u32(self._data_, begin)[0]) == self._pos_

    def _decoded_(self, most: int | None) -> Any:
        from yaffjit.codec.decode import decode_at, decode_within

        if most is None:
            return decode_at(self._plan_, self._data_, self._pos_)
        return decode_within(self._plan_, self._data_, self._pos_, most)


class FixedView(YaffView):
    """A view of a fixed message, which has no header."""

    __slots__ = ()

    def __init__(self, data: Data, pos: int, owner: Owner | None = None) -> None:
        self._data_ = data
        self._pos_ = pos
        self._owner_ = owner
        self._head_ = FLAT
