"""One view class for each message type, put together from its plan when it's first needed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from yaffjit.codec.locate import read_u32
from yaffjit.errors import SchemaError
from yaffjit.plan.model import FieldPlan, MessagePlan
from yaffjit.view.base import Access, FixedView, Missing, View, lost_field, near_names_error, read_only
from yaffjit.view.fields import (
    Getter,
    Test,
    any_present,
    find_target,
    in_oneof,
    is_present,
    is_set,
    present_in_oneof,
    scalar,
    text,
)
from yaffjit.view.maps import MapKind, MapView
from yaffjit.view.repeated import make_repeated
from yaffjit.view.wellknown import helpers

if TYPE_CHECKING:
    from yaffjit.view.buffers import Data

_lock = threading.RLock()

# What this package reads of views, and numba of all values.
_OWN_NAMES = frozenset(
    name for name in (*dir(View), "_plan_", "_access_") if name[0] == name[-1] == "_" and name[1] != "_"
)
# An enum's constants hide nothing, as in protobuf.
_TAKEN_NAMES = _OWN_NAMES.union(dir(View))
# An absent array.
_EMPTY_ARRAY = bytes(4)


def view_class(mp: MessagePlan) -> type[View]:
    """The class of views of a message type: one for each plan.

    It has a property for each field and, as protobuf's class, the enums, enum constants and field numbers of
    the message as attributes. ``cls(data, pos, owner=None)`` makes a view of the message at byte ``pos`` of
    ``data``, which is `bytes` or a read-only memoryview of bytes, without a check.
    """
    key = ("view.class", mp.full_name)
    memo = mp.plan.memo
    known: type[View] | None = memo.get(key)
    if known is None:
        with _lock:
            known = memo.get(key)
            if known is None:
                known = memo[key] = _make_class(mp)
    return known


def _make_class(mp: MessagePlan) -> type[View]:
    descriptor: Any = mp.plan.schema.pool.FindMessageTypeByName(mp.full_name)
    access = _make_access(mp, descriptor)
    names: dict[str, Any] = {f"{f.name.upper()}_FIELD_NUMBER": f.number for f in descriptor.fields}
    names.update(_enum_names(descriptor))
    names.update(helpers(mp.full_name))
    names["DESCRIPTOR"] = descriptor
    special = {f.name: access.getters[f.name] for f in mp.fields if _is_special(f.name)}
    for f in mp.fields:
        if f.name in _OWN_NAMES:
            raise SchemaError(
                f"{mp.full_name} has no views: they keep the name of its field {f.name} for themselves"
            )
        if f.name not in special:
            names[f.name] = property(access.getters[f.name], read_only, doc=_doc(f))
    for name in access.lost:
        if name not in _OWN_NAMES and not _is_special(name):
            names.setdefault(name, Missing(lost_field(access, name)))
    names.update(
        __slots__=(),
        __module__="yaffjit.view",
        __doc__=f"A view of {mp.full_name}.",
        _plan_=mp,
        _access_=access,
    )
    # Python's own tracebacks suggest names, IPython's don't. It isn't there always because each read would
    # take half as long again: Python doesn't specialise the properties of a class that has it.
    if "IPython" in sys.modules:
        names["__getattr__"] = near_names_error
    if special:
        names.update(_special_access(special))
    base = FixedView if mp.layout == "fixed" else View
    return type(descriptor.name, (base,), names)


def _enum_names(descriptor: Any) -> dict[str, Any]:
    """Enums and their constants, which protobuf has as attributes of the message that declares them."""
    from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

    names: dict[str, Any] = {}
    for name, enum in descriptor.enum_types_by_name.items():
        names[name] = EnumTypeWrapper(enum)
        names.update((value.name, value.number) for value in enum.values)
    return {
        name: value for name, value in names.items() if name not in _TAKEN_NAMES and not _is_special(name)
    }


def _is_special(name: str) -> bool:
    """A name that Python looks for on classes: nothing that isn't Python's may be there."""
    return name.startswith("__") and name.endswith("__")


def _special_access(special: Mapping[str, Getter]) -> dict[str, Any]:
    """Attribute access of a class whose fields have names like ``__len__``: only an instance has these."""

    def get_attribute(view: View, name: str) -> Any:
        get = special.get(name)
        return object.__getattribute__(view, name) if get is None else get(view)

    def set_attribute(view: View, name: str, value: Any) -> None:
        if name in special:
            read_only(view, value)
        object.__setattr__(view, name, value)

    return {"__getattribute__": get_attribute, "__setattr__": set_attribute}


def _doc(f: FieldPlan) -> str:
    kind = f.message or f.enum or f.kind
    return f"Field {f.number}: {'map' if f.is_map else 'repeated ' * f.repeated + kind}."


def _make_access(mp: MessagePlan, descriptor: Any) -> Access:
    present: dict[str, Test] = {f.name: is_present(mp, f) for f in mp.fields if f.explicit}
    # protobuf has a oneof for each optional field of proto3 too
    members = {o.name: [f.name for f in o.fields if f.name in present] for o in descriptor.oneofs}
    members.update((o.name, list(o.fields)) for o in mp.oneofs)
    blocked: dict[str, Test] = {}
    for oneof in mp.oneofs:
        for i, name in enumerate(oneof.fields[1:], 1):
            blocked[name] = any_present(mp, [mp.by_name[before] for before in oneof.fields[:i]])

    getters: dict[str, Getter] = {}
    presence: dict[str, Test] = {}
    listed: list[tuple[Any, Test, Getter]] = []
    for f in sorted(mp.fields, key=lambda f: f.number):
        get = _getter(mp, f)
        shown = present[f.name] if f.explicit else is_set(mp, f)
        if f.name in blocked:
            get = in_oneof(get, blocked[f.name], _default(mp, f))
            shown = present_in_oneof(shown, blocked[f.name])
        getters[f.name] = get
        if f.explicit:
            presence[f.name] = shown
        listed.append((descriptor.fields_by_name[f.name], shown, get))
    for name, names in members.items():
        presence[name] = any_present(mp, [mp.by_name[member] for member in names])
    return Access(
        descriptor=descriptor,
        getters=getters,
        presence=presence,
        # By precedence: the first member that is present is the one that counts.
        oneofs={o: tuple((name, present[name]) for name in names) for o, names in members.items()},
        listed=tuple(listed),
        lost=dict(mp.lost),
    )


def _default(mp: MessagePlan, f: FieldPlan) -> Callable[[], Any]:
    if f.kind == "message":
        return lambda: view_class(mp.child(f))._default_()
    return lambda: f.default


def _getter(mp: MessagePlan, f: FieldPlan) -> Getter:
    if f.is_scalar:
        return scalar(mp, f)
    if f.is_map:
        return _map(mp, f)
    if f.repeated:
        return _repeated(mp, f)
    return _message(mp, f) if f.kind == "message" else text(mp, f)


def _message(mp: MessagePlan, f: FieldPlan) -> Getter:
    target = find_target(mp, f)
    child: Any = None  # made when it's first read, since types may be recursive

    def get(view: View) -> View:
        nonlocal child
        if child is None:
            child = view_class(mp.child(f))
        at = target(view)
        if at < 0:
            return child._default_()  # type: ignore[no-any-return]
        return child(view._data_, at, view._owner_)  # type: ignore[no-any-return]

    return get


def _repeated(mp: MessagePlan, f: FieldPlan) -> Getter:
    target = find_target(mp, f)
    make = make_repeated(f, lambda: view_class(mp.child(f)))
    empty = None if f.kind == "message" else make(_EMPTY_ARRAY, 0, None)

    def get(view: View) -> Any:
        at = target(view)
        if at < 0:
            return make(_EMPTY_ARRAY, 0, None) if empty is None else empty
        return make(view._data_, at, view._owner_)

    return get


def _map(mp: MessagePlan, f: FieldPlan) -> Getter:
    target = find_target(mp, f)
    kind: Any = None

    def get(view: View) -> MapView:
        nonlocal kind
        if kind is None:
            kind = _map_kind(mp, f)
        at = target(view)
        if at < 0:
            return MapView(_EMPTY_ARRAY, 4, 0, kind, None)
        data = view._data_
        return MapView(data, at + 4, read_u32(data, at)[0], kind, view._owner_)

    return get


def make_map(
    mp: MessagePlan,
    f: FieldPlan,
    data: Data = _EMPTY_ARRAY,
    start: int = 4,
    count: int = 0,
    owner: Any = None,
) -> MapView:
    """A map field whose pairs start at an absolute position; an empty one by default."""
    return MapView(data, start, count, _map_kind(mp, f), owner)


def _map_kind(mp: MessagePlan, f: FieldPlan) -> MapKind:
    memo, key = mp.plan.memo, ("view.map", f.message)
    known: MapKind | None = memo.get(key)
    if known is None:
        entry = mp.child(f)
        known = memo[key] = MapKind(entry, lambda: view_class(entry.child(entry.fields[1])))
    return known
