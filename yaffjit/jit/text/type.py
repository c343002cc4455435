"""The numba types of text and bytes that lie in a message, and how a field becomes one.

A value is a pointer to UTF-8 or plain bytes, their number, and the owner; nothing is copied. To
numba a text is to ``unicode_type`` what a literal string is: wherever numba needs one of its own strings, one
is made (`keep`), so what containers hold is always a copy of theirs.
"""

from __future__ import annotations

import hashlib
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models, register_default
from numba.core.imputils import lower_cast
from numba.core.typeconv import Conversion

from yaffjit.jit.emit.outline import I8, I32, I64, NULL, POINTER
from yaffjit.jit.keys import PlainType, source_hash
from yaffjit.jit.types import BorrowedType, OneofType, owner_type

__all__ = [
    "BytesType",
    "TextLikeType",
    "TextType",
    "bytes_type",
    "constant_text",
    "numba_bytes",
    "text_at",
    "text_type",
]

numba_bytes = types.Bytes(types.uint8, 1, "C", readonly=True)


class TextLikeType(BorrowedType, PlainType, types.IterableType, types.Hashable):
    """What text and bytes have in common.

    Args:
        owned: whether the value counts its owner.
    """

    what = "a text"
    instead = "keep a copy, str(x), instead"

    def __init__(self, owned: bool = False) -> None:
        super().__init__(f"{'owned ' if owned else ''}{self.label}[#{source_hash()}]", owned)
        self.owned = owned

    def as_owned(self) -> types.Type:
        return owned_bytes_type if isinstance(self, BytesType) else owned_text_type

    @property
    def iterator_type(self) -> types.IteratorType:
        return TextIteratorType(self)


class TextType(TextLikeType):
    """A string field's value: UTF-8, which unverified data may break."""

    label = "text"

    def __unliteral__(self) -> types.Type:
        return types.unicode_type

    def unify(self, context: Any, other: types.Type) -> types.Type | None:
        if isinstance(other, OneofType):  # a string of numba's, or None
            return types.Optional(types.unicode_type)
        return self if isinstance(other, types.StringLiteral) else None

    def can_convert_to(self, context: Any, other: types.Type) -> Conversion | None:
        if isinstance(other, types.UnicodeType):
            return Conversion.safe
        return super().can_convert_to(context, other)

    def can_convert_from(self, context: Any, other: types.Type) -> Conversion | None:
        return Conversion.safe if isinstance(other, types.StringLiteral) else None


class BytesType(TextLikeType):
    """A bytes field's value."""

    label = "bytes"
    what = "a bytes value"
    instead = "keep a copy, bytes(x), instead"

    def __unliteral__(self) -> types.Type:
        return numba_bytes

    def can_convert_to(self, context: Any, other: types.Type) -> Conversion | None:
        if isinstance(other, types.Bytes):
            return Conversion.safe
        return super().can_convert_to(context, other)


class TextIteratorType(BorrowedType, PlainType, types.IteratorType):
    """Over the characters of a text, or the numbers of bytes."""

    what = "an iterator over text"
    instead = "keep the text instead"

    def __init__(self, text: TextLikeType) -> None:
        self.text = text
        self.owned = text.owned
        super().__init__(f"iterator of {text.name}", text)

    @property
    def yield_type(self) -> types.Type:
        return types.int64 if isinstance(self.text, BytesType) else self.text


text_type = TextType()
bytes_type = BytesType()
owned_text_type = TextType(owned=True)
owned_bytes_type = BytesType(owned=True)


def _members(typ: types.Type) -> list[tuple[str, types.Type]]:
    return [
        ("pointer", types.voidptr),  # never null
        ("nbytes", types.int64),
        ("owner", owner_type(typ)),  # null if the bytes are part of the machine code: literals and defaults
    ]


@register_default(TextType)
@register_default(BytesType)
class TextModel(models.StructModel):
    def __init__(self, manager: Any, numba_type: types.Type) -> None:
        super().__init__(manager, numba_type, _members(numba_type))


@register_default(TextIteratorType)
class TextIteratorModel(models.StructModel):
    def __init__(self, manager: Any, numba_type: types.Type) -> None:
        at = ("at", types.EphemeralPointer(types.int64))
        super().__init__(manager, numba_type, [*_members(numba_type), at])


def constant_bytes(builder: ir.IRBuilder, raw: bytes, counted: bool = False) -> ir.Value:
    """A pointer to bytes that are part of the machine code.

    Args:
        counted: their number comes first, as in a message.
    """
    data = len(raw).to_bytes(4, "little") + raw if counted else raw
    digest = hashlib.blake2b(data, digest_size=16).hexdigest()
    symbol = f"yaffjit.bytes.{digest}"
    found = builder.module.globals.get(symbol)
    if found is None:
        array = ir.ArrayType(I8, len(data))
        found = ir.GlobalVariable(builder.module, array, symbol)
        found.initializer = ir.Constant(array, bytearray(data))
        found.global_constant = True
        found.linkage = "linkonce_odr"
    return builder.bitcast(found, POINTER)


def make_text(
    context: Any,
    builder: ir.IRBuilder,
    typ: TextLikeType,
    pointer: ir.Value,
    nbytes: ir.Value,
    owner: ir.Value,
) -> ir.Value:
    """A native value of its three members."""
    made = cgutils.create_struct_proxy(typ)(context, builder)
    made.pointer, made.nbytes, made.owner = pointer, nbytes, owner
    return made._getvalue()


def constant_text(context: Any, builder: ir.IRBuilder, typ: TextLikeType, value: str | bytes) -> ir.Value:
    """A native value for a constant."""
    raw = value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
    return make_text(context, builder, typ, constant_bytes(builder, raw), I64(len(raw)), NULL)


def text_at(
    context: Any,
    builder: ir.IRBuilder,
    typ: TextLikeType,
    target: ir.Value,
    owner: ir.Value,
    default: str | bytes = b"",
    frozen: bool = True,
) -> ir.Value:
    """The text or bytes whose count of bytes is at ``target``; the default where that's null."""
    raw = default if isinstance(default, bytes) else default.encode("utf-8")
    absent = builder.icmp_unsigned("==", target, NULL)
    start = builder.select(absent, constant_bytes(builder, raw, counted=True), target)
    count = builder.load(builder.bitcast(start, I32.as_pointer()), align=1)
    if frozen:
        count.set_metadata("invariant.load", builder.module.add_metadata([]))
    pointer = builder.gep(start, [I64(4)], inbounds=True)
    owner = builder.select(absent, NULL, owner)
    return make_text(context, builder, typ, pointer, builder.zext(count, I64), owner)


@lower_cast(TextType, TextType)
@lower_cast(BytesType, BytesType)
def _to_twin(context: Any, builder: ir.IRBuilder, source: Any, target: Any, value: ir.Value) -> ir.Value:
    return value


@lower_cast(types.StringLiteral, TextType)
def _from_literal(
    context: Any, builder: ir.IRBuilder, source: types.StringLiteral, target: TextType, value: ir.Value
) -> ir.Value:
    return constant_text(context, builder, target, source.literal_value)
