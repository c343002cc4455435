"""Where values of one message lie, as LLVM: fields, elements, values of maps, by the steps of a path.

What isn't there reads as its default. Each message on the way is looked up once, because LLVM's merging
gives up on large functions.

Requires: the message is well-formed (verified). Source: docs/format.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from llvmlite import ir

from yaffjit.jit.emit import yaff
from yaffjit.jit.emit.outline import I32, I64, NULL, POINTER, Body, call_outlined
from yaffjit.jit.maps.search import are_searchable, find, pairs_of
from yaffjit.jit.repeated.elements import element_count, first_element
from yaffjit.jit.text.type import constant_bytes
from yaffjit.plan.model import OFFSET_WIDTH, FieldPlan, MessagePlan
from yaffjit.plan.paths import Index, Step


class Place(Protocol):
    """Where one value is, if it's there.

    Attributes:
        f: the field, or one like it.
    """

    f: FieldPlan

    def number(self) -> ir.Value:
        """The stored number, as `yaff.stored_type`; its default where it isn't there."""

    def reference(self) -> ir.Value:
        """The pointer to the message, text or array; null where it isn't there."""

    def present(self) -> ir.Value:
        """Whether it's there, as an i1; for fields without presence, whether they aren't zero or empty."""


class FieldPlace:
    """A field of the message at a pointer."""

    def __init__(self, builder: ir.IRBuilder, mp: MessagePlan, f: FieldPlan, message: ir.Value) -> None:
        self.builder = builder
        self.mp = mp
        self.f = f
        self.message = message

    def number(self) -> ir.Value:
        return yaff.scalar(self.builder, self.mp, self.f, self.message)

    def reference(self) -> ir.Value:
        return yaff.reference(self.builder, self.mp, self.f, self.message)

    def present(self) -> ir.Value:
        b = self.builder
        if self.f.explicit:
            return yaff.present(b, self.mp, self.f, self.message)
        if self.f.out_of_line:  # text begins with its length, as arrays do
            return b.icmp_unsigned("!=", element_count(b, self.reference()), I64(0))
        value = self.number()
        bits = ir.IntType(8 * self.f.width)
        return b.icmp_unsigned("!=", b.bitcast(value, bits), bits(0))


class ElementPlace:
    """An element of an array, whose slot is at a pointer: null if the index is out of range.

    Args:
        f: the field that has the array.
        first: the pointer to the first element.
        missing: the number that an index out of range reads as.
    """

    def __init__(
        self, builder: ir.IRBuilder, f: FieldPlan, first: ir.Value, slot: ir.Value, missing: int = 0
    ) -> None:
        self.builder = builder
        self.f = replace(f, repeated=False, width=f.element_width)
        self.first = first
        self.slot = slot
        self.missing = missing

    def number(self) -> ir.Value:
        stored = yaff.stored_type(self.f)

        def emit(body: Body) -> None:
            slot = body.args[0]
            missing = ir.Constant(stored, self.missing or None)
            body.return_unless(body.builder.icmp_unsigned("!=", slot, NULL), missing)
            body.builder.ret(body.load(slot, 0, stored))

        return call_outlined(self.builder, "element_or", self.missing, stored, [self.slot], emit, frozen=True)

    def reference(self) -> ir.Value:
        if self.f.inlined:
            return self.slot

        def emit(body: Body) -> None:
            first, slot = body.args
            body.return_unless(body.builder.icmp_unsigned("!=", slot, NULL), NULL)
            offset = body.load(slot, 0, I32)  # counts from the first element
            body.builder.ret(body.at(first, body.builder.zext(offset, I64)))

        args = [self.first, self.slot]
        return call_outlined(self.builder, "element_behind", "", POINTER, args, emit, frozen=True)

    def present(self) -> ir.Value:
        return self.builder.icmp_unsigned("!=", self.slot, NULL)


class PairPlace:
    """The key or value of the pair of a map at a pointer, which is null where the map hasn't the key."""

    def __init__(self, builder: ir.IRBuilder, entry: MessagePlan, f: FieldPlan, pair: ir.Value) -> None:
        self.builder = builder
        self.entry = entry
        self.f = f
        self.pair = pair

    def number(self) -> ir.Value:
        # A map's pairs have no absent values: the number that is stored counts, whatever the default is.
        stored = replace(self.f, declared_bits=self.f.default_bits)
        value = yaff.scalar(self.builder, self.entry, stored, self.pair)
        if self.f.declared_bits == self.f.default_bits:
            return value
        missing = yaff.scalar(self.builder, self.entry, self.f, NULL)
        return self.builder.select(self.present(), value, missing)

    def reference(self) -> ir.Value:
        return yaff.reference(self.builder, self.entry, self.f, self.pair)

    def present(self) -> ir.Value:
        return self.builder.icmp_unsigned("!=", self.pair, NULL)


class Walk:
    """Follows steps from one message, or from an element.

    Args:
        builder: where code goes; all calls of one walk must be made where its first ones have been run.
        message: the pointer to the message; None of an element that isn't one.
        owner: of the bytes, which may be marked as having ascending maps only.
        element: the element itself, where steps are about one.
    """

    def __init__(
        self,
        builder: ir.IRBuilder,
        message: ir.Value | None,
        owner: ir.Value,
        element: Place | None = None,
    ) -> None:
        self.builder = builder
        self.owner = owner
        self._messages: dict[tuple[object, ...], ir.Value] = {}
        self._places: dict[tuple[object, ...], Place] = {}
        if message is None and element is not None and element.f.kind == "message":
            message = element.reference()
        if message is not None:
            self._messages[()] = message
        if element is not None:
            self._places[()] = element

    def message(self, steps: tuple[Step, ...]) -> ir.Value:
        """The pointer to the message that steps lead to; null where it isn't there."""
        key = _key_of(steps)
        found = self._messages.get(key)
        if found is None:
            found = self._messages[key] = self.place(steps).reference()
        return found

    def place(self, steps: tuple[Step, ...]) -> Place:
        """Where what the steps lead to is."""
        key = _key_of(steps)
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = self._place(steps)
        return found

    def array(self, steps: tuple[Step, ...]) -> ir.Value:
        """The pointer to the array of the repeated field, or map, that the last step names; null if empty."""
        last = steps[-1]
        return yaff.reference(self.builder, last.mp, last.f, self.message(steps[:-1]))

    def _place(self, steps: tuple[Step, ...]) -> Place:
        b = self.builder
        last = steps[-1]
        if last.index is None:
            return FieldPlace(b, last.mp, last.f, self.message(steps[:-1]))
        array = self.array(steps)
        if not last.f.is_map:
            assert not isinstance(last.index, str)
            slot = _slot(b, array, last.index, last.f.element_width)
            missing = last.mp.plan.schema.enums[last.f.enum].values[0][1] if last.f.enum else 0
            return ElementPlace(b, last.f, first_element(b, array), slot, missing)
        entry = last.mp.child(last.f)
        pairs = pairs_of(entry)
        members, count = first_element(b, array), element_count(b, array)
        searchable = are_searchable(b, pairs, members, count, self.owner)
        pair = find(b, pairs, members, count, searchable, _key(b, entry, last.index))
        return PairPlace(b, entry, entry.fields[1], pair)


def _key_of(steps: tuple[Step, ...]) -> tuple[object, ...]:
    # Of the index its type too: True isn't 1 here.
    return tuple((step.f.name, type(step.index), step.index) for step in steps)


def _key(builder: ir.IRBuilder, entry: MessagePlan, key: Index) -> list[ir.Value]:
    """A key as `maps.search.find` takes it."""
    if isinstance(key, str):
        raw = key.encode()
        return [constant_bytes(builder, raw), I64(len(raw))]
    return [ir.IntType(8 * entry.fields[0].width)(int(key))]


def _slot(builder: ir.IRBuilder, array: ir.Value, index: int, width: int) -> ir.Value:
    """The pointer to the element at an index, which may be negative, or null where it's out of range."""

    def emit(body: Body) -> None:
        b = body.builder
        array, index = body.args
        body.return_unless(b.icmp_unsigned("!=", array, NULL), NULL)
        count = b.zext(body.load(array, 0, I32), I64)
        at = b.select(b.icmp_signed("<", index, I64(0)), b.add(index, count), index)
        body.return_unless(b.icmp_unsigned("<", at, count), NULL)
        b.ret(body.at(body.at(array, OFFSET_WIDTH), b.mul(at, I64(width))))

    return call_outlined(builder, "element_slot", width, POINTER, [array, I64(index)], emit, frozen=True)


def default_bytes(f: FieldPlan) -> bytes:
    """What a text reads as where it isn't there."""
    default = f.default if isinstance(f.default, (str, bytes)) else b""
    return default if isinstance(default, bytes) else default.encode()


def text_of(builder: ir.IRBuilder, place: Place) -> tuple[ir.Value, ir.Value]:
    """The pointer to the bytes of a text and their number, as an i64."""
    raw = default_bytes(place.f)
    target = place.reference()
    absent = builder.icmp_unsigned("==", target, NULL)
    start = builder.select(absent, constant_bytes(builder, raw, counted=True), target)
    count = builder.load(builder.bitcast(start, I32.as_pointer()), align=1)
    count.set_metadata("invariant.load", builder.module.add_metadata([]))
    return builder.gep(start, [I64(4)], inbounds=True), builder.zext(count, I64)
