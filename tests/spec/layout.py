"""Where the fields of a message lie: ids, slots, gaps, the layout, and what a schema may not do."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.empty_pb2 import Empty
from google.protobuf.unknown_fields import UnknownFieldSet

F = FieldDescriptor
MAX_ID = 8190
LABEL_REPEATED = 3

# struct characters of the scalar types as they are stored.
SCALARS = {
    F.TYPE_BOOL: "<?",
    F.TYPE_INT32: "<i",
    F.TYPE_SINT32: "<i",
    F.TYPE_SFIXED32: "<i",
    F.TYPE_ENUM: "<i",
    F.TYPE_UINT32: "<I",
    F.TYPE_FIXED32: "<I",
    F.TYPE_FLOAT: "<f",
    F.TYPE_INT64: "<q",
    F.TYPE_SINT64: "<q",
    F.TYPE_SFIXED64: "<q",
    F.TYPE_UINT64: "<Q",
    F.TYPE_FIXED64: "<Q",
    F.TYPE_DOUBLE: "<d",
}
FLOATS = (F.TYPE_FLOAT, F.TYPE_DOUBLE)
TEXTS = (F.TYPE_STRING, F.TYPE_BYTES)
MESSAGES = (F.TYPE_MESSAGE, F.TYPE_GROUP)  # "group": an editions field with delimited encoding
FIXED, FLAT, SPARSE, DYNAMIC = "fixed", "flat", "sparse", "dynamic"
LAYOUT_NAMES = {1: FIXED, 2: FLAT, 3: SPARSE, 4: DYNAMIC}  # LAYOUT_UNKNOWN is refused


class SpecError(Exception):
    """A schema that YaFF can't hold, a value it can't hold, or bytes it can't read."""


@dataclass
class LiveField:
    """A field that YaFF carries."""

    descriptor: FieldDescriptor
    id: int
    explicit: bool
    default: Any  # YaFF's own default of a scalar, which may differ from protobuf's

    @property
    def name(self) -> str:
        return self.descriptor.name

    @property
    def is_map(self) -> bool:
        entry = self.descriptor.message_type
        return self.descriptor.is_repeated and entry is not None and entry.GetOptions().map_entry

    @property
    def is_array(self) -> bool:
        return self.descriptor.is_repeated and not self.is_map

    @property
    def is_message(self) -> bool:
        return self.descriptor.type in MESSAGES

    @property
    def is_text(self) -> bool:
        return self.descriptor.type in TEXTS

    @property
    def is_scalar(self) -> bool:
        """A single number, bool or enum: the slot holds the value and not an offset."""
        return self.descriptor.type in SCALARS and not self.descriptor.is_repeated

    def pack(self, value: Any) -> bytes:
        return struct.pack(SCALARS[self.descriptor.type], value)

    def unpack(self, data: bytes) -> Any:
        return struct.unpack(SCALARS[self.descriptor.type], data)[0]

    def pack_xor(self, value: Any) -> bytes:
        """The slot of flat and fixed messages: the bits of the value XORed with those of the default."""
        return xor(self.pack(value), self.pack(self.default))

    def is_default(self, value: Any) -> bool:
        """The C++ library's IsEqual(value, default): floats within a relative epsilon of their type."""
        if self.descriptor.type not in FLOATS:
            return bool(value == self.default)
        epsilon = 2.0**-23 if self.descriptor.type == F.TYPE_FLOAT else 2.0**-52
        return abs(value - self.default) <= min(abs(value), abs(self.default)) * epsilon


@dataclass
class Layout:
    """A message type laid out."""

    descriptor: Descriptor
    kind: str  # FIXED, FLAT, SPARSE or DYNAMIC as declared
    live: list[LiveField]  # by id
    slots: dict[int, int]  # id -> bytes of its slot; live fields and dead slots (deprecated, typed reserves)
    lost: list[FieldDescriptor]  # declared fields that YaFF doesn't carry

    @property
    def gapped(self) -> bool:
        return sorted(self.slots) != list(range(1, len(self.slots) + 1))

    @property
    def has_explicit(self) -> bool:
        """E: some live field has explicit presence."""
        return any(field.explicit for field in self.live)

    @property
    def limit(self) -> int:
        """Bytes of a fixed message."""
        return sum(self.slots.values())

    def slot_offset(self, id: int) -> int:
        """Of the slot from the first slot; holes don't count."""
        return sum(width for other, width in self.slots.items() if other < id)

    def holes_below(self, id: int) -> list[int]:
        return [other for other in range(1, id) if other not in self.slots]

    def written_as(self, dynamic: str) -> str:
        """FIXED, FLAT or SPARSE, where dynamic messages are to be written as ``dynamic``."""
        if self.kind != DYNAMIC:
            return self.kind
        return SPARSE if self.gapped else dynamic


def xor(a: bytes, b: bytes) -> bytes:
    return bytes(x ^ y for x, y in zip(a, b, strict=True))


def slot_width(type: int, repeated: bool) -> int:
    return struct.calcsize(SCALARS[type]) if type in SCALARS and not repeated else 4


def yaff_default(field: FieldDescriptor) -> Any:
    if field.type not in SCALARS or field.is_repeated:
        return None
    if field.type == F.TYPE_ENUM and not field.has_default_value:
        return 0
    if field.type in FLOATS and math.isnan(field.default_value):
        return math.nan
    if field.type in FLOATS:
        return struct.unpack(SCALARS[field.type], struct.pack(SCALARS[field.type], rounded(field)))[0]
    return field.default_value


def rounded(field: FieldDescriptor) -> float:
    """strtod(std::to_string(default)): six decimals."""
    return float(f"{field.default_value:f}")


# --- options: entries of `yaff.proto.message` and `yaff.proto.field`, parsed as unknown fields ---


def entries(options: Any, number: int) -> list[UnknownFieldSet]:
    known_nothing = Empty.FromString(options.SerializeToString())
    return [
        UnknownFieldSet(Empty.FromString(entry.data))
        for entry in UnknownFieldSet(known_nothing)
        if entry.field_number == number
    ]


def value(entry: UnknownFieldSet, number: int, default: Any) -> Any:
    """The last value of a singular field of an option entry."""
    return next((item.data for item in reversed(list(entry)) if item.field_number == number), default)


def by_slice(
    found: list[UnknownFieldSet], name: str, slice_number: int, slice: str | None
) -> tuple[UnknownFieldSet | None, bool]:
    """The entry that counts, whole, and whether it's tagged with exactly this slice."""
    named: dict[str, UnknownFieldSet] = {}
    for entry in found:
        tag = value(entry, slice_number, b"").decode()
        if tag in named:
            raise SpecError(f"{name}: two option entries for slice {tag!r}")
        named[tag] = entry
    if slice is not None and slice in named:
        return named[slice], True
    return named.get(""), False


def message_option(descriptor: Descriptor, slice: str | None) -> tuple[UnknownFieldSet | None, bool]:
    return by_slice(entries(descriptor.GetOptions(), 12050), descriptor.full_name, 1, slice)


def field_option(field: FieldDescriptor, slice: str | None) -> tuple[UnknownFieldSet | None, bool]:
    return by_slice(entries(field.GetOptions(), 12000), field.full_name, 2, slice)


def is_out(descriptor: Descriptor, slice: str | None) -> bool:
    """The message type is ignored or isn't in the slice. Of a map, its value's type decides."""
    if descriptor.GetOptions().map_entry:
        inner = descriptor.fields_by_name["value"].message_type
        return inner is not None and is_out(inner, slice)
    option, tagged = message_option(descriptor, slice)
    if slice is not None and not tagged:
        return True
    return option is not None and bool(value(option, 4, 0))


# --- the layout ---


@cache
def lay_out(descriptor: Descriptor, slice: str | None = None) -> Layout:
    """The layout of a message type; SpecError if YaFF can't hold it."""
    result = lay_out_unchecked(descriptor, slice)
    check(result, slice)
    return result


def lay_out_unchecked(descriptor: Descriptor, slice: str | None) -> Layout:
    if descriptor.GetOptions().map_entry:
        pair = [LiveField(f, f.number, False, yaff_default(f)) for f in descriptor.fields]
        slots = {f.number: slot_width(f.type, False) for f in descriptor.fields}
        return Layout(descriptor, FIXED, sorted(pair, key=lambda field: field.id), slots, [])

    option, _ = message_option(descriptor, slice)
    layout_number = value(option, 3, 4) if option is not None else 4
    if layout_number not in LAYOUT_NAMES:
        raise SpecError(f"{descriptor.full_name}: LAYOUT_UNKNOWN")
    result = Layout(descriptor, LAYOUT_NAMES[layout_number], [], {}, [])
    for field in descriptor.fields:
        add_field(result, field, slice)
    for reserved in reserved_fields(option):
        type = value(reserved, 2, 0)
        if type:
            add_slot(result, value(reserved, 1, 0), slot_width(type, value(reserved, 3, 1) == LABEL_REPEATED))
    result.live.sort(key=lambda field: field.id)
    return result


def reserved_fields(option: UnknownFieldSet | None) -> list[UnknownFieldSet]:
    if option is None:
        return []
    return [UnknownFieldSet(Empty.FromString(item.data)) for item in option if item.field_number == 2]


def add_field(result: Layout, field: FieldDescriptor, slice: str | None) -> None:
    width = slot_width(field.type, field.is_repeated)
    if slice is None and field.GetOptions().deprecated:
        result.lost.append(field)
        add_slot(result, field.number, width)
        return
    option, _ = field_option(field, slice)
    out_of_slice = slice is not None and option is None
    if out_of_slice or (field.message_type is not None and is_out(field.message_type, slice)):
        result.lost.append(field)
        return
    id = (value(option, 1, 0) if option is not None else 0) or field.number
    add_slot(result, id, width)
    result.live.append(LiveField(field, id, field.has_presence, yaff_default(field)))


def add_slot(result: Layout, id: int, width: int) -> None:
    if id in result.slots:
        raise SpecError(f"{result.descriptor.full_name}: two slots with id {id}")
    result.slots[id] = width


def check(result: Layout, slice: str | None) -> None:
    name = result.descriptor.full_name
    if result.gapped and result.kind in (FLAT, FIXED):
        raise SpecError(f"{name}: gaps in a {result.kind} message")
    if result.kind == FIXED and has_oneof(result.descriptor):
        raise SpecError(f"{name}: a oneof in a fixed message")
    for field in result.live:
        if result.kind != FIXED and field.id > MAX_ID:
            raise SpecError(f"{name}: id {field.id}")
        if field.descriptor.type == F.TYPE_GROUP and is_proto2(result.descriptor):
            raise SpecError(f"{name}: a group")
        if field.is_array and field.is_message:
            element = lay_out_unchecked(field.descriptor.message_type, slice)
            if element.kind == FIXED and element.limit == 0:
                raise SpecError(f"{name}: an array of empty fixed messages")


def has_oneof(descriptor: Descriptor) -> bool:
    """A oneof as written in the file; the one behind proto3's `optional` doesn't count."""
    message = DescriptorProto()
    descriptor.CopyToProto(message)
    return any(field.HasField("oneof_index") and not field.proto3_optional for field in message.field)


def is_proto2(descriptor: Descriptor) -> bool:
    file = FileDescriptorProto()
    descriptor.file.CopyToProto(file)
    return file.syntax in ("", "proto2")
