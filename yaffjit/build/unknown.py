"""Counts what a protobuf message holds that its schema doesn't name: YaFF doesn't carry it."""

from __future__ import annotations

from collections import Counter
from typing import Any


class UnknownFields:
    """Counts unknown fields and extensions, in nested messages too.

    protobuf's methods are called by the class, because fields may have their names.

    Attributes:
        counts: occurrences by ``"full.name of message #field number"``.
        total: all occurrences.
        rows: messages that had any.
    """

    def __init__(self, message_class: Any) -> None:
        self.counts: Counter[str] = Counter()
        self.rows = 0
        self._class = message_class
        self._extendable = _reaches_extendable(message_class.DESCRIPTOR)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def sorted(self) -> list[tuple[str, int]]:
        """The counts by message and field number."""

        def place(item: tuple[str, int]) -> tuple[str, int]:
            message, _, number = item[0].rpartition(" #")
            return message, int(number)

        return sorted(self.counts.items(), key=place)

    def count(self, message: Any) -> None:
        """Counts in a message of the class, which stays as it is."""
        if self._extendable or self._has_unknown(message):
            before = self.total
            self._walk(message)
            self.rows += self.total != before

    def _has_unknown(self, message: Any) -> bool:
        # Much faster than a walk in Python: protobuf discards them at all depths, and the size tells.
        probe = self._class()
        self._class.CopyFrom(probe, message)
        self._class.DiscardUnknownFields(probe)
        return bool(self._class.ByteSize(probe) != self._class.ByteSize(message))

    def _walk(self, message: Any) -> None:
        from google.protobuf.unknown_fields import UnknownFieldSet

        name = type(message).DESCRIPTOR.full_name
        for unknown in UnknownFieldSet(message):
            self.counts[f"{name} #{unknown.field_number}"] += 1
        for field, value in type(message).ListFields(message):
            if field.is_extension:
                self.counts[f"{name} #{field.number}"] += 1
            elif field.message_type is not None:
                for child in _messages(field, value):
                    self._walk(child)


def _messages(field: Any, value: Any) -> Any:
    if field.message_type.GetOptions().map_entry:
        return value.values() if field.message_type.fields_by_name["value"].message_type is not None else ()
    return value if hasattr(value, "append") else (value,)


def _reaches_extendable(descriptor: Any) -> bool:
    seen: set[str] = set()
    waiting = [descriptor]
    while waiting:
        message = waiting.pop()
        if message.full_name in seen:
            continue
        if message.is_extendable:
            return True
        seen.add(message.full_name)
        waiting += [field.message_type for field in message.fields if field.message_type is not None]
    return False
