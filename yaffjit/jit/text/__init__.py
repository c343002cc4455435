"""String and bytes fields in jitted code: as Python's str and bytes, without copying them."""

from __future__ import annotations

from yaffjit.jit.text import (
    arrays,
    boxing,
    characters,
    compare,
    decode,
    fields,
    keep,
    search,
    strings,
    unsupported,
)
from yaffjit.jit.text.type import BytesType, TextLikeType, TextType, bytes_type, text_at, text_type

__all__ = ["BytesType", "TextLikeType", "TextType", "bytes_type", "text_at", "text_type"]

del (
    arrays,
    boxing,
    characters,
    compare,
    decode,
    fields,
    keep,
    search,
    strings,
    unsupported,
)  # imported for what they register
