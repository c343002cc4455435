"""Which of YaFF's options hold, which fields are live, and which slots a message has by them."""

from __future__ import annotations

from dataclasses import dataclass

from yaffjit.plan.model import OFFSET_WIDTH, SCALAR_WIDTH
from yaffjit.schema.model import FieldDef, MessageDef, MessageOption, SchemaDef

_DEFAULT_OPTION = MessageOption(slice_name="", layout="dynamic", ignore=False, reserved=())


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in the id order: a live field, or a dead one that only takes room."""

    id: int
    width: int
    source: str  # for the error where two have one id
    field: FieldDef | None = None


class Declared:
    """A schema as YaFF sees it: read by one slice, or by the untagged options."""

    def __init__(self, schema: SchemaDef) -> None:
        self.schema = schema

    def option(self, message: MessageDef) -> MessageOption | None:
        """The option entry that holds for a message, or None if the slice leaves the message out."""
        if message.is_map_entry:
            return MessageOption(slice_name="", layout="fixed", ignore=False, reserved=())
        entries = {entry.slice_name: entry for entry in message.options}
        if self.schema.slice:
            return entries.get(self.schema.slice)
        return entries.get("", _DEFAULT_OPTION)

    def id(self, f: FieldDef) -> int | None:
        """The YaFF id of a field, or None if the slice leaves the field out."""
        entries = {entry.slice_name: entry for entry in f.options}
        entry = entries.get(self.schema.slice or "", entries.get(""))
        if entry is None:
            return None if self.schema.slice else f.number
        return entry.id or f.number

    def without(self, message: MessageDef, f: FieldDef) -> str | None:
        """Why YaFF doesn't carry a declared field, or None if it does."""
        if message.is_map_entry:
            return None
        if f.deprecated and not self.schema.slice:
            return "deprecated"
        if self.id(f) is None:
            return f"not in slice {self.schema.slice!r}"
        target = f.type_name if f.kind in ("message", "group") else ""
        if f.is_map:
            value = self.schema.messages[f.type_name].fields[1]
            target = value.type_name if value.kind == "message" else ""
        if target:
            option = self.option(self.schema.messages[target])
            if option is None:
                return f"{target} isn't in slice {self.schema.slice!r}"
            if option.ignore:
                return f"{target} is ignored"
        return None

    def slots(self, message: MessageDef, option: MessageOption) -> list[Slot]:
        """Live and dead slots by ascending id."""
        slots = [
            Slot(entry.id, _reserved_width(entry.kind, entry.repeated), "a typed reserve")
            for entry in option.reserved
            if entry.kind
        ]
        for f in message.fields:
            if self.without(message, f) is None:
                number = f.number if message.is_map_entry else self.id(f)
                assert number is not None
                slots.append(Slot(number, _width(f), f"field {f.name}", f))
            elif f.deprecated and not self.schema.slice:
                slots.append(Slot(f.number, _width(f), f"deprecated field {f.name}"))
        return sorted(slots, key=lambda slot: slot.id)

    def is_fixed(self, full_name: str) -> bool:
        option = self.option(self.schema.messages[full_name])
        return option is not None and option.layout == "fixed"

    def fixed_limit(self, full_name: str) -> int:
        message = self.schema.messages[full_name]
        option = self.option(message)
        assert option is not None
        return sum(slot.width for slot in self.slots(message, option))


def _width(f: FieldDef) -> int:
    return OFFSET_WIDTH if f.repeated else SCALAR_WIDTH.get(f.kind, OFFSET_WIDTH)


def _reserved_width(kind: str, repeated: bool) -> int:
    return OFFSET_WIDTH if repeated else SCALAR_WIDTH.get(kind, OFFSET_WIDTH)
