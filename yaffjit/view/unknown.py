"""Fields of protobuf bytes that the schema doesn't have, or that aren't what it says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from yaffjit.codec.verify_protobuf_plain import BYTES, FIXED32, FIXED64, GROUP, VARINT
from yaffjit.view.base import View
from yaffjit.view.wire import WireView, wire_view_class
from yaffjit.view.wire_scan import STRANGE, Occurrence, next_field, signed32, varint_at

if TYPE_CHECKING:
    from yaffjit.codec.verify_protobuf_met import Place
    from yaffjit.view.buffers import Data
    from yaffjit.view.wire_scan import Field


class UnknownField(NamedTuple):
    """One occurrence of a field that a message doesn't have.

    Attributes:
        number: of the field.
        wire_type: 0 varint, 1 fixed64, 2 length-delimited, 3 group, 5 fixed32.
        value: an unsigned number; bytes; of a group the list of its fields.
        position: of its tag in the bytes of the root message; of a number that a closed enum doesn't have and
            that is packed, its own.
    """

    number: int
    wire_type: int
    value: int | bytes | list[UnknownField]
    position: int


def unknown_fields(view: Any) -> list[UnknownField]:
    """What a message holds that its type hasn't, in the order of the bytes; not what messages in it hold.

    As in protobuf these are fields of other numbers and of other wire types, numbers that a closed enum
    doesn't have, and pairs of a map with any of these. YaFF carries none.

    Args:
        view: a view; of YaFF the result is empty.

    Raises:
        VerifyError: packed enums or a map's pair aren't well-formed.
    """
    if isinstance(view, WireView):
        place = view._place_
        return [_unknown(view._data_, found, place) for found in _strangers(view)]
    if isinstance(view, View):
        return []
    raise TypeError(f"a view is needed, not {type(view).__name__}")


def _strangers(view: WireView) -> Iterator[Occurrence]:
    data, pos, end, typ = view._data_, view._begin_, view._end_, view._wire_
    pairs: dict[int, int] = {}
    while pos < end:
        found = next_field(data, pos, end, view._place_.depth)
        pos = found.after
        rule = typ.by_tag.get(found.number << 3 | found.wire_type)
        if rule is None:
            yield found
            continue
        f = typ.by_number[found.number]
        if f.is_map:
            index = pairs.get(f.number, 0)
            pairs[f.number] = index + 1
            pair = wire_view_class(typ.plan, f.child)
            if STRANGE in pair._of_field_(view, f.name, index, (found.start, found.stop))._found_:
                yield found
        elif f.numbers is not None:
            yield from _odd_numbers(view, f, found)


def _odd_numbers(view: WireView, f: Field, found: Occurrence) -> Iterator[Occurrence]:
    """The numbers of an occurrence that its closed enum doesn't have."""
    assert f.numbers is not None
    data = view._data_
    if found.wire_type == VARINT:
        if signed32(varint_at(data, found.start)) not in f.numbers:
            yield found
        return
    for start, stop in view._varints_(found.start, found.stop):
        if signed32(varint_at(data, start)) not in f.numbers:
            yield Occurrence(f.number, VARINT, start, start, stop, stop)


def _unknown(data: Data, found: Occurrence, place: Place) -> UnknownField:
    return UnknownField(found.number, found.wire_type, _value(data, found, place), place.position(found.at))


def _value(data: Data, found: Occurrence, place: Place) -> int | bytes | list[UnknownField]:
    if found.wire_type == VARINT:
        return varint_at(data, found.start)
    if found.wire_type in (FIXED32, FIXED64):
        return int.from_bytes(data[found.start : found.stop], "little")
    if found.wire_type == BYTES:
        return bytes(data[found.start : found.stop])
    assert found.wire_type == GROUP
    held = []
    pos = found.start
    while pos < found.stop:
        inner = next_field(data, pos, found.stop)
        pos = inner.after
        held.append(_unknown(data, inner, place))
    return held


def unknown_by_number(message: Any) -> dict[int, list[Any]]:
    """The values of unknown fields of a view or protobuf message by number; those of groups as the same."""
    if isinstance(message, View):
        return _by_number(unknown_fields(message))
    from google.protobuf.unknown_fields import UnknownFieldSet

    return _of_set(UnknownFieldSet(message))


def _by_number(fields: list[UnknownField]) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for field in fields:
        value = _by_number(field.value) if isinstance(field.value, list) else field.value
        found.setdefault(field.number, []).append(value)
    return found


def _of_set(fields: Any) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for field in fields:
        value = _of_set(field.data) if field.wire_type == GROUP else field.data
        found.setdefault(field.field_number, []).append(value)
    return found
