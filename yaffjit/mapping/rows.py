"""Errors of a user's function say in which row it was."""

from __future__ import annotations

import contextlib
import sys
from types import FunctionType
from typing import NoReturn


def raise_in_row(error: Exception, row: int, message: str) -> NoReturn:
    """Raise an error as it is, with the row in its traceback, and as its attribute ``row`` if it has none."""
    if getattr(error, "row", None) is None:
        with contextlib.suppress(AttributeError):  # of a class with slots
            error.row = row  # type: ignore[attr-defined]
    where = f"in row {row} of {message}"
    if sys.version_info >= (3, 11):
        error.add_note(where)
        raise error
    # A frame of that name, as tracebacks had no other text before.
    named = FunctionType(_raise.__code__.replace(co_name=where), globals())
    named(error)
    raise AssertionError


def _raise(error: Exception) -> NoReturn:
    raise error
