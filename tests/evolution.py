"""Hypothesis strategies for pairs of schemas: data is written under one and read under the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FeatureSet,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from hypothesis import strategies as st
from strategies import EDITIONS, LAYOUT_NUMBERS, MAX_ID, Building, Draw, RandomSchema, add_option, schemas
from strategies import FieldDescriptorProto as F

# Kinds that a new field can have, simple ones.
NEW_KINDS = (F.TYPE_BOOL, F.TYPE_INT32, F.TYPE_DOUBLE, F.TYPE_STRING, F.TYPE_BYTES, F.TYPE_UINT64)


@st.composite
def evolutions(draw: Draw) -> tuple[RandomSchema, RandomSchema]:
    """(writer's schema, reader's schema): fields removed, deprecated, renamed, added, moved out of oneofs.

    Where the reader has the newer schema, messages that were pinned may have become dynamic. A removed field
    then makes later ones of pinned flat data unreadable, because such data doesn't carry sizes.
    """
    older = draw(schemas(plain=True))
    newer_reads = draw(st.booleans())
    file = FileDescriptorProto()
    file.CopyFrom(older.file)
    building = Building(draw, file.syntax, True)
    for message in all_messages(file.message_type):
        change(building, message, may_unpin=newer_reads)
    newer = RandomSchema(file, older.roots)
    return (older, newer) if newer_reads else (newer, older)


def all_messages(messages: Iterable[DescriptorProto]) -> Iterator[DescriptorProto]:
    for message in messages:
        if not message.options.map_entry:
            yield message
            yield from all_messages(message.nested_type)


def pinned_options(layout: str) -> bytes:
    message = DescriptorProto()
    add_option(message, "message", layout=LAYOUT_NUMBERS[layout])
    return message.options.SerializeToString()


# By the serialized options of a message that has no other option than its layout: the layout.
ONLY_LAYOUT = {b"": "dynamic"} | {pinned_options(layout): layout for layout in ("flat", "sparse", "dynamic")}


def change(building: Building, message: DescriptorProto, may_unpin: bool) -> None:
    """Changes a message in ways that keep old data readable."""
    layout = ONLY_LAYOUT.get(message.options.SerializeToString(), "fixed")
    if layout in ("flat", "sparse") and may_unpin and building.chance(2):
        message.ClearField("options")
    elif layout in ("flat", "fixed"):
        for field in message.field:
            rename(building, field)
        return
    taken = [field.number for field in message.field]  # that's ids too, unless one has an override
    may_grow = not any(map(has_override, message.field)) and max(taken, default=0) < MAX_ID
    if building.chance(3):
        for field in message.field:
            leave_oneof(building, message, field)
    for field in list(message.field):
        choice = building.draw(
            st.sampled_from(
                ["keep", "keep", "keep", "remove", "remove", "deprecate", "rename", "leave oneof"]
            )
        )
        if choice == "remove":
            remove(building, message, field)
        elif choice == "deprecate" and not has_override(field):
            field.options.deprecated = True
        elif choice == "rename":
            rename(building, field)
        elif choice == "leave oneof":
            leave_oneof(building, message, field)
    if may_grow and building.chance(2):
        message.field.add(
            name="added",
            number=max(taken, default=0) + 1,
            type=building.draw(st.sampled_from(NEW_KINDS)),
            label=building.draw(st.sampled_from([F.LABEL_OPTIONAL, F.LABEL_REPEATED])),
        )


def has_override(field: FieldDescriptorProto) -> bool:
    return field.number > MAX_ID


def rename(building: Building, field: FieldDescriptorProto) -> None:
    # The name of a map's entry type goes by that of its field.
    if field.type != F.TYPE_MESSAGE and building.chance(2):
        field.name = f"renamed_{field.number}"


def remove(building: Building, message: DescriptorProto, field: FieldDescriptorProto) -> None:
    leave_oneof(building, message, field)
    message.field.remove(field)
    if field.type == F.TYPE_MESSAGE and field.label == F.LABEL_REPEATED:
        for nested in list(message.nested_type):
            if nested.options.map_entry and field.type_name.endswith(f".{message.name}.{nested.name}"):
                message.nested_type.remove(nested)


def leave_oneof(building: Building, message: DescriptorProto, field: FieldDescriptorProto) -> None:
    """Takes a field out of its oneof, which disappears if it was the last one."""
    if not field.HasField("oneof_index"):
        return
    index = field.oneof_index
    field.ClearField("oneof_index")
    field.ClearField("proto3_optional")
    if building.syntax == EDITIONS and field.type != F.TYPE_MESSAGE:
        field.options.features.field_presence = FeatureSet.EXPLICIT
    if any(other.HasField("oneof_index") and other.oneof_index == index for other in message.field):
        return
    del message.oneof_decl[index]
    for other in message.field:
        if other.HasField("oneof_index") and other.oneof_index > index:
            other.oneof_index -= 1


@st.composite
def sliced_schemas(draw: Draw) -> RandomSchema:
    """A schema with entries for slice "s"; the roots are the messages in it, dynamic or sparse there."""
    schema = draw(schemas())
    building = Building(draw, schema.file.syntax, False)
    inside = []
    prefix = f"{schema.file.package}." if schema.file.package else ""
    for name, message in named_messages(schema.file.message_type, prefix):
        if building.chance(5):
            continue
        sparse = building.chance(3)
        add_option(message, "message", slice_name="s", layout=3 if sparse else 4)
        inside.append(name)
        ids = draw(st.permutations(range(1, len(message.field) + 1)))
        for field, id in zip(message.field, ids, strict=True):
            if building.chance(6) and not has_override(field):
                add_option(field, "field", slice_name="other", id=id)  # so it's out
            else:
                add_option(field, "field", slice_name="s", id=id)
    return RandomSchema(schema.file, inside)


def named_messages(messages: Iterable[DescriptorProto], prefix: str) -> Iterator[tuple[str, DescriptorProto]]:
    for message in messages:
        if not message.options.map_entry:
            yield prefix + message.name, message
            yield from named_messages(message.nested_type, f"{prefix}{message.name}.")
