"""Room for many messages at once, each with a page before it and one behind it that can't be read."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
from guard import PAGE, PRIVATE_ANONYMOUS, READABLE_AND_WRITABLE, _libc

from yaffjit.plan import MessagePlan
from yaffjit.rows.memory import Memory
from yaffjit.rows.places import Places
from yaffjit.rows.records import Records

AT_END, AT_BEGIN = 0, 1


class Arena:
    """Places for ``slots`` messages of up to ``capacity`` bytes."""

    def __init__(self, slots: int, capacity: int) -> None:
        self.slots = slots
        self.room = (max(capacity, 1) + PAGE - 1) // PAGE * PAGE
        self.nbytes = slots * (self.room + PAGE) + PAGE
        self._begin = _libc.mmap(None, self.nbytes, 0, PRIVATE_ANONYMOUS, -1, 0)
        assert self._begin not in (None, ctypes.c_void_p(-1).value)
        for slot in range(slots):
            assert _libc.mprotect(self.first(slot), self.room, READABLE_AND_WRITABLE) == 0
        whole = (ctypes.c_uint8 * self.nbytes).from_address(self._begin)
        self.data = memoryview(whole).cast("B").toreadonly()

    def first(self, slot: int) -> int:
        """The address of the first byte of a slot that can be read."""
        address: int = self._begin + PAGE + slot * (self.room + PAGE)
        return address

    def placed(self, messages: Sequence[bytes], turn: int) -> np.ndarray:
        """Copy a message into each slot, at its end and its beginning in turns.

        Returns:
            int64, shape (messages, 2): the address of each and its bytes.
        """
        table = np.empty((len(messages), 2), np.int64)
        for slot, message in enumerate(messages):
            address = self.first(slot)
            if (slot + turn) % 2 == AT_END:
                address += self.room - len(message)
            ctypes.memmove(address, message, len(message))
            table[slot] = address, len(message)
        return table

    def records(self, mp: MessagePlan, table: np.ndarray, ascending: bool = False) -> Records:
        """Records of some of what was placed, in the scattered form."""
        memory = Memory(mp.plan, [self.data], ascending=ascending)
        return Records._of(mp, Places(np.ascontiguousarray(table), memory))

    def one_by_one(self, mp: MessagePlan, row: np.ndarray) -> Records:
        """Records of one message in the regular form: an array that is the message, and two offsets."""
        address, nbytes = row.tolist()
        data = (ctypes.c_uint8 * nbytes).from_address(address)
        return Records(mp, memoryview(data).cast("B").toreadonly(), np.array([0, nbytes]))
