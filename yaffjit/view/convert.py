"""Views and protobuf messages as plain Python values and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from yaffjit.view.base import View


def to_dict(message: Any) -> dict[str, Any]:
    """The set fields of a view or a protobuf message, by their names in the `.proto`.

    Enums are numbers, bytes are `bytes`, messages and maps are dicts, repeated fields are lists: what
    ``encode`` takes.
    """
    from google.protobuf.message import Message

    def fields_of(message: Any) -> dict[str, Any]:
        # By the class: a field may have the name of the method.
        listed = View.ListFields(message) if isinstance(message, View) else type(message).ListFields(message)
        return {field.name: plain(value) for field, value in listed}

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
    """
    from google.protobuf import json_format

    if isinstance(message, View):
        options.setdefault("descriptor_pool", message._plan_.plan.schema.pool)
        message = View.to_message(message)
    text: str = json_format.MessageToJson(message, **options)
    return text
