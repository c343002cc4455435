"""Reads protobuf's wire format: varints, groups that nobody knows, text. Bounds are checked.

Positions are addresses. Where one is returned, 0 says that the bytes aren't what protobuf accepts.
"""

from __future__ import annotations

from yaffjit.kernels.cached import inner
from yaffjit.kernels.memory import load_i64, load_u8, stack_words, store_i64
from yaffjit.kernels.verify_text import is_utf8
from yaffjit.plan import wire_tables as tables
from yaffjit.plan.limits import MAX_DEPTH

MAX_SIZE = 2**31 - 1

_ENUM_NUMBERS = 8
_CONTINUES = -0x7F7F7F7F7F7F7F80  # the top bit of each of eight bytes
_SIGN32 = 0x80000000
_MASK32 = 0xFFFFFFFF


@inner
def read_varint(pos: int, limit: int) -> tuple[int, int]:
    """The 64 bits of a varint of up to ten bytes, and the position behind it."""
    value = 0
    shift = 0
    while pos < limit and shift < 70:
        byte = load_u8(pos)
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, pos
        shift += 7
    return 0, 0


@inner
def read_tag(pos: int, limit: int) -> tuple[int, int]:
    """A tag, and the position behind it."""
    tag = 0
    shift = 0
    while pos < limit and shift < 35:
        byte = load_u8(pos)
        pos += 1
        tag |= (byte & 127) << shift
        if byte < 128:
            return tag, pos if tag <= _MASK32 else 0
        shift += 7
    return 0, 0


@inner
def read_size(pos: int, limit: int, bits: int) -> tuple[int, int]:
    """The size of what follows, which ends at ``limit`` at the latest, and its position.

    ``bits``: 35 or 70, how many a size may have.
    """
    start = pos
    size, pos = read_varint(pos, limit)
    fits = pos != 0 and 7 * (pos - start) <= bits and 0 <= size <= MAX_SIZE and size <= limit - pos
    return size, pos if fits else 0


@inner
def scalar_of(op: int, value: int) -> int:
    """The bits of a scalar, of 32 in the low half, by its operation and its varint."""
    if op == tables.VARINT64:
        return value
    if op == tables.BOOL:
        return 1 if value != 0 else 0
    if op == tables.ZIGZAG64:
        return ((value >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1)
    value &= _MASK32
    if op == tables.ZIGZAG32:
        return ((value >> 1) ^ -(value & 1)) & _MASK32
    return value


@inner
def quieted(bits: int) -> int:
    """The bits of a float, of a signalling NaN those of its quiet one: Python's floats are doubles."""
    return bits | 0x400000 if bits & 0x7FFFFFFF > 0x7F800000 else bits


@inner
def is_member(enum: int, bits: int) -> bool:
    """Whether a closed enum has a number of 32 bits.

    Requires: the address of an enum of a table.
    """
    number = (bits ^ _SIGN32) - _SIGN32
    low = 0
    high = load_i64(enum)
    while low < high:
        middle = (low + high) >> 1
        if load_i64(enum + _ENUM_NUMBERS + 8 * middle) < number:
            low = middle + 1
        else:
            high = middle
    return low < load_i64(enum) and load_i64(enum + _ENUM_NUMBERS + 8 * low) == number


@inner
def count_varints(pos: int, limit: int) -> int:
    """How many varints lie there; -1 if the last one has no end or one has over ten bytes."""
    count = 0
    length = 0
    while pos < limit:
        if length == 0 and limit - pos >= 8 and load_i64(pos) & _CONTINUES == 0:
            pos += 8
            count += 8
            continue
        length += 1
        if load_u8(pos) < 128:
            length = 0
            count += 1
        elif length == 10:
            return -1
        pos += 1
    return count if length == 0 else -1


@inner
def skip_group(pos: int, limit: int, number: int, depth: int, table: int) -> int:
    """The position behind the end of an unknown group that began before ``pos``.

    ``depth``: of the message that has it.
    """
    takes_zero = load_i64(table + 8 * tables.GROUPS_TAKE_ZERO)
    size_bits = load_i64(table + 8 * tables.SIZE_BITS)
    return end_of_group(pos, limit, number, depth, size_bits, takes_zero)[1]


@inner
def end_of_group(
    pos: int, limit: int, number: int, depth: int, size_bits: int, takes_zero: int
) -> tuple[int, int]:
    """Where the end tag of the group begins whose content is at ``pos``, and the position behind; or 0, 0."""
    numbers = stack_words(102)
    open_groups = 1
    store_i64(numbers, number)
    while depth + open_groups <= MAX_DEPTH:
        at = pos
        tag, pos = read_tag(pos, limit)
        if pos == 0 or (tag < 8 and takes_zero == 0):
            return 0, 0
        wire_type = tag & 7
        if wire_type == 0:
            _, pos = read_varint(pos, limit)
        elif wire_type == 2:
            size, pos = read_size(pos, limit, size_bits)
            if pos != 0:
                pos += size
        elif wire_type == 3:
            store_i64(numbers + 8 * open_groups, tag >> 3)
            open_groups += 1
        elif wire_type == 4:
            open_groups -= 1
            if load_i64(numbers + 8 * open_groups) != tag >> 3:
                return 0, 0
            if open_groups == 0:
                return at, pos
        elif wire_type == 1 or wire_type == 5:
            pos += 8 if wire_type == 1 else 4
            if pos > limit:
                return 0, 0
        else:
            return 0, 0
        if pos == 0:
            return 0, 0
    return 0, 0


@inner
def is_text(start: int, nbytes: int, floor: int) -> bool:
    """Whether the text at ``start`` is UTF-8.

    Requires: all bytes from ``floor`` to its end can be read.
    """
    if start + nbytes - floor >= 8:
        return is_utf8(start, nbytes)
    copy = stack_words(2)
    store_i64(copy, 0)
    word = 0
    for i in range(nbytes):
        word |= load_u8(start + i) << (8 * i)
    store_i64(copy + 8, word)
    return is_utf8(copy + 8, nbytes)
