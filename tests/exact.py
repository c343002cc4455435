"""The value of a uint64 field in jitted code, without a field: from numba's own unsigned integers."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from yaffjit.jit.integers import uint64_exact


@intrinsic
def as_exact(typingctx: Any, x: types.Type) -> Any:
    """``as_exact(x)``: an unsigned integer of numba's as a uint64_exact."""
    if x is not uint64_exact and not (isinstance(x, types.Integer) and not x.signed):
        return None

    def codegen(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
        return context.cast(builder, args[0], sig.args[0], uint64_exact)

    return uint64_exact(x), codegen
