"""What a field may be set to in jitted code, and what it becomes: a number as it's written, or bytes.

What google.protobuf refuses is refused: by its type when the code is compiled, in protobuf's words as far as
they fit, by its value when it runs.
"""

from __future__ import annotations

from typing import Any, NoReturn

from llvmlite import ir
from numba import njit
from numba.core import cgutils, types

from yaffjit.errors import CompileTypeError, CompileValueError, NumberError, near_names
from yaffjit.jit.builder.kernels import call
from yaffjit.jit.builder.type import as_address, raise_if_null
from yaffjit.jit.emit.outline import I1, I32, I64, NULL, POINTER
from yaffjit.jit.integers import uint64_exact
from yaffjit.jit.records import raise_jitted
from yaffjit.jit.refusals import refusal, shown
from yaffjit.jit.text.decode import count_points
from yaffjit.jit.text.rules import raise_if
from yaffjit.jit.text.type import BytesType, TextType, constant_bytes, text_type
from yaffjit.kernels import builder_put
from yaffjit.plan.build import Plan
from yaffjit.schema.model import FieldDef

__all__ = ["check_value", "is_text", "number", "text"]

_RANGES = {
    "int32": (-(2**31), 2**31 - 1),
    "sint32": (-(2**31), 2**31 - 1),
    "sfixed32": (-(2**31), 2**31 - 1),
    "enum": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "fixed32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "sint64": (-(2**63), 2**63 - 1),
    "sfixed64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
    "fixed64": (0, 2**64 - 1),
}
_STRINGS = (types.UnicodeType, types.StringLiteral, TextType)
_BYTES = (types.Bytes, BytesType)


def is_text(f: FieldDef) -> bool:
    return f.kind in ("string", "bytes")


# ---- types ----


def check_value(plan: Plan, where: str, f: FieldDef, typ: types.Type) -> None:
    """Refuse what a scalar or text field can't be set to, by its type.

    Args:
        where: the field in the error's sentence.
    """
    given = typ.type if isinstance(typ, types.Optional) else typ
    if f.kind == "string" and not isinstance(given, _STRINGS + _BYTES):
        _refuse(where, "takes text", typ)
    if f.kind == "bytes" and not isinstance(given, _BYTES):
        _refuse(where, "takes bytes", typ)
    if f.kind == "enum" and isinstance(given, types.StringLiteral):
        _label(plan, f, given.literal_value)
    elif f.kind in _RANGES and not _is_integer(given):
        if isinstance(given, (types.Boolean, types.BooleanLiteral)):
            raise refusal(CompileTypeError, f"Field {where}: Expected an int, got a boolean.")
        _refuse(where, "takes an integer", typ)
    if f.kind == "bool" and not (_is_integer(given) or _is_bool(given)):
        _refuse(where, "takes a bool", typ)
    is_number = _is_integer(given) or _is_bool(given) or isinstance(given, types.Float)
    if f.kind in ("float", "double") and not is_number:
        _refuse(where, "takes a number", typ)


def _refuse(where: str, takes: str, typ: types.Type) -> NoReturn:
    raise refusal(CompileTypeError, f"Field {where} {takes}, not {shown(typ)}")


def _is_integer(typ: types.Type) -> bool:
    return typ is uint64_exact or isinstance(typ, (types.Integer, types.IntegerLiteral, types.IntEnumMember))


def _is_bool(typ: types.Type) -> bool:
    return isinstance(typ, (types.Boolean, types.BooleanLiteral))


def _label(plan: Plan, f: FieldDef, label: str) -> int:
    numbers = dict(plan.schema.enums[f.type_name].values)
    if label not in numbers:
        raise refusal(CompileValueError, f'unknown enum label "{label}"{near_names(label, numbers)}')
    return numbers[label]


# ---- numbers ----


@njit
def _raise_range(text, value):  # type: ignore[no-untyped-def]
    raise NumberError(text, value)


def number(
    context: Any, builder: ir.IRBuilder, plan: Plan, f: FieldDef, typ: types.Type, value: ir.Value
) -> tuple[ir.Value, ir.Value]:
    """A number as a key of a map, and as it's written, by `check_value` accepted; raises what it must."""
    typ, value = _given(context, builder, typ, value)
    if f.kind == "enum" and isinstance(typ, types.StringLiteral):
        same = I64(_label(plan, f, typ.literal_value))
        return same, same
    if f.kind in ("float", "double"):
        bits = _float_bits(context, builder, f, typ, value)
        return bits, bits
    if f.kind == "bool":
        bits = builder.zext(_truth(builder, typ, value), I64)
        return bits, bits
    plain = _integer(context, builder, f, typ, value)
    if f.kind == "enum" and plan.schema.enums[f.type_name].closed:
        _check_member(context, builder, plan, f, plain)
    return plain, _as_written(builder, f, plain)


def _given(
    context: Any, builder: ir.IRBuilder, typ: types.Type, value: ir.Value
) -> tuple[types.Type, ir.Value]:
    """A value out of its optional; raises TypeError of None."""
    if not isinstance(typ, types.Optional):
        return typ, value
    optional = context.make_helper(builder, typ, value=value)
    raise_if(context, builder, builder.not_(optional.valid), TypeError, "a field can't be set to None")
    return typ.type, optional.data


def _as_written(builder: ir.IRBuilder, f: FieldDef, plain: ir.Value) -> ir.Value:
    """An integer as the varint or the fixed value that protobuf writes."""
    if f.kind in ("sint32", "sint64"):
        return builder.xor(builder.shl(plain, I64(1)), builder.ashr(plain, I64(63)))
    if f.kind == "sfixed32":
        return builder.and_(plain, I64(0xFFFFFFFF))
    return plain


def _is_unsigned(typ: types.Type) -> bool:
    return typ is uint64_exact or (isinstance(typ, types.Integer) and not typ.signed)


def _integer(context: Any, builder: ir.IRBuilder, f: FieldDef, typ: types.Type, value: ir.Value) -> ir.Value:
    """An integer as an i64; raises NumberError where it's out of the field's range."""
    unsigned = _is_unsigned(typ)
    wide: types.Type = types.uint64 if unsigned else types.int64
    if typ is not uint64_exact:
        value = context.cast(builder, value, typ, wide)
    low, high = _RANGES[f.kind]
    least, most = (0, 2**64 - 1) if unsigned else (-(2**63), 2**63 - 1)
    compare = builder.icmp_unsigned if unsigned else builder.icmp_signed
    bad = I1(0)
    if low > least:
        bad = builder.or_(bad, compare("<", value, I64(low)))
    if high < most:
        bad = builder.or_(bad, compare(">", value, I64(high)))
    with cgutils.if_unlikely(builder, bad):
        text = context.get_constant_generic(builder, types.unicode_type, "Value out of range: {}")
        raise_jitted(context, builder, _raise_range, (types.unicode_type, wide), [text, value])
    return value


def _check_member(context: Any, builder: ir.IRBuilder, plan: Plan, f: FieldDef, plain: ir.Value) -> None:
    """Raise NumberError of a number that a closed enum doesn't have."""
    numbers = sorted({number for _, number in plan.schema.enums[f.type_name].values})
    known = builder.append_basic_block("enum.known")
    unknown = builder.append_basic_block("enum.unknown")
    switch = builder.switch(plain, unknown)
    for each in numbers:
        switch.add_case(I64(each), known)
    builder.position_at_end(unknown)
    text = context.get_constant_generic(builder, types.unicode_type, "invalid enumerator {}")
    raise_jitted(context, builder, _raise_range, (types.unicode_type, types.int64), [text, plain])
    builder.position_at_end(known)


def _truth(builder: ir.IRBuilder, typ: types.Type, value: ir.Value) -> ir.Value:
    return builder.icmp_unsigned("!=", value, value.type(0))


def _float_bits(
    context: Any, builder: ir.IRBuilder, f: FieldDef, typ: types.Type, value: ir.Value
) -> ir.Value:
    double = ir.DoubleType()
    if typ is uint64_exact:
        value = builder.uitofp(value, double)
    else:
        if _is_bool(typ):
            typ, value = types.int64, builder.zext(_truth(builder, typ, value), I64)
        value = context.cast(builder, value, typ, types.float64)
    if f.kind == "double":
        return builder.bitcast(value, I64)
    return builder.zext(builder.bitcast(builder.fptrunc(value, ir.FloatType()), I32), I64)


# ---- texts ----


@njit
def _raise_surrogate(string, at):  # type: ignore[no-untyped-def]
    raise UnicodeEncodeError("utf-8", string, at, at + 1, "surrogates not allowed")


def text(
    context: Any,
    builder: ir.IRBuilder,
    f: FieldDef,
    typ: types.Type,
    value: ir.Value,
    state: ir.Value,
) -> tuple[ir.Value, ir.Value]:
    """Address and number of the bytes of a text, which stay there for the moment.

    Raises what protobuf does where they aren't UTF-8.
    """
    typ, value = _given(context, builder, typ, value)
    if isinstance(typ, types.StringLiteral):
        raw = _encoded(typ.literal_value)
        if raw is not None:
            return as_address(builder, constant_bytes(builder, raw)), I64(len(raw))
        value = context.get_constant_generic(builder, types.unicode_type, typ.literal_value)
        typ = types.unicode_type
    if isinstance(typ, types.UnicodeType):
        return _string(context, builder, value, state)
    if isinstance(typ, types.Bytes):
        array = context.make_array(typ)(context, builder, value)
        pointer, nbytes = builder.bitcast(array.data, POINTER), array.nitems
    else:
        native = cgutils.create_struct_proxy(typ)(context, builder, value)
        pointer, nbytes = native.pointer, native.nbytes
    if f.kind == "string":
        checked = cgutils.create_struct_proxy(text_type)(context, builder)
        checked.pointer, checked.nbytes, checked.owner = pointer, nbytes, NULL
        count_points(context, builder, checked, frozen=False)
    return as_address(builder, pointer), nbytes


def _encoded(literal: str) -> bytes | None:
    try:
        return literal.encode()
    except UnicodeEncodeError:
        return None


def _string(
    context: Any, builder: ir.IRBuilder, value: ir.Value, state: ir.Value
) -> tuple[ir.Value, ir.Value]:
    """The bytes of a string of numba's: its own if it's ASCII, else made anew in the builder's memory."""
    string = cgutils.create_struct_proxy(types.unicode_type)(context, builder, value)
    data = as_address(builder, builder.bitcast(string.data, POINTER))
    address = cgutils.alloca_once_value(builder, data)
    size = cgutils.alloca_once_value(builder, string.length)
    ascii = builder.icmp_unsigned("!=", string.is_ascii, string.is_ascii.type(0))
    with builder.if_then(builder.not_(ascii), likely=False):
        kind = builder.zext(string.kind, I64)
        args = [data, string.length, kind]
        nbytes = call(builder, "utf8_nbytes", args)
        with cgutils.if_unlikely(builder, builder.icmp_signed("<", nbytes, I64(0))):
            at = builder.sub(I64(builder_put.BROKEN), nbytes)
            raise_jitted(context, builder, _raise_surrogate, (types.unicode_type, types.int64), [value, at])
        made = call(builder, "take_utf8", [state, *args, nbytes])
        raise_if_null(context, builder, made)
        builder.store(made, address)
        builder.store(nbytes, size)
    return builder.load(address), builder.load(size)
