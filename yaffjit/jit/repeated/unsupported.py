"""What isn't given for repeated fields: a sentence of ours where numba would list its own tries.

To be imported after all that gives something for them, since numba asks in that order.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types
from numba.core.typing.templates import infer_global

from yaffjit.errors import CompileTypeError
from yaffjit.jit.operators import BINARY, ORDER
from yaffjit.jit.refusals import refusal, refuse_calls
from yaffjit.jit.repeated.access import Typing
from yaffjit.jit.repeated.arrays import REDUCTIONS
from yaffjit.jit.repeated.type import RepeatedType

Args = tuple[types.Type, ...]


def _first(args: Args) -> RepeatedType | None:
    return next((typ for typ in args if isinstance(typ, RepeatedType)), None)


def _rule(words: str) -> Callable[[Args], str | None]:
    """A sentence with the field's place where an argument is a repeated field."""

    def rule(args: Args) -> str | None:
        repeated = _first(args)
        return None if repeated is None else words.format(repeated.place())

    return rule


for _symbol in ("+", "*", *ORDER):
    _text = f"{_symbol} isn't for {{}}, which is repeated: list(x) makes a list of it"
    for _function in BINARY[_symbol]:
        refuse_calls(_function, _rule(_text))
# Not the ufuncs: numba fuses those whose results are arrays, and takes a repeated field for a number there.
_UFUNCS: tuple[Any, ...] = tuple(f for f in vars(np).values() if isinstance(f, np.ufunc))
for _function in (*REDUCTIONS, *_UFUNCS):
    _text = f"np.{_function.__name__} isn't given for {{}} with these arguments: use np.asarray(x)"
    refuse_calls(_function, _rule(_text))
refuse_calls(tuple, _rule("jitted code must know a tuple's length when it's compiled: use a list of {}"))
# numba would give these something.
refuse_calls(hash, _rule("a repeated field isn't hashable: {}"), first=True)


@infer_global(operator.setitem)
@infer_global(operator.delitem)
class _Change(Typing):
    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> None:
        if isinstance(args[0], RepeatedType):
            text = f"repeated fields are read-only in jitted code: {args[0].place()}"
            raise refusal(CompileTypeError, text)
