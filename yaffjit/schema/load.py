"""Loads a schema: descriptors of any origin become the frozen values of `yaffjit.schema.model`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Any

from yaffjit.schema.model import KINDS, EnumDef, FieldDef, MessageDef, OneofDef, SchemaDef
from yaffjit.schema.options import OptionsReader, checks_utf8
from yaffjit.schema.sources import PathLike, read_source

_REPEATED = 3  # FieldDescriptorProto.LABEL_REPEATED


def load(source: Any, include: Sequence[PathLike] = (), slice: str | None = None) -> SchemaDef:
    """Load a schema.

    Args:
        source: one or several `.proto` paths, a FileDescriptorSet (path or bytes), a generated ``*_pb2``
            module, a message class, or a descriptor; several as a list of one sort.
        include: folders in which imports of `.proto` files are found; a file outside of them adds its own.
        slice: the slice of YaFF's options to read by, None for the default one.

    Raises:
        SchemaError: with protoc's own lines where a `.proto` doesn't compile.
    """
    descriptors = read_source(source, include)
    reader = OptionsReader()
    messages: dict[str, MessageDef] = {}
    enums: dict[str, EnumDef] = {}
    # Dependencies come first in a set; what was asked for is shown before them.
    for file in reversed(reader.parse(descriptors.descriptor_set).file):
        prefix = f"{file.package}." if file.package else ""
        for enum in file.enum_type:
            _add_enum(enums, file, descriptors.pool, prefix + enum.name)
        for scopes in _messages_of(file.message_type, ()):
            full_name = prefix + ".".join(scope.name for scope in scopes)
            messages[full_name] = _message(reader, file, scopes, full_name, descriptors.pool)
            for enum in scopes[-1].enum_type:
                _add_enum(enums, file, descriptors.pool, f"{full_name}.{enum.name}")
    return SchemaDef(
        messages=MappingProxyType(messages),
        enums=MappingProxyType(enums),
        slice=slice,
        descriptor_set=descriptors.descriptor_set,
        pool=descriptors.pool,
    )


def _messages_of(protos: Any, outer: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Each message, nested ones too, as the path of its descriptor protos from the outermost."""
    for proto in protos:
        scopes = (*outer, proto)
        yield scopes
        yield from _messages_of(proto.nested_type, scopes)


def _add_enum(enums: dict[str, EnumDef], file: Any, pool: Any, full_name: str) -> None:
    descriptor = pool.FindEnumTypeByName(full_name)
    values = tuple((value.name, value.number) for value in descriptor.values)
    enums[full_name] = EnumDef(full_name, file.name, bool(descriptor.is_closed), values)


def _message(
    reader: OptionsReader, file: Any, scopes: tuple[Any, ...], full_name: str, pool: Any
) -> MessageDef:
    proto = scopes[-1]
    descriptor = pool.FindMessageTypeByName(full_name)
    fields = tuple(
        _field(reader, file, (*scopes, field), descriptor.fields_by_name[field.name]) for field in proto.field
    )
    oneofs = tuple(
        OneofDef(oneof.name, tuple(field.name for field in fields if field.oneof == oneof.name))
        for oneof in proto.oneof_decl
    )
    return MessageDef(
        full_name=full_name,
        file=file.name,
        fields=fields,
        oneofs=tuple(oneof for oneof in oneofs if oneof.fields),
        is_map_entry=proto.options.map_entry,
        options=reader.of_message(proto),
    )


def _field(reader: OptionsReader, file: Any, scopes: tuple[Any, ...], descriptor: Any) -> FieldDef:
    message, proto = scopes[-2:]
    kind = KINDS[proto.type]
    repeated = proto.label == _REPEATED
    target = descriptor.message_type or descriptor.enum_type
    singular_value = not repeated and descriptor.message_type is None
    in_oneof = proto.HasField("oneof_index") and not proto.proto3_optional
    return FieldDef(
        name=proto.name,
        number=proto.number,
        kind=kind,
        repeated=repeated,
        is_map=repeated and kind == "message" and descriptor.message_type.GetOptions().map_entry,
        type_name=target.full_name if target is not None else "",
        default=descriptor.default_value if singular_value else None,
        has_default=proto.HasField("default_value"),
        explicit=bool(descriptor.has_presence),
        required=bool(descriptor.is_required),
        deprecated=proto.options.deprecated,
        oneof=message.oneof_decl[proto.oneof_index].name if in_oneof else "",
        json_name=descriptor.json_name,
        utf8=kind == "string" and checks_utf8(file, scopes),
        options=reader.of_field(proto),
    )
