"""What the universal tagged format is made of: its codes, its byte orders, and paths in a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Order = Literal["swapped", "little", "big"]
Width = Literal["java", "smallest"]
Strings = Literal["utf8", "latin1", "utf16"]

NULL = 0  # an extension of ours; also what fills the last code byte of a document in compact mode
OBJECT, OBJECT_END = 1, 2
COLLECTION, COLLECTION_END = 3, 4
TRUE, FALSE = 5, 6
INT8, INT16, INT32, INT64 = 7, 8, 9, 10
FLOAT32, FLOAT64 = 11, 12
UTF8, LATIN1, UTF16 = 13, 14, 15
LAST_CODE = UTF16

# Bytes of a payload that always has as many.
PAYLOAD_NBYTES = {INT8: 1, INT16: 2, INT32: 4, INT64: 8, FLOAT32: 4, FLOAT64: 8}
TEXT_CODECS = {UTF8: "utf-8", LATIN1: "latin-1", UTF16: "utf-16-le"}
# Bytes of the longest length of a text.
MAX_LENGTH_NBYTES = 9

ORDERS: tuple[Order, ...] = ("swapped", "little", "big")
WIDTHS: tuple[Width, ...] = ("java", "smallest")
STRINGS: tuple[Strings, ...] = ("utf8", "latin1", "utf16")
DEFAULT_MAX_DEPTH = 512
MAX_MAX_DEPTH = 1000

_SHOWN_STEPS = 8


def reordered(payload: bytes, order: Order) -> bytes:
    """Little-endian bytes of a number in another order, or back."""
    if order == "little":
        return payload
    if order == "big":
        return payload[::-1]
    if len(payload) == 1:
        return payload
    swapped = bytearray(payload)
    swapped[::2], swapped[1::2] = payload[1::2], payload[::2]
    return bytes(swapped)


def path_text(path: Sequence[str | int]) -> str:
    """A path as people write it, ``a.b[3].c``; only the first and last steps of a long one."""
    if len(path) > 2 * _SHOWN_STEPS:
        return f"{path_text(path[:_SHOWN_STEPS])} ... {path_text(path[-_SHOWN_STEPS:])}"
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step.isidentifier():
            text += f".{step}" if text else step
        else:
            text += f"[{step!r}]"
    return text
