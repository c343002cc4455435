"""From the tape of a message to the objects of its YaFF buffer: one loop with a stack of its own.

Messages are gone through as `yaffjit.codec.encode` does, each field by ascending id with all that it refers
to before the message itself. A message's fields that are written become a list: their count, and for each
the address of its live record and its bits, or the address of its object.
"""

from __future__ import annotations

from yaffjit.kernels import transcode_state as state
from yaffjit.kernels import wire_scan as tape
from yaffjit.kernels.cached import inner
from yaffjit.kernels.memory import load_i64, stack_words, store_i64, store_u8, store_u16
from yaffjit.kernels.transcode_fields import (
    COUNT,
    PAIR_KEY,
    PAIR_KEY_NBYTES,
    PAIR_VALUE,
    collect,
    hides,
    is_zero,
    map_pairs,
    scalar_array,
    text_array,
)
from yaffjit.kernels.write import copy as copy_bytes
from yaffjit.kernels.write import zero
from yaffjit.plan import tables as yaff
from yaffjit.plan import wire_tables as tables
from yaffjit.plan.limits import MAX_DEPTH

_LAYOUT = 8 * tables.LAYOUT
_LIMIT = 8 * tables.LIMIT
_LIVE = 8 * tables.LIVE
_LIVE_COUNT = 8 * tables.LIVE_COUNT
_HAS_EXPLICIT = 8 * tables.HAS_EXPLICIT
_SLOTS_NBYTES = 8 * tables.SLOTS_NBYTES
_PLAIN_STRIDE = 8 * tables.PLAIN_STRIDE
_PRESENCE_STRIDE = 8 * tables.PRESENCE_STRIDE
_KIND = 8 * tables.KIND
_ID = 8 * tables.ID
_OFFSET = 8 * tables.OFFSET
_WIDTH = 8 * tables.WIDTH
_DEFAULT = 8 * tables.DEFAULT
_EXPLICIT = 8 * tables.EXPLICIT
_FLOAT_WIDTH = 8 * tables.FLOAT_WIDTH
_CHILD = 8 * tables.CHILD
_CHECKED = 8 * tables.CHECKED
_KEY = 8 * tables.KEY
_LIVE_NBYTES = 8 * tables.LIVE_WORDS

_FRAME_WORDS = 12
_FRAME_NBYTES = 8 * _FRAME_WORDS
_FRAMES_WORDS = _FRAME_WORDS * (MAX_DEPTH + 1)
_SIGN64 = -0x8000000000000000

# What a message is in the midst of.
_NOTHING, _ELEMENTS, _PAIRS = range(3)


@inner
def _list_of(request: int, pairs: int, count: int) -> int:
    """A list with a copy of the pairs; or NO_ROOM."""
    made = state.allocate(request, 8 + 16 * count)
    if made >= 0:
        store_i64(made, count)
        copy_bytes(made + 8, pairs, 16 * count)
    return made


@inner
def _meta_table(request: int, fields: int, count: int) -> tuple[int, int]:
    """The meta table of written fields, one for the same bytes, or NO_ROOM; and the bytes that it covers."""
    last = load_i64(load_i64(fields + 16 * count - 16) + _ID)
    nbytes = last + max(0, last - 31)
    before = load_i64(request + state.TOP)
    table = state.allocate(request, (nbytes + 7) & -8)
    if table < 0:
        return table, 0
    zero(table, nbytes)
    end = table + nbytes
    offset = 2
    for i in range(count):
        live = load_i64(fields + 16 * i)
        id = load_i64(live + _ID)
        if id < 32:
            store_u8(end - id, offset)
        else:
            store_u16(end - 2 * id + 31, offset)
        offset += load_i64(live + _WIDTH)
    made = state.shared(request, state.TABLE_BYTES, table, nbytes, 0)
    if made >= 0 and load_i64(made + state.A) != table:
        store_i64(request + state.TOP, before)
    return made, offset


@inner
def _finish(request: int, message: int, pairs: int, count: int, needs_presence: int) -> int:
    """The object of a message that is all gathered; or NO_ROOM."""
    fields = _list_of(request, pairs, count)
    if fields < 0:
        return fields
    layout = load_i64(message + _LAYOUT)
    if layout == yaff.FIXED:
        return state.new_object(request, state.STRUCT, load_i64(message + _LIMIT), fields, count, message)
    made = state.allocate(request, state.LARGE_NBYTES)
    if made < 0:
        return made
    store_i64(made + state.A, fields)
    store_i64(made + state.B, count)
    store_i64(made + state.C, message)
    store_i64(made + state.NEEDS_PRESENCE, needs_presence)
    kind = state.FLAT
    if layout != yaff.FLAT:
        kind = state.SPARSE if layout == yaff.SPARSE else state.DYNAMIC
    if count == 0:
        state.link(request, made, kind, 2, 2)
        return made
    flat_body = 0
    flat_before = 0
    if kind != state.SPARSE:
        last = load_i64(pairs + 16 * count - 16)
        flat_body = 2 + load_i64(last + _OFFSET) + load_i64(last + _WIDTH)
        stride = load_i64(message + (_PRESENCE_STRIDE if needs_presence else _PLAIN_STRIDE))
        flat_before = (load_i64(last + _ID) * stride + 7) >> 3
    sparse_body = flat_body
    sparse_before = flat_before
    is_sparse = kind == state.SPARSE or (
        kind == state.DYNAMIC and load_i64(request + state.MODE) != state.WRITE_FLAT
    )
    if is_sparse:
        table, sparse_body = _meta_table(request, pairs, count)
        if table < 0:
            return table
        sparse_before = 4
        end = load_i64(table + state.SPARSE_POS)
        if end == 0:
            end = load_i64(request + state.SPARSE_NBYTES) + sparse_body + 4
            sparse_before += load_i64(table + state.B)
            store_i64(table + state.SPARSE_POS, end)
        store_i64(made + state.SPARSE_TABLE, end)
        if kind == state.SPARSE:
            flat_body = sparse_body
            flat_before = 4
            end = load_i64(table + state.FLAT_POS)
            if end == 0:
                end = load_i64(request + state.FLAT_NBYTES) + flat_body + 4
                flat_before += load_i64(table + state.B)
                store_i64(table + state.FLAT_POS, end)
            store_i64(made + state.FLAT_TABLE, end)
        store_i64(made + state.META, load_i64(table + state.A))
        store_i64(made + state.META_NBYTES, load_i64(table + state.B))
    state.link(request, made, kind, flat_body, sparse_body)
    # What lies before the header comes after the message's own position.
    store_i64(request + state.FLAT_NBYTES, load_i64(request + state.FLAT_NBYTES) + flat_before)
    store_i64(request + state.SPARSE_NBYTES, load_i64(request + state.SPARSE_NBYTES) + sparse_before)
    return made


@inner
def _scalar(message: int, live: int, first: int) -> tuple[int, int, int]:
    """The bits of a scalar; whether it's written, or REFUSED; and whether it needs presence bits then."""
    bits = load_i64(first + tape.VALUE) if first != 0 else 0
    float_width = load_i64(live + _FLOAT_WIDTH)
    is_fixed = load_i64(message + _LAYOUT) == yaff.FIXED
    if load_i64(live + _EXPLICIT):
        if first == 0:
            return 0, 0, 0
        default = load_i64(live + _DEFAULT)
        if is_fixed:
            if load_i64(live + _CHECKED) and bits == default:
                return 0, state.REFUSED, 0
            return bits, 1, 0
        return bits, 1, 1 if hides(bits, default, float_width) else 0
    if is_fixed or load_i64(message + _HAS_EXPLICIT) == 0:
        return bits, 1 if bits != 0 else 0, 0
    return bits, 1, 1 if is_zero(bits, float_width) else 0


@inner
def _pair(request: int, entry: int, pair: int, key_kind: int) -> int:
    """The list of a map's pair, with its value unless that's a message; or NO_ROOM."""
    made = state.allocate(request, 40)
    if made < 0:
        return made
    key = load_i64(pair + PAIR_KEY)
    if key_kind == tables.TEXT_KEY:
        nbytes = load_i64(pair + PAIR_KEY_NBYTES)
        key = state.shared(request, state.TEXT, key, nbytes, nbytes)
        if key < 0:
            return key
    elif key_kind == tables.UNSIGNED64_KEY:
        key ^= _SIGN64
    live = load_i64(request + state.TABLE) + load_i64(entry + _LIVE)
    store_i64(made, 2)
    store_i64(made + 8, live)
    store_i64(made + 16, key)
    live += _LIVE_NBYTES
    first = load_i64(pair + PAIR_VALUE)
    value = load_i64(first + tape.VALUE) if first != 0 else 0
    if load_i64(live + _KIND) == yaff.TEXT:
        nbytes = load_i64(first + tape.EXTENT) if first != 0 else 0
        value = state.shared(request, state.TEXT, value, nbytes, nbytes)
        if value < 0:
            return value
    store_i64(made + 24, live)
    store_i64(made + 32, value)
    return made


@inner
def gather(request: int, start: int, end: int) -> int:
    """The object of the root; NO_ROOM, or REFUSED where `encode` has something to say.

    Requires: a request; the tape of an accepted message from ``start`` to ``end``; all of the arena between
    its TOP and its SLOTS is free.
    """
    table = load_i64(request + state.TABLE)
    frames = stack_words(_FRAMES_WORDS)
    depth = 0
    # The message that is gathered.
    message = table
    slots = 0
    field = 0  # index among live fields
    written = 0  # how many pairs there are: they take the place of the slots that are done
    needs_presence = 0
    inlined = 0  # its list is wanted, not an object
    # The array in it.
    busy = _NOTHING
    index = 0
    total = 0
    results = 0  # addresses of objects or lists
    element = 0  # the occurrence, or the address of the pair's address
    # The message that comes next.
    child = table
    chain = 0  # its first part
    alone = 0  # which is all of it
    child_inlined = 0
    while True:
        if slots != 0:
            frame = frames + _FRAME_NBYTES * depth
            store_i64(frame, message)
            store_i64(frame + 8, slots)
            store_i64(frame + 16, field)
            store_i64(frame + 24, written)
            store_i64(frame + 32, needs_presence)
            store_i64(frame + 40, inlined)
            store_i64(frame + 48, busy)
            store_i64(frame + 56, index)
            store_i64(frame + 64, total)
            store_i64(frame + 72, results)
            store_i64(frame + 80, element)
            depth += 1
        message = child
        inlined = child_inlined
        slots_nbytes = load_i64(message + _SLOTS_NBYTES)
        slots = load_i64(request + state.SLOTS) - slots_nbytes
        if slots < load_i64(request + state.TOP):
            return state.NO_ROOM
        store_i64(request + state.SLOTS, slots)
        zero(slots, slots_nbytes)
        if depth == 0:
            collect(slots, start, end)
        while chain != 0:
            collect(slots, chain + tape.ENTRY_NBYTES, load_i64(chain + tape.EXTENT))
            chain = 0 if alone else load_i64(chain + tape.NEXT)
        field = 0
        written = 0
        needs_presence = 0
        busy = _NOTHING
        live = table + load_i64(message + _LIVE)
        live_end = live + _LIVE_NBYTES * load_i64(message + _LIVE_COUNT)
        while True:
            value = 0
            if busy == _NOTHING:
                if live == live_end:
                    if inlined:
                        done = _list_of(request, slots, written)
                    else:
                        done = _finish(request, message, slots, written, needs_presence)
                    if done < 0 or depth == 0:
                        return done
                    store_i64(request + state.SLOTS, slots + load_i64(message + _SLOTS_NBYTES))
                    depth -= 1
                    frame = frames + _FRAME_NBYTES * depth
                    message = load_i64(frame)
                    slots = load_i64(frame + 8)
                    field = load_i64(frame + 16)
                    written = load_i64(frame + 24)
                    needs_presence = load_i64(frame + 32)
                    inlined = load_i64(frame + 40)
                    busy = load_i64(frame + 48)
                    index = load_i64(frame + 56)
                    total = load_i64(frame + 64)
                    results = load_i64(frame + 72)
                    element = load_i64(frame + 80)
                    live = table + load_i64(message + _LIVE) + _LIVE_NBYTES * field
                    live_end = table + load_i64(message + _LIVE)
                    live_end += _LIVE_NBYTES * load_i64(message + _LIVE_COUNT)
                    if busy == _NOTHING:
                        value = done
                    else:
                        if busy == _ELEMENTS:
                            store_i64(results + 8 * index, done)
                        else:
                            store_i64(load_i64(results + 8 * index) + 32, done)
                        index += 1
                        continue
                else:
                    slot = slots + tables.SLOT_NBYTES * field
                    first = load_i64(slot)
                    kind = load_i64(live + _KIND)
                    if kind == yaff.VALUE:
                        value, is_written, hidden = _scalar(message, live, first)
                        if is_written == 0:
                            value = state.ABSENT
                        elif is_written < 0:
                            return is_written
                        needs_presence |= hidden
                        if is_written != 0:
                            store_i64(slots + 16 * written, live)
                            store_i64(slots + 16 * written + 8, value)
                            written += 1
                        field += 1
                        live += _LIVE_NBYTES
                        continue
                    if first == 0:
                        field += 1
                        live += _LIVE_NBYTES
                        continue
                    if kind == yaff.TEXT:
                        nbytes = load_i64(first + tape.EXTENT)
                        if nbytes == 0 and load_i64(live + _EXPLICIT) == 0:
                            value = state.ABSENT
                        else:
                            source = load_i64(first + tape.VALUE)
                            value = state.shared(request, state.TEXT, source, nbytes, nbytes)
                    elif kind == yaff.SINGLE:
                        child = table + load_i64(live + _CHILD)
                        chain = first
                        alone = 0
                        child_inlined = 0
                        break
                    elif kind == yaff.VALUES:
                        value = scalar_array(request, live, first)
                    elif kind == yaff.TEXTS:
                        value = text_array(request, first, load_i64(slot + COUNT))
                    else:
                        index = 0
                        total = load_i64(slot + COUNT)
                        if kind == tables.MAP:
                            busy = _PAIRS
                            element, total = map_pairs(request, live, first, total)
                            if element < 0:
                                return element
                        else:
                            busy = _ELEMENTS
                            element = first
                        results = state.allocate(request, 8 * total)
                        if results < 0:
                            return results
                        continue
            elif index < total:
                child = table + load_i64(live + _CHILD)
                if busy == _ELEMENTS:
                    chain = element
                    alone = 1
                    child_inlined = 1 if load_i64(live + _KIND) == yaff.INLINED else 0
                    element = load_i64(element + tape.NEXT)
                    break
                pair = load_i64(element)
                element += 8
                made = _pair(request, child, pair, load_i64(live + _KEY))
                if made < 0:
                    return made
                store_i64(results + 8 * index, made)
                value_live = table + load_i64(child + _LIVE) + _LIVE_NBYTES
                if load_i64(value_live + _KIND) == yaff.SINGLE:
                    child = table + load_i64(value_live + _CHILD)
                    chain = load_i64(pair + PAIR_VALUE)
                    alone = 0
                    child_inlined = 0
                    break
                index += 1
                continue
            elif load_i64(live + _KIND) == yaff.MESSAGES:
                value = state.new_object(request, state.OFFSETS_TO, 4 + 4 * total, results, total, 0)
                busy = _NOTHING
            else:
                child = table + load_i64(live + _CHILD)
                nbytes = 4 + load_i64(child + _LIMIT) * total
                value = state.new_object(request, state.STRUCTS, nbytes, results, total, child)
                busy = _NOTHING
            if value == state.NO_ROOM:
                return value
            if value != state.ABSENT:
                store_i64(slots + 16 * written, live)
                store_i64(slots + 16 * written + 8, value)
                written += 1
            field += 1
            live += _LIVE_NBYTES
