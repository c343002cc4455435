"""The universal tagged binary format: schemaless documents of objects, collections, text and numbers.

Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "dumps": "yaffjit.universal.codec",
    "loads": "yaffjit.universal.codec",
    "dump": "yaffjit.universal.codec",
    "load": "yaffjit.universal.codec",
    "load_each": "yaffjit.universal.codec",
    "validate": "yaffjit.universal.codec",
    "DocumentError": "yaffjit.universal.refusals",
    "TruncatedError": "yaffjit.universal.refusals",
}

__all__ = [
    "DocumentError",
    "TruncatedError",
    "dump",
    "dumps",
    "load",
    "load_each",
    "loads",
    "validate",
]

if TYPE_CHECKING:
    from yaffjit.universal.codec import dump, dumps, load, load_each, loads, validate
    from yaffjit.universal.refusals import DocumentError, TruncatedError


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__]
