"""Records that go to another process: by path and rows where a file has them, else by their bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from yaffjit.rows.chunks import Chunk, Chunks, RowFile
from yaffjit.rows.joined import joined
from yaffjit.rows.memory import Again, Int64Array
from yaffjit.rows.places import Places
from yaffjit.view.owner import address_of

if TYPE_CHECKING:
    from yaffjit.plan.model import MessagePlan
    from yaffjit.rows.records import Records

# Data and offsets of some rows, and which of them are null, if any are; or what opens a file, and its rows.
Bytes = tuple[bytes, Int64Array, "np.ndarray[Any, Any] | None"]
OfFile = tuple[Again, "Int64Array | range"]


def parts_of(store: Chunks | Places, start: int, count: int) -> tuple[list[Bytes | OfFile], Any]:
    """What the rows consist of, and where each of theirs goes, None if they are in order."""
    if isinstance(store, Chunks):
        return list(_of_chunks(store.parts(start, count), store.check)), None
    return _of_places(store, start, count)


def store_of(mp: MessagePlan, parts: Sequence[Bytes | OfFile], order: Any) -> Chunks | Places:
    """Where the rows lie that `parts_of` took apart."""
    opened: dict[int, Records] = {}
    stores: list[Chunks | Places] = []
    for part in parts:
        if len(part) == 3:
            stores.append(_of_bytes(mp, *part))
            continue
        file, rows = part
        # A pickle has a file once, so its parts have it in common.
        found = opened.get(id(file))
        if found is None:
            function, args = file
            found = opened[id(file)] = function(*args)
        stores.append(_rows_of(found, rows))
    store = joined(mp.plan, stores)
    if order is not None:
        places = store if isinstance(store, Places) else Places.of_chunks(store, 0, store.rows)
        store = places.taken(order)
    return store


def _of_bytes(mp: MessagePlan, data: bytes, offsets: Int64Array, valid: Any) -> Chunks | Places:
    chunks = Chunks.of_array(mp.plan, data, offsets)
    return chunks if valid is None else Places.of_chunks(chunks, 0, chunks.rows).masked(valid)


def _rows_of(recs: Records, rows: Int64Array | range) -> Chunks | Places:
    part = recs[rows.start : rows.stop] if isinstance(rows, range) else recs.take(rows)
    return part._own_store()


def _of_chunks(chunks: Sequence[Chunk], check: Any) -> Iterator[Bytes | OfFile]:
    """Neighbours of one file, or of none, together."""
    number = 0
    while number < len(chunks):
        first = chunks[number]
        stop, rows = number + 1, first.rows
        while stop < len(chunks) and _follows(first, rows, chunks[stop]):
            rows += chunks[stop].rows
            stop += 1
        if first.file is not None:
            yield first.file.again, range(first.row, first.row + rows)
        else:
            yield _copied(chunks[number:stop], check)
        number = stop


def _follows(first: Chunk, rows: int, chunk: Chunk) -> bool:
    return chunk.file is first.file and (first.file is None or chunk.row == first.row + rows)


def _copied(chunks: Sequence[Chunk], check: Any) -> Bytes:
    parts: list[memoryview] = []
    offsets = [np.zeros(1, np.int64)]
    nbytes = 0
    for chunk in chunks:
        check()
        start, stop = int(chunk.offsets[0]), int(chunk.offsets[-1])
        parts.append(memoryview(chunk.data)[chunk.base + start : chunk.base + stop])
        offsets.append(chunk.offsets[1:] - start + nbytes)
        nbytes += stop - start
    return b"".join(parts), np.concatenate(offsets), None


def _of_places(places: Places, start: int, count: int) -> tuple[list[Bytes | OfFile], Any]:
    addresses = places.table[start : start + count, 0]
    left = np.ones(count, np.bool_)  # of no file as yet
    parts: list[Bytes | OfFile] = []
    order = []
    for file in places.files:
        rows = _rows_in(file, addresses)
        mine = np.flatnonzero(rows >= 0)
        if len(mine):
            left[mine] = False
            order.append(mine)
            parts.append((file.again, rows[mine]))
    own = np.flatnonzero(left)
    if len(own) or not count:
        order.append(own)
        parts.append(_copied_places(places, start + own))
    placed = np.concatenate(order)
    return parts, None if (np.diff(placed) == 1).all() else np.argsort(placed)


def _rows_in(file: RowFile, addresses: Int64Array) -> Int64Array:
    """For each address of a message the row of a file that it is, or -1."""
    chunks = [chunk for chunk in file.chunks if chunk.rows]
    firsts = np.cumsum([0, *(chunk.rows for chunk in chunks)])
    known = {id(chunk.data): chunk.data for chunk in chunks}
    at = {key: address_of(data) for key, data in known.items()}
    begins = np.array([at[id(chunk.data)] + chunk.base for chunk in chunks], np.int64)
    order = np.argsort(begins, kind="stable")
    found = np.searchsorted(begins[order], addresses, side="right") - 1
    rows = np.full(len(addresses), -1)
    for place in np.unique(found[found >= 0]).tolist():
        number = order[place]
        chunk = chunks[number]
        mine = np.flatnonzero((found == place) & (addresses < begins[number] + chunk.nbytes))
        # Of rows with one offset only the last one has bytes.
        rows[mine] = (
            firsts[number]
            + np.searchsorted(chunk.offsets[:-1], addresses[mine] - begins[number], side="right")
            - 1
        )
    return rows


def _copied_places(places: Places, rows: Int64Array) -> Bytes:
    places.check()
    payloads = [places.payload(row) for row in rows.tolist()]
    valid = np.array([payload is not None for payload in payloads], np.bool_)
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(places.table[rows, 1])))
    return b"".join(payload or b"" for payload in payloads), offsets, None if valid.all() else valid
