"""Reads values of protobuf's wire format one after the other, within bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from yaffjit.codec.emitted import runtime as rt
from yaffjit.codec.emitted.code import Code, Value, Variable
from yaffjit.kernels.wire import MAX_SIZE
from yaffjit.plan import wire_tables as tables

if TYPE_CHECKING:
    from yaffjit.codec.emitted.messages import Messages

_MASK32 = 0xFFFFFFFF
_SIZE_NBYTES = 5  # of the varint of a size; longer ones have padding


class Cursor:
    """A position that goes from ``start`` to ``limit``."""

    def __init__(self, messages: Messages, code: Code, start: Value, limit: Value) -> None:
        self.messages = messages
        self.code = code
        self.pos = Variable(code, start)
        self.limit = limit

    def skip_tag(self, nbytes: Value) -> None:
        """Goes behind a tag that was read before; a byte follows."""
        code = self.code
        self.pos.add(nbytes)
        code.fail_if(code.is_(self.pos.get(), ">=", self.limit), rt.NOT_MINE)

    def varint(self) -> Any:
        """The bits of a varint.

        Requires: there's at least one byte.
        """
        code = self.code
        pos = self.pos.get()
        byte = code.load(pos, 8)
        value, behind = Variable(code, byte), Variable(code, code.add(pos, 1))
        with code.when(code.is_(byte, ">=", 128)):
            long, end = self.messages.runtime.read_varint(code, pos, self.limit)
            code.fail_if(code.is_(end, "==", 0), rt.NOT_MINE)
            value.set(long)
            behind.set(end)
        self.pos.set(behind.get())
        return value.get()

    def size(self) -> Any:
        """The size of what follows, which ends at the limit at the latest.

        Requires: there's at least one byte.
        """
        code = self.code
        start = self.pos.get()
        size = self.varint()
        left = code.sub(self.limit, self.pos.get())
        most = code.select(code.is_(left, "<", MAX_SIZE), left, MAX_SIZE)
        code.fail_if(code.below(most, size), rt.NOT_MINE)
        code.fail_if(code.is_(code.sub(self.pos.get(), start), ">", _SIZE_NBYTES), rt.NOT_MINE)
        return size

    def fixed(self, bits: int) -> Any:
        code = self.code
        pos = self.pos.get()
        code.fail_if(code.is_(code.sub(self.limit, pos), "<", bits // 8), rt.NOT_MINE)
        self.pos.set(code.add(pos, bits // 8))
        return code.load(pos, bits)

    def scalar(self, op: int, enum: tuple[int, ...]) -> Any:
        """The bits of a scalar by its operation, of 32 in the low half.

        Requires: there's at least one byte.
        """
        code = self.code
        if op == tables.FIXED64:
            return self.fixed(64)
        if op in (tables.FIXED32, tables.FLOAT):
            bits = self.fixed(32)
            return quieted(code, bits) if op == tables.FLOAT else bits
        value = _scalar_of(code, op, self.varint())
        if op == tables.CLOSED_ENUM:
            self.messages.check_member(code, enum, value)
        return value


def _scalar_of(code: Code, op: int, value: Value) -> Any:
    if op == tables.VARINT64:
        return value
    if op == tables.BOOL:
        return code.number(code.is_(value, "!=", 0))
    if op == tables.ZIGZAG64:
        return code.xor(code.shr(value, 1), code.sub(0, code.and_(value, 1)))
    value = code.and_(value, _MASK32)
    if op == tables.ZIGZAG32:
        return code.and_(code.xor(code.shr(value, 1), code.sub(0, code.and_(value, 1))), _MASK32)
    return value


def quieted(code: Code, bits: Value) -> Any:
    """The bits of a float, of a signalling NaN those of its quiet one: Python's floats are doubles."""
    is_nan = code.is_(code.and_(bits, 0x7FFFFFFF), ">", 0x7F800000)
    return code.select(is_nan, code.or_(bits, 0x400000), bits)
