"""What the result of a user's function becomes over many rows: which arrays, by its numba type."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numba.core import types
from numba.np import numpy_support

from yaffjit.errors import CompileTypeError
from yaffjit.jit.integers import uint64_exact
from yaffjit.jit.keys import KeyedType
from yaffjit.jit.refusals import shown
from yaffjit.jit.text.type import BytesType, TextType
from yaffjit.jit.types import BorrowedType, OneofType
from yaffjit.plan.limits import RESULTS

# How a member of the result is stored: as a number; as the number of a oneof's member; as jitted code holds
# text, until it's made into an object; element by element.
Form = Literal["number", "oneof", "text", "array"]

_TEXTS = (types.UnicodeType, types.StringLiteral, types.Bytes, TextType, BytesType)


@dataclass(frozen=True)
class Leaf:
    """One array of the result.

    Attributes:
        stored: the type that a value is cast to, as it is stored.
        dtype: of the array that it's stored in, or of the elements; of text None.
        optional: None is among the values.
    """

    form: Form
    stored: types.Type
    dtype: np.dtype[Any] | None
    optional: bool

    @property
    def names(self) -> dict[int, str]:
        """Of a oneof: its members' names by number."""
        assert isinstance(self.stored, OneofType)
        return {f.number: f.name for f in self.stored.members}


@dataclass(frozen=True)
class Result:
    """The arrays of a function's results.

    Attributes:
        leaves: one, or those of a tuple's members.
        make: makes the tuple of a list of arrays; None if the result isn't a tuple.
    """

    leaves: tuple[Leaf, ...]
    make: Any


def result_of(typ: types.Type, function: Any) -> Result:
    """The arrays for results of a numba type; ``function`` is the user's, for the error.

    Raises:
        CompileTypeError: map can't keep such results; says what to return instead.
    """
    try:
        optional = isinstance(typ, types.Optional)
        bare = typ.type if optional else typ
        if not isinstance(bare, types.BaseTuple):
            return Result((_leaf(typ),), None)
        if not len(bare):
            raise _Refused("an empty tuple", f"return {RESULTS}")
        leaves = []
        for place, member in enumerate(bare):
            if isinstance(getattr(member, "type", member), types.BaseTuple):
                raise _Refused("a tuple in a tuple", "return one flat tuple")
            try:
                leaves.append(_leaf(member, optional))
            except _Refused as refused:
                raise _Refused(f"a tuple whose member {place} is {refused.what}", refused.instead) from None
        named = isinstance(bare, (types.NamedTuple, types.NamedUniTuple))
        return Result(tuple(leaves), functools.partial(_named, bare.instance_class) if named else tuple)
    except _Refused as refused:
        code = function.__code__
        text = f"{function.__name__} returns {refused.what}: {refused.instead}"
        raise CompileTypeError(text, code.co_filename, code.co_firstlineno) from None


def _named(cls: Any, arrays: Iterable[Any]) -> Any:
    return cls(*arrays)


class _Refused(Exception):
    def __init__(self, what: str, instead: str) -> None:
        self.what = what
        self.instead = instead


def _leaf(typ: types.Type, optional: bool = False) -> Leaf:
    if isinstance(typ, types.Optional):
        return _leaf(typ.type, True)
    if isinstance(typ, _TEXTS):
        return Leaf(
            "text", types.unicode_type if isinstance(typ, types.StringLiteral) else typ, None, optional
        )
    if isinstance(typ, OneofType):
        return Leaf("oneof", typ, np.dtype(np.int32), True)
    typ = types.unliteral(typ)
    number = _number(typ)
    if number is not None:
        stored, dtype = number
        return Leaf("number", stored, np.dtype(dtype), optional)
    if isinstance(typ, types.Array) and typ.ndim == 1 and isinstance(typ.dtype, _ELEMENTS):
        return Leaf("array", typ, numpy_support.as_dtype(typ.dtype), optional)
    raise _refused(typ)


_ELEMENTS = (types.Number, types.Boolean, types.NPDatetime, types.NPTimedelta)


def _number(typ: types.Type) -> tuple[types.Type, Any] | None:
    """The type that a number is stored as, and its dtype."""
    if isinstance(typ, types.Boolean):
        return types.boolean, np.bool_
    if typ is uint64_exact:
        return typ, np.uint64
    if isinstance(typ, types.Integer):
        return (types.int64, np.int64) if typ.signed else (types.uint64, np.uint64)
    if isinstance(typ, types.IntEnumMember):
        return types.int64, np.int64
    if isinstance(typ, types.Float):
        return types.float64, np.float64
    if isinstance(typ, (types.NPDatetime, types.NPTimedelta)):
        return typ, numpy_support.as_dtype(typ)
    return None


def _refused(typ: types.Type) -> _Refused:
    if isinstance(typ, types.NoneType):
        return _Refused("None for every row", "return a value")
    if isinstance(typ, BorrowedType):
        mp = getattr(typ, "mp", None)
        what = typ.what if mp is None else f"{typ.what} of {mp.full_name}"
        return _Refused(f"{what}, which belongs to its row", "return the values in it that you need")
    if isinstance(typ, types.Array):
        return _Refused(f"an array of {typ.ndim} dimensions of {typ.dtype}", "return a 1-D array of numbers")
    if isinstance(typ, types.List):
        return _Refused("a list", "return a tuple, or np.array(x) where each row has as many")
    what = "what yaffjit reads" if isinstance(typ, KeyedType) else shown(typ)
    return _Refused(what, f"return {RESULTS}")
