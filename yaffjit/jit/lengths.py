"""The length that numba asks an iterator for, to make ``np.array([... for x in xs])`` without a list."""

from __future__ import annotations

from typing import Any, ClassVar

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import lower_builtin
from numba.core.inline_closurecall import length_of_iterator
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global, signature


def has_length(cls: type[types.IteratorType]) -> None:
    """Give it to a class of iterators whose native form has a member ``count``: how many values it yields."""

    class Typing(AbstractTemplate):
        metadata: ClassVar[dict[str, str]] = {"target": "cpu"}  # before numba's own, which raises

        def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
            return signature(types.intp, *args) if isinstance(args[0], cls) else None

    infer_global(length_of_iterator)(type("LengthOfIterator", (Typing,), {}))

    @lower_builtin(length_of_iterator, cls)
    def length(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        return cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0]).count
