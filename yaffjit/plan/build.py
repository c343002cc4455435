"""Lays a schema out under YaFF: ids, slots, gaps, defaults as bits, fingerprints."""

from __future__ import annotations

import functools
import hashlib
import math
import struct
import sys
import threading
import weakref
from typing import Any

from yaffjit.errors import SchemaError, near_names
from yaffjit.forks import renew_in_forks
from yaffjit.plan.declared import Declared, Slot
from yaffjit.plan.faults import Faults
from yaffjit.plan.model import (
    MAX_ID,
    OFFSET_WIDTH,
    SCALAR_CODE,
    SCALAR_WIDTH,
    FieldPlan,
    MessagePlan,
    OneofPlan,
)
from yaffjit.schema.model import Default, FieldDef, MessageDef, SchemaDef

# Enters each fingerprint, so that cached code of an older layout rule is never taken.
_PLAN_VERSION = 1

# Plans that pickles name, by what is written in these: the descriptor set and the slice.
_pickled: weakref.WeakValueDictionary[tuple[bytes, str | None], Plan] = weakref.WeakValueDictionary()
_pickled_lock = threading.RLock()
renew_in_forks(sys.modules[__name__], "_pickled_lock", threading.RLock)


class Plan:
    """The layouts of a schema's messages, each made when it is first asked for.

    ``memo`` holds what upper layers derive from a message once, under a key of theirs.
    """

    def __init__(self, schema: SchemaDef) -> None:
        self.schema = schema
        self.memo: dict[Any, Any] = {}
        self._messages: dict[str, MessagePlan] = {}
        self._fingerprints: dict[str, str] = {}
        self._declared = Declared(schema)
        self._faults = Faults(self._declared)
        self._lock = threading.RLock()
        renew_in_forks(self, "_lock", threading.RLock)
        self._enums_in: dict[str, list[str]] = {}  # enums by the message that declares them
        for name in schema.enums:
            self._enums_in.setdefault(name.rpartition(".")[0], []).append(name)

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
            fault = self._faults.of(full_name)
            if fault is not None:
                raise SchemaError(f"YaFF can't hold {fault}")
            return self._laid_out(full_name)

    def fault(self, full_name: str) -> str | None:
        """Why YaFF can't hold a message as the root of a buffer, or None if it can."""
        with self._lock:
            fault = self._faults.of(full_name)
            if fault is None and _is_empty_fixed(self._laid_out(full_name)):
                return f"{full_name} as a root message: it is FIXED and has no fields"
            return fault

    def fingerprint(self, full_name: str) -> str:
        """A content hash (32 hex digits) of a message and all that it reaches: names, slots, defaults.

        Also the enums that are declared in these messages, and the numbers of fields that YaFF doesn't carry:
        a view has them as constants.
        """
        known = self._fingerprints.get(full_name)
        if known is None:
            reached = sorted(self._reached(full_name))
            parts = [f"{_PLAN_VERSION} {full_name}"]
            enums: set[str] = set()
            for name in reached:
                message = self[name]
                parts.append(repr(message))
                enums.update(f.enum for f in message.fields if f.enum)
                enums.update(self._enums_in.get(name, ()))
                declared: list[tuple[Any, ...]] = [
                    # Members of a oneof that YaFF doesn't carry clear the others in protobuf bytes.
                    (f.name, f.number, f.oneof, f.kind, f.type_name) if f.oneof else (f.name, f.number)
                    for f in self.schema.messages[name].fields
                ]
                # Of names that differ in case only, the last one declared has the constant.
                if message.lost or len({name.upper() for name, *_ in declared}) < len(declared):
                    parts.append(repr(declared))
                    members = [f for f in self.schema.messages[name].fields if f.oneof]
                    enums.update(f.type_name for f in members if f.kind == "enum")
            for name in sorted(enums):
                enum = self.schema.enums[name]
                parts.append(repr((enum.full_name, enum.closed, enum.values)))
            digest = hashlib.blake2b("\n".join(parts).encode("utf-8", "surrogatepass"), digest_size=16)
            known = self._fingerprints[full_name] = digest.hexdigest()
        return known

    def __reduce__(self) -> Any:
        with _pickled_lock:
            key = self.schema.descriptor_set, self.schema.slice
            _pickled.setdefault(key, self)
        return _plan_again, key

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

    def _lay_out(self, message: MessageDef) -> MessagePlan:
        option = self._declared.option(message)
        assert option is not None
        slots = self._declared.slots(message, option)
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
                (f.name, reason)
                for f in message.fields
                if (reason := self._declared.without(message, f)) is not None
            ),
            plan=self,
        )

    def _field(self, f: FieldDef, slot: Slot, offset: int, holes: tuple[int, ...]) -> FieldPlan:
        is_message = f.kind == "message"
        inlined = f.repeated and is_message and self._declared.is_fixed(f.type_name)
        if not f.repeated:
            element_width = 0
        elif inlined:
            element_width = self._declared.fixed_limit(f.type_name)
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
            default_bits=slot_default(f),
            declared_bits=_bits(f.kind, f.default) if scalar else 0,
            width=slot.width,
            offset=offset,
            holes=holes,
            element_width=element_width,
            inlined=inlined,
            utf8=f.utf8,
            json_name=f.json_name,
        )


def _plan_again(descriptor_set: bytes, slice: str | None) -> Plan:
    """The plan of a pickle: one object a process, whatever number of pickles name it."""
    with _pickled_lock:
        plan = _pickled.get((descriptor_set, slice))
        if plan is None:
            plan = _pickled[descriptor_set, slice] = _loaded(descriptor_set, slice)
        return plan


@functools.lru_cache(maxsize=64)  # keeps plans that a process needs again and again, but not at once
def _loaded(descriptor_set: bytes, slice: str | None) -> Plan:
    from yaffjit.schema import load

    return Plan(load(descriptor_set, slice=slice))


def _is_empty_fixed(message: MessagePlan) -> bool:
    return message.layout == "fixed" and not message.widths


def _widths(slots: list[Slot], layout: str) -> tuple[int, ...]:
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


def slot_default(f: FieldDef) -> int:
    """The bits that are XORed into a field's slot under flat and fixed; 0 for all but singular scalars."""
    scalar = not f.repeated and f.kind in SCALAR_WIDTH
    return _bits(f.kind, _rounded(f)) if scalar and f.has_default else 0


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
