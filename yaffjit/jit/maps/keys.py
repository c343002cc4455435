"""What a map is looked up by: the types of keys that jitted code takes, and their form for a search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit
from numba.core import cgutils, types

from yaffjit.errors import NumberError
from yaffjit.jit.emit.outline import I8, I32, I64
from yaffjit.jit.integers.type import operand, uint64_exact
from yaffjit.jit.maps.access import access_of
from yaffjit.jit.maps.type import MapType
from yaffjit.jit.records import raise_jitted
from yaffjit.jit.refusals import shown
from yaffjit.jit.text.rules import are_frozen
from yaffjit.jit.text.type import BytesType, TextLikeType, TextType, constant_text, text_type

_BOOLEANS = (types.Boolean, types.BooleanLiteral)
_TEXTS = (types.StringLiteral, types.UnicodeType, TextLikeType, types.Bytes)


def key_fault(typ: MapType, given: types.Type) -> str | None:
    """Why a look-up doesn't take a type as a key, if it doesn't; Python raises TypeError then."""
    given = _bare(given)
    kind = typ.key_field.kind
    if kind == "string":
        is_key, wanted = isinstance(given, _TEXTS), "text"
    elif isinstance(given, _BOOLEANS):
        if kind == "bool":
            return None
        return f"Field {typ.entry.full_name}.key: Expected an int, got a boolean."
    else:
        is_key, wanted = operand(given) not in (None, types.float64), "integers"
    return None if is_key else f"{typ.field_name} is looked up by {wanted}, not by {_shown(given)}"


def key_argument(typ: MapType, given: types.Type) -> types.Type:
    """The type that a look-up takes a key as that has no `key_fault`; None raises when the code runs."""
    given = _bare(given)
    if typ.key_field.kind == "string" or isinstance(given, types.IntegerLiteral):
        return given
    if typ.key_field.kind == "bool" and isinstance(given, _BOOLEANS):
        return types.boolean
    taken = operand(given)
    assert taken is not None
    return taken


def _bare(given: types.Type) -> types.Type:
    return given.type if isinstance(given, types.Optional) else given


def _shown(given: types.Type) -> str:
    if isinstance(given, types.Literal):
        return repr(given.literal_value)
    return shown(given)


def find_pair(
    context: Any, builder: ir.IRBuilder, typ: MapType, native: Any, given: types.Type, value: ir.Value
) -> Any:
    """The pair with a key, or none, as the type's `MapAccess` has it.

    Raises (in the code that is built) ValueError for an integer that the key's type doesn't hold.

    Args:
        native: the map's struct.
        given: the key's type, from `key_argument`.
    """

    def search(key: list[ir.Value], frozen: bool = True) -> Any:
        return access_of(typ).find(context, builder, typ, native, key, frozen)

    kind = typ.key_field.kind
    if kind == "string":
        return _find_text(context, builder, given, value, search)
    if kind == "bool":
        return search([builder.zext(builder.icmp_unsigned("!=", value, value.type(0)), I8)])
    _refuse_out_of_range(context, builder, typ, given, value)
    return search([value if typ.key_field.width == 8 else builder.trunc(value, I32)])


def _find_text(
    context: Any,
    builder: ir.IRBuilder,
    given: types.Type,
    value: ir.Value,
    search: Callable[..., Any],
) -> Any:
    if isinstance(given, types.StringLiteral):
        given, value = text_type, constant_text(context, builder, text_type, given.literal_value)
    if isinstance(given, (TextType, BytesType)):
        text = cgutils.create_struct_proxy(given)(context, builder, value)
        return search([text.pointer, text.nbytes], are_frozen([given]))
    if isinstance(given, types.Bytes):
        array = context.make_array(given)(context, builder, value)
        return search([array.data, array.nitems], frozen=False)
    string = cgutils.create_struct_proxy(types.unicode_type)(context, builder, value)
    is_ascii = builder.icmp_unsigned("!=", string.is_ascii, string.is_ascii.type(0))
    ascii, points = (string.data, string.length), (string.data, string.length, string.kind)
    pairs, blocks = [], []
    with builder.if_else(is_ascii, likely=True) as branches:
        for branch, key in zip(branches, (ascii, points), strict=True):
            with branch:
                pairs.append(search(list(key), frozen=False))
                blocks.append(builder.block)
    found = builder.phi(pairs[0].type)
    for pair, block in zip(pairs, blocks, strict=True):
        found.add_incoming(pair, block)
    return found


# ---- integers that the key's type doesn't hold ----


@njit
def _raise_out_of_range(number):  # type: ignore[no-untyped-def]
    raise NumberError("Value out of range: {}", number)


def _refuse_out_of_range(
    context: Any, builder: ir.IRBuilder, typ: MapType, given: types.Type, value: ir.Value
) -> None:
    unsigned_key = typ.key_field.kind in ("uint32", "fixed32", "uint64", "fixed64")
    bits = 8 * typ.key_field.width
    low, high = (0, 2**bits - 1) if unsigned_key else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    unsigned = given is uint64_exact or given is types.uint64
    if isinstance(given, types.IntegerLiteral) and low <= given.literal_value <= high:
        return
    if unsigned:
        outside = [builder.icmp_unsigned(">", value, I64(high))] if high < 2**64 - 1 else []
    else:
        outside = [builder.icmp_signed(">", value, I64(high))] if high < 2**63 - 1 else []
        outside += [builder.icmp_signed("<", value, I64(low))] if low > -(2**63) else []
    for condition in outside:
        with cgutils.if_unlikely(builder, condition):
            arg_type = types.uint64 if unsigned else types.int64
            raise_jitted(context, builder, _raise_out_of_range, (arg_type,), [value])
