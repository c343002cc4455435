"""The two passes of columns over one protobuf message, as LLVM: each reads the bytes once, for all columns.

What has one value a message is known behind the message's end, because a later occurrence of a field wins.
Elements of lists are counted, or stored, where they are met. Some turn out not to count, because another
member of their oneof comes later; then counting goes back to where it was.

Requires: the bytes are the same in both passes. They are checked as far as they are read.
Source: docs/protobuf-bytes.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from llvmlite import ir

from yaffjit.jit.columns.arrays import BROKEN, Arrays
from yaffjit.jit.columns.texts import copy_bytes
from yaffjit.jit.columns.wire_tree import STRANGE, Chosen, ColumnNode, Count, Each, ScopeTree, Spot, Unit
from yaffjit.jit.columns.wire_values import Element, Values
from yaffjit.jit.emit.outline import I1, I8, I32, I64, Body
from yaffjit.jit.emit.wire import Node, Pass, stored_bits
from yaffjit.jit.emit.wire_fields import BYTES, GROUP, VARINT, WireField
from yaffjit.jit.emit.wire_walk import MAX_SIZE, Walker
from yaffjit.jit.text.compare import equal
from yaffjit.jit.text.type import constant_bytes
from yaffjit.plan.gathering import Gathering, Leaf

# Fields of all messages that a pass goes into, up to which it tries the next ones of the schema first.
PREDICTED_FIELDS = 64


class _Content(NamedTuple):
    """The bytes of a message, text or entry, and where its field ends."""

    start: ir.Value
    nbytes: ir.Value
    after: ir.Value


class ColumnPass(Pass):
    """One pass over one message.

    Args:
        body: of the function that is written: (pointer, nbytes, table, row) -> what `Arrays.failed` holds, or
            `BROKEN`.
        wanted: what is stored.
        canonical: each message has its fields by ascending number, and those that aren't repeated once.
    """

    filling = False
    predicts_used = True

    def __init__(self, body: Body, wanted: Gathering, canonical: bool) -> None:
        pointer, nbytes, table, row = body.args
        mp = wanted.mp
        root = ColumnNode(mp)
        self.leaves = ScopeTree(root, root).enter(wanted.root, self.filling)
        b = body.builder
        bad = b.append_basic_block("bad")
        super().__init__(body, root, pointer, nbytes, bad, {4: bad, 8: bad})
        self.tree = root
        self.canonical = canonical
        fields = sum(len(node.fields) for node in root.scanned())
        self._predicts = fields <= PREDICTED_FIELDS
        self.arrays = Arrays(b, wanted, table, row)
        self.row, self.following = row, b.add(row, I64(1))
        self.values = Values(self)
        # How many elements of each counted kind there were, in this row, or in all until here.
        self.counters: dict[int, ir.Value] = {}
        self.before: dict[tuple[int, int], ir.Value] = {}  # by unit and slot, where its scope begins
        for each in self._every_each(root):
            for slot in each.counters:
                if slot not in self.counters:
                    self.counters[slot] = b.alloca(I64)
                if each.rewinds:
                    self.before[id(each), slot] = b.alloca(I64)

    def write(self) -> None:
        """Write the function."""
        b = self.builder
        for slot, counter in self.counters.items():
            b.store(self.first(slot), counter)
        within = b.append_basic_block()
        nbytes = self.body.args[1]
        b.cbranch(b.icmp_unsigned("<=", nbytes, I64(MAX_SIZE)), within, self.bad)
        b.position_at_end(within)
        self._remember(self.tree)
        self.scan(self.tree, self.body.args[0], self.end)
        self.finish()
        b.ret(b.load(self.arrays.failed))
        b.position_at_end(self.bad)
        b.ret(I64(BROKEN))

    # ---- what the two passes differ in ----

    def first(self, slot: int) -> ir.Value:
        """What a counter begins with."""
        raise NotImplementedError

    def finish(self) -> None:
        """Store what is known behind the message."""
        raise NotImplementedError

    def keep(self, each: Each, element: Element | None) -> None:
        """Count or store an element; None of a message, which was scanned if it's read at all."""
        raise NotImplementedError

    # ---- scopes ----

    def scan(self, node: ColumnNode, start: ir.Value, end: ir.Value) -> None:
        """Read the scope of a node; its slots are as at first."""
        for part in (node.counts, node):
            if part is not None:
                self.builder.store(start, self.pos)
                done = self.builder.append_basic_block("scanned")
                self._message(part, end, done)
                self.builder.position_at_end(done)

    def _renew(self, node: ColumnNode) -> None:
        """Slots as at first."""
        for of, key in node.all_slots():
            self.builder.store(of.slots[key][1], self.variables[id(of), key])

    def _remember(self, node: ColumnNode) -> None:
        """Where counting is, where a scope begins."""
        self._move(node, to_before=True)

    def _rewind(self, node: ColumnNode) -> None:
        """Count nothing of what a part of a scope has had so far."""
        self._move(node, to_before=False)

    def _move(self, node: ColumnNode, to_before: bool) -> None:
        for each in node.eaches():
            if each.rewinds:
                for slot in each.counters:
                    pair = self.counters[slot], self.before[id(each), slot]
                    source, target = pair if to_before else pair[::-1]
                    self.builder.store(self.builder.load(source), target)

    def _every_each(self, node: ColumnNode) -> Iterator[Each]:
        for each in node.eaches():
            yield each
            if each.node is not None:
                yield from self._every_each(each.node)

    # ---- what `Pass` calls ----

    def _walker(self, end: ir.Value) -> Walker:
        return Walker(self.body, self.pos, end, self.bad, compact=not self._predicts)

    def _is_predicted(self, node: Node) -> bool:
        return node.mp.is_map_entry or (self._predicts and super()._is_predicted(node))

    def _field(self, walker: Walker, node: Node, f: WireField, wire_type: int, clears: bool) -> None:
        assert isinstance(node, ColumnNode)
        b = self.builder
        units = node.units.get(f.number)
        if units:
            self._occurrence_of(walker, node, f, wire_type, units)
        elif self.canonical and f.number > node.last_used:
            b.store(walker.end, self.pos)
        elif node.mp.is_map_entry and f.numbers is not None and wire_type == VARINT:
            value = stored_bits(b, f, walker.varint())
            with self._known(node, f, value):
                self._set_scalar(node, f, value, clears)
        else:
            super()._field(walker, node, f, wire_type, clears)

    def _other(self, walker: Walker, node: Node, tag: ir.Value, proceed: ir.Block) -> None:
        b = self.builder
        assert isinstance(node, ColumnNode)
        if node.mp.is_map_entry:
            b.store(I1(1), self.variables[id(node), STRANGE])
        if self.canonical:
            with b.if_then(b.icmp_unsigned(">", tag, I64(node.last_used << 3 | 7))):
                b.store(walker.end, self.pos)
                b.branch(proceed)
        super()._other(walker, node, tag, proceed)

    def _clear(self, node: Node, f: WireField) -> None:
        super()._clear(node, f)
        child = node.children.get(f.number)
        if child is not None:
            assert isinstance(child, ColumnNode)
            self._rewind(child)

    # ---- occurrences of repeated fields ----

    def _occurrence_of(
        self, walker: Walker, node: ColumnNode, f: WireField, wire_type: int, units: list[Unit]
    ) -> None:
        b = self.builder
        if f.packable and wire_type == BYTES:
            self._run(walker, node, f, units)
        elif f.packable:
            bits = walker.varint() if wire_type == VARINT else walker.fixed(f.width)
            self._value(node, f, stored_bits(b, f, bits), units)
        else:
            content = self._content(walker, f, wire_type)
            for unit in units:
                if f.kind in ("string", "bytes"):
                    self._unit(node, unit, Element(None, content.start, content.nbytes))
                else:
                    self._message_unit(node, unit, content)
            b.store(content.after, self.pos)

    def _content(self, walker: Walker, f: WireField, wire_type: int) -> _Content:
        b = self.builder
        if wire_type == GROUP:
            start = b.load(self.pos)
            end = walker.group(I64(f.tag))
            nbytes = b.sub(b.ptrtoint(end, I64), b.ptrtoint(start, I64))
            return _Content(start, nbytes, b.load(self.pos))
        start, nbytes = walker.span()
        return _Content(start, nbytes, b.load(self.pos))

    def _run(self, walker: Walker, node: ColumnNode, f: WireField, units: list[Unit]) -> None:
        """A packed run of values."""
        b = self.builder
        start, nbytes = walker.size()
        if f.wire_type != VARINT:
            walker.require(b.icmp_unsigned("==", b.and_(nbytes, I64(f.width - 1)), I64(0)))
            if all(map(self._only_counts, units)):
                b.store(self.body.at(start, nbytes), self.pos)
                count = b.udiv(nbytes, I64(f.width))
                for unit in units:
                    variable = self._count_of(node, unit)
                    b.store(b.add(b.load(variable), count), variable)
                return
        inner = self._walker(self.body.at(start, nbytes))
        loop, read, done = inner.block("run"), inner.block("value"), inner.block("ran")
        b.branch(loop)
        b.position_at_end(loop)
        b.cbranch(inner.is_before_end(), read, done)
        b.position_at_end(read)
        bits = inner.varint() if f.wire_type == VARINT else inner.fixed(f.width)
        self._value(node, f, stored_bits(b, f, bits), units)
        b.branch(loop)
        b.position_at_end(done)

    def _only_counts(self, unit: Unit) -> bool:
        return isinstance(unit, Count) or (isinstance(unit, Each) and not self.filling)

    def _count_of(self, node: ColumnNode, unit: Unit) -> ir.Value:
        if isinstance(unit, Count):
            return self.variables[id(node), unit.key]
        assert isinstance(unit, Each)
        return self.counters[unit.loop.starts]

    def _value(self, node: ColumnNode, f: WireField, value: ir.Value, units: list[Unit]) -> None:
        """A scalar element."""
        with self._known(node, f, value):
            for unit in units:
                self._unit(node, unit, Element(value, None, None))

    @contextmanager
    def _known(self, node: ColumnNode, f: WireField, value: ir.Value) -> Iterator[None]:
        """Code for a number that a closed enum has, if the field is of one."""
        if f.numbers is None:
            yield
            return
        b = self.builder
        known, unknown, proceed = (b.append_basic_block() for _ in range(3))
        switch = b.switch(value, unknown)
        for number in f.numbers:
            switch.add_case(I32(number & 0xFFFFFFFF), known)
        b.position_at_end(unknown)
        if node.mp.is_map_entry:
            b.store(I1(1), self.variables[id(node), STRANGE])
        b.branch(proceed)
        b.position_at_end(known)
        yield
        b.branch(proceed)
        b.position_at_end(proceed)

    def _unit(self, node: ColumnNode, unit: Unit, element: Element) -> None:
        """A scalar or text for a unit."""
        if isinstance(unit, Count):
            self._add(self.variables[id(node), unit.key])
        elif isinstance(unit, Each):
            self.keep(unit, element)
        else:
            with self._if_chosen(node, unit):
                for name, value in zip(Element._fields, element, strict=True):
                    if name in unit.slots:
                        self.builder.store(value, self.variables[id(node), unit.slots[name]])

    def _message_unit(self, node: ColumnNode, unit: Unit, content: _Content) -> None:
        """A message or the entry of a map for a unit."""
        b = self.builder
        end = self.body.at(content.start, content.nbytes)
        if isinstance(unit, Count):
            count: ir.Value = I64(1)
            if unit.entry is not None:
                self._renew(unit.entry)
                self.scan(unit.entry, content.start, end)
                count = b.zext(b.not_(self.value(unit.entry, STRANGE)), I64)
            self._add(self.variables[id(node), unit.key], count)
        elif isinstance(unit, Each):
            if unit.node is None:
                self.keep(unit, None)
                return
            self._renew(unit.node)
            self._remember(unit.node)
            self.scan(unit.node, content.start, end)
            if not unit.is_map:
                self.keep(unit, None)
                return
            with b.if_else(self.value(unit.node, STRANGE)) as (strange, own):
                with strange:
                    self._rewind(unit.node)
                with own:
                    self.keep(unit, None)
        elif unit.keys is not None:
            self._renew(unit.keys)
            self.scan(unit.keys, content.start, end)
            with b.if_then(self._has_key(unit)):
                self._choose(node, unit, content.start, end)
        else:
            with self._if_chosen(node, unit):
                self._choose(node, unit, content.start, end)

    def _choose(self, node: ColumnNode, unit: Chosen, start: ir.Value, end: ir.Value) -> None:
        """Read a message in place of what was chosen before."""
        self.builder.store(I1(1), self.variables[id(node), unit.has])
        if unit.node is not None:
            self._renew(unit.node)
            self._rewind(unit.node)
            self.scan(unit.node, start, end)

    @contextmanager
    def _if_chosen(self, node: ColumnNode, unit: Chosen) -> Iterator[None]:
        """Code for the element of a list that has the index."""
        b = self.builder
        has = self.variables[id(node), unit.has]
        if unit.seen is None:
            b.store(I1(1), has)
            yield
            return
        seen = self.variables[id(node), unit.seen]
        before = b.load(seen)
        self._add(seen)
        index: ir.Value = I64(int(unit.index))
        if unit.total is not None:
            index = b.add(index, self.value(*unit.total))
        with b.if_then(b.icmp_signed("==", before, index)):
            b.store(I1(1), has)
            yield

    def _has_key(self, unit: Chosen) -> ir.Value:
        """Whether the entry that was read is one of the map, and has the key."""
        b = self.builder
        keys = unit.keys
        assert keys is not None
        key = keys.mp.fields[0]
        if isinstance(unit.index, str):
            raw = unit.index.encode()
            spot = Spot(keys, key, {name: (key.number, name) for name in ("pointer", "nbytes")})
            given = constant_bytes(b, raw), I64(len(raw))
            same = equal(b, self.values.text(spot, None), given, frozen=True)
        else:
            value = self.value(keys, (key.number, "value"))
            same = b.icmp_unsigned("==", value, value.type(int(unit.index) & (2**value.type.width - 1)))
        return b.and_(same, b.not_(self.value(keys, STRANGE)))

    def _add(self, variable: ir.Value, count: ir.Value | None = None) -> None:
        b = self.builder
        b.store(b.add(b.load(variable), I64(1) if count is None else count), variable)


class WireMeasure(ColumnPass):
    """The first pass: numbers of rows, and how much of all else a row has."""

    def first(self, slot: int) -> ir.Value:
        return I64(0)

    def finish(self) -> None:
        for leaf, spot in self.leaves:
            if leaf.what == "text":
                self.arrays.store(leaf.starts, self.following, self.values.text(spot, None)[1])
            else:
                self.arrays.keep(leaf, self.row, *self.values.fixed(leaf, spot, None))
        for slot, counter in self.counters.items():
            self.arrays.store(slot, self.following, self.builder.load(counter))

    def keep(self, each: Each, element: Element | None) -> None:
        self._add(self.counters[each.loop.starts])
        for leaf, spot in each.leaves:
            if leaf.what == "text":
                self._add(self.counters[leaf.starts], self.values.text(spot, element)[1])


class WireFill(ColumnPass):
    """The second pass: all that a row has more than one of."""

    filling = True

    def first(self, slot: int) -> ir.Value:
        return self.builder.load(self.arrays.item(slot, self.row))

    def finish(self) -> None:
        for leaf, spot in self.leaves:
            pointer, nbytes = self.values.text(spot, None)
            begin = self.first(leaf.starts)
            copy_bytes(self.builder, self.arrays.item(leaf.values, begin, I8), pointer, nbytes)

    def keep(self, each: Each, element: Element | None) -> None:
        b = self.builder
        loop = each.loop
        index = b.load(self.counters[loop.starts])
        following = b.add(index, I64(1))
        b.store(following, self.counters[loop.starts])
        with self._room(each, loop.starts, following):
            for leaf, spot in each.leaves:
                if leaf.what != "text":
                    self.arrays.keep(leaf, index, *self.values.fixed(leaf, spot, element))
            for inner in loop.scope.loops:
                self.arrays.store(inner.offsets, following, b.load(self.counters[inner.starts]))
        for leaf, spot in each.leaves:
            if leaf.what == "text":
                self._copy(each, leaf, following, self.values.text(spot, element))

    def _copy(self, each: Each, leaf: Leaf, following: ir.Value, text: Sequence[ir.Value]) -> None:
        b = self.builder
        pointer, nbytes = text
        begin = b.load(self.counters[leaf.starts])
        end = b.add(begin, nbytes)
        b.store(end, self.counters[leaf.starts])
        with self._room(each, leaf.starts, end):
            copy_bytes(b, self.arrays.item(leaf.values, begin, I8), pointer, nbytes)
        with self._room(each, each.loop.starts, following):
            self.arrays.store(leaf.offsets, following, end)

    @contextmanager
    def _room(self, each: Each, slot: int, end: ir.Value) -> Iterator[None]:
        """Code for what ends within that which was counted of a row, if more may be met."""
        if not each.guarded:
            yield
            return
        b = self.builder
        limit = b.load(self.arrays.item(slot, self.following))
        with b.if_then(b.icmp_signed("<=", end, limit)):
            yield
