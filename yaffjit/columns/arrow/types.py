"""Which types of Arrow the values of messages have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from yaffjit.plan.gathering import Leaf
from yaffjit.plan.shapes import Lengths, Node, Several, Struct, Value

DICTIONARY = "dictionary"
INTEGER = "integer"
NAMES = pa.dictionary(pa.int32(), pa.string())


def is_coded(value: Value, enums: str) -> bool:
    """Whether a value is a code, and its name in a dictionary."""
    return bool(value.names) and (value.coded or enums == DICTIONARY)


def type_of(node: Node, enums: str) -> Any:
    """The type of a column.

    Args:
        enums: `DICTIONARY` or `INTEGER`: of enums, and of which member of a oneof is set.
    """
    if isinstance(node, Struct):
        return pa.struct([(name, type_of(field, enums)) for name, field in node.fields])
    if isinstance(node, Several):
        item = type_of(node.item, enums)
        keys = node.loop.keys
        return pa.list_(item) if keys is None else pa.map_(plain_type(keys), item)
    if isinstance(node, Lengths):
        return pa.from_numpy_dtype(np.dtype(node.dtype))
    if is_coded(node, enums):
        return NAMES
    typ = plain_type(node.leaf)
    return pa.dictionary(pa.int32(), typ) if node.coded else typ


def plain_type(leaf: Leaf) -> Any:
    """The type of the values themselves."""
    if leaf.what == "text":
        assert leaf.f is not None
        return pa.string() if leaf.f.kind == "string" else pa.binary()
    if leaf.what == "time":
        name, unit = leaf.dtype.rstrip("]").split("[")
        return pa.timestamp(unit) if name == "datetime64" else pa.duration(unit)
    return pa.from_numpy_dtype(np.dtype(leaf.dtype))
