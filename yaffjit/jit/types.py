"""The numba types of views, records and what they yield, with their native forms.

A view is a raw pointer and a borrowed owner: nothing is counted while a loop runs, the argument keeps the
bytes alive. An absent message is the null pointer, and all getters read it as the default instance.

A view that jitted code makes of an array has no such argument. So each type that points into bytes has a twin
whose owner is counted, of the same native form, and what is read from a value has the twin too (`like`). The
bytes may be written again, so getters of the twins aren't taken to read what never changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from numba.core import types
from numba.core.datamodel import models, register_default
from numba.core.imputils import lower_cast
from numba.core.typeconv import Conversion

from yaffjit.jit.integers import uint64_exact
from yaffjit.jit.keys import PlanType
from yaffjit.plan.model import FieldPlan, MessagePlan, OneofPlan

__all__ = [
    "BorrowedType",
    "MessageViewType",
    "OneofType",
    "PathsType",
    "RecordsIteratorType",
    "RecordsType",
    "WireRecordsIteratorType",
    "WireRecordsType",
    "WireViewType",
    "field_types",
    "form",
    "like",
    "message_type",
    "own",
    "owner_type",
    "records_type",
    "value_type",
    "wire_field_types",
    "wire_value_type",
]

# Types of fields that aren't numbers or messages, by `form`: their packages enter them here.
field_types: dict[str, Callable[[MessagePlan, FieldPlan], types.Type]] = {}
# The same on protobuf's bytes.
wire_field_types: dict[str, Callable[[MessagePlan, FieldPlan], types.Type]] = {}

_UINT64_KINDS = ("uint64", "fixed64")
_FLOAT_KINDS = ("float", "double")


class BorrowedType(types.Hashable):
    """A value that points into bytes which somebody else keeps alive; `lifetime` bounds its life.

    numba asserts that what is put into a set is hashable. So all of them are to it, and `lifetime` says no.

    Attributes:
        what: the value in an error's sentence, before the message's name.
        instead: what can be kept.
        owned: whether it counts its bytes' owner by itself, and the bytes may change.
    """

    what: ClassVar[str]
    instead: ClassVar[str]
    owned: bool = False

    def as_owned(self) -> types.Type:
        """The twin that counts its owner."""
        raise NotImplementedError(f"{self.what} is only ever borrowed")

    def can_convert_to(self, typingctx: Any, other: types.Type) -> Conversion | None:
        """What is borrowed may be counted from here on; the other way it could outlive its bytes."""
        is_twin = isinstance(other, type(self)) and other.owned and not self.owned
        return Conversion.safe if is_twin and self.as_owned() == other else None


def own(typ: types.Type) -> types.Type:
    """A type with the twins of what it borrows, in tuples too."""
    if isinstance(typ, BorrowedType):
        return typ if typ.owned else typ.as_owned()
    if isinstance(typ, types.BaseTuple):
        return types.Tuple.from_types(tuple(map(own, typ)))
    return typ


def like(source: BorrowedType, typ: types.Type) -> types.Type:
    """The type of what is read from a value of another: counted if that is."""
    return own(typ) if source.owned else typ


def owner_type(typ: Any) -> types.Type:
    """The type of the owner in a value's native form."""
    return _COUNTED if typ.owned else types.voidptr


_COUNTED = types.MemInfoPointer(types.voidptr)


class MessageViewType(BorrowedType, PlanType):
    """A view of one message.

    Args:
        mp: the message's plan.
        owned: whether the view counts its owner.
    """

    label = "view"
    what = "a view"
    instead = "keep its row number, or the values that you need, instead"

    def __init__(self, mp: MessagePlan, owned: bool = False) -> None:
        super().__init__(mp, owned)
        self.owned = owned

    def as_owned(self) -> MessageViewType:
        return _once(type(self), self.mp, True)

    def field_type(self, f: FieldPlan) -> types.Type:
        """The type that reading a field gives, as `value_type`; counted if the view is."""
        return like(self, value_type(self.mp, f))


class WireViewType(MessageViewType):
    """A view of one message in protobuf's own bytes: where they are, their number, and the owner.

    The absent message is the null pointer and 0 bytes.
    """

    label = "protobuf view"

    def field_type(self, f: FieldPlan) -> types.Type:
        return like(self, wire_value_type(self.mp, f))


class OneofType(PlanType, types.Hashable):
    """What ``WhichOneof`` gives: the number of the member that is set, 0 for None."""

    label = "oneof"
    hash_fault: ClassVar[str] = (
        "what WhichOneof gives has no hash in jitted code: put str(x) into sets and keys"
    )

    def __init__(self, mp: MessagePlan, name: str) -> None:
        super().__init__(mp, name)

    @property
    def oneof(self) -> OneofPlan:
        return next(oneof for oneof in self.mp.oneofs if oneof.name == self.details[0])

    @property
    def members(self) -> tuple[FieldPlan, ...]:
        """The member fields by precedence."""
        return tuple(self.mp.by_name[name] for name in self.oneof.fields)

    def number(self, name: str) -> int:
        """The number that stands for a member's name, -1 if there is no such member."""
        return next((f.number for f in self.members if f.name == name), -1)

    def unify(self, typingctx: Any, other: types.Type) -> types.Type | None:
        if isinstance(other, types.NoneType):
            return self
        # In a variable that may hold another string it becomes a string, or None.
        if isinstance(other, (types.UnicodeType, types.StringLiteral)):
            return types.Optional(types.unicode_type)
        if isinstance(other, types.Optional) and isinstance(other.type, types.UnicodeType):
            return other
        return None


class _OfRecords(BorrowedType, PlanType):
    """Records or an iterator over them.

    Args:
        mp: the plan of the messages.
        scattered: whether the table that finds a row has the address of each message, and not chunks.
    """

    representation: ClassVar[str] = "yaff"

    def __init__(self, mp: MessagePlan, scattered: bool = False) -> None:
        super().__init__(mp, scattered)
        self.scattered = scattered

    @property
    def row_type(self) -> MessageViewType:
        """The type of a row."""
        return message_type(self.mp, self.representation)


class RecordsType(_OfRecords, types.IterableType):
    """Many messages of one type."""

    label = "records"
    what = "records"
    instead = "pass the records as an argument instead"

    @property
    def iterator_type(self) -> RecordsIteratorType:
        return RecordsIteratorType(self.mp, self.scattered)


class RecordsIteratorType(_OfRecords, types.IteratorType):
    label = "iterator of records"
    what = "an iterator over records"
    instead = "keep the row number instead"

    @property
    def yield_type(self) -> types.Type:
        return self.row_type


class WireRecordsType(RecordsType):
    """Many messages of one type in protobuf's own bytes."""

    label = "protobuf records"
    representation = "protobuf"

    @property
    def iterator_type(self) -> RecordsIteratorType:
        return WireRecordsIteratorType(self.mp, self.scattered)


class WireRecordsIteratorType(RecordsIteratorType):
    label = "iterator of protobuf records"
    representation = "protobuf"


class PathsType(PlanType):
    """Which fields a jitted loop reads; it has no value at run time.

    Args:
        mp: the root message.
        values: dotted paths whose values are read.
        presences: dotted paths whose presence is read.
        canonical: protobuf messages are taken to have their fields by ascending number, each once.
        shaped: values are as `yaffjit.plan.shapes.Shaping` takes them; this is its unit. Else empty.
    """

    label = "paths"

    def __init__(
        self,
        mp: MessagePlan,
        values: tuple[str, ...],
        presences: tuple[str, ...],
        canonical: bool = False,
        shaped: str = "",
    ) -> None:
        super().__init__(mp, values, presences, canonical, shaped)

    @property
    def values(self) -> tuple[str, ...]:
        return self.details[0]

    @property
    def presences(self) -> tuple[str, ...]:
        return self.details[1]

    @property
    def canonical(self) -> bool:
        return self.details[2]

    @property
    def shaped(self) -> str:
        return self.details[3]


def message_type(mp: MessagePlan, representation: str = "yaff") -> MessageViewType:
    """The numba type of a message's views, on "yaff" or "protobuf" bytes."""
    return _once(WireViewType if representation == "protobuf" else MessageViewType, mp)


def records_type(mp: MessagePlan, scattered: bool = False, representation: str = "yaff") -> RecordsType:
    """The numba type of a message's records in one of their two native forms."""
    return _once(WireRecordsType if representation == "protobuf" else RecordsType, mp, scattered)


def _once(cls: type[PlanType], mp: MessagePlan, *details: Any) -> PlanType:
    memo = mp.plan.memo
    key = (cls, mp.full_name, *details)
    made = memo.get(key)
    if made is None:
        made = memo[key] = cls(mp, *details)
    return made


def form(f: FieldPlan) -> str:
    """A field apart from its kind: "map", "repeated", "text" (string and bytes), "message" or "number"."""
    if f.is_map:
        return "map"
    if f.repeated:
        return "repeated"
    if f.kind in ("string", "bytes"):
        return "text"
    return "message" if f.kind == "message" else "number"


def value_type(mp: MessagePlan, f: FieldPlan) -> types.Type:
    """The type that reading a field gives in jitted code.

    Numbers are widened as Python would: to int64, float64; uint64 and fixed64 are exact unsigned integers.
    """
    make = field_types.get(form(f))
    if make is not None:
        return make(mp, f)
    if f.kind == "message":
        return message_type(mp.child(f))
    if f.kind == "bool":
        return types.boolean
    if f.kind in _FLOAT_KINDS:
        return types.float64
    return uint64_exact if f.kind in _UINT64_KINDS else types.int64


def wire_value_type(mp: MessagePlan, f: FieldPlan) -> types.Type:
    """The same of a view of protobuf's bytes."""
    make = wire_field_types.get(form(f))
    if make is not None:
        return make(mp, f)
    return message_type(mp.child(f), "protobuf") if f.kind == "message" else value_type(mp, f)


def _native_form(cls: type[types.Type], *members: tuple[str, types.Type]) -> None:
    class Model(models.StructModel):
        def __init__(self, manager: Any, numba_type: types.Type) -> None:
            super().__init__(manager, numba_type, list(members))

    register_default(cls)(Model)


_RECORDS = (
    ("table", types.voidptr),  # that of `yaffjit.rows.chunks` for pages, or of `yaffjit.rows.places`
    ("start", types.int64),  # the first row, counted from the table's first
    ("count", types.int64),
    ("owner", types.voidptr),
)
for _of_records in (RecordsType, WireRecordsType):
    _native_form(_of_records, *_RECORDS)
for _iterator in (RecordsIteratorType, WireRecordsIteratorType):
    _native_form(
        _iterator,
        *_RECORDS,
        ("row", types.EphemeralPointer(types.int64)),
        # Of the chunk that the last row was in: addresses, and the row that it ends before.
        ("data", types.EphemeralPointer(types.int64)),
        ("offsets", types.EphemeralPointer(types.int64)),
        ("end", types.EphemeralPointer(types.int64)),
    )
register_default(PathsType)(models.OpaqueModel)


@register_default(MessageViewType)
class _ViewModel(models.StructModel):
    def __init__(self, manager: Any, view: types.Type) -> None:
        super().__init__(manager, view, [("pointer", types.voidptr), ("owner", owner_type(view))])


@register_default(WireViewType)
class _WireViewModel(models.StructModel):
    def __init__(self, manager: Any, view: types.Type) -> None:
        members = [("pointer", types.voidptr), ("nbytes", types.int64), ("owner", owner_type(view))]
        super().__init__(manager, view, members)


@lower_cast(MessageViewType, MessageViewType)
def _to_twin(context: Any, builder: Any, source: types.Type, target: types.Type, value: Any) -> Any:
    """The same value: numba counts what a cast gives where it's kept."""
    return value


@register_default(OneofType)
class _OneofModel(models.PrimitiveModel):
    def __init__(self, manager: Any, numba_type: types.Type) -> None:
        from llvmlite import ir

        super().__init__(manager, numba_type, ir.IntType(32))
