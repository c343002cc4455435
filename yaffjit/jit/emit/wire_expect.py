"""Which field comes next in a message: mostly the next one of the schema, so that is tried first.

A chain of comparisons gives each field branches of its own, which a processor predicts better than one
look-up of all tags.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llvmlite import ir

from yaffjit.jit.emit.outline import I8
from yaffjit.jit.emit.wire_fields import BYTES, WireField

if TYPE_CHECKING:
    from yaffjit.jit.emit.wire import Pass

# Fields that are tried before the tag is looked up: the next ones of the schema. It costs code for each
# field, so of messages with more fields only those are that are used.
PREDICTED = 2


class Expect:
    """Which field comes next is mostly the next one of the schema: it's tried before tags are looked up."""

    def __init__(
        self,
        outer: Pass,
        fields: list[WireField],
        blocks: dict[tuple[int, int], ir.Block],
        end: ir.Value,
        read: ir.Block,
        done: ir.Block,
    ) -> None:
        self.outer, self.fields, self.blocks = outer, fields, blocks
        self.end, self.read, self.done = end, read, done

    def next(self, place: int, again: int | None) -> None:
        """Go on where field ``place`` of the schema is likely to come.

        Args:
            again: the wire type of the field before that, if it may as well come again.
        """
        b, body = self.outer.builder, self.outer.body
        there = b.append_basic_block()
        pos = b.load(self.outer.pos)
        b.cbranch(b.icmp_unsigned("<", pos, self.end), there, self.done)
        b.position_at_end(there)
        first = body.load(pos, 0, I8)
        fields = self.fields
        likely = [] if again is None else [(fields[place - 1], again)]
        likely += [(f, BYTES if f.packable else f.wire_type) for f in fields[place : place + PREDICTED]]
        for f, wire_type in likely:
            tag = f.number << 3 | wire_type
            if tag >= 1 << 14:
                continue
            hit, miss = b.append_basic_block(), b.append_basic_block()
            if tag < 128:
                b.cbranch(b.icmp_unsigned("==", first, I8(tag)), hit, miss)
            else:
                second, whole = b.append_basic_block(), b.append_basic_block()
                b.cbranch(b.icmp_unsigned("==", first, I8(tag & 127 | 128)), second, miss)
                b.position_at_end(second)
                b.cbranch(b.icmp_unsigned("<", body.at(pos, 1), self.end), whole, miss)
                b.position_at_end(whole)
                b.cbranch(b.icmp_unsigned("==", body.load(pos, 1, I8), I8(tag >> 7)), hit, miss)
            b.position_at_end(hit)
            b.store(pos, self.outer.at)
            b.store(body.at(pos, 1 if tag < 128 else 2), self.outer.pos)
            b.branch(self.blocks[f.number, wire_type])
            b.position_at_end(miss)
        b.branch(self.read)
