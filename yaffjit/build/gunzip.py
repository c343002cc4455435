"""gzip data unpacked piece by piece, up to the very byte where it's damaged.

Arrow's streams, which unpack zstd here, give nothing of a read in which they meet damage.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

PIECE_NBYTES = 1 << 16
_GZIP = 31  # of zlib: a header and a trailer of gzip's


class Gunzip:
    """The members of a gzip stream, one after the other; zeros may fill up what follows them.

    Args:
        read: gives up to so many packed bytes, none at their end.
    """

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._packed = b""
        self._member = zlib.decompressobj(_GZIP)
        self._begun = False  # anything of the member was read
        self._step = PIECE_NBYTES

    def readinto(self, view: memoryview) -> int:
        """Fill the beginning of a buffer with what there is; how many bytes, 0 at the end.

        Raises:
            zlib.error: the data is damaged or cut; all before that was given.
        """
        while len(view):
            if not self._packed:
                self._packed = self._read(PIECE_NBYTES)
                if not self._packed:
                    return self._end(view)
            if self._member.eof:
                self._packed = self._packed.lstrip(b"\0")
                if not self._packed:
                    continue
                self._member = zlib.decompressobj(_GZIP)
            self._begun = True
            piece, rest = self._packed[: self._step], self._packed[self._step :]
            before = self._member.copy() if self._step > 1 else None
            try:
                made = self._member.decompress(piece, len(view))
            except zlib.error:
                if before is None:
                    raise
                # What came before the damage is lost with the call: once more, in smaller steps.
                self._member, self._step = before, self._step // 2
                continue
            self._packed = (self._member.unused_data or self._member.unconsumed_tail) + rest
            if made:
                view[: len(made)] = made
                return len(made)
        return 0

    def _end(self, view: memoryview) -> int:
        """What zlib holds back of a member whose bytes it has all."""
        made = b"" if self._member.eof else self._member.decompress(b"", len(view))
        view[: len(made)] = made
        if not made and self._begun and not self._member.eof:
            raise zlib.error("the data ends within a member")
        return len(made)
