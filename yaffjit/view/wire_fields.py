"""How a field is read from a view of protobuf bytes: one closure per field, made for its kind.

A closure takes the view and reads only its slots, never an attribute that a field could hide.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from yaffjit.plan.model import SCALAR_CODE
from yaffjit.view.base import Getter, Test
from yaffjit.view.wire_maps import WireMap, WireMapKind
from yaffjit.view.wire_repeated import WireMessages, WireTexts, numbers_of, text_of
from yaffjit.view.wire_scan import WIDTHS, Field, WireType, varint_at

if TYPE_CHECKING:
    from yaffjit.view.buffers import Data
    from yaffjit.view.wire import WireView

_NONE = array("q")

# (data, position of a number that was seen to end) -> its value
ReadNumber = Callable[["Data", int], Any]


def read_int32(data: Data, at: int) -> int:
    return (varint_at(data, at) & 0xFFFFFFFF ^ 0x80000000) - 0x80000000


def read_uint32(data: Data, at: int) -> int:
    return varint_at(data, at) & 0xFFFFFFFF


def read_int64(data: Data, at: int) -> int:
    return (varint_at(data, at) ^ 1 << 63) - (1 << 63)


def read_sint32(data: Data, at: int) -> int:
    value = varint_at(data, at) & 0xFFFFFFFF
    return value >> 1 ^ -(value & 1)


def read_sint64(data: Data, at: int) -> int:
    value = varint_at(data, at)
    return value >> 1 ^ -(value & 1)


def read_bool(data: Data, at: int) -> bool:
    return varint_at(data, at) != 0


_VARINTS: dict[str, ReadNumber] = {
    "int32": read_int32,
    "enum": read_int32,
    "uint32": read_uint32,
    "int64": read_int64,
    "uint64": varint_at,
    "sint32": read_sint32,
    "sint64": read_sint64,
    "bool": read_bool,
}


def number_reader(kind: str) -> ReadNumber:
    """How a number of that kind is read at its position."""
    if kind in _VARINTS:
        return _VARINTS[kind]
    unpack = struct.Struct("<" + SCALAR_CODE[kind]).unpack_from
    return lambda data, at: unpack(data, at)[0]


def getter(f: Field, child: Callable[[], type[WireView]], typ: WireType) -> Getter:
    """The getter of a field; ``child`` gives the class of its messages, of ``typ`` that has the field."""
    if f.is_map:
        return _map(f, typ)
    if f.kind == "message":
        return _messages(f, child) if f.repeated else _message(f, child)
    if f.kind in ("string", "bytes"):
        return _texts(f) if f.repeated else _text(f)
    return _numbers(f) if f.repeated else _number(f)


def is_present(f: Field) -> Test:
    number = f.number
    return lambda view: number in view._found_


def is_set(f: Field, get: Getter) -> Test:
    """Whether `ListFields` lists a field: present, or not 0 and not empty where presence is implicit."""
    if f.explicit:
        return is_present(f)
    number = f.number
    if f.kind in ("string", "bytes") and not f.repeated:

        def filled(view: WireView) -> bool:
            span = view._found_.get(number)
            return span is not None and span[0] < span[1]

        return filled
    if f.kind in ("float", "double") and not f.repeated:
        width = WIDTHS[f.kind]

        def differs(view: WireView) -> bool:
            at = view._found_.get(number)
            return at is not None and any(view._data_[at : at + width])

        return differs
    return lambda view: number in view._found_ and bool(get(view))


def _number(f: Field) -> Getter:
    number, default = f.number, f.default
    read = number_reader(f.kind)

    def get(view: WireView) -> Any:
        at = view._found_.get(number)
        return default if at is None else read(view._data_, at)

    return get


def _text(f: Field) -> Getter:
    number, default = f.number, f.default

    def get(view: WireView) -> Any:
        span = view._found_.get(number)
        return default if span is None else text_of(view, f, *span)

    return get


def _message(f: Field, child: Callable[[], type[WireView]]) -> Getter:
    number, name = f.number, f.name
    cls: Any = None  # made when it's first read, since types may be recursive

    def get(view: WireView) -> WireView:
        nonlocal cls
        if cls is None:
            cls = child()
        held = view._found_.get(number)
        if held is None:
            return cls._default_()  # type: ignore[no-any-return]
        if type(held) is tuple or type(held) is list:
            held = view._found_[number] = cls._of_field_(view, name, None, held)
        return held  # type: ignore[no-any-return]

    return get


def _numbers(f: Field) -> Getter:
    number = f.number

    def get(view: WireView) -> Any:
        held = view._found_.get(number)
        if held is None or type(held) is array:
            held = numbers_of(f, view, held)
            if number in view._found_:
                view._found_[number] = held
        return held

    return get


def _texts(f: Field) -> Getter:
    number = f.number
    return lambda view: WireTexts(view, f, view._found_.get(number, _NONE))


def _messages(f: Field, child: Callable[[], type[WireView]]) -> Getter:
    number = f.number
    return lambda view: WireMessages(view, f, view._found_.get(number, _NONE), child())


def _map(f: Field, typ: WireType) -> Getter:
    kind: Any = None

    def get(view: WireView) -> WireMap:
        nonlocal kind
        if kind is None:
            kind = WireMapKind(typ.plan, f)
        return WireMap(view, f, kind)

    return get
