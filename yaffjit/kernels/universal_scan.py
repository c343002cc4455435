"""Walking over documents of the universal tagged format by address: codes, skipping, paths; no objects.

Where something is, is a word: ``32 * position + pending``. Pending is 0, or 16 + the code in the high nibble
of the last code byte while that is still to be read; in plain mode it's always 0. Kernels carry both apart.

All is bounded by ``nbytes``, and containers by the depth in the flags; their codes lie on an explicit stack.
What is wrong isn't told here, only that it is: whoever asked has the document read from its begin by
`yaffjit.universal.codec`, which finds it again.
"""

from __future__ import annotations

from functools import partial

from yaffjit.kernels.cached import inner
from yaffjit.kernels.memory import load_i64, load_u8, load_u16, load_u32, store_u8
from yaffjit.kernels.objects import float_of_bits, float_of_bits32, memcmp, ordered, room
from yaffjit.kernels.universal_text import UTF8, UTF16, equal

# In place of a position or a word: the bytes aren't a document; the path leads nowhere.
BAD = -1
ABSENT = -2

# Bits of the flags, as `yaffjit.kernels.universal_read` has them.
COMPACT = 1
ORDER_SHIFT = 1
NULL = 8
DEPTH_SHIFT = 8
DEPTH_MASK = 0xFFF
USED_SHIFT = 20  # the depth that a value is at
ONE_DEEPER = 1 << USED_SHIFT

# Words of a path: how many steps; of each what it is, a number, and a key's bytes, filled up to words.
KEY, INDEX = 0, 1

_KIND_WORDS = 128  # a byte a level, of 1000 at most
_MAX_LENGTH_SHIFT = 56


inlined = partial(inner, inline=True)


@inlined
def next_code(data: int, nbytes: int, pos: int, half: int, compact: bool) -> tuple[int, int, int]:
    """The next code, or `BAD`; position and pending behind it."""
    if half != 0:
        return half & 15, pos, 0
    if pos >= nbytes:
        return BAD, pos, 0
    code = load_u8(data + pos)
    if compact:
        return code & 15, pos + 1, (code >> 4) | 16
    if code > 15:
        return BAD, pos, 0
    return code, pos + 1, 0


@inner
def _long_length(data: int, nbytes: int, pos: int) -> tuple[int, int]:
    length = 0
    shift = 0
    while pos < nbytes and shift <= _MAX_LENGTH_SHIFT:
        byte = load_u8(data + pos)
        pos += 1
        length |= (byte & 127) << shift
        if byte < 128:
            return (length if length <= nbytes - pos else BAD), pos
        shift += 7
    return BAD, pos


@inlined
def text_length(data: int, nbytes: int, pos: int) -> tuple[int, int]:
    """The length of a text, no more than what is left, or `BAD`; and the position behind it."""
    if pos < nbytes:
        length = load_u8(data + pos)
        if length < 128:
            pos += 1
            return (length if length <= nbytes - pos else BAD), pos
    return _long_length(data, nbytes, pos)


# Four bits a code: the bytes of its payload.
_WIDTHS = 0x0008_4842_1000_0000


@inlined
def width_of(code: int) -> int:
    """Bytes of the payload of a code from 5 to 12."""
    return (_WIDTHS >> (4 * code)) & 15


@inner
def _same_characters(at: int, nbytes: int, code: int, key: int, key_nbytes: int) -> bool:
    end = at + nbytes
    key_end = key + key_nbytes
    while at < end:
        point = load_u8(at)
        at += 1
        if code == UTF16:
            if at == end:
                return False
            point |= load_u8(at) << 8
            at += 1
            if point & 0xFC00 == 0xD800 and end - at >= 2:
                low = load_u8(at) | (load_u8(at + 1) << 8)
                if low & 0xFC00 != 0xDC00:
                    return False
                at += 2
                point = 0x10000 + ((point & 0x3FF) << 10) + (low & 0x3FF)
        following = 0
        if point >= 0x80:
            following = 1 if point < 0x800 else (2 if point < 0x10000 else 3)
        if key_end - key <= following:
            return False
        lead = point
        if following > 0:
            lead = ((0xFF << (7 - following)) & 0xFF) | (point >> (6 * following))
        if load_u8(key) != lead:
            return False
        key += 1
        while following > 0:
            following -= 1
            if load_u8(key) != 0x80 | ((point >> (6 * following)) & 0x3F):
                return False
            key += 1
    return key == key_end


@inlined
def same_text(at: int, nbytes: int, code: int, key: int, key_nbytes: int) -> bool:
    """Whether a text of one of the three codes has the characters of one in UTF-8.

    Requires: as many bytes can be read at both. Text that isn't valid equals none.
    """
    if code != UTF8:
        return _same_characters(at, nbytes, code, key, key_nbytes)
    if nbytes != key_nbytes:
        return False
    if nbytes > 32:
        return memcmp(at, key, nbytes) == 0
    return nbytes == 0 or equal(at, key, nbytes)


@inner
def _pass_items(data: int, nbytes: int, pos: int, half: int, kind: int, flags: int) -> tuple[int, int]:
    """Where a container ends, whose begin was passed: position, or `BAD`, and what is pending.

    Args:
        kind: 1 or 3, the code that began it.
        flags: with the depth that it's at.
    """
    compact = (flags & COMPACT) != 0
    left = ((flags >> DEPTH_SHIFT) & DEPTH_MASK) - (flags >> USED_SHIFT)
    if left <= 0:
        return BAD, 0
    kinds = room(_KIND_WORDS)
    store_u8(kinds, kind)
    level = 1
    in_object = kind == 1
    while True:
        # Scalars and texts are passed in small loops, which end at a container's begin or end.
        if in_object:
            while True:
                code, pos, half = next_code(data, nbytes, pos, half, compact)
                if code < UTF8:
                    if code != 2:
                        return BAD, 0
                    break
                length, pos = text_length(data, nbytes, pos)
                if length < 0:
                    return BAD, 0
                pos += length
                code, pos, half = next_code(data, nbytes, pos, half, compact)
                if code >= UTF8:
                    length, pos = text_length(data, nbytes, pos)
                    if length < 0:
                        return BAD, 0
                    pos += length
                elif code >= 5:
                    pos += width_of(code)
                    if pos > nbytes:
                        return BAD, 0
                elif code == 2 or code == 4:
                    return BAD, 0
                else:
                    break
        else:
            while True:
                code, pos, half = next_code(data, nbytes, pos, half, compact)
                if code >= UTF8:
                    length, pos = text_length(data, nbytes, pos)
                    if length < 0:
                        return BAD, 0
                    pos += length
                elif code >= 5:
                    pos += width_of(code)
                    if pos > nbytes:
                        return BAD, 0
                elif code == 2:
                    return BAD, 0
                else:
                    break
        if code == 1 or code == 3:
            if level >= left:
                return BAD, 0
            store_u8(kinds + level, code)
            level += 1
            in_object = code == 1
        elif code == 2 or code == 4:
            level -= 1
            if level == 0:
                return pos, half
            in_object = load_u8(kinds + level - 1) == 1
        elif code != 0 or (flags & NULL) == 0:
            return BAD, 0


@inlined
def skip(data: int, nbytes: int, pos: int, half: int, code: int, flags: int) -> tuple[int, int]:
    """Where a value ends whose code was read last: its position, or `BAD`, and what is pending.

    The structure of what is in it is checked: ends, keys, bounds; texts aren't.
    """
    if code >= UTF8:
        length, pos = text_length(data, nbytes, pos)
        return (pos + length if length >= 0 else BAD), half
    if code >= 5:
        pos += width_of(code)
        return (pos if pos <= nbytes else BAD), half
    if code == 1 or code == 3:
        return _pass_items(data, nbytes, pos, half, code, flags)
    return (pos if code == 0 and (flags & NULL) != 0 else BAD), half


@inlined
def to_key(
    data: int, nbytes: int, pos: int, half: int, flags: int, key: int, key_nbytes: int
) -> tuple[int, int]:
    """Where the value of an object's first such key is: its position, `BAD` or `ABSENT`, and what is pending.

    `ABSENT` too where there's no object.

    Requires: as many bytes can be read at ``key``, which are UTF-8.
    """
    compact = (flags & COMPACT) != 0
    code, pos, half = next_code(data, nbytes, pos, half, compact)
    if code != 1:
        return (BAD if code < 0 or code == 2 or code == 4 else ABSENT), 0
    if (flags >> USED_SHIFT) >= (flags >> DEPTH_SHIFT) & DEPTH_MASK:
        return BAD, 0
    while True:
        code, pos, half = next_code(data, nbytes, pos, half, compact)
        if code < UTF8:
            return (ABSENT if code == 2 else BAD), 0
        length, pos = text_length(data, nbytes, pos)
        if length < 0:
            return BAD, 0
        at = data + pos
        pos += length
        if same_text(at, length, code, key, key_nbytes):
            return pos, half
        code, pos, half = next_code(data, nbytes, pos, half, compact)
        pos, half = skip(data, nbytes, pos, half, code, flags + ONE_DEEPER)
        if pos < 0:
            return BAD, 0


@inner
def count_items(data: int, nbytes: int, pos: int, half: int, flags: int) -> int:
    """How many items a collection has, or pairs an object; `BAD`; `ABSENT` where there's no container."""
    compact = (flags & COMPACT) != 0
    kind, pos, half = next_code(data, nbytes, pos, half, compact)
    if kind != 1 and kind != 3:
        return BAD if kind < 0 or kind == 2 or kind == 4 else ABSENT
    if (flags >> USED_SHIFT) >= (flags >> DEPTH_SHIFT) & DEPTH_MASK:
        return BAD
    count = 0
    while True:
        code, pos, half = next_code(data, nbytes, pos, half, compact)
        if code == kind + 1:
            return count
        if kind == 1:
            if code < UTF8:
                return BAD
            length, pos = text_length(data, nbytes, pos)
            if length < 0:
                return BAD
            pos += length
            code, pos, half = next_code(data, nbytes, pos, half, compact)
        pos, half = skip(data, nbytes, pos, half, code, flags + ONE_DEEPER)
        if pos < 0:
            return BAD
        count += 1


@inlined
def to_index(data: int, nbytes: int, pos: int, half: int, flags: int, index: int) -> tuple[int, int]:
    """Where an item of a collection is, as `to_key`; a negative index counts from the end."""
    compact = (flags & COMPACT) != 0
    if index < 0:
        count = count_items(data, nbytes, pos, half, flags)
        if count < 0:
            return count, 0
        index += count
    code, pos, half = next_code(data, nbytes, pos, half, compact)
    if code != 3:
        return (BAD if code < 0 or code == 2 or code == 4 else ABSENT), 0
    if (flags >> USED_SHIFT) >= (flags >> DEPTH_SHIFT) & DEPTH_MASK:
        return BAD, 0
    if index < 0:
        return ABSENT, 0
    while True:
        code, after, pending = next_code(data, nbytes, pos, half, compact)
        if code < 0 or code == 4:
            return (BAD if code < 0 else ABSENT), 0
        if index == 0:
            return pos, half
        index -= 1
        pos, half = skip(data, nbytes, after, pending, code, flags + ONE_DEEPER)
        if pos < 0:
            return BAD, 0


@inner
def find(data: int, nbytes: int, word: int, flags: int, steps: int) -> int:
    """The word of the value that a path leads to from a value's; `BAD` or `ABSENT`.

    Requires: the path's words are at ``steps``; the word's position isn't negative.
    """
    pos = word >> 5
    half = word & 31
    count = load_i64(steps)
    at = steps + 8
    for _ in range(count):
        number = load_i64(at + 8)
        if load_i64(at) == KEY:
            pos, half = to_key(data, nbytes, pos, half, flags, at + 16, number)
            at += 16 + ((number + 7) & -8)
        else:
            pos, half = to_index(data, nbytes, pos, half, flags, number)
            at += 16
        if pos < 0:
            return pos
        flags += ONE_DEEPER
    return (pos << 5) | half


@inner
def code_at(data: int, nbytes: int, word: int, flags: int) -> int:
    """The code of a value, or `BAD`."""
    code, _, _ = next_code(data, nbytes, word >> 5, word & 31, (flags & COMPACT) != 0)
    if code == 2 or code == 4 or (code == 0 and (flags & NULL) == 0):
        return BAD
    return code


@inner
def next_item(data: int, nbytes: int, pos: int, half: int, flags: int, kind: int) -> tuple[int, int, int]:
    """The next item of a container of the depth in the flags: of its value the code, position, pending.

    The code is `BAD`, or `ABSENT` at the container's end; of an object's pair the position is behind the key.

    Args:
        kind: 1 or 3, the code that began the container.
    """
    compact = (flags & COMPACT) != 0
    code, after, pending = next_code(data, nbytes, pos, half, compact)
    if code == kind + 1:
        return ABSENT, after, pending
    if kind == 1:
        if code < UTF8:
            return BAD, pos, 0
        length, after = text_length(data, nbytes, after)
        if length < 0:
            return BAD, pos, 0
        pos = after + length
        half = pending
        code, _, _ = next_code(data, nbytes, pos, half, compact)
    if code == 2 or code == 4 or (code == 0 and (flags & NULL) == 0):
        return BAD, pos, 0
    return code, pos, half


@inner
def int_of(at: int, code: int, order: int) -> int:
    """The value of an integer.

    Requires: ``code`` is 7 to 10, and as many bytes can be read as `width_of` says.
    """
    if code == 9:
        return (ordered(load_u32(at), 32, order) << 32) >> 32
    if code == 10:
        return ordered(load_i64(at), 64, order)
    if code == 8:
        return (ordered(load_u16(at), 16, order) << 48) >> 48
    return (load_u8(at) << 56) >> 56


@inner
def float_of(at: int, code: int, order: int) -> float:
    """The value of a float.

    Requires: ``code`` is 11 or 12, and as many bytes can be read as `width_of` says.
    """
    if code == 12:
        return float_of_bits(ordered(load_i64(at), 64, order))
    return float_of_bits32(ordered(load_u32(at), 32, order))
