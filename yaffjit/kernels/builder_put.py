"""What is put into a message that is being built: texts, elements of repeated fields, pairs of maps.

Slots are those of `yaffjit.plan.builder_tables`, all addresses int64. Each function gives 0 where there's no
memory, and then has changed nothing.
"""

from __future__ import annotations

from yaffjit.kernels.builder_memory import grown, take
from yaffjit.kernels.cached import cached, inner
from yaffjit.kernels.memory import load_i64, load_u8, load_u16, load_u32, store_i64, store_u8, store_u32
from yaffjit.kernels.write import are_equal, copy, hash_of, mix, zero
from yaffjit.plan import builder_tables as tables

_AFTER_SHIFT = 0x01FFFFFFFFFFFFFF
_MOST_OF_VARINT = 10
_MOST_OF_TAG = 5
_SEED = 0x2545F4914F6CDD1D
_INDEXED = 8  # pairs of a map from which on they are found by an index

# How a key or a value of a pair is given.
NUMBER_KEY = -1  # in the place of its bytes


# ---- numbers and texts ----


@inner
def _put_varint(at: int, value: int) -> int:
    """Write a varint; where it ends."""
    while value < 0 or value > 127:
        store_u8(at, value & 127 | 128)
        value = (value >> 7) & _AFTER_SHIFT
        at += 1
    store_u8(at, value)
    return at + 1


@cached
def put_text(state: int, slot: int, source: int, nbytes: int) -> int:
    """Copy a text into a slot of its own."""
    at = take(state, nbytes)
    if at != 0:
        copy(at, source, nbytes)
        store_i64(slot, at)
        store_i64(slot + 8, nbytes)
    return at


@inner
def _room(state: int, slot: int, nbytes: int) -> int:
    """Where the next bytes of a run go, of which there may be so many; 0 if there's no memory."""
    used = load_i64(slot + tables.USED)
    at = grown(state, slot, used, used + nbytes, 1)
    return 0 if at == 0 else at + used


@inner
def _end_at(slot: int, at: int) -> None:
    """Count an element that ends there."""
    store_i64(slot + tables.USED, at - load_i64(slot))
    store_i64(slot + tables.COUNT, load_i64(slot + tables.COUNT) + 1)


@cached
def append_number(state: int, slot: int, tag: int, op: int, value: int) -> int:
    """Put a number behind a run, with its tag before it unless that's 0."""
    at = _room(state, slot, _MOST_OF_TAG + _MOST_OF_VARINT)
    if at == 0:
        return 0
    if tag != 0:
        at = _put_varint(at, tag)
    if op == tables.VARINT:
        at = _put_varint(at, value)
    elif op == tables.FIXED32:
        store_u32(at, value)
        at += 4
    else:
        store_i64(at, value)
        at += 8
    _end_at(slot, at)
    return 1


@cached
def append_text(state: int, slot: int, tag: int, source: int, nbytes: int) -> int:
    """Put a text behind a run, with its tag and its size before it."""
    at = _room(state, slot, _MOST_OF_TAG + _MOST_OF_VARINT + nbytes)
    if at == 0:
        return 0
    at = _put_varint(_put_varint(at, tag), nbytes)
    copy(at, source, nbytes)
    _end_at(slot, at + nbytes)
    return 1


# ---- strings of numba ----

# What `utf8_nbytes` gives for half of a surrogate pair: this less its index.
BROKEN = -1


@inner
def _point(data: int, kind: int, i: int) -> int:
    """A character of a string whose characters have so many bytes each."""
    if kind == 1:
        return load_u8(data + i)
    return load_u16(data + 2 * i) if kind == 2 else load_u32(data + 4 * i)


@cached
def utf8_nbytes(data: int, length: int, kind: int) -> int:
    """Bytes of a string as UTF-8; negative if it has none (`BROKEN`)."""
    nbytes = 0
    for i in range(length):
        point = _point(data, kind, i)
        if point < 0x80:
            nbytes += 1
        elif point < 0x800:
            nbytes += 2
        elif point < 0x10000:
            if point >= 0xD800 and point < 0xE000:
                return BROKEN - i
            nbytes += 3
        else:
            nbytes += 4
    return nbytes


@cached
def take_utf8(state: int, data: int, length: int, kind: int, nbytes: int) -> int:
    """The address of a string as UTF-8, of as many bytes as `utf8_nbytes` says."""
    made = take(state, nbytes)
    if made == 0:
        return 0
    at = made
    for i in range(length):
        point = _point(data, kind, i)
        if point < 0x80:
            store_u8(at, point)
            at += 1
            continue
        if point < 0x800:
            store_u8(at, 0xC0 | point >> 6)
        else:
            if point < 0x10000:
                store_u8(at, 0xE0 | point >> 12)
            else:
                store_u8(at, 0xF0 | point >> 18)
                store_u8(at + 1, 0x80 | point >> 12 & 63)
                at += 1
            store_u8(at + 1, 0x80 | point >> 6 & 63)
            at += 1
        store_u8(at + 1, 0x80 | point & 63)
        at += 2
    return made


# ---- pairs ----


@inner
def _is_key(pair: int, key: int, nbytes: int) -> bool:
    if nbytes == NUMBER_KEY:
        return load_i64(pair) == key
    return load_i64(pair + 8) == nbytes and are_equal(load_i64(pair), key, nbytes)


@inner
def _hash(key: int, nbytes: int) -> int:
    return mix(key ^ _SEED, _SEED) if nbytes == NUMBER_KEY else hash_of(key, nbytes, _SEED)


@inner
def _place(slot: int, key: int, nbytes: int) -> int:
    """The address in the index of a key's pair, or of where it belongs: what is there is 0 then."""
    index, mask = load_i64(slot + tables.INDEX), load_i64(slot + tables.INDEX_MASK)
    pairs = load_i64(slot)
    at = _hash(key, nbytes) & mask
    while True:
        number = load_i64(index + 8 * at)
        if number == 0 or _is_key(pairs + (number - 1) * tables.PAIR_NBYTES, key, nbytes):
            return index + 8 * at
        at = (at + 1) & mask


@inner
def _make_index(state: int, slot: int, count: int, is_text: bool) -> int:
    """An index of all pairs, with room for as many again; 0 if there's no memory."""
    size = 4 * _INDEXED
    while size < 4 * count:
        size *= 2
    index = take(state, 8 * size)
    if index == 0:
        return 0
    zero(index, 8 * size)
    store_i64(slot + tables.INDEX, index)
    store_i64(slot + tables.INDEX_MASK, size - 1)
    pairs = load_i64(slot)
    for i in range(count):
        pair = pairs + i * tables.PAIR_NBYTES
        nbytes = load_i64(pair + 8) if is_text else NUMBER_KEY
        store_i64(_place(slot, load_i64(pair), nbytes), i + 1)
    return index


@cached
def find_pair(state: int, slot: int, key: int, nbytes: int) -> int:
    """The address of a key's pair; 0 if there is none, -1 if there's no memory.

    Args:
        key, nbytes: a number and `NUMBER_KEY`, or where a text is and its bytes.
    """
    count = load_i64(slot + tables.USED)
    pairs = load_i64(slot)
    if count > _INDEXED:
        fits = load_i64(slot + tables.INDEX) != 0 and 2 * count <= load_i64(slot + tables.INDEX_MASK)
        if not fits and _make_index(state, slot, count, nbytes != NUMBER_KEY) == 0:
            return -1
        number = load_i64(_place(slot, key, nbytes))
        return 0 if number == 0 else pairs + (number - 1) * tables.PAIR_NBYTES
    for i in range(count):
        pair = pairs + i * tables.PAIR_NBYTES
        if _is_key(pair, key, nbytes):
            return pair
    return 0


@cached
def put_pair(state: int, slot: int, key: int, nbytes: int, value_nbytes: int) -> int:
    """The address of a key's pair, which is put behind the others if there is none; its value is 0 then.

    Args:
        key, nbytes: as `find_pair` takes them; a text is copied.
        value_nbytes: of the record of a message, which a new pair is given; else 0.
    """
    pair = find_pair(state, slot, key, nbytes)
    if pair != 0:
        return max(pair, 0)
    held = key
    if nbytes != NUMBER_KEY:
        held = take(state, nbytes)
        if held == 0:
            return 0
        copy(held, key, nbytes)
    record = 0
    if value_nbytes != 0:
        record = take(state, value_nbytes)
        if record == 0:
            return 0
        zero(record, value_nbytes)
        store_i64(record + tables.PRESENT, 1)
    count = load_i64(slot + tables.USED)
    pairs = grown(state, slot, count, count + 1, tables.PAIR_NBYTES)
    if pairs == 0:
        return 0
    pair = pairs + count * tables.PAIR_NBYTES
    store_i64(pair, held)
    store_i64(pair + 8, nbytes)
    store_i64(pair + tables.PAIR_VALUE, record)
    store_i64(pair + tables.PAIR_VALUE + 8, 0)
    store_i64(slot + tables.USED, count + 1)
    if load_i64(slot + tables.INDEX) != 0:
        store_i64(_place(slot, held, nbytes), count + 1)
    return pair
