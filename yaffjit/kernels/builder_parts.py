"""The parts of a message that a builder updates, and what becomes of each: by the rules of `codec.update`.

A message's fields and oneofs have states, which lie behind each other; each part and each change is listed.
Positions are addresses.
"""

from __future__ import annotations

from yaffjit.kernels.builder_memory import take
from yaffjit.kernels.cached import inner
from yaffjit.kernels.memory import load_i64, store_i64
from yaffjit.kernels.wire import end_of_group, is_member, read_size, read_tag, read_varint
from yaffjit.kernels.write import copy
from yaffjit.plan import builder_tables as tables

FIELD_NBYTES = 8 * tables.FIELD_WORDS
_WIRE_BYTES, _WIRE_GROUP = 2, 3

# What becomes of a field: `_change`.
SAME, UNSET, NEW, WITHIN, UNSET_WITHIN = range(5)
NONE = -1
_GONE = -2

# Words of a part.
NUMBER = 0
OWN = 8  # the rank of its field if that is changed; NONE: it stays; _GONE: it doesn't
BEGIN, INSIDE, UNTIL, END = 16, 24, 32, 40  # it is whole at begin:end, its content at inside:until
ROUND = 48  # of its oneof
PART_NBYTES = 56

# Words of the state of a field.
CHANGE = 0
FIRST = 8  # the first of its parts, or of those behind it; NONE
COUNT = 16  # how many parts it has
LINK = 24  # the change before it at the same place
STATE_NBYTES = 32

# Words of a oneof.
_IS_CHANGED = 0
_LIVE = 8  # 1 + the rank of the member that counts
_ROUNDS = 16  # how often another member came to count: parts of earlier rounds don't
_IS_NEW = 24  # only what is changed is left of it
ONEOF_NBYTES = 32


# ---- what is changed ----


@inner
def _change(table: int, message: int, record: int, rank: int) -> int:
    """What becomes of a field of a message."""
    row = table + load_i64(message + 8 * tables.FIELDS) + rank * FIELD_NBYTES
    at = record + tables.HAS + 8 * (rank >> 6)
    case = load_i64(row + 8 * tables.CASE)
    member = rank + 1 if case == 0 else load_i64(record + case)
    has = load_i64(at) >> (rank & 63) & 1 != 0 and member == rank + 1
    unset = load_i64(at + 8 * load_i64(message + 8 * tables.HAS_WORDS)) >> (rank & 63) & 1 != 0
    op = load_i64(row + 8 * tables.OP)
    is_single = op == tables.MESSAGE or op == tables.GROUP
    if has:
        return WITHIN if is_single and not unset else NEW
    if unset:
        return UNSET
    if is_single:
        child = load_i64(record + load_i64(row + 8 * tables.SLOT))
        if child != 0 and load_i64(child + tables.PRESENT) == 0 and load_i64(child + tables.CHANGED) != 0:
            return UNSET if case != 0 and member != 0 else UNSET_WITHIN
    return SAME


@inner
def _oneof_of(oneofs: int, message: int, row: int) -> int:
    """The address of the oneof that a field is in, or 0."""
    case = load_i64(row + 8 * tables.CASE)
    if case == 0:
        return 0
    first = tables.HAS + 16 * load_i64(message + 8 * tables.HAS_WORDS)
    return oneofs + (case - first) // 8 * ONEOF_NBYTES


@inner
def find_changes(table: int, message: int, record: int, states: int, oneofs: int) -> None:
    """Note what becomes of each field, and which oneofs that concerns."""
    rows = table + load_i64(message + 8 * tables.FIELDS)
    for rank in range(load_i64(message + 8 * tables.FIELD_COUNT)):
        at = states + rank * STATE_NBYTES
        change = _change(table, message, record, rank)
        store_i64(at + CHANGE, change)
        store_i64(at + FIRST, NONE)
        oneof = _oneof_of(oneofs, message, rows + rank * FIELD_NBYTES)
        if oneof != 0 and change != SAME:
            store_i64(oneof + _IS_CHANGED, 1)


# ---- the parts of a message ----


@inner
def _part_ends(
    pos: int, limit: int, level: int, size_bits: int, groups_take_zero: int
) -> tuple[int, int, int, int]:
    """Tag of the field at ``pos``, begin and end of its content, and the position behind it, 0 if broken."""
    tag, inside = read_tag(pos, limit)
    if inside == 0:
        return 0, 0, 0, 0
    wire_type = tag & 7
    if wire_type == 0:
        _, end = read_varint(inside, limit)
        return tag, inside, end, end
    if wire_type == _WIRE_BYTES:
        size, inside = read_size(inside, limit, size_bits)
        end = 0 if inside == 0 else inside + size
        return tag, inside, end, end
    if wire_type == _WIRE_GROUP:
        until, end = end_of_group(inside, limit, tag >> 3, level, size_bits, groups_take_zero)
        return tag, inside, until, end
    if wire_type == 1 or wire_type == 5:
        end = inside + (8 if wire_type == 1 else 4)
        return tag, inside, end, 0 if end > limit else end
    return 0, 0, 0, 0


@inner
def _rank_of(rows: int, count: int, number: int, guess: int) -> int:
    """The rank of the field with a number; NONE if there is none."""
    for rank in range(guess, min(guess + 2, count)):
        if load_i64(rows + rank * FIELD_NBYTES + 8 * tables.TAG) >> 3 == number:
            return rank
    low = 0
    high = count
    while low < high:
        middle = (low + high) >> 1
        if load_i64(rows + middle * FIELD_NBYTES + 8 * tables.TAG) >> 3 < number:
            low = middle + 1
        else:
            high = middle
    found = low < count and load_i64(rows + low * FIELD_NBYTES + 8 * tables.TAG) >> 3 == number
    return low if found else NONE


@inner
def _counts(table: int, row: int, tag: int, inside: int, until: int) -> bool:
    """Whether a part with the number of a field is of the field, and not an unknown one."""
    wire_type = load_i64(row + 8 * tables.WIRE_TYPE)
    if tag & 7 != wire_type:
        op = load_i64(row + 8 * tables.OP)
        return tag & 7 == _WIRE_BYTES and (op == tables.PACKED or op == tables.PLAIN)
    closed = load_i64(row + 8 * tables.CLOSED)
    if closed == 0:
        return True
    value, _ = read_varint(inside, until)
    return is_member(table + closed, value & 0xFFFFFFFF)


@inner
def count_parts(
    pos: int, limit: int, level: int, size_bits: int, groups_take_zero: int, takes_zero: int
) -> int:
    """How many fields a message has; if it's broken, -1 less the place of the one that is."""
    begin = pos
    count = 0
    while pos < limit:
        tag, _, _, end = _part_ends(pos, limit, level, size_bits, groups_take_zero)
        if end == 0 or (tag < 8 and takes_zero == 0):
            return -1 - (pos - begin)
        pos = end
        count += 1
    return count


@inner
def list_parts(
    table: int,
    message: int,
    pos: int,
    limit: int,
    level: int,
    size_bits: int,
    groups_take_zero: int,
    parts: int,
    count: int,
    states: int,
    oneofs: int,
) -> int:
    """List the parts of a message; how many there are.

    Requires: room for ``count``; more aren't listed, if bytes were changed since they were counted.
    """
    rows = table + load_i64(message + 8 * tables.FIELDS)
    fields = load_i64(message + 8 * tables.FIELD_COUNT)
    rank = 0
    at = parts
    listed = 0
    while pos < limit and listed < count:
        tag, inside, until, end = _part_ends(pos, limit, level, size_bits, groups_take_zero)
        if end == 0:
            return listed
        store_i64(at + NUMBER, tag >> 3)
        store_i64(at + OWN, NONE)
        store_i64(at + BEGIN, pos)
        store_i64(at + INSIDE, inside)
        store_i64(at + UNTIL, until)
        store_i64(at + END, end)
        store_i64(at + ROUND, 0)
        found = _rank_of(rows, fields, tag >> 3, rank)
        if found != NONE:
            rank = found
            row = rows + rank * FIELD_NBYTES
            oneof = _oneof_of(oneofs, message, row)
            is_changed = load_i64(states + rank * STATE_NBYTES + CHANGE) != SAME
            if oneof != 0:
                is_changed = load_i64(oneof + _IS_CHANGED) != 0
            if is_changed and _counts(table, row, tag, inside, until):
                store_i64(at + OWN, rank)
                if oneof != 0:
                    if load_i64(oneof + _LIVE) != rank + 1:
                        store_i64(oneof + _LIVE, rank + 1)
                        store_i64(oneof + _ROUNDS, load_i64(oneof + _ROUNDS) + 1)
                    store_i64(at + ROUND, load_i64(oneof + _ROUNDS))
        pos = end
        at += PART_NBYTES
        listed += 1
    return listed


@inner
def sort_parts(table: int, message: int, parts: int, count: int, states: int, oneofs: int) -> None:
    """Count the parts of each changed field, and have those that stay be of no field."""
    rows = table + load_i64(message + 8 * tables.FIELDS)
    for i in range(count):
        at = parts + i * PART_NBYTES
        rank = load_i64(at + OWN)
        if rank == NONE:
            continue
        oneof = _oneof_of(oneofs, message, rows + rank * FIELD_NBYTES)
        if oneof != 0 and load_i64(at + ROUND) != load_i64(oneof + _ROUNDS):
            store_i64(at + OWN, _GONE)
            continue
        state = states + rank * STATE_NBYTES
        if load_i64(state + CHANGE) != SAME:
            if load_i64(state + COUNT) == 0:
                store_i64(state + FIRST, i)
            store_i64(state + COUNT, load_i64(state + COUNT) + 1)
    # A member that is set, or unset while it counts, leaves nothing of the others.
    for rank in range(load_i64(message + 8 * tables.FIELD_COUNT)):
        state = states + rank * STATE_NBYTES
        change = load_i64(state + CHANGE)
        oneof = _oneof_of(oneofs, message, rows + rank * FIELD_NBYTES)
        if oneof == 0 or change == SAME:
            continue
        if change in (NEW, WITHIN) or load_i64(oneof + _LIVE) == rank + 1:
            store_i64(oneof + _IS_NEW, 1)
    for i in range(count):
        at = parts + i * PART_NBYTES
        rank = load_i64(at + OWN)
        if rank >= 0 and load_i64(states + rank * STATE_NBYTES + CHANGE) == SAME:
            oneof = _oneof_of(oneofs, message, rows + rank * FIELD_NBYTES)
            store_i64(at + OWN, _GONE if load_i64(oneof + _IS_NEW) != 0 else NONE)


@inner
def place_changes(table: int, message: int, parts: int, count: int, states: int, heads: int) -> None:
    """Link each change to the part that comes behind it, the last by number first."""
    rows = table + load_i64(message + 8 * tables.FIELDS)
    fields = load_i64(message + 8 * tables.FIELD_COUNT)
    for i in range(count + 1):
        store_i64(heads + 8 * i, NONE)
    rank = 0
    for i in range(count):
        at = parts + i * PART_NBYTES
        if load_i64(at + OWN) != NONE:
            continue
        number = load_i64(at + NUMBER)
        while rank < fields and load_i64(rows + rank * FIELD_NBYTES + 8 * tables.TAG) >> 3 < number:
            state = states + rank * STATE_NBYTES
            if load_i64(state + FIRST) == NONE:
                store_i64(state + FIRST, i)
            rank += 1
    for each in range(fields):
        state = states + each * STATE_NBYTES
        if load_i64(state + CHANGE) == SAME:
            continue
        first = load_i64(state + FIRST)
        head = heads + 8 * (count if first == NONE else first)
        store_i64(state + LINK, load_i64(head))
        store_i64(head, each)


@inner
def joined(state: int, parts: int, count: int, first: int, rank: int) -> tuple[int, int]:
    """Address and size of what the parts of a field hold, one behind the other; address 0: no memory."""
    nbytes = 0
    for i in range(first, count):
        at = parts + i * PART_NBYTES
        if load_i64(at + OWN) == rank:
            nbytes += load_i64(at + UNTIL) - load_i64(at + INSIDE)
    made = take(state, nbytes)
    if made != 0:
        to = made
        for i in range(first, count):
            at = parts + i * PART_NBYTES
            if load_i64(at + OWN) == rank:
                size = load_i64(at + UNTIL) - load_i64(at + INSIDE)
                copy(to, load_i64(at + INSIDE), size)
                to += size
    return made, nbytes
