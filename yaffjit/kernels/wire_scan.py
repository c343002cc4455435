"""One pass over a protobuf message that checks all that protobuf checks, and can write a tape of its fields.

The tape is what later passes read in place of the bytes: `ENTRY_NBYTES` for each occurrence of a field, in
the order of the bytes. The words of an entry are

* `RECORD`: the address of the field's record in the table;
* `VALUE`: the bits of a scalar; the address of a text or of packed values; the number of an unknown field;
* `EXTENT`: `ONE` of a single scalar; the bytes of a text; bytes and count (above 32 bits) of packed values;
  where on the tape a message ends, whose fields follow its own entry;
* `NEXT`: for what comes after.

What protobuf calls unknown has the record of unknown fields: other numbers, other wire types, numbers that a
closed enum doesn't have, and the whole pair of a map that has any of these. Of fields that YaFF doesn't carry
there's the entry alone.
"""

from __future__ import annotations

from yaffjit.kernels.cached import inner
from yaffjit.kernels.memory import load_i64, load_u8, load_u32, stack_words, store_i64
from yaffjit.kernels.wire import (
    count_varints,
    is_member,
    is_text,
    quieted,
    read_size,
    read_tag,
    read_varint,
    scalar_of,
    skip_group,
)
from yaffjit.plan import wire_tables as tables
from yaffjit.plan.limits import MAX_DEPTH

RECORD = 0
VALUE = 8
EXTENT = 16
NEXT = 24
ENTRY_NBYTES = 32
ONE = -1

# Results of `scan` that aren't an end of the tape.
MALFORMED = -1
NO_ROOM = -2

_DENSE = 8 * tables.DENSE
_DENSE_COUNT = 8 * tables.DENSE_COUNT
_FAR = 8 * tables.FAR
_FAR_COUNT = 8 * tables.FAR_COUNT
_UNKNOWN = 8 * tables.UNKNOWN
_IS_ENTRY = 8 * tables.IS_ENTRY
_OPS = 8 * tables.OPS
_NUMBER = 8 * tables.NUMBER
_MESSAGE = 8 * tables.MESSAGE
_ENUM = 8 * tables.ENUM
_SLOT = 8 * tables.SLOT
_TAKES_ZERO = 8 * tables.TAKES_ZERO

_FRAME_NBYTES = 8 * 6
_FRAMES_WORDS = 6 * (MAX_DEPTH + 1)
_MASK32 = 0xFFFFFFFF


@inner
def _find(table: int, message: int, number: int) -> int:
    """The record of a field whose number isn't dense."""
    pairs = table + load_i64(message + _FAR)
    low = 0
    high = load_i64(message + _FAR_COUNT)
    count = high
    while low < high:
        middle = (low + high) >> 1
        if load_i64(pairs + 16 * middle) < number:
            low = middle + 1
        else:
            high = middle
    if low < count and load_i64(pairs + 16 * low) == number:
        return table + load_i64(pairs + 16 * low + 8)
    return table + load_i64(message + _UNKNOWN)


@inner
def _push(top: int, record: int, value: int, extent: int) -> int:
    store_i64(top, record)
    store_i64(top + VALUE, value)
    store_i64(top + EXTENT, extent)
    return top + ENTRY_NBYTES


@inner
def _packed_enum(
    pos: int, limit: int, record: int, unknown: int, number: int, enum: int, top: int, end: int
) -> tuple[int, int]:
    """Checks packed values of a closed enum and, if ``top`` isn't 0, writes what is unknown, then the rest.

    The end of the tape, or MALFORMED or NO_ROOM; and how many are unknown.
    """
    start = pos
    count = 0
    strangers = 0
    while pos < limit:
        value, pos = read_varint(pos, limit)
        if pos == 0:
            return MALFORMED, 0
        if is_member(enum, value & _MASK32):
            count += 1
        else:
            strangers += 1
            if top != 0:
                if top >= end:
                    return NO_ROOM, 0
                top = _push(top, unknown, number, ONE)
    if top != 0:
        if top >= end:
            return NO_ROOM, 0
        top = _push(top, record, start, (limit - start) | count << 32)
    return top, strangers


@inner
def scan(table: int, start: int, nbytes: int, floor: int, tape: int, tape_end: int) -> int:
    """Checks a message and writes its tape; with ``tape`` 0 it only checks.

    Returns the end of the tape, plus 1 if anything on it isn't carried; or MALFORMED, or NO_ROOM where the
    tape is too short.

    Requires: the address of a table; ``nbytes`` readable bytes at ``start``, and all from ``floor`` to
    there; a tape of whole entries, at an even address.
    Source: google.protobuf (upb); the tests compare what is accepted.
    """
    frames = stack_words(_FRAMES_WORDS)
    depth = 0
    pos = start
    limit = start + nbytes
    message = table
    group = 0  # the number whose end tag ends the message; 0 if its limit does
    entry = 0  # of the message on the tape
    lost = 0  # YaFF doesn't carry the message
    strange = 0  # the message has what is unknown
    uncarried = 0
    top = tape
    size_bits = load_i64(table + 8 * tables.SIZE_BITS)
    dense = table + load_i64(message + _DENSE)
    dense_count = load_i64(message + _DENSE_COUNT)
    while True:
        op = tables.END_GROUP
        number = 0
        record = 0
        if pos == limit:
            if group != 0:
                return MALFORMED
            if depth == 0:
                return top | uncarried
        else:
            tag = load_u8(pos)
            if tag < 128:
                pos += 1
            else:
                tag, pos = read_tag(pos, limit)
                if pos == 0:
                    return MALFORMED
            number = tag >> 3
            if number == 0 and (tag == 4 or load_i64(message + _TAKES_ZERO) == 0):
                return MALFORMED
            if number < dense_count:
                record = table + load_i64(dense + 8 * number)
            else:
                record = _find(table, message, number)
            op = (load_i64(record + _OPS) >> (8 * (tag & 7))) & 255
        if op >= tables.VARINT64:
            value = 0
            extent = ONE
            if op <= tables.CLOSED_ENUM:
                value = load_u8(pos) if pos < limit else 128
                if value < 128:
                    pos += 1
                else:
                    value, pos = read_varint(pos, limit)
                    if pos == 0:
                        return MALFORMED
                value = scalar_of(op, value)
                if op == tables.CLOSED_ENUM and not is_member(table + load_i64(record + _ENUM), value):
                    record = table + load_i64(message + _UNKNOWN)
                    value = number
                    strange = 1
            elif op <= tables.FLOAT:
                if limit - pos < 4:
                    return MALFORMED
                value = load_u32(pos)
                if op == tables.FLOAT:
                    value = quieted(value)
                pos += 4
            elif op == tables.FIXED64:
                if limit - pos < 8:
                    return MALFORMED
                value = load_i64(pos)
                pos += 8
            elif op == tables.GROUP:
                extent = 0
            else:
                extent = load_u8(pos) if pos < limit else 128
                if extent < 128 and extent < limit - pos:
                    pos += 1
                else:
                    extent, pos = read_size(pos, limit, size_bits)
                if pos == 0:
                    return MALFORMED
                value = pos
                if op == tables.UTF8_TEXT:
                    if not is_text(pos, extent, floor):
                        return MALFORMED
                    pos += extent
                elif op == tables.PACKED_VARINT:
                    count = count_varints(pos, pos + extent)
                    if count < 0:
                        return MALFORMED
                    pos += extent
                    extent |= count << 32
                elif op == tables.PACKED_ENUM:
                    unknown = table + load_i64(message + _UNKNOWN)
                    enum = table + load_i64(record + _ENUM)
                    end = pos + extent
                    top, count = _packed_enum(pos, end, record, unknown, number, enum, top, tape_end)
                    if top < 0:
                        return top
                    if count != 0 or load_i64(record + _SLOT) < 0:
                        uncarried = 1
                    pos = end
                    continue
                elif op == tables.PACKED_FIXED32:
                    if extent & 3 != 0:
                        return MALFORMED
                    pos += extent
                    extent |= (extent >> 2) << 32
                elif op == tables.PACKED_FIXED64:
                    if extent & 7 != 0:
                        return MALFORMED
                    pos += extent
                    extent |= (extent >> 3) << 32
                elif op == tables.TEXT:
                    pos += extent
            slot = load_i64(record + _SLOT)
            if slot < 0:
                uncarried = 1
            if tape != 0:
                if top >= tape_end:
                    return NO_ROOM
                top = _push(top, record, value, extent)
            if op == tables.CONTENT or op == tables.GROUP:
                if depth == MAX_DEPTH:
                    return MALFORMED
                frame = frames + _FRAME_NBYTES * depth
                store_i64(frame, limit)
                store_i64(frame + 8, message)
                store_i64(frame + 16, group)
                store_i64(frame + 24, entry)
                store_i64(frame + 32, lost)
                store_i64(frame + 40, strange)
                depth += 1
                if op == tables.CONTENT:
                    limit = pos + extent
                    group = 0
                else:
                    group = number
                message = table + load_i64(record + _MESSAGE)
                dense = table + load_i64(message + _DENSE)
                dense_count = load_i64(message + _DENSE_COUNT)
                entry = top - ENTRY_NBYTES
                lost = slot
                strange = 0
        elif op == tables.END_GROUP:
            if number != group:
                return MALFORMED
            closed = entry
            dropped = lost < 0
            spoilt = strange != 0 and load_i64(message + _IS_ENTRY) != 0
            depth -= 1
            frame = frames + _FRAME_NBYTES * depth
            limit = load_i64(frame)
            message = load_i64(frame + 8)
            group = load_i64(frame + 16)
            entry = load_i64(frame + 24)
            lost = load_i64(frame + 32)
            strange = load_i64(frame + 40)
            dense = table + load_i64(message + _DENSE)
            dense_count = load_i64(message + _DENSE_COUNT)
            if tape != 0:
                if dropped or spoilt:
                    top = closed + ENTRY_NBYTES
                    if not dropped:
                        store_i64(closed + VALUE, load_i64(load_i64(closed) + _NUMBER))
                        store_i64(closed, table + load_i64(message + _UNKNOWN))
                store_i64(closed + EXTENT, top)
        else:
            if op == tables.SKIP_VARINT:
                _, pos = read_varint(pos, limit)
            elif op == tables.SKIP_BYTES:
                size, pos = read_size(pos, limit, size_bits)
                if pos != 0:
                    pos += size
            elif op == tables.SKIP_GROUP:
                pos = skip_group(pos, limit, number, depth, table)
            elif op == tables.BAD:
                return MALFORMED
            else:
                pos += 8 if op == tables.SKIP_FIXED64 else 4
                if pos > limit:
                    return MALFORMED
            if pos == 0:
                return MALFORMED
            strange = 1
            uncarried = 1
            if tape != 0:
                if top >= tape_end:
                    return NO_ROOM
                top = _push(top, table + load_i64(message + _UNKNOWN), number, ONE)
