"""Fields of many messages as numpy arrays, all read together in one pass over the rows, or two; and as Arrow.

Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "Column": "yaffjit.columns.results",
    "Columns": "yaffjit.columns.mapping",
    "DictionaryColumn": "yaffjit.columns.results",
    "ListColumn": "yaffjit.columns.results",
    "MapColumn": "yaffjit.columns.results",
    "TextColumn": "yaffjit.columns.results",
    "columns": "yaffjit.columns.read",
}

__all__ = ["Column", "Columns", "DictionaryColumn", "ListColumn", "MapColumn", "TextColumn", "columns"]

if TYPE_CHECKING:
    from yaffjit.columns.mapping import Columns
    from yaffjit.columns.read import columns
    from yaffjit.columns.results import Column, DictionaryColumn, ListColumn, MapColumn, TextColumn


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value
