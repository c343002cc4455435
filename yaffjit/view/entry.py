"""Where views begin: from a buffer, verified or trusted."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from yaffjit.codec.locate import read_u32
from yaffjit.errors import ShortBufferError
from yaffjit.plan.model import MessagePlan
from yaffjit.view.base import View
from yaffjit.view.buffers import borrow, take
from yaffjit.view.classes import view_class


def view(mp: MessagePlan, buf: Any) -> View:
    """A view of the message in a buffer, which is verified first.

    Args:
        mp: plan of the root message.
        buf: bytes or any buffer. What nobody can write to (bytes, read-only maps and arrays, Arrow buffers)
            is read where it is; anything else is copied, so that it stays as verified.

    Raises:
        VerifyError: the buffer isn't well-formed.
    """
    return viewer(mp)(buf)


def view_unchecked(mp: MessagePlan, buf: Any) -> View:
    """A view of the message in a buffer that is trusted; never a copy.

    Requires: ``buf`` holds a well-formed message of this type, and doesn't change while the view is used.
    """
    return viewer_unchecked(mp)(buf)


def viewer(mp: MessagePlan) -> Callable[[Any], View]:
    """`view` of one message type, for many buffers."""
    from yaffjit.codec.verify import verify

    make = view_class(mp)

    def view(buf: Any) -> View:
        """A zero-copy view of the message in a buffer, which is verified first.

        Args:
            buf: bytes or any contiguous buffer; what is writable is copied, so that it stays as verified.

        Raises:
            VerifyError: names the message, the field path, the byte position and the two numbers compared.
        """
        data = buf if type(buf) is bytes else take(buf)
        verify(mp, data)
        return make(data, read_u32(data)[0])

    return view


def viewer_unchecked(mp: MessagePlan) -> Callable[[Any], View]:
    """`view_unchecked` of one message type, for many buffers."""
    make = view_class(mp)

    def view_unchecked(buf: Any) -> View:
        """A zero-copy view of the message in a buffer that is trusted.

        Requires: the buffer is a well-formed message of this type, and stays unchanged while the view lives.
        """
        data = buf if type(buf) is bytes else borrow(buf)
        try:
            return make(data, read_u32(data)[0])
        except struct.error:
            raise ShortBufferError(mp.full_name, len(data)) from None

    return view_unchecked


def default_view(mp: MessagePlan) -> View:
    """The default instance of a message type, which an absent message reads as."""
    return view_class(mp)._default_()
