"""Index files: Arrow files of messages, one or many, self-describing, checksummed and memory-mapped."""

from yaffjit.index.key_writer import build_keys
from yaffjit.index.packed import PackedIndex, open_packed, unpack_index
from yaffjit.index.reader import Index, IndexPart, open_index, open_index_unchecked
from yaffjit.index.report import BuiltIndex
from yaffjit.index.writer import adopt_index, append_index, build_index

__all__ = [
    "BuiltIndex",
    "Index",
    "IndexPart",
    "PackedIndex",
    "adopt_index",
    "append_index",
    "build_index",
    "build_keys",
    "open_index",
    "open_index_unchecked",
    "open_packed",
    "unpack_index",
]
