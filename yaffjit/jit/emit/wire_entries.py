"""Pairs of a map field in protobuf bytes as LLVM: looked up by key, and listed.

A pair is a message of a key and a value. Of those with equal keys the last one counts. One that has an
unknown field, a number that a closed enum lacks included, is an unknown field itself, as protobuf has it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from llvmlite import ir
from numba.core import cgutils

from yaffjit.jit.emit.outline import I1, I64, NULL, POINTER, Body, call_outlined, outlined
from yaffjit.jit.emit.wire import Node, Pass
from yaffjit.jit.emit.wire_fields import BYTES
from yaffjit.jit.emit.wire_runs import (
    Cursor,
    Place,
    Shape,
    begin,
    is_at_element,
    join,
    pass_over,
    settle,
)
from yaffjit.jit.emit.wire_walk import Walker
from yaffjit.jit.maps.search import Key
from yaffjit.jit.text.compare import equal, order_of_points
from yaffjit.plan.model import MessagePlan

# Words of a listed pair: the key (a number's bits and -1, or the address of its text and the number of
# bytes), where the pair is, and its number of bytes.
ROW_WORDS = 4
_NUMBER = -1
_SHAPE = Shape(BYTES, None)
# Where a pair is, its number of bytes, and the error of the one that is broken.
_FOUND = ir.LiteralStructType([POINTER, I64, I64])
_LISTED = ir.LiteralStructType([I64, POINTER, I64, I64])


class _Entry(NamedTuple):
    """What a pass over a pair gives."""

    error: ir.Value
    strange: ir.Value  # it has an unknown field
    key: list[ir.Value]


class _EntryPass(Pass):
    """A pass that notes whether there's an unknown field."""

    strange: ir.Value

    def _other(self, walker: Walker, node: Node, tag: ir.Value, proceed: ir.Block) -> None:
        self._unknown_number()
        super()._other(walker, node, tag, proceed)

    def _unknown_number(self) -> None:
        self.builder.store(I1(1), self.strange)


def find(builder: ir.IRBuilder, entry: MessagePlan, place: Place, key: Key, frozen: bool) -> ir.Value:
    """The last pair with a key: {pointer, null if there's none; bytes; error of the pair there, or 0}.

    Args:
        entry: the pairs' message type.
        key: as for `maps.search.find`.
        frozen: neither the message nor the key's bytes change while the caller runs.
    """

    def emit(body: Body) -> None:
        b = body.builder
        first, count, end, number, *key = body.args
        place = _place(first, count, end, number)
        found = [cgutils.alloca_once_value(b, value) for value in (NULL, I64(0))]

        def visit(pointer: ir.Value, nbytes: ir.Value, pair: _Entry) -> None:
            good = b.icmp_unsigned("==", pair.error, I64(0))
            body.return_unless(good, cgutils.pack_struct(b, [pointer, nbytes, pair.error]))
            same = b.and_(b.not_(pair.strange), _equal(b, pair.key, key, frozen))
            for variable, value in zip(found, (pointer, nbytes), strict=True):
                b.store(b.select(same, value, b.load(variable)), variable)

        _each(body, entry, place, visit)
        b.ret(cgutils.pack_struct(b, [*map(b.load, found), I64(0)]))

    args = [place.first, place.count, place.end, place.number, *key]
    return call_outlined(builder, "wire_find", _content(entry), _FOUND, args, emit, frozen, inline=False)


def list_pairs(
    builder: ir.IRBuilder, entry: MessagePlan, place: Place, rows: ir.Value, frozen: bool
) -> ir.Value:
    """Write a row of each pair, equal keys too: {rows written; the pair that is broken; its bytes; error}.

    Requires: at ``rows`` is room for as many rows as there are occurrences.
    """

    def emit(body: Body) -> None:
        b = body.builder
        first, count, end, number, rows = body.args
        place = _place(first, count, end, number)
        written = cgutils.alloca_once_value(b, I64(0))

        def visit(pointer: ir.Value, nbytes: ir.Value, pair: _Entry) -> None:
            row = b.load(written)
            good = b.icmp_unsigned("==", pair.error, I64(0))
            body.return_unless(good, cgutils.pack_struct(b, [row, pointer, nbytes, pair.error]))
            with b.if_then(b.not_(pair.strange)):
                at = b.gep(b.bitcast(rows, I64.as_pointer()), [b.mul(row, I64(ROW_WORDS))])
                words = [*_key_words(b, pair.key), b.ptrtoint(pointer, I64), nbytes]
                for i, word in enumerate(words):
                    b.store(word, b.gep(at, [I64(i)]))
                b.store(b.add(row, I64(1)), written)

        _each(body, entry, place, visit)
        b.ret(cgutils.pack_struct(b, [b.load(written), NULL, I64(0), I64(0)]))

    args = [place.first, place.count, place.end, place.number, rows]
    types = [arg.type for arg in args]
    content = _content(entry)
    function = outlined(builder.module, "wire_list", content, _LISTED, types, emit, frozen, inline=False)
    function.attributes.discard("readnone" if frozen else "readonly")  # it writes
    return builder.call(function, args)


def _content(entry: MessagePlan) -> tuple[str, str]:
    return entry.full_name, entry.fingerprint


def _place(first: ir.Value, count: ir.Value, end: ir.Value, number: ir.Value) -> Place:
    return Place(first, count, I64(0), NULL, I64(0), end, number)


def _each(
    body: Body, entry: MessagePlan, place: Place, visit: Callable[[ir.Value, ir.Value, _Entry], None]
) -> None:
    """Call ``visit(pointer, nbytes, _Entry)`` in a loop over the pairs."""
    b = body.builder
    cursor = begin(b, _SHAPE, place)
    before = b.block
    loop, more, done = (b.append_basic_block() for _ in range(3))
    b.branch(loop)
    b.position_at_end(loop)
    phis = Cursor(*(b.phi(value.type) for value in cursor))
    at = settle(b, _SHAPE, place, phis, body.frozen)
    b.cbranch(is_at_element(b, at), more, done)
    b.position_at_end(more)
    nbytes = b.sub(b.ptrtoint(at.run_end, I64), b.ptrtoint(at.run, I64))
    visit(at.run, nbytes, _scan(b, entry, at.run, nbytes, body.frozen))
    join(phis, cursor, before, pass_over(at), b.block)
    b.branch(loop)
    b.position_at_end(done)


def _scan(
    builder: ir.IRBuilder, entry: MessagePlan, pointer: ir.Value, nbytes: ir.Value, frozen: bool
) -> _Entry:
    """One pass over a pair."""
    key_field = entry.fields[0]
    slots = ("pointer", "nbytes") if key_field.kind == "string" else ("value",)

    def emit(body: Body) -> None:
        b = body.builder
        pointer, nbytes = body.args
        bad = b.append_basic_block()
        node = Node(entry)
        keys = [node.use(key_field, slot) for slot in slots]
        scan = _EntryPass(body, node, pointer, nbytes, bad, {})
        scan.strange = cgutils.alloca_once_value(b, I1(0))
        scan.emit()
        parts = [scan.value(node, key) for key in keys]
        b.ret(cgutils.pack_struct(b, [I64(0), b.load(scan.strange), *parts]))
        b.position_at_end(bad)
        at = b.sub(b.ptrtoint(b.load(scan.at), I64), b.ptrtoint(pointer, I64))
        nothing = [ir.Constant(part.type, None if part.type == POINTER else 0) for part in parts]
        b.ret(cgutils.pack_struct(b, [b.add(at, I64(1)), I1(0), *nothing]))

    key_types = [POINTER, I64] if len(slots) == 2 else [ir.IntType(8 * key_field.width)]
    result = ir.LiteralStructType([I64, I1, *key_types])
    content = _content(entry)
    found = call_outlined(builder, "wire_entry", content, result, [pointer, nbytes], emit, frozen)
    error, strange, *key = (builder.extract_value(found, i) for i in range(len(result.elements)))
    return _Entry(error, strange, key)


def _equal(builder: ir.IRBuilder, key: Key, given: Key, frozen: bool) -> ir.Value:
    """Whether a pair's key is the one that is looked for."""
    if len(key) == 1:
        return builder.icmp_unsigned("==", key[0], given[0])
    if len(given) == 2:
        return equal(builder, key, given, frozen)
    return builder.icmp_signed("==", order_of_points(builder, key, given), I64(0))


def _key_words(builder: ir.IRBuilder, key: Key) -> list[ir.Value]:
    if len(key) == 2:
        return [builder.ptrtoint(key[0], I64), key[1]]
    (number,) = key
    return [number if number.type == I64 else builder.zext(number, I64), I64(_NUMBER)]
