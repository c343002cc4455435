"""Walks a view beside the protobuf message that it must equal, through the whole reading API."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

F = FieldDescriptor
INTEGER_LIKE = (F.CPPTYPE_INT32, F.CPPTYPE_INT64, F.CPPTYPE_UINT32, F.CPPTYPE_UINT64, F.CPPTYPE_ENUM)
PYTHON_TYPES = {
    F.CPPTYPE_BOOL: bool,
    F.CPPTYPE_FLOAT: float,
    F.CPPTYPE_DOUBLE: float,
    **dict.fromkeys(INTEGER_LIKE, int),
}


def wire(message: Message) -> bytes:
    """Bytes by which messages compare, NaN and -0.0 too."""
    return message.SerializePartialToString(deterministic=True)


def check_view(view: Any, message: Message, path: str = "") -> None:
    """Value, presence and elements of each field, oneofs, ListFields; AssertionError names the path."""
    path = path or message.DESCRIPTOR.name
    for field in message.DESCRIPTOR.fields:
        check_field(view, message, field, f"{path}.{field.name}")
    for oneof in message.DESCRIPTOR.oneofs:
        assert view.WhichOneof(oneof.name) == message.WhichOneof(oneof.name), f"{path}.{oneof.name}"
    listed = [field.name for field, _ in view.ListFields()]
    assert listed == [field.name for field, _ in message.ListFields()], path


def check_field(view: Any, message: Message, field: FieldDescriptor, path: str) -> None:
    if is_lost(view, field):
        assert field.name not in [listed.name for listed, _ in message.ListFields()], path
        return
    held = getattr(view, field.name)
    expected = getattr(message, field.name)
    if field.has_presence:
        assert view.HasField(field.name) == message.HasField(field.name), path
    else:
        with pytest.raises(ValueError):
            view.HasField(field.name)
    if field.is_repeated and field.message_type and field.message_type.GetOptions().map_entry:
        check_map(held, expected, field.message_type.fields_by_name, path)
    elif field.is_repeated:
        check_elements(held, expected, field, path)
    elif field.message_type is None:
        check_scalar(held, expected, field, path)
    elif message.HasField(field.name):
        check_view(held, expected, path)
    else:
        check_default(held, expected, path)


def is_lost(view: Any, field: FieldDescriptor) -> bool:
    """YaFF doesn't carry the field (deprecated, ignored, or not in the slice), and the view says so."""
    try:
        getattr(view, field.name)
    except AttributeError as error:
        assert str(error).startswith(f"YaFF doesn't carry field {field.full_name}: ")
        return True
    return False


def check_default(view: Any, message: Message, path: str) -> None:
    """An absent message reads as a default instance; one level, because types may be recursive."""
    for field in message.DESCRIPTOR.fields:
        if is_lost(view, field):
            continue
        held = getattr(view, field.name)
        if field.is_repeated:
            assert len(held) == 0, f"{path}.{field.name}"
        elif field.message_type is None:
            check_scalar(held, getattr(message, field.name), field, f"{path}.{field.name}")
    assert view.ListFields() == [], path


def check_elements(held: Any, expected: Any, field: FieldDescriptor, path: str) -> None:
    assert len(held) == len(expected), path
    for i, (element, wanted) in enumerate(zip(held, expected, strict=True)):
        check_element(element, wanted, field, f"{path}[{i}]")
        check_element(held[i], wanted, field, f"{path}[{i}]")
        check_element(held[i - len(expected)], wanted, field, f"{path}[{i - len(expected)}]")
    for outside in (len(expected), -len(expected) - 1):
        with pytest.raises(IndexError):
            held[outside]


def check_map(held: Any, expected: Any, entry: Any, path: str) -> None:
    assert len(held) == len(expected), path
    assert set(held) == set(expected), path
    for key, wanted in expected.items():
        assert key in held, f"{path}[{key!r}]"
        check_element(held[key], wanted, entry["value"], f"{path}[{key!r}]")


def check_element(held: Any, expected: Any, field: FieldDescriptor, path: str) -> None:
    if field.message_type is None:
        check_scalar(held, expected, field, path)
    else:
        check_view(held, expected, path)


def check_scalar(held: Any, expected: Any, field: FieldDescriptor, path: str) -> None:
    wanted_type = PYTHON_TYPES.get(field.cpp_type, type(expected))
    assert type(held) is wanted_type, f"{path}: {type(held)} is not {wanted_type}"
    if wanted_type is float:
        assert struct.pack("<d", held) == struct.pack("<d", expected), f"{path}: {held!r} != {expected!r}"
    else:
        assert held == expected, f"{path}: {held!r} != {expected!r}"
