"""``index.rows(key)`` in jitted code: rows of an index by their keys, one or an array of integers."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.core.typing.templates import Signature
from numba.extending import intrinsic, overload_method

from yaffjit.errors import CompileAttributeError, CompileTypeError, IndexFileError
from yaffjit.jit.emit.outline import I64
from yaffjit.jit.integers.type import uint64_exact
from yaffjit.jit.refusals import refusal, shown
from yaffjit.jit.text.rules import members
from yaffjit.jit.text.type import TextLikeType
from yaffjit.jit.types import RecordsType
from yaffjit.kernels.keys import (
    ABSENT,
    KIND_AT,
    ROWS_AT,
    SIGNED,
    TEXT,
    UNSIGNED,
    find_integer,
    find_integers,
    find_text,
)
from yaffjit.kernels.memory import data_address, load_i64

KEYS_BEFORE = 8  # bytes before the table of records: `yaffjit.rows.chunks`


@intrinsic
def _keys_of(typingctx, records):  # type: ignore[no-untyped-def]
    """What rows are looked up by (0 for nothing), the first row of the records, and how many they are."""

    def codegen(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        native = cgutils.create_struct_proxy(records)(context, builder, args[0])
        at = builder.sub(builder.ptrtoint(native.table, I64), I64(KEYS_BEFORE))
        keys = builder.load(builder.inttoptr(at, I64.as_pointer()), align=8)
        return context.make_tuple(builder, sig.return_type, [keys, native.start, native.count])

    return types.UniTuple(types.int64, 3)(records), codegen


@intrinsic
def _bits(typingctx, number):  # type: ignore[no-untyped-def]
    """An integer as 64 bits, int64."""

    def codegen(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        if number is uint64_exact or args[0].type.width == 64:
            return args[0]
        return (builder.sext if number.signed else builder.zext)(args[0], I64)

    return types.int64(number), codegen


@intrinsic
def _span(typingctx, text):  # type: ignore[no-untyped-def]
    """Address and number of the bytes of a text of ours, or of bytes."""

    def codegen(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        pointer, nbytes = members(context, builder, text, args[0])
        return context.make_tuple(builder, sig.return_type, [builder.ptrtoint(pointer, I64), nbytes])

    return types.UniTuple(types.int64, 2)(text), codegen


@njit
def _tables(keys, start, count, is_text):  # type: ignore[no-untyped-def]
    """The set to look up in, once it's known to fit the records and the keys."""
    if keys == 0:
        raise IndexFileError(
            "these records have no keys to look rows up by: only an index has that was built with key="
        )
    if start != 0 or count != load_i64(keys + ROWS_AT):
        raise IndexFileError("rows are looked up in a whole index, not in a slice of one")
    if is_text and load_i64(keys + KIND_AT) != TEXT:
        raise TypeError("the keys of this index are integers, not text")
    if not is_text and load_i64(keys + KIND_AT) == TEXT:
        raise TypeError("the keys of this index are text, not integers")
    return keys


@njit
def _sound(row):  # type: ignore[no-untyped-def]
    """A row, once no table was found damaged."""
    if row < ABSENT:
        raise IndexFileError("a key table of the index is damaged: a key leads to what isn't in its part")
    return row


@njit
def _is_impossible(tables, bits, signed):  # type: ignore[no-untyped-def]
    """Whether no field of the keys' kind can have an integer, whose sign its type says."""
    return bits < 0 and load_i64(tables + KIND_AT) == (UNSIGNED if signed else SIGNED)


@njit
def _utf8(text):  # type: ignore[no-untyped-def]
    """A string's bytes, and how many they are."""
    raw = np.empty(4 * len(text), np.uint8)
    n = 0
    for character in text:
        point = ord(character)
        if point < 0x80:
            raw[n] = point
            n += 1
            continue
        following = 1 if point < 0x800 else (2 if point < 0x10000 else 3)
        raw[n] = (0xFF << 7 - following) & 0xFF | point >> 6 * following
        for i in range(following):
            raw[n + 1 + i] = 0x80 | (point >> 6 * (following - 1 - i)) & 0x3F
        n += 1 + following
    return raw, n


@njit
def _find_in(tables, raw, nbytes):  # type: ignore[no-untyped-def]
    return find_text(tables, data_address(raw), nbytes)


@overload_method(RecordsType, "rows")
def _rows(records, keys):  # type: ignore[no-untyped-def]
    """The row of a key, -1 where none has it; of an array of integers an array of rows."""
    if records.scattered:
        text = (
            "these records have no 'rows' in jitted code: only a whole index has, of parts that aren't tiny"
        )
        raise refusal(CompileAttributeError, text)
    given = types.unliteral(keys) if isinstance(keys, types.Literal) else keys
    if isinstance(given, types.Array) and given.ndim == 1 and isinstance(given.dtype, types.Integer):
        return _of_array(given.dtype.signed)
    if given is uint64_exact or isinstance(given, types.Integer):
        return _of_integer(given is not uint64_exact and given.signed)
    if isinstance(given, types.UnicodeType):
        return _of_string
    if isinstance(given, (TextLikeType, types.Bytes)):
        return _of_text
    wanted = "an integer, an array of integers, or text"
    raise refusal(CompileTypeError, f"rows are looked up by {wanted}, not by {shown(keys)}")


def _of_integer(signed: bool) -> Any:
    def rows(records, keys):  # type: ignore[no-untyped-def]
        address, start, count = _keys_of(records)
        tables = _tables(address, start, count, False)
        bits = _bits(keys)
        if _is_impossible(tables, bits, signed):
            return ABSENT
        return _sound(find_integer(tables, bits))

    return rows


def _of_array(signed: bool) -> Any:
    def rows(records, keys):  # type: ignore[no-untyped-def]
        address, start, count = _keys_of(records)
        tables = _tables(address, start, count, False)
        wide = keys.astype(np.int64)
        found = np.empty(len(wide), np.int64)
        find_integers(tables, wide, found, 0, len(wide))
        for i in range(len(wide)):
            if _is_impossible(tables, wide[i], signed):
                found[i] = ABSENT
            _sound(found[i])
        return found

    return rows


def _of_text(records, keys):  # type: ignore[no-untyped-def]
    address, start, count = _keys_of(records)
    tables = _tables(address, start, count, True)
    at, nbytes = _span(keys)
    return _sound(find_text(tables, at, nbytes))


def _of_string(records, keys):  # type: ignore[no-untyped-def]
    address, start, count = _keys_of(records)
    tables = _tables(address, start, count, True)
    raw, nbytes = _utf8(keys)
    return _sound(_find_in(tables, raw, nbytes))
