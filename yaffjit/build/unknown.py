"""Counts what a protobuf message holds that YaFF doesn't carry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any


class UnknownFields:
    """Counts unknown fields, extensions and fields that are lost, in nested messages too.

    protobuf's methods are called by the class, because fields may have their names.

    Args:
        lost: names of declared fields that YaFF doesn't carry, by full name of their message.

    Attributes:
        counts: occurrences by ``"full.name of message #field number"``.
    """

    def __init__(self, message_class: Any, lost: Mapping[str, frozenset[str]]) -> None:
        self.counts: Counter[str] = Counter()
        self._class = message_class
        self._lost = lost
        self._always = bool(lost) or _reaches_extendable(message_class.DESCRIPTOR)

    def count(self, message: Any) -> None:
        """Counts in a message of the class, which stays as it is."""
        if self._always or self._has_unknown(message):
            self._walk(message)

    def _has_unknown(self, message: Any) -> bool:
        # Much faster than a walk in Python: protobuf discards them at all depths, and the size tells.
        probe = self._class()
        self._class.CopyFrom(probe, message)
        self._class.DiscardUnknownFields(probe)
        # (Not by ByteSize, which crashes on some messages that lack required fields: upb, 7.36.)
        serialize = self._class.SerializePartialToString
        return len(serialize(probe)) != len(serialize(message))

    def _walk(self, message: Any) -> None:
        from google.protobuf.unknown_fields import UnknownFieldSet

        name = type(message).DESCRIPTOR.full_name
        for unknown in UnknownFieldSet(message):
            self.counts[f"{name} #{unknown.field_number}"] += 1
        lost = self._lost.get(name, ())
        for field, value in type(message).ListFields(message):
            if field.is_extension or field.name in lost:
                # As often as it's on the wire.
                self.counts[f"{name} #{field.number}"] += 1 if field.is_packed else len(_values(value))
            elif field.message_type is not None:
                for child in _messages(field, value):
                    self._walk(child)


def _values(value: Any) -> Any:
    return value if hasattr(value, "append") or hasattr(value, "items") else (value,)


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
