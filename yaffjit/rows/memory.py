"""The buffers that messages lie in, and the one owner that jitted code has of them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from yaffjit.plan import Plan
    from yaffjit.view.buffers import Data
    from yaffjit.view.owner import Owner

Int64Array = npt.NDArray[np.int64]

# A function and its arguments, by which another process too makes the records of a file.
Again = tuple[Callable[..., Any], tuple[Any, ...]]


class Memory:
    """Buffers that records share with their selections and views.

    Args:
        data: the buffers; they don't change.
        spans: address and bytes of each, shape (buffers, 2), if they are known.
        checks: called before much is read, to raise where a buffer isn't what it was.

    Attributes:
        ascending: whether all maps in the messages were seen to ascend.
    """

    __slots__ = ("_owner", "_plan", "ascending", "checks", "data", "spans")

    def __init__(
        self,
        plan: Plan,
        data: Sequence[Data],
        spans: Int64Array | None = None,
        checks: tuple[Callable[[], None], ...] = (),
        ascending: bool = False,
    ) -> None:
        self._plan = plan
        self._owner: Owner | None = None
        self.data = tuple(data)
        self.spans = spans
        self.checks = checks
        self.ascending = ascending

    @property
    def owner(self) -> Owner:
        """Keeps the buffers alive for jitted code."""
        if self._owner is None:
            from yaffjit.view.owner import ManyOwner, Owner, making

            with making:
                if self._owner is None:
                    self._owner = (
                        Owner(self.data[0], self._plan, self.ascending)
                        if len(self.data) == 1
                        else ManyOwner(self.data, self.spans, self._plan, self.ascending)
                    )
        return self._owner

    @property
    def view_owner(self) -> Owner | None:
        """The owner that views have from the start; of many buffers none, since a view is of one."""
        return self.owner if len(self.data) == 1 else None

    def check(self) -> None:
        """Raise where a buffer isn't what it was."""
        for check in self.checks:
            check()

    @classmethod
    def of_all(cls, plan: Plan, parts: Sequence[Memory]) -> Memory:
        """The buffers of several."""
        parts = list(dict.fromkeys(parts))
        if len(parts) == 1:
            return parts[0]
        known = [part.spans for part in parts]
        return cls(
            plan,
            [data for part in parts for data in part.data],
            np.concatenate(known) if all(spans is not None for spans in known) else None,  # type: ignore[arg-type]
            tuple(dict.fromkeys(check for part in parts for check in part.checks)),
            all(part.ascending for part in parts),
        )
