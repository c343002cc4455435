"""Which field types read each other's bytes, under YaFF and on protobuf's wire."""

from __future__ import annotations

from yaffjit.evolve.model import Verdict
from yaffjit.plan.model import OFFSET_WIDTH, SCALAR_WIDTH

SIGNED = {4: ("int32", "sint32", "sfixed32", "enum"), 8: ("int64", "sint64", "sfixed64")}
UNSIGNED = {4: ("uint32", "fixed32"), 8: ("uint64", "fixed64")}
TEXT = ("string", "bytes")
VARINTS = ("int32", "int64", "uint32", "uint64", "bool", "enum")
WIRE_TYPES = {
    **dict.fromkeys((*VARINTS, "sint32", "sint64"), "varint"),
    **dict.fromkeys(("fixed32", "sfixed32", "float"), "4 bytes"),
    **dict.fromkeys(("fixed64", "sfixed64", "double"), "8 bytes"),
    **dict.fromkeys(("string", "bytes", "message"), "length-delimited"),
    "group": "group",
}
# Of one encoding on the wire; only the values decide.
WIRE_FAMILIES = (VARINTS, ("sint32", "sint64"), ("fixed32", "sfixed32"), ("fixed64", "sfixed64"))

_KEEP_TYPE = "Keep the type, and add a field with a free number for the new one."
_UTF8 = Verdict(
    "conditional",
    "The bytes stay, but a reader with `string` refuses what isn't UTF-8.",
    "Do it only if all values are UTF-8.",
)
_CLOSED = Verdict(
    "conditional",
    "A closed enum takes only its own numbers; others are unknown fields, and the field reads as unset.",
    "Do it only if all values are numbers of the enum.",
)


def yaff_types(old: str, new: str, closed: bool) -> Verdict:
    """The verdict of YaFF on another kind of a field or an element.

    Args:
        old, new: kinds, as `yaffjit.schema.model.KINDS` has them.
        closed: one of them is a closed enum.
    """
    if old in TEXT and new in TEXT:
        return _UTF8
    for width in SIGNED:
        kinds = (*SIGNED[width], *UNSIGNED[width])
        if old not in kinds or new not in kinds:
            continue
        if (old in SIGNED[width]) != (new in SIGNED[width]):
            return Verdict(
                "conditional",
                f"The {width * 8} bits are kept: what doesn't fit the other sign reads as another number.",
                f"Do it only if all values are from 0 to 2^{width * 8 - 1} - 1.",
            )
        advice = "`decode` puts numbers that a closed enum lacks to the unknown fields." if closed else ""
        return Verdict("safe", f"YaFF stores both as the same {width} bytes.", advice)
    if (old in SCALAR_WIDTH) != (new in SCALAR_WIDTH):
        return Verdict("unsafe", "One stores a value in its slot, the other an offset.", _KEEP_TYPE)
    if old not in SCALAR_WIDTH:
        return Verdict("unsafe", "What the offset leads to is of another form.", _KEEP_TYPE)
    widths = SCALAR_WIDTH[old], SCALAR_WIDTH[new]
    if widths[0] != widths[1]:
        rule = f"A value of {widths[0]} byte{'s' * (widths[0] > 1)} is read as one of {widths[1]}."
        return Verdict("unsafe", rule, _KEEP_TYPE)
    return Verdict("unsafe", f"The bits of {old} are read as those of {new}.", _KEEP_TYPE)


def wire_types(old: str, new: str, closed: bool) -> Verdict:
    """As `yaff_types`, the verdict of protobuf bytes."""
    if old in TEXT and new in TEXT:
        return _UTF8
    if {old, new} == {"bytes", "message"}:
        return Verdict(
            "conditional",
            "A message lies on the wire as bytes that hold it.",
            "Do it only if all values are the bytes of such a message.",
        )
    if {old, new} == {"int32", "enum"}:
        return _CLOSED if closed else Verdict("safe", "An enum lies on the wire as an int32.")
    if any(old in family and new in family for family in WIRE_FAMILIES):
        if closed:
            return _CLOSED
        return Verdict(
            "conditional",
            "The encoding is the same, and a reader cuts what its type can't hold.",
            f"Do it only if all values are values of {old} and of {new}.",
        )
    types = WIRE_TYPES[old], WIRE_TYPES[new]
    if types[0] != types[1]:
        rule = f"The wire type is another one ({types[0]}, {types[1]}), so a reader doesn't know the field."
        return Verdict("unsafe", rule, _KEEP_TYPE)
    return Verdict("unsafe", f"The bytes of {old} are read as {new}.", _KEEP_TYPE)


def slot_width(kind: str, repeated: bool) -> int:
    return OFFSET_WIDTH if repeated else SCALAR_WIDTH.get(kind, OFFSET_WIDTH)
