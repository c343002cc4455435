"""What the passes from protobuf's bytes to YaFF's share: a request, an arena, and objects that lie in it.

Objects are what a YaFF buffer is made of. They are made in the order in which a buffer is written, from its
end to its front, so that their positions (bytes from their start to the end of the buffer) are known at
once: one if all dynamic messages are flat, one if all are sparse. Texts and scalar arrays with the same
bytes are one object.
"""

from __future__ import annotations

from yaffjit.kernels.cached import inner
from yaffjit.kernels.memory import load_i64, store_i64
from yaffjit.kernels.write import are_equal, hash_of

# Words of a request, as bytes from its start. The caller sets these ...
TABLE = 8 * 0  # address of a table with live records
MODE = 8 * 1  # WRITE_FLAT to WRITE_SMALLEST
DATA = 8 * 2  # the messages,
DATA_NBYTES = 8 * 3
OFFSETS = 8 * 4  # address of int64: message i is data[offsets[i]:offsets[i + 1]]
OUT = 8 * 5  # what is written,
OUT_NBYTES = 8 * 6  # room for it,
OUT_USED = 8 * 7  # and how much of it is used
OUT_OFFSETS = 8 * 8  # address of int64: where the message of each row begins in OUT, and the last one's end
WORK = 8 * 9  # the arena
WORK_NBYTES = 8 * 10
SHARED = 8 * 11  # three words for each shared object, zeros at first; a power of two of them
SHARED_COUNT = 8 * 12
SEED = 8 * 13  # of hashes
MOST = 8 * 14  # bytes of a buffer; larger ones are PLAIN
COUNTS = 8 * 15  # two words for each number of a message that isn't carried, zeros at first
COUNTS_COUNT = 8 * 16  # a power of two of them
COUNTS_USED = 8 * 17
COUNTS_LEFT_OUT = 8 * 18  # how often the counts had no room for a number
# ... and reads what came of it here,
STATUS = 8 * 19  # DONE to NEEDS_SHARED, for the row that is returned
NEEDED = 8 * 20  # bytes of OUT that are missing; count of SHARED that is enough
# ... and these belong to the row.
TOP = 8 * 21  # of what is used of the arena from below
SLOTS = 8 * 22  # and from above
FLAT_NBYTES = 8 * 23  # written so far, if all dynamic messages are flat
SPARSE_NBYTES = 8 * 24  # likewise if all are sparse
LAST = 8 * 25  # the last object
GENERATION = 8 * 26  # which row the entries of SHARED belong to
MASK = 8 * 27  # of places in SHARED
REQUEST_WORDS = 28

WRITE_FLAT, WRITE_SPARSE, WRITE_AUTO, WRITE_SMALLEST = range(4)
(
    DONE,
    MALFORMED,  # protobuf doesn't accept the message
    PLAIN,  # it's left to protobuf and `encode`, which may raise
    BAD_OFFSETS,
    NEEDS_OUT,
    NEEDS_WORK,
    NEEDS_SHARED,
) = range(7)

# Results of functions that else give an address.
NO_ROOM = -2
REFUSED = -3
ABSENT = -4

# Words of an object, as bytes from its start.
KIND = 0
FLAT_POS = 8
SPARSE_POS = 16
PREVIOUS = 24
A = 32
B = 40
C = 48
SMALL_NBYTES = 56
# Of a message besides.
NEEDS_PRESENCE = 56  # a written scalar equals its default
FLAT_TABLE = 64  # positions of the end of its meta table
SPARSE_TABLE = 72
META = 80  # the table's bytes
META_NBYTES = 88
LARGE_NBYTES = 96

TEXT = 0  # A: address of B bytes, C: their count
VALUES = 1  # A: address of B bytes, C: count of elements
OFFSETS_TO = 2  # A: address of the objects, B: count
STRUCTS = 3  # A: address of lists, B: count, C: message record
STRUCT = 4  # A: list, C: message record
FLAT = 5
SPARSE = 6
DYNAMIC = 7
TABLE_BYTES = 8  # never written by itself; positions 0 while no message has it

_SHARED_ENTRY = 24
_SALT = 0x5851F42D4C957F2D


@inner
def allocate(request: int, nbytes: int) -> int:
    """Bytes of the arena, a multiple of 8; or NO_ROOM."""
    top = load_i64(request + TOP)
    if nbytes > load_i64(request + SLOTS) - top:
        return NO_ROOM
    store_i64(request + TOP, top + nbytes)
    return top


@inner
def link(request: int, made: int, kind: int, flat_nbytes: int, sparse_nbytes: int) -> None:
    """Puts an object before all others; what it takes in either form, and its own positions, are that."""
    flat = load_i64(request + FLAT_NBYTES) + flat_nbytes
    sparse = load_i64(request + SPARSE_NBYTES) + sparse_nbytes
    store_i64(request + FLAT_NBYTES, flat)
    store_i64(request + SPARSE_NBYTES, sparse)
    store_i64(made + KIND, kind)
    store_i64(made + FLAT_POS, flat)
    store_i64(made + SPARSE_POS, sparse)
    store_i64(made + PREVIOUS, load_i64(request + LAST))
    store_i64(request + LAST, made)


@inner
def new_object(request: int, kind: int, nbytes: int, a: int, b: int, c: int) -> int:
    """An object of that many bytes in either form; or NO_ROOM."""
    made = allocate(request, SMALL_NBYTES)
    if made < 0:
        return made
    store_i64(made + A, a)
    store_i64(made + B, b)
    store_i64(made + C, c)
    link(request, made, kind, nbytes, nbytes)
    return made


@inner
def shared(request: int, kind: int, source: int, nbytes: int, count: int) -> int:
    """The text, array of scalars or meta table with these bytes, new if there's none yet; or NO_ROOM.

    Requires: SHARED has room for one more.
    """
    key = hash_of(source, nbytes, load_i64(request + SEED) ^ (8 * count + kind) * _SALT)
    entries = load_i64(request + SHARED)
    generation = load_i64(request + GENERATION)
    mask = load_i64(request + MASK)
    i = key & mask
    while True:
        entry = entries + _SHARED_ENTRY * i
        if load_i64(entry) != generation:
            break
        if load_i64(entry + 8) == key:
            known = load_i64(entry + 16)
            if (
                load_i64(known + KIND) == kind
                and load_i64(known + B) == nbytes
                and load_i64(known + C) == count
                and are_equal(load_i64(known + A), source, nbytes)
            ):
                return known
        i = (i + 1) & mask
    if kind == TABLE_BYTES:
        made = allocate(request, SMALL_NBYTES)
        if made < 0:
            return made
        store_i64(made + KIND, kind)
        store_i64(made + A, source)
        store_i64(made + B, nbytes)
        store_i64(made + C, count)
        store_i64(made + FLAT_POS, 0)
        store_i64(made + SPARSE_POS, 0)
    else:
        made = new_object(request, kind, 4 + nbytes + (1 if kind == TEXT else 0), source, nbytes, count)
        if made < 0:
            return made
    store_i64(entry, generation)
    store_i64(entry + 8, key)
    store_i64(entry + 16, made)
    return made
