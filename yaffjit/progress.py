"""A progress bar for long work: on a terminal only, and only once the work has taken a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tqdm import tqdm

# Seconds of work before a bar appears, so that short work prints nothing.
QUIET_SECONDS = 1.0


def progress_bar(label: str, total: int | None, unit: str, progress: bool | None = None) -> tqdm[None]:
    """A bar on standard error; use it as a context manager and call ``update(count)``.

    Args:
        label: what is being done, such as ``"verify banners.arrow"``.
        total: how many units there will be, None if unknown.
        unit: what is counted, such as ``"rows"``.
        progress: None shows the bar on a terminal if the work takes over a second; True shows it
            everywhere and at once; False never.
    """
    from tqdm import tqdm

    return tqdm(
        total=total,
        desc=label,
        unit=f" {unit}",
        unit_scale=True,
        leave=False,
        disable=None if progress is None else not progress,
        delay=0.0 if progress else QUIET_SECONDS,
        mininterval=0.2,
    )
