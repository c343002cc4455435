"""Every kind of field, in every layout and with every presence, with each of its edge values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import spec
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as F
from google.protobuf.message import Message
from strategies import FLOATS, INTEGERS, KEYS, LAYOUT_NUMBERS, RandomSchema, add_option, edges
from walk import check_view, wire

import yaffjit as yj

KINDS = {
    F.Type.Name(kind).removeprefix("TYPE_").lower(): kind
    for kind in (*KEYS, *FLOATS, F.TYPE_BYTES, F.TYPE_ENUM, F.TYPE_MESSAGE)
}
LAYOUTS = ("dynamic", "flat", "sparse", "fixed")
# How field x is declared in proto3. "beside": without presence, in a type that has a field with presence.
FORMS = ("implicit", "beside", "optional", "oneof", "repeated", "map_value", "map_key")
# Its defaults in proto2, "" for none. The enum's first number is 1, so that is what protobuf takes then.
WIDE_AND_NARROW = ("", "1.5", "-4", "-0", "1e-9", "-1e-9", "inf", "-inf", "nan")
DEFAULTS = {
    **dict.fromkeys(INTEGERS, ("", "1", "77")),
    F.TYPE_FLOAT: (*WIDE_AND_NARROW, "3.14159274", "1e21"),
    F.TYPE_DOUBLE: (*WIDE_AND_NARROW, "3.141592653589793", "1e300"),
    F.TYPE_BOOL: ("", "true", "false"),
    F.TYPE_STRING: ("", "anise"),
    F.TYPE_BYTES: ("", "\\000\\377"),
    F.TYPE_ENUM: ("", "MINUS", "ZERO"),
}


def new_file(syntax: str, first: int) -> FileDescriptorProto:
    file = FileDescriptorProto(name=f"{syntax}.proto", package="k", syntax=syntax)
    file.dependency.append("yaff/proto/options.proto")
    enum = file.enum_type.add(name="E")
    numbers = [("ZERO", 0), ("ONE", 1), ("MINUS", -3)]
    for name, number in sorted(numbers, key=lambda pair: pair[1] != first):
        enum.value.add(name=name, number=number)
    file.message_type.add(name="Child").field.add(
        name="a", number=1, type=F.TYPE_INT32, label=F.LABEL_OPTIONAL
    )
    return file


def add_message(file: FileDescriptorProto, name: str, layout: str) -> DescriptorProto:
    message = file.message_type.add(name=name)
    add_option(message, "message", layout=LAYOUT_NUMBERS[layout])
    return message


def add_field(message: DescriptorProto, name: str, kind: int, **values: Any) -> Any:
    number = 1 if name == "x" else 2
    if message.name.startswith("sparse"):
        number += 30  # 31 and 32: the widths of entries in a meta table
    field = message.field.add(name=name, number=number, type=kind, label=F.LABEL_OPTIONAL)
    if kind in (F.TYPE_ENUM, F.TYPE_MESSAGE):
        field.type_name = ".k.E" if kind == F.TYPE_ENUM else ".k.Child"
    field.MergeFrom(F(**values))
    return field


def add_optional(message: DescriptorProto, name: str, kind: int) -> None:
    add_field(message, name, kind, proto3_optional=True, oneof_index=0)
    message.oneof_decl.add(name=f"_{name}")


def add_map(message: DescriptorProto, key: int, value: int) -> None:
    entry = message.nested_type.add(name="XEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=F.LABEL_OPTIONAL, type=key)
    field = entry.field.add(name="value", number=2, label=F.LABEL_OPTIONAL, type=value)
    if value in (F.TYPE_ENUM, F.TYPE_MESSAGE):
        field.type_name = ".k.E" if value == F.TYPE_ENUM else ".k.Child"
    field = add_field(message, "x", F.TYPE_MESSAGE, label=F.LABEL_REPEATED)
    field.type_name = f".k.{message.name}.XEntry"


def declare(message: DescriptorProto, kind: int, form: str) -> None:
    """Field x, in a form of proto3."""
    if form == "map_value":
        add_map(message, F.TYPE_STRING, kind)
    elif form == "map_key":
        add_map(message, kind, F.TYPE_INT32)
    elif form == "repeated":
        add_field(message, "x", kind, label=F.LABEL_REPEATED)
    elif form == "optional" and kind != F.TYPE_MESSAGE:
        add_optional(message, "x", kind)
    elif form == "oneof":
        message.oneof_decl.add(name="choice")
        for name in ("x", "other"):
            add_field(message, name, kind, oneof_index=0)
    else:
        add_field(message, "x", kind)
        if form == "beside":
            add_optional(message, "y", F.TYPE_BOOL)


def is_possible(layout: str, kind: int, form: str) -> bool:
    if form == "map_key":
        return kind in KEYS
    return form != "oneof" or layout != "fixed"


def cases() -> list[tuple[str, str, str]]:
    every = [(layout, name, form) for layout in LAYOUTS for name in KINDS for form in FORMS]
    return [case for case in every if is_possible(case[0], KINDS[case[1]], case[2])]


@cache
def proto3() -> tuple[RandomSchema, yj.Schema]:
    file = new_file("proto3", 0)
    for layout, name, form in cases():
        declare(add_message(file, f"{layout}_{name}_{form}", layout), KINDS[name], form)
    schema = RandomSchema(file)
    return schema, yj.load_schema(schema.descriptor_set.SerializeToString())


@cache
def proto2() -> tuple[RandomSchema, yj.Schema]:
    file = new_file("proto2", 1)
    for layout in LAYOUTS:
        for name, kind in KINDS.items():
            for i, default in enumerate(DEFAULTS.get(kind, ())):
                field = add_field(add_message(file, f"{layout}_{name}_{i}", layout), "x", kind)
                if default:
                    field.default_value = default
    schema = RandomSchema(file)
    return schema, yj.load_schema(schema.descriptor_set.SerializeToString())


def samples(message_class: type[Message]) -> Iterator[Message]:
    """Messages of a type with field x: unset, and with each edge value."""
    yield message_class()
    x = message_class.DESCRIPTOR.fields_by_name["x"]
    entry = x.message_type if x.message_type and x.message_type.GetOptions().map_entry else None
    if entry is not None and entry.fields_by_name["value"].message_type is not None:
        message = message_class()
        message.x[""].SetInParent()
        message.x["b"].a = 5
        yield message
    elif entry is not None:
        keys, held = (edges(entry.fields_by_name[name]) for name in ("key", "value"))
        pairs = [(key, held[i % len(held)]) for i, key in enumerate(keys)]
        pairs += [(keys[i % len(keys)], value) for i, value in enumerate(held)]
        for chosen in (pairs, *([pair] for pair in pairs)):
            message = message_class()
            for key, value in chosen:
                message.x[key] = value
            yield message
    elif x.message_type is not None:
        yield from samples_of_child(message_class, x)
    elif x.is_repeated:
        yield from (message_class(x=[value]) for value in edges(x))
        yield message_class(x=edges(x))
    else:
        yield from (message_class(x=value) for value in edges(x))


def samples_of_child(message_class: type[Message], x: FieldDescriptor) -> Iterator[Message]:
    message: Any = message_class()
    child = message.x.add() if x.is_repeated else message.x
    child.SetInParent()
    yield message
    message = message_class()
    for a in (1, -1):
        child = message.x.add() if x.is_repeated else message.x
        child.a = a
    yield message


def check(schema: RandomSchema, loaded: yj.Schema, name: str) -> None:
    type = loaded[f"k.{name}"]
    for message in samples(schema.message_class(f"k.{name}")):
        for layout in ("flat", "sparse"):
            try:
                expected = spec.write(message, layout)
            except spec.SpecError:
                with pytest.raises(yj.EncodeError):
                    type.encode(message, layout=layout)
                continue
            buffer = type.encode(message, layout=layout)
            assert buffer.hex() == expected.hex(), f"{name}: {message}"
            type.verify(buffer)
            assert wire(type.decode(buffer)) == wire(spec.carried(message)), f"{name}: {message}"
            check_view(type.view(buffer), spec.carried(message))


@pytest.mark.parametrize(("layout", "kind", "form"), cases())
def test_form(layout: str, kind: str, form: str) -> None:
    check(*proto3(), f"{layout}_{kind}_{form}")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind in DEFAULTS])
def test_default(layout: str, kind: str) -> None:
    for i in range(len(DEFAULTS[KINDS[kind]])):
        check(*proto2(), f"{layout}_{kind}_{i}")
