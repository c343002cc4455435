"""Protobuf messages as LLVM: one pass over a message's bytes gives the slots of all fields that are used.

A scan is a function ``(pointer, nbytes) -> {error, slot, slot, ...}`` that touches no memory, so LLVM makes
one call of all that are equal, stores in between or not. It has exactly the slots that its module uses: they
are entered while getters are lowered, and its body is written when the module is printed. The null pointer
with 0 bytes is the absent message: all its slots are as in an empty one.

Slots, by what a field is (`slot_types`); an absent field's are null and 0, a scalar's value is its default:

* scalar: "value" (its bits as stored in memory: a bool is an i8 that is 0 or 1), "has" (i1);
* string, bytes: "pointer" (null if absent, never of an empty text), "nbytes";
* message: "pointer", "nbytes" of the last fragment, "count" of fragments, "first" (the tag of the first of
  them, since another member of its oneof was set);
* repeated, maps: "first" (the tag of the first occurrence), "count" of occurrences, a packed run being one;
  of scalars "modes" (i8: 1 if there are packed runs, | 2 if there are single values), "run", "run_nbytes"
  (the content of the last packed run; a whole number of values if they have a fixed width);
* a oneof: "which" (i32: the number of the member that is set, 0 of none, or of one that views don't have).

The error is 0, or 1 + the position of the field that is broken, from the message's beginning. If it's a
packed run that isn't a whole number of fixed values, their width is in the high half. All slots hold pointers
within the message then too.

Requires: nothing; all bytes are checked. Source: docs/protobuf.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from llvmlite import ir

from yaffjit.jit.emit.outline import I1, I8, I32, I64, NULL, POINTER, Body, make_pure
from yaffjit.jit.emit.wire_expect import Expect
from yaffjit.jit.emit.wire_fields import (
    BYTES,
    FIXED32,
    FIXED64,
    GROUP,
    VARINT,
    WireField,
    declared_fields,
    wire_field,
)
from yaffjit.jit.emit.wire_walk import MAX_SIZE, Walker, declare_helpers
from yaffjit.plan.model import FieldPlan, MessagePlan, OneofPlan

# Messages with more fields have code for those only that are used.
PREDICTED_UP_TO = 32
# Scans of messages with up to so many fields are opened where they are called: elements of lists.
INLINED_UP_TO = 8
# More slots than these are kept in memory while a message is read.
IN_REGISTERS_UP_TO = 16
WIDTH_SHIFT = 32  # of a packed run's values, in an error

# What a slot belongs to: a field by its number, or a oneof by its name; and the slot's own name.
Key = tuple[int | str, str]


def slot_types(f: WireField) -> dict[str, ir.Type]:
    """The slots of a field."""
    if f.repeated:
        slots: dict[str, ir.Type] = {"first": POINTER, "count": I64}
        return {**slots, "modes": I8, "run": POINTER, "run_nbytes": I64} if f.packable else slots
    if f.is_scalar:
        return {"value": ir.IntType(8 * f.width), "has": I1}
    if f.kind in ("string", "bytes"):
        return {"pointer": POINTER, "nbytes": I64}
    return {"pointer": POINTER, "nbytes": I64, "count": I64, "first": POINTER}


class Node:
    """What is used of a message: slots, and the messages that the same pass goes into.

    Attributes:
        slots: their types and what they hold at first, in the order in which they were entered.
        children: by field number.
    """

    def __init__(self, mp: MessagePlan) -> None:
        self.mp = mp
        self.fields = declared_fields(mp)
        self.slots: dict[Key, tuple[ir.Type, ir.Constant]] = {}
        self.children: dict[int, Node] = {}

    def use(self, target: FieldPlan | OneofPlan, slot: str) -> Key:
        """Enter a slot of a field or oneof."""
        if isinstance(target, OneofPlan):
            key: Key = (target.name, slot)
            self.slots.setdefault(key, (I32, I32(0)))
            return key
        f = wire_field(self.mp, target)
        typ = slot_types(f)[slot]
        initial = NULL if typ == POINTER else typ(f.default_bits if slot == "value" else 0)
        key = (f.number, slot)
        self.slots.setdefault(key, (typ, initial))
        return key

    def enter(self, f: FieldPlan) -> Node:
        """The node of a singular message field that the same pass goes into, which takes its fragments
        together."""
        return self.children.setdefault(f.number, Node(self.mp.child(f)))

    def is_used(self, f: WireField) -> bool:
        return f.number in self.children or any(owner == f.number for owner, _ in self.slots)

    def all_slots(self) -> Iterator[tuple[Node, Key]]:
        """Its own, and those of its children."""
        for key in self.slots:
            yield self, key
        for child in self.children.values():
            yield from child.all_slots()


class Pass:
    """Writes one pass over a message, and over those within it that its node goes into.

    Args:
        body: of the function that is written.
        root: what is used.
        pointer, nbytes: the message.
        bad: is entered with `at` at the tag of the field that is broken.
        bad_runs: the same for packed runs of values of 4 and 8 bytes that aren't a whole number.

    Attributes:
        at: a variable: the tag of the field that is being read.
        predicts_used: whether of messages with too many fields for all of them to be predicted those are that
            are used.
    """

    predicts_used = False

    def __init__(
        self,
        body: Body,
        root: Node,
        pointer: ir.Value,
        nbytes: ir.Value,
        bad: ir.Block,
        bad_runs: dict[int, ir.Block],
    ) -> None:
        b = body.builder
        self.body, self.builder = body, b
        self.root = root
        self.bad, self.bad_runs = bad, bad_runs
        self.pos, self.at = b.alloca(POINTER), b.alloca(POINTER)
        self.end = b.gep(pointer, [nbytes])  # of the absent message it's null too
        self.variables: dict[tuple[int, Key], ir.Value] = {}
        slots = list(root.all_slots())
        types = [node.slots[key][0] for node, key in slots]
        places = _in_memory(b, types) if len(slots) > IN_REGISTERS_UP_TO else map(b.alloca, types)
        for (node, key), variable in zip(slots, places, strict=True):
            self.variables[id(node), key] = variable
            b.store(node.slots[key][1], variable)
        b.store(pointer, self.pos)
        b.store(pointer, self.at)

    def value(self, node: Node, key: Key) -> ir.Value:
        """What a slot holds."""
        return self.builder.load(self.variables[id(node), key])

    def emit(self) -> None:
        """Write it; the builder is then where the message was read to its end."""
        done = self.builder.append_basic_block("done")
        self._message(self.root, self.end, done)
        self.builder.position_at_end(done)

    # ---- one message, or a fragment of it ----

    def _message(self, node: Node, end: ir.Value, done: ir.Block) -> None:
        b = self.builder
        walker = self._walker(end)
        loop, read, other = (b.append_basic_block(name) for name in ("loop", "read", "other"))
        has_all = self._is_predicted(node)
        used_oneofs = {f.oneof for f in node.fields if f.oneof and node.is_used(f)}
        used_oneofs |= {owner for owner, _ in node.slots if isinstance(owner, str)}
        blocks: dict[tuple[int, int], ir.Block] = {}
        for f in node.fields:
            if has_all or node.is_used(f) or f.oneof in used_oneofs:
                for wire_type in (f.wire_type, BYTES) if f.packable else (f.wire_type,):
                    blocks[f.number, wire_type] = b.append_basic_block(f"field{f.number}")
        fields = [f for f in node.fields if (f.number, f.wire_type) in blocks]
        predicts = has_all or self.predicts_used
        expect = Expect(self, fields, blocks, end, read, done)
        if predicts:
            expect.next(0, None)
        else:
            b.branch(loop)
        b.position_at_end(loop)
        b.cbranch(walker.is_before_end(), read, done)
        b.position_at_end(read)
        b.store(b.load(self.pos), self.at)
        tag = walker.tag()
        switch = b.switch(tag, other)
        for place, f in enumerate(fields):
            for wire_type in (f.wire_type, BYTES) if f.packable else (f.wire_type,):
                block = blocks[f.number, wire_type]
                switch.add_case(I64(f.number << 3 | wire_type), block)
                b.position_at_end(block)
                self._field(walker, node, f, wire_type, f.oneof in used_oneofs)
                if predicts:
                    again = wire_type if f.repeated and not (f.packable and wire_type == BYTES) else None
                    expect.next(place + 1, again)
                else:
                    b.branch(loop)
        b.position_at_end(other)
        self._other(walker, node, tag, loop)

    def _walker(self, end: ir.Value) -> Walker:
        return Walker(self.body, self.pos, end, self.bad)

    def _is_predicted(self, node: Node) -> bool:
        """Whether all fields have code of their own, behind which the next ones are tried first."""
        return len(node.fields) <= PREDICTED_UP_TO

    def _other(self, walker: Walker, node: Node, tag: ir.Value, proceed: ir.Block) -> None:
        """Pass over a field that nothing is read of."""
        walker.require(self.builder.icmp_unsigned(">=", tag, I64(8)))
        walker.skip(tag, proceed)

    def _unknown_number(self) -> None:
        """Of a closed enum that lacks the number: it's an unknown field."""

    def _field(self, walker: Walker, node: Node, f: WireField, wire_type: int, clears: bool) -> None:
        """Read one occurrence of a field whose tag was read, and keep what is used of it."""
        b = self.builder
        if wire_type == GROUP and not f.is_carried:
            walker.group(I64(f.tag))
            self._set_case(node, f, clears)
        elif f.repeated:
            self._occurrence(walker, node, f, wire_type)
        elif f.is_scalar:
            bits = walker.varint() if wire_type == VARINT else walker.fixed(f.width)
            value = stored_bits(b, f, bits)
            if f.numbers is None:
                self._set_scalar(node, f, value, clears)
            else:
                known, unknown, proceed = walker.block(), walker.block(), walker.block()
                switch = b.switch(value, unknown)
                for number in f.numbers:
                    switch.add_case(I32(number & 0xFFFFFFFF), known)
                b.position_at_end(known)
                self._set_scalar(node, f, value, clears)
                b.branch(proceed)
                b.position_at_end(unknown)
                self._unknown_number()
                b.branch(proceed)
                b.position_at_end(proceed)
        elif wire_type == GROUP:
            self._delimited(walker, node, f, clears)
        elif f.number in node.children:
            start, nbytes = walker.size()
            self._set_case(node, f, clears)
            self._set_span(node, f, start, nbytes)
            done = walker.block("entered")
            self._message(node.children[f.number], self.body.at(start, nbytes), done)
            b.position_at_end(done)
        else:
            start, nbytes = walker.span()
            self._set_case(node, f, clears)
            self._set_span(node, f, start, nbytes)

    def _delimited(self, walker: Walker, node: Node, f: WireField, clears: bool) -> None:
        """A message that is written as a group."""
        b = self.builder
        start = b.load(self.pos)
        end = walker.group(I64(f.tag))
        after = b.load(self.pos)
        self._set_case(node, f, clears)
        self._set_span(node, f, start, b.sub(b.ptrtoint(end, I64), b.ptrtoint(start, I64)))
        child = node.children.get(f.number)
        if child is not None:
            b.store(start, self.pos)
            done = walker.block("entered")
            self._message(child, end, done)
            b.position_at_end(done)
            b.store(after, self.pos)

    def _occurrence(self, walker: Walker, node: Node, f: WireField, wire_type: int) -> None:
        """Of a repeated field: a value, a message or a packed run."""
        b = self.builder
        self._count(node, f)
        if f.packable and wire_type == BYTES:
            start, nbytes = walker.span()
            if f.wire_type in (FIXED32, FIXED64):
                whole, width = walker.block(), f.width
                rest = b.and_(nbytes, I64(width - 1))
                b.cbranch(b.icmp_unsigned("==", rest, I64(0)), whole, self.bad_runs[width])
                b.position_at_end(whole)
            self._set(node, f, "run", start)
            self._set(node, f, "run_nbytes", nbytes)
        elif wire_type == GROUP:
            walker.group(I64(f.tag))
        else:
            walker.value(wire_type)
        variable = self.variables.get((id(node), (f.number, "modes")))
        if variable is not None:
            mode = 1 if wire_type == BYTES else 2
            b.store(b.or_(b.load(variable), I8(mode)), variable)

    def _set_scalar(self, node: Node, f: WireField, value: ir.Value, clears: bool) -> None:
        self._set_case(node, f, clears)
        self._set(node, f, "value", value)
        self._set(node, f, "has", I1(1))

    def _set_span(self, node: Node, f: WireField, start: ir.Value, nbytes: ir.Value) -> None:
        self._set(node, f, "pointer", start)
        self._set(node, f, "nbytes", nbytes)
        self._count(node, f)

    def _count(self, node: Node, f: WireField) -> None:
        """One occurrence more; the first one's tag is kept."""
        b = self.builder
        first = self.variables.get((id(node), (f.number, "first")))
        if first is not None:
            is_first = b.icmp_unsigned("==", b.load(first), NULL)
            b.store(b.select(is_first, b.load(self.at), b.load(first)), first)
        count = self.variables.get((id(node), (f.number, "count")))
        if count is not None:
            b.store(b.add(b.load(count), I64(1)), count)

    def _set(self, node: Node, f: WireField, slot: str, value: ir.Value) -> None:
        variable = self.variables.get((id(node), (f.number, slot)))
        if variable is not None:
            self.builder.store(value, variable)

    def _set_case(self, node: Node, f: WireField, clears: bool) -> None:
        """Where a member of a oneof is set: the others aren't any more."""
        if not clears:
            return
        for sibling in node.fields:
            if sibling.oneof == f.oneof and sibling is not f:
                self._clear(node, sibling)
        which = self.variables.get((id(node), (f.oneof, "which")))
        if which is not None:
            self.builder.store(I32(f.number if f.is_carried else 0), which)

    def _clear(self, node: Node, f: WireField) -> None:
        for key, (_, initial) in node.slots.items():
            if key[0] == f.number:
                self.builder.store(initial, self.variables[id(node), key])
        child = node.children.get(f.number)
        for inner, key in child.all_slots() if child else ():
            self.builder.store(inner.slots[key][1], self.variables[id(inner), key])


def _in_memory(b: ir.IRBuilder, types: list[ir.Type]) -> list[ir.Value]:
    """Variables that LLVM leaves where they are.

    In registers all of them would be moved about after each field, by as many moves as there are.
    """
    area = b.alloca(ir.LiteralStructType(types))
    hidden = ir.InlineAsm(ir.FunctionType(area.type, [area.type]), "", "=r,0", side_effect=False)
    area = b.call(hidden, [area])
    return [b.gep(area, [I32(0), I32(place)], inbounds=True) for place in range(len(types))]


def stored_bits(b: ir.IRBuilder, f: WireField, bits: ir.Value) -> ir.Value:
    """A scalar's bits as they are stored in memory, of what was read."""
    if f.kind == "bool":
        return b.zext(b.icmp_unsigned("!=", bits, I64(0)), I8)
    if f.width == 4 and bits.type == I64:
        bits = b.trunc(bits, I32)
    if f.kind in ("sint32", "sint64"):
        typ = bits.type
        return b.xor(b.lshr(bits, typ(1)), b.neg(b.and_(bits, typ(1))))
    return bits


class _ScanPass(Pass):
    predicts_used = True


class _Slots(ir.LiteralStructType):
    """What a scan gives; it grows while getters are lowered."""

    elements: tuple[ir.Type, ...]

    def __init__(self) -> None:
        super().__init__([I64])

    def append(self, typ: ir.Type) -> None:
        self.elements = (*self.elements, typ)


class Scan(ir.Function):
    """The scan of a message type in a module: its body is written when the module is printed.

    Args:
        frozen: the bytes don't change while its callers run.
    """

    def __init__(self, module: ir.Module, symbol: str, mp: MessagePlan, frozen: bool) -> None:
        self.node = Node(mp)
        self.frozen = frozen
        self.places: dict[Key, int] = {}
        self.slots = _Slots()
        super().__init__(module, ir.FunctionType(self.slots, [POINTER, I64]), symbol)
        self.linkage = "internal"  # each module has slots of its own
        make_pure(self, frozen, inline=len(self.node.fields) <= INLINED_UP_TO)
        declare_helpers(module, frozen)

    def place(self, target: FieldPlan | OneofPlan, slot: str) -> int:
        """Where in the result a slot is."""
        key = self.node.use(target, slot)
        if key not in self.places:
            assert not self.blocks, "the module was printed before it was complete"
            self.slots.append(self.node.slots[key][0])
            self.places[key] = len(self.slots.elements) - 1
        return self.places[key]

    def __str__(self) -> str:
        if not self.blocks:
            self._emit()
        return super().__str__()

    def _emit(self) -> None:
        body = Body(self, self.frozen)
        b = body.builder
        pointer, nbytes = self.args
        bad = b.append_basic_block("bad")
        bad_runs = {width: b.append_basic_block(f"bad_run{width}") for width in (4, 8)}
        scan = _ScanPass(body, self.node, pointer, nbytes, bad, bad_runs)
        within = b.append_basic_block()
        b.cbranch(b.icmp_unsigned("<=", nbytes, I64(MAX_SIZE)), within, bad)
        b.position_at_end(within)
        scan.emit()
        self._give(scan, I64(0))
        for block, width in ((bad, 0), *((block, width) for width, block in bad_runs.items())):
            b.position_at_end(block)
            at = b.sub(b.ptrtoint(b.load(scan.at), I64), b.ptrtoint(pointer, I64))
            self._give(scan, b.add(at, I64(width << WIDTH_SHIFT | 1)))

    def _give(self, scan: Pass, error: ir.Value) -> None:
        b = scan.builder
        result = b.insert_value(ir.Constant(self.slots, ir.Undefined), error, 0)
        for key, place in self.places.items():
            result = b.insert_value(result, scan.value(self.node, key), place)
        b.ret(result)


def scan(
    builder: ir.IRBuilder,
    mp: MessagePlan,
    target: FieldPlan | OneofPlan,
    slots: tuple[str, ...],
    pointer: ir.Value,
    nbytes: ir.Value,
    frozen: bool = True,
) -> tuple[ir.Value, list[ir.Value]]:
    """The error of a message's scan, as an i64, and the values of slots of a field or oneof.

    Args:
        slots: names of `slot_types`.
        pointer, nbytes: the message.
        frozen: the bytes don't change while the function runs that the builder writes.
    """
    symbol = f"yaffjit.scan.{mp.full_name}.{mp.fingerprint}" + ("" if frozen else ".now")
    function = builder.module.globals.get(symbol)
    if function is None:
        function = Scan(builder.module, symbol, mp, frozen)
    places = [function.place(target, slot) for slot in slots]
    result = builder.call(function, [pointer, nbytes])
    return builder.extract_value(result, 0), [builder.extract_value(result, place) for place in places]
