"""Fields of one message on the way from a tape to YaFF: which occurrences count, and in what order."""

from __future__ import annotations

from yaffjit.kernels import transcode_state as state
from yaffjit.kernels import wire_scan as tape
from yaffjit.kernels.cached import inner
from yaffjit.kernels.memory import load_i64, load_u8, load_u32, store_i64, store_u8, store_u32
from yaffjit.kernels.wire import is_member, is_text, quieted, read_varint, scalar_of
from yaffjit.kernels.write import compare, float32_of, float64_of
from yaffjit.kernels.write import copy as copy_bytes
from yaffjit.plan import wire_tables as tables

# Words of a slot.
FIRST = 0  # occurrence: the last one of what isn't chained, the first of a chain; 0 if there's none
_LAST = 8
COUNT = 16  # of the chain

# Words of a pair of a map.
PAIR_KEY = 0  # a number that orders as the keys do; the address of a text
PAIR_KEY_NBYTES = 8
PAIR_VALUE = 16  # as FIRST
PAIR_NBYTES = 32

_SLOT = 8 * tables.SLOT
_CASE = 8 * tables.CASE
_SHAPE = 8 * tables.SHAPE
_CHAINED_CONTENT = tables.HAS_CONTENT | tables.IS_CHAINED
_DEFAULT = 8 * tables.DEFAULT
_FLOAT_WIDTH = 8 * tables.FLOAT_WIDTH
_ELEMENT_WIDTH = 8 * tables.ELEMENT_WIDTH
_OP = 8 * tables.OP
_LIVE_ENUM = 8 * tables.LIVE_ENUM
_KEY = 8 * tables.KEY
_KEY_CHECKED = 8 * tables.KEY_CHECKED

_EPSILON32 = 2.0**-23
_EPSILON64 = 2.0**-52
_SIGN64 = -0x8000000000000000
_SIGN32 = 0x80000000
_MASK32 = 0xFFFFFFFF


@inner
def collect(slots: int, entry: int, end: int) -> None:
    """Put the fields of a part of a message into its slots, behind what is there already.

    Requires: the tape from ``entry`` to ``end``; slots as the message's record says.
    """
    while entry < end:
        record = load_i64(entry)
        slot = load_i64(record + _SLOT)
        case = load_i64(record + _CASE)
        shape = load_i64(record + _SHAPE)
        following = load_i64(entry + tape.EXTENT) if shape & 1 else entry + tape.ENTRY_NBYTES
        if case >= 0:
            # The word holds the slot of the member that is set, plus 1.
            held = load_i64(slots + case)
            if held != slot + 1:
                if held != 0:
                    store_i64(slots + held - 1, 0)
                store_i64(slots + case, slot + 1)
        if slot >= 0:
            slot += slots
            if shape & 2:
                store_i64(entry + tape.NEXT, 0)
                if load_i64(slot) == 0:
                    store_i64(slot, entry)
                    store_i64(slot + COUNT, 1)
                else:
                    store_i64(load_i64(slot + _LAST) + tape.NEXT, entry)
                    store_i64(slot + COUNT, load_i64(slot + COUNT) + 1)
                store_i64(slot + _LAST, entry)
            else:
                store_i64(slot, entry)
        entry = following


@inner
def is_zero(bits: int, float_width: int) -> bool:
    """Whether a value is 0; -0.0 is."""
    if float_width == 0:
        return bits == 0
    return bits & 0x7FFFFFFF == 0 if float_width == 4 else bits & 0x7FFFFFFFFFFFFFFF == 0


@inner
def hides(bits: int, default: int, float_width: int) -> bool:
    """Whether only a presence bit can show that an explicit scalar is there."""
    if default == 0:
        return is_zero(bits, float_width)
    if float_width == 0 or bits == default:
        return bits == default
    # The reference calls neighbours equal, and without presence bits reads 0 and -0.0 as absent.
    if float_width == 4:
        value = float32_of(bits)
        number = float32_of(default)
        epsilon = _EPSILON32
        if bits ^ default == _SIGN32:
            return True
    else:
        value = float64_of(bits)
        number = float64_of(default)
        epsilon = _EPSILON64
        if bits ^ default == _SIGN64:
            return True
    return abs(value - number) <= min(abs(value), abs(number)) * epsilon


@inner
def _put(to: int, bits: int, width: int) -> None:
    if width == 8:
        store_i64(to, bits)
    elif width == 4:
        store_u32(to, bits)
    else:
        store_u8(to, bits)


@inner
def _unpack(to: int, pos: int, nbytes: int, op: int, width: int, enum: int) -> int:
    """Writes packed values, without what a closed enum doesn't have; the place behind them.

    Requires: values that were checked, and room for them.
    """
    end = pos + nbytes
    if op == tables.FLOAT:
        for i in range(0, nbytes, 4):
            store_u32(to + i, quieted(load_u32(pos + i)))
        return to + nbytes
    if op >= tables.FIXED32:
        copy_bytes(to, pos, nbytes)
        return to + nbytes
    while pos < end:
        value = load_u8(pos)
        if value < 128:
            pos += 1
        else:
            value, pos = read_varint(pos, end)
        value = scalar_of(op, value)
        if op != tables.CLOSED_ENUM or is_member(enum, value):
            _put(to, value, width)
            to += width
    return to


@inner
def _are_quiet(pos: int, count: int) -> bool:
    """Whether none of the floats is a signalling NaN."""
    loud = 0
    for i in range(count):
        bits = load_u32(pos + 4 * i)
        loud |= bits ^ quieted(bits)
    return loud == 0


@inner
def scalar_array(request: int, live: int, first: int) -> int:
    """The array of all values of a chain; ABSENT if there are none, or NO_ROOM.

    Requires: as `state.shared`.
    """
    count = 0
    entry = first
    while entry != 0:
        extent = load_i64(entry + tape.EXTENT)
        count += 1 if extent == tape.ONE else extent >> 32
        entry = load_i64(entry + tape.NEXT)
    if count == 0:
        return state.ABSENT
    op = load_i64(live + _OP)
    width = load_i64(live + _ELEMENT_WIDTH)
    extent = load_i64(first + tape.EXTENT)
    is_whole = op >= tables.FIXED32 and extent != tape.ONE and load_i64(first + tape.NEXT) == 0
    if is_whole and (op != tables.FLOAT or _are_quiet(load_i64(first + tape.VALUE), count)):
        return state.shared(request, state.VALUES, load_i64(first + tape.VALUE), extent & _MASK32, count)
    before = load_i64(request + state.TOP)
    values = state.allocate(request, (count * width + 7) & -8)
    if values < 0:
        return values
    enum = load_i64(request + state.TABLE) + load_i64(live + _LIVE_ENUM)
    to = values
    entry = first
    while entry != 0:
        value = load_i64(entry + tape.VALUE)
        extent = load_i64(entry + tape.EXTENT)
        if extent == tape.ONE:
            _put(to, value, width)
            to += width
        else:
            to = _unpack(to, value, extent & _MASK32, op, width, enum)
        entry = load_i64(entry + tape.NEXT)
    last = load_i64(request + state.LAST)
    made = state.shared(request, state.VALUES, values, count * width, count)
    if load_i64(request + state.LAST) == last:
        store_i64(request + state.TOP, before)  # nothing was made
    return made


@inner
def text_array(request: int, first: int, count: int) -> int:
    """The array of all texts of a chain; or NO_ROOM.

    Requires: as `state.shared`.
    """
    objects = state.allocate(request, 8 * count)
    if objects < 0:
        return objects
    entry = first
    for i in range(count):
        nbytes = load_i64(entry + tape.EXTENT)
        made = state.shared(request, state.TEXT, load_i64(entry + tape.VALUE), nbytes, nbytes)
        if made < 0:
            return made
        store_i64(objects + 8 * i, made)
        entry = load_i64(entry + tape.NEXT)
    return state.new_object(request, state.OFFSETS_TO, 4 + 4 * count, objects, count, 0)


@inner
def _precedes(a: int, b: int, key_kind: int) -> bool:
    """Whether the key of pair ``a`` is less than that of ``b``."""
    if key_kind == tables.TEXT_KEY:
        order = compare(
            load_i64(a + PAIR_KEY),
            load_i64(a + PAIR_KEY_NBYTES),
            load_i64(b + PAIR_KEY),
            load_i64(b + PAIR_KEY_NBYTES),
        )
        return order < 0
    return load_i64(a + PAIR_KEY) < load_i64(b + PAIR_KEY)


@inner
def _sort(pairs: int, spare: int, count: int, key_kind: int) -> int:
    """Sorts addresses of pairs by key, equal ones as they come; where the sorted ones are.

    Requires: ``count`` words at ``pairs`` and at ``spare``.
    """
    width = 1
    while width < count:
        out = spare
        for start in range(0, count, 2 * width):
            left = pairs + 8 * start
            middle = pairs + 8 * min(start + width, count)
            right = middle
            end = pairs + 8 * min(start + 2 * width, count)
            while left < middle or right < end:
                if left == middle or (right < end and _precedes(load_i64(right), load_i64(left), key_kind)):
                    store_i64(out, load_i64(right))
                    right += 8
                else:
                    store_i64(out, load_i64(left))
                    left += 8
                out += 8
        pairs, spare = spare, pairs
        width *= 2
    return pairs


@inner
def _read_pair(pair: int, entry: int, key_kind: int) -> None:
    """Fills a pair from the tape of its entry."""
    store_i64(pair + PAIR_KEY, 0)
    store_i64(pair + PAIR_KEY_NBYTES, 0)
    # The slots of an entry are those of its key and of its value, and no oneof.
    store_i64(pair + PAIR_VALUE, 0)
    end = load_i64(entry + tape.EXTENT)
    entry += tape.ENTRY_NBYTES
    last = 0
    key = 0
    while entry < end:
        record = load_i64(entry)
        following = entry + tape.ENTRY_NBYTES
        if load_i64(record + _SLOT) == 0:
            key = entry
        else:
            if load_i64(record + _SHAPE) == 0:
                store_i64(pair + PAIR_VALUE, entry)
            else:
                following = load_i64(entry + tape.EXTENT)
                store_i64(entry + tape.NEXT, 0)
                if last == 0:
                    store_i64(pair + PAIR_VALUE, entry)
                else:
                    store_i64(last + tape.NEXT, entry)
                last = entry
        entry = following
    if key != 0:
        value = load_i64(key + tape.VALUE)
        if key_kind == tables.TEXT_KEY:
            store_i64(pair + PAIR_KEY_NBYTES, load_i64(key + tape.EXTENT))
        elif key_kind == tables.SIGNED32_KEY:
            value = ((value & _MASK32) ^ _SIGN32) - _SIGN32
        elif key_kind == tables.UNSIGNED64_KEY:
            value ^= _SIGN64
        store_i64(pair + PAIR_KEY, value)
    elif key_kind == tables.UNSIGNED64_KEY:
        store_i64(pair + PAIR_KEY, _SIGN64)


@inner
def map_pairs(request: int, live: int, first: int, count: int) -> tuple[int, int]:
    """Addresses of the pairs of a map by ascending key, the last one of each key; and how many there are.

    The address is NO_ROOM, or REFUSED for a key that isn't UTF-8.
    """
    key_kind = load_i64(live + _KEY)
    pairs = state.allocate(request, (PAIR_NBYTES + 16) * count)
    if pairs < 0:
        return pairs, 0
    addresses = pairs + PAIR_NBYTES * count
    entry = first
    ascending = True
    for i in range(count):
        pair = pairs + PAIR_NBYTES * i
        _read_pair(pair, entry, key_kind)
        store_i64(addresses + 8 * i, pair)
        if load_i64(live + _KEY_CHECKED) and not is_text(
            load_i64(pair + PAIR_KEY), load_i64(pair + PAIR_KEY_NBYTES), load_i64(request + state.DATA)
        ):
            return state.REFUSED, 0
        if i > 0 and not _precedes(pair - PAIR_NBYTES, pair, key_kind):
            ascending = False
        entry = load_i64(entry + tape.NEXT)
    if ascending:
        return addresses, count
    addresses = _sort(addresses, addresses + 8 * count, count, key_kind)
    kept = 0
    for i in range(count):
        pair = load_i64(addresses + 8 * i)
        if kept > 0 and not _precedes(load_i64(addresses + 8 * kept - 8), pair, key_kind):
            kept -= 1
        store_i64(addresses + 8 * kept, pair)
        kept += 1
    return addresses, kept
