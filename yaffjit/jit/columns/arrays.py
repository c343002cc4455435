"""The arrays of columns as LLVM, by their addresses in a table; and the first value that doesn't fit one."""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils

from yaffjit.jit.emit.outline import I64, POINTER
from yaffjit.plan.gathering import Gathering, Leaf

FITS = 0  # what a row gives whose values all fit
BROKEN = -1  # and one whose bytes aren't a message


class Arrays:
    """The slots of columns.

    Args:
        builder: where code goes.
        wanted: what is stored.
        table: the address of the table of the slots' addresses.
        row: the message's.

    Attributes:
        failed: a variable: `FITS`, or 1 and the index of a leaf with a value that doesn't fit.
    """

    def __init__(self, builder: ir.IRBuilder, wanted: Gathering, table: ir.Value, row: ir.Value) -> None:
        self.builder = builder
        self.wanted = wanted
        self.table = table
        self.row = row
        self.failed = cgutils.alloca_once_value(builder, I64(FITS))

    def array(self, slot: int) -> ir.Value:
        """The pointer to a slot's first byte."""
        b = self.builder
        at = b.inttoptr(b.add(self.table, I64(8 * slot)), I64.as_pointer())
        loaded = b.load(at, align=8)
        loaded.set_metadata("invariant.load", b.module.add_metadata([]))
        return b.inttoptr(loaded, POINTER)

    def item(self, slot: int, index: ir.Value, typ: ir.Type = I64) -> ir.Value:
        """The pointer to an item of a slot's array."""
        b = self.builder
        return b.gep(b.bitcast(self.array(slot), typ.as_pointer()), [index], inbounds=True)

    def store(self, slot: int, index: ir.Value, value: ir.Value) -> None:
        self.builder.store(value, self.item(slot, index, value.type))

    def keep(self, leaf: Leaf, index: ir.Value, value: ir.Value, fits: ir.Value | None) -> None:
        """Store what has a fixed width; note where it doesn't fit."""
        self.store(leaf.values, index, value)
        if fits is not None:
            b = self.builder
            before = b.load(self.failed)
            is_first = b.and_(b.icmp_signed("==", before, I64(FITS)), b.not_(fits))
            b.store(b.select(is_first, I64(1 + self.wanted.leaves.index(leaf)), before), self.failed)
