"""The arrays that results go into, and what users get of them: masks, NaN and objects for what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


@dataclass
class Column:
    """One value a row.

    Attributes:
        values: of shape (rows,), or (rows, length) for arrays; of objects None where there's none.
        missing: of shape (rows,), or None where every row has a value.
    """

    values: Array
    missing: Mask | None

    def finished(self) -> Array:
        """What users get: a masked array, NaN or None where a value is missing."""
        missing = self.missing
        if missing is None or self.values.dtype == object:
            return self.values
        if self.values.dtype.kind == "f":
            self.values[missing] = np.nan
            return self.values
        self.values[missing] = np.zeros((), self.values.dtype)
        mask = (
            missing if self.values.ndim == 1 else np.broadcast_to(missing[:, None], self.values.shape).copy()
        )
        return np.ma.MaskedArray(self.values, mask)

    def truth(self) -> Mask | None:
        """In which rows the value is true; None where that isn't asked of such values."""
        if self.values.ndim != 1 or self.values.dtype.kind not in "biufO":
            return None
        true: Mask = self.values.astype(np.bool_)
        if self.missing is not None:
            true[self.missing] = False
        return true
