"""What a `.proto` says, as frozen values: no layout, no bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from yaffjit.errors import SchemaError

if TYPE_CHECKING:
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message import Message as ProtobufMessage

# Field kinds under protobuf's own names, by the number of google.protobuf's FieldDescriptor.TYPE_*.
KINDS: Mapping[int, str] = {
    1: "double",
    2: "float",
    3: "int64",
    4: "uint64",
    5: "int32",
    6: "fixed64",
    7: "fixed32",
    8: "bool",
    9: "string",
    10: "group",
    11: "message",
    12: "bytes",
    13: "uint32",
    14: "enum",
    15: "sfixed32",
    16: "sfixed64",
    17: "sint32",
    18: "sint64",
}

Default = bool | int | float | str | bytes | None


@dataclass(frozen=True, slots=True)
class FieldOption:
    """One ``(yaff.proto.field)`` entry; ``id`` is 0 where it gives none, ``slice_name`` "" where untagged."""

    slice_name: str
    id: int


@dataclass(frozen=True, slots=True)
class ReservedField:
    """One entry of ``reserved_fields``; ``kind`` is "" where it gives no type."""

    id: int
    kind: str
    repeated: bool


@dataclass(frozen=True, slots=True)
class MessageOption:
    """One ``(yaff.proto.message)`` entry; ``layout`` is "unknown", "fixed", "flat", "sparse" or "dynamic"."""

    slice_name: str
    layout: str
    ignore: bool
    reserved: tuple[ReservedField, ...]


@dataclass(frozen=True, slots=True)
class FieldDef:
    """A field as declared. ``kind`` is a value of `KINDS`; ``repeated`` is true of maps too."""

    name: str
    number: int
    kind: str
    repeated: bool
    is_map: bool
    type_name: str  # full name of the message or enum type, else ""
    default: Default  # protobuf's default of a singular scalar or text field, else None
    has_default: bool  # the file gives that default by [default = ...]
    explicit: bool  # protobuf's has_presence
    required: bool
    deprecated: bool
    oneof: str  # name of the oneof as written in the file, else ""
    json_name: str
    utf8: bool  # protobuf checks that a string field is UTF-8
    options: tuple[FieldOption, ...]


@dataclass(frozen=True, slots=True)
class OneofDef:
    name: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MessageDef:
    """A message type; ``fields`` in the order of declaration."""

    full_name: str
    file: str
    fields: tuple[FieldDef, ...]
    oneofs: tuple[OneofDef, ...]
    is_map_entry: bool
    options: tuple[MessageOption, ...]


@dataclass(frozen=True, slots=True)
class EnumDef:
    full_name: str
    file: str
    closed: bool
    values: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class SchemaDef:
    """All message and enum types of one load, by full name, and the protobuf pool they come from.

    ``messages`` holds map entries and nested types too. ``descriptor_set`` is a serialized
    FileDescriptorSet, dependencies first, from which the same schema can be loaded again.
    """

    messages: Mapping[str, MessageDef]
    enums: Mapping[str, EnumDef]
    slice: str | None
    descriptor_set: bytes = field(repr=False)
    pool: DescriptorPool = field(repr=False, compare=False)

    def message_class(self, full_name: str) -> type[ProtobufMessage]:
        """The google.protobuf class of a message of this schema's own pool."""
        from google.protobuf import message_factory

        descriptor = self.pool.FindMessageTypeByName(full_name)
        try:
            found: type[ProtobufMessage] = message_factory.GetMessageClass(descriptor)
        except RecursionError:
            raise SchemaError(
                f"{full_name} reaches a chain of message types that is too long for protobuf's Python classes"
            ) from None
        return found
