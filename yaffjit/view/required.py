"""Which required fields of a protobuf message aren't set, as protobuf names them.

protobuf's own search (upb's, of 7.36 and before) crashes the interpreter on some messages: where one that
lacks a field also has a map of scalars. So what views offer of it doesn't go there.
"""

from __future__ import annotations

from typing import Any


def missing_required(message: Any) -> list[str]:
    """The paths of required fields that aren't set: those of the message itself first."""
    found: list[str] = []
    hidden: list[str] = []
    if not type(message).IsInitialized(message):
        _find(message, "", found, hidden)
    return found or hidden


def check_required(message: Any) -> None:
    """Raise as protobuf does where a required field isn't set; protobuf itself may crash then."""
    missing = missing_required(message)
    if missing:
        from google.protobuf.message import EncodeError

        name = type(message).DESCRIPTOR.full_name
        raise EncodeError(f"Message {name} is missing required fields: {','.join(missing)}")


def _find(message: Any, prefix: str, found: list[str], hidden: list[str]) -> None:
    message_class = type(message)
    for field in message_class.DESCRIPTOR.fields:
        if field.is_required and not message_class.HasField(message, field.name):
            found.append(f"{prefix}{field.name}")
    for field, value in message_class.ListFields(message):
        if field.message_type is None:
            continue
        name = f"{prefix}({field.full_name})" if field.is_extension else f"{prefix}{field.name}"
        if field.is_repeated and field.message_type.GetOptions().map_entry:
            if field.message_type.fields_by_name["value"].message_type is not None:
                for key in value:
                    path = f"{name}[{_shown_key(key)}]"
                    try:
                        held = value[key]
                    except UnicodeDecodeError:  # it has such keys, but gives no value of theirs
                        hidden.append(path)
                    else:
                        _find(held, f"{path}.", found, hidden)
        elif field.is_repeated:
            for i, held in enumerate(value):
                _find(held, f"{name}[{i}].", found, hidden)
        else:
            _find(value, f"{name}.", found, hidden)


def _shown_key(key: Any) -> str:
    if isinstance(key, bool):
        return str(key).lower()
    if isinstance(key, int):
        return str(key)
    text = key.decode(errors="replace") if isinstance(key, bytes) else key
    quoted = text.replace('"', '\\"')
    return f'"{quoted}"'
