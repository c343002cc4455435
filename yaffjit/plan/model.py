"""Where each field of a message lies under YaFF, as frozen values."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from yaffjit.forks import renew_properties
from yaffjit.schema.model import Default

if TYPE_CHECKING:
    from yaffjit.plan.build import Plan

# Bytes of a scalar; everything else (text, messages, repeated fields) is a 4-byte offset in its slot.
SCALAR_WIDTH = {
    "bool": 1,
    "int32": 4,
    "uint32": 4,
    "sint32": 4,
    "fixed32": 4,
    "sfixed32": 4,
    "float": 4,
    "enum": 4,
    "int64": 8,
    "uint64": 8,
    "sint64": 8,
    "fixed64": 8,
    "sfixed64": 8,
    "double": 8,
}
# struct and numpy character of a scalar as stored, little-endian.
SCALAR_CODE = {
    "bool": "?",
    "int32": "i",
    "uint32": "I",
    "sint32": "i",
    "fixed32": "I",
    "sfixed32": "i",
    "float": "f",
    "enum": "i",
    "int64": "q",
    "uint64": "Q",
    "sint64": "q",
    "fixed64": "Q",
    "sfixed64": "q",
    "double": "d",
}
OFFSET_WIDTH = 4
MAX_ID = 8190
MAX_OFFSET = 2**31 - 1


@dataclass(frozen=True, slots=True)
class FieldPlan:
    """A field that YaFF carries (a live field).

    ``default_bits`` is XORed into the slot under flat and fixed: the bits of YaFF's own default, which
    differs from protobuf's for rounded floats and for closed enums whose first number isn't 0.
    """

    name: str
    number: int
    id: int
    kind: str  # schema.model.KINDS without "group"
    repeated: bool  # maps too
    is_map: bool
    message: str  # full name of the message (or map entry) type, else ""
    enum: str  # full name of the enum type, else ""
    explicit: bool
    oneof: str
    default: Default  # what an absent field reads as; None for repeated fields and messages
    default_bits: int
    declared_bits: int  # bits of `default`; 0 for what isn't a singular scalar
    width: int  # bytes of the slot: 1, 4 or 8
    offset: int  # of the slot, from the first slot (flat: header + 2; fixed: start of the struct)
    holes: tuple[int, ...]  # lower ids that have no slot: flat data of an older schema may have one there
    element_width: int  # bytes of one array element; a fixed message's limit where inlined; 0 if singular
    inlined: bool  # elements are fixed messages stored in the array itself
    utf8: bool
    json_name: str

    @property
    def out_of_line(self) -> bool:
        """The slot holds an offset, not the value."""
        return self.repeated or self.kind in ("string", "bytes", "message")

    @property
    def is_scalar(self) -> bool:
        return not self.out_of_line


@dataclass(frozen=True, slots=True)
class OneofPlan:
    """``fields`` by precedence: where bytes of another schema hold more than one, the first counts."""

    name: str
    fields: tuple[str, ...]


@renew_properties
@dataclass(frozen=True)
class MessagePlan:
    """A message type laid out; ``fields`` are its live fields by ascending id."""

    full_name: str
    layout: str  # "fixed", "flat", "sparse" or "dynamic"
    fields: tuple[FieldPlan, ...]
    oneofs: tuple[OneofPlan, ...]
    widths: tuple[int, ...]  # slot bytes by id from 1, dead slots included, 0 for a hole
    is_map_entry: bool
    lost: tuple[tuple[str, str], ...]  # declared fields that YaFF doesn't carry: name, reason
    plan: Plan = field(repr=False, compare=False)

    @cached_property
    def by_name(self) -> dict[str, FieldPlan]:
        return {f.name: f for f in self.fields}

    @cached_property
    def gapped(self) -> bool:
        """Some id has no slot, so dynamic messages of this type are always written sparse."""
        return 0 in self.widths

    @cached_property
    def has_explicit(self) -> bool:
        """At least one live field has explicit presence ("E" in docs/format.md)."""
        return any(f.explicit for f in self.fields)

    @cached_property
    def limit(self) -> int:
        """Sum of all slot widths: the size in bytes of a fixed message."""
        return sum(self.widths)

    @cached_property
    def fingerprint(self) -> str:
        """Content hash of this message and all that it reaches; two equal ones read all bytes alike."""
        return self.plan.fingerprint(self.full_name)

    def __reduce__(self) -> Any:
        return operator.getitem, (self.plan, self.full_name)

    def child(self, f: FieldPlan) -> MessagePlan:
        """The plan of a message or map field's message type."""
        return self.plan[f.message]
