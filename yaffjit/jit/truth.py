"""``bool(x)``, ``if x``, ``not x`` in jitted code for types of ours."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global, signature

IsTrue = Callable[[Any, ir.IRBuilder, types.Type, ir.Value], ir.Value]


def has_truth(cls: type[types.Type]) -> Callable[[IsTrue], IsTrue]:
    """Register ``is_true(context, builder, type, value) -> i1`` for a class of types."""

    class Typing(AbstractTemplate):
        def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
            return signature(types.boolean, args[0]) if isinstance(args[0], cls) else None

    infer_global(operator.truth)(type("Truth", (Typing,), {}))
    infer_global(operator.not_)(type("Not", (Typing,), {}))

    def register(is_true: IsTrue) -> IsTrue:
        def lower(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
            return is_true(context, builder, sig.args[0], args[0])

        def lower_not(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
            return builder.not_(lower(context, builder, sig, args))

        lower_builtin(operator.truth, cls)(lower)
        lower_builtin(bool, cls)(lower)
        lower_builtin(operator.not_, cls)(lower_not)
        return is_true

    return register
