"""Compiles reader.c with the system's compiler and calls it over the arrays that yaffjit reads."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SOURCE = Path(__file__).with_name("reader.c")
FLAGS = ("-O3", "-march=native", "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")


def compiler() -> str:
    """The C compiler: ``$CC``, else cc."""
    found = shutil.which(os.environ.get("CC", "cc"))
    if found is None:
        raise SystemExit("benchmarks: a C compiler is needed; none is on the PATH as cc")
    return found


def compiler_version() -> str:
    done = subprocess.run([compiler(), "--version"], capture_output=True, text=True, check=True)
    return f"{done.stdout.splitlines()[0]} {' '.join(FLAGS[:2])}"


class Reader:
    """reader.c, loaded; ``data`` and ``offsets`` as `yaffjit.rows` takes them."""

    def __init__(self, folder: Path) -> None:
        library = folder / "reader.so"
        subprocess.run([compiler(), *FLAGS, str(SOURCE), "-o", str(library)], check=True)
        self._library = ctypes.CDLL(str(library))
        for name in ("sum_chain", "sum_hoisted", "sum_first"):
            function = getattr(self._library, name)
            function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
            function.restype = ctypes.c_uint64
        for name in ("store_chain", "store_hoisted"):
            function = getattr(self._library, name)
            function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]
            function.restype = None

    def sum(self, name: str, data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Any:
        """A function without arguments that returns the sum of nine fields over all rows, modulo 2**64."""
        function = getattr(self._library, name)
        arguments = (data.ctypes.data, offsets.ctypes.data, len(offsets) - 1)
        return lambda: function(*arguments)

    def store(self, name: str, data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Any:
        """A function without arguments that returns the nine fields of all rows, shape (rows, 9)."""
        function = getattr(self._library, name)
        out = np.empty((len(offsets) - 1, 9), np.uint64)
        arguments = (data.ctypes.data, offsets.ctypes.data, len(offsets) - 1, out.ctypes.data)

        def call() -> NDArray[np.uint64]:
            function(*arguments)
            return out

        return call

    def rows(
        self, name: str, data: NDArray[np.uint8], offsets: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> Any:
        """A function without arguments that returns the sum over the rows in their order."""
        function = getattr(self._library, name)
        function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
        function.restype = ctypes.c_double if name == "sum_of_banners" else ctypes.c_uint64
        return lambda: function(data.ctypes.data, offsets.ctypes.data, rows.ctypes.data, len(rows))

    def items(self, name: str, data: NDArray[np.uint8], offsets: NDArray[np.int64], *more: Any) -> Any:
        """A function without arguments that calls one of those for items.proto.

        Args:
            more: what it takes besides: integers, and arrays or addresses as `ctypes.c_void_p`.
        """
        function = getattr(self._library, name)
        function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, *map(_c_type, more)]
        is_integer = name.startswith(("count_", "hash_"))
        function.restype = ctypes.c_int64 if is_integer else ctypes.c_double
        return partial(function, data.ctypes.data, offsets.ctypes.data, *more)


class Wire:
    """wire.c, loaded."""

    def __init__(self, folder: Path) -> None:
        library = folder / "wire.so"
        source = SOURCE.with_name("wire.c")
        subprocess.run([compiler(), *FLAGS, str(source), "-o", str(library)], check=True)
        self._library = ctypes.CDLL(str(library))

    def banners(self, data: bytes, offsets: NDArray[np.int64], out: list[NDArray[Any]]) -> Any:
        """A function without arguments that stores the five features of all rows, and returns the arrays."""
        function = self._library.banners
        function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64, *[ctypes.c_void_p] * len(out)]
        function.restype = ctypes.c_int64
        places = [array.ctypes.data for array in out]

        def call() -> list[NDArray[Any]]:
            assert function(data, offsets.ctypes.data, len(offsets) - 1, *places) >= 0
            return out

        return call

    def campaigns(self, name: str, data: bytes, offsets: NDArray[np.int64]) -> Any:
        """A function without arguments that returns a sum over all rows."""
        function = getattr(self._library, name)
        function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64]
        function.restype = ctypes.c_int64
        return lambda: function(data, offsets.ctypes.data, len(offsets) - 1)


def _c_type(value: Any) -> Any:
    return ctypes.c_int64 if isinstance(value, int) else ctypes.c_void_p


def hash_function() -> ctypes.c_void_p:
    """The address of CPython's hash of bytes in this process."""
    name = "_Py_HashBytes" if sys.version_info < (3, 14) else "Py_HashBuffer"
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p)
