"""The universal tagged format from Python's objects, without recursion.

By the rules of `yaffjit.universal.plain_write`, byte for byte. What isn't of a plain type is given to a
function of Python, which may do anything: containers that are being written are owned, and so are their keys
and items while it runs; each step looks anew at how long they are.
"""

from __future__ import annotations

from numba import int64

from yaffjit.kernels.cached import cached, inner
from yaffjit.kernels.memory import (
    load_i64,
    load_u32,
    store_i64,
)
from yaffjit.kernels.objects import (
    FLOAT,
    ITEMS,
    TYPE,
    bits_of_float,
    bytes_data,
    call_one,
    decref,
    decref_if,
    dict_next,
    dict_size,
    float_value,
    hold,
    int_value,
    list_get,
    list_size,
    new_bytes,
    new_int,
    new_reference,
    new_tuple,
    py_incref,
    raise_by,
    release,
    resize_bytes,
    room,
    tuple_get,
    tuple_set,
    tuple_size,
)
from yaffjit.kernels.universal_put import (
    BOOL,
    CAPACITY,
    DATA,
    DICT,
    FAILED,
    FLOAT_TYPE,
    INT,
    LAST_COUNT,
    LAST_NBYTES,
    LAYOUT,
    LIST,
    MARGIN,
    NONE,
    OBJECT,
    REFUSE,
    STR,
    SURROGATES,
    TRUE,
    TUPLE,
    grow,
    int_code,
    int_of,
    put_array,
    put_code,
    put_number,
    put_text,
)

# Bits of the second argument.
COMPACT = 1
ORDER_SHIFT = 1  # 2 bits: swapped, little, big
SMALLEST = 8
NULL = 16
STRINGS_SHIFT = 5  # 2 bits: as in `universal_put`
DEPTH_SHIFT = 8

# Of `yaffjit.universal.refusals` and `yaffjit.universal.lower`.
NO_CODE, BAD_KEY, TOO_DEEP, CHANGED, TOO_MANY_SUBSTITUTES = range(5)
SUBSTITUTE, NUMBER, NUMBERS = 0, 1, 2

# Words of a frame: a container that is being written, and owned.
_CONTAINER, _NEXT, _KIND, _COUNT, _GIVEN, _KEY = 0, 8, 16, 24, 32, 40
_FRAME = 48
_MAX_FRAMES = 1000
_IS_DICT, _IS_LIST, _IS_TUPLE = 1, 2, 3

_LEAST_CAPACITY = 256
_COPIED_NBYTES = 65536  # larger rooms are left for small outputs
_MAX_SUBSTITUTES = 100


@inner
def _refuse(
    state: int, frames: int, depth: int, key: int, reason: int, value: int, found: int, limit: int
) -> None:
    """Set the exception for a value.

    Args:
        depth: of the frames that its path goes through.
        key: of the last of them, if it's a dict that doesn't own one.
    """
    # Making a tuple may run the garbage collector, and that anything; these may be borrowed.
    py_incref(value)
    if key != 0:
        py_incref(key)
    path = new_tuple(depth)
    complete = path != 0
    if complete:
        for i in range(depth):
            frame = frames + _FRAME * i
            if load_i64(frame + _KIND) == _IS_DICT:
                step = load_i64(frame + _KEY)
                tuple_set(path, i, new_reference(step if step != 0 else key))
            else:
                index = new_int(load_i64(frame + _NEXT) - 1)
                if index == 0:
                    complete = False
                    break
                tuple_set(path, i, index)
    if complete:
        raise_by(load_i64(state + 8 * REFUSE), reason, path, new_reference(value), found, limit)
    else:
        decref_if(path)
    decref_if(key)
    decref(value)


@inner
def _write(state: int, outermost: int, flags: int, convert: int) -> int:
    """The new bytes object of a document; 0 with an exception."""
    compact = (flags & COMPACT) != 0
    order = (flags >> ORDER_SHIFT) & 3
    smallest = (flags & SMALLEST) != 0
    null = (flags & NULL) != 0
    strings = (flags >> STRINGS_SHIFT) & 3
    max_depth = flags >> DEPTH_SHIFT
    str_type = load_i64(state + 8 * STR)
    int_type = load_i64(state + 8 * INT)
    float_type = load_i64(state + 8 * FLOAT_TYPE)
    bool_type = load_i64(state + 8 * BOOL)
    dict_type = load_i64(state + 8 * DICT)
    list_type = load_i64(state + 8 * LIST)
    tuple_type = load_i64(state + 8 * TUPLE)
    none = load_i64(state + 8 * NONE)
    layout = load_i64(state + 8 * LAYOUT)
    direct = layout != 0

    out = room(3)
    frames = room(6000)
    pair = room(2)
    overflow = room(1)
    # Growing by steps would cost more than writing: the last output tells how large this one will be.
    count = 0
    kind_of_all = load_i64(outermost + TYPE)
    if kind_of_all == dict_type:
        count = dict_size(outermost)
    elif kind_of_all == list_type:
        count = list_size(outermost)
    capacity = _LEAST_CAPACITY
    last_count = load_i64(state + 8 * LAST_COUNT)
    if last_count > 0 and count >> 1 <= last_count <= count << 1:
        last_nbytes = load_i64(state + 8 * LAST_NBYTES)
        capacity = max(capacity, (last_nbytes << 1 if count > last_count else last_nbytes) + 2 * MARGIN)
    store_i64(out + OBJECT, new_bytes(0, capacity))
    if load_i64(out) == 0:
        return 0
    store_i64(out + DATA, bytes_data(load_i64(out)))
    store_i64(out + CAPACITY, capacity)

    size = 0
    half = -1
    depth = 0
    value = outermost
    key = 0  # of the innermost dict, borrowed; its frame has it where it's owned
    held = 0  # a substitute that is owned, and is `value`
    substitutes = 0
    touched = False  # a function of Python was called
    failed = False
    while True:
        # ---- a value ----
        if size + MARGIN > load_i64(out + CAPACITY) and not grow(out, size + MARGIN):
            failed = True
            break
        data = load_i64(out + DATA)
        kind = load_i64(value + TYPE)
        written = True
        pushed = 0
        if kind == str_type:
            new_size, half = put_text(state, out, value, size, half, compact, strings)
            if new_size == FAILED:
                failed = True
                break
            if new_size == SURROGATES:
                written = False
            else:
                size = new_size
        elif kind == int_type:
            number = int_of(state, value, overflow)
            if load_u32(overflow) != 0:
                written = False
            else:
                code = int_code(number, smallest)
                size, half = put_number(data, size, half, compact, order, code, number)
        elif kind == float_type:
            bits = load_i64(value + FLOAT) if direct else bits_of_float(float_value(value))
            size, half = put_number(data, size, half, compact, order, 12, bits)
        elif kind == bool_type:
            code = 5 if value == load_i64(state + 8 * TRUE) else 6
            size, half = put_code(data, size, half, code, compact)
        elif kind == dict_type:
            pushed = _IS_DICT
        elif kind == list_type:
            pushed = _IS_LIST
        elif kind == tuple_type:
            pushed = _IS_TUPLE
        elif value == none and null:
            size, half = put_code(data, size, half, 0, compact)
        else:
            written = False

        if pushed != 0:
            if depth >= max_depth:
                _refuse(state, frames, depth, key, TOO_DEEP, value, 0, max_depth)
                failed = True
                break
            if depth > 0:
                outer = frames + _FRAME * (depth - 1)
                if load_i64(outer + _KIND) == _IS_DICT and load_i64(outer + _KEY) == 0:
                    store_i64(outer + _KEY, hold(key, layout))
            size, half = put_code(data, size, half, 1 if pushed == _IS_DICT else 3, compact)
            frame = frames + _FRAME * depth
            if held == 0:
                hold(value, layout)
            held = 0
            store_i64(frame + _CONTAINER, value)
            store_i64(frame + _NEXT, 0)
            store_i64(frame + _KIND, pushed)
            if pushed == _IS_DICT:
                store_i64(frame + _COUNT, dict_size(value))
            elif pushed == _IS_LIST:
                store_i64(frame + _COUNT, list_size(value))
            else:
                store_i64(frame + _COUNT, tuple_size(value))
            store_i64(frame + _GIVEN, 0)
            store_i64(frame + _KEY, 0)
            depth += 1
        elif not written:
            # ---- a substitute ----
            if depth > 0:
                outer = frames + _FRAME * (depth - 1)
                if load_i64(outer + _KIND) == _IS_DICT and load_i64(outer + _KEY) == 0:
                    store_i64(outer + _KEY, hold(key, layout))
            if held == 0:
                held = new_reference(value)
            touched = True
            if substitutes > _MAX_SUBSTITUTES:
                _refuse(state, frames, depth, key, TOO_MANY_SUBSTITUTES, value, substitutes, 0)
                failed = True
                break
            substitutes += 1
            lowered = call_one(convert, value)
            if lowered == 0:
                failed = True
                break
            if lowered == none:
                decref(lowered)
                _refuse(state, frames, depth, key, NO_CODE, value, 0, 0)
                failed = True
                break
            form = int_value(tuple_get(lowered, 0))
            if form == SUBSTITUTE:
                value = new_reference(tuple_get(lowered, 1))
                decref(lowered)
                decref(held)
                held = value
                continue
            code = int_value(tuple_get(lowered, 3))
            last = int_value(tuple_get(lowered, 4))
            if form == NUMBER:
                size, half = put_number(data, size, half, compact, order, code, last)
            else:
                address = int_value(tuple_get(lowered, 2))
                size, half = put_array(out, size, half, compact, order, address, code, last)
            decref(lowered)
            if size < 0:
                failed = True
                break
        if held != 0:
            decref(held)
            held = 0
        substitutes = 0

        # ---- where the next value is ----
        found = False
        while depth > 0:
            frame = frames + _FRAME * (depth - 1)
            container = load_i64(frame + _CONTAINER)
            kind = load_i64(frame + _KIND)
            index = load_i64(frame + _NEXT)
            count = load_i64(frame + _COUNT)
            if kind == _IS_DICT:
                if load_i64(frame + _KEY) != 0:
                    release(load_i64(frame + _KEY), layout)
                    store_i64(frame + _KEY, 0)
                if touched and dict_size(container) != count:
                    _refuse(state, frames, depth - 1, 0, CHANGED, container, dict_size(container), count)
                    failed = True
                    break
                if dict_next(container, frame + _NEXT, pair, pair + 8) != 0:
                    given = load_i64(frame + _GIVEN)
                    if given == count:
                        _refuse(state, frames, depth - 1, 0, CHANGED, container, count, count)
                        failed = True
                        break
                    store_i64(frame + _GIVEN, given + 1)
                    key = load_i64(pair)
                    value = load_i64(pair + 8)
                    new_size = SURROGATES
                    if load_i64(key + TYPE) == str_type:
                        new_size, half = put_text(state, out, key, size, half, compact, strings)
                    if new_size == SURROGATES:
                        touched = True
                        held = new_reference(value)
                        new_size, half = _put_key(state, out, frames, depth, key, size, half, flags, convert)
                    if new_size == FAILED:
                        failed = True
                        break
                    size = new_size
                    found = True
                    break
            elif kind == _IS_LIST:
                if touched and list_size(container) != count:
                    _refuse(state, frames, depth - 1, 0, CHANGED, container, list_size(container), count)
                    failed = True
                    break
                if index < count:
                    if direct:
                        value = load_i64(load_i64(container + ITEMS) + 8 * index)
                    else:
                        value = list_get(container, index)
                    store_i64(frame + _NEXT, index + 1)
                    found = True
                    break
            elif index < count:
                value = load_i64(container + ITEMS + 8 * index) if direct else tuple_get(container, index)
                store_i64(frame + _NEXT, index + 1)
                found = True
                break
            if size + MARGIN > load_i64(out + CAPACITY) and not grow(out, size + MARGIN):
                failed = True
                break
            size, half = put_code(load_i64(out + DATA), size, half, 2 if kind == _IS_DICT else 4, compact)
            depth -= 1
            release(container, layout)
        if not found:
            break

    if failed:
        decref_if(held)
        for i in range(depth):
            frame = frames + _FRAME * i
            decref_if(load_i64(frame + _KEY))
            decref(load_i64(frame + _CONTAINER))
        decref_if(load_i64(out))
        return 0
    count = 0
    if kind_of_all == dict_type:
        count = dict_size(outermost)
    elif kind_of_all == list_type:
        count = list_size(outermost)
    store_i64(state + 8 * LAST_NBYTES, size)
    store_i64(state + 8 * LAST_COUNT, count)
    if load_i64(out + CAPACITY) > _COPIED_NBYTES and size < load_i64(out + CAPACITY) >> 2:
        made = new_bytes(load_i64(out + DATA), size)
        decref(load_i64(out))
        return made
    if resize_bytes(out + OBJECT, size) != 0:
        return 0
    return load_i64(out)


@inner
def _put_key(
    state: int,
    out: int,
    frames: int,
    depth: int,
    given: int,
    size: int,
    half: int,
    flags: int,
    convert: int,
) -> tuple[int, int]:
    """Write a substitute of a key, and leave it in the frame; `FAILED` with an exception."""
    none = load_i64(state + 8 * NONE)
    frame = frames + _FRAME * (depth - 1)
    first = new_reference(given)
    key = new_reference(given)
    result = FAILED
    for _ in range(_MAX_SUBSTITUTES + 1):
        lowered = call_one(convert, key)
        if lowered == 0:
            break
        if lowered == none or int_value(tuple_get(lowered, 0)) != SUBSTITUTE:
            decref(lowered)
            _refuse(state, frames, depth - 1, 0, BAD_KEY, key, 0, 0)
            break
        substitute = new_reference(tuple_get(lowered, 1))
        decref(lowered)
        decref(key)
        key = substitute
        if load_i64(key + TYPE) == load_i64(state + 8 * STR):
            result, half = put_text(
                state,
                out,
                key,
                size,
                half,
                (flags & COMPACT) != 0,
                (flags >> STRINGS_SHIFT) & 3,
            )
            if result != SURROGATES:
                break
            result = FAILED
    else:
        _refuse(state, frames, depth - 1, 0, TOO_MANY_SUBSTITUTES, first, _MAX_SUBSTITUTES + 1, 0)
    decref(first)
    if result == FAILED:
        decref(key)
    else:
        store_i64(frame + _KEY, key)
    return result, half


def write(itself: int, arguments: int, count: int) -> int:
    """A builtin's body: (object, options as flags, function that gives substitutes) -> bytes.

    Requires: three arguments, an object, an int and what takes an object and gives what ``lower`` does;
    ``itself`` is an int, the address of a state.
    """
    flags = int_value(load_i64(arguments + 8))
    return _write(int_value(itself), load_i64(arguments), flags, load_i64(arguments + 16))


def compile_write() -> object:
    """The kernel of `write`, compiled or from disk."""
    kernel = cached(write)
    kernel.compile(int64(int64, int64, int64))
    kernel.disable_compile()
    return kernel
