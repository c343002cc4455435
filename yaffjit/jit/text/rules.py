"""How functions and operators of text are typed: before numba's own rules, which would copy the text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import lower_cast
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global

from yaffjit.jit.emit.outline import POINTER
from yaffjit.jit.text.type import BytesType, TextLikeType, TextType, text_type

Rule = Callable[[Any, tuple[types.Type, ...]], "Signature | None"]


def typed(function: Any, rule: Rule) -> None:
    """Let numba ask ``rule(context, argument types)`` for the signature of a call of `function`."""

    class Typing(AbstractTemplate):
        prefer_literal = True  # a text's own type before that of numba's string
        metadata: ClassVar = {"target": "cpu"}  # more specific than the generic rules, so it comes first

        def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
            return None if kws else rule(self.context, args)

        def apply(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
            """Asks once: numba's own would ask again without the Optional, and None would raise."""
            return self.generic(args, kws)

    infer_global(function)(Typing)


def bare(typ: types.Type) -> types.Type:
    """A type without its Optional: an operation on None raises TypeError."""
    return typ.type if isinstance(typ, types.Optional) else typ


def text_operand(typ: types.Type) -> types.Type | None:
    """What an operation on texts takes a type as: a literal as text, texts and strings as they are."""
    typ = bare(typ)
    if isinstance(typ, types.StringLiteral):
        return text_type
    return typ if isinstance(typ, (TextType, types.UnicodeType)) else None


def bytes_operand(typ: types.Type) -> types.Type | None:
    """What an operation on bytes takes a type as: our bytes, numba's own; else None."""
    typ = bare(typ)
    return typ if isinstance(typ, (BytesType, types.Bytes)) else None


def is_text(typ: types.Type) -> bool:
    return isinstance(bare(typ), TextType)


def is_bytes(typ: types.Type) -> bool:
    return isinstance(bare(typ), BytesType)


def members(context: Any, builder: ir.IRBuilder, typ: types.Type, value: ir.Value) -> tuple[Any, Any]:
    """Pointer to and number of the bytes of a native text or bytes value, ours or numba's own bytes."""
    if isinstance(typ, TextLikeType):
        native = cgutils.create_struct_proxy(typ)(context, builder, value)
        return native.pointer, native.nbytes
    array = context.make_array(typ)(context, builder, value)
    return builder.bitcast(array.data, POINTER), array.nitems


def are_frozen(argtypes: Iterable[types.Type]) -> bool:
    """Whether the bytes of values never change: numba's own may have been written by the same function,
    and so may what an owned text points into.
    """
    return all(isinstance(typ, TextLikeType) and not typ.owned for typ in argtypes)


def raise_if(
    context: Any, builder: ir.IRBuilder, condition: ir.Value, error: type[Exception], text: str
) -> None:
    """Raise an error from the jitted function that is being built where a condition (i1) holds."""
    with cgutils.if_unlikely(builder, condition):
        context.call_conv.return_user_exc(builder, error, (text,))


@lower_cast(types.Optional, TextType)
@lower_cast(types.Optional, BytesType)
def _from_optional(
    context: Any, builder: ir.IRBuilder, source: types.Optional, target: TextLikeType, value: ir.Value
) -> ir.Value:
    optional = context.make_helper(builder, source, value=value)
    raise_if(context, builder, builder.not_(optional.valid), TypeError, "expected a text, got None")
    return context.cast(builder, optional.data, source.type, target)
