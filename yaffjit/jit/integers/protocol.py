"""What else Python does with an integer: truth, conversions, hash, text, range, functions of floats."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    Signature,
    infer,
    infer_getattr,
    signature,
)
from numba.cpython.unicode import PY_UNICODE_1BYTE_KIND, _malloc_string, _set_code_point
from numba.extending import intrinsic, overload_method

from .type import UInt64ExactType, as_uint64, implementation, operand, typed, uint64_exact

HASH_MODULUS = 2**61 - 1  # of Python's numeric hash on 64-bit platforms


def _unary(function: Any, result: types.Type, emit: Callable[[ir.IRBuilder, ir.Value], ir.Value]) -> None:
    def rule(context: Any, args: tuple[types.Type, ...]) -> Signature | None:
        ours = len(args) == 1 and operand(args[0]) is uint64_exact
        return signature(result, uint64_exact) if ours else None

    def lower(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
        return emit(builder, args[0])

    typed(function, rule)
    lower_builtin(function, UInt64ExactType)(lower)


def _itself(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    return value


def _truth(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    return builder.icmp_unsigned("!=", value, value.type(0))


for _converted in (int, abs, round, operator.pos, operator.index):
    _unary(_converted, uint64_exact, _itself)
for _tested in (bool, operator.truth):
    _unary(_tested, types.boolean, _truth)
_unary(operator.not_, types.boolean, lambda builder, value: builder.not_(_truth(builder, value)))
_unary(float, types.float64, lambda builder, value: builder.uitofp(value, ir.DoubleType()))


# ---- numpy's scalar types: np.uint64(x) and x are the same number, the others take it if it fits ----


def _constructor(number: types.Type) -> None:
    class Constructor(AbstractTemplate):
        key = types.NumberClass(number)

        def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
            return signature(number, uint64_exact) if args == (uint64_exact,) and not kws else None

    infer(Constructor)


for _number in (*types.integer_domain, *types.real_domain):
    _constructor(_number)


# ---- hash and text (an overload has no annotations: numba compares its parameters with its result's) ----


@intrinsic
def _python_hash(typingctx: Any, x: types.Type) -> Any:
    """Python's ``hash(int)``: the number modulo 2**61 - 1."""

    def codegen(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
        (value,) = args
        modulus = value.type(HASH_MODULUS)
        folded = builder.add(builder.and_(value, modulus), builder.lshr(value, value.type(61)))
        over = builder.icmp_unsigned(">=", folded, modulus)
        return builder.select(over, builder.sub(folded, modulus), folded)

    return types.intp(x), codegen


@overload_method(UInt64ExactType, "__hash__")
def _hash(x):  # type: ignore[no-untyped-def]
    return lambda x: _python_hash(x)


class _TupleHashCall(AbstractTemplate):
    key = "tuple.__hash__ with uint64_exact"

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature:
        return signature(types.intp, recvr=self.this)


@infer_getattr
class _TupleHash(AttributeTemplate):
    """numba's own loop over a tuple would convert the other elements to the uint64_exact."""

    key = types.BaseTuple
    metadata: ClassVar = {"target": "cpu"}  # comes before numba's own

    def generic_resolve(self, typ: types.BaseTuple, attr: str) -> types.Type | None:
        ours = attr == "__hash__" and uint64_exact in typ.types
        return types.BoundFunction(_TupleHashCall, typ) if ours else None


@lower_builtin(_TupleHashCall.key, types.BaseTuple)
def _lower_tuple_hash(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
    """CPython's: xxHash over the hashes of the elements."""
    integer = ir.IntType(64)
    prime_1, prime_2, prime_5 = 11400714785074694791, 14029467366897019727, 2870177450012600261
    total = integer(prime_5)
    elements = sig.args[0].types
    for typ, value in zip(elements, cgutils.unpack_tuple(builder, args[0]), strict=True):
        call, _ = implementation(context, hash, typ)
        total = builder.add(total, builder.mul(call(builder, (value,)), integer(prime_2)))
        rotated = builder.or_(builder.shl(total, integer(31)), builder.lshr(total, integer(33)))
        total = builder.mul(rotated, integer(prime_1))
    total = builder.add(total, integer(len(elements) ^ prime_5 ^ 3527539))
    return builder.select(builder.icmp_unsigned("==", total, integer(-1)), integer(1546275796), total)


@overload_method(UInt64ExactType, "__str__")
def _str(x):  # type: ignore[no-untyped-def]
    zero, one, ten = np.uint64(0), 1, np.uint64(10)

    def impl(x):  # type: ignore[no-untyped-def]
        number = as_uint64(x)
        length = one
        rest = number // ten
        while rest != zero:
            rest = rest // ten
            length += 1
        text = _malloc_string(PY_UNICODE_1BYTE_KIND, 1, length, True)
        for i in range(length - 1, -1, -1):
            rest = number // ten
            _set_code_point(text, i, np.uint32(48) + np.uint32(number - rest * ten))
            number = rest
        return text

    return impl


@overload_method(UInt64ExactType, "__repr__")
def _repr(x):  # type: ignore[no-untyped-def]
    return lambda x: x.__str__()


# ---- d[k] = d.get(k, 0) + 1 of a dict whose types aren't known yet, with keys of any type ----


class _EmptyDictGet(AbstractTemplate):
    """Before the first ``d[k] = value`` tells the types, ``get`` gives the default's; numba gives up here."""

    key = (types.DictType, "get")  # numba's own, so that its code is what runs when the types are known

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
        if self.this.is_precise():  # numba refined the type of the bound method that it has
            return self.context.resolve_getattr(self.this, "get").get_call_type(self.context, args, kws)
        if len(args) != 2 or kws:
            return None
        return signature(types.unliteral(args[1]), *args, recvr=self.this)


@infer_getattr
class _EmptyDict(AttributeTemplate):
    key = types.DictType
    metadata: ClassVar = {"target": "cpu"}  # comes before numba's own

    def generic_resolve(self, typ: types.DictType, attr: str) -> types.Type | None:
        return types.BoundFunction(_EmptyDictGet, typ) if attr == "get" and not typ.is_precise() else None


# ---- range: of int64, an OverflowError beyond ----


def _range(context: Any, args: tuple[types.Type, ...]) -> Signature | None:
    taken = [operand(a) for a in args]
    if uint64_exact not in taken or None in taken or types.float64 in taken or len(taken) > 3:
        return None
    return signature(types.range_state64_type, *(types.int64 for _ in args))


typed(range, _range)


# ---- functions of floats: math.log(x) is math.log(float(x)), as in Python ----


def _of_floats(function: Any) -> None:
    def rule(context: Any, args: tuple[types.Type, ...]) -> Signature | None:
        if uint64_exact not in map(operand, args) or None in map(operand, args):
            return None
        return context.resolve_function_type(function, (types.float64,) * len(args), {})

    typed(function, rule)


for _function in (
    math.sqrt, math.exp, math.expm1, math.log, math.log1p, math.log2, math.log10, math.pow, math.hypot,
    math.sin, math.cos, math.tan, math.asin, math.acos, math.atan, math.atan2, math.degrees, math.radians,
    math.sinh, math.cosh, math.tanh, math.erf, math.gamma, math.lgamma, math.fabs,
    math.isnan, math.isinf, math.isfinite,
    np.sqrt, np.cbrt, np.exp, np.expm1, np.log, np.log1p, np.log2, np.log10, np.tanh,
):  # fmt: skip
    _of_floats(_function)
