"""Files of numba's disk cache that tell whether they are what was written, and of which function.

numba writes no checksums: machine code with a flipped bit would be run. And it gives a file its name in the
index before the file is written: of two processes that compile at once, one may have named the file that the
other one wrote, and one that was killed in between leaves what an older source had there. So a file of ours
ends with a checksum, which is looked at before anything is unpickled, and machine code has its key beside it.
"""

from __future__ import annotations

import hashlib
import pickle
from typing import Any

import numba
from numba.core.caching import IndexDataCacheFile

MARK = b"yaffjit sealed 1"
DIGEST_NBYTES = 16


class DamagedCache(Exception):
    """A file isn't what was written for that key."""


class SealedFile(IndexDataCacheFile):
    """The index and the data files of one function.

    Everything raises DamagedCache where a file has another checksum, or none, or the code of another key.
    """

    def save(self, key: Any, data: Any) -> None:
        super().save(key, (key, self._source_stamp, data))

    def load(self, key: Any) -> Any:
        entry = super().load(key)
        if entry is None:
            return None
        found, stamp, data = entry
        if found != key or stamp != self._source_stamp:
            raise DamagedCache(f"{self._index_path}: the code of another function")
        return data

    def _save_index(self, overloads: dict[Any, str]) -> None:
        content = pickle.dumps(self._version, protocol=-1) + self._dump((self._source_stamp, overloads))
        with self._open_for_write(self._index_path) as file:
            file.write(sealed(content))

    def _load_index(self) -> dict[Any, str]:
        try:
            with open(self._index_path, "rb") as file:
                unsealed(file.read())
        except FileNotFoundError:
            return {}
        found: dict[Any, str] = super()._load_index()
        return found

    def _save_data(self, name: str, data: Any) -> None:
        with self._open_for_write(self._data_path(name)) as file:
            file.write(sealed(self._dump(data)))

    def _load_data(self, name: str) -> Any:
        with open(self._data_path(name), "rb") as file:
            return pickle.loads(unsealed(file.read()))


def sealed(content: bytes) -> bytes:
    """Content with its checksum behind it, where numba doesn't read."""
    return content + MARK + _digest(content)


def unsealed(found: bytes) -> bytes:
    """What was given to `sealed`. Raises DamagedCache."""
    at = len(found) - len(MARK) - DIGEST_NBYTES
    content = found[: max(at, 0)]
    if found[len(content) :] != MARK + _digest(content):
        raise DamagedCache(f"a file of {len(found)} bytes isn't what was written")
    return content


def sealed_file(cache: Any, suffix: str = "") -> SealedFile:
    """The files of a function's cache, whose names have a suffix."""
    base = cache._impl.filename_base + suffix
    return SealedFile(cache._cache_path, base, cache._cache_file._source_stamp)


def _digest(content: bytes) -> bytes:
    # Of this numba too: what it unpickles, another one may not.
    return hashlib.blake2b(content, digest_size=DIGEST_NBYTES, key=numba.__version__.encode()[:64]).digest()
