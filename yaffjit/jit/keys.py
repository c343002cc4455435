"""What numba types of ours are known by: a key of plain strings that any process can write down again.

A jitted function's disk cache holds the types of its arguments. Such a type pickles as its key alone. A
process that hasn't loaded the schema of a key gets a `ForeignType`, which equals no living type and pickles
back to the same key; without it one process would damage the cache of another.
"""

from __future__ import annotations

import hashlib
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any, ClassVar

from numba.core import types

from yaffjit.errors import SchemaError
from yaffjit.forks import renew_in_forks
from yaffjit.kernels.sources import GETTER_PACKAGES, hash_of_sources
from yaffjit.plan.model import MessagePlan

if TYPE_CHECKING:
    from yaffjit.plan.build import Plan

# (class name, fingerprint, full name of the message, hash of our sources, details of the class); of a type
# that isn't of a message both are empty.
Key = tuple[str, str, str, str, tuple[Any, ...]]

_classes: dict[str, type[KeyedType]] = {}
_plans: weakref.WeakSet[Plan] = weakref.WeakSet()
_lock = threading.Lock()
renew_in_forks(sys.modules[__name__], "_lock", threading.Lock)


def source_hash() -> str:
    """A hash of the sources that decide which machine code a getter becomes (16 hex digits)."""
    return hash_of_sources(GETTER_PACKAGES)


def find_plan(fingerprint: str, full_name: str) -> MessagePlan | None:
    """The plan of a message among the schemas that have been used in jitted code, or None."""
    with _lock:
        plans = list(_plans)
    for plan in plans:
        if full_name in plan.schema.messages:
            try:
                mp = plan[full_name]
            except SchemaError:
                continue
            if mp.fingerprint == fingerprint:
                return mp
    return None


def rebuild(key: Key) -> types.Type:
    """The living type of a key, or a placeholder."""
    kind, fingerprint, full_name, sources, details = key
    if sources != source_hash() or kind not in _classes:
        return ForeignType(key)
    if not fingerprint:
        return _classes[kind](*details)
    mp = find_plan(fingerprint, full_name)
    return ForeignType(key) if mp is None else _classes[kind](mp, *details)


class ForeignType(types.Type):
    """A type of a schema, or of a version of ours, that this process hasn't loaded."""

    def __init__(self, key: Key) -> None:
        self._key = key
        super().__init__(name=f"Foreign{key}")

    @property
    def key(self) -> Key:
        return self._key

    def __reduce__(self) -> Any:
        return rebuild, (self._key,)


class KeyedType(types.Type):
    """A numba type that pickles as its key. Its class is found by its name, so it's the only one of that."""

    # What users see in error texts, before the message's name.
    label: ClassVar[str]
    # Whether x[i] is the item at a position; else it looks up a key, or there's none.
    by_position: ClassVar[bool] = True
    _key: Key

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _classes[cls.__name__] = cls

    @property
    def key(self) -> Key:
        return self._key

    def __reduce__(self) -> Any:
        return rebuild, (self._key,)

    def _digest(self) -> str:
        """A hash of the key for the name: symbols are made of names, so those of two keys must differ."""
        return hashlib.blake2b(repr(self._key).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class PlainType(KeyedType):
    """A numba type of ours that isn't of a message; it's made of a few details.

    Args:
        name: what numba shows.
        details: plain values, types, tuples of them, that the class takes to make an equal type.
    """

    def __init__(self, name: str, *details: Any) -> None:
        self._key = (type(self).__name__, "", "", source_hash(), details)
        super().__init__(name=name)


class PlanType(KeyedType):
    """A numba type that is made from a message's plan and a few details.

    Args:
        mp: the plan; equal plans of two loads give one type.
        details: plain values (strings, numbers, tuples of them) that distinguish types of one class.
    """

    def __init__(self, mp: MessagePlan, *details: Any) -> None:
        with _lock:
            _plans.add(mp.plan)
        self.mp = mp
        self.details = details
        self._key = (type(self).__name__, mp.fingerprint, mp.full_name, source_hash(), details)
        super().__init__(name=f"{self.label}[{mp.full_name} #{self._digest()}]")
