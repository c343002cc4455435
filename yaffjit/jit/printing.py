"""``str``, ``repr``, f-strings and ``print`` of values of ours: Python's text, or a sentence that says no.

numba makes the name of the type of what it has no text for, and reports what it can't print where nobody
looks. Numbers, text and what ``WhichOneof`` gives have their text elsewhere; here is what has none.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, ClassVar

from numba.core import types
from numba.core.typeinfer import TypeInferer
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global

from yaffjit.errors import CompileTypeError
from yaffjit.jit.constants import EnumType, MessageClassType
from yaffjit.jit.integers import UInt64ExactType
from yaffjit.jit.keys import KeyedType
from yaffjit.jit.lifetime import walk
from yaffjit.jit.maps.type import MapPartType, MapType
from yaffjit.jit.refusals import refusal, refuse_calls, shown
from yaffjit.jit.repeated.type import RepeatedType
from yaffjit.jit.text.type import BytesType, TextType
from yaffjit.jit.types import BorrowedType, MessageViewType, OneofType, RecordsType

Args = tuple[types.Type, ...]

_SHOWN = (UInt64ExactType, TextType, OneofType)
_CONTAINERS = {
    types.BaseTuple: "a tuple",
    types.List: "a list",
    types.ListType: "a list",
    types.Set: "a set",
    types.DictType: "a dict",
    types.Array: "an array",
    types.EnumerateType: "an enumerate",
    types.ZipType: "a zip",
}
# numba's own, of which it would show the type.
_HIDDEN = (*_CONTAINERS, types.NPDatetime, types.NPTimedelta)


def _described(typ: Any) -> str:
    """A value without a text, as a sentence names it."""
    if isinstance(typ, types.Optional):
        return _described(typ.type)
    container = next((name for cls, name in _CONTAINERS.items() if isinstance(typ, cls)), None)
    if container is not None:
        held = next((part for part in walk(typ) if part is not typ and isinstance(part, KeyedType)), None)
        return container if held is None else f"{container} with {_described(held)}"
    if isinstance(typ, MessageViewType):
        return typ.mp.full_name
    if isinstance(typ, RepeatedType):
        return typ.place()
    if isinstance(typ, MapType):
        return typ.field_name
    if isinstance(typ, MapPartType):
        return f"{typ.part}() of {typ.field_name}"
    if isinstance(typ, EnumType):
        return f"enum {typ.full_name}"
    if isinstance(typ, MessageClassType):
        return f"the class of {typ.full_name}"
    if isinstance(typ, BytesType):
        return "bytes"
    if isinstance(typ, TextType):
        return "text"
    return typ.what if isinstance(typ, BorrowedType) else shown(typ)


def _refused(name: str, typ: types.Type) -> str:
    return f"{name}() of {_described(typ)} isn't available in jitted code: call it outside"


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_for_ours() -> bool:
    """Whether the function whose types are inferred has a value of ours."""
    for frame in _frames():
        inferer = frame.f_locals.get("self")
        if isinstance(inferer, TypeInferer):
            found = (variable.type for variable in inferer.typevars.values() if variable.defined)
            return any(isinstance(part, KeyedType) for typ in found for part in walk(typ))
    return False


def _to_text(name: str) -> Any:
    def rule(args: Args) -> str | None:
        typ = args[0] if args else None
        bare = typ.type if isinstance(typ, types.Optional) else typ
        if isinstance(bare, _SHOWN):
            return _refused(name, bare) if name == "repr" and isinstance(bare, TextType) else None
        has_no_text = isinstance(bare, KeyedType) or (isinstance(bare, _HIDDEN) and _is_for_ours())
        return _refused(name, bare) if has_no_text else None

    return rule


for _function in (str, repr, format):
    refuse_calls(_function, _to_text(_function.__name__), first=True)


@infer_global(print)
class _Print(AbstractTemplate):
    """Refuse what no Python object is made of."""

    metadata: ClassVar[dict[str, str]] = {"target": "cpu"}

    def generic(self, args: Args, kws: dict[str, types.Type]) -> Signature | None:
        for arg in args:
            for part in walk(arg):
                without = isinstance(part, (RecordsType, EnumType, MessageClassType))
                if without or (isinstance(part, KeyedType) and isinstance(part, types.IteratorType)):
                    raise refusal(CompileTypeError, _refused("print", arg))
        return None
