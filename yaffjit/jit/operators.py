"""Python's operators by the signs that sentences show: each with its in-place form, where it has one."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

BINARY: dict[str, tuple[Callable[..., Any], ...]] = {
    "+": (operator.add, operator.iadd),
    "-": (operator.sub, operator.isub),
    "*": (operator.mul, operator.imul),
    "//": (operator.floordiv, operator.ifloordiv),
    "%": (operator.mod, operator.imod),
    "/": (operator.truediv, operator.itruediv),
    "**": (operator.pow, operator.ipow),
    "&": (operator.and_, operator.iand),
    "|": (operator.or_, operator.ior),
    "^": (operator.xor, operator.ixor),
    "<<": (operator.lshift, operator.ilshift),
    ">>": (operator.rshift, operator.irshift),
    "==": (operator.eq,),
    "!=": (operator.ne,),
    "<": (operator.lt,),
    "<=": (operator.le,),
    ">": (operator.gt,),
    ">=": (operator.ge,),
}
EQUALITY = ("==", "!=")
ORDER = ("<", "<=", ">", ">=")
UNARY: dict[str, Callable[..., Any]] = {"-": operator.neg, "+": operator.pos, "~": operator.invert}
