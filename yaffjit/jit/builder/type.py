"""The numba types of builders and of what they are made of, and how each is checked before it's used."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models, register_default

from yaffjit.errors import CompileTypeError, EncodeError, SchemaError
from yaffjit.jit.builder.kernels import load_kernels
from yaffjit.jit.emit.outline import I64, NULL, POINTER
from yaffjit.jit.keys import PlanType
from yaffjit.jit.refusals import refusal
from yaffjit.jit.types import BorrowedType
from yaffjit.kernels import builder_memory as memory
from yaffjit.plan.builder_tables import BuilderField, BuilderPlan, builder_plan
from yaffjit.plan.model import MessagePlan

__all__ = [
    "BuilderType",
    "MapBuilderType",
    "MessageBuilderType",
    "PartType",
    "RepeatedBuilderType",
    "builder_type",
    "child_type",
    "load_word",
    "opened",
    "part_of",
    "word_at",
]


class PartType(BorrowedType, PlanType):
    """A builder, or a part of one; it's always counted.

    Args:
        mp: the plan of the message that is built.
        digest: a hash of what decides about its bytes.
        details: what else makes the type.
    """

    instead = "keep what finish() gives instead"
    owned = True
    is_root = False

    def __init__(self, mp: MessagePlan, digest: str = "", *details: Any) -> None:
        load_kernels()
        self.builds: BuilderPlan = builder_plan(mp.plan, mp.full_name)
        super().__init__(mp, self.builds.digest, *details)

    def as_owned(self) -> types.Type:
        return self


class BuilderType(PartType):
    """What ``Banner.builder()`` gives."""

    label = "builder"
    what = "a builder"
    is_root = True


class MessageBuilderType(PartType):
    """A nested message that is being built."""

    label = "nested message of a builder"
    what = "a nested message of a builder"


class _FieldType(PartType):
    """A field of a message that is being built: its native form is that of the message.

    Args:
        name: of the field.
    """

    def __init__(self, mp: MessagePlan, digest: str, name: str) -> None:
        super().__init__(mp, digest, name)
        self.field: BuilderField = self.builds.by_name[name]


class RepeatedBuilderType(_FieldType):
    label = "repeated field of a builder"
    what = "a repeated field of a builder"


class MapBuilderType(_FieldType):
    label = "map of a builder"
    what = "a map of a builder"


def builder_type(mp: MessagePlan) -> BuilderType:
    """The numba type of builders of a message."""
    return BuilderType(mp)


def child_type(part: PartType, f: BuilderField) -> MessageBuilderType:
    """The type of a nested message.

    Raises:
        CompileTypeError: YaFF can't hold the message, so that it has no plan.
    """
    full_name = part.builds.child(f).full_name
    try:
        return MessageBuilderType(part.mp.plan[full_name])
    except SchemaError as error:
        text = f"field {part.mp.full_name}.{f.name} isn't available in jitted builders: {error}"
        raise refusal(CompileTypeError, text) from None


@register_default(BuilderType)
@register_default(MessageBuilderType)
@register_default(RepeatedBuilderType)
@register_default(MapBuilderType)
class _PartModel(models.StructModel):
    def __init__(self, manager: Any, numba_type: types.Type) -> None:
        members = [
            ("record", types.voidptr),  # the message's, as `yaffjit.plan.builder_tables` has it
            ("state", types.voidptr),  # the builder's, as `yaffjit.kernels.builder_memory` has it
            ("epoch", types.int64),  # the builder's, when this was got from it
            ("owner", types.MemInfoPointer(types.voidptr)),  # numba's record of the state
        ]
        super().__init__(manager, numba_type, members)


def word_at(builder: ir.IRBuilder, pointer: ir.Value, offset: int) -> ir.Value:
    """A pointer to the word so many bytes behind another."""
    return builder.bitcast(builder.gep(pointer, [I64(offset)], inbounds=True), I64.as_pointer())


def load_word(builder: ir.IRBuilder, pointer: ir.Value, offset: int) -> ir.Value:
    return builder.load(word_at(builder, pointer, offset))


_CLEARED = "this part of a builder was got before the builder was cleared: get it from the builder again"


def opened(context: Any, builder: ir.IRBuilder, typ: PartType, value: ir.Value) -> Any:
    """The members of a native value, whose memory is still its own; raises where it isn't."""
    native = cgutils.create_struct_proxy(typ)(context, builder, value)
    if not typ.is_root:
        stale = builder.icmp_unsigned("!=", load_word(builder, native.state, memory.EPOCH), native.epoch)
        with cgutils.if_unlikely(builder, stale):
            context.call_conv.return_user_exc(builder, EncodeError, (_CLEARED,))
    return native


def part_of(context: Any, builder: ir.IRBuilder, typ: PartType, whole: Any, record: ir.Value) -> ir.Value:
    """A native part of what `opened` gave, without a reference of its own."""
    made = cgutils.create_struct_proxy(typ)(context, builder)
    made.record = record
    made.state = whole.state
    made.epoch = load_word(builder, whole.state, memory.EPOCH)
    made.owner = whole.owner
    return made._getvalue()


def raise_if_null(context: Any, builder: ir.IRBuilder, address: ir.Value) -> None:
    """Raise MemoryError where a kernel gave 0."""
    with cgutils.if_unlikely(builder, builder.icmp_unsigned("==", address, I64(0))):
        context.call_conv.return_user_exc(builder, MemoryError, ("no memory for what is being built",))


def as_pointer(builder: ir.IRBuilder, address: ir.Value) -> ir.Value:
    return builder.inttoptr(address, POINTER)


def as_address(builder: ir.IRBuilder, pointer: ir.Value) -> ir.Value:
    return builder.ptrtoint(pointer, I64)


__all__ += ["NULL", "as_address", "as_pointer", "raise_if_null"]
