"""Where the fields of one protobuf message lie: the pass that a view makes over its bytes when it's opened.

What is recorded of a field, by its number, depends on what it is:

* a singular number: the position of its value;
* a singular text: begin and end;
* a singular message: begin and end, or a list of these, since its fragments are merged;
* a repeated field: an `array` of begin and end of each occurrence. A single number is a run of packed ones
  that has one.

Nothing is decoded but the numbers of closed enums, which say whether an occurrence counts.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from yaffjit.codec.verify_protobuf_plain import (
    BYTES,
    END,
    FIXED32,
    FIXED64,
    GROUP,
    MAX_SIZE,
    MAX_TAG,
    VARINT,
)
from yaffjit.errors import SchemaError
from yaffjit.plan.limits import MAX_DEPTH
from yaffjit.plan.wire_tables import parser_habits, wire_fields
from yaffjit.schema.model import KINDS

if TYPE_CHECKING:
    from yaffjit.plan import Plan
    from yaffjit.view.buffers import Data

WIDTHS = {"fixed32": 4, "sfixed32": 4, "float": 4, "fixed64": 8, "sfixed64": 8, "double": 8}
MASK64 = 2**64 - 1
# Among the numbers of fields: there were unknown ones.
STRANGE = 0

# What to do with an occurrence: `Rule.op`.
NUMBER, CLOSED, TEXT, MESSAGE, RUN = range(5)


class Malformed(Exception):
    """The bytes aren't a message; the words for it are found by another pass."""


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """A field or extension as it is on the wire."""

    name: str
    number: int
    kind: str  # schema.model.KINDS without "group"
    is_group: bool
    repeated: bool  # maps too
    is_map: bool
    explicit: bool
    oneof: str
    default: Any
    child: str  # full name of its message type
    numbers: frozenset[int] | None  # of a closed enum
    utf8: bool
    is_extension: bool
    descriptor: Any


class Rule(NamedTuple):
    """How a field is recorded that comes under a tag."""

    op: int
    number: int
    rivals: tuple[int, ...]  # the other members of its oneof, which it clears
    width: int  # bytes of each packed number where these are fixed, else 0
    members: frozenset[int]  # numbers of its closed enum


class WireType:
    """A message type on the wire.

    Attributes:
        fields: by ascending number, extensions too.
        by_number: the same.
        by_tag: the tags under which fields are known; all others are unknown fields.
        takes_zero: whether the number 0 is an unknown field too, rather than an error.
    """

    def __init__(self, plan: Plan, full_name: str) -> None:
        self.plan = plan
        self.full_name = full_name
        self.descriptor: Any = plan.schema.pool.FindMessageTypeByName(full_name)
        if self.descriptor.GetOptions().message_set_wire_format:
            raise SchemaError(f"{full_name} has no views of protobuf bytes: it's of MessageSet's own format")
        self.fields = tuple(_field(wire.descriptor, wire.utf8) for wire in wire_fields(plan, full_name))
        self.takes_zero = (
            not self.fields and not self.descriptor.is_extendable and parser_habits().fieldless_take_zero
        )
        self._oneofs: dict[str, list[int]] = {}
        for f in self.fields:
            if f.oneof:
                self._oneofs.setdefault(f.oneof, []).append(f.number)
        self.by_number = {f.number: f for f in self.fields}
        self.by_tag: dict[int, Rule] = {}
        for f in self.fields:
            self._add_rules(f, self.rivals(f.number))

    def rivals(self, number: int) -> tuple[int, ...]:
        """The other members of the oneof that a field is in."""
        members = self._oneofs.get(self.by_number[number].oneof, ())
        return tuple(member for member in members if member != number)

    def _add_rules(self, f: Field, rivals: tuple[int, ...]) -> None:
        width = WIDTHS.get(f.kind, 0)
        wire_type = {4: FIXED32, 8: FIXED64}.get(width, VARINT)
        if f.kind in ("string", "bytes", "message"):
            wire_type = GROUP if f.is_group else BYTES
        op = NUMBER
        if f.repeated:
            op = RUN
        elif f.kind in ("string", "bytes"):
            op = TEXT
        elif f.kind == "message":
            op = MESSAGE
        elif f.numbers is not None:
            op = CLOSED
        numbers = f.numbers or frozenset()
        self.by_tag[f.number << 3 | wire_type] = Rule(op, f.number, rivals, 0, numbers)
        if f.repeated and wire_type not in (BYTES, GROUP):
            self.by_tag[f.number << 3 | BYTES] = Rule(op, f.number, rivals, width, numbers)


def wire_type(plan: Plan, full_name: str) -> WireType:
    """The type of that name, made once a plan.

    Raises:
        SchemaError: it's of MessageSet's own wire format.
    """
    key = ("view.wire_type", full_name)
    known: WireType | None = plan.memo.get(key)
    if known is None:
        known = plan.memo.setdefault(key, WireType(plan, full_name))
    return known


def _field(d: Any, utf8: bool) -> Field:
    kind = KINDS[d.type]
    is_message = d.message_type is not None
    oneof = d.containing_oneof
    closed = d.enum_type is not None and d.enum_type.is_closed
    return Field(
        name=f"[{d.full_name}]" if d.is_extension else d.name,
        number=d.number,
        kind="message" if is_message else kind,
        is_group=kind == "group",
        repeated=d.is_repeated,
        is_map=is_message and d.message_type.GetOptions().map_entry,
        explicit=d.has_presence,
        oneof="" if oneof is None else oneof.name,
        default=None if d.is_repeated or is_message else d.default_value,
        child=d.message_type.full_name if is_message else "",
        numbers=frozenset(value.number for value in d.enum_type.values) if closed else None,
        utf8=utf8,
        is_extension=d.is_extension,
        descriptor=d,
    )


def scan(typ: WireType, data: Data, pos: int, end: int, depth: int, found: dict[int, Any]) -> bool:
    """Record where the fields of the message in ``data[pos:end]`` lie; whether there were unknown ones.

    Raises:
        Malformed, IndexError: it isn't a message.
    """
    known = typ.by_tag.get
    strange = False
    while pos < end:
        tag = data[pos]
        if tag < 128:
            pos += 1
        else:
            tag, pos = read_tag(data, pos, end)
        wire_type = tag & 7
        if wire_type == BYTES:
            size = data[pos]
            if size < 128:
                start = pos + 1
            else:
                size, start = read_size(data, pos, end)
            pos = stop = start + size
        elif wire_type == VARINT:
            start = pos
            pos = stop = pos + 1 if data[pos] < 128 else end_of_varint(data, pos, end)
        elif wire_type == FIXED32:
            start = pos
            pos = stop = pos + 4
        elif wire_type == FIXED64:
            start = pos
            pos = stop = pos + 8
        elif wire_type == GROUP:
            start = pos
            stop, pos = end_of_group(data, pos, end, tag >> 3, depth)
        else:
            raise Malformed
        if pos > end:
            raise Malformed
        rule = known(tag)
        if rule is None:
            if tag < 8 and not typ.takes_zero:
                raise Malformed
            strange = True
            continue
        op, number, rivals, width, members = rule
        if op == NUMBER:
            found[number] = start
        elif op == RUN:
            if width and (stop - start) % width:
                raise Malformed
            spans = found.get(number)
            if spans is None:
                found[number] = array("q", (start, stop))
            else:
                spans.append(start)
                spans.append(stop)
        elif op == TEXT:
            found[number] = start, stop
        elif op == MESSAGE:
            before = found.get(number)
            if before is None:
                found[number] = start, stop
            elif type(before) is list:
                before.append((start, stop))
            else:
                found[number] = [before, (start, stop)]
        elif signed32(varint_at(data, start)) in members:
            found[number] = start
        else:
            strange = True
            continue
        for rival in rivals:
            found.pop(rival, None)
    return strange


class Occurrence(NamedTuple):
    """One field in a message's bytes; positions are absolute."""

    number: int
    wire_type: int
    at: int  # where its tag is
    start: int  # of its value, behind the size of a text
    stop: int  # of its value; of a group before its end tag
    after: int


def next_field(data: Data, pos: int, end: int, depth: int = 0) -> Occurrence:
    """The field at ``pos`` of any message that ends at ``end``, which is more.

    Raises:
        Malformed, IndexError: there's none.
    """
    tag, start = read_tag(data, pos, end)
    number, wire_type = tag >> 3, tag & 7
    if wire_type == GROUP:
        stop, after = end_of_group(data, start, end, number, depth)
        return Occurrence(number, wire_type, pos, start, stop, after)
    if wire_type == BYTES:
        size, start = read_size(data, start, end)
        stop = start + size
    else:
        stop = end_of_value(data, wire_type, start, end)
    if stop > end:
        raise Malformed
    return Occurrence(number, wire_type, pos, start, stop, stop)


def read_tag(data: Data, pos: int, end: int) -> tuple[int, int]:
    """The tag at ``pos`` and the position behind it; at most five bytes and 32 bits."""
    tag = shift = 0
    for at in range(pos, min(pos + 5, end)):
        byte = data[at]
        tag |= (byte & 127) << shift
        if byte < 128:
            if tag > MAX_TAG:
                break
            return tag, at + 1
        shift += 7
    raise Malformed


def read_size(data: Data, pos: int, end: int) -> tuple[int, int]:
    """The size at ``pos``, which isn't more than what is left behind it, and the position there."""
    size = shift = 0
    for at in range(pos, min(pos + parser_habits().size_bits // 7, end)):
        byte = data[at]
        size |= (byte & 127) << shift
        if byte < 128:
            size &= MASK64
            if size > MAX_SIZE or size > end - at - 1:
                break
            return size, at + 1
        shift += 7
    raise Malformed


def end_of_varint(data: Data, pos: int, end: int) -> int:
    """The position behind a varint of at most ten bytes."""
    for at in range(pos, min(pos + 10, end)):
        if data[at] < 128:
            return at + 1
    raise Malformed


def end_of_value(data: Data, wire_type: int, pos: int, end: int) -> int:
    """The position behind a number, perhaps beyond ``end``."""
    if wire_type == VARINT:
        return end_of_varint(data, pos, end)
    if wire_type == FIXED32:
        return pos + 4
    if wire_type == FIXED64:
        return pos + 8
    raise Malformed


def end_of_group(data: Data, pos: int, end: int, number: int, depth: int) -> tuple[int, int]:
    """The position of the tag that ends a group, and the one behind it."""
    takes_zero = parser_habits().groups_take_zero
    opened = [number]
    while depth + len(opened) <= MAX_DEPTH:
        at = pos
        tag, pos = read_tag(data, pos, end)
        if tag < 8 and not takes_zero:
            break
        wire_type = tag & 7
        if wire_type == GROUP:
            opened.append(tag >> 3)
        elif wire_type == END:
            if opened.pop() != tag >> 3:
                break
            if not opened:
                return at, pos
        elif wire_type == BYTES:
            size, pos = read_size(data, pos, end)
            pos += size
        else:
            pos = end_of_value(data, wire_type, pos, end)
    raise Malformed


def varint_at(data: Data, pos: int) -> int:
    """The value of a varint that was seen to end, without its bits above 64."""
    value = data[pos]
    if value < 128:
        return value
    value &= 127
    shift = 7
    while True:
        pos += 1
        byte = data[pos]
        value |= (byte & 127) << shift
        if byte < 128:
            return value & MASK64
        shift += 7


def signed32(value: int) -> int:
    return (value & 0xFFFFFFFF ^ 0x80000000) - 0x80000000
