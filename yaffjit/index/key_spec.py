"""What an index is looked up by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

RULES = ("error", "first", "last")  # by their numbers in `yaffjit.kernels.keys`


@dataclass(frozen=True, slots=True)
class KeySpec:
    """What an index is looked up by.

    Attributes:
        path: of the field.
        duplicates: what becomes of a key that comes again: "error", or whether its first or last row counts.
    """

    path: str
    duplicates: str = "error"

    @property
    def rule(self) -> int:
        return RULES.index(self.duplicates)


def key_spec(key: Any, duplicates: Any) -> KeySpec | None:
    """What a caller's arguments ask for; None for no key.

    Raises:
        ValueError: ``duplicates`` isn't a rule, or there's no key for it.
        TypeError: the key isn't text.
    """
    if duplicates not in RULES:
        known = ", ".join(map(repr, RULES))
        raise ValueError(f"duplicates={duplicates!r} isn't supported; supported: {known}")
    if key is None:
        if duplicates != "error":
            raise ValueError(f"duplicates={duplicates!r} is about keys: say key= too")
        return None
    if not isinstance(key, str):
        raise TypeError(f'key must be the path of a field, as "id", not {type(key).__name__}')
    return KeySpec(key, duplicates)
