"""One message with a repeated field of every kind, in each of the four layouts."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaffjit

LAYOUTS = ("fixed", "flat", "sparse", "dynamic")
INTEGERS = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
    "sint32": (-(2**31), 2**31 - 1),
    "sint64": (-(2**63), 2**63 - 1),
    "fixed32": (0, 2**32 - 1),
    "fixed64": (0, 2**64 - 1),
    "sfixed32": (-(2**31), 2**31 - 1),
    "sfixed64": (-(2**63), 2**63 - 1),
    "Color": (-7, 2),
}
KINDS = (*INTEGERS, "bool", "float", "double", "string", "bytes")


def _proto(layout: str) -> str:
    name = layout.title()
    lines = [f"message {name} {{", f"  option (yaff.proto.message) = {{layout: LAYOUT_{layout.upper()}}};"]
    lines += [f"  repeated {kind} {kind.lower()}s = {i};" for i, kind in enumerate(KINDS, 1)]
    number = len(KINDS) + 1
    lines += [f"  repeated {name} items = {number}; repeated Point points = {number + 1};"]
    lines += [f"  double price = {number + 2}; int32 size = {number + 3}; {name} child = {number + 4};"]
    lines += [f"  repeated double doubles2 = {number + 5}; string name = {number + 6};", "}"]
    return "\n".join(lines)


def source() -> str:
    header = 'syntax = "proto3"; package arrays; import "yaff/proto/options.proto";'
    fixed = "option (yaff.proto.message) = {layout: LAYOUT_FIXED};"
    point = f"message Point {{ {fixed} int32 x = 1; string name = 2; }}"
    return "\n".join([header, "enum Color { NONE = 0; RED = 2; }", point, *map(_proto, LAYOUTS)])


@cache
def schema() -> yaffjit.Schema:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "arrays.proto"
        path.write_text(source())
        return yaffjit.load_schema(path)


def message_type(layout: str = "dynamic") -> yaffjit.MessageType:
    return schema()[f"arrays.{layout.title()}"]


def content(seed: int, depth: int = 2) -> dict[str, Any]:
    """Field values of a message: arrays of up to 5 elements, limits and small numbers among them."""
    draw = random.Random(seed)

    def count() -> int:
        return draw.choice((0, 1, 2, 5))

    found: dict[str, Any] = {}
    for kind, limits in INTEGERS.items():
        found[f"{kind.lower()}s"] = [draw.choice((*limits, 1, 2, 2)) for _ in range(count())]
    found["bools"] = [draw.random() < 0.5 for _ in range(count())]
    for name in ("floats", "doubles", "doubles2"):
        found[name] = [draw.choice((0.1, 0.2, 2.0, -0.0, 1e17, -1e17)) for _ in range(2 * count())]
    found["strings"] = [draw.choice(("", "a", "tea", "über", "日本")) for _ in range(count())]
    found["bytess"] = [draw.choice((b"", b"a", b"\xff\0")) for _ in range(count())]
    found["points"] = [{"x": draw.randrange(9), "name": draw.choice("xyz")} for _ in range(count())]
    found.update(price=draw.random(), size=draw.randrange(100), name=draw.choice(("", "n", "m")))
    if depth:
        found["items"] = [content(draw.randrange(2**30), depth - 1) for _ in range(count())]
        found["child"] = content(draw.randrange(2**30), depth - 1)
    return found


def views(layout: str, message: Any) -> list[Any]:
    """Views of a message in each form that its layout has."""
    of = message_type(layout)
    return [
        of.view(of.encode(message, form))
        for form in (("flat", "sparse") if layout == "dynamic" else ("flat",))
    ]
