"""What may follow a column's path after a colon: how its values are wanted, as ``id:int32``."""

from __future__ import annotations

from dataclasses import dataclass

from yaffjit.plan.model import SCALAR_CODE, FieldPlan, MessagePlan

TIMESTAMP = "google.protobuf.Timestamp"
DURATION = "google.protobuf.Duration"
WRAPPERS = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
DTYPES = {
    "?": "bool",
    "i": "int32",
    "I": "uint32",
    "q": "int64",
    "Q": "uint64",
    "f": "float32",
    "d": "float64",
}
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
UNITS = ("ns", "us", "ms", "s")
CATEGORY = "category"
DICTIONARY = "dictionary"


@dataclass(frozen=True, slots=True)
class Form:
    """How a column holds each of its values.

    Attributes:
        what: "number", "text", "time", "length" or "which" (of a oneof's members is set).
        dtype: numpy's name of what is stored; "uint8" for text.
        fits: all that may be asked for instead.
    """

    what: str
    dtype: str
    fits: tuple[str, ...]


LENGTH = Form("length", "int64", INTEGERS)
WHICH = Form("which", "int32", (*INTEGERS, CATEGORY))


def form_of(mp: MessagePlan, f: FieldPlan) -> Form | None:
    """How one value of a field is held; None of messages, but for Timestamp and Duration.

    Args:
        mp: the message that has the field.
        f: it, or one like its elements.
    """
    if f.kind in ("string", "bytes"):
        return Form("text", "uint8", (DICTIONARY,))
    if f.kind == "message":
        name = time_name(mp.child(f))
        return Form("time", f"{name}[ns]", tuple(f"{name}[{unit}]" for unit in UNITS)) if name else None
    dtype = DTYPES[SCALAR_CODE[f.kind]]
    if f.kind == "bool":
        return Form("number", dtype, (dtype, *INTEGERS, *FLOATS))
    if f.kind in ("float", "double"):
        return Form("number", dtype, FLOATS)
    category = (CATEGORY,) if f.kind == "enum" else ()
    return Form("number", dtype, (*INTEGERS, *FLOATS, *category))


def time_name(mp: MessagePlan) -> str:
    """What numpy calls values of this message: "datetime64", "timedelta64", or "" for other messages."""
    if not {"seconds", "nanos"} <= mp.by_name.keys():
        return ""
    return {TIMESTAMP: "datetime64", DURATION: "timedelta64"}.get(mp.full_name, "")


def wrapped(mp: MessagePlan) -> FieldPlan | None:
    """The field that a message of protobuf's wrappers is for, such as Int32Value; None of others."""
    return mp.by_name.get("value") if mp.full_name in WRAPPERS else None
