"""Where messages lie, by address: of rows in a table of chunks, and of bytes objects in a tuple."""

from __future__ import annotations

from yaffjit.kernels.cached import cached
from yaffjit.kernels.memory import load_i64
from yaffjit.plan.pages import CHUNK_NBYTES, END_AT, OFFSETS_AT, PAGE_SHIFT, PAGES_AT


def _find_rows(table, rows, places):  # type: ignore[no-untyped-def]
    """Stores the address and the bytes of each row's message in ``places``, int64 of shape (rows, 2).

    Requires: ``table`` is the address of a table of pages, whose chunks hold each of ``rows``.
    Source: `yaffjit.rows.places`.
    """
    for i in range(len(rows)):
        row = rows[i]
        chunk = load_i64(table + PAGES_AT + 8 * (row >> PAGE_SHIFT))
        while row >= load_i64(chunk + END_AT):
            chunk += CHUNK_NBYTES
        offset_at = load_i64(chunk + OFFSETS_AT) + 8 * row
        start = load_i64(offset_at)
        places[i, 0] = load_i64(chunk) + start
        places[i, 1] = load_i64(offset_at + 8) - start


find_rows = cached(_find_rows, nogil=True)


def _find_bytes(items, count, bytes_type, type_at, size_at, content_at, places):  # type: ignore[no-untyped-def]
    """Stores address and size of each bytes object's content in ``places``, int64 of shape (count, 2).

    Args:
        items: the address of ``count`` addresses of objects.
        bytes_type: the address of the class bytes.
        type_at, size_at, content_at: where an object has its class, and one of bytes its size and content.

    Returns:
        Whether all objects are of that very class. Those that aren't get the address -1.

    Requires: the objects live.
    Source: `yaffjit.rows.payloads`, which holds the tuple that has the addresses, and the GIL.
    """
    all_bytes = True
    for i in range(count):
        item = load_i64(items + 8 * i)
        if load_i64(item + type_at) == bytes_type:
            places[i, 0] = item + content_at
            places[i, 1] = load_i64(item + size_at)
        else:
            places[i, 0] = -1
            places[i, 1] = 0
            all_bytes = False
    return all_bytes


find_bytes = cached(_find_bytes)
