"""Fields of many messages as numpy arrays, all read together in one pass over the rows, or two."""

from yaffjit.columns.mapping import Columns
from yaffjit.columns.read import columns
from yaffjit.columns.results import Column, DictionaryColumn, ListColumn, MapColumn, TextColumn

__all__ = [
    "Column",
    "Columns",
    "DictionaryColumn",
    "ListColumn",
    "MapColumn",
    "TextColumn",
    "columns",
]
