"""Protobuf messages as universal documents and back, by protobuf's JSON mapping.

What JSON has no numbers for, documents have: 64-bit integers are integers, and floats may be NaN or infinite.
"""

from __future__ import annotations

import base64
import math
from typing import Any, Literal

import numpy as np

from yaffjit.errors import DecodeError, EncodeError
from yaffjit.universal.codec import dumps, loads

_MOST = 2**63 - 1  # of an integer in a document; above it's text, as in JSON
_WRAPPED = ("google.protobuf.Int64Value", "google.protobuf.UInt64Value")


def to_universal(
    pool: Any,
    full_name: str,
    message: Any,
    enums: Literal["names", "numbers"] = "names",
    json_names: bool = False,
    **options: Any,
) -> bytes:
    """A document of a message, by protobuf's JSON mapping; set fields only.

    64-bit integers are integers (text above 2**63 - 1), floats are floats, bytes base64.

    Args:
        pool: of the types of ``Any``; ``MessageType.to_universal`` gives it and the name.
        full_name: of the message's type.
        message: a view, or a protobuf message.
        enums: "names", where numbers have one; or "numbers".
        json_names: keys are fields' JSON names instead of their own.
        options: of `yaffjit.universal.dumps`.

    Raises:
        EncodeError: a well-known type's content has no JSON form, or it's null, without ``null=True``.
        TypeError: the message is of another type.
    """
    from yaffjit.view import View

    if isinstance(message, View):
        message = View.to_message(message)
    found = type(message).DESCRIPTOR.full_name
    if found != full_name:
        raise TypeError(f"a message of {full_name} is needed, not of {found}")
    if enums not in ("names", "numbers"):
        raise ValueError(f"enums is {enums!r} ('names', 'numbers')")
    return dumps(_Printer(pool, enums == "names", json_names).object(message), **options)


class _Printer:
    def __init__(self, pool: Any, names: bool, json_names: bool) -> None:
        self._pool = pool
        self._names = names
        self._json_names = json_names

    def object(self, message: Any) -> Any:
        """What stands for a message: a dict, or what JSON has for a well-known type."""
        descriptor = type(message).DESCRIPTOR
        if descriptor.full_name in _WRAPPED:
            return self._integer(message.value)
        if descriptor.file.package == "google.protobuf":
            return self._well_known(message)
        made: dict[str, Any] = {}
        for field, value in type(message).ListFields(message):
            made[field.json_name if self._json_names else field.name] = self._value(field, value)
        return made

    def _well_known(self, message: Any) -> Any:
        from google.protobuf import json_format

        try:
            return json_format.MessageToDict(
                message,
                preserving_proto_field_name=not self._json_names,
                use_integers_for_enums=not self._names,
                descriptor_pool=self._pool,
            )
        except (json_format.Error, ValueError, TypeError) as error:
            raise EncodeError(f"{type(message).DESCRIPTOR.full_name} has no JSON form: {error}") from None

    def _value(self, field: Any, value: Any) -> Any:
        is_message = field.message_type is not None
        if is_message and field.message_type.GetOptions().map_entry:
            held = field.message_type.fields_by_name["value"]
            return {_key(key): self._one(held, one) for key, one in value.items()}
        # A message of ListValue has the methods of a list.
        if isinstance(value, str | bytes) or hasattr(value, "DESCRIPTOR") or not hasattr(value, "extend"):
            return self._one(field, value)
        return [self._one(field, one) for one in value]

    def _one(self, field: Any, value: Any) -> Any:
        if field.message_type is not None:
            return self.object(value)
        if field.enum_type is not None:
            if field.enum_type.full_name == "google.protobuf.NullValue":
                return None
            known = field.enum_type.values_by_number.get(value) if self._names else None
            return value if known is None else known.name
        if isinstance(value, bytes):
            return base64.b64encode(value).decode()
        if isinstance(value, float) and field.type == field.TYPE_FLOAT:
            return np.float32(value)
        return self._integer(value) if type(value) is int else value

    def _integer(self, value: int) -> Any:
        return value if value <= _MOST else str(value)


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def from_universal(pool: Any, message: Any, buf: Any, ignore_unknown: bool = False, **options: Any) -> Any:
    """Fill a protobuf message from a document, by protobuf's JSON mapping.

    Args:
        pool, message: ``MessageType.from_universal`` gives them.
        buf: bytes or any contiguous buffer.
        ignore_unknown: pass over keys that aren't fields, which are an error otherwise.
        options: of `yaffjit.universal.loads`.

    Raises:
        DecodeError: it isn't a document (`yaffjit.universal.DocumentError`), or not one of this type.
    """
    from_object(pool, message, loads(buf, **options), ignore_unknown)
    return message


def from_object(pool: Any, message: Any, value: Any, ignore_unknown: bool) -> None:
    """Fill a protobuf message from what `loads` gives.

    Raises:
        DecodeError: it isn't what the message's type has; names the field.
    """
    from google.protobuf import json_format

    name = type(message).DESCRIPTOR.full_name
    try:
        json_format.ParseDict(
            _finite(value), message, ignore_unknown_fields=ignore_unknown, descriptor_pool=pool
        )
    except (json_format.Error, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DecodeError(f"the document isn't a {name}: {error}") from None


def _finite(value: Any) -> Any:
    """A value with JSON's words in place of floats that JSON hasn't."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: _finite(held) for key, held in value.items()}
    return [_finite(held) for held in value] if isinstance(value, list) else value
