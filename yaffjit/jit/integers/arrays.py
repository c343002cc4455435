"""uint64_exact as an index, in slices, and stored into arrays: only a value that the array's type holds.

What numba has for its own uint64 would take the upper half of its values for negative ones. So an unsigned
index of records, repeated fields and text becomes a uint64_exact; a slice has lost that by then.
"""

from __future__ import annotations

import itertools
import operator
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import Signature, signature

from yaffjit.jit.keys import KeyedType
from yaffjit.plan.limits import INT64_MAX

from .type import UInt64ExactType, implementation, operand, raise_if, typed, uint64_exact

_INDEX_TEXT = "cannot fit 'int' into an index-sized integer"  # Python's own


def _is_position(container: types.Type, index: types.Type) -> bool:
    """Whether ``container[index]`` is by an unsigned position; keys of dicts are compared, not converted."""
    if isinstance(container, KeyedType):
        return container.by_position and operand(index) in (uint64_exact, types.uint64)
    return index is uint64_exact and not isinstance(container, (types.DictType, types.LiteralStrKeyDict))


def _stored(container: types.Type, value: types.Type) -> types.Type:
    """What a uint64_exact is converted to before numba stores it into `container`."""
    dtype = getattr(container, "dtype", None)
    if (
        value is uint64_exact
        and isinstance(container, types.Array)
        and isinstance(dtype, (types.Integer, types.Float))
    ):
        return dtype
    return value


def _getitem(context: Any, args: tuple[types.Type, ...]) -> Signature | None:
    container, index = args
    if not _is_position(container, index):
        return None
    inner = context.resolve_function_type(operator.getitem, (container, types.intp), {})
    return signature(inner.return_type, inner.args[0], uint64_exact)


def _setitem(context: Any, args: tuple[types.Type, ...]) -> Signature | None:
    container, index, value = args
    by_exact = _is_position(container, index)
    stored = _stored(container, value)
    if not by_exact and stored is value:
        return None
    inner = context.resolve_function_type(
        operator.setitem, (container, types.intp if by_exact else index, stored), {}
    )
    _, inner_index, inner_value = inner.args
    return signature(
        inner.return_type,
        inner.args[0],
        uint64_exact if by_exact else inner_index,
        inner_value if stored is value else uint64_exact,
    )


def _slice(context: Any, args: tuple[types.Type, ...]) -> Signature | None:
    if len(args) not in (2, 3) or uint64_exact not in args:
        return None
    others = tuple(types.intp if arg is uint64_exact else arg for arg in args)
    inner = context.resolve_function_type(slice, others, {})
    taken = zip(args, inner.args, strict=True)
    return signature(inner.return_type, *(arg if arg is uint64_exact else other for arg, other in taken))


typed(operator.getitem, _getitem, literals=True)
typed(operator.setitem, _setitem)
typed(slice, _slice)


def _position(context: Any, builder: ir.IRBuilder, index: ir.Value) -> ir.Value:
    above = builder.icmp_unsigned(">", index, index.type(INT64_MAX))
    raise_if(context, builder, above, IndexError, _INDEX_TEXT)
    return index


@lower_builtin(operator.getitem, types.Buffer, UInt64ExactType)
@lower_builtin(operator.getitem, types.Any, UInt64ExactType)
def _lower_getitem(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
    call, _ = implementation(context, operator.getitem, sig.args[0], types.intp)
    return call(builder, (args[0], _position(context, builder, args[1])))


@lower_builtin(operator.setitem, types.Buffer, types.Any, UInt64ExactType)
@lower_builtin(operator.setitem, types.Buffer, UInt64ExactType, types.Any)
@lower_builtin(operator.setitem, types.Buffer, UInt64ExactType, UInt64ExactType)
@lower_builtin(operator.setitem, types.Any, UInt64ExactType, types.Any)
def _lower_setitem(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
    container, index, value = sig.args
    stored = _stored(container, value)
    by_exact = _is_position(container, index)
    if by_exact:
        index, args = types.intp, (args[0], _position(context, builder, args[1]), args[2])
    converted = context.cast(builder, args[2], value, stored)
    if isinstance(container, types.Array) and container.dtype is uint64_exact:
        # the reduction of a prange has such an array; it's one of uint64 but for the type
        container, stored = container.copy(dtype=types.uint64), types.uint64
    call, inner = implementation(context, operator.setitem, container, index, stored)
    if inner.args[2] != stored:
        converted = context.cast(builder, converted, stored, inner.args[2])
    return call(builder, (args[0], args[1], converted))


def _lower_slice(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
    """A bound above all positions is as good as the greatest of them."""
    bounds = []
    for typ, value in zip(sig.args, args, strict=True):
        if typ is uint64_exact:
            greatest = value.type(INT64_MAX)
            value = builder.select(builder.icmp_unsigned("<", value, greatest), value, greatest)
        bounds.append(value)
    others = (types.intp if typ is uint64_exact else typ for typ in sig.args)
    call = context.get_function(slice, signature(sig.return_type, *others))
    return call(builder, bounds)


for _count in (2, 3):
    for _kinds in itertools.product((types.Any, UInt64ExactType), repeat=_count):
        if UInt64ExactType in _kinds:
            lower_builtin(slice, *_kinds)(_lower_slice)
