"""protobuf's helpers of well-known types, such as Timestamp.ToDatetime, on views: by way of the message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yaffjit.view.base import View

# Helpers that change the message they are called on.
_CHANGING = frozenset(
    {
        "AllFieldsFromDescriptor",
        "CanonicalFormFromMask",
        "FromDatetime",
        "FromJsonString",
        "FromMicroseconds",
        "FromMilliseconds",
        "FromNanoseconds",
        "FromSeconds",
        "FromTimedelta",
        "GetCurrentTime",
        "Intersect",
        "Pack",
        "Union",
        "add_list",
        "add_struct",
        "append",
        "extend",
        "get_or_create_list",
        "get_or_create_struct",
        "update",
        "__setitem__",
        "__delitem__",
    }
)


def helpers(full_name: str) -> dict[str, Callable[..., Any]]:
    """The reading helpers that protobuf gives messages of this type, for a view class."""
    from google.protobuf.internal.well_known_types import WKTBASES

    base = WKTBASES.get(full_name)
    if base is None:
        return {}
    return {
        name: _by_message(name)
        for name, helper in vars(base).items()
        if callable(helper) and name not in _CHANGING and (not name.startswith("_") or name.endswith("__"))
    }


def _by_message(name: str) -> Callable[..., Any]:
    def helper(self: View, *args: Any, **options: Any) -> Any:
        message = View.to_message(self)
        return getattr(type(message), name)(message, *args, **options)

    helper.__name__ = name
    helper.__doc__ = "As protobuf's message of this type."
    return helper
