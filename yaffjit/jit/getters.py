"""Jitted functions that read one field of messages in one's own arrays."""

from __future__ import annotations

from typing import Any

from numba import njit

from yaffjit.errors import SchemaError
from yaffjit.jit.paths import Paths, read_path, resolve
from yaffjit.plan.model import MessagePlan


def getter(mp: MessagePlan, path: str) -> Any:
    """A jitted function ``(data: uint8[:], pos: int) -> value`` that reads one scalar field.

    Args:
        mp: the root message.
        path: the field, through singular messages with dots: "stats.ctr".

    Returns:
        The function, usable from Python and in ``@njit``: ``data`` is a contiguous array of uint8, or bytes,
        and ``pos`` is where a message buffer (its root offset) starts in it. It gives an int, float or bool;
        a field that is absent reads as its default. It raises IndexError where ``pos`` isn't within ``data``.
        A jitted function that uses it isn't cached on disk.

    Requires: the buffer at ``pos`` is a well-formed message of this type.

    Raises:
        SchemaError: the path isn't a scalar field.
    """
    return _reader(Paths(mp, values=(path,)))


def presence(mp: MessagePlan, path: str) -> Any:
    """A jitted function ``(data: uint8[:], pos: int) -> bool``: whether a field is set.

    A field of an absent message isn't. As `getter` otherwise; the path may lead to any field with presence.

    Raises:
        SchemaError: the path isn't such a field.
    """
    owner, f = resolve(mp, path)[-1]
    if not f.explicit:
        raise SchemaError(f"Field {owner.full_name}.{f.name} does not have presence.")
    return _reader(Paths(mp, presences=(path,)))


def _reader(paths: Paths) -> Any:
    memo = paths.mp.plan.memo
    key = paths._numba_type_
    made = memo.get(key)
    if made is None:

        @njit
        def read(data, pos):  # type: ignore[no-untyped-def]
            return read_path(data, pos, paths)

        made = memo.setdefault(key, read)
    return made
