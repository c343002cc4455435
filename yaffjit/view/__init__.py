"""The protobuf reading API in plain Python over YaFF bytes: no copies, no numba."""

from __future__ import annotations

import struct
from typing import Any

from yaffjit.plan.model import MessagePlan
from yaffjit.view.base import View
from yaffjit.view.buffers import borrow, root, take, too_short
from yaffjit.view.classes import view_class
from yaffjit.view.convert import to_dict, to_json

__all__ = ["View", "default_view", "to_dict", "to_json", "view", "view_class", "view_unchecked"]


def view(mp: MessagePlan, buf: Any) -> View:
    """A view of the message in a buffer, which is verified first.

    Args:
        mp: plan of the root message.
        buf: bytes or any buffer. What nobody can write to (bytes, read-only maps and arrays, Arrow buffers)
            is read where it is; anything else is copied, so that it stays as verified.

    Raises:
        VerifyError: the buffer isn't well-formed.
    """
    from yaffjit.codec.verify import verify

    data = take(buf)
    verify(mp, data)
    return view_class(mp)(data, root(data, mp.full_name))


def view_unchecked(mp: MessagePlan, buf: Any) -> View:
    """A view of the message in a buffer that is trusted; never a copy.

    Requires: ``buf`` holds a well-formed message of this type, and doesn't change while the view is used.
    """
    data = borrow(buf)
    try:
        return view_class(mp)(data, root(data, mp.full_name))
    except struct.error:
        raise too_short(data, mp.full_name) from None


def default_view(mp: MessagePlan) -> View:
    """The default instance of a message type, which an absent message reads as."""
    return view_class(mp)._default()
