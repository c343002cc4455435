"""Where messages that are being built lie: memory that only grows, given back all at once.

A builder has a state and a list of chunks that what it builds is put into, one thing behind the other. Things
never move, and no chunk is given back before the builder is: so whatever still points into one reads and
writes memory of the builder.

All addresses are int64. A function that may run out of memory gives 0 then.
"""

from __future__ import annotations

from numba import int64, types

from yaffjit.kernels.cached import cached, inner
from yaffjit.kernels.memory import load_i64, store_i64
from yaffjit.kernels.write import copy, zero
from yaffjit.plan import builder_tables as tables

# Bytes of a state.
EPOCH = 0  # how often it was cleared
POS = 8  # where the next thing goes
END = 16  # of the chunk that is being filled
CHUNK = 24
FIRST = 32  # the first chunk
SCRATCH = 40  # what a message is written into, from its end
SCRATCH_NBYTES = 48
ROOT = 56  # the root's record
ROOT_NBYTES = 64
BUFFER = 72  # what the caller gave to be written into, or 0
BUFFER_NBYTES = 80
BUFFER_OWNER = 88
# What an update found broken: address and bytes of the message, the error of a scan, place in the table.
BROKEN_AT = 96
BROKEN_NBYTES = 104
BROKEN_ERROR = 112
BROKEN_MESSAGE = 120
STATE_NBYTES = 128

# A chunk's head: the next chunk, and its bytes.
NEXT = 0
CHUNK_NBYTES = 8
CHUNK_HEAD = 16
_FIRST_NBYTES = 2048
# What a builder may take in all; nothing longer can be a message.
_MOST = 2**40

_allocate = types.ExternalFunction("NRT_Allocate", int64(int64))


@inner
def _fill(state: int, chunk: int) -> None:
    """Go on in a chunk."""
    store_i64(state + CHUNK, chunk)
    store_i64(state + POS, chunk + CHUNK_HEAD)
    store_i64(state + END, chunk + load_i64(chunk + CHUNK_NBYTES))


@inner
def _in_next(state: int, nbytes: int) -> int:
    """Room in the next chunk that has enough, which may have been filled before the builder was cleared."""
    if nbytes < 0 or nbytes > _MOST:
        return 0
    chunk = load_i64(state + CHUNK)
    following = load_i64(chunk + NEXT)
    if following == 0 or load_i64(following + CHUNK_NBYTES) - CHUNK_HEAD < nbytes:
        size = max(2 * load_i64(chunk + CHUNK_NBYTES), nbytes + CHUNK_HEAD)
        made = _allocate(size)
        if made == 0:
            return 0
        store_i64(made + CHUNK_NBYTES, size)
        store_i64(made + NEXT, following)
        store_i64(chunk + NEXT, made)
        following = made
    _fill(state, following)
    at = load_i64(state + POS)
    store_i64(state + POS, at + nbytes)
    return at


@cached
def take(state: int, nbytes: int) -> int:
    """The address of bytes that nothing else has, aligned to 8."""
    nbytes = (nbytes + 7) & -8
    at = load_i64(state + POS)
    if nbytes >= 0 and nbytes <= load_i64(state + END) - at:
        store_i64(state + POS, at + nbytes)
        return at
    return _in_next(state, nbytes)


@cached
def begin(state: int, root_nbytes: int) -> int:
    """Make a state of memory that is all 0; 0 if there's no memory."""
    size = _FIRST_NBYTES + root_nbytes + CHUNK_HEAD
    chunk = _allocate(size)
    if chunk == 0:
        return 0
    store_i64(chunk + NEXT, 0)
    store_i64(chunk + CHUNK_NBYTES, size)
    store_i64(state + FIRST, chunk)
    store_i64(state + ROOT_NBYTES, root_nbytes)
    _fill(state, chunk)
    store_i64(state + ROOT, take_record(state, root_nbytes))
    store_i64(load_i64(state + ROOT) + tables.PRESENT, 1)
    return 1


@cached
def clear(state: int) -> int:
    """Forget all but the root, which is as new."""
    store_i64(state + EPOCH, load_i64(state + EPOCH) + 1)
    _fill(state, load_i64(state + FIRST))
    nbytes = load_i64(state + ROOT_NBYTES)
    root = take_record(state, nbytes)  # where it was before: the first thing in the first chunk
    store_i64(root + tables.PRESENT, 1)
    return 0


@inner
def take_record(state: int, nbytes: int) -> int:
    """A new record, all 0."""
    record = take(state, nbytes)
    if record != 0:
        zero(record, nbytes)
    return record


@cached
def new_message(state: int, nbytes: int, parent: int, slot: int, rank: int, case: int) -> int:
    """The record of a singular message, which is there once something is set in it."""
    record = take_record(state, nbytes)
    if record != 0:
        store_i64(record + tables.PARENT, parent)
        store_i64(record + tables.PARENT_SLOT, slot)
        store_i64(record + tables.PARENT_RANK, rank)
        store_i64(record + tables.PARENT_CASE, case)
        store_i64(parent + slot, record)
    return record


@cached
def attach(record: int) -> int:
    """Have a message be there, and all those that it's a part of."""
    while load_i64(record + tables.PRESENT) == 0:
        store_i64(record + tables.PRESENT, 1)
        parent = load_i64(record + tables.PARENT)
        rank = load_i64(record + tables.PARENT_RANK)
        case = load_i64(record + tables.PARENT_CASE)
        store_i64(parent + load_i64(record + tables.PARENT_SLOT), record)
        has = parent + tables.HAS + 8 * (rank >> 6)
        store_i64(has, load_i64(has) | 1 << (rank & 63))
        if case != 0:
            store_i64(parent + case, rank + 1)
        record = parent
    return 0


@cached
def mark(record: int) -> int:
    """Note that a field of a message was unset, for the messages that it's a part of too."""
    while record != 0 and load_i64(record + tables.CHANGED) == 0:
        store_i64(record + tables.CHANGED, 1)
        record = load_i64(record + tables.PARENT)
    return 0


@inner
def grown(state: int, slot: int, used: int, needed: int, width: int) -> int:
    """Room in what a slot holds for ``needed`` elements in all, of which ``used`` are there.

    Returns: the address of the first; 0 if there's no memory.
    """
    at = load_i64(slot)
    if needed <= load_i64(slot + tables.CAPACITY):
        return at
    capacity = max(needed, 2 * load_i64(slot + tables.CAPACITY), 64 // width)
    made = take(state, capacity * width)
    if made != 0:
        copy(made, at, used * width)
        store_i64(slot, made)
        store_i64(slot + tables.CAPACITY, capacity)
    return made


@cached
def new_element(state: int, slot: int, nbytes: int) -> int:
    """The record of a new message at the end of a list."""
    count = load_i64(slot + tables.USED)
    elements = grown(state, slot, count, count + 1, 8)
    if elements == 0:
        return 0
    record = take_record(state, nbytes)
    if record != 0:
        store_i64(record + tables.PRESENT, 1)
        store_i64(elements + 8 * count, record)
        store_i64(slot + tables.USED, count + 1)
    return record
