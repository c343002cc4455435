"""Where the fields of one protobuf message lie, for views in Python: tag, begin and end of each."""

from __future__ import annotations

from typing import Any

from numba import int64

from yaffjit.kernels.cached import cached, compiled, is_kept
from yaffjit.kernels.memory import load_u8, store_i64
from yaffjit.kernels.wire import read_size, read_tag, read_varint

# Results that aren't counts.
MALFORMED = -1
HAS_GROUP = -2

ROW_NBYTES = 24


def _index_fields(data: int, begin: int, end: int, size_bits: int, out: int) -> int:
    """How many fields lie from ``begin`` to ``end``; MALFORMED; HAS_GROUP, which it does not read.

    If ``out`` isn't 0 it writes three int64 for each field there: its tag, and begin and end of its value,
    counted from ``data``.

    Requires: ``end`` readable bytes at ``data``; room for all fields at ``out``, which another call counted.
    Source: google.protobuf (upb); the tests compare what is accepted.
    """
    pos = data + begin
    limit = data + end
    count = 0
    while pos < limit:
        tag = load_u8(pos)
        if tag < 128:
            pos += 1
        else:
            tag, pos = read_tag(pos, limit)
            if pos == 0:
                return MALFORMED
        wire_type = tag & 7
        start = pos
        if wire_type == 0:
            if pos < limit and load_u8(pos) < 128:
                pos += 1
            else:
                _, pos = read_varint(pos, limit)
                if pos == 0:
                    return MALFORMED
        elif wire_type == 2:
            size = load_u8(pos) if pos < limit else 128
            if size < 128 and size < limit - pos:
                start = pos + 1
            else:
                size, start = read_size(pos, limit, size_bits)
                if start == 0:
                    return MALFORMED
            pos = start + size
        elif wire_type == 1 or wire_type == 5:
            pos += 8 if wire_type == 1 else 4
            if pos > limit:
                return MALFORMED
        else:
            return HAS_GROUP if wire_type == 3 else MALFORMED
        if out != 0:
            row = out + ROW_NBYTES * count
            store_i64(row, tag)
            store_i64(row + 8, start - data)
            store_i64(row + 16, pos - data)
        count += 1
    return count


_SIGNATURE = (int64, int64, int64, int64, int64)


class IndexKernel:
    """The compiled pass; compiling it takes about a second."""

    def __init__(self) -> None:
        self.index_fields: Any = compiled(_index, _SIGNATURE)

    @staticmethod
    def is_kept() -> bool:
        """Whether it's in numba's cache on disk."""
        return is_kept(_index, _SIGNATURE)


_index = cached(_index_fields, nogil=True)
