"""A progress bar for long work: on a terminal only, and only once the work has taken a second."""

from __future__ import annotations

import contextlib
import sys
from typing import Protocol

# Seconds of work before a bar appears, so that short work prints nothing.
QUIET_SECONDS = 1.0


class Bar(Protocol):
    """What takes the steps of the work."""

    def update(self, n: int) -> object: ...


class _NoBar:
    def update(self, n: int) -> None:
        pass


def progress_bar(
    label: str, total: int | None, unit: str, progress: bool | None = None
) -> contextlib.AbstractContextManager[Bar]:
    """A bar on standard error, as a context manager; call ``update(count)`` on it.

    Args:
        label: what is being done, such as ``"verify banners.arrow"``.
        total: how many units there will be, None if unknown.
        unit: what is counted, such as ``"rows"``.
        progress: None shows the bar on a terminal if the work takes over a second; True shows it
            everywhere and at once; False never.
    """
    on_terminal = sys.stderr is not None and sys.stderr.isatty()
    if not (on_terminal if progress is None else progress):
        return contextlib.nullcontext(_NoBar())  # and tqdm isn't imported
    from tqdm import tqdm

    bar: contextlib.AbstractContextManager[Bar] = tqdm(
        total=total,
        desc=label,
        unit=f" {unit}",
        unit_scale=True,
        leave=False,
        delay=0.0 if progress else QUIET_SECONDS,
        mininterval=0.2,
    )
    return bar
