"""The loop under `map`: a user's function is called for each row, and its result stored, in one piece.

What the loop needs at run time lies in a table of int64, the same for all functions: addresses of what is
written, each moved so that a row's place is found by the row's number.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.core.registry import cpu_target
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from yaffjit.jit.emit.outline import I8, I64, POINTER
from yaffjit.jit.results import Leaf, Result, result_of

# The table's words.
STOP = 0  # address of an int64 that isn't 0 where the loop shall end early
ROW = 1  # the row that is being worked on; written by the loop
VALID = 2  # address of a byte a row, 0 for null rows; or 0
FAULT = 3  # the leaf whose array had another length; written by the loop
FOUND = 4  # that length
LEAVES = 5  # from here three words a leaf:
DATA, MISSING, LENGTH = range(3)  # addresses of values, of a byte a row; length of each array
WORDS = 3

Loop = Callable[[Any, tuple[Any, ...], int, int, int], int]


def table_words(result: Result) -> int:
    """How long the table is."""
    return LEAVES + WORDS * len(result.leaves)


class _Store:
    """Stores what one row gives.

    Args:
        context, builder: numba's; the code goes where the builder is.
        table: its address, an i64.
        row: an i64.
    """

    def __init__(self, context: Any, builder: ir.IRBuilder, table: ir.Value, row: ir.Value) -> None:
        self.context = context
        self.builder = builder
        self.words = builder.inttoptr(table, I64.as_pointer())
        self.row = row

    def word(self, number: int) -> ir.Value:
        """A word that never changes while the loop runs."""
        found = self.builder.load(self.builder.gep(self.words, [I64(number)]))
        found.set_metadata("invariant.load", self.builder.module.add_metadata([]))
        return found

    def write_word(self, number: int, value: ir.Value) -> None:
        self.builder.store(value, self.builder.gep(self.words, [I64(number)]))

    def is_stopped(self) -> ir.Value:
        """Whether another thread says so; read anew each time."""
        address = self.builder.inttoptr(self.word(STOP), I64.as_pointer())
        stop = self.builder.load_atomic(address, "monotonic", 8)
        return self.builder.icmp_signed("!=", stop, I64(0))

    def is_valid(self) -> ir.Value:
        b = self.builder
        valid = self.word(VALID)
        found = cgutils.alloca_once_value(b, cgutils.true_bit)
        with b.if_then(b.icmp_signed("!=", valid, I64(0)), likely=False):
            b.store(b.icmp_unsigned("!=", b.load(self._byte(valid)), I8(0)), found)
        return b.load(found)

    def _byte(self, address: ir.Value) -> ir.Value:
        """A pointer to the row's byte."""
        return self.builder.inttoptr(self.builder.add(address, self.row), POINTER)

    def is_stored(self, result: Result, typ: types.Type, value: ir.Value) -> ir.Value:
        """Store a result, whose reference is taken; false where an array hasn't the length of the others."""
        b = self.builder
        if not isinstance(typ, types.Optional) or result.make is None:
            return self._tuple(result, typ, value)
        optional = self.context.make_helper(b, typ, value=value)
        fits = cgutils.alloca_once_value(b, cgutils.true_bit)
        with b.if_else(cgutils.as_bool_bit(b, optional.valid)) as (there, otherwise):
            with there:
                b.store(self._tuple(result, typ.type, optional.data), fits)
            with otherwise:
                for place in range(len(result.leaves)):
                    self._missing(place)
        return b.load(fits)

    def _tuple(self, result: Result, typ: types.Type, value: ir.Value) -> ir.Value:
        b = self.builder
        if result.make is None:
            members = [(typ, value)]
        else:
            members = [(member, b.extract_value(value, place)) for place, member in enumerate(typ)]
        fits = cgutils.alloca_once_value(b, cgutils.true_bit)
        for place, leaf in enumerate(result.leaves):
            if leaf.form == "array":
                self._check_length(place, *members[place], fits)
        with b.if_else(b.load(fits)) as (then, otherwise):
            with then:
                for place, leaf in enumerate(result.leaves):
                    self._member(place, leaf, *members[place])
            with otherwise:
                self.context.nrt.decref(b, typ, value)
        return b.load(fits)

    def _missing(self, place: int) -> None:
        """There's no value."""
        self.builder.store(I8(1), self._byte(self.word(LEAVES + WORDS * place + MISSING)))

    def _check_length(self, place: int, typ: types.Type, value: ir.Value, fits: ir.Value) -> None:
        """Write down the first array whose length isn't that of the table."""
        b = self.builder
        if isinstance(typ, types.Optional):
            optional = self.context.make_helper(b, typ, value=value)
            with b.if_then(cgutils.as_bool_bit(b, optional.valid)):
                self._check_length(place, typ.type, optional.data, fits)
            return
        length = self.context.make_helper(b, typ, value=value).nitems
        wrong = b.icmp_signed("!=", length, self.word(LEAVES + WORDS * place + LENGTH))
        with b.if_then(b.and_(wrong, b.load(fits)), likely=False):
            b.store(cgutils.false_bit, fits)
            self.write_word(FAULT, I64(place))
            self.write_word(FOUND, length)

    def _member(self, place: int, leaf: Leaf, typ: types.Type, value: ir.Value) -> None:
        b = self.builder
        if isinstance(typ, types.Optional):
            optional = self.context.make_helper(b, typ, value=value)
            there = cgutils.as_bool_bit(b, optional.valid)
            with b.if_else(there) as (then, otherwise):
                with then:
                    self._member(place, leaf, typ.type, optional.data)
                with otherwise:
                    self._missing(place)
        elif leaf.form == "array":
            self._array(place, leaf, typ, value)
        else:
            self._pack(place, leaf.stored, self.context.cast(b, value, typ, leaf.stored))

    def _pack(self, place: int, typ: types.Type, value: ir.Value) -> None:
        base = self.word(LEAVES + WORDS * place + DATA)
        at = self.builder.add(base, self.builder.mul(self.row, I64(stored_nbytes(self.context, typ))))
        pointer = self.context.get_value_type(types.CPointer(typ))
        self.context.pack_value(self.builder, typ, value, self.builder.inttoptr(at, pointer))

    def _array(self, place: int, leaf: Leaf, typ: types.Type, value: ir.Value) -> None:
        b = self.builder
        array = self.context.make_helper(b, typ, value=value)
        width = self.context.get_abi_sizeof(self.context.get_data_type(typ.dtype))
        base = self.word(LEAVES + WORDS * place + DATA)
        start = b.add(base, b.mul(self.row, b.mul(array.nitems, I64(width))))
        stride = b.extract_value(array.strides, 0)
        source = b.bitcast(array.data, POINTER)
        target = b.inttoptr(start, POINTER)
        with cgutils.for_range(b, array.nitems) as loop:
            element = b.gep(source, [b.mul(loop.index, stride)])
            place_of_it = b.gep(target, [b.mul(loop.index, I64(width))])
            cgutils.raw_memcpy(b, place_of_it, element, I64(1), width)
        self.context.nrt.decref(b, typ, value)


def stored_nbytes(context: Any, typ: types.Type) -> int:
    """Bytes from one stored value to the next."""
    nbytes: int = context.get_abi_sizeof(context.get_data_type(typ))
    return nbytes


def text_nbytes(leaf: Leaf) -> int:
    """Bytes of a stored text, from one to the next."""
    return stored_nbytes(cpu_target.target_context, leaf.stored)


@intrinsic
def _begins(typingctx, table, row):  # type: ignore[no-untyped-def]
    """``_begins(table, row)``: write down that the loop is there; false where it shall end."""

    def codegen(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        store = _Store(context, builder, *args)
        store.write_word(ROW, args[1])
        return builder.not_(store.is_stopped())

    return types.boolean(types.int64, types.int64), codegen


@intrinsic
def _is_valid(typingctx, table, row):  # type: ignore[no-untyped-def]
    """``_is_valid(table, row)``: whether there's a message."""

    def codegen(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        return _Store(context, builder, *args).is_valid()

    return types.boolean(types.int64, types.int64), codegen


@intrinsic(prefer_literal=True)
def _is_stored(typingctx, table, row, value):  # type: ignore[no-untyped-def]
    """``_is_stored(table, row, value)``: store a result; false where an array's length isn't the others'.

    Requires: the table's addresses are those of arrays for `result_of` the value's type that have the row.
    """
    result = result_of(value, None)

    def codegen(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        context.nrt.incref(builder, value, args[2])  # the caller lets go of its own
        return _Store(context, builder, *args[:2]).is_stored(result, value, args[2])

    return types.boolean(types.int64, types.int64, value), codegen


def returned_type(function: Any, records: types.Type, args: tuple[types.Type, ...]) -> types.Type:
    """The numba type of what a jitted function returns for a row; it's compiled for that."""
    arguments = (records.iterator_type.yield_type, *args)
    found: types.Type = (
        types.Dispatcher(function).get_call_type(cpu_target.typing_context, arguments, {}).return_type
    )
    return found


def compile_loop(function: Any, records: types.Type, args: tuple[types.Type, ...]) -> Loop:
    """The loop of a jitted function over records.

    It's called as ``loop(records, args, begin, end, address of the table)``. It returns ``end``, or the row
    at which it ended early, because it was stopped or because of an array's length.

    Args:
        function: a dispatcher, which isn't kept; `result_of` takes what it returns.
        records, args: types of the records and of what the function takes after the row.
    """

    def loop(records, args, begin, end, table):  # type: ignore[no-untyped-def]
        row = begin
        for message in records[begin:end]:
            if not _begins(table, row):
                return row
            if _is_valid(table, row) and not _is_stored(table, row, function(message, *args)):
                return row
            row += 1
        return end

    compiled: Loop = njit(loop, nogil=True).compile(
        (records, types.Tuple(args), types.int64, types.int64, types.int64)
    )
    return compiled


@functools.cache
def text_maker(typ: types.Type) -> Callable[[int, int, int, int], int]:
    """What makes objects of stored text: ``make(data, missing, objects, count)``, called with the GIL.

    ``data``, ``missing`` and ``objects`` are addresses: of the text, of a byte a row (not 0 where there's no
    text) or 0, and of the objects that are replaced. Where text isn't UTF-8, the object is the exception. It
    returns the place of the first one, or ``count``.

    Requires: there are so many of each, and no text is used again.
    """

    @intrinsic
    def make_all(typingctx, data, missing, objects, count):  # type: ignore[no-untyped-def]
        def codegen(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
            return _make_objects(context, builder, typ, args)

        return types.int64(types.int64, types.int64, types.int64, types.int64), codegen

    def make(data, missing, objects, count):  # type: ignore[no-untyped-def]
        return make_all(data, missing, objects, count)

    made: Callable[[int, int, int, int], int] = njit(make).compile((types.int64,) * 4)
    return made


def _make_objects(context: Any, builder: ir.IRBuilder, typ: types.Type, args: list[ir.Value]) -> ir.Value:
    b, api = builder, context.get_python_api(builder)
    data, missing, objects, count = args
    pointer = context.get_value_type(types.CPointer(typ))
    first_fault = cgutils.alloca_once_value(b, count)
    made = cgutils.alloca_once(b, api.pyobj)
    with cgutils.for_range(b, count) as loop:
        there = cgutils.alloca_once_value(b, cgutils.true_bit)
        with b.if_then(b.icmp_signed("!=", missing, I64(0))):
            mark = b.load(b.inttoptr(b.add(missing, loop.index), POINTER))
            b.store(b.icmp_unsigned("==", mark, I8(0)), there)
        with b.if_then(b.load(there)):
            at = b.add(data, b.mul(loop.index, I64(stored_nbytes(context, typ))))
            value = context.unpack_value(b, typ, b.inttoptr(at, pointer))
            b.store(api.from_native_value(typ, value), made)
            with b.if_then(cgutils.is_null(b, b.load(made)), likely=False):
                b.store(_exception(b, api), made)
                is_first = b.icmp_signed("<", loop.index, b.load(first_fault))
                b.store(b.select(is_first, loop.index, b.load(first_fault)), first_fault)
            place = b.inttoptr(b.add(objects, b.mul(loop.index, I64(8))), api.pyobj.as_pointer())
            api.decref(b.load(place))
            b.store(b.load(made), place)
    return b.load(first_fault)


def _exception(builder: ir.IRBuilder, api: Any) -> ir.Value:
    """A reference to the exception that is set; it isn't any more."""
    parts = [cgutils.alloca_once(builder, api.pyobj) for _ in range(3)]
    api.err_fetch(*parts)
    function_type = ir.FunctionType(ir.VoidType(), [api.pyobj.as_pointer()] * 3)
    normalize = cgutils.get_or_insert_function(builder.module, function_type, "PyErr_NormalizeException")
    builder.call(normalize, parts)
    kind, value, trace = map(builder.load, parts)
    api.decref(kind)
    api.decref(trace)
    return value
