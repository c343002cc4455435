"""What the bytes of one YaFF buffer are: the parts that a picture of it shows.

It takes bytes from anywhere: whatever isn't where it should be ends the walk, and what was found is kept.
"""

from __future__ import annotations

import contextlib
import struct
from typing import Any

from yaffjit.codec.locate import EXPLICIT, FLAT, SIZED, locate, presence, read_i32, read_u16, read_u32
from yaffjit.drawing import Drawing, Part, whole
from yaffjit.errors import VerifyError
from yaffjit.plan.model import SCALAR_CODE, FieldPlan, MessagePlan
from yaffjit.schema.enums import enum_name

MOST_PARTS = 5000
MOST_ELEMENTS = 64  # of an array that are parts of their own
SHOWN_NUMBERS = 8


class _Outside(Exception):
    """A part doesn't lie in the buffer."""


class _Full(Exception):
    """There are many parts already."""


_BROKEN = (_Outside, VerifyError, IndexError, struct.error)


def draw(mp: MessagePlan, data: bytes) -> Drawing:
    """A picture of a YaFF buffer, whether it's well-formed or not."""
    from yaffjit.codec.verify import verify

    fault = ""
    try:
        verify(mp, data)
    except VerifyError as error:
        fault = str(error)
    title = f"{mp.full_name}, {len(data):,} byte{'' if len(data) == 1 else 's'} of YaFF"
    return Drawing(title, data, whole(_Walk(mp, data).parts, len(data)), fault)


class _Walk:
    """One walk over one buffer; positions are absolute."""

    def __init__(self, mp: MessagePlan, data: bytes) -> None:
        self.mp = mp
        self.data = data
        self.parts: list[Part] = []
        self.seen: set[tuple[str, int]] = set()  # objects and tables: others may share them
        self.waiting: list[tuple[MessagePlan, int, str]] = []
        with contextlib.suppress(_Full, *_BROKEN):
            self.root()

    def add(self, begin: int, nbytes: int, role: str, path: str, value: str) -> None:
        end = begin + nbytes
        if begin < 0 or end > len(self.data):
            raise _Outside
        if len(self.parts) >= MOST_PARTS:
            raise _Full
        self.parts.append(Part(begin, end, role, path, value))

    def is_new(self, what: str, at: int) -> bool:
        known = (what, at) in self.seen
        self.seen.add((what, at))
        return not known

    def root(self) -> None:
        at = read_u32(self.data, 0)[0]
        self.add(0, 4, "root offset", "", f"-> 0x{at:04x}")
        self.waiting.append((self.mp, at, ""))
        while self.waiting:
            mp, at, path = self.waiting.pop()
            if self.is_new(mp.full_name, at):
                with contextlib.suppress(*_BROKEN):
                    self.message(mp, at, path)

    def message(self, mp: MessagePlan, at: int, path: str) -> None:
        if mp.layout == "fixed":
            for f in mp.fields:
                self.slot(mp, f, at, path, at + f.offset, "fixed")
            return
        header = read_u16(self.data, at)[0]
        highest = max((header & ~FLAT) >> 2, 1) - 1
        layout = "flat" if header & FLAT else "sparse"
        self.add(at, 2, "header", path, f"{layout}, ids to {highest}")
        if layout == "flat":
            bits = (2 if header & SIZED else 0) + (header & EXPLICIT)
            nbytes = (highest * bits + 7) // 8
            if nbytes:
                what = {1: "presence", 2: "sizes", 3: "presence and sizes"}[bits]
                self.add(at - nbytes, nbytes, "presence", path, what)
        elif highest:
            end = at + read_i32(self.data, at - 4)[0]
            nbytes = highest + max(highest - 31, 0)
            self.add(at - 4, 4, "table", path, f"ends at 0x{end:04x}")
            if self.is_new(f"table of {nbytes}", end):
                self.add(end - nbytes, nbytes, "table", path, "where each id lies, from the end")
        for f in mp.fields:
            pos = locate(mp, f)(self.data, at) if f.id <= highest else -1
            if pos >= 0:
                self.slot(mp, f, at, path, pos, layout)

    def slot(self, mp: MessagePlan, f: FieldPlan, at: int, path: str, pos: int, layout: str) -> None:
        path = f"{path}.{f.name}" if path else f.name
        if f.out_of_line:
            offset = read_u32(self.data, pos)[0]
            if not offset:
                self.add(pos, f.width, "slot", path, "absent")
                return
            self.add(pos, f.width, "offset", path, f"-> 0x{at + offset:04x}")
            with contextlib.suppress(*_BROKEN):
                self.target(mp, f, at + offset, path)
            return
        bits = int.from_bytes(self.data[pos : pos + f.width], "little")
        if layout != "sparse":
            bits ^= f.default_bits
        value = self.number(f, bits)
        if f.explicit and not presence(mp, f)(self.data, at):
            value = "absent"
        self.add(pos, f.width, "slot", path, value)

    def number(self, f: FieldPlan, bits: int) -> str:
        value: Any = struct.unpack(f"<{SCALAR_CODE[f.kind]}", bits.to_bytes(f.width, "little"))[0]
        return enum_name(self.mp.plan.schema, f.enum, value) if f.enum else repr(value)

    def target(self, mp: MessagePlan, f: FieldPlan, at: int, path: str) -> None:
        """What an offset leads to."""
        if f.kind == "message" and not f.repeated:
            self.waiting.append((mp.child(f), at, path))
        elif not self.is_new("object", at):
            return
        elif f.repeated:
            self.array(mp, f, at, path)
        else:
            self.text(f, at, path)

    def text(self, f: FieldPlan, at: int, path: str) -> None:
        nbytes = read_u32(self.data, at)[0]
        self.add(at, 4, "length", path, f"{nbytes:,}")
        held = self.data[at + 4 : at + 4 + min(nbytes, 200)]
        shown = repr(held.decode(errors="replace")) if f.kind == "string" else repr(bytes(held))
        self.add(at + 4, nbytes, "text", path, shown)
        self.add(at + 4 + nbytes, 1, "text", path, "terminator")

    def array(self, mp: MessagePlan, f: FieldPlan, at: int, path: str) -> None:
        count = read_u32(self.data, at)[0]
        self.add(
            at, 4, "length", path, f"{count:,} {'pair' if f.is_map else 'element'}{'' if count == 1 else 's'}"
        )
        first, width = at + 4, f.element_width
        if f.kind not in ("message", "string", "bytes"):
            code = SCALAR_CODE[f.kind]
            shown = min(count, SHOWN_NUMBERS, max(len(self.data) - first, 0) // width)
            values = struct.unpack_from(f"<{shown}{code}", self.data, first)
            names = [
                enum_name(self.mp.plan.schema, f.enum, value) if f.enum else repr(value) for value in values
            ]
            more = ", ..." if count > shown else ""
            self.add(first, count * width, "elements", path, f"[{', '.join(names)}{more}]")
            return
        listed = min(count, MOST_ELEMENTS)
        for i in range(listed):
            element = f"{path}[{i}]"
            pos = first + i * width
            if f.inlined:
                child = mp.child(f)
                for member in child.fields:
                    self.slot(child, member, pos, element, pos + member.offset, "fixed")
                continue
            target = first + read_u32(self.data, pos)[0]
            self.add(pos, width, "offset", element, f"-> 0x{target:04x}")
            if f.kind == "message":
                self.waiting.append((mp.child(f), target, element))
            elif self.is_new("object", target):
                self.text(f, target, element)
        if listed < count:
            self.add(
                first + listed * width, (count - listed) * width, "elements", path, f"{count - listed:,} more"
            )
