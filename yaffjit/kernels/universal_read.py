"""The universal tagged format to Python's objects, without recursion.

By the rules of `yaffjit.universal.plain_read`. Finished values wait on one stack, whose references are owned,
until their container ends: it's made then, as large as it must be, and whatever goes wrong, all that must be
given back lies on that stack. Nothing of Python's runs meanwhile, and the garbage collector doesn't either.
"""

from __future__ import annotations

from typing import Any

from numba import int64, types

from yaffjit.kernels.cached import cached, inner
from yaffjit.kernels.memory import load_i64, load_u8, load_u16, load_u32, store_i64
from yaffjit.kernels.objects import (
    SIZE,
    TYPE,
    bytes_data,
    bytes_size,
    decref,
    decref_if,
    float_of_bits,
    float_of_bits32,
    free,
    gc_disable,
    gc_enable,
    get_buffer,
    hold,
    int_value,
    new_float,
    new_int,
    new_tuple,
    object_hash,
    ordered,
    raise_by,
    release_buffer,
    room,
    tuple_set,
)
from yaffjit.kernels.universal_made import (
    ASCII_HEAD,
    BASE,
    BYTES,
    CODE,
    DEEP_NESTING,
    DUPLICATE_KEY,
    FALSE,
    FINE,
    FOUND,
    FRAME,
    KEY_SLOTS,
    KEYS,
    LAYOUT,
    LIMIT,
    MANY_ITEMS,
    NO_MORE_CODES,
    NONE,
    NOT_A_KEY,
    POSITION,
    RAISED,
    REASON,
    REFUSE,
    SHORT_PAYLOAD,
    TRAILING_BYTES,
    TRAILING_CODE,
    TRUE,
    UNKNOWN_CODE,
    WRONG_END,
    grown_stack,
    keep_fault,
    length_at,
    made_text,
    new_collection,
    new_object,
    path_to,
)
from yaffjit.kernels.universal_text import UTF8, UTF16, equal, is_ascii

# Bits of the third argument.
COMPACT = 1
ORDER_SHIFT = 1
NULL = 8
STRICT = 16
WHOLE = 32
PART = 64  # the value is in a document that goes on
DEPTH_SHIFT = 8
DEPTH_MASK = 0xFFF
USED_SHIFT = 20  # the depth that the value is at

_STACK_WORDS = 512  # of values, before it's moved to the heap
_BUFFER_WORDS = 10
_LONGEST_KEPT = 32  # bytes of a key
_TRIES = 2048  # of keys, after which those that were read are given up
_LEAST_HITS = 512
_PLAIN_FLAGS = types.int32(0)
_HASH = -7046029254386353131


@inner
def _read(state: int, data: int, nbytes: int, start: int, flags: int, max_items: int, stop: int) -> int:
    """The new value of a document, or of a part of one; 0 with an exception.

    Args:
        start: the word of the value: 32 times its position, and what is pending.
        stop: address of a word that gets the position behind it.
    """
    compact = (flags & COMPACT) != 0
    order = (flags >> ORDER_SHIFT) & 3
    null = (flags & NULL) != 0
    strict = (flags & STRICT) != 0
    max_depth = (flags >> DEPTH_SHIFT) & DEPTH_MASK
    deepest = max_depth - (flags >> USED_SHIFT)
    layout = load_i64(state + 8 * LAYOUT)
    direct = layout != 0
    head = load_i64(state + 8 * ASCII_HEAD)

    frames = room(2000)
    own_values = room(512)
    fault = room(4)
    store_i64(fault + REASON, FINE)
    values = own_values
    capacity = _STACK_WORDS
    end = 0  # of the values
    depth = 0
    items = 0
    keeps = direct  # look for keys among those that were read
    tries = 0
    hits = 0
    pos = start >> 5
    half = start & 31  # 16 + the high nibble of the last code byte while it's unread
    at = pos  # the byte of the last code
    wants_key = False
    result = 0
    while True:
        # ---- a code ----
        if half != 0:
            code = half & 15
            half = 0
        else:
            at = pos
            if pos >= nbytes:
                keep_fault(fault, NO_MORE_CODES, pos, nbytes, 0)
                break
            code = load_u8(data + pos)
            if compact:
                half = (code >> 4) | 16
                code &= 15
            elif code > 15:
                keep_fault(fault, UNKNOWN_CODE, pos, code, 0)
                break
            pos += 1

        value = 0
        if wants_key:
            if code >= UTF8:
                length, pos = length_at(data, nbytes, pos, strict, fault)
                if length < 0:
                    break
                source = data + pos
                if keeps and 0 < length <= _LONGEST_KEPT:
                    if length >= 8:
                        mixed = load_i64(source) ^ (load_i64(source + length - 8) * 3)
                    elif length >= 4:
                        mixed = load_u32(source) ^ (load_u32(source + length - 4) << 20)
                    else:
                        mixed = load_u8(source) | (load_u8(source + (length >> 1)) << 8)
                        mixed |= load_u8(source + length - 1) << 16
                    mixed = (mixed + length) * _HASH
                    slot = state + 8 * (KEYS + ((mixed >> 50) & (KEY_SLOTS - 1)))
                    kept = load_i64(slot)
                    tries += 1
                    if (
                        kept != 0
                        and code != UTF16
                        and load_i64(kept + SIZE) == length
                        and equal(kept + head, source, length)
                    ):
                        value = hold(kept, layout)
                        hits += 1
                    else:
                        value = made_text(state, data, pos, length, code, fault)
                        if value == 0:
                            break
                        if code != UTF16 and is_ascii(source, length):
                            store_i64(slot, hold(value, layout))
                            decref_if(kept)
                    if tries == _TRIES:
                        keeps = hits > _LEAST_HITS
                        tries = 0
                        hits = 0
                else:
                    value = made_text(state, data, pos, length, code, fault)
                    if value == 0:
                        break
                    if not keeps:
                        object_hash(value)  # while its bytes are in the cache
                pos += length
                wants_key = False
                if end == capacity:
                    grown = grown_stack(own_values, values, capacity)
                    if grown == 0:
                        decref(value)
                        keep_fault(fault, RAISED, pos, 0, 0)
                        break
                    values = grown
                    capacity <<= 1
                store_i64(values + 8 * end, value)
                end += 1
                continue
            if code != 2:
                keep_fault(fault, NOT_A_KEY, at, code, 0)
                break
            base = load_i64(frames + FRAME * (depth - 1) + BASE)
            value = new_object(state, values, base, end, strict, at, fault)
            if value == 0:
                if load_i64(fault + REASON) == DUPLICATE_KEY:
                    until = load_i64(fault + FOUND)
                    while end > until:
                        end -= 1
                        decref(load_i64(values + 8 * end))
                    store_i64(fault + FOUND, 0)
                break
            end = base
            depth -= 1
        elif code == 4 and depth > 0 and load_i64(frames + FRAME * (depth - 1) + CODE) == 3:
            base = load_i64(frames + FRAME * (depth - 1) + BASE)
            value = new_collection(state, values, base, end, fault)
            if value == 0:
                break
            end = base
            depth -= 1
        elif code == 2 or code == 4:
            began = load_i64(frames + FRAME * (depth - 1) + CODE) if depth > 0 else 0
            keep_fault(fault, WRONG_END, at, code, began)
            break
        else:
            items += 1
            if items > max_items:
                keep_fault(fault, MANY_ITEMS, at, 0, max_items)
                break
            if code >= UTF8:
                length, pos = length_at(data, nbytes, pos, strict, fault)
                if length < 0:
                    break
                value = made_text(state, data, pos, length, code, fault)
                if value == 0:
                    break
                pos += length
            elif code == 1 or code == 3:
                if depth >= deepest:
                    keep_fault(fault, DEEP_NESTING, at, 0, max_depth)
                    break
                frame = frames + FRAME * depth
                store_i64(frame + BASE, end)
                store_i64(frame + CODE, code)
                depth += 1
                wants_key = code == 1
                continue
            elif code == 5 or code == 6:
                value = hold(load_i64(state + 8 * (TRUE if code == 5 else FALSE)), layout)
            elif code == 0:
                if not null:
                    keep_fault(fault, UNKNOWN_CODE, at, 0, 0)
                    break
                value = hold(load_i64(state + 8 * NONE), layout)
            else:
                width = 8
                if code == 7:
                    width = 1
                elif code == 8:
                    width = 2
                elif code == 9 or code == 11:
                    width = 4
                if nbytes - pos < width:
                    keep_fault(fault, SHORT_PAYLOAD, pos, code, nbytes - pos)
                    break
                source = data + pos
                pos += width
                if code == 9:
                    value = new_int((ordered(load_u32(source), 32, order) << 32) >> 32)
                elif code == 12:
                    value = new_float(float_of_bits(ordered(load_i64(source), 64, order)))
                elif code == 10:
                    value = new_int(ordered(load_i64(source), 64, order))
                elif code == 11:
                    value = new_float(float_of_bits32(ordered(load_u32(source), 32, order)))
                elif code == 8:
                    value = new_int((ordered(load_u16(source), 16, order) << 48) >> 48)
                else:
                    value = new_int((load_u8(source) << 56) >> 56)
                if value == 0:
                    keep_fault(fault, RAISED, pos, 0, 0)
                    break

        # ---- a finished value ----
        if depth == 0:
            if half & 15 != 0 and (flags & PART) == 0:
                decref(value)
                keep_fault(fault, TRAILING_CODE, at, half & 15, 0)
            elif (flags & (WHOLE | PART)) == WHOLE and pos < nbytes:
                decref(value)
                keep_fault(fault, TRAILING_BYTES, pos, nbytes - pos, 0)
            else:
                result = value
            break
        wants_key = load_i64(frames + FRAME * (depth - 1) + CODE) == 1
        if end == capacity:
            grown = grown_stack(own_values, values, capacity)
            if grown == 0:
                decref(value)
                keep_fault(fault, RAISED, pos, 0, 0)
                break
            values = grown
            capacity <<= 1
        store_i64(values + 8 * end, value)
        end += 1

    store_i64(stop, pos)
    if result == 0:
        path = 0
        reason = load_i64(fault + REASON)
        if reason != RAISED:
            path = path_to(frames, depth, values, end)
        for i in range(end):
            decref(load_i64(values + 8 * i))
        if values != own_values:
            free(values)
        if path != 0:
            position = new_int(load_i64(fault + POSITION))
            if position == 0:
                decref(path)
            else:
                function = load_i64(state + 8 * REFUSE)
                raise_by(function, reason, path, position, load_i64(fault + FOUND), load_i64(fault + LIMIT))
    elif values != own_values:
        free(values)
    return result


@inner
def _read_object(itself: int, arguments: int) -> int:
    state = int_value(itself)
    buf = load_i64(arguments)
    start = int_value(load_i64(arguments + 8))
    flags = int_value(load_i64(arguments + 16))
    max_items = int_value(load_i64(arguments + 24))
    stop = room(1)
    view = room(10)
    is_bytes = load_i64(buf + TYPE) == load_i64(state + 8 * BYTES)
    if is_bytes:
        data = bytes_data(buf)
        nbytes = bytes_size(buf)
    else:
        if get_buffer(buf, view, _PLAIN_FLAGS) != 0:
            return 0
        data = load_i64(view)
        nbytes = load_i64(view + 16)
    paused = gc_disable()
    value = _read(state, data, nbytes, start, flags, max_items, stop)
    if not is_bytes:
        release_buffer(view)
    if paused != 0:
        gc_enable()
    if value == 0 or (flags & WHOLE) != 0:
        return value
    both = new_tuple(2)
    position = new_int(load_i64(stop))
    if both == 0 or position == 0:
        decref(value)
        decref_if(both)
        decref_if(position)
        return 0
    tuple_set(both, 0, value)
    tuple_set(both, 1, position)
    return both


def read(itself: int, arguments: int, count: int) -> int:
    """A builtin's body: (buffer, word of the start, options as flags, max_items) -> value.

    Without the flag `WHOLE` it gives the value and the position behind it.

    Requires: four arguments, an object and ints, ``start`` within the buffer; ``itself`` is an int, the
    address of a state.
    """
    return _read_object(itself, arguments)


def compile_read() -> Any:
    """The kernel of `read`, compiled or from disk."""
    kernel = cached(read)
    kernel.compile(int64(int64, int64, int64))
    kernel.disable_compile()
    return kernel
