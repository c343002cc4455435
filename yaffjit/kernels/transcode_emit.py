"""Writes the objects of a YaFF buffer to where it shall lie: all sizes and positions are known."""

from __future__ import annotations

from yaffjit.kernels import transcode_state as state
from yaffjit.kernels.cached import inner
from yaffjit.kernels.memory import load_i64, load_u8, store_i64, store_u8, store_u16, store_u32
from yaffjit.kernels.write import copy as copy_bytes
from yaffjit.kernels.write import zero
from yaffjit.plan import tables as yaff
from yaffjit.plan import wire_tables as tables

_LIMIT = 8 * tables.LIMIT
_PLAIN_BITS = 8 * tables.PLAIN_BITS
_PLAIN_STRIDE = 8 * tables.PLAIN_STRIDE
_PRESENCE_BITS = 8 * tables.PRESENCE_BITS
_PRESENCE_STRIDE = 8 * tables.PRESENCE_STRIDE
_KIND = 8 * tables.KIND
_ID = 8 * tables.ID
_OFFSET = 8 * tables.OFFSET
_WIDTH = 8 * tables.WIDTH
_DEFAULT = 8 * tables.DEFAULT

_EMPTY_FLAT = 0x8000
_EMPTY_SPARSE = 2


@inner
def _put(to: int, bits: int, width: int) -> None:
    if width == 4:
        store_u32(to, bits)
    elif width == 8:
        store_i64(to, bits)
    else:
        store_u8(to, bits)


@inner
def _slots(first: int, fields: int, position: int, form: int) -> None:
    """The slots of a flat or fixed message at ``position`` from the end, whose first one is at ``first``."""
    count = load_i64(fields)
    for i in range(count):
        live = load_i64(fields + 8 + 16 * i)
        value = load_i64(fields + 16 + 16 * i)
        slot = first + load_i64(live + _OFFSET)
        if load_i64(live + _KIND) == yaff.VALUE:
            _put(slot, value ^ load_i64(live + _DEFAULT), load_i64(live + _WIDTH))
        else:
            store_u32(slot, position - load_i64(value + form))


@inner
def _flat(table: int, made: int, at: int, position: int, form: int) -> None:
    fields = load_i64(made + state.A)
    count = load_i64(fields)
    if count == 0:
        store_u16(at, _EMPTY_FLAT)
        return
    message = load_i64(made + state.C)
    last = load_i64(fields + 16 * count - 8)
    highest = load_i64(last + _ID)
    presence = load_i64(made + state.NEEDS_PRESENCE)
    bits = load_i64(message + (_PRESENCE_BITS if presence else _PLAIN_BITS))
    stride = load_i64(message + (_PRESENCE_STRIDE if presence else _PLAIN_STRIDE))
    zero(at + 2, load_i64(last + _OFFSET) + load_i64(last + _WIDTH))
    store_u16(at, 0x8000 | (highest + 1) << 2 | (stride & 2) | presence)
    _slots(at + 2, fields, position, form)
    nbits = highest * stride
    if nbits != 0:
        nbytes = (nbits + 7) >> 3
        copy_bytes(at - nbytes, table + bits - nbytes, nbytes)
        if nbits & 7:
            store_u8(at - nbytes, load_u8(at - nbytes) & ((1 << (nbits & 7)) - 1))
    if presence:
        for i in range(count):
            bit = (load_i64(load_i64(fields + 8 + 16 * i) + _ID) - 1) * stride
            place = at - 1 - (bit >> 3)
            store_u8(place, load_u8(place) | 1 << (bit & 7))


@inner
def _sparse(made: int, at: int, position: int, form: int) -> None:
    fields = load_i64(made + state.A)
    count = load_i64(fields)
    if count == 0:
        store_u16(at, _EMPTY_SPARSE)
        return
    highest = load_i64(load_i64(fields + 16 * count - 8) + _ID)
    store_u16(at, (highest + 1) << 2 | 3)
    to = at + 2
    for i in range(count):
        live = load_i64(fields + 8 + 16 * i)
        value = load_i64(fields + 16 + 16 * i)
        width = load_i64(live + _WIDTH)
        if load_i64(live + _KIND) == yaff.VALUE:
            _put(to, value, width)
        else:
            store_u32(to, position - load_i64(value + form))
        to += width
    end = load_i64(made + (state.FLAT_TABLE if form == state.FLAT_POS else state.SPARSE_TABLE))
    store_u32(at - 4, position - end)
    if end == position + 4:
        nbytes = load_i64(made + state.META_NBYTES)
        copy_bytes(at - 4 - nbytes, load_i64(made + state.META), nbytes)


@inner
def emit(request: int, root: int, out: int, nbytes: int, form: int) -> None:
    """Writes a buffer of ``nbytes`` at ``out``; ``form``: FLAT_POS or SPARSE_POS, whose positions count.

    Requires: a request whose objects are those of `transcode_gather.gather`, and room for the buffer.
    """
    table = load_i64(request + state.TABLE)
    end = out + nbytes
    store_u32(out, nbytes - load_i64(root + form))
    made = load_i64(request + state.LAST)
    while made != 0:
        kind = load_i64(made + state.KIND)
        position = load_i64(made + form)
        at = end - position
        a = load_i64(made + state.A)
        b = load_i64(made + state.B)
        if kind <= state.VALUES:
            store_u32(at, load_i64(made + state.C))
            copy_bytes(at + 4, a, b)
            if kind == state.TEXT:
                store_u8(at + 4 + b, 0)
        elif kind == state.OFFSETS_TO:
            store_u32(at, b)
            for i in range(b):
                store_u32(at + 4 + 4 * i, position - 4 - load_i64(load_i64(a + 8 * i) + form))
        elif kind == state.STRUCT:
            zero(at, load_i64(load_i64(made + state.C) + _LIMIT))
            _slots(at, a, position, form)
        elif kind == state.STRUCTS:
            limit = load_i64(load_i64(made + state.C) + _LIMIT)
            store_u32(at, b)
            zero(at + 4, b * limit)
            for i in range(b):
                _slots(at + 4 + i * limit, load_i64(a + 8 * i), position - 4 - i * limit, form)
        elif kind == state.FLAT or (kind == state.DYNAMIC and form == state.FLAT_POS):
            _flat(table, made, at, position, form)
        else:
            _sparse(made, at, position, form)
        made = load_i64(made + state.PREVIOUS)
