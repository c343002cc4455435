"""Elements of repeated fields in protobuf bytes: read in order by a cursor, or from a slice's table."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from yaffjit.jit.attributes import widen
from yaffjit.jit.emit.outline import I64, NULL, POINTER
from yaffjit.jit.emit.wire import stored_bits
from yaffjit.jit.emit.wire_counts import count
from yaffjit.jit.emit.wire_fields import wire_field
from yaffjit.jit.emit.wire_runs import (
    Cursor,
    Place,
    begin,
    is_at_element,
    is_single_run,
    pass_over,
    passed,
    read,
    seek,
    settle,
)
from yaffjit.jit.emit.yaff import stored_type
from yaffjit.jit.repeated.elements import Elements, elements_makers
from yaffjit.jit.types import WireViewType
from yaffjit.jit.wire.read import readers, slots_of
from yaffjit.jit.wire.repeated.faults import raise_bad_varint
from yaffjit.jit.wire.repeated.type import MEMBERS, WireRepeatedType
from yaffjit.plan.model import FieldPlan

_DOUBLE = ir.DoubleType()
_PLACE = ("first", "count", "modes", "run", "run_nbytes")


def _read_repeated(
    context: Any, builder: ir.IRBuilder, view: WireViewType, native: Any, f: FieldPlan
) -> ir.Value:
    """The native value of a repeated field of a view."""
    typ = view.field_type(f)
    made = cgutils.create_struct_proxy(typ)(context, builder)
    made.pointer, made.nbytes, made.owner = native.pointer, native.nbytes, native.owner
    made.number = I64(f.number)
    if typ.shape.packable:
        first, occurrences, modes, run, nbytes = slots_of(context, builder, view, native, f, *_PLACE)
        made.modes, made.run, made.run_nbytes = builder.zext(modes, I64), run, nbytes
    else:
        first, occurrences = slots_of(context, builder, view, native, f, *_PLACE[:2])
        made.modes, made.run, made.run_nbytes = I64(0), NULL, I64(0)
    made.first, made.occurrences = first, occurrences
    return made._getvalue()


def place_of(builder: ir.IRBuilder, native: Any) -> Place:
    """Where the elements are of a native value."""
    return Place(
        first=native.first,
        count=native.occurrences,
        mask=native.modes,
        run=native.run,
        run_nbytes=native.run_nbytes,
        end=builder.gep(native.pointer, [native.nbytes]),
        number=native.number,
    )


class Variables:
    """A cursor in variables, and the index of the element that it's before."""

    def __init__(self, builder: ir.IRBuilder, index: ir.Value, cursor: tuple[ir.Value, ...]) -> None:
        self._builder = builder
        self.index = index
        self.cursor = cursor

    @classmethod
    def new(cls, builder: ir.IRBuilder, cursor: Cursor) -> Variables:
        made = [cgutils.alloca_once_value(builder, value) for value in cursor]
        return cls(builder, cgutils.alloca_once_value(builder, I64(0)), tuple(made))

    def load(self) -> Cursor:
        return Cursor(*map(self._builder.load, self.cursor))

    def store(self, cursor: Cursor) -> None:
        for value, variable in zip(cursor, self.cursor, strict=True):
            self._builder.store(value, variable)


class WireElements(Elements):
    """Elements of a native repeated field, or of a slice.

    To read one after the other costs no more than what lies between them; to go back is to begin anew. All
    values of one packed run of a fixed width are an array, and each is read at once.

    Args:
        variables: those of an iterator; new ones where it's left out.
    """

    def __init__(
        self,
        context: Any,
        builder: ir.IRBuilder,
        typ: WireRepeatedType,
        native: Any,
        variables: Variables | None = None,
    ) -> None:
        super().__init__(context, builder, typ, native)
        self.wire = wire_field(typ.mp, typ.f)
        self.shape = typ.shape
        self.frozen = not typ.owned
        self.place = place_of(builder, native)
        self._pointer: ir.Value = native.pointer
        self._nbytes: ir.Value = native.nbytes
        self._members = [getattr(native, name) for name in MEMBERS]
        self._table: ir.Value | None = native.table if typ.part else None
        self._part_count: ir.Value | None = native.count if typ.part else None
        self._start = begin(builder, self.shape, self.place)
        self._variables = variables or Variables.new(builder, self._start)

    # ---- how many ----

    @property
    def count(self) -> ir.Value:
        """How many there are; raises where a varint is bad."""
        if self._part_count is not None:
            return self._part_count
        b = self._builder
        found = count(b, self.shape, self.place, self.frozen)
        if self.shape.packable and not self.shape.width:
            bad = b.icmp_signed("<", found, I64(0))
            with cgutils.if_unlikely(b, bad):
                self._raise(seek(b, self.shape, self.place, self._start, b.not_(found), self.frozen))
        return found

    @property
    def most(self) -> ir.Value:
        """How many there are, one that is bad too; raises nothing."""
        if self._part_count is not None:
            return self._part_count
        b = self._builder
        found = count(b, self.shape, self.place, self.frozen)
        bad = b.icmp_signed("<", found, I64(0))
        return b.select(bad, b.add(b.not_(found), I64(1)), found)

    # ---- one ----

    def at(self, index: ir.Value) -> ir.Value:
        if self._table is None:
            return self._of_field(index)
        b = self._builder
        result = cgutils.alloca_once(b, self._context.get_value_type(self.type))
        with b.if_else(b.icmp_unsigned("!=", self._table, NULL)) as (of_table, of_field):
            with of_table:
                b.store(self.of_table(index), result)
            with of_field:
                b.store(self._of_field(index), result)
        return b.load(result)

    def remembered(self) -> Elements:
        # Bytes that may change could have changed under a cursor that was kept.
        if not self.frozen or self._table is not None:
            return self
        b = self._builder
        identity = [cgutils.alloca_once(b, POINTER) for _ in range(2)]  # null at first
        cursor = tuple(cgutils.alloca_once(b, value.type) for value in self._start)
        kept = Variables(b, cgutils.alloca_once(b, I64), cursor)
        count = cgutils.alloca_once(b, I64)
        now = self.place.first, self.place.end
        same = [b.icmp_unsigned("==", b.load(held), own) for held, own in zip(identity, now, strict=True)]
        with b.if_then(b.not_(b.and_(*same))):
            b.store(self.count, count)
            kept.store(self._start)
            b.store(I64(0), kept.index)
            for held, own in zip(identity, now, strict=True):
                b.store(own, held)
        self._variables = kept
        self._part_count = b.load(count)
        return self

    def _of_field(self, index: ir.Value) -> ir.Value:
        if not self.shape.packable:
            return self._span(*self._step(index))
        return self._number(self._bits_at(index))

    def stored_at(self, index: ir.Value) -> ir.Value:
        """Of numbers of a field: the bits at an index, as they are stored in an array."""
        return stored_bits(self._builder, self.wire, self._bits_at(index))

    def _bits_at(self, index: ir.Value) -> ir.Value:
        """The bits of the number at an index, as they were read, an i64."""
        b = self._builder
        if not self.shape.width:
            return self._step(index)[0]
        result = cgutils.alloca_once(b, I64)
        with b.if_else(is_single_run(b, self.place)) as (of_array, of_runs):
            with of_array:
                run = b.gep(self.place.run, [b.mul(index, I64(self.shape.width))])
                b.store(read(b, self.shape, Cursor(NULL, I64(0), run, run), self.frozen)[0], result)
            with of_runs:
                b.store(self._step(index)[0], result)
        return b.load(result)

    def _step(self, index: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Move the cursor behind the element at an index, and give what `_take` does."""
        b, variables = self._builder, self._variables
        at = b.load(variables.index)
        with cgutils.if_unlikely(b, b.icmp_signed("!=", index, at)):
            back = b.icmp_signed("<", index, at)
            here = variables.load()
            origin = Cursor(*(b.select(back, *pair) for pair in zip(self._start, here, strict=True)))
            steps = b.select(back, index, b.sub(index, at))
            variables.store(seek(b, self.shape, self.place, origin, steps, self.frozen))
            b.store(index, variables.index)
        found = self._take(settle(b, self.shape, self.place, variables.load(), self.frozen))
        b.store(b.add(index, I64(1)), variables.index)
        return found

    def next(self) -> tuple[ir.Value, Cursor]:
        """Of a field: whether the cursor is at another element, and the cursor there, for `take`."""
        cursor = settle(self._builder, self.shape, self.place, self._variables.load(), self.frozen)
        return is_at_element(self._builder, cursor), cursor

    def take(self, cursor: Cursor) -> ir.Value:
        """The native element that a settled cursor is at; the variables move behind it."""
        first, second = self._take(cursor)
        return self._number(first) if self.shape.packable else self._span(first, second)

    def _take(self, cursor: Cursor) -> tuple[ir.Value, ir.Value]:
        """A number's bits and the position behind it, or a pointer and a number of bytes."""
        b = self._builder
        if not self.shape.packable:
            self._variables.store(pass_over(cursor))
            nbytes = b.sub(b.ptrtoint(cursor.run_end, I64), b.ptrtoint(cursor.run, I64))
            return cursor.run, nbytes
        bits, after = read(b, self.shape, cursor, self.frozen)
        if not self.shape.width:
            with cgutils.if_unlikely(b, b.icmp_unsigned("==", after, NULL)):
                self._raise(cursor)
        self._variables.store(passed(cursor, after))
        return bits, after

    def _raise(self, cursor: Cursor) -> None:
        raise_bad_varint(self._context, self._builder, self.typ, self._pointer, self.place, cursor)

    # ---- native values ----

    def _number(self, bits: ir.Value) -> ir.Value:
        b, one = self._builder, self.typ.one
        stored = stored_bits(b, self.wire, bits)
        if one.kind in ("float", "double"):
            stored = b.bitcast(stored, stored_type(one))
        return widen(b, one, stored)

    def _span(self, pointer: ir.Value, nbytes: ir.Value) -> ir.Value:
        made = cgutils.create_struct_proxy(self.type)(self._context, self._builder)
        made.pointer, made.nbytes, made.owner = pointer, nbytes, self.owner
        return made._getvalue()

    # ---- tables ----

    @property
    def _row_nbytes(self) -> int:
        return 8 if self.shape.packable else 16

    def of_table(self, row: ir.Value) -> ir.Value:
        """The native element in a row of a slice's table, if there's one; raises nothing."""
        b = self._builder
        assert self._table is not None
        at = b.gep(self._context.nrt.meminfo_data(b, self._table), [b.mul(row, I64(self._row_nbytes))])
        words = b.bitcast(at, I64.as_pointer())
        first = b.load(words)
        if not self.shape.packable:
            return self._span(b.inttoptr(first, POINTER), b.load(b.gep(words, [I64(1)])))
        if self.type is types.float64:
            return b.bitcast(first, _DOUBLE)
        return b.icmp_unsigned("!=", first, I64(0)) if self.type is types.boolean else first

    def part(self, start: ir.Value, step: ir.Value, count: ir.Value) -> ir.Value:
        """Its table is filled by ascending index, whichever way the slice goes."""
        b, context = self._builder, self._context
        typ = self.typ.sliced()
        table = context.nrt.meminfo_alloc(b, b.mul(count, I64(self._row_nbytes)))
        rows = context.nrt.meminfo_data(b, table)
        down = b.icmp_signed("<", step, I64(0))
        last = b.sub(count, I64(1))
        lowest = b.select(down, b.add(start, b.mul(last, step)), start)
        stride = b.select(down, b.neg(step), step)
        with cgutils.for_range(b, count) as loop:
            element = self.at(b.add(lowest, b.mul(loop.index, stride)))
            row = b.select(down, b.sub(last, loop.index), loop.index)
            self._fill(b.gep(rows, [b.mul(row, I64(self._row_nbytes))]), element)
        made = cgutils.create_struct_proxy(typ)(context, b)
        for name, value in zip(MEMBERS, self._members, strict=True):
            setattr(made, name, value)
        made.table, made.count = table, count
        if typ.owned:
            context.nrt.incref(b, types.MemInfoPointer(types.voidptr), self.owner)
        return made._getvalue()

    def _fill(self, row: ir.Value, element: ir.Value) -> None:
        b = self._builder
        words = b.bitcast(row, I64.as_pointer())
        if not self.shape.packable:
            native = cgutils.create_struct_proxy(self.type)(self._context, b, element)
            b.store(b.ptrtoint(native.pointer, I64), words)
            b.store(native.nbytes, b.gep(words, [I64(1)]))
        elif self.type is types.float64:
            b.store(element, b.bitcast(words, _DOUBLE.as_pointer()))
        else:
            b.store(b.zext(element, I64) if self.type is types.boolean else element, words)


readers["repeated"] = _read_repeated
elements_makers[WireRepeatedType] = WireElements
