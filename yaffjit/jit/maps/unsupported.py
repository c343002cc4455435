"""What isn't given for maps and their parts: a sentence of ours where numba would list its own tries.

To be imported after all that gives something for them, since numba asks in that order.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types
from numba.core.typing.templates import AttributeTemplate, infer_getattr

from yaffjit.errors import CompileAttributeError
from yaffjit.jit.maps.type import MapPartType, MapType
from yaffjit.jit.operators import BINARY, EQUALITY, ORDER
from yaffjit.jit.refusals import is_probed, refusal, refuse_calls

Args = tuple[types.Type, ...]

_ARRAYS: tuple[Callable[..., Any], ...] = (np.array, np.asarray, np.sum, np.mean, np.max, np.min)


def _place(typ: MapType | MapPartType) -> str:
    return typ.field_name if isinstance(typ, MapType) else f"{typ.part}() of {typ.field_name}"


def _rule(words: str, count: int | None = None) -> Callable[[Args], str | None]:
    """A sentence with the field where one of the first ``count`` arguments is a map or part of one."""

    def rule(args: Args) -> str | None:
        found = next((typ for typ in args[:count] if isinstance(typ, (MapType, MapPartType))), None)
        return None if found is None else words.format(_place(found))

    return rule


for _symbol in (*"+-*&|^", *EQUALITY, *ORDER):
    for _function in BINARY[_symbol]:
        refuse_calls(_function, _rule(f"{_symbol} of {{}} isn't available in jitted code: use its values"))
for _function in _ARRAYS:
    refuse_calls(_function, _rule(f"np.{_function.__name__}() isn't for {{}}: use np.array(list(x))", 1))
refuse_calls(
    operator.getitem, _rule("{} can't be indexed: iterate over it, or take list(x) for a list of it", 1)
)
refuse_calls(tuple, _rule("jitted code must know a tuple's length when it's compiled: use a list of {}"))
refuse_calls(reversed, _rule("reversed() of {} isn't available in jitted code: use list(x)[::-1]"))
_DICT = "dict() of {} isn't available in jitted code: fill a dict in a loop over its items()"
# numba would give these something, or words of its own.
refuse_calls(dict, _rule(_DICT), first=True)
refuse_calls(hash, _rule("a map isn't hashable: {}"), first=True)


@infer_getattr
class _PartAttributes(AttributeTemplate):
    key = MapPartType

    def generic_resolve(self, typ: MapPartType, name: str) -> None:
        if not is_probed() and not name.startswith("__"):
            text = f"{_place(typ)} has no {name!r} in jitted code: only len(), in and loops over it"
            raise refusal(CompileAttributeError, text)
