"""Index files: one Arrow IPC file of messages, described by itself, checksummed and memory-mapped."""

from yaffjit.index.reader import Index, open_index, open_index_unchecked
from yaffjit.index.writer import BuiltIndex, build_index

__all__ = ["BuiltIndex", "Index", "build_index", "open_index", "open_index_unchecked"]
