"""A schema with maps of all kinds of keys and values, and with lists of pairs to be read as maps."""

from __future__ import annotations

from typing import Any

import numpy as np

INTEGERS = (
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
)
VALUES = ("int64", "uint64", "float", "bool", "Color", "string", "bytes", "Leaf")
LISTED = {"text": "string", "signed": "int32", "unsigned": "uint64", "flag": "bool"}
LAYOUTS = ("fixed", "flat", "sparse", "dynamic")


def source() -> str:
    lines = ['syntax = "proto3"; package maps; import "yaff/proto/options.proto";']
    lines.append("enum Color { NONE = 0; RED = 2; } message Leaf { int32 n = 1; string s = 2; }")
    fields = "".join(f"map<{kind}, double> {kind} = {i + 1};" for i, kind in enumerate(INTEGERS))
    fields += "map<bool, int32> flags = 11;"
    for layout in LAYOUTS:
        option = f"option (yaff.proto.message) = {{layout: LAYOUT_{layout.upper()}}};"
        lines.append(f"message {layout.title()} {{ {option} {fields} }}")
    fields = "".join(f"map<string, {kind}> {kind.lower()} = {i + 1};" for i, kind in enumerate(VALUES))
    lines.append(f"message Values {{ {fields} string key = 20; bytes raw = 21; uint64 number = 22; }}")
    lines.append("message Lists {")
    for i, (name, kind) in enumerate(LISTED.items()):
        lines.append(f"message {name.title()} {{ option (yaff.proto.message) = {{layout: LAYOUT_FIXED}};")
        lines.append(f"  {kind} key = 1; int32 value = 2; }} repeated {name.title()} {name} = {i + 1};")
    fields = "".join(f"map<{kind}, int32> {name} = {i + 1};" for i, (name, kind) in enumerate(LISTED.items()))
    lines.append(f"}} message Read {{ {fields} }}")
    return "\n".join(lines)


def limits(kind: str) -> tuple[int, int]:
    bits = int(kind[-2:])
    unsigned = kind.startswith(("u", "fixed"))
    return (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def native(key: int) -> Any:
    return np.uint64(key) if key >= 2**63 else key
