"""What is wrong with a protobuf message that a scan refused: found anew, where speed doesn't matter.

Faults are told by numbers, which `yaffjit.errors.WIRE_FAULTS` has words for.
"""

from __future__ import annotations

from yaffjit.kernels.cached import cached, inner
from yaffjit.kernels.memory import load_i64, load_u8, stack_words, store_i64
from yaffjit.plan.limits import MAX_DEPTH

(
    LONG_MESSAGE,
    NUMBER_ZERO,
    LARGE_TAG,
    CUT_VARINT,
    LONG_VARINT,
    LARGE_SIZE,
    CUT_SIZE,
    CUT_VALUE,
    WIRE_TYPE,
    OPEN_GROUP,
    OTHER_END,
    LONE_END,
    ODD_RUN,
    DEEP,
) = range(14)

_MAX_SIZE = 2**31 - 1
_MAX_TAG = 2**32 - 1
_MASK32 = 0xFFFFFFFF
_TAG_NBYTES = 5
_VARINT_NBYTES = 10


@inner
def _varint(pos, end, most):  # type: ignore[no-untyped-def]
    """The bits of a varint, the position behind it, and 0; or the fault and its two numbers."""
    value = 0
    for i in range(most):
        if pos + i >= end:
            return i, most, 1 + CUT_VARINT
        byte = load_u8(pos + i)
        value |= (byte & 127) << (7 * i)
        if byte < 128:
            return value, pos + i + 1, 0
    return most + 1, most, 1 + LONG_VARINT


@inner
def _tag(pos, end):  # type: ignore[no-untyped-def]
    """A tag, the position behind it, and 0; or the fault and its two numbers."""
    tag, after, fault = _varint(pos, end, _TAG_NBYTES)
    if fault == 0 and tag > _MAX_TAG:
        return tag, _MAX_TAG, 1 + LARGE_TAG
    return tag, after, fault


@inner
def _value(pos, end, wire_type):  # type: ignore[no-untyped-def]
    """The position behind a value that isn't a group, where it's broken, its size if it has one, and 0.

    Or the fault and its two numbers, and where it is.
    """
    if wire_type == 1 or wire_type == 5:
        width = 8 if wire_type == 1 else 4
        if end - pos < width:
            return width, end - pos, pos, 1 + CUT_VALUE
        return pos + width, 0, pos, 0
    value, after, fault = _varint(pos, end, _VARINT_NBYTES)
    if fault != 0:
        return value, after, pos, fault
    if wire_type == 0:
        return after, 0, pos, 0
    if value < 0 or value > _MAX_SIZE:
        return value, _MAX_SIZE, pos, 1 + LARGE_SIZE
    if value > end - after:
        return value, end - after, pos, 1 + CUT_SIZE
    return after + value, value, pos, 0


@inner
def _group(pos, end, number, at):  # type: ignore[no-untyped-def]
    """The position behind the group that began at ``at``, 0, 0, 0; or a fault as `_value`."""
    numbers = stack_words(101)
    places = stack_words(101)
    store_i64(numbers, number)
    store_i64(places, at)
    depth = 1
    while True:
        last = 8 * (depth - 1)
        if depth > MAX_DEPTH:
            return depth, MAX_DEPTH, load_i64(places + last), 1 + DEEP
        at = pos
        if at >= end:
            return load_i64(numbers + last), 0, load_i64(places + last), 1 + OPEN_GROUP
        tag, pos, fault = _tag(at, end)
        if fault != 0:
            return tag, pos, at, fault
        wire_type = tag & 7
        if wire_type == 3:
            store_i64(numbers + 8 * depth, tag >> 3)
            store_i64(places + 8 * depth, at)
            depth += 1
        elif wire_type == 4:
            if load_i64(numbers + last) != tag >> 3:
                return tag >> 3, load_i64(numbers + last), at, 1 + OTHER_END
            depth -= 1
            if depth == 0:
                return pos, 0, 0, 0
        elif wire_type > 5:
            return wire_type, 5, at, 1 + WIRE_TYPE
        else:
            found, limit, place, fault = _value(pos, end, wire_type)
            if fault != 0:
                return found, limit, place, fault
            pos = found


def _find_fault(start, nbytes, error):  # type: ignore[no-untyped-def]
    """What a scan refused, as ``(fault, position, number, index, found, limit)``.

    Args:
        start, nbytes: address and bytes of the message.
        error: what the scan gave (`yaffjit.jit.emit.wire`).

    Returns:
        The position of the fault, from the message's beginning; the number of its field, 0 if there's none;
        how many occurrences of it come before; and the two numbers that were compared.

    Requires: the bytes are those that the scan saw.
    """
    if nbytes > _MAX_SIZE or nbytes < 0:
        return LONG_MESSAGE, 0, 0, 0, nbytes, _MAX_SIZE
    end = start + nbytes
    at = start + (error & _MASK32) - 1
    width = error >> 32
    tag, after, fault = _tag(at, end)
    if fault != 0:
        return fault - 1, at - start, 0, 0, tag, after
    number, wire_type = tag >> 3, tag & 7
    if number == 0:
        return NUMBER_ZERO, at - start, 0, 0, 0, 1
    if wire_type == 4:
        return LONE_END, at - start, 0, 0, number, 0
    index = 0
    pos = start
    while pos < at and fault == 0:  # another thread may have written there since
        tag, behind, fault = _tag(pos, end)
        if fault == 0:
            if tag >> 3 == number:
                index += 1
            if tag & 7 == 3:
                pos, _, _, fault = _group(behind, end, tag >> 3, pos)
            else:
                pos, _, _, fault = _value(behind, end, tag & 7)
    if wire_type > 5:
        return WIRE_TYPE, at - start, number, index, wire_type, 5
    if wire_type == 3:
        found, limit, place, fault = _group(after, end, number, at)
    else:
        found, limit, place, fault = _value(after, end, wire_type)
        if fault == 0:  # of a packed run nothing but its width can be wrong
            found, limit, fault = limit, width, 1 + ODD_RUN
    return fault - 1, place - start, number, index, found, limit


find_fault = cached(_find_fault, nogil=True)
