"""New lists of elements: ``sorted(repeated)``, and slices put together, which are lists in Python."""

from __future__ import annotations

import operator
from typing import Any

from numba.core import types
from numba.extending import overload, register_jitable

from yaffjit.errors import CompileTypeError
from yaffjit.jit.refusals import refusal
from yaffjit.jit.repeated.type import RepeatedType


def _given(argument: Any) -> bool:
    return not (argument is None or isinstance(argument, (types.Omitted, types.NoneType)))


@register_jitable
def _merge(source, target, begin, middle, end, reverse):  # type: ignore[no-untyped-def]
    """Merge two sorted runs of ``source`` into ``target``; of equal elements the first stays first."""
    left = begin
    right = middle
    for at in range(begin, end):
        if left == middle:
            from_right = True
        elif right == end:
            from_right = False
        elif reverse:
            from_right = source[right] > source[left]
        else:
            from_right = source[right] < source[left]
        if from_right:
            target[at] = source[right]
            right += 1
        else:
            target[at] = source[left]
            left += 1


@overload(sorted, target="cpu")
def _sorted(iterable, key=None, reverse=False):  # type: ignore[no-untyped-def]
    """By merging: numba's own sort takes seconds to compile."""
    if not isinstance(iterable, RepeatedType) or _given(key):
        return None
    if iterable.f.kind == "message":
        raise refusal(CompileTypeError, f"messages have no order: sorted() of {iterable.place()}")

    def impl(iterable, key=None, reverse=False):  # type: ignore[no-untyped-def]
        source = list(iterable)
        target = list(iterable)
        count = len(source)
        width = 1
        while width < count:
            for begin in range(0, count, 2 * width):
                _merge(
                    source, target, begin, min(begin + width, count), min(begin + 2 * width, count), reverse
                )
            source, target = target, source
            width *= 2
        return source

    return impl


@overload(operator.add)
def _together(a, b):  # type: ignore[no-untyped-def]
    sides = (a, b)
    slices = [typ for typ in sides if isinstance(typ, RepeatedType) and typ.part]
    if slices and all(typ in slices or isinstance(typ, types.List) for typ in sides):
        return lambda a, b: list(a) + list(b)
    return None
