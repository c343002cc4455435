"""A message that was built as protobuf bytes, for all schemas: from its end into a scratch.

Fields come by descending number and elements from the last, so the size of what is within something is known
when it's needed. A message that is being written lies on a stack of frames of a fixed depth.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import int64, types
from numba.extending import intrinsic

from yaffjit.kernels import builder_memory as memory
from yaffjit.kernels.cached import cached, inner
from yaffjit.kernels.memory import load_i64, stack_words, store_i64, store_u8, store_u16, store_u32
from yaffjit.kernels.write import compare, copy
from yaffjit.plan import builder_tables as tables

# Results that aren't a size.
NO_MEMORY, TOO_DEEP, TOO_LONG, BROKEN = -1, -2, -3, -4

MAX_DEPTH = 100  # what protobuf's parsers read
MAX_NBYTES = 2**31 - 1
_ROOM = 40  # bytes that tags, sizes and a number take at most, together
_LEAST_SCRATCH = 1024
_AFTER_SHIFT = 0x01FFFFFFFFFFFFFF
_SIGN64 = -0x8000000000000000
_FIELD_NBYTES = 8 * tables.FIELD_WORDS

# Words of a frame: what is being written within which the next message lies.
_RECORD = 0
_FIELDS = 8  # address of its field records
_WORD = 16  # its word of bits
_BITS = 24  # of that word, what is left
_ROW = 32  # the field that is being written
_LEFT = 40  # elements of it that are left
_USED = 48  # bytes that were written before the message within
_FRAME_NBYTES = 56
_FRAMES_WORDS = _FRAME_NBYTES // 8 * (MAX_DEPTH + 2)

_allocate = types.ExternalFunction("NRT_Allocate", int64(int64))
_free = types.ExternalFunction("NRT_Free", types.void(int64))


@intrinsic
def _highest_bit(typingctx: Any, word: Any) -> Any:
    """The number of the highest bit of a word that isn't 0."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        leading = builder.ctlz(args[0], ir.IntType(1)(1))
        return builder.sub(ir.IntType(64)(63), leading)

    return types.int64(types.int64), codegen


# ---- room ----


@inner
def _grow(state: int, out: int, needed: int) -> int:
    """A longer scratch with the same bytes at its end; where they begin, 0 if there's no memory."""
    old, nbytes = load_i64(state + memory.SCRATCH), load_i64(state + memory.SCRATCH_NBYTES)
    used = old + nbytes - out
    size = max(2 * nbytes, used + needed + _LEAST_SCRATCH)
    made = _allocate(size)
    if made == 0:
        return 0
    begin = made + size - used
    copy(begin, out, used)
    if old != 0:
        _free(old)
    store_i64(state + memory.SCRATCH, made)
    store_i64(state + memory.SCRATCH_NBYTES, size)
    return begin


@inner
def room_before(state: int, out: int, nbytes: int) -> int:
    """Where the next bytes end, so that so many and a few more have room; 0 if there's no memory."""
    if out - load_i64(state + memory.SCRATCH) >= nbytes + _ROOM:
        return out
    return _grow(state, out, nbytes + _ROOM)


@inner
def used_nbytes(state: int, out: int) -> int:
    """Bytes that were written."""
    return load_i64(state + memory.SCRATCH) + load_i64(state + memory.SCRATCH_NBYTES) - out


# ---- values, each before ``out`` ----


@inner
def put_varint(out: int, value: int) -> int:
    if value >= 0 and value < 128:
        store_u8(out - 1, value)
        return out - 1
    size = 2
    rest = (value >> 14) & 0x0003FFFFFFFFFFFF
    while rest != 0:
        size += 1
        rest >>= 7
    out -= size
    for i in range(size - 1):
        store_u8(out + i, value & 127 | 128)
        value = (value >> 7) & _AFTER_SHIFT
    store_u8(out + size - 1, value)
    return out


@inner
def put_tag(out: int, tag: int) -> int:
    if tag < 128:
        store_u8(out - 1, tag)
        return out - 1
    if tag < 128 * 128:
        store_u16(out - 2, tag & 127 | 128 | tag >> 7 << 8)
        return out - 2
    return put_varint(out, tag)


@inner
def _put_number(out: int, op: int, value: int) -> int:
    if op == tables.FIXED64:
        store_i64(out - 8, value)
        return out - 8
    if op == tables.FIXED32:
        store_u32(out - 4, value)
        return out - 4
    if op == tables.ZIGZAG:
        value = value << 1 ^ value >> 63
    return put_varint(out, value)


@inner
def put_bytes(out: int, source: int, nbytes: int) -> int:
    copy(out - nbytes, source, nbytes)
    return out - nbytes


@inner
def _put_held(out: int, op: int, at: int) -> int:
    """A key or a value of a pair."""
    if op == tables.TEXT:
        nbytes = load_i64(at + 8)
        return put_varint(put_bytes(out, load_i64(at), nbytes), nbytes)
    return _put_number(out, op, load_i64(at))


@inner
def _held_nbytes(op: int, at: int) -> int:
    return load_i64(at + 8) if op == tables.TEXT else 0


@inner
def _put_key(out: int, row: int, pair: int, used: int, state: int) -> int:
    """What comes before the value of a pair that ends where ``used`` bytes follow."""
    out = put_tag(out, load_i64(row + 8 * tables.VALUE_TAG))
    out = _put_held(out, load_i64(row + 8 * tables.KEY), pair)
    out = put_tag(out, load_i64(row + 8 * tables.KEY_TAG))
    out = put_varint(out, used_nbytes(state, out) - used)
    return put_tag(out, load_i64(row + 8 * tables.TAG))


# ---- the order of pairs ----


@inner
def _is_before(order: int, a: int, b: int) -> bool:
    """Whether the key of a pair comes before that of another."""
    if order == tables.BYTES:
        return compare(load_i64(a), load_i64(a + 8), load_i64(b), load_i64(b + 8)) < 0
    if order == tables.UNSIGNED:
        return load_i64(a) ^ _SIGN64 < load_i64(b) ^ _SIGN64
    if order == tables.UNSIGNED_DOWN:
        return load_i64(a) ^ _SIGN64 > load_i64(b) ^ _SIGN64
    if order == tables.SIGNED_DOWN:
        return load_i64(a) > load_i64(b)
    return load_i64(a) < load_i64(b)


@inner
def _swap(a: int, b: int) -> None:
    for i in range(0, tables.PAIR_NBYTES, 8):
        word = load_i64(a + i)
        store_i64(a + i, load_i64(b + i))
        store_i64(b + i, word)


@inner
def _sift(pairs: int, root: int, count: int, order: int) -> None:
    while True:
        child = 2 * root + 1
        if child >= count:
            return
        at = pairs + child * tables.PAIR_NBYTES
        if child + 1 < count and _is_before(order, at, at + tables.PAIR_NBYTES):
            child += 1
            at += tables.PAIR_NBYTES
        if not _is_before(order, pairs + root * tables.PAIR_NBYTES, at):
            return
        _swap(pairs + root * tables.PAIR_NBYTES, at)
        root = child


@cached
def sort_pairs(slot: int, order: int) -> None:
    """Have the pairs of a map lie by their keys; the index of pairs that weren't is forgotten."""
    pairs, count = load_i64(slot), load_i64(slot + tables.USED)
    ascending = True
    for i in range(1, count):
        at = pairs + i * tables.PAIR_NBYTES
        if not _is_before(order, at - tables.PAIR_NBYTES, at):
            ascending = False
            break
    if ascending:
        return
    store_i64(slot + tables.INDEX, 0)
    for root in range(count // 2 - 1, -1, -1):
        _sift(pairs, root, count, order)
    for last in range(count - 1, 0, -1):
        _swap(pairs, pairs + last * tables.PAIR_NBYTES)
        _sift(pairs, 0, last, order)


# ---- messages ----


@inner
def write_part(state: int, table: int, message: int, record: int, only: int, level: int, out: int) -> int:
    """Write a message without its tag, or one field of it, before ``out``; where it begins, or an error.

    Args:
        table, message: address of the root's table, and of the message's record in it.
        record: of the message.
        only: the rank of the field; -1 for all.
        level: how deep protobuf takes the message to be nested: a pair counts too.
    """
    frames = stack_words(_FRAMES_WORDS)
    frame = frames
    fields = table + load_i64(message + 8 * tables.FIELDS)
    word = load_i64(message + 8 * tables.HAS_WORDS)
    bits = 0
    if only >= 0:
        word = only >> 6
        bits = 1 << (only & 63)
    while True:
        child = 0  # the record of a message that is to be written next, within the field at ``row``
        left = 0
        row = 0
        if bits == 0:
            word -= 1
            if word >= 0 and (only < 0 or frame != frames):
                bits = load_i64(record + tables.HAS + 8 * word)
                continue
            # The message is whole.
            if frame == frames:
                return out
            out = room_before(state, out, 0)
            if out == 0:
                return NO_MEMORY
            nbytes = used_nbytes(state, out) - load_i64(frame + _USED)
            frame -= _FRAME_NBYTES
            record = load_i64(frame + _RECORD)
            fields = load_i64(frame + _FIELDS)
            word = load_i64(frame + _WORD)
            bits = load_i64(frame + _BITS)
            row = load_i64(frame + _ROW)
            left = load_i64(frame + _LEFT)
            op = load_i64(row + 8 * tables.OP)
            slot = record + load_i64(row + 8 * tables.SLOT)
            level -= 2 if op == tables.MAP else 1
            if op == tables.MAP:
                out = put_varint(out, nbytes)
                pair = load_i64(slot) + left * tables.PAIR_NBYTES
                out = room_before(state, out, _held_nbytes(load_i64(row + 8 * tables.KEY), pair))
                if out == 0:
                    return NO_MEMORY
                out = _put_key(out, row, pair, load_i64(frame + _FRAME_NBYTES + _USED), state)
                if left > 0:
                    left -= 1
                    child = load_i64(pair - tables.PAIR_NBYTES + tables.PAIR_VALUE)
            else:
                if op == tables.MESSAGE or op == tables.MESSAGES:
                    out = put_varint(out, nbytes)
                out = put_tag(out, load_i64(row + 8 * tables.TAG))
                if left > 0:
                    left -= 1
                    child = load_i64(load_i64(slot) + 8 * left)
        else:
            bit = _highest_bit(bits)
            bits ^= 1 << bit
            rank = 64 * word + bit
            row = fields + rank * _FIELD_NBYTES
            case = load_i64(row + 8 * tables.CASE)
            if case != 0 and load_i64(record + case) != rank + 1:
                continue
            op = load_i64(row + 8 * tables.OP)
            slot = record + load_i64(row + 8 * tables.SLOT)
            if op == tables.VARINT or op == tables.FIXED64 or op == tables.FIXED32:
                value = load_i64(slot)
                if value == 0 and load_i64(row + 8 * tables.IMPLICIT) != 0:
                    continue
                out = room_before(state, out, 0)
                if out == 0:
                    return NO_MEMORY
                out = put_tag(_put_number(out, op, value), load_i64(row + 8 * tables.TAG))
            elif op == tables.TEXT:
                nbytes = load_i64(slot + 8)
                if nbytes == 0 and load_i64(row + 8 * tables.IMPLICIT) != 0:
                    continue
                out = room_before(state, out, nbytes)
                if out == 0:
                    return NO_MEMORY
                out = put_varint(put_bytes(out, load_i64(slot), nbytes), nbytes)
                out = put_tag(out, load_i64(row + 8 * tables.TAG))
            elif op == tables.PACKED or op == tables.PLAIN:
                nbytes = load_i64(slot + tables.USED)
                if nbytes == 0:
                    continue
                out = room_before(state, out, nbytes)
                if out == 0:
                    return NO_MEMORY
                out = put_bytes(out, load_i64(slot), nbytes)
                if op == tables.PACKED:
                    out = put_tag(put_varint(out, nbytes), load_i64(row + 8 * tables.TAG))
            elif op == tables.MESSAGE or op == tables.GROUP:
                child = load_i64(slot)
            else:
                left = load_i64(slot + tables.USED)
                if left == 0:
                    continue
                if op == tables.MAP:
                    sort_pairs(slot, load_i64(row + 8 * tables.KEY_ORDER))
                    value_op = load_i64(row + 8 * tables.VALUE)
                    if value_op == tables.MESSAGE:
                        left -= 1
                        pair = load_i64(slot) + left * tables.PAIR_NBYTES
                        child = load_i64(pair + tables.PAIR_VALUE)
                    else:
                        if level >= MAX_DEPTH:
                            return TOO_DEEP
                        key_op = load_i64(row + 8 * tables.KEY)
                        while left > 0:
                            left -= 1
                            pair = load_i64(slot) + left * tables.PAIR_NBYTES
                            value = pair + tables.PAIR_VALUE
                            nbytes = _held_nbytes(key_op, pair) + _held_nbytes(value_op, value)
                            out = room_before(state, out, nbytes)
                            if out == 0:
                                return NO_MEMORY
                            used = used_nbytes(state, out)
                            out = _put_key(_put_held(out, value_op, value), row, pair, used, state)
                else:
                    left -= 1
                    child = load_i64(load_i64(slot) + 8 * left)
        if child == 0:
            continue
        # Into the next message.
        op = load_i64(row + 8 * tables.OP)
        store_i64(frame + _RECORD, record)
        store_i64(frame + _FIELDS, fields)
        store_i64(frame + _WORD, word)
        store_i64(frame + _BITS, bits)
        store_i64(frame + _ROW, row)
        store_i64(frame + _LEFT, left)
        level += 2 if op == tables.MAP else 1
        if level > MAX_DEPTH:
            return TOO_DEEP
        frame += _FRAME_NBYTES
        out = room_before(state, out, 0)
        if out == 0:
            return NO_MEMORY
        if op == tables.GROUP or op == tables.GROUPS:
            out = put_tag(out, load_i64(row + 8 * tables.END_TAG))
        store_i64(frame + _USED, used_nbytes(state, out))
        message = table + load_i64(row + 8 * tables.CHILD)
        record = child
        fields = table + load_i64(message + 8 * tables.FIELDS)
        word = load_i64(message + 8 * tables.HAS_WORDS)
        bits = 0


@inner
def written_nbytes(state: int, out: int) -> int:
    """The size of a message that begins at ``out``, or why there is none."""
    if out < 0:
        return out
    nbytes = used_nbytes(state, out)
    return nbytes if nbytes <= MAX_NBYTES else TOO_LONG


@inner
def scratch_end(state: int) -> int:
    """Where a message ends that is written into the scratch."""
    return load_i64(state + memory.SCRATCH) + load_i64(state + memory.SCRATCH_NBYTES)


@cached
def write(state: int, table: int) -> int:
    """Write the root into the scratch; its size, or why there is none.

    Args:
        table: address of the root's table.
    """
    root = load_i64(state + memory.ROOT)
    return written_nbytes(state, write_part(state, table, table, root, -1, 0, scratch_end(state)))


@cached
def place(state: int, to: int, nbytes: int) -> int:
    """Copy what was written last to where it's wanted."""
    end = load_i64(state + memory.SCRATCH) + load_i64(state + memory.SCRATCH_NBYTES)
    copy(to, end - nbytes, nbytes)
    return 0
