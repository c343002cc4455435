"""Containers and texts of the universal tagged format, made of bytes and of a stack of values."""

from __future__ import annotations

from yaffjit.kernels.cached import inner
from yaffjit.kernels.memory import load_i64, load_u8, store_i64
from yaffjit.kernels.objects import (
    ITEMS,
    decref,
    dict_set,
    dict_size,
    err_clear,
    err_matches,
    err_no_memory,
    list_set,
    malloc,
    memcpy,
    new_int,
    new_list,
    new_presized_dict,
    new_reference,
    new_tuple,
    realloc,
    release,
    tuple_set,
)
from yaffjit.kernels.universal_text import text_of

# Words of the state that all calls share, made by `yaffjit.universal.compiled`: addresses of objects.
BYTES, NONE, TRUE, FALSE, REFUSE, DECODE_ERROR = range(6)
LAYOUT = 6  # what `objects.layout` found
ASCII_HEAD = 7
KEYS = 8  # from here on: texts of keys that were read, or 0, by a hash of their bytes
KEY_SLOTS = 512
STATE_WORDS = KEYS + KEY_SLOTS

# Of `yaffjit.universal.refusals`.
FINE = -1
RAISED = -2  # an exception is set
NO_MORE_CODES = 0
SHORT_PAYLOAD = 1
UNKNOWN_CODE = 2
WRONG_END = 3
NOT_A_KEY = 4
SHORT_LENGTH = 5
LONG_LENGTH = 6
LONG_TEXT = 7
BAD_TEXT = 8
TRAILING_CODE = 9
TRAILING_BYTES = 10
DEEP_NESTING = 11
MANY_ITEMS = 12
PADDED_LENGTH = 13
DUPLICATE_KEY = 14

# Words of a frame: where the values of a container begin on the stack, and the code that began it.
BASE, CODE = 0, 8
FRAME = 16
# Words of what was wrong.
REASON, POSITION, FOUND, LIMIT = 0, 8, 16, 24
_MAX_LENGTH_SHIFT = 56


@inner
def keep_fault(fault: int, reason: int, position: int, found: int, limit: int) -> int:
    """Keep what is wrong; gives 0."""
    store_i64(fault + REASON, reason)
    store_i64(fault + POSITION, position)
    store_i64(fault + FOUND, found)
    store_i64(fault + LIMIT, limit)
    return 0


@inner
def length_at(data: int, nbytes: int, pos: int, strict: bool, fault: int) -> tuple[int, int]:
    """The length of a text, no more than what is left, and the position behind it; -1 with a fault."""
    length = 0
    shift = 0
    while True:
        if shift > _MAX_LENGTH_SHIFT:
            keep_fault(fault, LONG_LENGTH, pos, 0, 0)
            return -1, pos
        if pos >= nbytes:
            keep_fault(fault, SHORT_LENGTH, pos, nbytes, 0)
            return -1, pos
        byte = load_u8(data + pos)
        pos += 1
        length |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
    if strict and byte == 0 and shift > 0:
        least = 1
        while length >> (7 * least) != 0:
            least += 1
        keep_fault(fault, PADDED_LENGTH, pos - 1, shift // 7 + 1, least)
        return -1, pos
    if length > nbytes - pos:
        keep_fault(fault, LONG_TEXT, pos, length, nbytes - pos)
        return -1, pos
    return length, pos


@inner
def made_text(state: int, data: int, pos: int, length: int, code: int, fault: int) -> int:
    """A new text, 0 with a fault."""
    head = load_i64(state + 8 * ASCII_HEAD) if load_i64(state + 8 * LAYOUT) != 0 else 0
    made = text_of(data + pos, length, code, head)
    if made == 0:
        if err_matches(load_i64(state + 8 * DECODE_ERROR)) == 0:
            return keep_fault(fault, RAISED, pos, 0, 0)
        err_clear()
        return keep_fault(fault, BAD_TEXT, pos, length, code)
    return made


@inner
def new_object(state: int, values: int, base: int, end: int, strict: bool, at: int, fault: int) -> int:
    """A new dict of the keys and values on the stack, 0 with a fault.

    What is behind a key that is there twice is given back, and ``fault`` knows where that is.
    """
    layout = load_i64(state + 8 * LAYOUT)
    made = new_presized_dict((end - base) >> 1)
    if made == 0:
        return keep_fault(fault, RAISED, at, 0, 0)
    for i in range(base, end, 2):
        if dict_set(made, load_i64(values + 8 * i), load_i64(values + 8 * i + 8)) != 0:
            decref(made)
            return keep_fault(fault, RAISED, at, 0, 0)
        if strict and dict_size(made) <= (i - base) >> 1:
            decref(made)
            return keep_fault(fault, DUPLICATE_KEY, at, i + 1, 0)
    for i in range(base, end):
        release(load_i64(values + 8 * i), layout)
    return made


@inner
def new_collection(state: int, values: int, base: int, end: int, fault: int) -> int:
    """A new list of the values on the stack, whose references it takes; 0 with a fault."""
    made = new_list(end - base)
    if made == 0:
        return keep_fault(fault, RAISED, 0, 0, 0)
    if load_i64(state + 8 * LAYOUT) == 0:
        for i in range(base, end):
            list_set(made, i - base, load_i64(values + 8 * i))
    elif end > base:
        memcpy(load_i64(made + ITEMS), values + 8 * base, 8 * (end - base))
    return made


@inner
def path_to(frames: int, depth: int, values: int, end: int) -> int:
    """A new tuple of the steps to the last value on the stack, 0 with an exception."""
    nsteps = depth
    if depth > 0:
        last = frames + FRAME * (depth - 1)
        # Where a key is expected there is no step.
        if load_i64(last + CODE) == 1 and (end - load_i64(last + BASE)) & 1 == 0:
            nsteps -= 1
    path = new_tuple(nsteps)
    if path == 0:
        return 0
    for i in range(nsteps):
        frame = frames + FRAME * i
        base = load_i64(frame + BASE)
        stop = load_i64(frame + FRAME + BASE) if i + 1 < depth else end
        if load_i64(frame + CODE) == 1:
            step = new_reference(load_i64(values + 8 * stop - 8))
        else:
            step = new_int(stop - base)
        if step == 0:
            decref(path)
            return 0
        tuple_set(path, i, step)
    return path


@inner
def grown_stack(own_values: int, values: int, capacity: int) -> int:
    """The values moved to twice as much room; 0 with an exception, and they are where they were."""
    if values != own_values:
        grown = realloc(values, capacity * 16)
    else:
        grown = malloc(capacity * 16)
        if grown != 0:
            memcpy(grown, values, capacity * 8)
    if grown == 0:
        err_no_memory()
    return grown
