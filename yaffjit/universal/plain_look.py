"""Parts of documents looked up in plain Python: as the compiled code does it, for where that isn't loaded."""

from __future__ import annotations

from typing import Any

from yaffjit.universal.codes import COLLECTION, COLLECTION_END, OBJECT, OBJECT_END, UTF8
from yaffjit.universal.compiled import options_of
from yaffjit.universal.cursors import Cursor
from yaffjit.universal.paths import Path


class PlainLooker:
    """Has the methods of `yaffjit.universal.compiled.Looker`."""

    def find(self, data: Any, word: int, flags: int, path: Path, default: Any) -> Any:
        cursor = _cursor(data, word, flags)
        for step in path.steps:
            there = _to_key(cursor, step) if isinstance(step, str) else _to_index(cursor, step)
            if not there:
                return default
        return _value(cursor)

    def next_item(self, data: Any, word: int, flags: int, kind: int) -> tuple[Any, Any, int] | None:
        cursor = _cursor(data, word, flags)
        cursor.depth += 1
        code = cursor.peek()
        if code == kind + 1:
            return None
        key = None
        if kind == OBJECT:
            code = cursor.code()
            if code < UTF8:
                cursor._refuse()
            begin = cursor.word, cursor.depth
            key = _key(cursor, code)
            if key is None:  # what isn't text is told once the structure is known to be sound
                cursor.skip()
                cursor.seek(*begin)
                cursor.payload(code)
        begin = cursor.word, cursor.depth
        cursor.skip()
        following = cursor.word
        cursor.seek(*begin)
        return key, _value(cursor), following

    def count(self, data: Any, word: int, flags: int) -> int:
        cursor = _cursor(data, word, flags)
        return _count(cursor)


def _cursor(data: Any, word: int, flags: int) -> Cursor:
    return Cursor(data, options_of(flags), word, flags >> 20)


def _count(cursor: Cursor) -> int:
    kind = cursor.code()
    if kind not in (OBJECT, COLLECTION):
        cursor._refuse()
    count = 0
    while cursor.peek() != kind + 1:
        if kind == OBJECT:
            _key(cursor, cursor.code())
        cursor.skip()
        count += 1
    return count


def _key(cursor: Cursor, code: int) -> str | None:
    """The text of a key; None if it isn't any."""
    if code < UTF8:
        cursor._refuse()
    return cursor.decoded(code, *cursor._text())


def _to_key(cursor: Cursor, key: str) -> bool:
    kind = cursor.code()
    if kind in (OBJECT_END, COLLECTION_END):
        cursor._refuse()
    if kind != OBJECT:
        return False
    while True:
        code = cursor.code()
        if code == OBJECT_END:
            return False
        if _key(cursor, code) == key:
            return True
        cursor.skip()


def _to_index(cursor: Cursor, index: int) -> bool:
    if index < 0:
        if cursor.peek() == COLLECTION or cursor.peek() == OBJECT:
            begin = cursor.word, cursor.depth
            index += _count(cursor)
            cursor.seek(*begin)
        elif cursor.peek() not in (None, OBJECT_END, COLLECTION_END):
            return False
    kind = cursor.code()
    if kind in (OBJECT_END, COLLECTION_END):
        cursor._refuse()
    if kind != COLLECTION or index < 0:
        return False
    while cursor.peek() != COLLECTION_END:
        if index == 0:
            if cursor.peek() is None:
                cursor._refuse()
            return True
        index -= 1
        cursor.skip()
    return False


def _value(cursor: Cursor) -> Any:
    """The value that a cursor is at, or (word, code) of a container."""
    code = cursor.peek()
    if code in (OBJECT, COLLECTION):
        return cursor.word, code
    code = cursor.code()
    if code in (OBJECT_END, COLLECTION_END):
        cursor._refuse()
    return cursor.payload(code)
