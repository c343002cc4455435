"""What columns read of a protobuf message, as a tree: what one pass keeps, enters, and goes through.

A `Spot` is where the pass has a value when it has read the message to its end. What is repeated is met an
occurrence at a time; its units say what each is for:

* `Count`: it's one more;
* `Chosen`: it's kept if it has the index or key of a path, in place of one that was kept before;
* `Each`: its own values are stored, or counted, at once.

A *scope* is bytes of a message that come in one piece: the row, an element of a list, the entry of a map.
Fragments of a message that is a singular field lie in one scope, and merge by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from llvmlite import ir

from yaffjit.jit.emit.outline import I1, I64, NULL, POINTER
from yaffjit.jit.emit.wire import Key, Node
from yaffjit.jit.emit.wire_fields import WireField, wire_field
from yaffjit.plan.gathering import Leaf, Loop, Scope
from yaffjit.plan.model import FieldPlan, MessagePlan
from yaffjit.plan.paths import Index, Step

# Of an entry of a map: whether it has an unknown field, and so isn't one of the map's.
STRANGE: Key = (0, "strange")


class ColumnNode(Node):
    """What is read of a message.

    Attributes:
        units: what occurrences of repeated fields are for, by field number.
        counts: of the first node of a scope: what must be counted of it before it's read; None if nothing.
    """

    def __init__(self, mp: MessagePlan) -> None:
        super().__init__(mp)
        self.units: dict[int, list[Unit]] = {}
        self.counts: ColumnNode | None = None
        if mp.is_map_entry:
            self.slots[STRANGE] = (I1, I1(0))

    def enter(self, f: FieldPlan) -> ColumnNode:
        made = self.children.get(f.number)
        if made is None:
            made = self.children[f.number] = ColumnNode(self.mp.child(f))
        assert isinstance(made, ColumnNode)
        return made

    def is_used(self, f: WireField) -> bool:
        return f.number in self.units or super().is_used(f)

    @property
    def last_used(self) -> int:
        """The highest number of a field that decides about anything that is read."""
        used = [f for f in self.fields if self.is_used(f)]
        oneofs = {f.oneof for f in used if f.oneof} | {owner for owner, _ in self.slots}
        return max((f.number for f in self.fields if f in used or f.oneof in oneofs), default=0)

    def all_slots(self) -> Iterator[tuple[Node, Key]]:
        yield from super().all_slots()
        if self.counts is not None:
            yield from self.counts.all_slots()
        for unit in self.all_units():
            for node in unit.nodes:
                yield from node.all_slots()

    def all_units(self) -> Iterator[Unit]:
        for units in self.units.values():
            yield from units

    def eaches(self) -> Iterator[Each]:
        """All within the scope, also in what is chosen; not those in elements of others."""
        for unit in self.all_units():
            if isinstance(unit, Each):
                yield unit
            else:
                for node in unit.nodes:
                    yield from node.eaches()
        for child in self.children.values():
            assert isinstance(child, ColumnNode)
            yield from child.eaches()

    def scanned(self) -> Iterator[Node]:
        """All nodes that code is written for."""
        yield self
        inner = [*self.children.values(), *(node for unit in self.all_units() for node in unit.nodes)]
        for node in [*inner, *([self.counts] if self.counts is not None else [])]:
            assert isinstance(node, ColumnNode)
            yield from node.scanned()

    def count(self, f: FieldPlan) -> Key:
        """The slot of how many elements a repeated field has."""
        key = (f.number, "elements")
        if key not in self.slots:
            self.slots[key] = (I64, I64(0))
            entry = ColumnNode(self.mp.child(f)) if f.is_map else None
            if entry is not None:  # whose number a closed enum may lack
                _singular(entry, entry.mp.fields[1])
            self.units.setdefault(f.number, []).append(Count(key, entry))
        return key

    def add(self, key: Key, typ: ir.Type, initial: ir.Constant) -> Key:
        """Enter a slot of a unit."""
        self.slots.setdefault(key, (typ, initial))
        return key


@dataclass(frozen=True, slots=True, eq=False)
class Count:
    """Counts elements.

    Attributes:
        key: the slot of how many there are.
        entry: of maps, whose entries may be strange.
    """

    key: Key
    entry: ColumnNode | None

    @property
    def nodes(self) -> tuple[ColumnNode, ...]:
        return () if self.entry is None else (self.entry,)


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """The element of an index, or the value of a key.

    Attributes:
        index: as in `Step`.
        seen: the slot of how many elements there were before; None of maps, and of the last element.
        has: the slot of whether there is one.
        slots: of a scalar or text in a list, by name.
        node: of a message in a list; of maps of the entry.
        keys: of maps: the entry as its key is read before its value.
        total: where it's counted how many elements there are, for indices that count from the end.
    """

    index: Index
    seen: Key | None
    has: Key
    slots: dict[str, Key]
    node: ColumnNode | None
    keys: ColumnNode | None
    total: tuple[ColumnNode, Key] | None

    @property
    def nodes(self) -> tuple[ColumnNode, ...]:
        return tuple(node for node in (self.node, self.keys) if node is not None)


@dataclass(slots=True, eq=False)
class Each:
    """All elements of a repeated field, or pairs of a map.

    Attributes:
        loop: what is stored for them.
        rewinds: elements may turn out not to count: they are in a member of a oneof, or in what is chosen.
        guarded: so may those that this one lies in, or it does itself; then more may be met than counted.
        node: of messages, if they are read, and of entries.
        leaves: what is stored for each, with its place; None for the element itself.
    """

    loop: Loop
    rewinds: bool
    guarded: bool
    node: ColumnNode | None = None
    leaves: list[tuple[Leaf, Spot | None]] = field(default_factory=list)

    @property
    def nodes(self) -> tuple[ColumnNode, ...]:
        return () if self.node is None else (self.node,)

    @property
    def is_map(self) -> bool:
        return self.loop.steps[-1].f.is_map

    @property
    def counters(self) -> list[int]:
        """The slots of starts that grow with its elements."""
        return [self.loop.starts, *self.loop.inner_starts()]


Unit = Count | Chosen | Each


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a value is after a pass.

    Attributes:
        node: which has the slots.
        f: the field, or one like it; None of a oneof.
        slots: of the value, by name.
        has: node and slot of whether it's there, of what is chosen.
        message: of a message, what is read of it.
    """

    node: ColumnNode
    f: FieldPlan | None
    slots: dict[str, Key]
    has: tuple[ColumnNode, Key] | None = None
    message: ColumnNode | None = None


class ScopeTree:
    """Enters what is read of one scope.

    Args:
        scope: the first node of the scope.
        node: that of the message which steps begin in; in an entry of a map that of the value.
        within: the fields that lead from one to the other.
    """

    def __init__(self, scope: ColumnNode, node: ColumnNode, within: tuple[FieldPlan, ...] = ()) -> None:
        self._scope = scope
        self._node = node
        self._within = within

    def node(self, steps: tuple[Step, ...]) -> ColumnNode:
        """What is read of the message that steps lead to."""
        return self._follow(steps)[1]

    def spot(self, leaf: Leaf) -> Spot:
        """Where the value of a leaf is."""
        if leaf.oneof:
            oneof = next(oneof for oneof in leaf.owner.oneofs if oneof.name == leaf.oneof)
            node = self.node(leaf.steps)
            return Spot(node, None, {"which": node.use(oneof, "which")})
        if not leaf.steps:  # the element itself, which is a message
            assert leaf.what == "time"
            return self._of_message(self._node, Spot(self._node, leaf.f, {}, message=self._node))
        last = leaf.steps[-1]
        scope, node, within = self._follow(leaf.steps[:-1])
        if last.index is not None:
            return self._of_chosen(leaf, last, self._chosen(scope, node, within, last), node)
        f = last.f
        if f.repeated:
            return Spot(node, f, {"elements": node.count(f)})
        if f.kind == "message":
            slots = {"pointer": node.use(f, "pointer")}
            if leaf.what != "time":
                return Spot(node, f, slots)
            return self._of_message(node, Spot(node, f, slots, message=node.enter(f)))
        names = ("pointer", "nbytes") if f.kind in ("string", "bytes") else ("value", "has")
        return Spot(node, f, {name: node.use(f, name) for name in names})

    def loop(self, loop: Loop, filling: bool, guarded: bool) -> None:
        """Enter all elements of a field."""
        parent, step = self.node(loop.steps[:-1]), loop.steps[-1]
        f = step.f
        rewinds = guarded or any(s.f.oneof or s.index is not None for s in loop.steps[:-1])
        each = Each(loop, rewinds, rewinds)
        parent.units.setdefault(f.number, []).append(each)
        if f.is_map:
            self._entries(each, step, filling)
        elif f.kind == "message" and (filling or loop.has_counts):
            each.node = ColumnNode(step.mp.child(f))
            inner = ScopeTree(each.node, each.node)
            each.leaves = inner.enter(loop.scope, filling, guarded=rewinds, outermost=False)
        elif f.kind != "message":
            each.leaves = [(leaf, None) for leaf in loop.scope.leaves]

    def enter(
        self, scope: Scope, filling: bool, guarded: bool = False, outermost: bool = True
    ) -> list[tuple[Leaf, Spot | None]]:
        """Enter what a pass keeps of a scope; gives the places of what is one value a message.

        Args:
            filling: the second pass.
            guarded: more elements than were counted may be met.
            outermost: these are rows, of which numbers are stored by the first pass.
        """
        kept = [leaf for leaf in scope.leaves if leaf.what == "text" or filling != outermost]
        found: list[tuple[Leaf, Spot | None]] = [(leaf, self.spot(leaf)) for leaf in kept]
        for loop in scope.loops:
            self.loop(loop, filling, guarded)
        return found

    def _entries(self, each: Each, step: Step, filling: bool) -> None:
        """The key of a map's entries, and what is stored of their values."""
        loop, entry = each.loop, step.mp.child(step.f)
        node = each.node = ColumnNode(entry)
        assert loop.keys is not None
        key, value = entry.fields
        if filling or loop.keys.what == "text":
            each.leaves.append((loop.keys, _singular(node, key)))
        if value.kind == "message":
            inner = ScopeTree(node, node.enter(value), (value,))
            # An entry may turn out to be strange, behind what it has.
            each.leaves += inner.enter(loop.scope, filling, guarded=True, outermost=False)
            return
        # A number that a closed enum doesn't have makes it strange.
        spot = _singular(node, value)
        each.leaves += [(leaf, spot) for leaf in loop.scope.leaves if filling or leaf.what == "text"]

    def _follow(self, steps: tuple[Step, ...]) -> tuple[ColumnNode, ColumnNode, tuple[FieldPlan, ...]]:
        """The scope that steps lead to, the message there, and the fields between them."""
        scope, node, within = self._scope, self._node, self._within
        for step in steps:
            if step.index is None:
                node, within = node.enter(step.f), (*within, step.f)
                continue
            chosen = self._chosen(scope, node, within, step)
            assert chosen.node is not None
            scope = node = chosen.node
            within = ()
            if step.f.is_map:
                value = step.each[1]
                node, within = node.enter(value), (value,)
        return scope, node, within

    def _chosen(
        self, scope: ColumnNode, node: ColumnNode, within: tuple[FieldPlan, ...], step: Step
    ) -> Chosen:
        f, index = step.f, step.index
        assert index is not None
        units = node.units.setdefault(f.number, [])
        for unit in units:
            if isinstance(unit, Chosen) and (type(unit.index), unit.index) == (type(index), index):
                return unit
        name = f"[{index!r}]"
        has = node.add((f.number, f"{name}.has"), I1, I1(0))
        if f.is_map:
            entry = step.mp.child(f)
            keys = ColumnNode(entry)
            _singular(keys, entry.fields[0])
            made = Chosen(index, None, has, {}, ColumnNode(entry), keys, None)
        else:
            made = self._element(scope, node, within, step, name, has)
        units.append(made)
        return made

    def _element(
        self,
        scope: ColumnNode,
        node: ColumnNode,
        within: tuple[FieldPlan, ...],
        step: Step,
        name: str,
        has: Key,
    ) -> Chosen:
        f, index = step.f, step.index
        assert isinstance(index, int)
        total = None
        if index < -1:
            if scope.counts is None:
                scope.counts = ColumnNode(scope.mp)
            counted = scope.counts
            for outer in within:
                counted = counted.enter(outer)
            total = counted, counted.count(f)
        seen = None if index == -1 else node.add((f.number, f"{name}.seen"), I64, I64(0))
        slots: dict[str, Key] = {}
        if f.kind in ("string", "bytes"):
            slots["pointer"] = node.add((f.number, f"{name}.pointer"), POINTER, NULL)
            slots["nbytes"] = node.add((f.number, f"{name}.nbytes"), I64, I64(0))
        elif f.kind != "message":
            missing = node.mp.plan.schema.enums[f.enum].values[0][1] if f.enum else 0
            typ = ir.IntType(8 * wire_field(node.mp, f).width)
            slots["value"] = node.add((f.number, f"{name}.value"), typ, typ(missing & (2**typ.width - 1)))
        message = ColumnNode(step.mp.child(f)) if f.kind == "message" else None
        return Chosen(index, seen, has, slots, message, None, total)

    def _of_chosen(self, leaf: Leaf, step: Step, chosen: Chosen, node: ColumnNode) -> Spot:
        has = node, chosen.has
        if not step.f.is_map:
            if step.f.kind != "message":
                return Spot(node, leaf.f, chosen.slots, has)
            assert chosen.node is not None
            made = Spot(node, leaf.f, {}, has, chosen.node)
            return self._of_message(node, made) if leaf.what == "time" else made
        assert chosen.node is not None
        value = step.each[1]
        if value.kind != "message":
            return Spot(chosen.node, value, _singular(chosen.node, value).slots, has)
        made = Spot(chosen.node, value, {}, has, chosen.node.enter(value))
        return self._of_message(node, made) if leaf.what == "time" else made

    def _of_message(self, node: ColumnNode, spot: Spot) -> Spot:
        """A Timestamp or Duration."""
        assert spot.message is not None
        for name in ("seconds", "nanos"):
            spot.message.use(spot.message.mp.by_name[name], "value")
        return spot


def _singular(node: ColumnNode, f: FieldPlan) -> Spot:
    """The key or the value of an entry; of a message where it lies."""
    names: tuple[str, ...] = ("value",)
    if f.kind in ("string", "bytes", "message"):
        names = ("pointer", "nbytes")
    return Spot(node, f, {name: node.use(f, name) for name in names})
