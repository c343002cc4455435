"""Hypothesis strategy of random changes to a random schema, of which many aren't safe."""

from __future__ import annotations

from collections.abc import Callable

from evolution import all_messages, has_override, leave_oneof, remove, rename
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from hypothesis import strategies as st
from strategies import LAYOUT_NUMBERS, Building, RandomSchema, add_option
from strategies import FieldDescriptorProto as F

KINDS = (
    *(F.TYPE_INT32, F.TYPE_UINT32, F.TYPE_SINT32, F.TYPE_SFIXED32, F.TYPE_FIXED32, F.TYPE_FLOAT, F.TYPE_BOOL),
    *(F.TYPE_INT64, F.TYPE_UINT64, F.TYPE_SINT64, F.TYPE_DOUBLE, F.TYPE_STRING, F.TYPE_BYTES),
)
Step = Callable[[Building, FileDescriptorProto, DescriptorProto], None]


def changed(building: Building, schema: RandomSchema) -> RandomSchema:
    """A copy of a schema with one change, which may make no sense."""
    file = FileDescriptorProto()
    file.CopyFrom(schema.file)
    message = building.draw(st.sampled_from(list(all_messages(file.message_type))))
    building.draw(st.sampled_from(STEPS))(building, file, message)
    return RandomSchema(file, schema.roots)


def any_field(building: Building, message: DescriptorProto) -> FieldDescriptorProto | None:
    return building.draw(st.sampled_from(list(message.field))) if message.field else None


def add(building: Building, file: FileDescriptorProto, message: DescriptorProto) -> None:
    taken = {field.number for field in message.field}
    free = [number for number in range(1, 20) if number not in taken]
    message.field.add(
        name=f"added_{len(message.field)}",
        number=building.draw(st.sampled_from([*free[:2], max(taken, default=0) + 1])),
        type=building.draw(st.sampled_from(KINDS)),
        label=building.draw(st.sampled_from([F.LABEL_OPTIONAL, F.LABEL_REPEATED])),
    )


def drop(building: Building, file: FileDescriptorProto, message: DescriptorProto) -> None:
    field = any_field(building, message)
    if field is not None:
        remove(building, message, field)


def replace_by_reserve(building: Building, file: FileDescriptorProto, message: DescriptorProto) -> None:
    field = any_field(building, message)
    if field is not None and not has_override(field):
        kind = field.type if building.chance(2) else building.draw(st.sampled_from(KINDS))
        id, label = field.number, field.label
        remove(building, message, field)
        if not message.HasField("options"):
            add_option(
                message,
                "message",
                layout=LAYOUT_NUMBERS["dynamic"],
                reserved_fields=[{"id": id, "type": kind, "label": label}],
            )


def new_name(building: Building, file: FileDescriptorProto, message: DescriptorProto) -> None:
    field = any_field(building, message)
    if field is not None:
        rename(building, field)


def deprecate(building: Building, file: FileDescriptorProto, message: DescriptorProto) -> None:
    field = any_field(building, message)
    if field is not None:
        field.options.deprecated = not field.options.deprecated


def other_type(building: Building, file: FileDescriptorProto, message: DescriptorProto) -> None:
    field = any_field(building, message)
    if field is not None and field.type in KINDS and not field.HasField("default_value"):
        field.type = building.draw(st.sampled_from(KINDS))
        if field.type in (F.TYPE_STRING, F.TYPE_BYTES):
            field.options.ClearField("packed")


def other_number(building: Building, file: FileDescriptorProto, message: DescriptorProto) -> None:
    if len(message.field) > 1:
        first, second = building.draw(st.permutations(list(message.field)))[:2]
        if building.chance(2):
            first.number, second.number = second.number, first.number
        else:
            first.number = max(field.number for field in message.field) + 1


def move_out(building: Building, file: FileDescriptorProto, message: DescriptorProto) -> None:
    field = any_field(building, message)
    if field is not None:
        leave_oneof(building, message, field)


def move_in(building: Building, file: FileDescriptorProto, message: DescriptorProto) -> None:
    field = any_field(building, message)
    if field is None or field.label != F.LABEL_OPTIONAL or field.HasField("oneof_index"):
        return
    real = {
        other.oneof_index
        for other in message.field
        if other.HasField("oneof_index") and not other.proto3_optional
    }
    if any(other.proto3_optional for other in message.field):  # synthetic oneofs must stay the last
        if real:
            field.oneof_index = building.draw(st.sampled_from(sorted(real)))
    elif building.chance(2) or not real:
        field.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"oneof_{len(message.oneof_decl)}")
    else:
        field.oneof_index = building.draw(st.sampled_from(sorted(real)))
    if field.HasField("oneof_index"):
        field.options.features.ClearField("field_presence")


def other_default(building: Building, file: FileDescriptorProto, message: DescriptorProto) -> None:
    fields = [field for field in message.field if field.HasField("default_value")]
    if fields:
        building.draw(st.sampled_from(fields)).ClearField("default_value")


def pin(building: Building, file: FileDescriptorProto, message: DescriptorProto) -> None:
    if message.HasField("options"):
        message.ClearField("options")
    else:
        layout = building.draw(st.sampled_from(sorted(LAYOUT_NUMBERS)))
        add_option(message, "message", layout=LAYOUT_NUMBERS[layout])


def enum_value(building: Building, file: FileDescriptorProto, message: DescriptorProto) -> None:
    enum = building.draw(st.sampled_from(list(file.enum_type)))
    if building.chance(2):
        number = max(value.number for value in enum.value) + 1
        if number < 2**31:
            enum.value.add(name=f"ADDED_{len(enum.value)}", number=number)
    elif len(enum.value) > 1:
        value = building.draw(st.sampled_from(list(enum.value)[1:]))
        if building.chance(2):
            value.number = building.draw(st.integers(100, 200))
        elif not any(
            field.HasField("default_value")
            for each in all_messages(file.message_type)
            for field in each.field
        ):
            enum.value.remove(value)


STEPS: tuple[Step, ...] = (
    *(add, add, drop, replace_by_reserve, new_name, deprecate, other_type, other_type),
    *(other_number, move_out, move_in, move_in, other_default, pin, enum_value),
)
