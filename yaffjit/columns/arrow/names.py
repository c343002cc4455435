"""Numbers that stand for names, as codes of one dictionary that all batches of a table share."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from yaffjit.columns.results import Array
from yaffjit.plan.shapes import Names


class Dictionary:
    """Names by number.

    A number without a name is its own, in digits; those follow the names as they are met.

    Args:
        names: numbers and names, in the order of the dictionary.
    """

    def __init__(self, names: Names) -> None:
        self._declared = names
        self._lock = threading.Lock()
        self._set(())

    def _set(self, others: Iterable[int]) -> None:
        self.others = tuple(others)
        numbers = [*(number for number, _ in self._declared), *self.others]
        self._counts_up = numbers == list(range(len(numbers)))
        known = np.array(numbers, np.int32)
        self._order = np.argsort(known).astype(np.int32)
        self._sorted = known[self._order]
        self.values: Any = pa.array(
            [*(name for _, name in self._declared), *map(str, self.others)], pa.string()
        )

    def codes(self, numbers: Array) -> Array:
        """The codes of int32 numbers, also of ones that are met for the first time."""
        if self._counts_up and (not len(numbers) or int(numbers.view(np.uint32).max()) < len(self._sorted)):
            return numbers
        found = self._found(numbers)
        if found is None:
            with self._lock:
                new = np.setdiff1d(numbers, self._sorted)
                self._set((*self.others, *new.tolist()))
                found = self._found(numbers)
            assert found is not None
        return found

    def _found(self, numbers: Array) -> Array | None:
        """The codes of numbers that are known; None if one isn't."""
        ordered, order = self._sorted, self._order
        at = np.minimum(np.searchsorted(ordered, numbers), len(ordered) - 1)
        return order[at] if bool((ordered[at] == numbers).all()) else None

    def sort(self) -> None:
        """Put the numbers without names in ascending order, whichever came first."""
        self._set(sorted(self.others))
