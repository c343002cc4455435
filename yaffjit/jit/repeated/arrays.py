"""Repeated numbers as numpy arrays: ``np.asarray`` without a copy, and numpy's functions of one field.

The array of a field has the field's own dtype, as in Python, and holds the bytes by itself. A slice is a list
in Python, so its array is a new one with the dtype that numpy gives a list of such numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_borrowed, impl_ret_new_ref, lower_builtin
from numba.core.typing.templates import Signature, infer_global, signature
from numba.extending import overload, overload_method
from numba.np.arrayobj import _empty_nd_impl, make_array, populate_array

from yaffjit.errors import CompileTypeError
from yaffjit.jit.emit.outline import I64
from yaffjit.jit.integers import uint64_exact
from yaffjit.jit.integers.type import implementation
from yaffjit.jit.refusals import refusal
from yaffjit.jit.repeated.access import Typing
from yaffjit.jit.repeated.elements import ArrayElements, Elements, elements_of
from yaffjit.jit.repeated.type import RepeatedType
from yaffjit.plan.model import SCALAR_CODE

_DTYPES = {
    "?": types.boolean,
    "i": types.int32,
    "I": types.uint32,
    "q": types.int64,
    "Q": types.uint64,
    "f": types.float32,
    "d": types.float64,
}


def array_type(repeated: RepeatedType) -> types.Array:
    """The type of ``np.asarray(repeated)``.

    Raises:
        CompileTypeError: the elements aren't numbers.
    """
    if not repeated.one.is_scalar:
        text = f"only numbers become an array: {repeated.place()} is repeated {repeated.f.kind}"
        raise refusal(CompileTypeError, text)
    if repeated.part:
        element = repeated.element
        return types.Array(types.uint64 if element is uint64_exact else element, 1, "C")
    dtype = _DTYPES[SCALAR_CODE[repeated.f.kind]]
    return types.Array(dtype, 1, "C", readonly=True, aligned=False)


def as_array(context: Any, builder: ir.IRBuilder, repeated: RepeatedType, value: ir.Value) -> ir.Value:
    """The native array: one that doesn't count its bytes' owner, but one of its own if `is_new`."""
    typ = array_type(repeated)
    elements = elements_of(context, builder, repeated, value)
    if repeated.part:
        return _copy(context, builder, typ, elements)
    if isinstance(elements, ArrayElements):
        return array_over(context, builder, typ, elements.pointer, elements.count, elements.owner)
    return array_makers[type(repeated)](context, builder, typ, elements)


# What gives the array of a field that isn't one already, by the class of its type.
array_makers: dict[type[RepeatedType], Callable[[Any, ir.IRBuilder, types.Array, Any], ir.Value]] = {}


def is_new(repeated: RepeatedType) -> bool:
    """Whether `as_array` gives an array with a reference of its own."""
    return repeated.part or type(repeated) in array_makers


def array_over(
    context: Any,
    builder: ir.IRBuilder,
    typ: types.Array,
    pointer: ir.Value,
    count: ir.Value,
    owner: ir.Value,
) -> ir.Value:
    """A native array over the numbers at a pointer."""
    data = context.get_data_type(typ.dtype)
    width = I64(context.get_abi_sizeof(data))
    made = make_array(typ)(context, builder)
    populate_array(
        made,
        data=builder.bitcast(pointer, data.as_pointer()),
        shape=[count],
        strides=[width],
        itemsize=width,
        meminfo=owner,
    )
    return made._getvalue()


def _copy(context: Any, builder: ir.IRBuilder, typ: types.Array, elements: Elements) -> ir.Value:
    made = _empty_nd_impl(context, builder, typ, [elements.count])
    with cgutils.for_range(builder, elements.count) as loop:
        slot = cgutils.get_item_pointer(context, builder, typ, made, [loop.index])
        context.pack_value(builder, typ.dtype, elements.at(loop.index), slot)
    return made._getvalue()


@infer_global(np.asarray)
class _AsArray(Typing):
    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
        if len(args) == 1 and isinstance(args[0], RepeatedType) and not kws:
            return signature(array_type(args[0]), args[0])
        return None


@lower_builtin(np.asarray, RepeatedType)
def _as_array(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    made = as_array(context, builder, sig.args[0], args[0])
    returns = impl_ret_new_ref if is_new(sig.args[0]) else impl_ret_borrowed
    return returns(context, builder, sig.return_type, made)


@overload_method(RepeatedType, "ravel")
def _ravel(a):  # type: ignore[no-untyped-def]
    """What numba's parallel forms of argmin and argmax ask of their argument."""
    return lambda a: np.asarray(a)


@overload(np.asarray)
def _as_array_of(a, dtype=None):  # type: ignore[no-untyped-def]
    if isinstance(a, RepeatedType):
        array_type(a)
        return lambda a, dtype=None: np.asarray(np.asarray(a), dtype)
    return None


@overload(np.array, target="cpu")
def _array_of(object, dtype=None):  # type: ignore[no-untyped-def]
    if not isinstance(object, RepeatedType):
        return None
    array_type(object)
    if dtype is None or isinstance(dtype, (types.Omitted, types.NoneType)):
        return lambda object, dtype=None: np.asarray(object).copy()
    return lambda object, dtype=None: np.asarray(object).astype(dtype)


def _of_arrays(function: Any) -> None:
    """Let a function of numpy take repeated fields for arrays."""

    @infer_global(function)
    class OfArrays(Typing):
        def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
            if kws or not 1 <= len(args) <= 2 or not isinstance(args[0], RepeatedType):
                return None
            inner = self.context.resolve_function_type(function, _as_arrays(args), {})
            if inner is None:
                return None
            result = uint64_exact if inner.return_type is types.uint64 else inner.return_type
            return signature(result, *args)

    def lower(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        call, inner = implementation(context, function, *_as_arrays(sig.args))
        taken = [context.get_dummy_value() for _ in inner.args]  # for parameters that are left out
        copies = []
        for i, (typ, value) in enumerate(zip(sig.args, args, strict=True)):
            wanted = inner.args[i]
            if isinstance(typ, RepeatedType):
                taken[i] = as_array(context, builder, typ, value)
                if is_new(typ):
                    copies.append((wanted, taken[i]))
            else:
                taken[i] = context.cast(builder, value, typ, wanted)
        result = call(builder, taken)
        for typ, array in copies:
            context.nrt.decref(builder, typ, array)
        return result

    lower_builtin(function, RepeatedType)(lower)
    lower_builtin(function, RepeatedType, types.Any)(lower)


def _as_arrays(args: tuple[types.Type, ...]) -> tuple[types.Type, ...]:
    return tuple(array_type(typ) if isinstance(typ, RepeatedType) else typ for typ in args)


REDUCTIONS: tuple[Any, ...] = (
    np.sum, np.prod, np.mean, np.std, np.var, np.median, np.min, np.max, np.ptp, np.argmin, np.argmax, np.any,
    np.all, np.count_nonzero, np.nansum, np.nanmean, np.nanmin, np.nanmax, np.percentile, np.quantile,
    np.cumsum, np.cumprod, np.sort, np.unique,
)  # fmt: skip
for _function in REDUCTIONS:
    _of_arrays(_function)
