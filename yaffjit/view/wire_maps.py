"""Map fields of views of protobuf bytes: each pair is a small message; of equal keys the last counts."""

from __future__ import annotations

from array import array
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from yaffjit.view.maps import MapKind, MapView
from yaffjit.view.wire_repeated import pairs
from yaffjit.view.wire_scan import STRANGE, Field

if TYPE_CHECKING:
    from yaffjit.plan import Plan
    from yaffjit.view.wire import WireView


class WireMapKind(MapKind):
    """How the pairs of one field are read: by the views of their own type."""

    def __init__(self, plan: Plan, f: Field) -> None:
        from yaffjit.view.wire import wire_view_class

        self.pair: type[WireView] = wire_view_class(plan, f.child)
        getters = self.pair._access_.getters
        self.read_key = getters["key"]
        self.read_value = getters["value"]
        super().__init__(plan.schema, f.child, plan.schema.messages[f.child].fields[0].kind)

    def key(self, raw: Any) -> Any:
        try:
            return super().key(raw)
        except UnicodeDecodeError:  # protobuf didn't check it, and gives it as bytes
            return raw

    def default(self) -> Any:
        return self.read_value(self.pair._default_())


class WireMap(MapView):
    """A map field; pairs come in the order of those that count.

    Its rows are raw keys. The pairs are scanned when the map is first looked into, once a view; a value that
    is a message is scanned when it's read.
    """

    __slots__ = ("_field", "_view")
    _kind: WireMapKind

    def __init__(self, view: WireView, f: Field, kind: WireMapKind) -> None:
        self._view = view
        self._field = f
        self._kind = kind

    def _pairs(self) -> dict[Any, WireView]:
        number = self._field.number
        found = self._view._found_
        made: dict[Any, WireView] | None = found.get(-number)
        if made is None:
            made = self._scanned(found.get(number, ()))
            found[-number] = made
        return made

    def _scanned(self, spans: array[int]) -> dict[Any, WireView]:
        made: dict[Any, WireView] = {}
        kind, name, view = self._kind, self._field.name, self._view
        for index, span in enumerate(pairs(spans)):
            pair = kind.pair._of_field_(view, name, index, span)
            if STRANGE in pair._found_:
                continue  # the whole pair is an unknown field
            key = kind.read_key(pair)
            raw = key.encode() if type(key) is str else key
            made.pop(raw, None)
            made[raw] = pair
        return made

    def _raw(self, row: Any) -> Any:
        return row

    def _value(self, row: Any) -> Any:
        return self._kind.read_value(self._pairs()[row])

    def _rows(self) -> Collection[Any]:
        return self._pairs().keys()

    def _find(self, key: Any) -> Any:
        raw = self._kind.raw_of(key)
        return raw if raw in self._pairs() else None
