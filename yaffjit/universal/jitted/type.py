"""The numba type of values in universal documents, and its native form.

What a value is, only its code tells, which nobody knows while a function is compiled. So there is one type
for all of them: look-ups give it, and what it is asked for by name (``as_int``, ``get_text``) is typed.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models, register_default
from numba.core.imputils import lower_cast
from numba.extending import intrinsic

from yaffjit.jit.emit.outline import I64
from yaffjit.jit.keys import PlainType
from yaffjit.jit.types import BorrowedType, owner_type
from yaffjit.kernels.sources import hash_of_sources

# What decides which machine code its operations become, beside `yaffjit.jit` and the kernels.
PACKAGES = ("yaffjit.universal",)


class UniversalType(BorrowedType, PlainType, types.IterableType):
    """A value in a document.

    Args:
        owned: whether it counts the owner of the bytes.
        sources: a hash of our sources; of another version's it's a type that nothing is given for.
    """

    what = "a view of a universal document"
    instead = "keep the values that you need instead"

    def __init__(self, owned: bool = False, sources: str | None = None) -> None:
        sources = hash_of_sources(PACKAGES) if sources is None else sources
        super().__init__(f"universal.View({'owned ' if owned else ''}#{sources})", owned, sources)
        self.owned = owned

    def as_owned(self) -> types.Type:
        return owned_view_type

    @property
    def iterator_type(self) -> UniversalIteratorType:
        return UniversalIteratorType("all", self.owned)


class _OfPart(BorrowedType, PlainType):
    """Args:
    part: "keys", "values" or "items" of an object; "all" values of a collection.
    owned, sources: as for `UniversalType`.
    """

    def __init__(self, part: str, owned: bool = False, sources: str | None = None) -> None:
        sources = hash_of_sources(PACKAGES) if sources is None else sources
        kind = f"{type(self).__name__}({part}{' owned' if owned else ''}#{sources})"
        super().__init__(f"universal.{kind}", part, owned, sources)
        self.part = part
        self.owned = owned

    def as_owned(self) -> types.Type:
        return type(self)(self.part, True)


class UniversalPartType(_OfPart, types.IterableType):
    """The keys(), values() or items() of an object."""

    what = "keys, values or items of a universal document"
    instead = "keep the values that you need instead"

    @property
    def iterator_type(self) -> UniversalIteratorType:
        return UniversalIteratorType(self.part, self.owned)


class UniversalIteratorType(_OfPart, types.IteratorType):
    what = "an iterator over a universal document"
    instead = "keep the values that you need instead"

    @property
    def value_type(self) -> UniversalType:
        return owned_view_type if self.owned else view_type

    @property
    def yield_type(self) -> types.Type:
        if self.part == "items":
            return types.Tuple.from_types((types.unicode_type, self.value_type))
        return types.unicode_type if self.part == "keys" else self.value_type


view_type = UniversalType()
owned_view_type = UniversalType(owned=True)


def members(typ: types.Type) -> list[tuple[str, types.Type]]:
    """Of the native form; the word and flags are as in `yaffjit.kernels.universal_scan`."""
    return [
        ("data", types.int64),  # address of the document
        ("nbytes", types.int64),
        ("word", types.int64),
        ("flags", types.int64),
        ("owner", owner_type(typ)),
    ]


@register_default(UniversalType)
class _Model(models.StructModel):
    def __init__(self, manager: Any, numba_type: types.Type) -> None:
        super().__init__(manager, numba_type, members(numba_type))


@lower_cast(UniversalType, UniversalType)
def _to_twin(context: Any, builder: Any, source: types.Type, target: types.Type, value: Any) -> Any:
    return value


@intrinsic
def parts(typingctx, value):  # type: ignore[no-untyped-def]
    """``parts(value)``: address and number of the document's bytes, the value's word, its flags."""

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: list[ir.Value]) -> ir.Value:
        native = cgutils.create_struct_proxy(value)(context, builder, args[0])
        found = [native.data, native.nbytes, native.word, native.flags]
        return context.make_tuple(builder, sig.return_type, found)

    return types.UniTuple(types.int64, 4)(value), codegen


@intrinsic
def part_of(typingctx, value, word, depth):  # type: ignore[no-untyped-def]
    """``part_of(value, word, depth)``: another value of the document, so many levels deeper."""

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: list[ir.Value]) -> ir.Value:
        native = cgutils.create_struct_proxy(value)(context, builder, args[0])
        native.word = args[1]
        native.flags = builder.add(native.flags, builder.shl(args[2], I64(20)))
        made = native._getvalue()
        context.nrt.incref(builder, value, made)
        return made

    return value(value, types.int64, types.int64), codegen
