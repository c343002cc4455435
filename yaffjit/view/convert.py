"""Views and protobuf messages as plain Python values and as JSON."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from yaffjit.errors import JsonError
from yaffjit.view.base import View
from yaffjit.view.unknown import unknown_by_number


def to_dict(message: Any, unknown_fields: bool = False) -> dict[Any, Any]:
    """The set fields of a view or a protobuf message, by their names in the `.proto`.

    Enums are numbers, bytes are `bytes`, messages and maps are dicts, repeated fields are lists: what
    ``encode`` takes. Raises UnicodeDecodeError where text of a view isn't UTF-8; a message has bytes there,
    and so has a view of protobuf bytes.

    Args:
        message: the view or message.
        unknown_fields: also those that its type doesn't have, in nested messages too: under their number, an
            int, the list of their values, which are unsigned numbers, bytes, and of groups such dicts.
    """
    from google.protobuf.message import Message

    def fields_of(message: Any) -> dict[Any, Any]:
        # By the class: a field may have the name of the method.
        listed = View.ListFields(message) if isinstance(message, View) else type(message).ListFields(message)
        found = {field.name: plain(value) for field, value in listed}
        return {**found, **unknown_by_number(message)} if unknown_fields else found

    def plain(value: Any) -> Any:
        # Messages first: protobuf calls some of its messages mappings and sequences.
        if isinstance(value, (View, Message)):
            return fields_of(value)
        if isinstance(value, Mapping):
            return {key: plain(held) for key, held in value.items()}
        if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
            return [plain(held) for held in value]
        return value

    return fields_of(message)


def to_json(message: Any, **options: Any) -> str:
    """protobuf's canonical JSON of a view or a message.

    ``options`` are those of `google.protobuf.json_format.MessageToJson`, such as ``indent`` or
    ``preserving_proto_field_name``.

    Raises:
        JsonError: the content has no JSON form: a Timestamp, Duration or FieldMask that isn't valid, an Any
            of an unknown type, NaN in a Value, text of a view that isn't UTF-8.
        DecodeError: a view's content can't be a protobuf message.
    """
    from google.protobuf import json_format

    view = message if isinstance(message, View) else None
    if view is not None:
        options.setdefault("descriptor_pool", view._schema_.pool)
        message = View.to_message(view)
    # What is wrong with the options isn't wrong with the message.
    inspect.signature(json_format.MessageToJson).bind(message, **options)
    name = type(message).DESCRIPTOR.full_name
    try:
        text = _json(message, options)
        # protobuf prints text that isn't UTF-8 as Python's bytes.
        if view is not None and ("\"b'" in text or '"b\\"' in text):
            _decode_text(message)
    except UnicodeDecodeError as error:
        raise JsonError(f"{name} has no JSON form: its text isn't UTF-8 ({error})") from None
    except _json_errors() as error:
        raise JsonError(f"{name} has no JSON form: {error}") from None
    return text


def _decode_text(message: Any) -> None:
    """Raises UnicodeDecodeError where a string field of a message has bytes, or is in a map that has."""
    from google.protobuf.message import Message

    for field, value in type(message).ListFields(message):
        held: Any = value if isinstance(value, (Sequence, Mapping)) and field.is_repeated else [value]
        if isinstance(held, Mapping):
            held = [one for pair in held.items() for one in pair]
        for one in held:
            if isinstance(one, Message):
                _decode_text(one)
            elif isinstance(one, bytes) and field.type == field.TYPE_STRING:
                one.decode()
            elif isinstance(one, bytes) and field.message_type is not None:
                value_field = field.message_type.fields_by_name["value"]
                if value_field.type == value_field.TYPE_STRING:
                    one.decode()


def _json(message: Any, options: dict[str, Any]) -> str:
    from google.protobuf import json_format

    try:
        text: str = json_format.MessageToJson(message, **options)
    except (AttributeError, TypeError):
        # Perhaps only because a field has the name of a method that the printer calls.
        text = json_format.MessageToJson(_ByClass(message), **options)
    return text


def _json_errors() -> tuple[type[Exception], ...]:
    from google.protobuf import json_format
    from google.protobuf.message import DecodeError

    return json_format.Error, DecodeError, ValueError, TypeError, AttributeError


class _ByClass:
    """A message as protobuf's JSON printer reads it, whatever its fields are called."""

    def __init__(self, message: Any) -> None:
        self.DESCRIPTOR = type(message).DESCRIPTOR
        self._message = message

    def ListFields(self) -> list[tuple[Any, Any]]:
        message = self._message
        return [(field, _by_class(value)) for field, value in type(message).ListFields(message)]


def _by_class(value: Any) -> Any:
    from google.protobuf.message import Message

    if isinstance(value, Message):
        # The printer knows protobuf's own types, whose fields have other names.
        own = type(value).DESCRIPTOR.full_name.startswith("google.protobuf.")
        return value if own else _ByClass(value)
    if isinstance(value, Mapping):
        return {key: _by_class(held) for key, held in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [_by_class(held) for held in value]
    return value
