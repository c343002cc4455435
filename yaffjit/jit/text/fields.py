"""Singular string and bytes fields: their types, and how they are read."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from yaffjit.jit.attributes import field_readers
from yaffjit.jit.emit import yaff
from yaffjit.jit.text.type import TextLikeType, bytes_type, text_at, text_type
from yaffjit.jit.types import field_types
from yaffjit.plan.model import FieldPlan, MessagePlan


def text_like(f: FieldPlan) -> TextLikeType:
    """The type of one value of a string or bytes field."""
    return text_type if f.kind == "string" else bytes_type


def read_text(
    context: Any,
    builder: ir.IRBuilder,
    mp: MessagePlan,
    f: FieldPlan,
    message: ir.Value,
    owner: ir.Value,
    frozen: bool = True,
) -> ir.Value:
    """The native value of a singular string or bytes field."""
    default = f.default
    assert isinstance(default, (str, bytes))
    target = yaff.reference(builder, mp, f, message, frozen)
    return text_at(context, builder, text_like(f), target, owner, default, frozen)


field_types["text"] = lambda mp, f: text_like(f)
field_readers["text"] = read_text
