"""Views of protobuf's own bytes: one pass records where fields are, and they're decoded when they're read."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from yaffjit.codec.verify_protobuf_met import Place, fault_met, placed
from yaffjit.errors import VerifyError, YaffjitError
from yaffjit.forks import renew_in_forks
from yaffjit.plan.limits import MAX_DEPTH
from yaffjit.view.assemble import assemble
from yaffjit.view.base import Access, Getter, Test, View
from yaffjit.view.buffers import take
from yaffjit.view.wire_extensions import Extensions, find_extension
from yaffjit.view.wire_fields import getter, is_present, is_set
from yaffjit.view.wire_index import LARGE_NBYTES, scan_large
from yaffjit.view.wire_scan import STRANGE, Field, Malformed, WireType, end_of_varint, scan, wire_type

if TYPE_CHECKING:
    from yaffjit.plan import Plan
    from yaffjit.plan.model import MessagePlan
    from yaffjit.view.buffers import Data
    from yaffjit.view.owner import Owner

_lock = threading.RLock()
renew_in_forks(sys.modules[__name__], "_lock", threading.RLock)


class _LazyPlan:
    """``_plan_`` of a view class: the message under YaFF, which may not be able to hold it."""

    def __get__(self, instance: Any, owner: type[WireView]) -> MessagePlan:
        made = owner._plan_ = owner._wire_.plan[owner._wire_.full_name]
        return made


class WireView(View):
    """A message in protobuf bytes.

    ``cls(data, begin, end, owner=None, row=None)`` makes a view of the message in ``data[begin:end]``, where
    ``data`` is `bytes` or a read-only memoryview of bytes. Its top level is scanned. ``row`` is for errors,
    in which positions count from ``begin``. Raises VerifyError.

    Attributes of an instance, for the other layers:
        _begin_, _end_: where the message is in ``_data_``.
        _found_: what `scan` records, and what was made of it; negative numbers are of what was made.
        _place_: which message it is.
    """

    __slots__ = ("_begin_", "_end_", "_found_", "_place_")
    _representation_ = "protobuf"
    _wire_: ClassVar[WireType]
    _root_: ClassVar[Place]
    _plan_: ClassVar[Any] = _LazyPlan()
    # Descriptor, whether it's set and getter of each extension, by full name and ascending number.
    _extensions_: ClassVar[Mapping[str, tuple[Any, Test, Getter]]]
    Extensions: Any = property(Extensions, doc="The extensions, read by their FieldDescriptor.")

    def __init__(
        self,
        data: Data,
        begin: int,
        end: int,
        owner: Owner | None = None,
        row: int | None = None,
        place: Place | None = None,
    ) -> None:
        self._data_ = data
        self._begin_ = begin
        self._end_ = end
        self._owner_ = owner
        if place is None:
            place = self._root_
            if begin or row is not None:
                place = Place(None, place.name, row, begin)
        self._place_ = place
        self._found_: dict[int, Any] = {}
        try:
            pass_over = scan if end - begin < LARGE_NBYTES else scan_large
            if pass_over(self._wire_, data, begin, end, place.depth, self._found_):
                self._found_[STRANGE] = True
        except (Malformed, IndexError):
            raise self._fault_() from None

    @classmethod
    def _of_field_(
        cls, outer: WireView, name: str, index: int | None, held: tuple[int, int] | list[tuple[int, int]]
    ) -> WireView:
        """The view of what a field of another one holds: of one span, or of all fragments merged."""
        data = outer._data_
        before = outer._place_
        depth = before.depth + 1
        if isinstance(held, tuple):
            start, stop = held
            if depth > MAX_DEPTH:
                raise outer._fault_(start)
            return cls(data, start, stop, outer._owner_, None, Place(before, name, index, 0, depth))
        # Each is bounded by itself; together they are the message merged.
        parts = [cls._of_field_(outer, name, index, span) for span in held]
        own: list[int] = []
        nbytes = 0
        for part in parts:
            own.append(nbytes)
            nbytes += part._end_ - part._begin_
        pieces = tuple(own), tuple(part._begin_ for part in parts)
        merged = b"".join([data[part._begin_ : part._end_] for part in parts])
        return cls(merged, 0, nbytes, None, None, Place(before, name, index, 0, depth, pieces))

    def _any_pos_(self) -> tuple[int, bool]:
        return self._begin_, self._begin_ == self._end_

    def _is_whole_(self, begin: int, end: int) -> bool:
        return (begin, end) == (self._begin_, self._end_)

    def HasExtension(self, extension: Any) -> bool:
        """Whether an extension is set, which is given by its FieldDescriptor; KeyError for a repeated one."""
        field, is_set, _ = find_extension(self, extension)
        if field.is_repeated:
            raise KeyError("Field is repeated. A singular method is required.")
        return is_set(self)

    def _fault_(self, at: int = -1) -> YaffjitError:
        """What to raise for what was read at ``at``, absolute; -1 for the message itself."""
        typ = self._wire_
        return fault_met(typ.plan, typ.full_name, self._data_, self._begin_, self._end_, self._place_, at)

    def _varints_(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Begin and end of each number in a packed run; VerifyError where they aren't varints."""
        data, pos = self._data_, start
        while pos < stop:
            try:
                after = end_of_varint(data, pos, stop)
            except Malformed:
                raise self._fault_(start) from None
            yield pos, after
            pos = after

    @classmethod
    def _default_(cls) -> View:
        known = cls._default_view_
        if known is None:
            known = cls._default_view_ = cls(b"", 0, 0)
        return known

    def _decoded_(self, most: int | None) -> Any:
        from google.protobuf.message import DecodeError as ProtobufError

        from yaffjit.codec.verify_protobuf import refused

        if most is not None and self._end_ - self._begin_ > most:
            return None
        typ = self._wire_
        payload = bytes(self._data_[self._begin_ : self._end_])
        try:
            return typ.plan.schema.message_class(typ.full_name).FromString(payload)
        except ProtobufError as error:
            fault = refused(typ.plan, typ.full_name, payload, error, None)
            if isinstance(fault, VerifyError) and fault.position is not None:
                fault = placed(fault, self._begin_ + fault.position, self._place_)
            raise fault from None


def wire_view_class(plan: Plan, full_name: str) -> type[WireView]:
    """The class of views of a message type in protobuf bytes: one for each plan.

    Also of messages that YaFF can't hold.

    Raises:
        SchemaError: the message is of MessageSet's own wire format, or has a field whose name views need.
    """
    key = ("view.wire_class", full_name)
    memo = plan.memo
    known: type[WireView] | None = memo.get(key)
    if known is None:
        with _lock:
            known = memo.get(key)
            if known is None:
                known = memo[key] = _make_class(plan, full_name)
    return known


def protobuf_viewer(plan: Plan, full_name: str) -> Callable[[Any], WireView]:
    """A function that makes views of protobuf bytes of one message type."""
    make = wire_view_class(plan, full_name)

    def view_protobuf(data: Any) -> WireView:
        """A view of a message in protobuf bytes: nothing is decoded until it's read.

        Args:
            data: bytes or any contiguous buffer; what is writable is copied, so that it stays as scanned.

        Raises:
            VerifyError: names the message, the field path, the byte position and the two numbers compared.
        """
        held = data if type(data) is bytes else take(data)
        return make(held, 0, len(held))

    return view_protobuf


def _make_class(plan: Plan, full_name: str) -> type[WireView]:
    typ = wire_type(plan, full_name)
    access = _make_access(typ)
    return assemble(
        WireView,
        access,
        docs={f.name: _doc(f) for f in typ.fields if not f.is_extension},
        missing={},
        _schema_=plan.schema,
        _wire_=typ,
        _root_=Place(None, full_name),
        _extensions_={listed[0].full_name: listed for listed in access.listed if listed[0].is_extension},
    )


def _doc(f: Field) -> str:
    enum = f.descriptor.enum_type
    kind = f.child or (f.kind if enum is None else enum.full_name)
    return f"Field {f.number}: {'map' if f.is_map else 'repeated ' * f.repeated + kind}."


def _make_access(typ: WireType) -> Access:
    getters: dict[str, Getter] = {}
    presence: dict[str, Test] = {}
    listed: list[tuple[Any, Test, Getter]] = []
    for f in typ.fields:
        get = getter(f, _child(typ, f), typ)
        listed.append((f.descriptor, is_set(f, get), get))
        if not f.is_extension:
            getters[f.name] = get
            if f.explicit:
                presence[f.name] = is_present(f)
    oneofs = {}
    # protobuf has a oneof for each optional field of proto3 too
    for oneof in typ.descriptor.oneofs:
        oneofs[oneof.name] = tuple((f.name, presence[f.name]) for f in oneof.fields)
        presence[oneof.name] = _any_present(frozenset(f.number for f in oneof.fields))
    return Access(
        descriptor=typ.descriptor,
        getters=getters,
        presence=presence,
        oneofs=oneofs,
        listed=tuple(listed),
        lost={},
    )


def _any_present(numbers: frozenset[int]) -> Test:
    return lambda view: not numbers.isdisjoint(view._found_)


def _child(typ: WireType, f: Field) -> Callable[[], type[WireView]]:
    return lambda: wire_view_class(typ.plan, f.child)
