"""Arrays of repeated fields as LLVM: where they are, how many elements there are, and each element.

Source: docs/format.md, "Slots" and "Objects". Requires: the message is well-formed (verified).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from yaffjit.jit.attributes import field_readers, widen
from yaffjit.jit.emit import yaff
from yaffjit.jit.emit.outline import I32, I64, NULL, POINTER, Body, call_outlined
from yaffjit.jit.repeated.type import RepeatedType, repeated_type
from yaffjit.jit.text.type import text_at
from yaffjit.plan.model import OFFSET_WIDTH, FieldPlan, MessagePlan

_COUNT_WIDTH = 4


def read_repeated(
    context: Any,
    builder: ir.IRBuilder,
    mp: MessagePlan,
    f: FieldPlan,
    message: ir.Value,
    owner: ir.Value,
    frozen: bool = True,
) -> ir.Value:
    """The native value of a repeated field of the message at a pointer."""
    array = yaff.reference(builder, mp, f, message, frozen)
    made = cgutils.create_struct_proxy(repeated_type(mp, f))(context, builder)
    made.pointer = first_element(builder, array)
    made.count = element_count(builder, array, frozen)
    made.owner = owner
    return made._getvalue()


def first_element(builder: ir.IRBuilder, array: ir.Value) -> ir.Value:
    """The pointer to the first element of the array that a field's slot leads to; null for null."""

    def emit(body: Body) -> None:
        array = body.args[0]
        body.return_unless(body.builder.icmp_unsigned("!=", array, NULL), NULL)
        body.builder.ret(body.at(array, _COUNT_WIDTH))

    return call_outlined(builder, "elements", "", POINTER, [array], emit, frozen=True)


def element_count(builder: ir.IRBuilder, array: ir.Value, frozen: bool = True) -> ir.Value:
    """How many elements the array has that a field's slot leads to, as an i64; 0 for null."""

    def emit(body: Body) -> None:
        array = body.args[0]
        body.return_unless(body.builder.icmp_unsigned("!=", array, NULL), I64(0))
        body.builder.ret(body.builder.zext(body.load(array, 0, I32), I64))

    return call_outlined(builder, "count", "", I64, [array], emit, frozen)


class Elements:
    """The elements of a native repeated value, counted from its own first, wherever they lie.

    Args:
        context, builder: numba's; where the builder is now comes before all that is asked later.
        typ: the value's type.
        native: the value's members.

    Attributes:
        typ: as given.
        owner: of the bytes; what `at` gives has it without a reference of its own.
    """

    def __init__(self, context: Any, builder: ir.IRBuilder, typ: RepeatedType, native: Any) -> None:
        self._context = context
        self._builder = builder
        self.typ = typ
        self.owner: ir.Value = native.owner

    @property
    def type(self) -> types.Type:
        """The numba type of an element."""
        return self.typ.element

    @property
    def count(self) -> ir.Value:
        """How many there are, as an i64."""
        raise NotImplementedError

    def at(self, index: ir.Value) -> ir.Value:
        """The native value of the element at ``index``; requires ``0 <= index < count``."""
        raise NotImplementedError

    def remembered(self) -> Elements:
        """The same for a place in the code that a loop comes to again, perhaps with the next index."""
        return self

    def part(self, start: ir.Value, step: ir.Value, count: ir.Value) -> ir.Value:
        """``count`` of the elements, from index ``start`` on, each ``step`` after the one before.

        It's a native slice with references of its own.
        """
        raise NotImplementedError


# (context, builder, type, native value's members) -> its elements
MakeElements = Callable[[Any, ir.IRBuilder, Any, Any], Elements]
# By the class of the type; other packages enter theirs here.
elements_makers: dict[type[RepeatedType], MakeElements] = {}


def elements_of(context: Any, builder: ir.IRBuilder, typ: RepeatedType, value: ir.Value) -> Elements:
    """The elements of a native value."""
    native = cgutils.create_struct_proxy(typ)(context, builder, value)
    return elements_makers[type(typ)](context, builder, typ, native)


class ArrayElements(Elements):
    """Elements in an array.

    Attributes:
        pointer: to the array's first element, null if the field is absent.
        first, step: which of the array's elements these are.
    """

    def __init__(self, context: Any, builder: ir.IRBuilder, typ: RepeatedType, native: Any) -> None:
        super().__init__(context, builder, typ, native)
        self._count: ir.Value = native.count
        self.pointer: ir.Value = native.pointer
        self.first: ir.Value = native.first if typ.part else I64(0)
        self.step: ir.Value = native.step if typ.part else I64(1)

    @property
    def count(self) -> ir.Value:
        return self._count

    def part(self, start: ir.Value, step: ir.Value, count: ir.Value) -> ir.Value:
        b = self._builder
        made = cgutils.create_struct_proxy(self.typ.sliced())(self._context, b)
        made.pointer, made.owner, made.count = self.pointer, self.owner, count
        made.first = b.add(self.first, b.mul(start, self.step))
        made.step = b.mul(self.step, step)
        self._context.nrt.incref(b, self.typ.sliced(), made._getvalue())
        return made._getvalue()

    def at(self, index: ir.Value) -> ir.Value:
        if self.typ.part:
            b = self._builder
            index = b.add(self.first, b.mul(index, self.step))
        return _read_element(self._context, self._builder, self.typ, self.pointer, index, self.owner)


def _read_element(
    context: Any,
    builder: ir.IRBuilder,
    typ: RepeatedType,
    pointer: ir.Value,
    index: ir.Value,
    owner: ir.Value,
) -> ir.Value:
    """The native value of an element of the array whose first element is at a pointer."""
    one, frozen = typ.one, not typ.owned
    if one.is_scalar:
        return widen(builder, one, element_number(builder, one, pointer, index, frozen))
    target = (
        inlined_element(builder, one, pointer, index)
        if one.inlined
        else element_behind(builder, pointer, index, frozen)
    )
    element: Any = typ.element
    if one.kind != "message":
        return text_at(context, builder, element, target, owner, frozen=frozen)
    made = cgutils.create_struct_proxy(element)(context, builder)
    made.pointer, made.owner = target, owner
    return made._getvalue()


def element_number(
    builder: ir.IRBuilder, one: FieldPlan, pointer: ir.Value, index: ir.Value, frozen: bool = True
) -> ir.Value:
    """The stored number at ``index`` of the elements from a pointer on."""
    stored = yaff.stored_type(one)

    def emit(body: Body) -> None:
        at = body.builder.mul(body.args[1], I64(one.width))
        body.builder.ret(body.load(body.args[0], at, stored))

    return call_outlined(builder, "element", one.width, stored, [pointer, index], emit, frozen)


def inlined_element(builder: ir.IRBuilder, one: FieldPlan, pointer: ir.Value, index: ir.Value) -> ir.Value:
    """The pointer to the message at ``index`` of those that are stored from a pointer on."""
    return builder.gep(pointer, [builder.mul(index, I64(one.width))], inbounds=True)


def element_behind(
    builder: ir.IRBuilder, pointer: ir.Value, index: ir.Value, frozen: bool = True
) -> ir.Value:
    """What the offset at ``index`` leads to; offsets count from the first of them."""

    def emit(body: Body) -> None:
        b = body.builder
        offset = body.load(body.args[0], b.mul(body.args[1], I64(OFFSET_WIDTH)), I32)
        b.ret(body.at(body.args[0], b.zext(offset, I64)))

    return call_outlined(builder, "element_at", OFFSET_WIDTH, POINTER, [pointer, index], emit, frozen)


def search(
    builder: ir.IRBuilder,
    count: ir.Value,
    test: Callable[[ir.Value], ir.Value],
    start: ir.Value | None = None,
) -> ir.Value:
    """The first index in ``start..count`` for which ``test(index)`` gives a true i1, else -1."""
    found = cgutils.alloca_once_value(builder, I64(-1))
    with cgutils.for_range(builder, count, start=start) as loop, builder.if_then(test(loop.index)):
        builder.store(loop.index, found)
        loop.do_break()
    return builder.load(found)


field_readers["repeated"] = read_repeated
elements_makers[RepeatedType] = ArrayElements
