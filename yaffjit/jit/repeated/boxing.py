"""Repeated fields out of jitted code: as the view's containers over the same bytes; slices as lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba.core import cgutils
from numba.extending import box

from yaffjit.jit.boxing import constant, get_source, owner_of, view_class_of
from yaffjit.jit.emit.outline import I64
from yaffjit.jit.repeated.elements import ArrayElements
from yaffjit.jit.repeated.type import RepeatedType

if TYPE_CHECKING:
    from yaffjit.view.repeated import Repeated

_COUNT_WIDTH = 4
_EMPTY_ARRAY = bytes(_COUNT_WIDTH)


@box(RepeatedType)
def _box(typ: RepeatedType, value: ir.Value, c: Any) -> ir.Value:
    b, api = c.builder, c.pyapi
    elements = ArrayElements(c.context, b, typ, cgutils.create_struct_proxy(typ)(c.context, b, value))
    numbers = [b.ptrtoint(elements.pointer, I64)]
    if typ.part:
        numbers += [elements.first, elements.step, elements.count]
    function = constant(c, box_part if typ.part else box_field)
    key = constant(c, (typ.mp.fingerprint, typ.mp.full_name, typ.f.name))
    objects = [api.long_from_longlong(number) for number in numbers]
    source = get_source(c, typ, elements.owner)
    result = api.call_function_objargs(function, [key, source, *objects])
    for obj in (function, key, source, *objects):
        api.decref(obj)
    return result


def box_field(key: tuple[str, str, str], source: Any, address: int) -> Repeated:
    """The Python container of a repeated field that comes out of jitted code.

    Args:
        key: fingerprint and full name of the message, and the field's name.
        source: of the bytes, as for `box_view`.
        address: of the array's first element, 0 for an absent field.
    """
    from yaffjit.view.classes import view_class
    from yaffjit.view.repeated import make_repeated

    fingerprint, full_name, name = key
    owner = owner_of(source)
    mp = view_class_of((fingerprint, full_name), owner.plan if owner is not None else None)._plan_
    f = mp.by_name[name]
    make = make_repeated(f, lambda: view_class(mp.child(f)))
    if not address:
        return make(_EMPTY_ARRAY, 0, None)
    assert owner is not None
    return make(*owner.place(address - _COUNT_WIDTH))


def box_part(
    key: tuple[str, str, str], source: Any, address: int, first: int, step: int, count: int
) -> list[Any]:
    """The list that a slice of a repeated field is: ``count`` elements from index ``first``, by ``step``."""
    field = box_field(key, source, address)
    return [field[first + i * step] for i in range(count)]
