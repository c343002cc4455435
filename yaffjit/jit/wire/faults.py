"""The exception of what a scan refuses, raised in the frame that reads."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from yaffjit.errors import WIRE_FAULTS, VerifyError
from yaffjit.jit.emit.outline import I64
from yaffjit.jit.keys import find_plan
from yaffjit.kernels.cached import cached
from yaffjit.kernels.wire_fault import find_fault
from yaffjit.plan.model import MessagePlan


class WireError(VerifyError):
    """Jitted code read a message that isn't what protobuf accepts.

    Args:
        key: fingerprint and full name of the message; behind them perhaps names of message types within it.
        fault: an index into `WIRE_FAULTS`.
        position: from the message's beginning.
        number, index: of the field, 0 if there's none; and how many occurrences of it come before.
        found, limit: the two numbers of the comparison that failed.

    Attributes:
        address: of the message, for those who know in which row that lies.
        within: which of these types it is of, if there are any.
    """

    def __init__(
        self,
        key: str,
        fault: int,
        position: int,
        number: int,
        index: int,
        found: int,
        limit: int,
        address: int = 0,
        within: int = 0,
    ) -> None:
        fingerprint, of, *types_within = key.split(" ")
        full_name = types_within[within] if types_within else of
        text = WIRE_FAULTS[fault].format(found=found, limit=limit)
        path = _step(fingerprint, of, full_name, number, index) if number else ""
        super().__init__(text, position, message=full_name, path=path, found=found, limit=limit)
        self.address = address
        self._made_of = (key, fault, position, number, index, found, limit, address, within)

    def __reduce__(self) -> Any:
        return type(self), self._made_of, self.__dict__


def _step(fingerprint: str, of: str, full_name: str, number: int, index: int) -> str:
    mp = find_plan(fingerprint, of)
    declared = mp.plan.schema.messages[full_name].fields if mp is not None else ()
    f = next((f for f in declared if f.number == number), None)
    if f is None:
        return f"#{number}"
    return f"{f.name}[{index}]" if f.repeated else f.name


_FIND = "yaffjit_wire_fault"
_FOUND = types.UniTuple(types.int64, 6)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
def _find(address: int | None, nbytes: int, error: int, found: int) -> None:
    """`find_fault`, called by its address: linked into every user's function it would take time there."""
    (ctypes.c_int64 * _FOUND.count).from_address(found)[:] = find_fault(address or 0, nbytes, error)


llvm.add_symbol(_FIND, ctypes.cast(_find, ctypes.c_void_p).value)


@intrinsic
def _found(typingctx, address, nbytes, error):  # type: ignore[no-untyped-def]
    """What `_find` finds."""

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: list[ir.Value]) -> ir.Value:
        found = cgutils.alloca_once_value(builder, ir.Constant(context.get_value_type(_FOUND), None))
        kind = ir.FunctionType(ir.VoidType(), [I64, I64, I64, found.type])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, _FIND), [*args, found])
        return builder.load(found)

    return _FOUND(types.int64, types.int64, types.int64), codegen


def _raise(key, address, nbytes, error, within):  # type: ignore[no-untyped-def]
    fault, position, number, index, found, limit = _found(address, nbytes, error)
    raise WireError(key, fault, position, number, index, found, limit, address, within)


_raise_broken = cached(_raise)


def raise_if_broken(
    context: Any, builder: ir.IRBuilder, mp: MessagePlan, pointer: ir.Value, nbytes: ir.Value, error: ir.Value
) -> None:
    """Raise what a scan's error says; the builder goes on where there's none.

    Args:
        pointer, nbytes: the message.
        error: as the scan gave it.
    """
    with cgutils.if_unlikely(builder, builder.icmp_unsigned("!=", error, I64(0))):
        raise_broken(context, builder, mp, builder.ptrtoint(pointer, I64), nbytes, error)


def raise_broken(
    context: Any,
    builder: ir.IRBuilder,
    mp: MessagePlan,
    address: ir.Value,
    nbytes: ir.Value,
    error: ir.Value,
    within: tuple[Sequence[str], ir.Value] = ((), I64(0)),
) -> None:
    """Raise what a scan's error says; the block ends with it.

    Args:
        address, nbytes: the broken message.
        within: types of messages within that of the plan, and which of them the broken one is of.
    """
    from yaffjit.jit.records import raise_jitted

    names = " ".join([mp.fingerprint, mp.full_name, *within[0]])
    key = context.get_constant_generic(builder, types.unicode_type, names)
    arg_types = (types.unicode_type, *(types.int64,) * 4)
    raise_jitted(context, builder, _raise_broken, arg_types, [key, address, nbytes, error, within[1]])
