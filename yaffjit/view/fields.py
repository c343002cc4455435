"""How the value of a field is read from a YaFF view: one closure per field, made for its kind and layout.

A closure takes the view and reads only the view's slots, never an attribute that a field could hide.
A fixed message has no header; its views say `FLAT`, so that one rule reads flat and fixed slots.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from yaffjit.codec.locate import EXPLICIT, FLAT, SIZED, hole_widths, read_u16, read_u32
from yaffjit.plan.model import SCALAR_CODE, SCALAR_WIDTH, FieldPlan, MessagePlan

if TYPE_CHECKING:
    from yaffjit.view.buffers import Data
    from yaffjit.view.yaff import YaffView

Finder = Callable[["YaffView"], int]
Getter = Callable[["YaffView"], Any]
Test = Callable[["YaffView"], bool]
Reader = Callable[["Data", int], Any]

_UNSIGNED = {1: struct.Struct("<B"), 4: struct.Struct("<I"), 8: struct.Struct("<Q")}


class SlotRule:
    """A slot is at ``view._pos_ + start`` if ``view._head_ > above`` (flat, fixed), else sparse."""

    __slots__ = ("above", "holes", "start")

    def __init__(self, mp: MessagePlan, f: FieldPlan) -> None:
        fixed = mp.layout == "fixed"
        self.above = -1 if fixed else f.id << 2 | 0x8003
        self.start = f.offset if fixed else f.offset + 2
        self.holes = hole_widths(f.holes) if f.holes and not fixed else None


def find_sparse(f: FieldPlan) -> Finder:
    """The slot's position in a sparse message, or -1; -1 too in a flat one, whose slots end before it."""
    above = f.id << 2 | 3
    if f.id < 32:
        back = f.id

        def find(view: YaffView) -> int:
            if above < view._head_ < FLAT:
                entry = view._data_[view._meta_ - back]
                if entry:
                    return view._pos_ + entry
            return -1

        return find

    wide_back = 2 * f.id - 31

    def find_wide(view: YaffView) -> int:
        if above < view._head_ < FLAT:
            entry: int = read_u16(view._data_, view._meta_ - wide_back)[0]
            if entry:
                return view._pos_ + entry
        return -1

    return find_wide


def find_slot(mp: MessagePlan, f: FieldPlan) -> Finder:
    """A function from a view to the absolute position of a field's slot, -1 if the message has none."""
    rule = SlotRule(mp, f)
    above, start, holes = rule.above, rule.start, rule.holes
    sparse = find_sparse(f)

    def find(view: YaffView) -> int:
        if view._head_ > above:
            return view._pos_ + start
        return sparse(view)

    if holes is None:
        return find

    def find_after_holes(view: YaffView) -> int:
        head = view._head_
        if head > above:
            return view._pos_ + start + holes(view._data_, view._pos_, head)
        return sparse(view)

    return find_after_holes


def find_target(mp: MessagePlan, f: FieldPlan) -> Finder:
    """A function from a view to the position of the object that an out-of-line field points to, or -1."""
    rule = SlotRule(mp, f)
    above, start, holes = rule.above, rule.start, rule.holes
    sparse = find_sparse(f)

    def target(view: YaffView) -> int:
        pos = view._pos_
        head = view._head_
        if head > above:
            at = pos + start
            if holes is not None:
                at += holes(view._data_, pos, head)
        else:
            at = sparse(view)
            if at < 0:
                return -1
        offset: int = read_u32(view._data_, at)[0]
        return pos + offset if offset else -1

    return target


def is_present(mp: MessagePlan, f: FieldPlan) -> Test:
    """Whether a field is present: slot bits that aren't 0; a scalar's presence bit where there are these."""
    rule = SlotRule(mp, f)
    above, start, holes = rule.above, rule.start, rule.holes
    sparse = find_sparse(f)
    unpack = _UNSIGNED[f.width].unpack_from
    by_bit = f.is_scalar
    alone = f.id - 1
    sized = 3 * alone
    alone_back, alone_mask = 1 + (alone >> 3), 1 << (alone & 7)
    sized_back, sized_mask = 1 + (sized >> 3), 1 << (sized & 7)

    def present(view: YaffView) -> bool:
        head = view._head_
        if head <= above:
            return sparse(view) >= 0
        data, pos = view._data_, view._pos_
        if by_bit and head & EXPLICIT:
            if head & SIZED:
                return data[pos - sized_back] & sized_mask != 0
            return data[pos - alone_back] & alone_mask != 0
        at = pos + start
        if holes is not None:
            at += holes(data, pos, head)
        return unpack(data, at)[0] != 0  # type: ignore[no-any-return]

    return present


def is_set(mp: MessagePlan, f: FieldPlan) -> Test:
    """Whether `ListFields` lists a field: present, or not 0 and not empty where presence is implicit."""
    if f.explicit:
        return is_present(mp, f)
    if f.is_scalar:
        find = find_slot(mp, f)
        unpack = _UNSIGNED[f.width].unpack_from

        def differs(view: YaffView) -> bool:
            at = find(view)
            return at >= 0 and unpack(view._data_, at)[0] != 0

        return differs
    target = find_target(mp, f)

    def filled(view: YaffView) -> bool:
        at = target(view)
        return at >= 0 and read_u32(view._data_, at)[0] != 0

    return filled


def scalar_reader(kind: str, default_bits: int) -> Reader:
    """A function (data, position of a slot) -> value; the slot holds the value XOR ``default_bits``."""
    code = SCALAR_CODE[kind]
    if kind == "bool":
        return lambda data, at: data[at] != default_bits
    if not default_bits:
        unpack = struct.Struct("<" + code).unpack_from
        return lambda data, at: unpack(data, at)[0]
    stored = _UNSIGNED[SCALAR_WIDTH[kind]]
    read_bits, pack, value_of = stored.unpack_from, stored.pack, struct.Struct("<" + code).unpack
    return lambda data, at: value_of(pack(read_bits(data, at)[0] ^ default_bits))[0]


def scalar(mp: MessagePlan, f: FieldPlan) -> Getter:
    """The getter of a singular number, bool or enum."""
    rule = SlotRule(mp, f)
    above, start, default = rule.above, rule.start, f.default
    if rule.holes is None and not f.default_bits and not f.declared_bits:
        sparse = find_sparse(f)
        unpack = struct.Struct("<" + SCALAR_CODE[f.kind]).unpack_from
        sparse_above, back = f.id << 2 | 3, f.id

        def get(view: YaffView) -> Any:
            head = view._head_
            if head > above:
                return unpack(view._data_, view._pos_ + start)[0]
            if sparse_above < head < FLAT:
                data = view._data_
                entry = data[view._meta_ - back]
                if entry:
                    return unpack(data, view._pos_ + entry)[0]
            return default

        def get_wide(view: YaffView) -> Any:
            if view._head_ > above:
                return unpack(view._data_, view._pos_ + start)[0]
            at = sparse(view)
            return default if at < 0 else unpack(view._data_, at)[0]

        return get if f.id < 32 else get_wide

    find = find_slot(mp, f)
    plain = scalar_reader(f.kind, 0)
    xored = scalar_reader(f.kind, f.default_bits)
    # The slot of an absent field says YaFF's default, which isn't always the declared one.
    present = is_present(mp, f) if f.default_bits != f.declared_bits else None

    def get_general(view: YaffView) -> Any:
        at = find(view)
        if at < 0 or (present is not None and not present(view)):
            return default
        return xored(view._data_, at) if view._head_ & FLAT else plain(view._data_, at)

    return get_general


def read_text(data: Data, at: int) -> str:
    """The text at ``at``; raises UnicodeDecodeError if it isn't UTF-8."""
    start = at + 4
    return str(data[start : start + read_u32(data, at)[0]], "utf-8")


def read_bytes(data: Data, at: int) -> bytes:
    start = at + 4
    return bytes(data[start : start + read_u32(data, at)[0]])


def text(mp: MessagePlan, f: FieldPlan) -> Getter:
    """The getter of a singular string or bytes field."""
    target = find_target(mp, f)
    default = f.default
    read: Reader = read_text if f.kind == "string" else read_bytes

    def get(view: YaffView) -> Any:
        at = target(view)
        return default if at < 0 else read(view._data_, at)

    return get


# The header bits of a flat message with sizes and presence.
_PRESENCE_BITS = FLAT | SIZED | EXPLICIT


def any_present(mp: MessagePlan, fields: list[FieldPlan]) -> Test:
    """Whether any of some fields is present: in few steps, since oneofs of many members are common."""
    tests = tuple(is_present(mp, f) for f in fields)
    # With presence bits: the header above which a scalar has one, its byte counted back from the message, and
    # its mask.
    sized = [(f.id, 3 * (f.id - 1)) for f in fields if f.is_scalar]
    others = tuple(is_present(mp, f) for f in fields if f.out_of_line)
    bits = tuple((id << 2 | 0x8003, 1 + (bit >> 3), 1 << (bit & 7)) for id, bit in sized)
    # Without: all slots at once, if the message has all.
    rules = [SlotRule(mp, f) for f in fields]
    above = max((rule.above for rule in rules), default=-1)
    start = min((rule.start for rule in rules), default=0)
    in_place = bool(fields) and all(rule.holes is None for rule in rules)
    unpack = _slots(fields).unpack_from if in_place else None

    def present_any(view: YaffView) -> bool:
        head = view._head_
        if head & _PRESENCE_BITS == _PRESENCE_BITS:
            data, pos = view._data_, view._pos_
            for in_range, back, mask in bits:
                if head > in_range and data[pos - back] & mask:
                    return True
            for present in others:  # noqa: SIM110
                if present(view):
                    return True
            return False
        if unpack is not None and head > above and not head & EXPLICIT:
            return any(unpack(view._data_, view._pos_ + start))
        for present in tests:  # noqa: SIM110
            if present(view):
                return True
        return False

    return present_any


def _slots(fields: list[FieldPlan]) -> struct.Struct:
    """The slots of some fields as unsigned numbers, without those between them."""
    ordered = sorted(fields, key=lambda f: f.offset)
    codes = []
    end = ordered[0].offset
    for f in ordered:
        codes.append(f"{f.offset - end}x{_UNSIGNED[f.width].format[1:]}")
        end = f.offset + f.width
    return struct.Struct("<" + "".join(codes))


def in_oneof(get: Getter, blocked: Test, default: Callable[[], Any]) -> Getter:
    """A oneof member's getter: the default where ``blocked`` says that another member counts."""
    absent: Any = None

    def get_member(view: YaffView) -> Any:
        nonlocal absent
        if absent is None:
            absent = default()
        value = get(view)
        # The cheaper question first: mostly it's another member that is set.
        return absent if value is not absent and blocked(view) else value

    return get_member


def present_in_oneof(present: Test, blocked: Test) -> Test:
    return lambda view: present(view) and not blocked(view)
