"""The verifier of YaFF buffers as machine code: what is called from Python, for one buffer and for many.

It only says whether a buffer is well-formed, by the rules of `yaffjit.codec.verify_plain`, which finds the
words for what is wrong; and whether the keys of its maps ascend. A table is that of `yaffjit.plan.tables`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import int64, types

from yaffjit.kernels.cached import cached
from yaffjit.kernels.memory import data_address, load_i64
from yaffjit.kernels.verify_walk import ASCENDING, MALFORMED, walk

_BYTES = types.Bytes(types.uint8, 1, "C", readonly=True)
ONE_SIGNATURE = int64(_BYTES, int64)
ROWS_SIGNATURE = types.UniTuple(int64, 2)(*[int64] * 6)


def _check_one(buf: bytes, request: int) -> int:
    """What a buffer is: `MALFORMED`, `WELL_FORMED` or `ASCENDING`.

    Requires: the address of a request whose table and memo are as described.
    """
    return walk(request, data_address(buf), len(buf))


def _check_rows(
    request: int, buffer: int, nbytes: int, offsets: int, first: int, last: int
) -> tuple[int, int]:
    """The first of the rows ``first`` to ``last - 1`` with bad offsets or a malformed buffer, else ``last``.

    And 1 if the keys of all maps of the rows before it ascend, else 0. Messages lie in one buffer, or
    anywhere: then ``buffer`` is 0, and address 0 is a row without a message.

    Requires: a request as above; ``nbytes`` readable bytes at ``buffer`` and ``last + 1`` int64 at
    ``offsets``; or ``last`` pairs of int64 there, an address and how many bytes can be read at it.
    """
    ascending = 1
    for row in range(first, last):
        if buffer == 0:
            start = load_i64(offsets + 16 * row)
            size = load_i64(offsets + 16 * row + 8)
            if start == 0:
                continue
        else:
            start = load_i64(offsets + 8 * row)
            size = load_i64(offsets + 8 * row + 8) - start
            if start < 0 or size < 0 or size > nbytes - start:
                return row, ascending
            start += buffer
        found = walk(request, start, size)
        if found == MALFORMED:
            return row, ascending
        if found != ASCENDING:
            ascending = 0
    return last, ascending


def _compiled(function: Callable[..., Any], signature: Any, nogil: bool) -> Any:
    dispatcher = cached(function, nogil)
    dispatcher.compile(signature)
    dispatcher.disable_compile()  # a call with other types is a mistake
    return dispatcher


class Kernel:
    """The compiled functions; making it takes three seconds, or 0.2 from the cache on disk."""

    def __init__(self) -> None:
        self.check_one = _compiled(_check_one, ONE_SIGNATURE, nogil=False)
        self.check_rows = _compiled(_check_rows, ROWS_SIGNATURE, nogil=True)
