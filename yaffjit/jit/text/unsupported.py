"""What isn't given for text and bytes: a sentence of ours where numba would list its own tries.

To be imported after all that gives something for them, since numba asks in that order.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, infer_global

from yaffjit.errors import CompileTypeError
from yaffjit.jit.operators import BINARY, EQUALITY, UNARY
from yaffjit.jit.refusals import refusal, refuse_calls, shown
from yaffjit.jit.text.rules import bare
from yaffjit.jit.text.type import BytesType, TextLikeType
from yaffjit.jit.types import OneofType

Args = tuple[types.Type, ...]

_FUNCTIONS: tuple[Callable[..., Any], ...] = (abs, complex, divmod, max, min, pow, round, sum)


def _named(typ: types.Type) -> str:
    found = bare(typ)
    if isinstance(found, (BytesType, types.Bytes)):
        return "bytes"
    return shown(found)


def _has_text(args: Args) -> bool:
    return any(isinstance(bare(arg), TextLikeType) for arg in args)


def _has_bytes(args: Args) -> bool:
    return any(isinstance(bare(arg), BytesType) for arg in args)


def _binary(symbol: str, taken: Callable[[Args], bool]) -> Callable[[Args], str | None]:
    def rule(args: Args) -> str | None:
        if len(args) != 2 or not taken(args):
            return None
        if symbol in EQUALITY and any(isinstance(bare(arg), OneofType) for arg in args):
            return None  # oneofs compare with numba's strings, which a text becomes
        return f"{_named(args[0])} {symbol} {_named(args[1])} isn't supported in jitted code"

    return rule


def _called(name: str, taken: Callable[[Args], bool] = _has_text) -> Callable[[Args], str | None]:
    def rule(args: Args) -> str | None:
        if not taken(args):
            return None
        return f"{name}({', '.join(map(_named, args))}) isn't supported in jitted code"

    return rule


def _unary(symbol: str) -> Callable[[Args], str | None]:
    def rule(args: Args) -> str | None:
        return f"{symbol} isn't for {_named(args[0])}" if _has_text(args) else None

    return rule


def _formatted(args: Args) -> str | None:
    return "% isn't available in jitted code: write an f-string" if _has_text(args[:1]) else None


def _index(args: Args) -> str | None:
    if not _has_text(args[:1]):
        return None
    if isinstance(args[1], types.SliceType):
        return f"a slice of {_named(args[0])} takes no step in jitted code"
    return f"{_named(args[0])} indices must be integers, not {_named(args[1])}"


def _contained(args: Args) -> str | None:
    if not _has_text(args[:1]):
        return None
    return f"{_named(args[1])} in {_named(args[0])} isn't supported in jitted code"


def _number(name: str) -> Callable[[Args], str | None]:
    text = (
        f"{name}() of a text isn't available in jitted code, as it isn't for numba's own strings: "
        "convert outside, or from ord(c) of each character"
    )
    return lambda args: text if _has_text(args[:1]) else None


for _symbol, _operators in BINARY.items():
    for _operator in _operators if _symbol != "%" else ():  # which has a sentence of its own
        refuse_calls(_operator, _binary(_symbol, _has_text))
        # numba takes its own bytes for arrays here, and fails later.
        refuse_calls(_operator, _binary(_symbol, _has_bytes), first=True)
for _symbol, _function in UNARY.items():
    refuse_calls(_function, _unary(_symbol))
for _function in BINARY["%"]:
    refuse_calls(_function, _formatted)
refuse_calls(operator.getitem, _index)
# numba takes its own bytes for an array here too, whose step is lost on the way out.
refuse_calls(operator.getitem, lambda args: _index(args) if _has_bytes(args[:1]) else None, first=True)
refuse_calls(operator.contains, _contained)
refuse_calls(int, _number("int"))
refuse_calls(float, _number("float"))
for _function in _FUNCTIONS:
    refuse_calls(_function, _called(_function.__name__))
for _name, _function in vars(np).items():
    if isinstance(_function, np.ufunc):
        refuse_calls(_function, _called(f"np.{_name}"))
        refuse_calls(_function, _called(f"np.{_name}", _has_bytes), first=True)


@infer_global(operator.setitem)
@infer_global(operator.delitem)
class _Change(AbstractTemplate):
    prefer_literal = True

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> None:
        if _has_text(args[:1]):
            raise refusal(CompileTypeError, f"{_named(args[0])} can't be changed: make another")
