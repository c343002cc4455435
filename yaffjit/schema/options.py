"""Reads YaFF's own options, and the one protobuf feature that descriptors don't show, from descriptor protos.

A pool of its own knows the extensions of `yaff/proto/options.proto`, so that neither the default pool nor
the user's pool needs them registered.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any

from yaffjit.errors import SchemaError
from yaffjit.schema.model import KINDS, FieldOption, MessageOption, ReservedField

_LAYOUTS = ("unknown", "fixed", "flat", "sparse", "dynamic")
_UTF8_VERIFY = 2  # FeatureSet.VERIFY
_REPEATED = 3  # FieldDescriptorProto.LABEL_REPEATED


@cache
def options_file() -> bytes:
    """The serialized FileDescriptorProto of `yaff/proto/options.proto`."""
    from google.protobuf import descriptor_pb2

    data = resources.files("yaffjit.schema").joinpath("yaff/proto/options.binpb").read_bytes()
    file: bytes = descriptor_pb2.FileDescriptorSet.FromString(data).file[0].SerializeToString()
    return file


class OptionsReader:
    """Parses a FileDescriptorSet so that YaFF's options can be read from it."""

    def __init__(self) -> None:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

        pool: Any = descriptor_pool.DescriptorPool()
        pool.AddSerializedFile(descriptor_pb2.DESCRIPTOR.serialized_pb)
        pool.AddSerializedFile(options_file())
        self._set_class = message_factory.GetMessageClass(
            pool.FindMessageTypeByName("google.protobuf.FileDescriptorSet")
        )
        self._message_option = pool.FindExtensionByName("yaff.proto.message")
        self._field_option = pool.FindExtensionByName("yaff.proto.field")

    def parse(self, descriptor_set: bytes) -> Any:
        """The FileDescriptorSet as a message whose options know YaFF's extensions."""
        from google.protobuf.message import DecodeError

        try:
            return self._set_class.FromString(descriptor_set)
        except DecodeError as error:
            raise SchemaError(f"the options of the schema can't be read: {error}") from None

    def of_message(self, proto: Any) -> tuple[MessageOption, ...]:
        """All ``(yaff.proto.message)`` entries of a DescriptorProto."""
        return tuple(
            MessageOption(
                slice_name=entry.slice_name,
                layout=_LAYOUTS[entry.layout],
                ignore=entry.ignore,
                reserved=tuple(
                    ReservedField(
                        id=reserved.id,
                        kind=KINDS[reserved.type] if reserved.HasField("type") else "",
                        repeated=reserved.label == _REPEATED,
                    )
                    for reserved in entry.reserved_fields
                ),
            )
            for entry in proto.options.Extensions[self._message_option]
        )

    def of_field(self, proto: Any) -> tuple[FieldOption, ...]:
        """All ``(yaff.proto.field)`` entries of a FieldDescriptorProto."""
        return tuple(
            FieldOption(slice_name=entry.slice_name, id=entry.id)
            for entry in proto.options.Extensions[self._field_option]
        )


def checks_utf8(file: Any, scopes: Iterable[Any]) -> bool:
    """Whether protobuf refuses a string field that isn't UTF-8.

    ``scopes`` are the descriptor protos from the outermost message to the field itself; under editions
    the innermost that sets ``features.utf8_validation`` decides.
    """
    if file.syntax != "editions":
        return bool(file.syntax == "proto3")
    verify = True
    for scope in (file, *scopes):
        features = scope.options.features
        if features.HasField("utf8_validation"):
            verify = features.utf8_validation == _UTF8_VERIFY
    return verify
