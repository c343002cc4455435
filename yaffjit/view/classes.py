"""One class of YaFF views for each message type, put together from its plan when it's first needed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from yaffjit.codec.locate import read_u32
from yaffjit.forks import renew_in_forks
from yaffjit.plan.model import FieldPlan, MessagePlan
from yaffjit.view.assemble import assemble
from yaffjit.view.base import Access, View, lost_field
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
from yaffjit.view.maps import YaffMap, YaffMapKind
from yaffjit.view.repeated import make_repeated
from yaffjit.view.yaff import FixedView, YaffView

if TYPE_CHECKING:
    from yaffjit.view.buffers import Data

_lock = threading.RLock()
renew_in_forks(sys.modules[__name__], "_lock", threading.RLock)

# An absent array.
_EMPTY_ARRAY = bytes(4)


def view_class(mp: MessagePlan) -> type[YaffView]:
    """The class of views of a message type: one for each plan.

    It has a property for each field and, as protobuf's class, the enums, enum constants and field numbers of
    the message as attributes. ``cls(data, pos, owner=None)`` makes a view of the message at byte ``pos`` of
    ``data``, which is `bytes` or a read-only memoryview of bytes, without a check.
    """
    key = ("view.class", mp.full_name)
    memo = mp.plan.memo
    known: type[YaffView] | None = memo.get(key)
    if known is None:
        with _lock:
            known = memo.get(key)
            if known is None:
                known = memo[key] = _make_class(mp)
    return known


def _make_class(mp: MessagePlan) -> type[YaffView]:
    access = _make_access(mp, mp.plan.schema.pool.FindMessageTypeByName(mp.full_name))
    return assemble(
        FixedView if mp.layout == "fixed" else YaffView,
        access,
        docs={f.name: _doc(f) for f in mp.fields},
        missing={name: lost_field(access, name) for name in access.lost},
        _plan_=mp,
        _schema_=mp.plan.schema,
    )


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

    def get(view: YaffView) -> View:
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

    def get(view: YaffView) -> Any:
        at = target(view)
        if at < 0:
            return make(_EMPTY_ARRAY, 0, None) if empty is None else empty
        return make(view._data_, at, view._owner_)

    return get


def _map(mp: MessagePlan, f: FieldPlan) -> Getter:
    target = find_target(mp, f)
    kind: Any = None

    def get(view: YaffView) -> YaffMap:
        nonlocal kind
        if kind is None:
            kind = _map_kind(mp, f)
        at = target(view)
        if at < 0:
            return YaffMap(_EMPTY_ARRAY, 4, 0, kind, None)
        data = view._data_
        return YaffMap(data, at + 4, read_u32(data, at)[0], kind, view._owner_)

    return get


def make_map(
    mp: MessagePlan,
    f: FieldPlan,
    data: Data = _EMPTY_ARRAY,
    start: int = 4,
    count: int = 0,
    owner: Any = None,
) -> YaffMap:
    """A map field whose pairs start at an absolute position; an empty one by default."""
    return YaffMap(data, start, count, _map_kind(mp, f), owner)


def _map_kind(mp: MessagePlan, f: FieldPlan) -> YaffMapKind:
    memo, key = mp.plan.memo, ("view.map", f.message)
    known: YaffMapKind | None = memo.get(key)
    if known is None:
        entry = mp.child(f)
        known = memo[key] = YaffMapKind(entry, lambda: view_class(entry.child(entry.fields[1])))
    return known
