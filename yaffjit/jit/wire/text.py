"""String and bytes fields of protobuf views in jitted code: the bytes of the message, as everywhere."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from yaffjit.jit.emit.outline import I64, NULL
from yaffjit.jit.text.fields import text_like
from yaffjit.jit.text.type import constant_bytes, make_text
from yaffjit.jit.types import WireViewType, wire_field_types
from yaffjit.jit.wire.read import readers, slots_of
from yaffjit.plan.model import FieldPlan


def _read_text(
    context: Any, builder: ir.IRBuilder, view: WireViewType, native: Any, f: FieldPlan
) -> ir.Value:
    pointer, nbytes = slots_of(context, builder, view, native, f, "pointer", "nbytes")
    raw = f.default.encode() if isinstance(f.default, str) else f.default
    assert isinstance(raw, bytes)
    absent = builder.icmp_unsigned("==", pointer, NULL)
    pointer = builder.select(absent, constant_bytes(builder, raw), pointer)
    nbytes = builder.select(absent, I64(len(raw)), nbytes)
    owner = builder.select(absent, NULL, native.owner)
    return make_text(context, builder, view.field_type(f), pointer, nbytes, owner)


wire_field_types["text"] = lambda mp, f: text_like(f)
readers["text"] = _read_text
