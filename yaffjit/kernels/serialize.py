"""YaFF bytes to protobuf bytes, many messages at once, as machine code that works for all schemas.

A message is written from its end into a scratch, its fields by descending number, so that the size of a
message within it is known when it's needed. The bytes are those of protobuf's own serializer, but for the
order of maps: theirs is by ascending key. What needs more than one look at it is left to protobuf: two
members of one oneof, maps whose keys don't ascend, numbers that a closed enum doesn't have.
"""

from __future__ import annotations

from typing import Any

from numba import int64

from yaffjit.kernels import transcode_state as state
from yaffjit.kernels.cached import cached, compiled, inner, is_kept
from yaffjit.kernels.memory import (
    load_i32,
    load_i64,
    load_u8,
    load_u16,
    load_u32,
    stack_words,
    store_i64,
    store_u8,
    store_u32,
)
from yaffjit.kernels.wire import is_member
from yaffjit.kernels.write import compare
from yaffjit.kernels.write import copy as copy_bytes
from yaffjit.plan import serialize_tables as tables
from yaffjit.plan import tables as yaff
from yaffjit.plan import wire_tables
from yaffjit.plan.limits import MAX_DEPTH

_LAYOUT = 8 * tables.LAYOUT
_FIELDS = 8 * tables.FIELDS
_FIELD_COUNT = 8 * tables.FIELD_COUNT
_KIND = 8 * tables.KIND
_TAG = 8 * tables.TAG
_END_TAG = 8 * tables.END_TAG
_ID = 8 * tables.ID
_OFFSET = 8 * tables.OFFSET
_WIDTH = 8 * tables.WIDTH
_DEFAULT = 8 * tables.DEFAULT
_EXPLICIT = 8 * tables.EXPLICIT
_ALWAYS = 8 * tables.ALWAYS
_ENCODING = 8 * tables.ENCODING
_ELEMENT_WIDTH = 8 * tables.ELEMENT_WIDTH
_CHILD = 8 * tables.CHILD
_PACKED = 8 * tables.PACKED
_ENUM = 8 * tables.ENUM
_ONEOF = 8 * tables.ONEOF
_HOLES = 8 * tables.HOLES
_HOLE_COUNT = 8 * tables.HOLE_COUNT
_KEY = 8 * tables.KEY
_FIELD_NBYTES = 8 * tables.FIELD_WORDS

_FRAME_WORDS = 10
_FRAME_NBYTES = 8 * _FRAME_WORDS
_FRAMES_WORDS = _FRAME_WORDS * (MAX_DEPTH + 2)
_MASK32 = 0xFFFFFFFF
_SIGN32 = 0x80000000
_SIGN64 = -0x8000000000000000
_AFTER_SHIFT = 0x01FFFFFFFFFFFFFF
# Bytes that a tag and a value, or a size, take at most.
_ROOM = 24

# Results that aren't an address.
NO_ROOM = -1
IRREGULAR = -2


@inner
def _put_varint(out: int, value: int) -> int:
    """Writes a varint before ``out``; where it begins."""
    size = 1
    rest = (value >> 7) & _AFTER_SHIFT
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
def _put_value(out: int, encoding: int, bits: int, width: int) -> int:
    """Writes a scalar before ``out``; where it begins."""
    if encoding == tables.RAW:
        out -= width
        if width == 4:
            store_u32(out, bits)
        else:
            store_i64(out, bits)
        return out
    if encoding == tables.SIGNED32:
        bits = (bits ^ _SIGN32) - _SIGN32
    elif encoding == tables.ZIGZAG32:
        bits = ((bits << 1) ^ -(bits >> 31)) & _MASK32
    elif encoding == tables.ZIGZAG64:
        bits = (bits << 1) ^ (bits >> 63)
    elif encoding == tables.BOOL:
        bits = 1 if bits != 0 else 0
    return _put_varint(out, bits)


@inner
def _load(pos: int, width: int) -> int:
    if width == 4:
        return load_u32(pos)
    return load_i64(pos) if width == 8 else load_u8(pos)


@inner
def _put_values(table: int, record: int, pos: int, out: int, least: int) -> int:
    """Writes an array of scalars before ``out``; where it begins, or NO_ROOM or IRREGULAR."""
    count = load_u32(pos)
    width = load_i64(record + _ELEMENT_WIDTH)
    encoding = load_i64(record + _ENCODING)
    tag = load_i64(record + _TAG)
    packed = load_i64(record + _PACKED)
    enum = load_i64(record + _ENUM)
    pos += 4
    if count == 0:
        return out
    end = out
    if packed and encoding == tables.RAW:
        if out - least < count * width + _ROOM:
            return NO_ROOM
        out -= count * width
        copy_bytes(out, pos, count * width)
    else:
        if out - least < _ROOM * (count + 1):
            return NO_ROOM
        for i in range(count - 1, -1, -1):
            bits = _load(pos + i * width, width)
            if enum != 0 and not is_member(table + enum, bits):
                return IRREGULAR
            out = _put_value(out, encoding, bits, width)
            if not packed:
                out = _put_varint(out, tag)
        if not packed:
            return out
    return _put_varint(_put_varint(out, end - out), tag)


@inner
def _put_text(pos: int, tag: int, out: int, least: int) -> int:
    """Writes a text before ``out``; where it begins, or NO_ROOM."""
    nbytes = load_u32(pos)
    if out - least < nbytes + _ROOM:
        return NO_ROOM
    out -= nbytes
    copy_bytes(out, pos + 4, nbytes)
    return _put_varint(_put_varint(out, nbytes), tag)


@inner
def _moved(table: int, record: int, at: int, header: int) -> int:
    """Bytes that slots of an older schema take before a field's own; -1 where nobody can tell."""
    count = load_i64(record + _HOLE_COUNT)
    if count == 0:
        return 0
    if header & 2 == 0:
        return -1
    holes = table + load_i64(record + _HOLES)
    stride = 3 if header & 1 else 2
    total = 0
    for i in range(count):
        bit = stride * load_i64(holes + 8 * i) - 2
        low = load_u8(at - 1 - (bit >> 3)) >> (bit & 7) & 1
        bit += 1
        code = low + 2 * (load_u8(at - 1 - (bit >> 3)) >> (bit & 7) & 1)
        total += code if code < 2 else 4 * (code - 1)
    return total


@inner
def _slot(table: int, record: int, fixed: bool, at: int, header: int) -> int:
    """The address of a field's slot; 0 where the message has none, IRREGULAR where nobody can tell."""
    if fixed:
        return at + load_i64(record + _OFFSET)
    id = load_i64(record + _ID)
    if id >= (header & 0x7FFF) >> 2:
        return 0
    if header & 0x8000:
        moved = _moved(table, record, at, header)
        return at + 2 + load_i64(record + _OFFSET) + moved if moved >= 0 else IRREGULAR
    end = at + load_i32(at - 4)
    entry = load_u8(end - id) if id < 32 else load_u16(end - 2 * id + 31)
    return at + entry if entry != 0 else 0


@inner
def _is_set(record: int, fixed: bool, at: int, header: int, bits: int) -> bool:
    """Whether a scalar counts, by its slot or its value."""
    if load_i64(record + _ALWAYS):
        return True
    if load_i64(record + _EXPLICIT) == 0:
        return bits != 0
    if fixed or header & 0x8001 == 0x8000:
        return bits != 0
    if header & 0x8000 == 0:
        return True
    bit = (3 if header & 2 else 1) * (load_i64(record + _ID) - 1)
    return load_u8(at - 1 - (bit >> 3)) >> (bit & 7) & 1 != 0


@inner
def _key(pair: int, key: int, kind: int) -> tuple[int, int]:
    """What orders as the key of a pair does; or the address of its text, and its bytes."""
    slot = pair + load_i64(key + _OFFSET)
    if kind == wire_tables.TEXT_KEY:
        offset = load_u32(slot)
        if offset == 0:
            return 0, 0
        return pair + offset + 4, load_u32(pair + offset)
    bits = _load(slot, load_i64(key + _WIDTH))
    if kind == wire_tables.SIGNED32_KEY:
        return (bits ^ _SIGN32) - _SIGN32, 0
    if kind == wire_tables.UNSIGNED64_KEY:
        return bits ^ _SIGN64, 0
    if load_i64(key + _WIDTH) == 1:
        return 1 if bits != 0 else 0, 0
    return bits, 0


@inner
def _ascends(table: int, record: int, first: int, count: int) -> bool:
    """Whether the keys of a map's pairs ascend strictly."""
    entry = table + load_i64(record + _CHILD)
    key = table + load_i64(entry + _FIELDS) + _FIELD_NBYTES  # behind the value's
    kind = load_i64(record + _KEY)
    width = load_i64(record + _ELEMENT_WIDTH)
    a, a_nbytes = _key(first, key, kind)
    for i in range(1, count):
        b, b_nbytes = _key(first + i * width, key, kind)
        if kind == wire_tables.TEXT_KEY:
            if compare(a, a_nbytes, b, b_nbytes) >= 0:
                return False
        elif a >= b:
            return False
        a, a_nbytes = b, b_nbytes
    return True


@inner
def _write(table: int, root: int, scratch: int, end: int) -> int:
    """Writes a message before ``end``; where it begins, or NO_ROOM or IRREGULAR.

    Requires: the address of a table, and of the header of a well-formed message; writable bytes from
    ``scratch`` to ``end``.
    Source: `yaffjit.codec.wire`, and google.protobuf's serializer.
    """
    frames = stack_words(_FRAMES_WORDS)
    depth = 0
    out = end
    least = scratch
    # The message that is written.
    message = table
    at = root
    field = 0  # how many fields are done
    stop = end  # where it ends
    tag = 0  # what comes before it,
    end_tag = 0  # and after it
    oneofs = 0  # whose members were met
    left = 0  # elements of an array in it
    first = 0  # where they, or their offsets, are
    # The message that comes next.
    child = table
    child_at = root
    entering = True
    while True:
        if entering:
            message = child
            at = child_at
            field = 0
            oneofs = 0
            left = 0
            stop = out
            entering = False
        if out - least < _ROOM:
            return NO_ROOM
        fixed = load_i64(message + _LAYOUT) == yaff.FIXED
        header = 0 if fixed else load_u16(at)
        record = table + load_i64(message + _FIELDS) + _FIELD_NBYTES * field
        if left == 0:
            if field == load_i64(message + _FIELD_COUNT):
                if depth == 0:
                    return out
                if end_tag == 0:
                    out = _put_varint(out, stop - out)
                out = _put_varint(out, tag)
                depth -= 1
                frame = frames + _FRAME_NBYTES * depth
                message = load_i64(frame)
                at = load_i64(frame + 8)
                field = load_i64(frame + 16)
                stop = load_i64(frame + 24)
                tag = load_i64(frame + 32)
                end_tag = load_i64(frame + 40)
                oneofs = load_i64(frame + 48)
                left = load_i64(frame + 56)
                first = load_i64(frame + 64)
                continue
            slot = _slot(table, record, fixed, at, header)
            if slot == IRREGULAR:
                return IRREGULAR
            if slot == 0:
                field += 1
                continue
            kind = load_i64(record + _KIND)
            if kind == yaff.VALUE:
                width = load_i64(record + _WIDTH)
                bits = _load(slot, width)
                is_flat = fixed or header & 0x8000 != 0
                # Presence goes by the slot where it is explicit, else by the value, whose default is 0.
                if _is_set(record, fixed, at, header, bits):
                    if is_flat:
                        bits ^= load_i64(record + _DEFAULT)
                    if oneofs & load_i64(record + _ONEOF):
                        return IRREGULAR
                    oneofs |= load_i64(record + _ONEOF)
                    enum = load_i64(record + _ENUM)
                    if enum != 0 and not is_member(table + enum, bits):
                        return IRREGULAR
                    out = _put_value(out, load_i64(record + _ENCODING), bits, width)
                    out = _put_varint(out, load_i64(record + _TAG))
                field += 1
                continue
            offset = load_u32(slot)
            if offset == 0:
                if load_i64(record + _ALWAYS):
                    end_of_group = load_i64(record + _END_TAG)
                    out = _put_varint(out, end_of_group)
                    out = _put_varint(out, load_i64(record + _TAG))
                field += 1
                continue
            if oneofs & load_i64(record + _ONEOF):
                return IRREGULAR
            oneofs |= load_i64(record + _ONEOF)
            pos = at + offset
            if kind == yaff.TEXT:
                if load_u32(pos) != 0 or load_i64(record + _EXPLICIT) or load_i64(record + _ALWAYS):
                    out = _put_text(pos, load_i64(record + _TAG), out, least)
                field += 1
            elif kind == yaff.VALUES:
                out = _put_values(table, record, pos, out, least)
                field += 1
            elif kind == yaff.TEXTS:
                for i in range(load_u32(pos) - 1, -1, -1):
                    text = pos + 4 + load_u32(pos + 4 + 4 * i)
                    out = _put_text(text, load_i64(record + _TAG), out, least)
                    if out < 0:
                        return out
                field += 1
            elif kind == yaff.SINGLE:
                child_at = pos
                entering = True
                field += 1
            else:
                left = load_u32(pos)
                first = pos + 4
                if kind == tables.MAP and left > 1 and not _ascends(table, record, first, left):
                    return IRREGULAR
                if left == 0:
                    field += 1
            if out < 0:
                return out
        else:
            left -= 1
            if load_i64(record + _KIND) == yaff.MESSAGES:
                child_at = first + load_u32(first + 4 * left)
            else:
                child_at = first + left * load_i64(record + _ELEMENT_WIDTH)
            entering = True
            if left == 0:
                field += 1
        if entering:
            if depth == MAX_DEPTH:
                return IRREGULAR
            frame = frames + _FRAME_NBYTES * depth
            store_i64(frame, message)
            store_i64(frame + 8, at)
            store_i64(frame + 16, field)
            store_i64(frame + 24, stop)
            store_i64(frame + 32, tag)
            store_i64(frame + 40, end_tag)
            store_i64(frame + 48, oneofs)
            store_i64(frame + 56, left)
            store_i64(frame + 64, first)
            depth += 1
            child = table + load_i64(record + _CHILD)
            tag = load_i64(record + _TAG)
            end_tag = load_i64(record + _END_TAG)
            if end_tag != 0:
                out = _put_varint(out, end_tag)


def _serialize_rows(request: int, first: int, last: int) -> int:
    """Writes the rows ``first`` to ``last - 1`` as protobuf; the row that isn't done, else ``last``.

    Requires: the address of a request as `transcode_state` has it, with a table of `plan.serialize_tables`;
    offsets of ``last`` rows, all of them well-formed messages; and room in OUT_OFFSETS for one more than
    these.
    """
    offsets = load_i64(request + state.OFFSETS)
    out_offsets = load_i64(request + state.OUT_OFFSETS)
    data = load_i64(request + state.DATA)
    table = load_i64(request + state.TABLE)
    scratch = load_i64(request + state.WORK)
    end = scratch + load_i64(request + state.WORK_NBYTES)
    for row in range(first, last):
        buffer = data + load_i64(offsets + 8 * row)
        begin = _write(table, buffer + load_u32(buffer), scratch, end)
        status = state.DONE
        if begin < 0:
            status = state.NEEDS_WORK if begin == NO_ROOM else state.PLAIN
        else:
            size = end - begin
            used = load_i64(request + state.OUT_USED)
            missing = used + size - load_i64(request + state.OUT_NBYTES)
            if missing > 0:
                status = state.NEEDS_OUT
                store_i64(request + state.NEEDED, missing)
            else:
                copy_bytes(load_i64(request + state.OUT) + used, begin, size)
                store_i64(request + state.OUT_USED, used + size)
                store_i64(out_offsets + 8 * row + 8, used + size)
        if status != state.DONE:
            store_i64(request + state.STATUS, status)
            return row
    store_i64(request + state.STATUS, state.DONE)
    return last


_SIGNATURE = (int64, int64, int64)
_rows = cached(_serialize_rows, nogil=True)


class Kernel:
    """The compiled function; compiling it takes some seconds, loading it from disk a tenth."""

    def __init__(self) -> None:
        self.run: Any = compiled(_rows, _SIGNATURE)

    @staticmethod
    def is_kept() -> bool:
        """Whether it's in numba's cache on disk."""
        return is_kept(_rows, _SIGNATURE)
