"""Bytes of a message with what a builder was set to: what isn't changed is copied, in its order.

What `yaffjit.codec.update` does in Python, by the same rules. Of each message that has changes the parts are
listed, and each change gets its place among them: where its field was first, else before the first field of a
higher number. Then all is written from the end, as `yaffjit.kernels.builder_write` does.
"""

from __future__ import annotations

from yaffjit.kernels import builder_memory as memory
from yaffjit.kernels.builder_memory import take
from yaffjit.kernels.builder_parts import (
    BEGIN,
    CHANGE,
    COUNT,
    END,
    FIELD_NBYTES,
    FIRST,
    INSIDE,
    LINK,
    NEW,
    NONE,
    ONEOF_NBYTES,
    OWN,
    PART_NBYTES,
    STATE_NBYTES,
    UNSET,
    UNSET_WITHIN,
    UNTIL,
    count_parts,
    find_changes,
    joined,
    list_parts,
    place_changes,
    sort_parts,
)
from yaffjit.kernels.builder_write import (
    BROKEN,
    MAX_DEPTH,
    MAX_NBYTES,
    NO_MEMORY,
    TOO_DEEP,
    put_bytes,
    put_tag,
    put_varint,
    room_before,
    scratch_end,
    used_nbytes,
    write_part,
    written_nbytes,
)
from yaffjit.kernels.cached import cached, inner
from yaffjit.kernels.memory import load_i64, stack_words, store_i64
from yaffjit.kernels.write import zero
from yaffjit.plan import builder_tables as tables

# Words of a frame, which is a message that is being written.
_MESSAGE = 0  # its record in the table
_RECORD = 8  # and in memory
_PARTS = 16
_COUNT_OF_PARTS = 24
_STATES = 32  # of its fields
_HEADS = 40  # the last change before each part, and behind all
_NEXT = 48  # parts that are left
_RANK = 56  # of the change that comes next; NONE: a part does
_ROW = 64  # of the field within which the next frame's message lies
_USED = 72  # bytes that were written before it
_FRAME_NBYTES = 80
_FRAMES_WORDS = _FRAME_NBYTES // 8 * (MAX_DEPTH + 2)

# ---- messages ----


@inner
def _begin(
    state: int,
    table: int,
    frame: int,
    pos: int,
    nbytes: int,
    level: int,
    size_bits: int,
    groups_take_zero: int,
) -> int:
    """List the parts of the message of a frame, which lies at ``pos``; 0, or why they can't be."""
    message = load_i64(frame + _MESSAGE)
    fields = load_i64(message + 8 * tables.FIELD_COUNT)
    takes_zero = load_i64(message + 8 * tables.TAKES_ZERO)
    count = -1
    if nbytes <= MAX_NBYTES:
        count = count_parts(pos, pos + nbytes, level, size_bits, groups_take_zero, takes_zero)
    if count < 0:
        store_i64(state + memory.BROKEN_AT, pos)
        store_i64(state + memory.BROKEN_NBYTES, nbytes)
        store_i64(state + memory.BROKEN_ERROR, -count)
        store_i64(state + memory.BROKEN_MESSAGE, message - table)
        return BROKEN
    kept = fields * STATE_NBYTES + load_i64(message + 8 * tables.ONEOF_COUNT) * ONEOF_NBYTES
    states = take(state, kept)
    heads = take(state, 8 * (count + 1))
    parts = take(state, count * PART_NBYTES)
    if states == 0 or heads == 0 or parts == 0:
        return NO_MEMORY
    zero(states, kept)
    oneofs = states + fields * STATE_NBYTES
    find_changes(table, message, load_i64(frame + _RECORD), states, oneofs)
    count = list_parts(
        table, message, pos, pos + nbytes, level, size_bits, groups_take_zero, parts, count, states, oneofs
    )
    sort_parts(table, message, parts, count, states, oneofs)
    place_changes(table, message, parts, count, states, heads)
    store_i64(frame + _PARTS, parts)
    store_i64(frame + _COUNT_OF_PARTS, count)
    store_i64(frame + _STATES, states)
    store_i64(frame + _HEADS, heads)
    store_i64(frame + _NEXT, count)
    store_i64(frame + _RANK, load_i64(heads + 8 * count))
    return 0


@inner
def _copy_parts(state: int, frame: int, out: int) -> int:
    """Copy the parts before the next change of a frame's message; where they begin; 0: no memory."""
    parts, heads = load_i64(frame + _PARTS), load_i64(frame + _HEADS)
    i = load_i64(frame + _NEXT)
    begin = end = 0
    while i > 0:
        i -= 1
        at = parts + i * PART_NBYTES
        if load_i64(at + OWN) == NONE:
            begin = load_i64(at + BEGIN)
            if end == 0:
                end = load_i64(at + END)
        elif end != 0:
            i += 1
            break
        if load_i64(heads + 8 * i) != NONE:
            store_i64(frame + _RANK, load_i64(heads + 8 * i))
            break
    store_i64(frame + _NEXT, i)
    out = room_before(state, out, end - begin)
    return 0 if out == 0 else put_bytes(out, begin, end - begin)


@inner
def _write(state: int, table: int, source: int, nbytes: int, size_bits: int, groups_take_zero: int) -> int:
    frames = stack_words(_FRAMES_WORDS)
    frame = frames
    level = 0
    out = scratch_end(state)
    store_i64(frame + _MESSAGE, table)
    store_i64(frame + _RECORD, load_i64(state + memory.ROOT))
    fault = _begin(state, table, frame, source, nbytes, level, size_bits, groups_take_zero)
    if fault != 0:
        return fault
    while True:
        message = load_i64(frame + _MESSAGE)
        rank = load_i64(frame + _RANK)
        if rank == NONE:
            if load_i64(frame + _NEXT) > 0:
                out = _copy_parts(state, frame, out)
                if out == 0:
                    return NO_MEMORY
                continue
            # The message is whole.
            if level == 0:
                return out
            out = room_before(state, out, 0)
            if out == 0:
                return NO_MEMORY
            size = used_nbytes(state, out) - load_i64(frame + _USED)
            frame -= _FRAME_NBYTES
            level -= 1
            row = load_i64(frame + _ROW)
            if load_i64(row + 8 * tables.OP) == tables.MESSAGE:
                out = put_varint(out, size)
            out = put_tag(out, load_i64(row + 8 * tables.TAG))
            continue
        field = load_i64(frame + _STATES) + rank * STATE_NBYTES
        store_i64(frame + _RANK, load_i64(field + LINK))
        change = load_i64(field + CHANGE)
        record = load_i64(frame + _RECORD)
        if change == NEW:
            out = write_part(state, table, message, record, rank, level, out)
            if out < 0:
                return out
            continue
        parts = load_i64(field + COUNT)
        if change == UNSET or (change == UNSET_WITHIN and parts == 0):
            continue
        if level >= MAX_DEPTH:
            return TOO_DEEP
        row = table + load_i64(message + 8 * tables.FIELDS) + rank * FIELD_NBYTES
        store_i64(frame + _ROW, row)
        at = size = 0
        if parts == 1:
            part = load_i64(frame + _PARTS) + load_i64(field + FIRST) * PART_NBYTES
            at = load_i64(part + INSIDE)
            size = load_i64(part + UNTIL) - at
        elif parts > 1:
            first = load_i64(field + FIRST)
            at, size = joined(state, load_i64(frame + _PARTS), load_i64(frame + _COUNT_OF_PARTS), first, rank)
            if at == 0:
                return NO_MEMORY
        out = room_before(state, out, 0)
        if out == 0:
            return NO_MEMORY
        if load_i64(row + 8 * tables.OP) == tables.GROUP:
            out = put_tag(out, load_i64(row + 8 * tables.END_TAG))
        level += 1
        frame += _FRAME_NBYTES
        store_i64(frame + _USED, used_nbytes(state, out))
        store_i64(frame + _MESSAGE, table + load_i64(row + 8 * tables.CHILD))
        store_i64(frame + _RECORD, load_i64(record + load_i64(row + 8 * tables.SLOT)))
        fault = _begin(state, table, frame, at, size, level, size_bits, groups_take_zero)
        if fault != 0:
            return fault


@cached
def update(state: int, table: int, source: int, nbytes: int, size_bits: int, groups_take_zero: int) -> int:
    """Write a message with what the root was set to into the scratch; its size, or why there is none.

    Args:
        table: address of the root's table.
        source, nbytes: the message as it was.
        size_bits, groups_take_zero: habits of the parser (`yaffjit.plan.wire_tables`).
    """
    pos, end, chunk = (
        load_i64(state + memory.POS),
        load_i64(state + memory.END),
        load_i64(state + memory.CHUNK),
    )
    size = written_nbytes(state, _write(state, table, source, nbytes, size_bits, groups_take_zero))
    # What was listed isn't needed any more, and nothing else was put behind it.
    store_i64(state + memory.POS, pos)
    store_i64(state + memory.END, end)
    store_i64(state + memory.CHUNK, chunk)
    return size
