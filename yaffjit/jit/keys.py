"""What numba types of ours are known by: a key of plain strings that any process can write down again.

A jitted function's disk cache holds the types of its arguments. Such a type pickles as its key alone. A
process that hasn't loaded the schema of a key gets a `ForeignType`, which equals no living type and pickles
back to the same key; without it one process would damage the cache of another.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.resources
import threading
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from numba.core import types

from yaffjit.errors import SchemaError
from yaffjit.plan.model import MessagePlan

if TYPE_CHECKING:
    from importlib.abc import Traversable

    from yaffjit.plan.build import Plan

# (class name, fingerprint, full name of the message, hash of our sources, details of the class)
Key = tuple[str, str, str, str, tuple[Any, ...]]

_classes: dict[str, type[PlanType]] = {}
_plans: weakref.WeakSet[Plan] = weakref.WeakSet()
_lock = threading.Lock()


@functools.cache
def source_hash() -> str:
    """A hash of the sources that decide which machine code a getter becomes (16 hex digits).

    numba's cache looks only at the user's file, so this makes cached code of another version of ours miss.
    """
    digest = hashlib.blake2b(digest_size=8)
    for name, content in sorted(_sources(importlib.resources.files("yaffjit.jit"), "")):
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _sources(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.name.endswith(".py"):
            yield prefix + entry.name, entry.read_bytes()
        elif entry.is_dir() and entry.name != "__pycache__":
            yield from _sources(entry, f"{prefix}{entry.name}/")


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
    mp = find_plan(fingerprint, full_name) if sources == source_hash() else None
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


class PlanType(types.Type):
    """A numba type that is made from a message's plan and a few details.

    Args:
        mp: the plan; equal plans of two loads give one type.
        details: plain values (strings, numbers, tuples of them) that distinguish types of one class.
    """

    # What users see in error texts, before the message's name.
    label: ClassVar[str]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _classes[cls.__name__] = cls

    def __init__(self, mp: MessagePlan, *details: Any) -> None:
        with _lock:
            _plans.add(mp.plan)
        self.mp = mp
        self.details = details
        self._key: Key = (type(self).__name__, mp.fingerprint, mp.full_name, source_hash(), details)
        # Symbols are made of names, so different keys need different names.
        digest = hashlib.blake2b(repr(self._key).encode("utf-8", "surrogatepass"), digest_size=8)
        super().__init__(name=f"{self.label}[{mp.full_name} #{digest.hexdigest()}]")

    @property
    def key(self) -> Key:
        return self._key

    def __reduce__(self) -> Any:
        return rebuild, (self._key,)
