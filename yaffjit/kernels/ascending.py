"""A mark in numba's counted record of bytes: the keys of all maps in them ascend, so nobody needs to look.

numba's record (NRT_MemInfo) has a word for the size of memory that numba allocated itself. In records of
other bytes it's unused, so the mark is a size that no memory has. Jitted code has the record at hand wherever
it has a view.
"""

from __future__ import annotations

import ctypes
import functools

# refct, dtor, dtor_info and data come before it, of 8 bytes each.
SIZE_OFFSET = 32
MARK = 0xA5CE_4D16_0000_0001

_PROBED_NBYTES = 123


@functools.cache
def has_size_word() -> bool:
    """Whether numba's records have the word where we look for it. Else nothing is ever marked."""
    from numba.core.runtime import _nrt_python

    record = _nrt_python.meminfo_alloc(_PROBED_NBYTES)
    counted = _nrt_python._MemInfo(record)
    word = ctypes.c_uint64.from_address(record + SIZE_OFFSET)
    return bool(word.value == memoryview(counted).nbytes == _PROBED_NBYTES)


def mark(record: int) -> None:
    """Mark a record.

    Requires: the address of a record that was made of bytes that numba didn't allocate, and of which jitted
    code doesn't know yet.
    """
    if has_size_word():
        ctypes.c_uint64.from_address(record + SIZE_OFFSET).value = MARK
