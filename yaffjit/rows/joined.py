"""Several stretches of records as one, in the regular form if they have it and there aren't too many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from yaffjit.rows.chunks import Chunks
from yaffjit.rows.memory import Memory
from yaffjit.rows.places import Places

if TYPE_CHECKING:
    from yaffjit.plan import Plan


def joined(plan: Plan, parts: Sequence[Chunks | Places]) -> Chunks | Places:
    """All rows of the parts, in order; nothing is copied but where they lie."""
    if len(parts) == 1:
        return settled(parts[0])
    memory = Memory.of_all(plan, [part.memory for part in parts]) if parts else None
    chunks = [chunk for part in parts if isinstance(part, Chunks) for chunk in part.parts(0, part.rows)]
    if all(isinstance(part, Chunks) for part in parts):
        return settled(Chunks(plan, chunks, memory=memory))
    places = [part if isinstance(part, Places) else Places.of_chunks(part, 0, part.rows) for part in parts]
    files = dict.fromkeys(file for part in places for file in part.files)
    assert memory is not None
    return Places(np.concatenate([part.table for part in places]), memory, tuple(files))


def settled(store: Chunks | Places) -> Chunks | Places:
    """Where messages lie, scattered if there are too many chunks for a search."""
    if isinstance(store, Chunks) and store.crowded:
        return Places.of_chunks(store, 0, store.rows)
    return store
