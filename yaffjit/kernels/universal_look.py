"""Parts of a document of the universal tagged format as Python's objects, without reading the rest of it.

Scalars come as themselves, a container as a tuple of its word and its code: no document has tuples.
"""

from __future__ import annotations

from typing import Any

from numba import int64, types

from yaffjit.kernels.cached import cached, inner
from yaffjit.kernels.memory import load_i64
from yaffjit.kernels.objects import (
    TYPE,
    bytes_data,
    bytes_size,
    decref,
    decref_if,
    get_buffer,
    int_value,
    new_float,
    new_int,
    new_reference,
    new_tuple,
    raise_by,
    release_buffer,
    room,
    tuple_set,
)
from yaffjit.kernels.universal_made import BYTES, FALSE, NONE, RAISED, REASON, REFUSE, TRUE, made_text
from yaffjit.kernels.universal_scan import (
    ABSENT,
    BAD,
    COMPACT,
    ONE_DEEPER,
    ORDER_SHIFT,
    code_at,
    count_items,
    find,
    float_of,
    int_of,
    next_code,
    next_item,
    skip,
    text_length,
    width_of,
)
from yaffjit.kernels.universal_text import UTF8

# Words of the state: those of `universal_made` up to its keys, and what is to be done.
OPERATION = 8
STATE_WORDS = 9
FIND, NEXT, COUNT = range(3)

PLAIN_FLAGS = types.int32(0)
# In place of an object, less than any address: an exception is set; the bytes are wrong.
_RAISED, WRONG = 0, -1


@inner
def _place(word: int, code: int) -> int:
    """A new tuple of two ints."""
    both = new_tuple(2)
    first = new_int(word)
    second = new_int(code)
    if both == 0 or first == 0 or second == 0:
        decref_if(both)
        decref_if(first)
        decref_if(second)
        return _RAISED
    tuple_set(both, 0, first)
    tuple_set(both, 1, second)
    return both


@inner
def _text(state: int, data: int, nbytes: int, pos: int, code: int) -> int:
    length, pos = text_length(data, nbytes, pos)
    if length < 0:
        return WRONG
    fault = room(4)
    made = made_text(state, data, pos, length, code, fault)
    if made == 0 and load_i64(fault + REASON) != RAISED:
        return WRONG
    return made


@inner
def value_of(state: int, data: int, nbytes: int, word: int, flags: int) -> int:
    """The new object of the value that a word names."""
    pos = word >> 5
    code, pos, _ = next_code(data, nbytes, pos, word & 31, (flags & COMPACT) != 0)
    if code >= UTF8:
        return _text(state, data, nbytes, pos, code)
    if code >= 7:
        if width_of(code) > nbytes - pos:
            return WRONG
        order = (flags >> ORDER_SHIFT) & 3
        if code >= 11:
            return new_float(float_of(data + pos, code, order))
        return new_int(int_of(data + pos, code, order))
    if code == 5 or code == 6:
        return new_reference(load_i64(state + 8 * (TRUE if code == 5 else FALSE)))
    if code == 1 or code == 3:
        return _place(word, code)
    if code_at(data, nbytes, word, flags) < 0:
        return WRONG
    return new_reference(load_i64(state + 8 * NONE))


@inner
def _next(state: int, data: int, nbytes: int, word: int, flags: int, kind: int) -> int:
    """A new tuple of the next item's key (of a collection's None), its value, and the word behind it.

    At the container's end it's None.
    """
    pos = word >> 5
    half = word & 31
    code, value_pos, value_half = next_item(data, nbytes, pos, half, flags, kind)
    if code == ABSENT:
        return new_reference(load_i64(state + 8 * NONE))
    if code == BAD:
        return WRONG
    compact = (flags & COMPACT) != 0
    _, after, pending = next_code(data, nbytes, value_pos, value_half, compact)
    after, pending = skip(data, nbytes, after, pending, code, flags)
    if after < 0:
        return WRONG
    if kind == 1:
        key_code, pos, _ = next_code(data, nbytes, pos, half, compact)
        key = _text(state, data, nbytes, pos, key_code)
    else:
        key = new_reference(load_i64(state + 8 * NONE))
    if key <= _RAISED:
        return key
    value = value_of(state, data, nbytes, (value_pos << 5) | value_half, flags)
    if value <= _RAISED:
        decref(key)
        return value
    item = new_tuple(3)
    following = new_int((after << 5) | pending)
    if item == 0 or following == 0:
        decref(key)
        decref(value)
        decref_if(item)
        decref_if(following)
        return _RAISED
    tuple_set(item, 0, key)
    tuple_set(item, 1, value)
    tuple_set(item, 2, following)
    return item


@inner
def _look(state: int, arguments: int) -> int:
    buf = load_i64(arguments)
    word = int_value(load_i64(arguments + 8))
    flags = int_value(load_i64(arguments + 16))
    view = room(10)
    is_bytes = load_i64(buf + TYPE) == load_i64(state + 8 * BYTES)
    if is_bytes:
        data = bytes_data(buf)
        nbytes = bytes_size(buf)
    else:
        if get_buffer(buf, view, PLAIN_FLAGS) != 0:
            return 0
        data = load_i64(view)
        nbytes = load_i64(view + 16)
    operation = load_i64(state + 8 * OPERATION)
    if operation == FIND:
        found = find(data, nbytes, word, flags, bytes_data(load_i64(arguments + 24)))
        if found == ABSENT:
            made = new_reference(load_i64(arguments + 32))
        elif found == BAD:
            made = WRONG
        else:
            made = value_of(state, data, nbytes, found, flags)
    elif operation == NEXT:
        kind = int_value(load_i64(arguments + 24))
        made = _next(state, data, nbytes, word, flags + ONE_DEEPER, kind)
    else:
        count = count_items(data, nbytes, word >> 5, word & 31, flags)
        made = new_int(count) if count >= 0 else WRONG
    if not is_bytes:
        release_buffer(view)
    if made == WRONG:
        flags_again = new_int(flags)
        if flags_again == 0:
            return 0
        raise_by(load_i64(state + 8 * REFUSE), 0, new_reference(buf), flags_again, 0, 0)
        return 0
    return made


def look(itself: int, arguments: int, count: int) -> int:
    """A builtin's body; the state says which.

    * (buffer, word, options as flags, path as bytes, default) -> what the path leads to, or the default
    * (buffer, word behind the last item or the begin, flags, code of the container) -> the next item
    * (buffer, word, flags) -> how many items a container has

    Requires: as many arguments, of these types; words of nonnegative positions, and a path as
    `yaffjit.kernels.universal_scan` has it; ``itself`` is an int, the address of a state.
    """
    return _look(int_value(itself), arguments)


def compile_look() -> Any:
    """The kernel of `look`, compiled or from disk."""
    kernel = cached(look)
    kernel.compile(int64(int64, int64, int64))
    kernel.disable_compile()
    return kernel
