"""String and bytes fields in jitted code: as Python's str and bytes, without copying them."""

from __future__ import annotations

from yaffjit.jit.text import boxing, characters, compare, decode, fields, keep
from yaffjit.jit.text.type import BytesType, TextLikeType, TextType, bytes_type, text_at, text_type

__all__ = ["BytesType", "TextLikeType", "TextType", "bytes_type", "text_at", "text_type"]

del boxing, characters, compare, decode, fields, keep  # imported for what they register
