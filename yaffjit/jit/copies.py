"""Values on a path of messages in one's own arrays: read from bytes that may change, and copied out of them.

Nothing that comes out points into the array: text is a str, bytes are bytes, repeated numbers are an array of
their own dtype, repeated text is a list. Nothing is taken to be frozen, as it is under views.

Requires: the buffer is a well-formed message. Source: docs/format.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.cpython.listobj import ListInstance
from numba.np.arrayobj import _empty_nd_impl

from yaffjit.errors import SchemaError
from yaffjit.jit.attributes import widen
from yaffjit.jit.emit import yaff
from yaffjit.jit.emit.outline import I1, I8, I32, I64, NULL, POINTER, Body, call_outlined
from yaffjit.jit.maps.search import find, pairs_of
from yaffjit.jit.repeated.access import raise_element_error
from yaffjit.jit.text.decode import make_bytes, make_string
from yaffjit.jit.text.type import bytes_type, constant_bytes, numba_bytes, text_at, text_type
from yaffjit.jit.types import value_type
from yaffjit.plan.model import OFFSET_WIDTH, SCALAR_CODE, FieldPlan, MessagePlan
from yaffjit.plan.paths import Index, Step, example

_COUNT_WIDTH = 4

# numba types of stored numbers, by their character in `SCALAR_CODE`.
ELEMENTS = {
    "?": types.boolean,
    "i": types.int32,
    "I": types.uint32,
    "q": types.int64,
    "Q": types.uint64,
    "f": types.float32,
    "d": types.float64,
}


def copied_type(mp: MessagePlan, steps: tuple[Step, ...], path: str) -> types.Type:
    """The numba type of what a getter of a path gives.

    Raises:
        SchemaError: the path leads to a message, to a whole map or to all messages of a repeated field.
    """
    owner, f = steps[-1].target
    where = f"path {path!r} of {mp.full_name}"
    if f.is_map:
        raise SchemaError(f"{where} is a map: name a key, as {example(owner, f)}")
    if f.kind == "message":
        if f.repeated:
            names = [inner.name for inner in owner.child(f).fields] or ["field"]
            raise SchemaError(
                f"{where} is repeated messages: name a field of one, as {example(owner, f)}.{names[0]}"
            )
        raise SchemaError(f"{where} is a message: name a field of {f.message}")
    if f.kind in ("string", "bytes"):
        single = types.unicode_type if f.kind == "string" else numba_bytes
        return types.List(single) if f.repeated else single
    if f.repeated:
        return types.Array(ELEMENTS[SCALAR_CODE[f.kind]], 1, "C")
    found: types.Type = value_type(owner, f)
    return found


class Reader:
    """Reads along paths from one message.

    Args:
        context, builder: numba's; the code goes where the builder is.
        message: the pointer to the root message.
    """

    def __init__(self, context: Any, builder: ir.IRBuilder, message: ir.Value) -> None:
        self.context = context
        self.builder = builder
        self.root = message

    def presence(self, steps: tuple[Step, ...]) -> ir.Value:
        """Whether all on a path is there, as an i1: messages and fields, keys, indices."""
        b = self.builder
        message = self._message(steps[:-1], raises=False)
        last = steps[-1]
        if last.index is None:
            return yaff.present(b, last.mp, last.f, message, frozen=False)
        if last.f.is_map:
            return b.icmp_unsigned("!=", self._pair(last, message), NULL)
        return self._locate(last, message)[2]

    def value(self, steps: tuple[Step, ...]) -> ir.Value:
        """The native value, of `copied_type`, at a path; raises IndexError, UnicodeDecodeError."""
        b = self.builder
        message = self._message(steps[:-1], raises=True)
        last = steps[-1]
        mp, f = last.target
        if f.repeated:
            array = yaff.reference(b, mp, f, message, frozen=False)
            return self._texts(f, array) if f.kind in ("string", "bytes") else self._numbers(f, array)
        if f.out_of_line:
            return self._text(f, self._reference(last, message, raises=True))
        return widen(b, f, self._number(last, message))

    def _message(self, steps: tuple[Step, ...], raises: bool) -> ir.Value:
        """The pointer to the message that the steps lead to; null where something isn't there.

        ``raises``: IndexError where an index is out of range.
        """
        message = self.root
        for step in steps:
            message = self._reference(step, message, raises)
        return message

    def _reference(self, step: Step, message: ir.Value, raises: bool) -> ir.Value:
        """The pointer to the message or text that a step leads to, null where it's absent."""
        b = self.builder
        mp, f = step.target
        if step.index is None:
            return yaff.reference(b, mp, f, message, frozen=False)
        if step.f.is_map:
            return yaff.reference(b, mp, f, self._pair(step, message), frozen=False)
        first, index, within = self._element(step, message, raises)
        found = cgutils.alloca_once_value(b, NULL)
        with b.if_then(within):
            at = self._after(first, b.mul(index, I64(f.width if f.inlined else OFFSET_WIDTH)))
            if not f.inlined:  # offsets count from the first of them
                at = self._after(first, b.zext(self._load(at, I32), I64))
            b.store(at, found)
        return b.load(found)

    def _number(self, step: Step, message: ir.Value) -> ir.Value:
        """The stored number that a step leads to."""
        b = self.builder
        mp, f = step.target
        if step.index is None:
            return yaff.scalar(b, mp, f, message, frozen=False)
        if not step.f.is_map:
            first, index, _ = self._element(step, message, raises=True)
            return self._load(self._after(first, b.mul(index, I64(f.width))), yaff.stored_type(f))
        pair = self._pair(step, message)
        # A map's pairs have no absent values: the number that is stored counts, whatever the default is.
        stored = yaff.scalar(b, mp, replace(f, declared_bits=f.default_bits), pair, frozen=False)
        missing = yaff.scalar(b, mp, f, NULL, frozen=False)
        return b.select(b.icmp_unsigned("!=", pair, NULL), stored, missing)

    def _text(self, f: FieldPlan, target: ir.Value) -> ir.Value:
        """A new str or bytes of the text at a pointer."""
        typ = text_type if f.kind == "string" else bytes_type
        default = f.default if isinstance(f.default, (str, bytes)) else b""
        found = text_at(self.context, self.builder, typ, target, NULL, default, frozen=False)
        if f.kind == "bytes":
            return make_bytes(self.context, self.builder, found)
        return make_string(self.context, self.builder, found, frozen=False)

    def _texts(self, f: FieldPlan, array: ir.Value) -> ir.Value:
        """A new list of the texts of an array."""
        b = self.builder
        typ = types.List(types.unicode_type if f.kind == "string" else numba_bytes)
        count = self._count(array)
        first = self._after(array, I64(_COUNT_WIDTH))
        made = ListInstance.allocate(self.context, b, typ, count)
        made.size = count
        with cgutils.for_range(b, count) as loop:
            offset = self._load(self._after(first, b.mul(loop.index, I64(OFFSET_WIDTH))), I32)
            text = self._text(f, self._after(first, b.zext(offset, I64)))
            made.inititem(loop.index, text, incref=False)
        return made.value

    def _numbers(self, f: FieldPlan, array: ir.Value) -> ir.Value:
        """A new array of the numbers of an array."""
        b = self.builder
        typ = types.Array(ELEMENTS[SCALAR_CODE[f.kind]], 1, "C")
        count = self._count(array)
        first = self._after(array, I64(_COUNT_WIDTH))
        made = _empty_nd_impl(self.context, b, typ, [count])
        if f.kind == "bool":  # any byte but 0 is true
            out = b.bitcast(made.data, POINTER)
            with cgutils.for_range(b, count) as loop:
                is_set = b.icmp_unsigned("!=", self._load(self._after(first, loop.index), I8), I8(0))
                b.store(b.zext(is_set, I8), self._after(out, loop.index))
        else:
            cgutils.raw_memcpy(b, made.data, first, count, f.element_width)
        return made._getvalue()

    def _element(self, step: Step, message: ir.Value, raises: bool) -> tuple[ir.Value, ir.Value, ir.Value]:
        """As `_locate`; raises IndexError where the index is out of range, if asked to."""
        first, index, within, count = self._locate(step, message)
        if raises:
            with cgutils.if_unlikely(self.builder, self.builder.not_(within)):
                asked = I64(step.index)
                raise_element_error(self.context, self.builder, step.f.name, asked, count)
        return first, index, within

    def _locate(self, step: Step, message: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value, ir.Value]:
        """The pointer to an array's first element, the index from there, whether it's within (an i1), the
        number of elements.
        """
        b = self.builder
        array = yaff.reference(b, step.mp, step.f, message, frozen=False)
        count = self._count(array)
        assert step.index is not None and not isinstance(step.index, str)
        index = I64(step.index) if step.index >= 0 else b.add(count, I64(step.index))
        return self._after(array, I64(_COUNT_WIDTH)), index, b.icmp_unsigned("<", index, count), count

    def _pair(self, step: Step, message: ir.Value) -> ir.Value:
        """The pointer to the pair of a map that has the step's key, or null."""
        b = self.builder
        entry = step.mp.child(step.f)
        pairs = pairs_of(entry)
        array = yaff.reference(b, step.mp, step.f, message, frozen=False)
        first = self._after(array, I64(_COUNT_WIDTH))
        assert step.index is not None
        key = _key(b, entry, step.index)
        # One look through the pairs is what it would take to learn that they may be searched by halving.
        return find(b, pairs, first, self._count(array), I1(0), key, frozen=False)

    def _count(self, array: ir.Value) -> ir.Value:
        """The number of an array's elements, 0 for null."""

        def emit(body: Body) -> None:
            array = body.args[0]
            body.return_unless(body.builder.icmp_unsigned("!=", array, NULL), I64(0))
            body.builder.ret(body.builder.zext(body.load(array, 0, I32), I64))

        return call_outlined(self.builder, "count", "", I64, [array], emit, frozen=False)

    def _after(self, pointer: ir.Value, nbytes: ir.Value) -> ir.Value:
        return self.builder.gep(pointer, [nbytes])

    def _load(self, pointer: ir.Value, typ: ir.Type) -> ir.Value:
        return self.builder.load(self.builder.bitcast(pointer, typ.as_pointer()), align=1)


def _key(builder: ir.IRBuilder, entry: MessagePlan, key: Index) -> list[ir.Value]:
    """A key as `maps.search.find` takes it."""
    if isinstance(key, str):
        raw = key.encode()
        return [constant_bytes(builder, raw), I64(len(raw))]
    return [ir.IntType(8 * entry.fields[0].width)(int(key))]
