"""A singular message field that occurs more than once: its fragments joined, which is how protobuf merges.

It's rare, so that is a cold path. Joined bytes need room that lives as long as the view: in the record that
the view borrows (`yaffjit.view.owner.Held`), once for each place, or in a new record if the view counts.
"""

from __future__ import annotations

import ctypes
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types

from yaffjit.arrays import array_address
from yaffjit.jit.emit.outline import I64, NULL, POINTER, Body, call_outlined, outlined
from yaffjit.jit.emit.wire_fields import GROUP, WireField
from yaffjit.jit.emit.wire_walk import Walker

_KEEP = "yaffjit_wire_keep"
_OWNER_AT = 16  # in numba's record: what it was made for
_PLACE = ir.LiteralStructType([POINTER, I64])
# Of views without an owner, which only code of ours makes.
_unowned: dict[tuple[int, int, int], Any] = {}


@ctypes.CFUNCTYPE(
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64
)
def _keep(record: int | None, first: int, nbytes: int, tag: int, joined_nbytes: int) -> int:
    """The address of room for joined fragments, which the owner of a record keeps: one for each place."""
    rooms = _unowned
    if record:
        held: Any = ctypes.py_object.from_address(record + _OWNER_AT)
        rooms = held.value.joined
    made = np.empty(joined_nbytes + 1, np.uint8)[:joined_nbytes]  # of 0 bytes it would have no place
    room = rooms.setdefault((first, nbytes, tag), made)
    return array_address(room)


llvm.add_symbol(_KEEP, ctypes.cast(_keep, ctypes.c_void_p).value)


def _declare_keep(module: ir.Module) -> ir.Function:
    kind = ir.FunctionType(POINTER, [POINTER, POINTER, I64, I64, I64])
    return cgutils.get_or_insert_function(module, kind, _KEEP)


def _join(module: ir.Module, group: bool, frozen: bool) -> ir.Function:
    """(first, end, tag, room or null) -> bytes of all fragments; they are copied into the room.

    ``group``: they are groups, not counted bytes.

    Requires: what lies between was scanned, and the room has as many bytes.
    """

    def emit(body: Body) -> None:
        b = body.builder
        first, end, wanted, room = body.args
        pos, done_nbytes = b.alloca(POINTER), b.alloca(I64)
        loop, read, hit, miss, copy, counted, done = (b.append_basic_block() for _ in range(7))
        walker = Walker(body, pos, end, done)
        b.store(first, pos)
        b.store(I64(0), done_nbytes)
        b.branch(loop)
        b.position_at_end(done)
        b.ret(b.load(done_nbytes))
        b.position_at_end(loop)
        b.cbranch(walker.is_before_end(), read, done)
        b.position_at_end(read)
        tag = walker.tag()
        b.cbranch(b.icmp_unsigned("==", tag, wanted), hit, miss)
        b.position_at_end(miss)
        walker.skip(tag, loop)
        b.position_at_end(hit)
        if group:
            start = b.load(pos)
            nbytes = b.sub(b.ptrtoint(walker.group(tag), I64), b.ptrtoint(start, I64))
        else:
            start, nbytes = walker.span()
        so_far = b.load(done_nbytes)
        b.store(b.add(so_far, nbytes), done_nbytes)
        b.cbranch(b.icmp_unsigned("!=", room, NULL), copy, counted)
        b.position_at_end(copy)
        cgutils.raw_memcpy(b, b.gep(room, [so_far]), start, nbytes, 1)
        b.branch(counted)
        b.position_at_end(counted)
        b.branch(loop)

    args = [POINTER, POINTER, I64, POINTER]
    function = outlined(module, "wire_join", group, I64, args, emit, frozen, inline=False)
    # It writes, into what nobody reads yet.
    function.attributes.discard("readnone" if frozen else "readonly")
    return function


def borrowed(
    builder: ir.IRBuilder,
    field: WireField,
    owner: ir.Value,
    end: ir.Value,
    found: list[ir.Value],
) -> tuple[ir.Value, ir.Value]:
    """Where the message of a field is, and its bytes, of the slots "pointer", "nbytes", "count", "first".

    Args:
        owner: the record that the view borrows.
        end: of the message that has the field.
    """
    module = builder.module
    keep, join = _declare_keep(module), _join(module, field.wire_type == GROUP, True)

    def emit_joined(body: Body) -> None:
        b = body.builder
        owner, end, first = body.args
        tag = I64(field.tag)
        joined_nbytes = b.call(join, [first, end, tag, NULL])
        region = b.sub(b.ptrtoint(end, I64), b.ptrtoint(first, I64))
        room = b.call(keep, [owner, first, region, tag, joined_nbytes])
        b.call(join, [first, end, tag, room])
        b.ret(cgutils.pack_struct(b, [room, joined_nbytes]))

    args = [POINTER, POINTER, POINTER]
    joined = outlined(module, "wire_joined", field.tag, _PLACE, args, emit_joined, frozen=True, inline=False)

    # A function of its own: branches in the caller would give each read a message, and a scan, of its own.
    def emit(body: Body) -> None:
        b = body.builder
        owner, end, pointer, nbytes, count, first = body.args
        with b.if_then(b.icmp_unsigned(">", count, I64(1)), likely=False):
            b.ret(b.call(joined, [owner, end, first]))
        b.ret(cgutils.pack_struct(b, [pointer, nbytes]))

    place = call_outlined(builder, "wire_message", field.tag, _PLACE, [owner, end, *found], emit, frozen=True)
    return builder.extract_value(place, 0), builder.extract_value(place, 1)


def counted(
    context: Any,
    builder: ir.IRBuilder,
    field: WireField,
    owner: ir.Value,
    end: ir.Value,
    found: list[ir.Value],
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The same of a view that counts its owner, and the owner of what was found, with a reference to it."""
    b = builder
    pointer, nbytes, count, first = found
    record = types.MemInfoPointer(types.voidptr)
    variables = [cgutils.alloca_once_value(b, value) for value in (pointer, nbytes, owner)]
    with b.if_else(b.icmp_unsigned(">", count, I64(1)), likely=False) as (several, one):
        with several:
            join = _join(b.module, field.wire_type == GROUP, False)
            tag = I64(field.tag)
            joined_nbytes = b.call(join, [first, end, tag, NULL])
            made = context.nrt.meminfo_alloc(b, joined_nbytes)
            room = context.nrt.meminfo_data(b, made)
            b.call(join, [first, end, tag, room])
            for variable, value in zip(variables, (room, joined_nbytes, made), strict=True):
                b.store(value, variable)
        with one:
            context.nrt.incref(b, record, owner)
    pointer, nbytes, owner = (b.load(variable) for variable in variables)
    return pointer, nbytes, owner
