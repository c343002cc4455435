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
    "view": "yaffjit.universal.views",
    "cursor": "yaffjit.universal.cursors",
    "columns": "yaffjit.universal.columnar",
    "encode_columns": "yaffjit.universal.encoding",
    "MaskedTextColumn": "yaffjit.universal.columnar",
    "ObjectView": "yaffjit.universal.views",
    "CollectionView": "yaffjit.universal.views",
    "Cursor": "yaffjit.universal.cursors",
    "KindError": "yaffjit.universal.refusals",
    "DocumentError": "yaffjit.universal.refusals",
    "TruncatedError": "yaffjit.universal.refusals",
}

__all__ = [
    "CollectionView",
    "Cursor",
    "DocumentError",
    "KindError",
    "MaskedTextColumn",
    "ObjectView",
    "TruncatedError",
    "columns",
    "cursor",
    "dump",
    "dumps",
    "encode_columns",
    "load",
    "load_each",
    "loads",
    "validate",
    "view",
]

if TYPE_CHECKING:
    from yaffjit.universal.codec import dump, dumps, load, load_each, loads, validate
    from yaffjit.universal.columnar import MaskedTextColumn, columns
    from yaffjit.universal.cursors import Cursor, cursor
    from yaffjit.universal.encoding import encode_columns
    from yaffjit.universal.refusals import DocumentError, KindError, TruncatedError
    from yaffjit.universal.views import CollectionView, ObjectView, view


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__]
