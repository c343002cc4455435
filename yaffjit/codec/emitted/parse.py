"""Reads one message's fields into its slots, by code of the message type's own.

After each field the tags of the next ones in the schema are compared first: most messages have their fields
in order, and a processor foresees that. All else goes through one switch over tags.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from yaffjit.codec.emitted import runtime as rt
from yaffjit.codec.emitted import slots as place
from yaffjit.codec.emitted.code import I64, Code, Value, Variable
from yaffjit.codec.emitted.cursor import Cursor
from yaffjit.codec.emitted.records import LiveField, Message, WireField
from yaffjit.plan import tables as yaff
from yaffjit.plan import wire_tables as tables

if TYPE_CHECKING:
    from yaffjit.codec.emitted.messages import Messages

_AHEAD = 3  # how many of the next tags are compared one by one
_AHEAD_OF_LARGE = 1
_LARGE = 32  # fields
_MASK32 = 0xFFFFFFFF
_ELEMENT_OPS = {tables.PACKED_FIXED32: 4, tables.PACKED_FIXED64: 8}
PACKED_OPS = (tables.PACKED_VARINT, tables.PACKED_ENUM, *_ELEMENT_OPS)


@dataclass(frozen=True)
class Tag:
    """A field by one of its wire types."""

    field: WireField
    wire_type: int
    op: int

    @property
    def value(self) -> int:
        return self.field.number << 3 | self.wire_type

    @property
    def nbytes(self) -> int:
        return tag_nbytes(self.field.number)

    @property
    def bytes(self) -> int:
        """Its bytes as a little-endian number."""
        rest, made, shift = self.value, 0, 0
        while rest > 127:
            made |= (rest & 127 | 128) << shift
            rest, shift = rest >> 7, shift + 8
        return made | rest << shift


def tag_nbytes(number: int) -> int:
    return max(1, ((number << 3).bit_length() + 6) // 7)


class Parser:
    """The code that reads a message from ``start`` to ``limit``.

    Args:
        slots: the address of the message's slots, None where it is only checked.
        depth: of the message, for those within it.
    """

    def __init__(
        self,
        messages: Messages,
        code: Code,
        message: Message,
        state: Value,
        slots: Value | None,
        depth: Value,
    ) -> None:
        self.messages = messages
        self.runtime = messages.runtime
        self.code = code
        self.message = message
        self.state = state
        self.slots = slots
        self.depth = depth
        self.layout = place.Slots(message)
        self.pos: Variable
        self.limit: Any

    def parse(self, start: Value, nbytes: Value) -> None:
        """Goes on behind the message, or fails."""
        code = self.code
        self.limit = code.add(start, nbytes)
        self.cursor = Cursor(self.messages, code, start, self.limit)
        self.pos = self.cursor.pos
        self.done, self.end, self.dispatch, self.anything = (
            code.block(name) for name in ("done", "end", "dispatch", "anything")
        )
        self.tags = list(self._tags())
        self.bodies = [code.block(f"field{tag.field.number}") for tag in self.tags]
        self._next(0)
        for index, tag in enumerate(self.tags):
            code.at(self.bodies[index])
            self._field(tag)
            self._next(self._following(index))
        code.at(self.anything)
        self._to_end_or(self.dispatch)
        code.at(self.dispatch)
        self._any_tag()
        code.at(self.end)
        code.branch(code.is_(self.pos.get(), "==", self.limit), self.done, code.failing(rt.NOT_MINE))
        code.at(self.done)

    def _tags(self) -> Any:
        for field in self.message.wire:
            # Packed values first: that's how they are written today.
            for wire_type in sorted(field.ops, key=lambda w: -field.ops[w]):
                if field.ops[wire_type] != tables.GROUP:
                    yield Tag(field, wire_type, field.ops[wire_type])

    def _is_chained(self, tag: Tag) -> bool:
        return self.message.live[tag.field.live].kind not in (yaff.VALUE, yaff.TEXT, yaff.SINGLE)

    def _following(self, index: int) -> int:
        """The tag that most likely comes after one."""
        tag = self.tags[index]
        if tag.op in PACKED_OPS:
            return index + 2  # behind the same field's without packing
        return index if tag.field.live >= 0 and self._is_chained(tag) else index + 1

    def _to_end_or(self, block: Any) -> None:
        """At most one byte can't be a field."""
        code = self.code
        code.branch(code.is_(code.sub(self.limit, self.pos.get()), "<", 2), self.end, block)

    def _next(self, index: int) -> None:
        """Go on with what lies there, most likely the tag ``index`` or one soon after it."""
        code = self.code
        ahead = _AHEAD if len(self.message.wire) <= _LARGE else _AHEAD_OF_LARGE
        candidates = [i for i in range(index, min(index + ahead, len(self.tags))) if self.tags[i].nbytes <= 2]
        if not candidates:
            code.go(self.anything)
            return
        going = code.block()
        self._to_end_or(going)
        code.at(going)
        pos = self.pos.get()
        words = {1: code.load(pos, 8), 2: code.load(pos, 16)}
        for i in candidates:
            tag = self.tags[i]
            hit, other = code.block(), code.block()
            code.branch(code.is_(words[tag.nbytes], "==", tag.bytes), hit, other)
            code.at(hit)
            self.pos.add(tag.nbytes)
            if tag.nbytes > 1:
                has_value = code.is_(self.pos.get(), "<", self.limit)
                code.branch(has_value, self.bodies[i], code.failing(rt.NOT_MINE))
            else:
                code.go(self.bodies[i])
            code.at(other)
        code.go(self.dispatch)

    def _any_tag(self) -> None:
        code = self.code
        start = self.pos.get()
        tag = self.cursor.varint()
        nbytes = code.sub(self.pos.get(), start)
        # Padded tags and number 0 are left to others, and so is what has no value.
        least = code.shl(1, code.mul(code.sub(nbytes, 1), 7))
        code.fail_if(code.below(tag, code.select(code.is_(nbytes, "==", 1), 8, least)), rt.NOT_MINE)
        code.fail_if(code.below(_MASK32, tag), rt.NOT_MINE)
        code.fail_if(code.is_(self.pos.get(), ">=", self.limit), rt.NOT_MINE)
        unknown = code.block("unknown")
        switch = code.b.switch(tag, unknown)
        for known, body in zip(self.tags, self.bodies, strict=True):
            switch.add_case(I64(known.value), body)
        code.at(unknown)
        if self.message.is_entry:
            code.go(code.failing(rt.NOT_MINE))
            return
        skips = {wire_type: code.block(f"skip{wire_type}") for wire_type in (0, 1, 2, 5)}
        counted = code.block("counted")
        switch = code.b.switch(code.and_(tag, 7), code.failing(rt.NOT_MINE))
        for wire_type, block in skips.items():
            switch.add_case(I64(wire_type), block)
            code.at(block)
            if wire_type == 0:
                self.cursor.varint()
            elif wire_type == 2:
                self.pos.add(self.cursor.size())
            else:
                self.cursor.fixed(64 if wire_type == 1 else 32)
            code.go(counted)
        code.at(counted)
        if self.slots is not None:
            self.runtime.uncarried(code, self.state, self.message.row, code.shr(tag, 3))
        code.go(self.anything)

    def _field(self, tag: Tag) -> None:
        """A field whose tag was read."""
        live = self.message.live[tag.field.live] if tag.field.live >= 0 else None
        op = tag.op
        if self.slots is None or live is None:
            self._uncarried(tag)
        elif self._is_chained(tag):
            self._chained(tag, self._slot(tag.field.live))
        elif live.kind == yaff.VALUE:
            value = self.cursor.scalar(op, tag.field.enum)
            self._set_member(tag.field)
            slot = self._slot(tag.field.live)
            self.code.store(self.code.add(slot, place.VALUE), value)
            if live.explicit:
                self.code.store(self.code.add(slot, place.IS_SET), 1)
        else:
            self._single(tag, live)

    def _slot(self, index: int) -> Any:
        return self.code.add(self.slots, self.layout.fields[index])

    def _set_member(self, field: WireField) -> None:
        """The oneof's member that is set must not be another one."""
        if field.oneof >= 0 and self.slots is not None:
            code = self.code
            word = code.add(self.slots, self.layout.oneofs + 8 * field.oneof)
            held = code.load(word)
            another = code.both(code.is_(held, "!=", 0), code.is_(held, "!=", field.number))
            code.fail_if(another, rt.NOT_MINE)
            code.store(word, field.number)

    def _single(self, tag: Tag, live: LiveField) -> None:
        """A text or a message."""
        code = self.code
        slot = self._slot(tag.field.live)
        nbytes = self.cursor.size()
        pos = self.pos.get()
        self._set_member(tag.field)
        if tag.op != tables.TEXT:
            code.fail_if(code.is_(code.load(code.add(slot, place.START)), "!=", 0), rt.NOT_MINE)
        start = pos
        if live.kind == yaff.TEXT and not live.explicit:
            start = code.select(code.is_(nbytes, "==", 0), 0, pos)
        code.store(code.add(slot, place.START), start)
        code.store(code.add(slot, place.NBYTES), nbytes)
        self.pos.add(nbytes)

    def _chained(self, tag: Tag, slot: Any) -> None:
        """An occurrence of a repeated field, which must lie right behind the one before it."""
        code = self.code
        before = code.sub(self.pos.get(), tag.nbytes)
        if tag.op in PACKED_OPS:
            nbytes = self.cursor.size()
            pos = self.pos.get()
            if tag.op in _ELEMENT_OPS:
                odd = code.and_(nbytes, _ELEMENT_OPS[tag.op] - 1)
                code.fail_if(code.is_(odd, "!=", 0), rt.NOT_MINE)
            with code.when(code.is_(nbytes, "!=", 0)):
                code.fail_if(code.is_(code.load(code.add(slot, place.START)), "!=", 0), rt.NOT_MINE)
                code.store(code.add(slot, place.START), pos)
                code.store(code.add(slot, place.END), code.add(pos, nbytes))
                code.store(code.add(slot, place.COUNT), place.PACKED)
                self.pos.add(nbytes)
            return
        if tag.op in (tables.TEXT, tables.UTF8_TEXT, tables.CONTENT):
            self.pos.add(self.cursor.size())
        else:
            self.cursor.scalar(tag.op, tag.field.enum)
        with code.either(code.is_(code.load(code.add(slot, place.START)), "==", 0)) as (first, more):
            with first:
                code.store(code.add(slot, place.START), before)
                code.store(code.add(slot, place.COUNT), 1)
            with more:
                count = code.load(code.add(slot, place.COUNT))
                code.fail_if(code.is_(code.load(code.add(slot, place.END)), "!=", before), rt.NOT_MINE)
                code.fail_if(code.is_(count, "<", 0), rt.NOT_MINE)
                code.store(code.add(slot, place.COUNT), code.add(count, 1))
        code.store(code.add(slot, place.END), self.pos.get())

    def _uncarried(self, tag: Tag) -> None:
        """A known field that YaFF doesn't carry, which protobuf checks all the same."""
        code = self.code
        op = tag.op
        if op < tables.TEXT:
            self.cursor.scalar(op, tag.field.enum)
        else:
            nbytes = self.cursor.size()
            pos = self.pos.get()
            if op == tables.UTF8_TEXT:
                self.runtime.check_text(code, pos, nbytes)
            elif op == tables.CONTENT:
                self.messages.check(code, tag.field.child, self.state, pos, nbytes, self.depth)
            elif op == tables.PACKED_VARINT:
                self.runtime.check_varints(code, pos, code.add(pos, nbytes))
            elif op == tables.PACKED_ENUM:
                code.fail_if(code.is_(nbytes, "!=", 0), rt.NOT_MINE)
            elif op in _ELEMENT_OPS:
                odd = code.and_(nbytes, _ELEMENT_OPS[op] - 1)
                code.fail_if(code.is_(odd, "!=", 0), rt.NOT_MINE)
            self.pos.add(nbytes)
        self._set_member(tag.field)
        if self.slots is not None:
            self.runtime.uncarried(code, self.state, self.message.row, tag.field.number)
