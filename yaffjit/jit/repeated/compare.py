"""``x in repeated``, ``==`` and ``!=`` of repeated fields with each other and with lists.

As with protobuf's containers and Python's lists, a tuple equals none of them.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import Signature, infer_global, signature
from numba.cpython.listobj import ListInstance

from yaffjit.jit.emit.outline import I64
from yaffjit.jit.integers.compare import FLOATS_OF_INTEGERS, holds_floats
from yaffjit.jit.integers.type import implementation, uint64_exact
from yaffjit.jit.refusals import refused_call
from yaffjit.jit.repeated.access import Typing
from yaffjit.jit.repeated.elements import Elements, elements_of, search
from yaffjit.jit.repeated.equality import Sought, comparable, equal, taken_as, why_not_compared
from yaffjit.jit.repeated.type import RepeatedType


def find(
    context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value], start: Any = None
) -> ir.Value:
    """The index of the first element that equals ``args[1]``, or -1; of a signature that's been typed."""
    repeated, typ = sig.args[:2]
    if not comparable(repeated.element, typ):
        return I64(-1)
    elements = elements_of(context, builder, repeated, args[0])
    sought = Sought(context, builder, repeated.element, typ, args[1])
    count = builder.select(sought.possible, elements.count, I64(0))

    def test(index: ir.Value) -> ir.Value:
        return sought.matches(elements.type, elements.at(index))

    return search(builder, count, test, start)


@infer_global(operator.contains)
class _Contains(Typing):
    prefer_literal = True

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
        repeated, item = args
        if not isinstance(repeated, RepeatedType):
            return None
        text = why_not_compared(repeated.element, item, repeated.place())
        return signature(types.boolean, repeated, item) if text is None else refused_call(args, text)


@lower_builtin(operator.contains, RepeatedType, types.Any)
def _contains(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    return builder.icmp_signed(">=", find(context, builder, sig, args), I64(0))


@infer_global(operator.eq)
@infer_global(operator.ne)
class _Equal(Typing):
    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
        if len(args) != 2 or not any(isinstance(typ, RepeatedType) for typ in args):
            return None
        if all(isinstance(typ, (RepeatedType, types.List, types.ListType)) for typ in args):
            repeated = next(typ for typ in args if isinstance(typ, RepeatedType))
            other = args[1] if args[0] is repeated else args[0]
            text = why_not_compared(repeated.element, _element(other), repeated.place())
            if taken_as(repeated.element) is uint64_exact and holds_floats(other):
                text = FLOATS_OF_INTEGERS
            return signature(types.boolean, *args) if text is None else refused_call(args, text)
        if any(isinstance(typ, types.BaseTuple) for typ in args):
            return signature(types.boolean, *args)
        return None


def _element(typ: Any) -> types.Type:
    return typ.element if isinstance(typ, RepeatedType) else typ.dtype


class _List:
    """Elements of one of numba's lists, as `Elements` has them."""

    def __init__(self, context: Any, builder: ir.IRBuilder, typ: Any, value: ir.Value) -> None:
        self._context = context
        self._builder = builder
        self._list = typ
        self._value = value
        self.type: types.Type = typ.dtype
        if isinstance(typ, types.List):
            self._instance = ListInstance(context, builder, typ, value)
            self.count = self._instance.size
        else:
            call, _ = implementation(context, len, typ)
            self.count = call(builder, (value,))

    def at(self, index: ir.Value) -> ir.Value:
        if isinstance(self._list, types.List):
            return self._instance.getitem(index)
        call, _ = implementation(self._context, operator.getitem, self._list, types.intp)
        return call(self._builder, (self._value, index))

    def release(self, element: ir.Value) -> None:
        """To be called after the last use of what `at` gave: a typed list gives a reference with it."""
        if isinstance(self._list, types.ListType):
            self._context.nrt.decref(self._builder, self.type, element)


def _items(context: Any, builder: ir.IRBuilder, typ: types.Type, value: ir.Value) -> Elements | _List:
    return (elements_of if isinstance(typ, RepeatedType) else _List)(context, builder, typ, value)


def _equal(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    if any(isinstance(typ, types.BaseTuple) for typ in sig.args):
        return cgutils.false_bit
    x, y = (_items(context, builder, typ, value) for typ, value in zip(sig.args, args, strict=True))
    same_count = builder.icmp_signed("==", x.count, y.count)
    if not comparable(x.type, y.type):
        return builder.and_(same_count, builder.icmp_signed("==", x.count, I64(0)))

    def differ(index: ir.Value) -> ir.Value:
        values = [items.at(index) for items in (x, y)]
        pair = []
        for items, value in zip((x, y), values, strict=True):
            wide = taken_as(items.type)
            pair += [wide, context.cast(builder, value, items.type, wide)]
        same = equal(context, builder, *pair)
        for items, value in zip((x, y), values, strict=True):
            if isinstance(items, _List):
                items.release(value)
        return builder.not_(same)

    count = builder.select(same_count, x.count, I64(0))
    none_differs = builder.icmp_signed("<", search(builder, count, differ), I64(0))
    return builder.and_(same_count, none_differs)


def _not_equal(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    return builder.not_(_equal(context, builder, sig, args))


for _function, _lower in ((operator.eq, _equal), (operator.ne, _not_equal)):
    for _other in (types.List, types.ListType, types.BaseTuple):
        lower_builtin(_function, RepeatedType, _other)(_lower)
        lower_builtin(_function, _other, RepeatedType)(_lower)
    lower_builtin(_function, RepeatedType, RepeatedType)(_lower)
