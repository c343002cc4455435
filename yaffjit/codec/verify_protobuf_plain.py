"""Protobuf bytes in plain Python: what is wrong with them, where, and what of them YaFF doesn't carry.

It goes through the bytes by the declared schema, without a stack of Python's. It finds the words for what
protobuf's parser and the kernel only refuse.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NoReturn

from yaffjit.errors import VerifyError
from yaffjit.plan import Plan
from yaffjit.plan.limits import MAX_DEPTH
from yaffjit.plan.model import MessagePlan
from yaffjit.plan.wire_tables import parser_habits, wire_fields
from yaffjit.schema.model import KINDS

MAX_SIZE = 2**31 - 1
MAX_TAG = 2**32 - 1

VARINT, FIXED64, BYTES, GROUP, END, FIXED32 = range(6)
FIXED_WIDTHS = {FIXED32: 4, FIXED64: 8}
FIXED_KINDS = {
    "fixed32": FIXED32,
    "sfixed32": FIXED32,
    "float": FIXED32,
    "fixed64": FIXED64,
    "sfixed64": FIXED64,
    "double": FIXED64,
}

# Occurrences by (full name of a message, field number).
Uncarried = Counter[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    number: int
    kind: str
    repeated: bool
    is_map: bool
    child: str
    numbers: frozenset[int] | None  # of a closed enum
    utf8: bool
    live: bool

    @property
    def wire_type(self) -> int:
        if self.kind in ("string", "bytes", "message"):
            return BYTES
        return GROUP if self.kind == "group" else FIXED_KINDS.get(self.kind, VARINT)


@dataclass(slots=True)
class WireType:
    """A message type on the wire."""

    name: str
    fields: dict[int, Field]
    is_entry: bool
    takes_zero: bool


@dataclass(slots=True)
class Frame:
    """A message that is being read."""

    type: WireType
    end: int
    group: int  # the number whose end tag closes it, 0 if its end does
    start: int
    via: Field | None
    step: str  # of the path, to the message
    strange: bool = False
    seen: Counter[int] = field(default_factory=Counter)
    uncarried: Uncarried = field(default_factory=Counter)


def check_plain(
    plan: Plan, full_name: str, data: bytes | memoryview, mp: MessagePlan | None = None
) -> Uncarried:
    """Check that protobuf accepts a message.

    Args:
        plan: the schema that has the message.
        full_name: the message type.
        data: the message.
        mp: the same type under YaFF; the result then counts fields that it doesn't carry, unknown ones too.

    Raises:
        VerifyError: names the message, the field path, the byte position and the two numbers compared.
    """
    return Check(plan, full_name, data, mp).run()


class Check:
    """One pass over a message, which raises where protobuf would refuse it."""

    def __init__(self, plan: Plan, full_name: str, data: bytes | memoryview, mp: MessagePlan | None) -> None:
        self.plan = plan
        self.data = data
        self.pos = 0
        self.step = ""  # to the field that is being read
        self.frames = [Frame(_type(plan, full_name, mp is not None), len(data), 0, 0, None, "")]

    def run(self) -> Uncarried:
        root = self.frames[0]
        if len(self.data) > MAX_SIZE:
            self.fail(f"{len(self.data)} bytes (at most {MAX_SIZE})", 0, len(self.data), MAX_SIZE)
        while True:
            frame = self.frames[-1]
            self.step = ""
            if self.pos == frame.end:
                if frame.group:
                    self.fail(f"group {frame.group} has no end", frame.start, frame.group, None)
                if len(self.frames) == 1:
                    return root.uncarried
                self.close()
                continue
            at = self.pos
            tag = self.tag(frame.end)
            number, wire_type = tag >> 3, tag & 7
            if number == 0 and (wire_type == END or not frame.type.takes_zero):
                self.fail("field number 0 (at least 1)", at, 0, 1)
            if wire_type == END:
                self.end_group(frame, number, at)
                continue
            f = frame.type.fields.get(number)
            self.step = self.step_of(frame, f, number)
            if f is None or not self.known(frame, f, wire_type):
                self.unknown(frame, number, wire_type, at)

    # --- fields ---

    def known(self, frame: Frame, f: Field, wire_type: int) -> bool:
        """Reads a field that the message has; False if its wire type makes it an unknown one."""
        if wire_type == f.wire_type:
            if f.kind in ("message", "group"):
                self.enter(frame, f, wire_type)
            elif f.kind in ("string", "bytes"):
                self.text(f, self.size(frame.end))
            elif wire_type == VARINT:
                if not self.value(frame, f, self.varint(frame.end)):
                    return True
            else:
                self.take(FIXED_WIDTHS[wire_type], frame.end)
        elif wire_type == BYTES and f.repeated and f.wire_type in (VARINT, FIXED32, FIXED64):
            self.packed(frame, f)
        else:
            return False
        if not f.live:
            frame.uncarried[frame.type.name, f.number] += 1
        return True

    def value(self, frame: Frame, f: Field, value: int) -> bool:
        """Whether a value counts: a number that a closed enum doesn't have is an unknown field."""
        if f.numbers is None or (value & 0xFFFFFFFF ^ 0x80000000) - 0x80000000 in f.numbers:
            return True
        frame.strange = True
        frame.uncarried[frame.type.name, f.number] += 1
        return False

    def packed(self, frame: Frame, f: Field) -> None:
        at = self.pos
        size = self.size(frame.end)
        end = self.pos + size
        if f.wire_type == VARINT:
            while self.pos < end:
                self.value(frame, f, self.varint(end))
            return
        width = FIXED_WIDTHS[f.wire_type]
        if size % width:
            self.fail(f"{size} bytes of packed values that take {width} each", at, size, width)
        self.pos = end

    def text(self, f: Field, size: int) -> None:
        if f.utf8:
            try:
                str(self.data[self.pos : self.pos + size], "utf-8")
            except UnicodeDecodeError as error:
                at = self.pos + error.start
                self.fail(f"text isn't UTF-8 from byte 0x{self.data[at]:02x} on", at, self.data[at], None)
        self.pos += size

    def unknown(self, frame: Frame, number: int, wire_type: int, at: int) -> None:
        frame.strange = True
        frame.uncarried[frame.type.name, number] += 1
        if wire_type == GROUP:
            self.skip_group(frame, number, at)
        else:
            self.skip(wire_type, frame.end, at)

    def skip(self, wire_type: int, end: int, at: int) -> None:
        if wire_type == VARINT:
            self.varint(end)
        elif wire_type == BYTES:
            size = self.size(end)
            self.pos += size
        elif wire_type in FIXED_WIDTHS:
            self.take(FIXED_WIDTHS[wire_type], end)
        else:
            self.fail(f"wire type {wire_type} (at most {FIXED32})", at, wire_type, FIXED32)

    def skip_group(self, frame: Frame, number: int, at: int) -> None:
        opened = [(number, at)]
        while opened:
            self.check_depth(len(self.frames) - 1 + len(opened), opened[-1][1])
            at = self.pos
            if at == frame.end:
                self.fail(f"group {opened[-1][0]} has no end", opened[-1][1], opened[-1][0], None)
            tag = self.tag(frame.end)
            if tag < 8 and not parser_habits().groups_take_zero:
                self.fail("field number 0 (at least 1)", at, 0, 1)
            if tag & 7 == GROUP:
                opened.append((tag >> 3, at))
            elif tag & 7 == END:
                begun, _ = opened.pop()
                if begun != tag >> 3:
                    self.fail(f"end of group {tag >> 3} within group {begun}", at, tag >> 3, begun)
            else:
                self.skip(tag & 7, frame.end, at)

    # --- messages within messages ---

    def enter(self, frame: Frame, f: Field, wire_type: int) -> None:
        at = self.pos
        end = frame.end
        if wire_type == BYTES:
            size = self.size(frame.end)
            end = self.pos + size
        self.check_depth(len(self.frames), at)
        type = _type(self.plan, f.child, f.live)
        group = f.number if wire_type == GROUP else 0
        self.frames.append(Frame(type, end, group, at, f, self.step))

    def end_group(self, frame: Frame, number: int, at: int) -> None:
        if number != frame.group:
            within = f"within group {frame.group}" if frame.group else "without its beginning"
            self.fail(f"end of group {number} {within}", at, number, frame.group)
        self.close()

    def close(self) -> None:
        frame = self.frames.pop()
        outer = self.frames[-1]
        assert frame.via is not None
        if frame.via.live:
            if frame.strange and frame.type.is_entry:
                outer.uncarried[outer.type.name, frame.via.number] += 1
            else:
                outer.uncarried.update(frame.uncarried)

    def check_depth(self, depth: int, at: int) -> None:
        if depth > MAX_DEPTH:
            self.fail(f"messages nested {depth} deep (at most {MAX_DEPTH})", at, depth, MAX_DEPTH)

    # --- bytes ---

    def tag(self, end: int) -> int:
        at = self.pos
        tag = self.varint(end, 5)
        if tag > MAX_TAG:
            self.fail(f"tag {tag} (at most {MAX_TAG})", at, tag, MAX_TAG)
        return tag

    def size(self, end: int) -> int:
        at = self.pos
        size = self.varint(end, parser_habits().size_bits // 7)
        if size > MAX_SIZE:
            self.fail(f"a size of {size} bytes (at most {MAX_SIZE})", at, size, MAX_SIZE)
        if size > end - self.pos:
            self.fail(f"a size of {size} bytes, but {end - self.pos} are left", at, size, end - self.pos)
        return size

    def varint(self, end: int, most: int = 10) -> int:
        at = self.pos
        value = 0
        for i in range(most):
            if at + i == end:
                self.fail(f"a varint doesn't end within the {i} bytes that are left", at, i, most)
            byte = self.data[at + i]
            value |= (byte & 127) << 7 * i
            if byte < 128:
                self.pos = at + i + 1
                return value & 0xFFFFFFFFFFFFFFFF
        self.fail(f"a varint has over {most} bytes", at, most + 1, most)

    def take(self, width: int, end: int) -> None:
        if width > end - self.pos:
            left = end - self.pos
            self.fail(f"a value of {width} bytes, but {left} are left", self.pos, width, left)
        self.pos += width

    # --- words ---

    def step_of(self, frame: Frame, f: Field | None, number: int) -> str:
        if f is None:
            return f"#{number}"
        if not f.repeated:
            return f.name
        index = frame.seen[number]
        frame.seen[number] += 1
        return f"{f.name}[{index}]"

    def fail(self, text: str, position: int, found: int, limit: int | None) -> NoReturn:
        steps = [frame.step for frame in self.frames[1:]] + [self.step]
        raise VerifyError(
            text,
            position,
            message=self.frames[0].type.name,
            path=".".join(step for step in steps if step),
            found=found,
            limit=limit,
        )


def _type(plan: Plan, name: str, carried: bool) -> WireType:
    """What a message type has, and what of it YaFF carries."""
    key = ("verify_protobuf", name, carried)
    known: WireType | None = plan.memo.get(key)
    if known is None:
        known = plan.memo.setdefault(key, _new_type(plan, name, carried))
    return known


def _new_type(plan: Plan, name: str, carried: bool) -> WireType:
    live = {f.number for f in plan[name].fields} if carried else set()
    fields = {}
    for wire in wire_fields(plan, name):
        d: Any = wire.descriptor
        kind = KINDS[d.type]
        closed = d.enum_type is not None and d.enum_type.is_closed
        is_message = d.message_type is not None
        fields[d.number] = Field(
            name=f"[{d.full_name}]" if d.is_extension else d.name,
            number=d.number,
            kind=kind,
            repeated=d.is_repeated,
            is_map=is_message and d.message_type.GetOptions().map_entry,
            child=d.message_type.full_name if is_message else "",
            numbers=frozenset(value.number for value in d.enum_type.values) if closed else None,
            utf8=wire.utf8,
            live=d.number in live and not d.is_extension,
        )
    extendable = plan.schema.pool.FindMessageTypeByName(name).is_extendable
    return WireType(
        name=name,
        fields=fields,
        is_entry=plan.schema.messages[name].is_map_entry,
        takes_zero=not fields and not extendable and parser_habits().fieldless_take_zero,
    )
