"""Lays a schema out under YaFF: ids, slots, gaps, defaults as bits, fingerprints."""

from __future__ import annotations

import hashlib
import itertools
import math
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from yaffjit.errors import SchemaError, near_names
from yaffjit.plan.model import (
    MAX_ID,
    OFFSET_WIDTH,
    SCALAR_CODE,
    SCALAR_WIDTH,
    FieldPlan,
    MessagePlan,
    OneofPlan,
)
from yaffjit.schema.model import Default, FieldDef, MessageDef, MessageOption, SchemaDef

_DEFAULT_OPTION = MessageOption(slice_name="", layout="dynamic", ignore=False, reserved=())
# Enters each fingerprint, so that cached code of an older layout rule is never taken.
_PLAN_VERSION = 1


@dataclass(frozen=True, slots=True)
class _Slot:
    """A place in the id order: a live field, or a dead one that only takes room."""

    id: int
    width: int
    source: str  # for the error where two have one id
    field: FieldDef | None = None


class Plan:
    """The layouts of a schema's messages, each made when it is first asked for.

    ``memo`` holds what upper layers derive from a message once, under a key of theirs.
    """

    def __init__(self, schema: SchemaDef) -> None:
        self.schema = schema
        self.memo: dict[Any, Any] = {}
        self._messages: dict[str, MessagePlan] = {}
        self._fingerprints: dict[str, str] = {}
        self._faults: dict[str, str | None] = {}
        self._lock = threading.RLock()

    def __getitem__(self, full_name: str) -> MessagePlan:
        """The plan of a message.

        Raises:
            SchemaError: the schema has no such message, or YaFF can't hold it or one that it reaches.
        """
        plan = self._messages.get(full_name)
        if plan is not None:
            return plan
        if full_name not in self.schema.messages:
            raise SchemaError(
                f"the schema has no message {full_name!r}{near_names(full_name, self.schema.messages)}"
            )
        with self._lock:
            fault = self._fault_of_closure(full_name)
            if fault is not None:
                raise SchemaError(f"YaFF can't hold {fault}")
            return self._laid_out(full_name)

    def fault(self, full_name: str) -> str | None:
        """Why YaFF can't hold a message as the root of a buffer, or None if it can."""
        with self._lock:
            fault = self._fault_of_closure(full_name)
            if fault is None and _is_empty_fixed(self._laid_out(full_name)):
                return f"{full_name} as a root message: it is FIXED and has no fields"
            return fault

    def fingerprint(self, full_name: str) -> str:
        """A content hash (32 hex digits) of a message and all that it reaches: names, slots, defaults."""
        known = self._fingerprints.get(full_name)
        if known is None:
            reached = sorted(self._reached(full_name))
            parts = [f"{_PLAN_VERSION} {full_name}"]
            enums: set[str] = set()
            for name in reached:
                message = self[name]
                parts.append(repr(message))
                enums.update(f.enum for f in message.fields if f.enum)
            for name in sorted(enums):
                enum = self.schema.enums[name]
                parts.append(repr((enum.full_name, enum.closed, enum.values)))
            digest = hashlib.blake2b("\n".join(parts).encode("utf-8", "surrogatepass"), digest_size=16)
            known = self._fingerprints[full_name] = digest.hexdigest()
        return known

    def _reached(self, full_name: str) -> set[str]:
        reached = {full_name}
        waiting = [full_name]
        while waiting:
            for f in self[waiting.pop()].fields:
                if f.message and f.message not in reached:
                    reached.add(f.message)
                    waiting.append(f.message)
        return reached

    def _laid_out(self, full_name: str) -> MessagePlan:
        """The plan of a message that has no fault of its own."""
        plan = self._messages.get(full_name)
        if plan is None:
            plan = self._messages[full_name] = self._lay_out(self.schema.messages[full_name])
        return plan

    # Which message and field options hold

    def _option(self, message: MessageDef) -> MessageOption | None:
        """The option entry that holds for a message, or None if the slice leaves the message out."""
        if message.is_map_entry:
            return MessageOption(slice_name="", layout="fixed", ignore=False, reserved=())
        entries = {entry.slice_name: entry for entry in message.options}
        if self.schema.slice:
            return entries.get(self.schema.slice)
        return entries.get("", _DEFAULT_OPTION)

    def _id(self, f: FieldDef) -> int | None:
        """The YaFF id of a field, or None if the slice leaves the field out."""
        entries = {entry.slice_name: entry for entry in f.options}
        entry = entries.get(self.schema.slice or "", entries.get(""))
        if entry is None:
            return None if self.schema.slice else f.number
        return entry.id or f.number

    def _without(self, message: MessageDef, f: FieldDef) -> str | None:
        """Why YaFF doesn't carry a declared field, or None if it does."""
        if message.is_map_entry:
            return None
        if f.deprecated and not self.schema.slice:
            return "deprecated"
        if self._id(f) is None:
            return f"not in slice {self.schema.slice!r}"
        target = f.type_name if f.kind in ("message", "group") else ""
        if f.is_map:
            value = self.schema.messages[f.type_name].fields[1]
            target = value.type_name if value.kind == "message" else ""
        if target:
            option = self._option(self.schema.messages[target])
            if option is None:
                return f"{target} isn't in slice {self.schema.slice!r}"
            if option.ignore:
                return f"{target} is ignored"
        return None

    # Slots

    def _slots(self, message: MessageDef, option: MessageOption) -> list[_Slot]:
        """Live and dead slots by ascending id."""
        slots = [
            _Slot(entry.id, _reserved_width(entry.kind, entry.repeated), "a typed reserve")
            for entry in option.reserved
            if entry.kind
        ]
        for f in message.fields:
            if self._without(message, f) is None:
                number = f.number if message.is_map_entry else self._id(f)
                assert number is not None
                slots.append(_Slot(number, _width(f), f"field {f.name}", f))
            elif f.deprecated and not self.schema.slice:
                slots.append(_Slot(f.number, _width(f), f"deprecated field {f.name}"))
        return sorted(slots, key=lambda slot: slot.id)

    def _lay_out(self, message: MessageDef) -> MessagePlan:
        option = self._option(message)
        assert option is not None
        slots = self._slots(message, option)
        widths = _widths(slots, option.layout)
        fields = []
        offset = 0
        for slot in slots:
            if slot.field is not None:
                holes = tuple(id for id in range(1, min(slot.id, len(widths))) if not widths[id - 1])
                fields.append(self._field(slot.field, slot, offset, holes))
            offset += slot.width
        live = {f.name: f for f in fields}
        return MessagePlan(
            full_name=message.full_name,
            layout=option.layout,
            fields=tuple(fields),
            oneofs=tuple(
                OneofPlan(oneof.name, _by_precedence([live[name] for name in oneof.fields if name in live]))
                for oneof in message.oneofs
            ),
            widths=widths,
            is_map_entry=message.is_map_entry,
            lost=tuple(
                (f.name, reason) for f in message.fields if (reason := self._without(message, f)) is not None
            ),
            plan=self,
        )

    def _field(self, f: FieldDef, slot: _Slot, offset: int, holes: tuple[int, ...]) -> FieldPlan:
        is_message = f.kind == "message"
        inlined = f.repeated and is_message and self._is_fixed(f.type_name)
        if not f.repeated:
            element_width = 0
        elif inlined:
            element_width = self._fixed_limit(f.type_name)
        else:
            element_width = SCALAR_WIDTH.get(f.kind, OFFSET_WIDTH)
        scalar = not f.repeated and f.kind in SCALAR_WIDTH
        return FieldPlan(
            name=f.name,
            number=f.number,
            id=slot.id,
            kind=f.kind,
            repeated=f.repeated,
            is_map=f.is_map,
            message=f.type_name if is_message else "",
            enum=f.type_name if f.kind == "enum" else "",
            explicit=f.explicit,
            oneof=f.oneof,
            default=f.default,
            default_bits=_bits(f.kind, _rounded(f)) if scalar and f.has_default else 0,
            declared_bits=_bits(f.kind, f.default) if scalar else 0,
            width=slot.width,
            offset=offset,
            holes=holes,
            element_width=element_width,
            inlined=inlined,
            utf8=f.utf8,
            json_name=f.json_name,
        )

    def _is_fixed(self, full_name: str) -> bool:
        option = self._option(self.schema.messages[full_name])
        return option is not None and option.layout == "fixed"

    def _fixed_limit(self, full_name: str) -> int:
        message = self.schema.messages[full_name]
        option = self._option(message)
        assert option is not None
        return sum(slot.width for slot in self._slots(message, option))

    # What YaFF can't hold

    def _fault_of_closure(self, full_name: str) -> str | None:
        """The first fault among a message and all that it reaches, breadth first."""
        if full_name in self._faults:
            return self._faults[full_name]
        routes = {full_name: full_name}
        waiting = [full_name]
        fault = None
        while waiting and fault is None:
            name = waiting.pop(0)
            message = self.schema.messages[name]
            reason = next(self._own_faults(message), None)
            if reason is not None:
                fault = f"{routes[name]}: {reason}"
            for f in message.fields:
                if f.kind == "message" and f.type_name not in routes and self._without(message, f) is None:
                    routes[f.type_name] = f"{routes[name]}, field {f.name}: {f.type_name}"
                    waiting.append(f.type_name)
        self._faults[full_name] = fault
        return fault

    def _own_faults(self, message: MessageDef) -> Iterator[str]:
        tags = [entry.slice_name for entry in message.options]
        for tag in tags:
            if tags.count(tag) > 1:
                yield f"two (yaff.proto.message) entries have the slice name {tag!r}"
        option = self._option(message)
        if option is None:
            yield f"it isn't in slice {self.schema.slice!r}"
            return
        if option.ignore:
            yield "it is ignored by its (yaff.proto.message) option"
        if option.layout == "unknown":
            yield "its layout is LAYOUT_UNKNOWN"
        for f in message.fields:
            yield from self._field_faults(message, f)
        slots = self._slots(message, option)
        for lower, upper in itertools.pairwise(slots):
            if lower.id == upper.id:
                yield f"{lower.source} and {upper.source} have the same id {lower.id}"
        if option.layout in ("fixed", "flat"):
            present = {slot.id for slot in slots}
            hole = next((id for id in range(1, len(slots) + 1) if id not in present), None)
            if hole is not None:
                yield (
                    f"its layout is {option.layout.upper()} but no field has id {hole}: "
                    "reserve it with a type, or renumber"
                )
        if option.layout == "fixed":
            for oneof in message.oneofs:
                yield f"oneof {oneof.name} is in a FIXED message"
        else:
            for slot in slots:
                if slot.field is not None and slot.id > MAX_ID:
                    yield f"field {slot.field.name} has id {slot.id}, the highest is {MAX_ID}"

    def _field_faults(self, message: MessageDef, f: FieldDef) -> Iterator[str]:
        tags = [entry.slice_name for entry in f.options]
        for tag in tags:
            if tags.count(tag) > 1:
                yield f"field {f.name} has two (yaff.proto.field) entries with the slice name {tag!r}"
        if self._without(message, f) is not None:
            return
        if f.kind == "group":
            yield f"field {f.name} is a group"
        elif f.kind == "message" and f.repeated and self._is_fixed(f.type_name):
            target = self.schema.messages[f.type_name]
            option = self._option(target)
            if option is not None and not self._slots(target, option):
                yield f"field {f.name} is an array of {f.type_name}, which is FIXED and has no fields"


def _is_empty_fixed(message: MessagePlan) -> bool:
    return message.layout == "fixed" and not message.widths


def _width(f: FieldDef) -> int:
    return OFFSET_WIDTH if f.repeated else SCALAR_WIDTH.get(f.kind, OFFSET_WIDTH)


def _reserved_width(kind: str, repeated: bool) -> int:
    return OFFSET_WIDTH if repeated else SCALAR_WIDTH.get(kind, OFFSET_WIDTH)


def _widths(slots: list[_Slot], layout: str) -> tuple[int, ...]:
    """Slot widths by id from 1, 0 where there is a hole.

    A dead slot above the highest id that can be written counts only as the hole below it.
    """
    highest = max((slot.id for slot in slots), default=0)
    if layout != "fixed":
        highest = min(highest, MAX_ID + 1)
    widths = [0] * highest
    for slot in slots:
        if slot.id <= highest:
            widths[slot.id - 1] = slot.width
    return tuple(widths)


def _by_precedence(fields: list[FieldPlan]) -> tuple[str, ...]:
    return tuple(f.name for f in sorted(fields, key=lambda f: (f.out_of_line, f.id), reverse=True))


def _rounded(f: FieldDef) -> Default:
    """YaFF's default of a field: floats pass through six decimals, as C++ std::to_string prints them."""
    if f.kind in ("float", "double") and isinstance(f.default, float) and math.isfinite(f.default):
        return float(f"{f.default:f}")
    return f.default


def _bits(kind: str, value: Default) -> int:
    """The stored bits of a scalar; NaN is the canonical quiet one."""
    if kind in ("float", "double") and isinstance(value, float) and math.isnan(value):
        return 0x7FC00000 if kind == "float" else 0x7FF8000000000000
    return int.from_bytes(struct.pack("<" + SCALAR_CODE[kind], value), "little")
