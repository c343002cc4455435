"""What YaFF carries of a message: what reading must give back for what was written."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from .layout import FIXED, LiveField, lay_out


def carried(message: Message, slice: str | None = None) -> Message:
    """A copy of ``message`` without what the format can't hold.

    That's: fields that are deprecated, ignored or out of the slice; unknown fields and extensions; and, in
    fixed messages, the presence of an explicit scalar that equals its default.
    """
    copy = type(message)()
    copy.CopyFrom(message)
    strip(copy, slice)
    return copy


def strip(message: Message, slice: str | None) -> None:
    message.DiscardUnknownFields()
    layout = lay_out(message.DESCRIPTOR, slice)
    for descriptor, _ in message.ListFields():
        if descriptor.is_extension:
            message.ClearExtension(descriptor)
    for lost in layout.lost:
        message.ClearField(lost.name)
    for field in layout.live:
        may_vanish = layout.kind == FIXED and field.is_scalar and field.explicit
        if may_vanish and not any(field.pack_xor(getattr(message, field.name))):
            message.ClearField(field.name)
        for child in messages_in(field, message):
            strip(child, slice)


def messages_in(field: LiveField, message: Message) -> list[Any]:
    held = getattr(message, field.name)
    if field.is_map:
        has_messages = field.descriptor.message_type.fields_by_name["value"].message_type is not None
        return [held[key] for key in held] if has_messages else []
    if not field.is_message:
        return []
    if field.is_array:
        return list(held)
    return [held] if message.HasField(field.name) else []
