"""Values of columns out of what a pass has read of a protobuf message, as LLVM."""

from __future__ import annotations

from typing import NamedTuple

from llvmlite import ir

from yaffjit.jit.columns.numbers import Converted, from_field, from_integer
from yaffjit.jit.columns.places import default_bytes
from yaffjit.jit.columns.times import time_of
from yaffjit.jit.columns.wire_tree import Spot
from yaffjit.jit.emit.outline import I8, I64, NULL
from yaffjit.jit.emit.wire import Pass
from yaffjit.jit.emit.yaff import stored_type
from yaffjit.jit.text import utf8
from yaffjit.jit.text.type import constant_bytes
from yaffjit.plan.gathering import Leaf


class Element(NamedTuple):
    """An element of a list that is no message, as it was read: a scalar's bits, or a text."""

    value: ir.Value | None
    pointer: ir.Value | None
    nbytes: ir.Value | None


class Values:
    """Reads spots of a pass, where it has read what they are about to its end."""

    def __init__(self, of: Pass) -> None:
        self._pass = of
        self._builder = of.builder

    def text(self, spot: Spot | None, element: Element | None) -> tuple[ir.Value, ir.Value]:
        """The pointer to the bytes of a text and their number, an i64; the default's where it's absent."""
        b = self._builder
        if spot is None:
            assert element is not None
            return element.pointer, element.nbytes
        pointer, nbytes = (self._slot(spot, name) for name in ("pointer", "nbytes"))
        assert spot.f is not None
        raw = default_bytes(spot.f)
        if not raw:
            return pointer, nbytes
        absent = b.icmp_unsigned("==", pointer, NULL)
        return b.select(absent, constant_bytes(b, raw), pointer), b.select(absent, I64(len(raw)), nbytes)

    def fixed(self, leaf: Leaf, spot: Spot | None, element: Element | None) -> Converted:
        """A value of a fixed width in its column's dtype, and whether it fits, as `numbers.from_field`."""
        b = self._builder
        if spot is None:
            assert element is not None and leaf.f is not None
            return self._number(leaf, element.value)
        if leaf.what == "length":
            return self._length(leaf, spot)
        if leaf.what == "present":
            return b.zext(self._present(spot), I8), None
        if leaf.what == "which":
            return from_integer(b, self._slot(spot, "which"), True, leaf.dtype)
        if leaf.what == "time":
            return self._time(leaf, spot)
        return self._number(leaf, self._slot(spot, "value"))

    def _slot(self, spot: Spot, name: str) -> ir.Value:
        return self._pass.value(spot.node, spot.slots[name])

    def _number(self, leaf: Leaf, bits: ir.Value | None) -> Converted:
        assert leaf.f is not None
        value = self._builder.bitcast(bits, stored_type(leaf.f))
        return from_field(self._builder, leaf.f.kind, value, leaf.dtype)

    def _length(self, leaf: Leaf, spot: Spot) -> Converted:
        b = self._builder
        if "elements" in spot.slots:
            return from_integer(b, self._slot(spot, "elements"), True, leaf.dtype)
        pointer, count = self.text(spot, None)
        assert spot.f is not None
        if spot.f.kind == "bytes":
            return from_integer(b, count, True, leaf.dtype)
        count = utf8.points(b, pointer, count)
        valid = b.icmp_signed(">=", count, I64(0))
        value, fits = from_integer(b, count, True, leaf.dtype)
        return value, valid if fits is None else b.and_(valid, fits)

    def _present(self, spot: Spot) -> ir.Value:
        b = self._builder
        if spot.has is not None:
            return self._pass.value(*spot.has)
        f = spot.f
        if f is None:
            which = self._slot(spot, "which")
            return b.icmp_unsigned("!=", which, which.type(0))
        if f.repeated:
            return b.icmp_unsigned("!=", self._slot(spot, "elements"), I64(0))
        if f.explicit:
            if f.is_scalar:
                return self._slot(spot, "has")
            return b.icmp_unsigned("!=", self._slot(spot, "pointer"), NULL)
        slot = self._slot(spot, "value" if f.is_scalar else "nbytes")
        return b.icmp_unsigned("!=", slot, slot.type(0))

    def _time(self, leaf: Leaf, spot: Spot) -> Converted:
        assert leaf.f is not None and spot.message is not None
        message = spot.message
        parts = [
            self._pass.value(message, (message.mp.by_name[name].number, "value"))
            for name in ("seconds", "nanos")
        ]
        present = None
        if spot.has is not None or spot.slots:
            present = (
                self._pass.value(*spot.has)
                if spot.has is not None
                else self._builder.icmp_unsigned("!=", self._slot(spot, "pointer"), NULL)
            )
        return time_of(self._builder, leaf.owner.child(leaf.f), parts[0], parts[1], present, leaf.dtype)
