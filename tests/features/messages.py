"""Random messages of the kind that the functions here are for: few words, close times, edges of numbers.

Sums of int64 values stay below 2**53, since jitted code divides them as floats, and wraps beyond 2**63.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as F
from google.protobuf.message import Message
from hypothesis import strategies as st

Draw = Callable[..., Any]

WORDS = (
    *("", "sale", "new", "ads", "search", "Sale NEW 50%", "goal", "/", "/cart", "from", "USD", "EUR"),
    *("ctr", "price", "weight", "sale_ctr", "new_ctr", "Winter-coat, 99 in stock", "  two  words\t"),
    *("https://shop.example/a/b?utm_source=mail&x=1", "http://x", "stra\u00dfe", "caf\u00e9 \u4e2d\u6587"),
    "\U0001f6b2 bike",
)
TEXTS = st.one_of(st.sampled_from(WORDS), st.text(max_size=6))
FLOATS = st.sampled_from(
    [0.0, -0.0, 1.0, 0.1, 0.25, -1.5, 3.0, 9.75, 120.0, 1e-9, 1e300, math.inf, -math.inf, math.nan]
)
NEAR_NOW = 1_700_000_000
TIMES = st.one_of(
    st.integers(NEAR_NOW - 5000, NEAR_NOW), st.sampled_from([0, -1, NEAR_NOW - 864_000, 9_000_000_000])
)
NANOS = st.sampled_from([0, 1, 500_000_000, 999_999_999])
SMALL = st.integers(-3, 8)
BY_KIND: dict[int, st.SearchStrategy[Any]] = {
    F.TYPE_STRING: TEXTS,
    F.TYPE_BYTES: st.one_of(st.sampled_from([b"\0\xff", b"\0", b"abc"]), st.binary(max_size=4)),
    F.TYPE_FLOAT: FLOATS,
    F.TYPE_DOUBLE: FLOATS,
    F.TYPE_BOOL: st.booleans(),
    F.TYPE_INT32: st.one_of(SMALL, st.sampled_from([-(2**31), 2**31 - 1])),
    F.TYPE_UINT32: st.one_of(st.integers(0, 8), st.sampled_from([2**31, 2**32 - 1])),
    F.TYPE_INT64: st.one_of(SMALL, st.sampled_from([-(2**50) - 1, 2**50 + 1])),
    F.TYPE_UINT64: st.one_of(
        st.integers(0, 8), st.sampled_from([2**53, 2**53 + 1, 2**60 + 1, 2**63, 2**63 + 5, 2**64 - 1])
    ),
    F.TYPE_ENUM: st.integers(-1, 6),
}
BY_KIND[F.TYPE_SINT32] = BY_KIND[F.TYPE_INT32]
BY_KIND[F.TYPE_FIXED64] = BY_KIND[F.TYPE_UINT64]
# float32 has no 1e300.
BY_KIND[F.TYPE_FLOAT] = FLOATS.map(lambda x: x if x != 1e300 else 1e30)
BY_TYPE: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "google.protobuf.Timestamp": {"seconds": TIMES, "nanos": NANOS},
    "google.protobuf.Duration": {"seconds": st.integers(0, 90), "nanos": NANOS},
}


@st.composite
def messages(draw: Draw, message_class: type[Message], depth: int = 4) -> Message:
    """A message of a class, nested at most ``depth`` deep."""
    message = message_class()
    _fill(draw, message, depth)
    return message


def _fill(draw: Draw, message: Message, depth: int) -> None:
    fields = message.DESCRIPTOR.fields
    present = draw(st.integers(0, 2 ** len(fields) - 1))
    for i, field in enumerate(fields):
        if present >> i & 1:
            _fill_field(draw, message, field, depth)


def _fill_field(draw: Draw, message: Message, field: FieldDescriptor, depth: int) -> None:
    held = getattr(message, field.name)
    entry = field.message_type
    if field.is_repeated and entry is not None and entry.GetOptions().map_entry:
        key, value = entry.fields
        for name in draw(st.lists(_values(key), max_size=4)):
            if value.message_type is None:
                held[name] = draw(_values(value))
            elif depth > 0:
                _fill(draw, held[name], depth - 1)
    elif field.is_repeated:
        if entry is None:
            held.extend(draw(st.lists(_values(field), max_size=5)))
        elif depth > 0:
            for _ in range(draw(st.integers(0, 4 if depth > 2 else 1))):
                _fill(draw, held.add(), depth - 1)
    elif entry is None:
        setattr(message, field.name, draw(_values(field)))
    elif depth > 0:
        held.SetInParent()
        _fill(draw, held, depth - 1)


def _values(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    of_type = BY_TYPE.get(field.containing_type.full_name, {})
    return of_type[field.name] if field.name in of_type else BY_KIND[field.type]
