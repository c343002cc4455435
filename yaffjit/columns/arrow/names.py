"""Numbers that stand for names, as codes of one dictionary that all batches of a table share."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from yaffjit.columns.results import Array
from yaffjit.forks import renew_in_forks
from yaffjit.plan.shapes import Names

MOST_LISTED = 1024  # numbers from the least to the greatest, whose codes are looked up by number
NO_CODE = -1


class Dictionary:
    """Names by number.

    A number without a name is its own, in digits; those follow the names as they are met.

    Args:
        names: numbers and names, in the order of the dictionary.
    """

    def __init__(self, names: Names) -> None:
        self._declared = names
        self._lock = threading.Lock()
        renew_in_forks(self, "_lock", threading.Lock)
        self._set(())

    def _set(self, others: Iterable[int]) -> None:
        self.others = tuple(others)
        numbers = [*(number for number, _ in self._declared), *self.others]
        names = [*(name for _, name in self._declared), *map(str, self.others)]
        self.values: Any = pa.array(names, pa.string())
        known = np.array(numbers, np.int32)
        self._order = np.argsort(known).astype(np.int32)
        self._sorted = known[self._order]
        self._first = int(self._sorted[0])
        self._counts_up = numbers == list(range(len(numbers)))
        self._by_number: Array | None = None
        span = int(self._sorted[-1]) - self._first + 1
        if span <= MOST_LISTED:
            self._by_number = np.full(span, NO_CODE, np.int32)
            self._by_number[self._sorted - self._first] = self._order

    def codes(self, numbers: Array) -> Array:
        """The codes of int32 numbers, also of ones that are met for the first time; int32."""
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
        if not len(numbers):
            return numbers
        if self._counts_up:  # they are codes already
            return numbers if int(numbers.view(np.uint32).max()) < len(self._sorted) else None
        by_number = self._by_number
        if by_number is not None:
            at = (numbers - np.int32(self._first)).view(np.uint32)
            if int(at.max()) >= len(by_number):
                return None
            codes = by_number[at]
            return codes if int(codes.min()) != NO_CODE else None
        ordered, order = self._sorted, self._order
        at = np.minimum(np.searchsorted(ordered, numbers), len(ordered) - 1)
        return order[at] if bool((ordered[at] == numbers).all()) else None

    def sort(self) -> None:
        """Put the numbers without names in ascending order, whichever came first."""
        self._set(sorted(self.others))
