"""Which buffers count as unchangeable: judged by what owns the memory, not by the flag of a view of it."""

from __future__ import annotations

import array
import ctypes
import mmap
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from vectors import TESTS

import yaffjit as yj
from yaffjit.view.buffers import is_immutable


def flagged(array: Any) -> Any:
    array.flags.writeable = False
    return array


def mapped(path: Path, access: int) -> mmap.mmap:
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), 0, access=access)


class Disguised(bytes):
    """Bytes that export other memory (from Python 3.12 on)."""

    def __new__(cls, data: bytes) -> Disguised:
        made = super().__new__(cls, data)
        made.memory = bytearray(data)  # type: ignore[attr-defined]
        return made

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(self.memory).toreadonly()  # type: ignore[attr-defined]


IMMUTABLE: dict[str, Callable[[bytes, Path], Any]] = {
    "bytes": lambda data, path: data,
    "numpy's bytes": lambda data, path: np.bytes_(data),
    "memoryview": lambda data, path: memoryview(memoryview(data)[:]),
    "array": lambda data, path: np.frombuffer(data, np.uint8),
    "view of an array": lambda data, path: np.frombuffer(data, np.uint8)[:].view(np.int8),
    "array of a memoryview": lambda data, path: np.frombuffer(memoryview(data), np.uint8),
    "map": lambda data, path: mapped(path, mmap.ACCESS_READ),
    "memoryview of a map": lambda data, path: memoryview(mapped(path, mmap.ACCESS_READ)),
    "array of a map": lambda data, path: np.frombuffer(mapped(path, mmap.ACCESS_READ), np.uint8),
    "memmap": lambda data, path: np.memmap(path, np.uint8, "r"),
    "view of a memmap": lambda data, path: np.memmap(path, np.uint8, "r")[:].view(np.ndarray),
    "Arrow buffer": lambda data, path: pa.py_buffer(data),
    "slice of an Arrow buffer": lambda data, path: pa.py_buffer(data).slice(0, len(data)),
    "array of an Arrow buffer": lambda data, path: np.frombuffer(pa.py_buffer(data), np.uint8),
    "Arrow map": lambda data, path: pa.memory_map(str(path)).read_buffer(),
    "array of an Arrow array": lambda data, path: pa.array(list(data), pa.uint8()).to_numpy(),
}
WRITABLE: dict[str, Callable[[bytes, Path], Any]] = {
    "bytearray": lambda data, path: bytearray(data),
    "memoryview": lambda data, path: memoryview(bytearray(data)),
    "read-only memoryview": lambda data, path: memoryview(bytearray(data)).toreadonly(),
    "array of the standard library": lambda data, path: array.array("B", data),
    "array of ctypes": lambda data, path: (ctypes.c_uint8 * len(data)).from_buffer_copy(data),
    "array": lambda data, path: np.frombuffer(data, np.uint8).copy(),
    "flagged array": lambda data, path: flagged(np.frombuffer(data, np.uint8).copy()),
    "flagged view": lambda data, path: flagged(np.frombuffer(data, np.uint8).copy().view()),
    "slice of a flagged view": lambda data, path: flagged(np.frombuffer(data, np.uint8).copy().view())[:],
    "memoryview of a flagged view": lambda data, path: memoryview(
        flagged(np.frombuffer(data, np.uint8).copy().view())
    ),
    "flagged array of a bytearray": lambda data, path: flagged(np.frombuffer(bytearray(data), np.uint8)),
    "array of a read-only memoryview": lambda data, path: np.frombuffer(
        memoryview(bytearray(data)).toreadonly(), np.uint8
    ),
    "array of ctypes, flagged": lambda data, path: flagged(
        np.ctypeslib.as_array((ctypes.c_uint8 * len(data)).from_buffer_copy(data))
    ),
    "map": lambda data, path: memoryview(mapped(path, mmap.ACCESS_WRITE)).toreadonly(),
    "memmap, copied on writing": lambda data, path: flagged(np.memmap(path, np.uint8, "c")),
    "Arrow buffer": lambda data, path: pa.py_buffer(bytearray(data)),
    "slice of an Arrow buffer": lambda data, path: pa.py_buffer(bytearray(data)).slice(0, len(data)),
    "array of an Arrow buffer": lambda data, path: flagged(
        np.frombuffer(pa.py_buffer(bytearray(data)).slice(0, len(data)), np.uint8)
    ),
}
if sys.version_info >= (3, 12):
    WRITABLE["disguised bytes"] = lambda data, path: Disguised(data)


@pytest.fixture(scope="module")
def leaf_type() -> yj.MessageType:
    return yj.load_schema(TESTS / "schemas" / "views.proto")["views.Leaf"]


@pytest.fixture
def stored(leaf_type: yj.MessageType, tmp_path: Path) -> tuple[bytes, Path]:
    data = leaf_type.encode({"n": 7, "text": "before"})
    path = tmp_path / "leaf.yaff"
    path.write_bytes(data)
    return data, path


@pytest.mark.parametrize("kind", IMMUTABLE)
def test_what_cannot_change_is_taken(
    leaf_type: yj.MessageType, stored: tuple[bytes, Path], kind: str
) -> None:
    buf = IMMUTABLE[kind](*stored)
    assert is_immutable(buf)
    view = leaf_type.view(buf)
    assert (view.n, view.text) == (7, "before")
    assert np.frombuffer(view._data_, np.uint8).ctypes.data == np.frombuffer(buf, np.uint8).ctypes.data


@pytest.mark.parametrize("kind", WRITABLE)
def test_what_can_change_is_copied(leaf_type: yj.MessageType, stored: tuple[bytes, Path], kind: str) -> None:
    buf = WRITABLE[kind](*stored)
    assert not is_immutable(buf)
    view = leaf_type.view(buf)
    assert (view.n, view.text) == (7, "before")
    shown = np.frombuffer(buf, np.uint8)
    # Whoever may write can: what is left of the view mustn't depend on it.
    ctypes.memset(shown.ctypes.data, 0xFF, shown.nbytes)
    assert (view.n, view.text) == (7, "before")


def test_what_is_no_buffer_is_an_error(leaf_type: yj.MessageType) -> None:
    for value in (5, "text", None):
        with pytest.raises(TypeError):
            is_immutable(value)
        with pytest.raises(TypeError):
            leaf_type.view(value)
