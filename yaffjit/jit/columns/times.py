"""protobuf's Timestamp and Duration as counts of a unit, as LLVM; by the rules of `yaffjit.jit.wellknown`.

A part of a unit is cut off towards zero. What numpy takes for "not a time" is the least int64.
"""

from __future__ import annotations

from llvmlite import ir

from yaffjit.jit.columns.places import Place
from yaffjit.jit.emit import yaff
from yaffjit.jit.emit.outline import I64
from yaffjit.jit.wellknown import FIRST_SECOND, LAST_SECOND, NANOS
from yaffjit.plan.model import MessagePlan
from yaffjit.plan.requests import TIMESTAMP

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": NANOS}
NOT_A_TIME = I64(-(2**63))
_I128 = ir.IntType(128)


def read_time(
    builder: ir.IRBuilder, mp: MessagePlan, place: Place, dtype: str, is_there: bool
) -> tuple[ir.Value, ir.Value]:
    """The int64 of a time in a column, and whether it fits; see `time_of`.

    Args:
        mp: Timestamp or Duration.
        dtype: "datetime64[us]" and the like.
        is_there: an element that is read as it comes, so it can't be absent.
    """
    pointer = place.reference()
    seconds, nanos = (yaff.scalar(builder, mp, mp.by_name[name], pointer) for name in ("seconds", "nanos"))
    present = None if is_there else place.present()
    return time_of(builder, mp, seconds, nanos, present, dtype)


def time_of(
    builder: ir.IRBuilder,
    mp: MessagePlan,
    seconds: ir.Value,
    nanos: ir.Value,
    present: ir.Value | None,
    dtype: str,
) -> tuple[ir.Value, ir.Value]:
    """The int64 of a time in a column, and whether it fits.

    Args:
        mp: Timestamp or Duration.
        seconds, nanos: an i64 and an i32.
        present: whether it's there at all, as an i1; None if it is.
        dtype: "datetime64[us]" and the like.

    Returns:
        The count of units, and an i1: false where it's beyond int64, or a Timestamp isn't valid.
    """
    b = builder
    nanos = b.sext(nanos, I64)
    per_second = PER_SECOND[dtype.partition("[")[2].rstrip("]")]
    rest = b.sdiv(nanos, I64(NANOS // per_second))
    whole = b.mul(b.sext(seconds, _I128), _I128(per_second))
    whole = b.add(whole, b.sext(rest, _I128))
    value = b.trunc(whole, I64)
    fits = b.icmp_signed("==", b.sext(value, _I128), whole)
    fits = b.and_(fits, b.icmp_signed("!=", value, NOT_A_TIME))
    if mp.full_name == TIMESTAMP:
        # One comparison each: below the range, the difference is a large unsigned number.
        seconds_in = b.icmp_unsigned("<=", b.sub(seconds, I64(FIRST_SECOND)), I64(LAST_SECOND - FIRST_SECOND))
        fits = b.and_(fits, b.and_(seconds_in, b.icmp_unsigned("<", nanos, I64(NANOS))))
    if present is None:
        return value, fits
    return b.select(present, value, NOT_A_TIME), b.or_(fits, b.not_(present))
