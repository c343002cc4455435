"""A schema as a comparison looks at it: what is declared, YaFF's slots, the form on the wire."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from yaffjit.plan.declared import Declared
from yaffjit.plan.faults import Faults
from yaffjit.schema.model import FieldDef, MessageDef, SchemaDef

_GROUP = 10  # FieldDescriptor.TYPE_GROUP


@dataclass(frozen=True, slots=True)
class Reserved:
    """Numbers and names that a message or enum sets aside; ``ranges`` as (first, last)."""

    ranges: tuple[tuple[int, int], ...]
    names: frozenset[str]

    def __contains__(self, number: int) -> bool:
        return any(first <= number <= last for first, last in self.ranges)


@dataclass(frozen=True, slots=True)
class Laid:
    """What YaFF makes of a message.

    Attributes:
        layout: "fixed", "flat", "sparse", "dynamic", "unknown"; "" where YaFF doesn't carry the message.
        widths: bytes of each slot by id, dead ones too.
        gapped: some id up to the highest has no slot.
        fault: why YaFF can't hold it, of its own or because of what it reaches; else None.
    """

    layout: str
    widths: dict[int, int]
    gapped: bool
    fault: str | None


class Facts:
    """One schema, read by the slice that it was loaded with."""

    def __init__(self, schema: SchemaDef) -> None:
        self.schema = schema
        self.declared = Declared(schema)
        self._faults = Faults(self.declared)
        self.laid = cache(self._laid)
        self.reserved = cache(self._reserved)

    def _laid(self, full_name: str) -> Laid:
        message = self.schema.messages[full_name]
        option = self.declared.option(message)
        if option is None or option.ignore:
            return Laid("", {}, False, self._faults.of(full_name))
        slots = self.declared.slots(message, option)
        widths = {slot.id: slot.width for slot in slots}
        gapped = set(widths) != set(range(1, len(widths) + 1))
        return Laid(option.layout, widths, gapped, self._faults.of(full_name))

    def without(self, message: MessageDef, f: FieldDef) -> str | None:
        """Why YaFF doesn't carry a field, or None if it does."""
        return self.declared.without(message, f)

    def id(self, message: MessageDef, f: FieldDef) -> int | None:
        """The YaFF id of a field that YaFF carries, else None."""
        return None if self.without(message, f) is not None else self.declared.id(f)

    def closed(self, enum_name: str) -> bool:
        return self.schema.enums[enum_name].closed

    def packed(self, message: MessageDef, f: FieldDef) -> bool:
        return bool(self._descriptor(message, f).is_packed)

    def delimited(self, message: MessageDef, f: FieldDef) -> bool:
        """The wire has the field as a group."""
        return bool(self._descriptor(message, f).type == _GROUP)

    def _descriptor(self, message: MessageDef, f: FieldDef) -> Any:
        return self.schema.pool.FindMessageTypeByName(message.full_name).fields_by_name[f.name]

    def _reserved(self, full_name: str) -> Reserved:
        """What a message or an enum reserves."""
        from google.protobuf import descriptor_pb2

        proto: Any
        if full_name in self.schema.enums:
            proto = descriptor_pb2.EnumDescriptorProto()
            self.schema.pool.FindEnumTypeByName(full_name).CopyToProto(proto)
            past = 0  # enums name the last number, messages the one after it
        else:
            proto = descriptor_pb2.DescriptorProto()
            self.schema.pool.FindMessageTypeByName(full_name).CopyToProto(proto)
            past = 1
        ranges = tuple((found.start, found.end - past) for found in proto.reserved_range)
        return Reserved(ranges, frozenset(proto.reserved_name))

    def reached(self, root: str) -> Iterator[str]:
        """A message and all message types that its fields lead to, map entries too."""
        seen = {root}
        waiting = [root]
        while waiting:
            name = waiting.pop()
            yield name
            for f in self.schema.messages[name].fields:
                if f.kind in ("message", "group") and f.type_name not in seen:
                    seen.add(f.type_name)
                    waiting.append(f.type_name)
