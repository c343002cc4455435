"""The exception of a varint in a packed run that is cut off or too long, raised by the frame that reads it.

The scan of a message doesn't look into packed runs.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit
from numba.core import types

from yaffjit.jit.emit.outline import I64
from yaffjit.jit.emit.wire_runs import Cursor, Place
from yaffjit.jit.records import raise_jitted
from yaffjit.jit.wire.faults import WireError
from yaffjit.jit.wire.repeated.type import WireRepeatedType
from yaffjit.kernels.wire_fault import CUT_VARINT, LONG_VARINT

_MOST = 10  # bytes of a varint


@njit
def _raise_bad(key, address, position, number, index, left):  # type: ignore[no-untyped-def]
    if left < _MOST:
        raise WireError(key, CUT_VARINT, position, number, index, left, _MOST, address)
    raise WireError(key, LONG_VARINT, position, number, index, _MOST + 1, _MOST, address)


def raise_bad_varint(
    context: Any, builder: ir.IRBuilder, typ: WireRepeatedType, message: ir.Value, place: Place, at: Cursor
) -> None:
    """Raise what is wrong with the varint that a cursor is at; the block ends with it.

    Args:
        message: the pointer to it.
    """
    b = builder
    key = f"{typ.mp.fingerprint} {typ.mp.full_name}"
    address = b.ptrtoint(message, I64)
    run = b.ptrtoint(at.run, I64)
    args = [
        context.get_constant_generic(b, types.unicode_type, key),
        address,
        b.sub(run, address),
        place.number,
        b.sub(b.sub(place.count, at.left), I64(1)),
        b.sub(b.ptrtoint(at.run_end, I64), run),
    ]
    raise_jitted(context, b, _raise_bad, (types.unicode_type, *[types.int64] * 5), args)
