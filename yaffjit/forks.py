"""Locks in forked children: another thread of the parent may have held one when it forked, for ever."""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

C = TypeVar("C", bound=type)

_holders: weakref.WeakKeyDictionary[Any, dict[str, Callable[[], Any]]] = weakref.WeakKeyDictionary()


def renew_in_forks(holder: Any, name: str, make: Callable[[], Any]) -> None:
    """Have an attribute made anew in each forked child, as long as what has it lives.

    Args:
        holder: an object or a module. Who uses the lock looks it up there, as in ``with self._lock``.
        name: of the attribute, which holds what ``make`` makes.
        make: `threading.Lock` or `threading.RLock`, or what makes a container for locks.
    """
    _holders.setdefault(holder, {})[name] = make


def renew_properties(cls: C) -> C:
    """A class decorator: before Python 3.12, a cached property has one lock for all objects."""
    for value in vars(cls).values():
        if isinstance(value, functools.cached_property) and hasattr(value, "lock"):
            renew_in_forks(value, "lock", threading.RLock)
    return cls


def _renew() -> None:
    for holder, attributes in list(_holders.items()):
        for name, make in attributes.items():
            setattr(holder, name, make())


if hasattr(os, "register_at_fork"):  # not on every platform
    os.register_at_fork(after_in_child=_renew)
