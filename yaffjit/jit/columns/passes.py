"""The two passes over one message, as LLVM: what is counted and what is stored.

Arrays are known by their addresses in a table. What doesn't fit a column is no exception here: the row is
given up, and whoever runs the loop finds the value and says why.

Requires: the message is well-formed (verified). Source: docs/format.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from llvmlite import ir
from numba.core import cgutils

from yaffjit.jit.columns.arrays import Arrays
from yaffjit.jit.columns.numbers import from_field, from_integer
from yaffjit.jit.columns.places import ElementPlace, PairPlace, Walk, text_of
from yaffjit.jit.columns.texts import copy_bytes
from yaffjit.jit.columns.times import read_time
from yaffjit.jit.emit import yaff
from yaffjit.jit.emit.outline import I1, I8, I64
from yaffjit.jit.maps.search import ascend, distinct, pairs_of, repeats
from yaffjit.jit.repeated.elements import element_count, first_element
from yaffjit.jit.text import utf8
from yaffjit.plan.gathering import Gathering, Leaf, Loop


class Pass(Arrays):
    """One pass over one message.

    Args:
        builder: where code goes.
        wanted: what is stored.
        table: the address of the table of the slots' addresses.
        row: the message's.
        owner: of its bytes.
    """

    def __init__(
        self,
        builder: ir.IRBuilder,
        wanted: Gathering,
        table: ir.Value,
        row: ir.Value,
        owner: ir.Value,
    ) -> None:
        super().__init__(builder, wanted, table, row)
        self.owner = owner

    def run(self, message: ir.Value, units: Sequence[Leaf | Loop]) -> ir.Value:
        """Store some of the root's leaves and loops; gives what `yaffjit.jit.columns.rows` documents."""
        walk = Walk(self.builder, message, self.owner)
        for unit in units:
            if isinstance(unit, Leaf):
                self.leaf(unit, walk)
            else:
                self.loop(unit, walk)
        return self.builder.load(self.failed)

    def leaf(self, leaf: Leaf, walk: Walk) -> None:
        raise NotImplementedError

    def loop(self, loop: Loop, walk: Walk) -> None:
        raise NotImplementedError

    # ---- values ----

    def fixed(self, leaf: Leaf, walk: Walk, index: ir.Value, in_list: bool) -> None:
        """Store what has a fixed width; note where it doesn't fit."""
        self.keep(leaf, index, *self._value(leaf, walk, in_list))

    def _value(self, leaf: Leaf, walk: Walk, in_list: bool) -> tuple[ir.Value, ir.Value | None]:
        b = self.builder
        if leaf.what in ("which", "present") and leaf.oneof:
            oneof = next(oneof for oneof in leaf.owner.oneofs if oneof.name == leaf.oneof)
            number = yaff.which(b, leaf.owner, oneof, walk.message(leaf.steps))
            if leaf.what == "which":
                return from_integer(b, number, True, leaf.dtype)
            return b.zext(b.icmp_unsigned("!=", number, number.type(0)), I8), None
        assert leaf.f is not None
        if leaf.what == "length":
            return self._length(leaf, walk)
        place = walk.place(leaf.steps)
        if leaf.what == "present":
            return b.zext(place.present(), I8), None
        if leaf.what == "time":
            is_there = in_list and not leaf.steps
            return read_time(b, leaf.owner.child(leaf.f), place, leaf.dtype, is_there)
        value, fits = from_field(b, leaf.f.kind, place.number(), leaf.dtype)
        return value, fits

    def _length(self, leaf: Leaf, walk: Walk) -> tuple[ir.Value, ir.Value | None]:
        b = self.builder
        f = leaf.f
        assert f is not None
        valid: ir.Value | None = None
        if f.repeated:
            array = walk.array(leaf.steps)
            count = element_count(b, array)
            if f.is_map:
                pairs = pairs_of(leaf.steps[-1].mp.child(f))
                count = distinct(b, pairs, first_element(b, array), count, self.owner)
        else:
            pointer, count = text_of(b, walk.place(leaf.steps))
            if f.kind == "string":
                count = utf8.points(b, pointer, count)
                valid = b.icmp_signed(">=", count, I64(0))
        value, fits = from_integer(b, count, True, leaf.dtype)
        if valid is not None:
            fits = valid if fits is None else b.and_(valid, fits)
        return value, fits

    # ---- elements ----

    @contextmanager
    def each(self, loop: Loop, array: ir.Value) -> Iterator[tuple[Walk | None, Walk]]:
        """Code for each element of an array; gives walks from its key, if it's a map's, and from it."""
        b = self.builder
        step = loop.steps[-1]
        first, count = first_element(b, array), element_count(b, array)
        if not step.f.is_map:
            with cgutils.for_range(b, count) as turn:
                slot = b.gep(first, [b.mul(turn.index, I64(step.f.element_width))], inbounds=True)
                yield None, Walk(b, None, self.owner, ElementPlace(b, step.f, first, slot))
            return
        entry = step.mp.child(step.f)
        pairs = pairs_of(entry)
        doubtful = b.not_(
            ascend(b, pairs, first, count, self.owner)
        )  # a list that is read as a map may have a key twice
        with cgutils.for_range(b, count) as turn:
            pair = b.gep(first, [b.mul(turn.index, I64(pairs.width))], inbounds=True)
            again = cgutils.alloca_once_value(b, I1(0))
            b.store(I1(0), again)
            with b.if_then(doubtful, likely=False):
                b.store(repeats(b, pairs, first, pair), again)
            with b.if_then(b.not_(b.load(again))):
                key, value = (PairPlace(b, entry, f, pair) for f in entry.fields)
                yield Walk(b, None, self.owner, key), Walk(b, None, self.owner, value)

    def count(self, loop: Loop, array: ir.Value) -> ir.Value:
        """How many elements are stored."""
        b = self.builder
        step = loop.steps[-1]
        count = element_count(b, array)
        if not step.f.is_map:
            return count
        return distinct(b, pairs_of(step.mp.child(step.f)), first_element(b, array), count, self.owner)


class Measure(Pass):
    """The first pass: numbers of rows, and how much of all else a row has."""

    def leaf(self, leaf: Leaf, walk: Walk) -> None:
        b = self.builder
        if leaf.what == "text":
            following = b.add(self.row, I64(1))
            self.store(leaf.starts, following, text_of(b, walk.place(leaf.steps))[1])
        else:
            self.fixed(leaf, walk, self.row, False)

    def loop(self, loop: Loop, walk: Walk) -> None:
        b = self.builder
        following = b.add(self.row, I64(1))
        array = walk.array(loop.steps)
        self.store(loop.starts, following, self.count(loop, array))
        if loop.has_counts:
            sums = {slot: cgutils.alloca_once(b, I64) for slot in loop.inner_starts()}
            for total in sums.values():
                b.store(I64(0), total)
            self._sum(loop, array, sums)
            for slot, total in sums.items():
                self.store(slot, following, b.load(total))

    def _sum(self, loop: Loop, array: ir.Value, sums: dict[int, ir.Value]) -> None:
        b = self.builder

        def add(slot: int, count: ir.Value) -> None:
            b.store(b.add(b.load(sums[slot]), count), sums[slot])

        with self.each(loop, array) as (key, element):
            for leaf in loop.leaves:
                if leaf.what == "text":
                    walk = key if key is not None and leaf is loop.keys else element
                    add(leaf.starts, text_of(b, walk.place(leaf.steps))[1])
            for inner in loop.scope.loops:
                nested = element.array(inner.steps)
                add(inner.starts, self.count(inner, nested))
                if inner.has_counts:
                    self._sum(inner, nested, sums)


class Fill(Pass):
    """The second pass: all that a row has more than one of."""

    def leaf(self, leaf: Leaf, walk: Walk) -> None:
        if leaf.what != "text":
            return
        b = self.builder
        pointer, nbytes = text_of(b, walk.place(leaf.steps))
        begin = b.load(self.item(leaf.starts, self.row))
        copy_bytes(b, self.item(leaf.values, begin, I8), pointer, nbytes)

    def loop(self, loop: Loop, walk: Walk) -> None:
        b = self.builder
        slots = [loop.starts, *loop.inner_starts()]
        cursors = {slot: cgutils.alloca_once(b, I64) for slot in slots}
        for slot, cursor in cursors.items():
            b.store(b.load(self.item(slot, self.row)), cursor)
        self._fill(loop, walk.array(loop.steps), cursors)

    def _fill(self, loop: Loop, array: ir.Value, cursors: dict[int, ir.Value]) -> None:
        b = self.builder
        with self.each(loop, array) as (key, element):
            index = b.load(cursors[loop.starts])
            following = b.add(index, I64(1))
            for leaf in loop.leaves:
                walk = key if key is not None and leaf is loop.keys else element
                if leaf.what != "text":
                    self.fixed(leaf, walk, index, True)
                    continue
                pointer, nbytes = text_of(b, walk.place(leaf.steps))
                cursor = cursors[leaf.starts]
                begin = b.load(cursor)
                copy_bytes(b, self.item(leaf.values, begin, I8), pointer, nbytes)
                end = b.add(begin, nbytes)
                b.store(end, cursor)
                self.store(leaf.offsets, following, end)
            for inner in loop.scope.loops:
                self._fill(inner, element.array(inner.steps), cursors)
                self.store(inner.offsets, following, b.load(cursors[inner.starts]))
            b.store(following, cursors[loop.starts])
