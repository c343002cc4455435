"""Look-ups in jitted code: ``v["a"]["b"][3]``, ``len``, ``in``; and views of arrays."""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

from yaffjit.errors import CompileTypeError, CompileValueError
from yaffjit.jit.emit.outline import I64
from yaffjit.jit.key_rows import _span, _utf8
from yaffjit.jit.message_types import _take, bytes_of, is_bytes
from yaffjit.jit.refusals import refusal, shown
from yaffjit.jit.text.type import TextType, constant_bytes
from yaffjit.kernels.memory import data_address
from yaffjit.kernels.universal_scan import (
    ABSENT,
    BAD,
    code_at,
    count_items,
    find,
    to_index,
    to_key,
)
from yaffjit.universal.codec import read_options
from yaffjit.universal.jitted.faults import OBJECT_OR_COLLECTION, raise_kind, raise_wrong
from yaffjit.universal.jitted.type import UniversalType, owned_view_type, part_of, parts
from yaffjit.universal.paths import Path, path_of
from yaffjit.universal.views import view


def literal(typ: types.Type) -> Any:
    """The value that a type of a literal has, None for others."""
    return typ.literal_value if isinstance(typ, types.Literal) else None


def path_literal(typ: types.Type) -> Path:
    """The path that an argument spells; it must be written in the code."""
    if not isinstance(typ, types.StringLiteral):
        raise refusal(CompileTypeError, f"a path is written in the code, as 'a.b[3].c': not {shown(typ)}")
    try:
        return path_of(typ.literal_value)
    except ValueError as error:
        raise refusal(CompileValueError, str(error)) from None


@intrinsic(prefer_literal=True)
def path_words(typingctx, path):  # type: ignore[no-untyped-def]
    """``path_words(path)``: the address of the words of a literal path."""
    words = path_literal(path)

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: list[ir.Value]) -> ir.Value:
        return builder.ptrtoint(constant_bytes(builder, bytes(words)), I64)

    return types.int64(path), codegen


@njit(forceinline=True)
def find_path(value, words):  # type: ignore[no-untyped-def]
    """The word of what a path leads to, or `ABSENT`."""
    data, nbytes, word, flags = parts(value)
    found = find(data, nbytes, word, flags, words)
    if found == BAD:
        raise_wrong(data, nbytes, flags)
    return found


@njit
def code_of(value, word):  # type: ignore[no-untyped-def]
    """The code of a value of the document."""
    data, nbytes, _, flags = parts(value)
    code = code_at(data, nbytes, word, flags)
    if code == BAD:
        raise_wrong(data, nbytes, flags)
    return code


@njit
def _find_key(value, key, key_nbytes):  # type: ignore[no-untyped-def]
    data, nbytes, word, flags = parts(value)
    pos, half = to_key(data, nbytes, word >> 5, word & 31, flags, key, key_nbytes)
    if pos == BAD:
        raise_wrong(data, nbytes, flags)
    return (pos << 5) | half if pos >= 0 else ABSENT


@njit
def _find_string(value, key):  # type: ignore[no-untyped-def]
    raw, nbytes = _utf8(key)
    return _find_key(value, data_address(raw), nbytes)


@njit
def _find_text(value, key):  # type: ignore[no-untyped-def]
    at, nbytes = _span(key)
    return _find_key(value, at, nbytes)


@njit
def _find_index(value, index):  # type: ignore[no-untyped-def]
    data, nbytes, word, flags = parts(value)
    pos, half = to_index(data, nbytes, word >> 5, word & 31, flags, index)
    if pos == BAD:
        raise_wrong(data, nbytes, flags)
    return (pos << 5) | half if pos >= 0 else ABSENT


@intrinsic(prefer_literal=True)
def _key_place(typingctx, key):  # type: ignore[no-untyped-def]
    """Address and number of the bytes of a literal key."""
    raw = literal(key).encode("utf-8", "surrogatepass")

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: list[ir.Value]) -> ir.Value:
        at = builder.ptrtoint(constant_bytes(builder, raw), I64)
        return context.make_tuple(builder, sig.return_type, [at, I64(len(raw))])

    return types.UniTuple(types.int64, 2)(key), codegen


def _finder(key: types.Type) -> Any:
    """What finds a key of a type; None if keys aren't of such a type."""
    if isinstance(key, types.StringLiteral):

        def found(value, key):  # type: ignore[no-untyped-def]
            at, nbytes = _key_place(key)
            return _find_key(value, at, nbytes)

        return njit(found)
    if isinstance(key, types.UnicodeType):
        return _find_string
    return _find_text if isinstance(key, TextType) else None


@overload(operator.getitem, prefer_literal=True)
def _getitem(value, key):  # type: ignore[no-untyped-def]
    if not isinstance(value, UniversalType):
        return None
    finder = _finder(key)
    if finder is not None:

        def of_key(value, key):  # type: ignore[no-untyped-def]
            word = finder(value, key)
            if word == ABSENT:
                raise KeyError(str(key))
            return part_of(value, word, 1)

        return of_key
    if isinstance(key, types.Integer):

        def of_index(value, key):  # type: ignore[no-untyped-def]
            word = _find_index(value, key)
            if word == ABSENT:
                raise IndexError("index out of range of a collection")
            return part_of(value, word, 1)

        return of_index
    raise refusal(CompileTypeError, f"values are looked up by text or by integers, not by {shown(key)}")


@overload(operator.contains, prefer_literal=True)
def _contains(value, key):  # type: ignore[no-untyped-def]
    if not isinstance(value, UniversalType):
        return None
    finder = _finder(key)
    if finder is None:
        raise refusal(CompileTypeError, f"only text is looked for in a value, not {shown(key)}")
    return lambda value, key: finder(value, key) != ABSENT


@overload(len)
def _len(value):  # type: ignore[no-untyped-def]
    if not isinstance(value, UniversalType):
        return None

    def length(value):  # type: ignore[no-untyped-def]
        data, nbytes, word, flags = parts(value)
        count = count_items(data, nbytes, word >> 5, word & 31, flags)
        if count == ABSENT:
            raise_kind("", code_of(value, word), OBJECT_OR_COLLECTION)
        if count == BAD:
            raise_wrong(data, nbytes, flags)
        return count

    return length


# ---- views of arrays ----


@intrinsic(prefer_literal=True)
def _view_of(typingctx, buf, flags):  # type: ignore[no-untyped-def]
    """The value that the bytes of an array begin with; it counts the array's owner."""
    bits = literal(flags)

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: list[ir.Value]) -> ir.Value:
        given, nbytes, owner = bytes_of(context, builder, buf, args[0])
        data, record = _take(context, builder, given, nbytes, owner)
        native = cgutils.create_struct_proxy(owned_view_type)(context, builder)
        native.data = builder.ptrtoint(data, I64)
        native.nbytes = nbytes
        native.word = I64(0)
        native.flags = I64(bits)
        native.owner = record
        return native._getvalue()

    return owned_view_type(buf, flags), codegen


def _option(typ: Any) -> Any:
    """An option of `view` that is written in the code or left out, else None."""
    if not isinstance(typ, types.Type):
        return typ
    return typ.value if isinstance(typ, types.Omitted) else literal(typ)


@overload(view, prefer_literal=True)
def _view(buf, order="swapped", compact=True, null=False, max_depth=512):  # type: ignore[no-untyped-def]
    if not is_bytes(buf):
        text = f"view() takes a contiguous array of uint8, or bytes, not {shown(buf)}"
        raise refusal(CompileTypeError, text)
    given = [_option(typ) for typ in (order, compact, null, max_depth)]
    if None in given:
        raise refusal(CompileTypeError, "the options of view() are written in the code")
    try:
        _, flags = read_options(bool(given[1]), given[0], bool(given[2]), False, None, given[3])
    except ValueError as error:
        raise refusal(CompileValueError, str(error)) from None

    def made(buf, order="swapped", compact=True, null=False, max_depth=512):  # type: ignore[no-untyped-def]
        value = _view_of(buf, flags)
        code_of(value, 0)
        return value

    return made
