"""The type variable of what is generic over the views of a message type, as ``Records[ads.BannerView]``.

A schema's views have their fields at run time only; `yaffjit stubs` writes classes of them for type checkers.
Without these, views are of type Any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    AnyView = TypeVar("AnyView", default=Any, covariant=True)
else:
    from typing import TypeVar

    AnyView = TypeVar("AnyView", covariant=True)

__all__ = ["AnyView"]
