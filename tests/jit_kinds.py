"""One message with every kind of scalar, plain and with presence, in each of the four layouts."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaffjit

LAYOUTS = ("fixed", "flat", "sparse", "dynamic")
KINDS = (
    "double",
    "float",
    "int32",
    "int64",
    "uint32",
    "uint64",
    "sint32",
    "sint64",
    "fixed32",
    "fixed64",
    "sfixed32",
    "sfixed64",
    "bool",
    "Color",
)
_LIMITS = {
    "double": (-1.5e300, 5e-324),
    "float": (-1.25, float.fromhex("0x1.fffffep+127")),
    "bool": (True, True),
    "Color": (-7, 2),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint32": (1, 2**32 - 1),
    "uint64": (2**63, 2**64 - 1),
}
_LIKE = {
    "sint32": "int32",
    "sfixed32": "int32",
    "sint64": "int64",
    "sfixed64": "int64",
    "fixed32": "uint32",
    "fixed64": "uint64",
}


def values(kind: str) -> tuple[Any, Any]:
    """Two values of a kind, at its limits where it has any."""
    return _LIMITS[_LIKE.get(kind, kind)]


def _proto(layout: str) -> str:
    lines = [f"message {layout.title()} {{"]
    lines.append(f"  option (yaff.proto.message) = {{layout: LAYOUT_{layout.upper()}}};")
    for i, kind in enumerate(KINDS):
        lines.append(f"  {kind} plain_{kind.lower()} = {2 * i + 1};")
        lines.append(f"  optional {kind} maybe_{kind.lower()} = {2 * i + 2};")
    number = 2 * len(KINDS) + 1
    lines.append(f"  {layout.title()} child = {number};")
    lines.append(f"  string text = {number + 1}; repeated int32 many = {number + 2};")
    lines.append(f"  map<int32, int32> pairs = {number + 3}; bytes raw = {number + 4};")
    if layout != "fixed":
        lines.append(f"  oneof pick {{ int32 number = {number + 5}; {layout.title()} other = {number + 6};")
        lines.append(f"    string name = {number + 7}; bool flag = {number + 8}; }}")
    lines.append("}")
    return "\n".join(lines)


def source() -> str:
    header = 'syntax = "proto3"; package kinds; import "yaff/proto/options.proto";'
    return "\n".join([header, "enum Color { NONE = 0; RED = 2; }", *map(_proto, LAYOUTS)])


@cache
def schema() -> yaffjit.Schema:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "kinds.proto"
        path.write_text(source())
        return yaffjit.load_schema(path)


def message_type(layout: str) -> yaffjit.MessageType:
    return schema()[f"kinds.{layout.title()}"]


def contents(layout: str) -> dict[str, dict[str, Any]]:
    """Named field values of a message: nothing set, all at one limit or the other, zeros that are set."""
    both = [(kind.lower(), values(kind)) for kind in KINDS]
    low = {f"{prefix}_{name}": value[0] for name, value in both for prefix in ("plain", "maybe")}
    high = {f"{prefix}_{name}": value[1] for name, value in both for prefix in ("plain", "maybe")}
    zeros = {f"maybe_{name}": type(value[0])(0) for name, value in both}
    cases = {
        "empty": {},
        "low": low,
        "high": high,
        "plain only": {"plain_int64": -5},
        "one": {"maybe_bool": True},
    }
    if layout != "fixed":
        cases["zeros"] = zeros  # a fixed message can't hold them
    cases["nested"] = {**high, "child": {**low, "child": {}}}
    return cases
