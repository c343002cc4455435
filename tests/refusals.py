"""A hypothesis strategy for schemas in which YaFF can't hold one message, and can hold the others."""

from __future__ import annotations

from collections.abc import Callable

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as F
from hypothesis import strategies as st
from strategies import LAYOUT_NUMBERS, MAX_ID, Draw, RandomSchema, add_option


def pin(message: DescriptorProto, layout: str) -> None:
    add_option(message, "message", layout=LAYOUT_NUMBERS[layout])


def hole_in_flat(message: DescriptorProto) -> None:
    pin(message, "flat")
    message.field[-1].number += 1


def hole_in_fixed(message: DescriptorProto) -> None:
    pin(message, "fixed")
    message.field[-1].number += 1


def oneof_in_fixed(message: DescriptorProto) -> None:
    pin(message, "fixed")
    message.oneof_decl.add(name="choice")
    message.field[0].oneof_index = 0


def group(message: DescriptorProto) -> None:
    message.nested_type.add(name="Group").field.add(
        name="x", number=1, type=F.TYPE_INT32, label=F.LABEL_OPTIONAL
    )
    message.field[0].type = F.TYPE_GROUP
    message.field[0].type_name = ".Refused.Group"
    message.field[0].name = "group"


def unknown_layout(message: DescriptorProto) -> None:
    add_option(message, "message", layout=0)


def two_message_options(message: DescriptorProto) -> None:
    pin(message, "sparse")
    pin(message, "sparse")


def two_field_options(message: DescriptorProto) -> None:
    add_option(message.field[0], "field", id=1)
    add_option(message.field[0], "field", id=1)


def high_id(message: DescriptorProto) -> None:
    message.field[0].number = MAX_ID + 1


def high_override(message: DescriptorProto) -> None:
    add_option(message.field[0], "field", id=MAX_ID + 1)


def same_id(message: DescriptorProto) -> None:
    add_option(message.field[0], "field", id=message.field[-1].number)


def same_id_as_deprecated(message: DescriptorProto) -> None:
    message.field[-1].options.deprecated = True
    same_id(message)


def same_id_as_reserved(message: DescriptorProto) -> None:
    add_option(message, "message", reserved_fields=[{"id": 1, "type": F.TYPE_BOOL}])


def array_of_nothing(message: DescriptorProto) -> None:
    pin(message.nested_type.add(name="Nothing"), "fixed")
    message.field[0].type = F.TYPE_MESSAGE
    message.field[0].type_name = ".Refused.Nothing"
    message.field[0].label = F.LABEL_REPEATED


def ignored(message: DescriptorProto) -> None:
    add_option(message, "message", ignore=True)


def nothing_as_root(message: DescriptorProto) -> None:
    del message.field[:]
    pin(message, "fixed")


FAULTS: tuple[Callable[[DescriptorProto], None], ...] = (
    hole_in_flat,
    hole_in_fixed,
    oneof_in_fixed,
    group,
    unknown_layout,
    two_message_options,
    two_field_options,
    high_id,
    high_override,
    same_id,
    same_id_as_deprecated,
    same_id_as_reserved,
    array_of_nothing,
    ignored,
    nothing_as_root,
)


@st.composite
def refusals(draw: Draw, fault: Callable[[DescriptorProto], None]) -> RandomSchema:
    """A proto2 file with message Refused, which has the fault, and Fine, which YaFF can hold."""
    file = FileDescriptorProto(name="refused.proto", syntax="proto2")
    file.dependency.append("yaff/proto/options.proto")
    kinds = st.lists(st.sampled_from([F.TYPE_INT32, F.TYPE_STRING, F.TYPE_DOUBLE]), min_size=2, max_size=5)
    for name in ("Fine", "Refused"):
        message = file.message_type.add(name=name)
        for number, kind in enumerate(draw(kinds), 1):
            message.field.add(name=f"f{number}", number=number, type=kind, label=F.LABEL_OPTIONAL)
    fault(file.message_type[1])
    return RandomSchema(file, ["Fine"])
