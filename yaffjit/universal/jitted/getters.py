"""Typed values in jitted code: ``v.get_int("a.b[3].c", 0)``, ``v["a"].as_float()``."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import types
from numba.extending import intrinsic, overload_method

from yaffjit.jit.emit.outline import NULL, POINTER
from yaffjit.jit.text.type import make_text, text_type
from yaffjit.kernels.memory import data_address
from yaffjit.kernels.universal_columns import put_utf8
from yaffjit.kernels.universal_scan import (
    ABSENT,
    ORDER_SHIFT,
    float_of,
    int_of,
    next_code,
    text_length,
    width_of,
)
from yaffjit.kernels.universal_scan import (
    NULL as NULL_READ,
)
from yaffjit.universal.jitted.access import code_of, find_path, path_literal, path_words
from yaffjit.universal.jitted.faults import BOOL, INTEGER, NUMBER, TEXT, raise_kind, raise_wrong
from yaffjit.universal.jitted.type import UniversalType, part_of, parts

_HEADROOM = 8


@njit(forceinline=True)
def is_null(value, word):  # type: ignore[no-untyped-def]
    """Whether a word names null; it's wrong unless the flags allow it."""
    data, nbytes, _, flags = parts(value)
    code, _, _ = next_code(data, nbytes, word >> 5, word & 31, (flags & 1) != 0)
    if code == 0 and (flags & NULL_READ) == 0:
        raise_wrong(data, nbytes, flags)
    return code == 0


@njit(forceinline=True)
def _scalar(value, word):  # type: ignore[no-untyped-def]
    """The code of a scalar that isn't text, 4 of others; the address of its payload; the order of bytes."""
    data, nbytes, _, flags = parts(value)
    code, pos, _ = next_code(data, nbytes, word >> 5, word & 31, (flags & 1) != 0)
    if code < 5 or code > 12 or width_of(code) > nbytes - pos:
        code = 4
    return code, data + pos, (flags >> ORDER_SHIFT) & 3


@njit
def _refuse(value, word, path, wanted):  # type: ignore[no-untyped-def]
    """Raise for a value that is of another kind, or isn't whole."""
    data, nbytes, _, flags = parts(value)
    code = code_of(value, word)
    if wanted == INTEGER:
        fits = 7 <= code <= 10
    elif wanted == NUMBER:
        fits = 7 <= code <= 12
    else:
        fits = code == 5 or code == 6
    if fits:
        raise_wrong(data, nbytes, flags)
    raise_kind(path, code, wanted)


@njit(forceinline=True)
def int_at(value, word, path):  # type: ignore[no-untyped-def]
    """The integer that a word names."""
    code, at, order = _scalar(value, word)
    if code < 7 or code > 10:
        _refuse(value, word, path, INTEGER)
    return int_of(at, code, order)


@njit(forceinline=True)
def float_at(value, word, path):  # type: ignore[no-untyped-def]
    """The number that a word names, as a float."""
    code, at, order = _scalar(value, word)
    if code < 7:
        _refuse(value, word, path, NUMBER)
    return float_of(at, code, order) if code > 10 else float(int_of(at, code, order))


@njit(forceinline=True)
def bool_at(value, word, path):  # type: ignore[no-untyped-def]
    """The bool that a word names."""
    code, _, _ = _scalar(value, word)
    if code != 5 and code != 6:
        _refuse(value, word, path, BOOL)
    return code == 5


@intrinsic
def _string(typingctx, at, nbytes):  # type: ignore[no-untyped-def]
    """A string of bytes that are UTF-8."""

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: list[ir.Value]) -> ir.Value:
        pointer = builder.inttoptr(args[0], POINTER)
        text = make_text(context, builder, text_type, pointer, args[1], NULL)
        return context.cast(builder, text, text_type, types.unicode_type)

    return types.unicode_type(types.int64, types.int64), codegen


@njit
def text_at(value, word, path):  # type: ignore[no-untyped-def]
    """The text that a word names."""
    code = code_of(value, word)
    if code < 13:
        raise_kind(path, code, TEXT)
    data, nbytes, _, flags = parts(value)
    code, pos, _ = next_code(data, nbytes, word >> 5, word & 31, (flags & 1) != 0)
    length, pos = text_length(data, nbytes, pos)
    if length < 0:
        raise_wrong(data, nbytes, flags)
    raw = np.empty(_HEADROOM + 2 * length, np.uint8)
    begin = data_address(raw) + _HEADROOM
    put = put_utf8(begin, data + pos, length, code)
    if put < 0:
        raise_wrong(data, nbytes, flags)
    made = _string(begin, put)
    raw[0] = 0  # it lives until here
    return made


def _register(kind: str, reader: Any, default: Any) -> None:
    """Give values ``get_kind(path, default)`` and ``as_kind()``."""

    @overload_method(UniversalType, f"get_{kind}", prefer_literal=True)
    def get(value, path, otherwise=default):  # type: ignore[no-untyped-def]
        path_literal(path)

        def got(value, path, otherwise=default):  # type: ignore[no-untyped-def]
            word = find_path(value, path_words(path))
            if word == ABSENT or is_null(value, word):
                return otherwise
            return reader(value, word, path)

        return got

    @overload_method(UniversalType, f"as_{kind}")
    def convert(value):  # type: ignore[no-untyped-def]
        return lambda value: reader(value, parts(value)[2], "")


_register("int", int_at, 0)
_register("float", float_at, 0.0)
_register("bool", bool_at, False)
_register("text", text_at, "")


@overload_method(UniversalType, "has", prefer_literal=True)
def _has(value, path):  # type: ignore[no-untyped-def]
    path_literal(path)
    return lambda value, path: find_path(value, path_words(path)) != ABSENT


@overload_method(UniversalType, "at", prefer_literal=True)
def _at(value, path):  # type: ignore[no-untyped-def]
    depth = len(path_literal(path).steps)

    def at(value, path):  # type: ignore[no-untyped-def]
        word = find_path(value, path_words(path))
        if word == ABSENT:
            raise KeyError(path)
        return part_of(value, word, depth)

    return at
