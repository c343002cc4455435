"""What jitted code raises for documents that are wrong, or values of another kind: what Python's views raise.

An exception of jitted code is made of numbers. So the error itself is found when it's raised, while the bytes
are sure to be there, and kept until the exception is made of its number.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic

from yaffjit.jit.emit.outline import I64
from yaffjit.universal.codec import refuse
from yaffjit.universal.codes import COLLECTION, FALSE, FLOAT32, NULL, OBJECT, TRUE, UTF8
from yaffjit.universal.compiled import options_of
from yaffjit.universal.refusals import DocumentError, KindError

_FIND = "yaffjit_universal_fault"
_MOST_KEPT = 64
_faults: dict[int, Exception] = {}
# Small ones, which CPython has made already: numba doesn't give the number of an exception back.
_numbers = itertools.cycle(range(256))

INTEGER, NUMBER, BOOL, TEXT, OBJECT_OR_COLLECTION, AN_OBJECT, A_COLLECTION = range(7)
_WANTED = (
    "an integer",
    "a number",
    "a bool",
    "text",
    "an object or a collection",
    "an object",
    "a collection",
)


class JittedDocumentError(DocumentError):
    """Jitted code read bytes that aren't a document; as `loads` says it.

    Args:
        number: of the error that was found.
    """

    def __init__(self, number: int) -> None:
        found = _faults.get(number)  # numba may make the exception more than once
        if isinstance(found, DocumentError):
            assert found.position is not None
            super().__init__(found.text, found.position, found.path)
            self.hint = found.hint
        else:
            super().__init__("the bytes have changed while they were read", 0)

    def __reduce__(self) -> Any:
        return DocumentError, self.args


class JittedKindError(KindError):
    """A value in jitted code isn't of the kind that's asked for.

    Args:
        path: that was asked for, ``""`` for the value itself.
        code: of the value.
        wanted: an index of what was asked for.
    """

    def __init__(self, path: str, code: int, wanted: int) -> None:
        super().__init__(path, _kind(code), _WANTED[wanted])

    def __reduce__(self) -> Any:
        return KindError, self.args


def _kind(code: int) -> str:
    if code in (OBJECT, COLLECTION):
        return "an object" if code == OBJECT else "a collection"
    if code in (TRUE, FALSE):
        return "a bool"
    if code == NULL:
        return "null"
    return "text" if code >= UTF8 else "a float" if code >= FLOAT32 else "an integer"


@ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
def _find(address: int | None, nbytes: int, flags: int) -> int:
    """The number of what's wrong with a document."""
    number = next(_numbers)
    while len(_faults) >= _MOST_KEPT:
        _faults.pop(next(iter(_faults)), None)
    try:
        refuse(ctypes.string_at(address or 0, nbytes), options_of(flags))
    except (DocumentError, ValueError) as error:
        _faults[number] = error
    return number


llvm.add_symbol(_FIND, ctypes.cast(_find, ctypes.c_void_p).value)


@intrinsic
def _found(typingctx, address, nbytes, flags):  # type: ignore[no-untyped-def]
    """What `_find` gives."""

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: list[ir.Value]) -> ir.Value:
        kind = ir.FunctionType(I64, [I64, I64, I64])
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, _FIND), args)

    return types.int64(types.int64, types.int64, types.int64), codegen


@njit
def raise_wrong(data, nbytes, flags):  # type: ignore[no-untyped-def]
    """Raise what is wrong with a document."""
    raise JittedDocumentError(_found(data, nbytes, flags))


@njit
def raise_kind(path, code, wanted):  # type: ignore[no-untyped-def]
    """Raise for a value of another kind."""
    raise JittedKindError(path, code, wanted)
