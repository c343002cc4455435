"""``m[key]``, ``key in m``, ``m.get(key, default)``, len, truth and equality of maps in jitted code."""

from __future__ import annotations

import inspect
import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_borrowed, impl_ret_new_ref, lower_builtin
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    Signature,
    infer_getattr,
    infer_global,
    signature,
)
from numba.extending import overload

from yaffjit.errors import CompileAttributeError, CompileTypeError, near_names
from yaffjit.jit.integers import UInt64ExactType
from yaffjit.jit.maps.access import access_of
from yaffjit.jit.maps.keys import find_pair, key_argument, key_fault
from yaffjit.jit.maps.type import PARTS, MapPartType, MapType
from yaffjit.jit.refusals import Method, refusal, refused_call, shown
from yaffjit.jit.text.keep import kept_type
from yaffjit.jit.text.type import TextLikeType
from yaffjit.jit.truth import has_truth


def _native(context: Any, builder: ir.IRBuilder, typ: types.Type, value: ir.Value) -> Any:
    return cgutils.create_struct_proxy(typ)(context, builder, value)


# ---- m[key], key in m ----


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):
    prefer_literal = True

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
        typ, given = args
        if not isinstance(typ, MapType):
            return None
        fault = key_fault(typ, given)
        if fault:
            return refused_call(args, fault)
        return signature(typ.value_type, typ, key_argument(typ, given))


@lower_builtin(operator.getitem, MapType, types.Any)
@lower_builtin(operator.getitem, MapType, UInt64ExactType)  # has rules of its own for indices
def _get_item(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    """A missing key gives the default, as in protobuf."""
    typ, given = sig.args
    native = _native(context, builder, typ, args[0])
    pair = find_pair(context, builder, typ, native, given, args[1])
    access = access_of(typ)
    value = access.value(context, builder, typ, pair, native.owner)
    returns = impl_ret_new_ref if access.gives_reference(typ) else impl_ret_borrowed
    return returns(context, builder, sig.return_type, value)


@infer_global(operator.contains)
class _Contains(AbstractTemplate):
    prefer_literal = True

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
        typ, given = args
        if not (isinstance(typ, MapType) or (isinstance(typ, MapPartType) and typ.part == "keys")):
            return None
        fault = key_fault(typ, given)
        if fault:
            return refused_call(args, fault)
        return signature(types.boolean, typ, key_argument(typ, given))


@lower_builtin(operator.contains, MapType, types.Any)
@lower_builtin(operator.contains, MapPartType, types.Any)
def _contains(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    typ, given = sig.args
    native = _native(context, builder, typ, args[0])
    pair = find_pair(context, builder, typ, native, given, args[1])
    return access_of(typ).is_found(builder, pair)


class _Change(AbstractTemplate):
    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
        return signature(types.void, *args) if isinstance(args[0], MapType) else None


def _refuse_change(function: Any, *others: type[types.Type]) -> None:
    infer_global(function)(type("Change", (_Change,), {}))

    @lower_builtin(function, MapType, *others)
    def change(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        raise refusal(CompileTypeError, f"{sig.args[0].field_name} is read-only, as all of a view is")


_refuse_change(operator.setitem, types.Any, types.Any)
_refuse_change(operator.delitem, types.Any)


# ---- methods ----


class _Get(AbstractTemplate):
    key = "yaffjit.map.get"
    prefer_literal = True

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature:
        typ: MapType = self.this
        if not 1 <= len(args) + len(kws) <= 2 or not set(kws) <= {"key", "default"}:
            raise refusal(CompileTypeError, "get() of a map takes a key and a default")
        given = (*args, *(kws[name] for name in ("key", "default")[len(args) :] if name in kws))
        if len(given) != len(args) + len(kws):
            raise refusal(CompileTypeError, "get() of a map takes a key and a default")
        fault = key_fault(typ, given[0])
        if fault:
            raise refusal(CompileTypeError, fault)
        key = key_argument(typ, given[0])
        if len(given) == 1 or isinstance(given[1], types.NoneType):
            made = signature(types.Optional(kept_type(typ.value_type)), key, *given[1:], recvr=typ)
        else:
            result = self._common(typ, given[1])
            made = signature(result, key, given[1], recvr=typ)
        return made.replace(pysig=_GET_SIGNATURES[len(given)]) if kws else made

    def _common(self, typ: MapType, default: types.Type) -> types.Type:
        for candidate in (default, types.unliteral(default)):
            result = self.context.unify_pairs(typ.value_type, candidate)
            if result is not None:
                return result
        gives = f"get() of {typ.field_name} gives {shown(typ.value_type)} or the default"
        raise refusal(CompileTypeError, f"{gives}, which can't be {shown(default)}")


class _Part(AbstractTemplate):
    part: str

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature:
        if args or kws:
            raise refusal(CompileTypeError, f"{self.part}() of a map takes no arguments")
        typ: MapType = self.this
        return signature(typ.part_type(self.part), recvr=typ)


def _get_signature(key, default=None):  # type: ignore[no-untyped-def]
    """The parameters of ``get``, for keyword arguments."""


def _key_only(key):  # type: ignore[no-untyped-def]
    """As above, without a default."""


_GET_SIGNATURES = {1: inspect.signature(_key_only), 2: inspect.signature(_get_signature)}
_PARTS = {part: type(f"_{part}", (_Part,), {"key": f"yaffjit.map.{part}", "part": part}) for part in PARTS}
_METHODS = {"get": _Get, **_PARTS}


@infer_getattr
class _Attributes(AttributeTemplate):
    key = MapType

    def generic_resolve(self, typ: MapType, name: str) -> types.Type | None:
        method = _METHODS.get(name)
        if method is not None:
            return Method(method, typ)
        if name.startswith("__"):
            return None  # numba asks for some of these by itself
        raise refusal(
            CompileAttributeError,
            f"{typ.field_name} has no {name!r} in jitted code{near_names(name, _METHODS)}",
        )


@lower_builtin(_Get.key, MapType, types.Any)
@lower_builtin(_Get.key, MapType, types.Any, types.Any)
def _get(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    given_types = (sig.recvr, *sig.args) if sig.recvr else sig.args
    typ, given = given_types[:2]
    result = sig.return_type
    native = _native(context, builder, typ, args[0])
    access = access_of(typ)
    pair = find_pair(context, builder, typ, native, given, args[1])
    found = cgutils.alloca_once(builder, context.get_value_type(result))
    with builder.if_else(access.is_found(builder, pair)) as (some, none):
        with some:  # a cast to a string of numba's makes a new one
            value = access.value(context, builder, typ, pair, native.owner)
            value = context.cast(builder, value, typ.value_type, result)
            is_new = isinstance(typ.value_type, TextLikeType) and kept_type(result) is result
            if not (is_new or access.gives_reference(typ)):
                context.nrt.incref(builder, result, value)
            builder.store(value, found)
        with none:
            default = context.get_dummy_value() if len(args) == 2 else args[2]
            default_type = types.none if len(args) == 2 else given_types[2]
            default = context.cast(builder, default, default_type, result)
            context.nrt.incref(builder, result, default)
            builder.store(default, found)
    return impl_ret_new_ref(context, builder, result, builder.load(found))


def _lower_part(method: Any) -> None:
    @lower_builtin(method.key, MapType)
    def part(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
        # their native form is the map's
        return impl_ret_borrowed(context, builder, sig.return_type, args[0])


for _method in _PARTS.values():
    _lower_part(_method)


# ---- len, truth, equality ----


@infer_global(len)
class _Len(AbstractTemplate):
    def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature | None:
        return signature(types.intp, args[0]) if isinstance(args[0], (MapType, MapPartType)) else None


@lower_builtin(len, MapType)
@lower_builtin(len, MapPartType)
def _len(context: Any, builder: ir.IRBuilder, sig: Signature, args: list[ir.Value]) -> ir.Value:
    typ = sig.args[0]
    return access_of(typ).count(context, builder, typ, _native(context, builder, typ, args[0]))


@has_truth(MapType)
@has_truth(MapPartType)
def _is_true(context: Any, builder: ir.IRBuilder, typ: types.Type, value: ir.Value) -> ir.Value:
    return access_of(typ).is_any(context, builder, typ, _native(context, builder, typ, value))


@overload(operator.eq)
def _equal(a, b):  # type: ignore[no-untyped-def]
    if not (isinstance(a, MapType) and isinstance(b, MapType)):
        return None

    def equal(a, b):  # type: ignore[no-untyped-def]
        if len(a) != len(b):
            return False
        for key, value in a.items():  # noqa: SIM110  (numba has no all() of a generator)
            if key not in b or b[key] != value:
                return False
        return True

    return equal


@overload(operator.ne)
def _differ(a, b):  # type: ignore[no-untyped-def]
    if not (isinstance(a, MapType) and isinstance(b, MapType)):
        return None

    def differ(a, b):  # type: ignore[no-untyped-def]
        equal = a == b
        return not equal

    return differ
