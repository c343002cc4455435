"""Views of protobuf's own bytes in jitted code: types, fields, errors.

A view is where a message is, its number of bytes, and the owner. Its fields are slots of one pass over these
bytes (`yaffjit.jit.emit.wire`), which LLVM does once, whatever number of fields are read.
"""

from __future__ import annotations

from yaffjit.jit.wire import boxing, maps, read, repeated, text

__all__: list[str] = []

del boxing, maps, read, repeated, text  # imported for what they register
