"""Where the texts of one field stand, for many messages: their addresses, not their bytes."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import NumbaTypeError
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from yaffjit.jit.columns.loops import ROWS_AHEAD
from yaffjit.jit.columns.places import Walk
from yaffjit.jit.emit.outline import I64
from yaffjit.jit.records import message_at, prefetch_at
from yaffjit.jit.types import MessageViewType, PathsType
from yaffjit.kernels.cached import cached
from yaffjit.plan.gathering import gathering


@intrinsic
def text_address(typingctx, message, paths):  # type: ignore[no-untyped-def]
    """``text_address(message, paths)``: where the object of the only path's text stands.

    That is a u32, how many bytes it has, and these. 0 where the field is absent or empty and so isn't stored.
    """
    if not (isinstance(message, MessageViewType) and isinstance(paths, PathsType)):
        raise NumbaTypeError("text_address takes a message view and paths")

    def codegen(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        view = cgutils.create_struct_proxy(message)(context, builder, args[0])
        (leaf,) = gathering(paths.mp, paths.values, paths.presences).root.leaves
        reference = Walk(builder, view.pointer, view.owner).place(leaf.steps).reference()
        return builder.ptrtoint(reference, I64)

    return types.int64(message, paths), codegen


def _find_addresses(records, paths, addresses, begin, end):  # type: ignore[no-untyped-def]
    """Stores `text_address` of rows ``begin`` to ``end``.

    Requires: ``0 <= begin``; ``end`` is at most the length of the records and of ``addresses``, int64;
    ``paths`` are of one path, of a text.
    Source: `yaffjit.index.key_build`.
    """
    for row in range(begin, end):
        prefetch_at(records, min(row + ROWS_AHEAD, end - 1))
        addresses[row] = text_address(message_at(records, row), paths)


find_addresses = cached(_find_addresses, nogil=True)
