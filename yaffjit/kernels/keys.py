"""Tables from keys to rows: open addressing, made once, read in place.

A table is of buckets, four slots each, a line of the cache. A slot is two int64. Of integers: the key and its
row. Of text: 32 bits of its hash below its row, and where the text stands among the table's texts: a u32, how
many bytes it has, and these. A slot whose second word is `EMPTY` has no key. A bucket's slots
are filled in order. A key is in the first bucket that had room from ``scaled(hash, buckets)`` on, within
`PROBES` buckets, or nowhere.

Look-ups go through a set of tables, each of one part, in an array of int64: `SET_WORDS` and `PART_WORDS` say
what stands where. What a table holds is never trusted: a row that its part hasn't, a text outside of the
texts, a search without an end are all found, whatever else is wrong.
"""

from __future__ import annotations

import numpy as np

from yaffjit.kernels.cached import cached, inner
from yaffjit.kernels.hashing import hash_bytes, hash_integer, same_bytes, scaled
from yaffjit.kernels.memory import (
    data_address,
    load_i64,
    load_u8,
    load_u32,
    store_i64,
    store_u8,
    store_u32,
)
from yaffjit.kernels.prefetch import prefetch

SLOT_NBYTES = 16
SLOTS = 4  # of a bucket
BUCKET_NBYTES = SLOT_NBYTES * SLOTS
EMPTY = -1
PROBES = 256
# Keys between the one whose bucket is fetched and the one that is looked for meanwhile; a power of two.
# Measured: 1.8 times a gather instead of 2.4, where the keys of a block were fetched before their search.
AHEAD = 32
TAG = 0xFFFFFFFF
ROW_SHIFT = 32

# What a look-up gives but rows.
ABSENT = -1
DAMAGED = -2  # and less: the table of part DAMAGED - result

# A set: how many parts, what kind of keys, rows of all parts.
SET_WORDS = 3
KIND_AT = 8
ROWS_AT = 16
SIGNED, UNSIGNED, TEXT = 0, 1, 2
# A part: the address and number of its buckets, its hashes' seed, its first row and number of rows, and the
# address and bytes of its texts.
PART_WORDS = 7
BUCKETS_AT, SEED_AT, FIRST_AT, COUNT_AT, TEXTS_AT, NBYTES_AT = 8, 16, 24, 32, 40, 48

# What becomes of a key that comes again.
ERROR, FIRST, LAST = 0, 1, 2
# How `insert_integers` and `insert_texts` ended.
DONE, REPEATED, CROWDED = 0, 1, 2


def _is_text_at(texts, nbytes, position, text, length):  # type: ignore[no-untyped-def]
    """1 if a text stands at a position among texts, 0 if another one, -1 if none can be there.

    Requires: the texts and the text can be read.
    Source: whoever made the set.
    """
    if position < 0 or position > nbytes - 4:
        return -1
    found = load_u32(texts + position)
    if found > nbytes - 4 - position:
        return -1
    if found != length:
        return 0
    return 1 if same_bytes(texts + position + 4, text, length) else 0


is_text_at = inner(_is_text_at)


def _search_integer(buckets, end, bucket, rows, key):  # type: ignore[no-untyped-def]
    """The row of a key in one table; `ABSENT` or `DAMAGED`.

    Args:
        buckets, end: where the table's buckets begin and end.
        bucket: the first that may have the key.
        rows: of the part.

    Requires: the buckets can be read.
    Source: whoever made the set.
    """
    for _ in range(PROBES):
        # All four are loaded, so that none is branched to: which one it is can't be foreseen.
        key_0, row_0 = load_i64(bucket), load_i64(bucket + 8)
        key_1, row_1 = load_i64(bucket + 16), load_i64(bucket + 24)
        key_2, row_2 = load_i64(bucket + 32), load_i64(bucket + 40)
        key_3, row_3 = load_i64(bucket + 48), load_i64(bucket + 56)
        found = row_3 if key_3 == key else EMPTY
        found = row_2 if key_2 == key else found
        found = row_1 if key_1 == key else found
        found = row_0 if key_0 == key else found
        if found != EMPTY:
            return found if 0 <= found < rows else DAMAGED
        if row_3 == EMPTY:
            return ABSENT
        bucket += BUCKET_NBYTES
        if bucket == end:
            bucket = buckets
    return ABSENT


search_integer = inner(_search_integer)


def _search_text(part, bucket, tag, text, length):  # type: ignore[no-untyped-def]
    """The row of a text in one part from a bucket on; `ABSENT` or `DAMAGED`.

    Requires: ``part`` is the address of a part's words, and ``length`` bytes can be read at ``text``.
    Source: whoever made the set.
    """
    buckets = load_i64(part)
    end = buckets + BUCKET_NBYTES * load_i64(part + BUCKETS_AT)
    texts, nbytes = load_i64(part + TEXTS_AT), load_i64(part + NBYTES_AT)
    for _ in range(PROBES):
        for slot in range(bucket, bucket + BUCKET_NBYTES, SLOT_NBYTES):
            position = load_i64(slot + 8)
            if position == EMPTY:
                return ABSENT
            word = load_i64(slot)
            if word & TAG == tag:
                same = is_text_at(texts, nbytes, position, text, length)
                if same < 0:
                    return DAMAGED
                if same == 1:
                    row = word >> ROW_SHIFT
                    return row if 0 <= row < load_i64(part + COUNT_AT) else DAMAGED
        bucket += BUCKET_NBYTES
        if bucket == end:
            bucket = buckets
    return ABSENT


search_text = inner(_search_text)


def _part_at(tables, number):  # type: ignore[no-untyped-def]
    """The address of a part's words."""
    return tables + 8 * (SET_WORDS + PART_WORDS * number)


part_at = inner(_part_at)


def _find_integer(tables, key):  # type: ignore[no-untyped-def]
    """The row of an integer; `ABSENT`, or `DAMAGED` less the number of the part whose table is.

    Requires: ``tables`` is the address of a set.
    Source: `yaffjit.index.keys`, or records in jitted code that have one.
    """
    for number in range(load_i64(tables)):
        part = part_at(tables, number)
        buckets, count = load_i64(part), load_i64(part + BUCKETS_AT)
        hashed = hash_integer(key, load_i64(part + SEED_AT))
        bucket = buckets + BUCKET_NBYTES * scaled(hashed, count)
        end = buckets + BUCKET_NBYTES * count
        row = search_integer(buckets, end, bucket, load_i64(part + COUNT_AT), key)
        if row >= 0:
            return row + load_i64(part + FIRST_AT)
        if row == DAMAGED:
            return DAMAGED - number
    return ABSENT


find_integer = inner(_find_integer)


def _find_text(tables, text, length):  # type: ignore[no-untyped-def]
    """The row of a text of ``length`` bytes at an address, as `_find_integer`.

    Requires: also that they can be read.
    Source: as there.
    """
    for number in range(load_i64(tables)):
        part = part_at(tables, number)
        hashed = hash_bytes(text, length, load_i64(part + SEED_AT))
        bucket = load_i64(part) + BUCKET_NBYTES * scaled(hashed, load_i64(part + BUCKETS_AT))
        row = search_text(part, bucket, hashed & TAG, text, length)
        if row >= 0:
            return row + load_i64(part + FIRST_AT)
        if row == DAMAGED:
            return DAMAGED - number
    return ABSENT


find_text = inner(_find_text)


def _find_integers(tables, keys, rows, begin, end):  # type: ignore[no-untyped-def]
    """Stores the rows of ``keys[begin:end]``, as `find_integer` gives them.

    Requires: ``tables`` is the address of a set; keys and rows are int64 of one length, which ``end`` is at
    most.
    Source: `yaffjit.index.keys`.
    """
    places = np.empty(AHEAD, np.int64)
    for number in range(load_i64(tables)):
        part = part_at(tables, number)
        buckets, count, seed = load_i64(part), load_i64(part + BUCKETS_AT), load_i64(part + SEED_AT)
        first, of_part = load_i64(part + FIRST_AT), load_i64(part + COUNT_AT)
        after = buckets + BUCKET_NBYTES * count
        for coming in range(begin, end + AHEAD):
            i = coming - AHEAD
            bucket = places[coming & (AHEAD - 1)]
            if coming < end:
                place = buckets + BUCKET_NBYTES * scaled(hash_integer(keys[coming], seed), count)
                places[coming & (AHEAD - 1)] = place
                prefetch(place)
            if i >= begin and (number == 0 or rows[i] == ABSENT):
                key = keys[i]
                key_0, row_0 = load_i64(bucket), load_i64(bucket + 8)
                key_1, row_1 = load_i64(bucket + 16), load_i64(bucket + 24)
                key_2, row_2 = load_i64(bucket + 32), load_i64(bucket + 40)
                key_3, row_3 = load_i64(bucket + 48), load_i64(bucket + 56)
                row = row_3 if key_3 == key else ABSENT
                row = row_2 if key_2 == key else row
                row = row_1 if key_1 == key else row
                row = row_0 if key_0 == key else row
                if row == ABSENT and row_3 != EMPTY:
                    row = search_integer(buckets, after, bucket, of_part, key)
                elif row >= of_part:
                    row = DAMAGED
                rows[i] = first + row if row >= 0 else (ABSENT if row == ABSENT else DAMAGED - number)


find_integers = cached(_find_integers, nogil=True)


def _find_texts(tables, data, offsets, rows, begin, end):  # type: ignore[no-untyped-def]
    """As `_find_integers`, of the texts ``data[offsets[i]:offsets[i + 1]]``.

    Requires: also that data is uint8, and the offsets are int64, one more than rows, ascending and within it.
    Source: as there.
    """
    # Fetched first is a key's bucket, then the text that its first likely slot leads to.
    places = np.empty(2 * AHEAD, np.int64)
    tags = np.empty(2 * AHEAD, np.int64)
    slots = np.empty(2 * AHEAD, np.int64)
    address = data_address(data)
    for number in range(load_i64(tables)):
        part = part_at(tables, number)
        buckets, count, seed = load_i64(part), load_i64(part + BUCKETS_AT), load_i64(part + SEED_AT)
        texts, nbytes = load_i64(part + TEXTS_AT), load_i64(part + NBYTES_AT)
        first, of_part = load_i64(part + FIRST_AT), load_i64(part + COUNT_AT)
        for coming in range(begin, end + 2 * AHEAD):
            likely, i = coming - AHEAD, coming - 2 * AHEAD
            if i >= begin and (number == 0 or rows[i] == ABSENT):
                at = offsets[i]
                turn = i & (2 * AHEAD - 1)
                text, length = address + at, offsets[i + 1] - at
                slot = slots[turn]
                row = ABSENT
                if slot != 0 and is_text_at(texts, nbytes, load_i64(slot + 8), text, length) == 1:
                    row = load_i64(slot) >> ROW_SHIFT
                    if not 0 <= row < of_part:
                        row = DAMAGED
                else:
                    row = search_text(part, places[turn], tags[turn], text, length)
                rows[i] = first + row if row >= 0 else (ABSENT if row == ABSENT else DAMAGED - number)
            if begin <= likely < end:
                turn = likely & (2 * AHEAD - 1)
                bucket, tag = places[turn], tags[turn]
                tag_0, tag_1 = load_i64(bucket) & TAG, load_i64(bucket + 16) & TAG
                tag_2, tag_3 = load_i64(bucket + 32) & TAG, load_i64(bucket + 48) & TAG
                slot = bucket + 48 if tag_3 == tag else 0
                slot = bucket + 32 if tag_2 == tag else slot
                slot = bucket + 16 if tag_1 == tag else slot
                slot = bucket if tag_0 == tag else slot
                slots[turn] = slot
                if slot != 0:
                    text = texts + load_i64(slot + 8)
                    prefetch(text)
                    prefetch(text + offsets[likely + 1] - offsets[likely] + 3)
            if coming < end:
                at = offsets[coming]
                hashed = hash_bytes(address + at, offsets[coming + 1] - at, seed)
                turn = coming & (2 * AHEAD - 1)
                places[turn] = buckets + BUCKET_NBYTES * scaled(hashed, count)
                tags[turn] = hashed & TAG
                prefetch(places[turn])


find_texts = cached(_find_texts, nogil=True)


def _insert_integers(part, keys, present, first, rule):  # type: ignore[no-untyped-def]
    """Puts the keys of rows from ``first`` on into a table.

    Args:
        part: the address of the table's words.
        keys: int64, the rows' keys.
        present: bool, which rows have one.
        rule: what becomes of a key that is there: `ERROR`, `FIRST`, `LAST`.

    Returns:
        How it ended; with `REPEATED` the row that had the key, and the one that has it again; with
        `CROWDED` the row that found no place; with `DONE` how many keys came to the table.

    Requires: the buckets can be written.
    Source: `yaffjit.index.key_build`.
    """
    buckets, count, seed = load_i64(part), load_i64(part + BUCKETS_AT), load_i64(part + SEED_AT)
    end = buckets + BUCKET_NBYTES * count
    added = 0
    for i in range(len(keys)):
        if i + AHEAD < len(keys):
            prefetch(buckets + BUCKET_NBYTES * scaled(hash_integer(keys[i + AHEAD], seed), count))
        if not present[i]:
            continue
        key = keys[i]
        row = first + i
        slot = buckets + BUCKET_NBYTES * scaled(hash_integer(key, seed), count)
        found = load_i64(slot + 8)
        probes = 1
        while found != EMPTY and load_i64(slot) != key:
            slot += SLOT_NBYTES
            if slot == end:
                slot = buckets
            probes += 1
            if probes > PROBES * SLOTS:
                return CROWDED, row, row
            found = load_i64(slot + 8)
        if found != EMPTY and rule == ERROR:
            return REPEATED, found, row
        if found == EMPTY:
            added += 1
        if found == EMPTY or rule == LAST:
            store_i64(slot, key)
            store_i64(slot + 8, row)
    return DONE, added, 0


insert_integers = cached(_insert_integers, nogil=True)


def _copy_bytes(source, target, nbytes):  # type: ignore[no-untyped-def]
    """Copies bytes from one address to another.

    Requires: they can be read and written, and don't overlap.
    Source: who calls it.
    """
    for i in range(nbytes):
        store_u8(target + i, load_u8(source + i))


copy_bytes = inner(_copy_bytes)


def _hash_at(address, seed):  # type: ignore[no-untyped-def]
    """The hash of the text at an address, of the empty one at 0."""
    return hash_bytes(address + 4, load_u32(address) if address != 0 else 0, seed)


hash_at = inner(_hash_at)


def _insert_texts(part, addresses, present, first, rule):  # type: ignore[no-untyped-def]
    """As `_insert_integers`, of texts. The part's words say the bytes of its texts, before and after.

    Args:
        addresses: int64, where the texts of rows that have one stand, a u32 of their bytes before them; 0 for
            the empty text.

    Requires: also that they can be read, and that all of them can be written behind the table's texts.
    Source: as there.
    """
    buckets, count, seed = load_i64(part), load_i64(part + BUCKETS_AT), load_i64(part + SEED_AT)
    texts, nbytes = load_i64(part + TEXTS_AT), load_i64(part + NBYTES_AT)
    end = buckets + BUCKET_NBYTES * count
    hashes = np.empty(AHEAD, np.int64)
    added = 0
    for coming in range(len(addresses) + AHEAD):
        i = coming - AHEAD
        hashed = hashes[coming & (AHEAD - 1)]
        if coming < len(addresses) and present[coming]:
            made = hash_at(addresses[coming], seed)
            hashes[coming & (AHEAD - 1)] = made
            prefetch(buckets + BUCKET_NBYTES * scaled(made, count))
        if i < 0 or not present[i]:
            continue
        row = first + i
        text = addresses[i] + 4
        length = load_u32(addresses[i]) if addresses[i] != 0 else 0
        slot = buckets + BUCKET_NBYTES * scaled(hashed, count)
        tag = hashed & TAG
        found = load_i64(slot + 8)
        probes = 1
        while found != EMPTY:
            if load_i64(slot) & TAG == tag and is_text_at(texts, nbytes, found, text, length) == 1:
                break
            slot += SLOT_NBYTES
            if slot == end:
                slot = buckets
            probes += 1
            if probes > PROBES * SLOTS:
                return CROWDED, row, row
            found = load_i64(slot + 8)
        if found != EMPTY and rule == ERROR:
            return REPEATED, load_i64(slot) >> ROW_SHIFT, row
        if found == EMPTY:
            added += 1
            store_i64(slot + 8, nbytes)
            store_u32(texts + nbytes, length)
            copy_bytes(text, texts + nbytes + 4, length)
            nbytes += 4 + length
        if found == EMPTY or rule == LAST:
            store_i64(slot, row << ROW_SHIFT | tag)
    store_i64(part + NBYTES_AT, nbytes)
    return DONE, added, 0


insert_texts = cached(_insert_texts, nogil=True)


def _count_keys(part, is_text, begin, end):  # type: ignore[no-untyped-def]
    """How many keys some buckets have; -1 if one is of a row that its part hasn't.

    Requires: ``part`` is the address of the table's words, and the table has the buckets.
    Source: `yaffjit.index.keys`.
    """
    buckets, rows = load_i64(part), load_i64(part + COUNT_AT)
    count = 0
    for slot in range(buckets + BUCKET_NBYTES * begin, buckets + BUCKET_NBYTES * end, SLOT_NBYTES):
        second = load_i64(slot + 8)
        if second != EMPTY:
            row = load_i64(slot) >> ROW_SHIFT if is_text else second
            if not 0 <= row < rows:
                return -1
            count += 1
    return count


count_keys = cached(_count_keys, nogil=True)


def _text_lengths(addresses, offsets):  # type: ignore[no-untyped-def]
    """Stores at ``offsets[i + 1]`` the bytes of the text at ``addresses[i]``, 0 where that is 0.

    Requires: a u32 stands at each other address.
    Source: `yaffjit.index.key_field`.
    """
    for i in range(len(addresses)):
        offsets[i + 1] = load_u32(addresses[i]) if addresses[i] != 0 else 0


text_lengths = cached(_text_lengths, nogil=True)


def _copy_texts(addresses, offsets, data):  # type: ignore[no-untyped-def]
    """Copies the texts at addresses to ``data[offsets[i]:offsets[i + 1]]``.

    Requires: also the lengths that `_text_lengths` gave, summed up.
    Source: as there.
    """
    target = data_address(data)
    for i in range(len(addresses)):
        copy_bytes(addresses[i] + 4, target + offsets[i], offsets[i + 1] - offsets[i])


copy_texts = cached(_copy_texts, nogil=True)
